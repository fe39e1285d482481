//! Splits a file at the boundaries of regions, into the directory `.tmp` next to it, as HBase does.

use base::env::Env;
use bytes::Bytes;
use cell::schema::{BloomType, Compression, FamilyDescriptor};
use fs::{FilePath, FileSystem, IoClass};
use hfile::{OpenOptions, Reader, Walk, Writer, WriterOptions};

use super::discovery::{FoundFile, describe};

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;
/// The entries of the file info that parts inherit.
const INHERITED: [&[u8]; 4] = [
    b"BULKLOAD_TIMESTAMP",
    b"BULKLOAD_SOURCE_TASK",
    b"EXCLUDE_FROM_MINOR_COMPACTION",
    b"MAJOR_COMPACTION_KEY",
];

/// Splits a file at the `ends` of regions, which are in order; an empty one is no bound. The parts
/// have the settings of the family.
///
/// # Errors
/// Errors of reading and writing.
pub(super) async fn split(
    env: &Env,
    fs: &dyn FileSystem,
    file: &FoundFile,
    family: &FamilyDescriptor,
    ends: &[Bytes],
) -> Result<Vec<FoundFile>, String> {
    let mut parts = Vec::new();
    for path in write_parts(env, fs, file, family, ends).await.map_err(|error| error.to_string())? {
        parts.extend(describe(fs, file.family.clone(), path).await?);
    }
    Ok(parts)
}

async fn write_parts(
    env: &Env,
    fs: &dyn FileSystem,
    file: &FoundFile,
    family: &FamilyDescriptor,
    ends: &[Bytes],
) -> hfile::Result<Vec<FilePath>> {
    let dir = file.path.parent().join(".tmp");
    fs.make_dirs(&dir).await?;
    let reader = Reader::open(fs, &file.path, 0, OpenOptions::default()).await?;
    let mut ends = ends.iter().filter(|end| !end.is_empty()).peekable();
    let mut paths = Vec::new();
    let mut writer: Option<Writer> = None;
    let mut walk = Walk::new(&reader, IoClass::Compaction, READ_BYTES);
    loop {
        walk.next().await?;
        let Some(cell) = walk.cell() else { break };
        // The end of the current part, if the row is after it.
        let mut is_after = false;
        while ends.next_if(|end| cell.row() >= &end[..]).is_some() {
            is_after = true;
        }
        if is_after && let Some(finished) = writer.take() {
            finish(finished, &reader).await?;
        }
        let open = match &mut writer {
            Some(open) => open,
            None => {
                let path = dir.join(&format!("{:016x}{:016x}", env.random.next_u64(), env.random.next_u64()));
                let created = Writer::create(fs, &path, options(env, family, &reader)).await?;
                paths.push(path);
                writer.insert(created)
            }
        };
        open.append(&cell).await?;
    }
    if let Some(last) = writer {
        finish(last, &reader).await?;
    }
    fs.sync_dir(&dir).await?;
    Ok(paths)
}

async fn finish(mut writer: Writer, source: &Reader) -> hfile::Result<()> {
    for name in INHERITED {
        if let Some(value) = source.info().get(name) {
            writer.put_info(name, value.clone());
        }
    }
    writer.finish().await.map(|_| ())
}

fn options(env: &Env, family: &FamilyDescriptor, source: &Reader) -> WriterOptions {
    let supported = family.compression().filter(|_| family.unsupported_compression().is_none());
    WriterOptions {
        order: source.order(),
        block_bytes: family.block_bytes().max(1),
        encoding: family.block_encoding(),
        compression: supported.unwrap_or(Compression::None),
        // The length of the prefixes is a setting of the table; a row filter works, too.
        bloom: match family.bloom_type() {
            BloomType::RowPrefix => BloomType::Row,
            bloom => bloom,
        },
        include_tags: source.info().includes_tags,
        include_mvcc: false,
        create_time_ms: env.clock.now_ms(),
        ..WriterOptions::default()
    }
}
