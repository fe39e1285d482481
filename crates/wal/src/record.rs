//! A record of the logs that a server retains. With it, the next start detects a log that is
//! missing or shorter than recorded, even if no other log states its length.
//!
//! It is a small text file, rewritten about a second after the set of logs has changed, and not
//! synced. While a log grows, it is also rewritten when the lengths have the age
//! [`record_age`](crate::LogOptions::record_age). It detects damaged, truncated and deleted logs.
//! After a power loss the record may be missing too. The recorded lengths were durable when the
//! record was written. So an old record is never wrong, but may detect less.
//!
//! ```text
//! grampus logs 1
//! LENGTH PATH          for each log: its durable length
//! crc32c HEX           of all before this line
//! ```

use base::checksum::crc32c;
use bytes::Bytes;
use fs::{AccessPattern, FilePath, FileSystem};

use crate::Result;

const FIRST_LINE: &str = "grampus logs 1\n";
const CHECK: &str = "crc32c ";
/// Maximum length of a record that is read, enough for a million logs.
const BYTES_MAX: u64 = 64 << 20;

/// A log and its minimum length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedLog {
    /// Its path.
    pub path: FilePath,
    /// Its durable length.
    pub bytes: u64,
}

/// Whether these are the same logs. Their lengths may differ.
pub(crate) fn is_same_set(one: &[RecordedLog], other: &[RecordedLog]) -> bool {
    one.iter().map(|log| &log.path).eq(other.iter().map(|log| &log.path))
}

/// Writes a record that replaces the existing one.
pub(crate) async fn write(fs: &dyn FileSystem, path: &FilePath, logs: &[RecordedLog]) -> fs::Result<()> {
    let being_written = path.parent().join(&format!("{}.new", path.name()));
    fs.delete(&being_written).await?;
    let mut writer = fs.create(&being_written, AccessPattern::Data).await?;
    writer.append(encode(logs)).await?;
    writer.close().await?;
    fs.rename(&being_written, path).await
}

/// The logs that the record at `path` names; none if there is no valid record.
///
/// # Errors
/// Errors of the file system.
pub async fn read(fs: &dyn FileSystem, path: &FilePath) -> Result<Vec<RecordedLog>> {
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

fn encode(logs: &[RecordedLog]) -> Bytes {
    let mut text = String::from(FIRST_LINE);
    for log in logs {
        text += &format!("{} {}\n", log.bytes, log.path.as_str());
    }
    let crc = crc32c(text.as_bytes());
    text += &format!("{CHECK}{crc:08x}\n");
    text.into()
}

fn decode(bytes: &[u8]) -> Option<Vec<RecordedLog>> {
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
        Some(RecordedLog { path: FilePath::new(path), bytes: bytes.parse().ok()? })
    });
    logs.collect()
}

#[cfg(test)]
mod tests {
    use fs::memory::MemoryFs;

    use super::*;

    fn logs() -> Vec<RecordedLog> {
        let log = |name: &str, bytes| RecordedLog { path: FilePath::new(name), bytes };
        vec![log("WALs/host,16020,1/host%2C16020%2C1.7", 4711), log("WALs/a b", 0)]
    }

    #[tokio::test]
    async fn a_record_is_read_back_and_the_last_one_counts() {
        let (fs, path) = (MemoryFs::new(), FilePath::new("record"));
        assert_eq!(read(&fs, &path).await.unwrap(), []);
        write(&fs, &path, &[]).await.unwrap();
        assert_eq!(read(&fs, &path).await.unwrap(), []);
        write(&fs, &path, &logs()).await.unwrap();
        assert_eq!(read(&fs, &path).await.unwrap(), logs());
    }

    #[test]
    fn a_damaged_record_is_ignored() {
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
