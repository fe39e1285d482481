//! A record of the logs that a server keeps, beside them: so that one that is missing or shorter at the next start is
//! noticed, although no other log states it.
//!
//! It is a small text file, written anew about once a second while the log grows, and not synced: it is there to notice
//! what was lost without a loss of power (a damaged, truncated or deleted file). What it states was durable when it was
//! written; an old or missing record states less, never something false.
//!
//! ```text
//! grampus logs 1
//! LENGTH PATH          for each log: its durable length
//! crc32c HEX           of all before this line
//! ```

use base::checksum::crc32c;
use bytes::Bytes;
use fs::{FilePath, FileSystem, Storage};

use crate::Result;

const FIRST_LINE: &str = "grampus logs 1\n";
const CHECK: &str = "crc32c ";
/// A record of more bytes is not read: it would name a million logs.
const BYTES_MAX: u64 = 64 << 20;

/// A log, and how long it was at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Where it was.
    pub path: FilePath,
    /// Bytes of it that were durable.
    pub bytes: u64,
}

/// Writes a record in the place of the one that is there.
pub(crate) async fn write(fs: &dyn FileSystem, path: &FilePath, logs: &[Recorded]) -> fs::Result<()> {
    let being_written = path.parent().join(&format!("{}.new", path.name()));
    fs.delete(&being_written).await?;
    let mut writer = fs.create(&being_written, Storage::Data).await?;
    writer.append(encode(logs)).await?;
    writer.close().await?;
    fs.rename(&being_written, path).await
}

/// The logs that the record at `path` names; none if there is no sound one.
///
/// # Errors
/// What the file system reports.
pub async fn read(fs: &dyn FileSystem, path: &FilePath) -> Result<Vec<Recorded>> {
    let reader = match fs.open(path).await {
        Ok(reader) => reader,
        Err(fs::Error::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    if reader.len() > BYTES_MAX {
        return Ok(Vec::new());
    }
    let bytes = reader.read_at(0, reader.len() as usize).await?;
    Ok(decode(&bytes).unwrap_or_default())
}

fn encode(logs: &[Recorded]) -> Bytes {
    let mut text = String::from(FIRST_LINE);
    for log in logs {
        text += &format!("{} {}\n", log.bytes, log.path.as_str());
    }
    let crc = crc32c(text.as_bytes());
    text += &format!("{CHECK}{crc:08x}\n");
    text.into()
}

fn decode(bytes: &[u8]) -> Option<Vec<Recorded>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (checked, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let checked = &text[..checked.len() + 1];
    let crc = u32::from_str_radix(last.strip_prefix(CHECK)?, 16).ok()?;
    if crc != crc32c(checked.as_bytes()) {
        return None;
    }
    let logs = checked.strip_prefix(FIRST_LINE)?.lines().map(|line| {
        let (bytes, path) = line.split_once(' ')?;
        if path.split('/').any(|part| part == "." || part == "..") {
            return None;
        }
        Some(Recorded { path: FilePath::new(path), bytes: bytes.parse().ok()? })
    });
    logs.collect()
}

#[cfg(test)]
mod tests {
    use fs::memory::MemoryFs;

    use super::*;

    fn logs() -> Vec<Recorded> {
        let log = |name: &str, bytes| Recorded { path: FilePath::new(name), bytes };
        vec![log("WALs/host,16020,1/host%2C16020%2C1.7", 4711), log("WALs/a b", 0)]
    }

    #[tokio::test]
    async fn a_record_comes_back_and_the_last_one_counts() {
        let (fs, path) = (MemoryFs::new(), FilePath::new("record"));
        assert_eq!(read(&fs, &path).await.unwrap(), []);
        write(&fs, &path, &[]).await.unwrap();
        assert_eq!(read(&fs, &path).await.unwrap(), []);
        write(&fs, &path, &logs()).await.unwrap();
        assert_eq!(read(&fs, &path).await.unwrap(), logs());
    }

    #[test]
    fn a_damaged_record_states_nothing() {
        let bytes = encode(&logs());
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 4;
            assert_eq!(decode(&flipped), None, "byte {at}");
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
        }
        let mut leaving = format!("{FIRST_LINE}1 ../x\n");
        leaving += &format!("{CHECK}{:08x}\n", crc32c(leaving.as_bytes()));
        assert_eq!(decode(leaving.as_bytes()), None);
    }
}
