//! Prints what is known about a file without its cells: trailer, file info, Bloom filters.

use std::io::Write;
use std::sync::Arc;

use base::text::to_string_binary;
use cell::CellOrder;
use hfile::info::names;
use hfile::{BloomDescription, Pinned, Reader, Stop};

use super::key::{format_key, format_optional};
use crate::Error;

/// What HBase prints of the caches of its reader, which has none.
const CACHE_FLAGS: &str = "    cacheConf=cacheDataOnRead=false,
    cacheDataOnWrite=false,
    cacheIndexesOnWrite=false,
    cacheBloomsOnWrite=false,
    cacheEvictOnClose=false,
    cacheDataCompressed=false,
    prefetchOnOpen=false,";

pub(super) async fn print(out: &mut dyn Write, file: &Arc<Reader>, name: &str) -> Result<(), Error> {
    print_reader(out, file, name)?;
    print_trailer(out, file)?;
    print_info(out, file)?;
    let middle = middle_key(file).await?;
    writeln!(out, "Mid-key: {}", format_optional(middle.as_deref()))?;
    print_bloom(out, "Bloom filter:", file.bloom_description())?;
    print_bloom(out, "Delete Family Bloom filter:", file.delete_family_bloom_description())
}

async fn middle_key(file: &Arc<Reader>) -> Result<Option<Vec<u8>>, Error> {
    let mut blocks = Pinned::new(None);
    loop {
        match file.middle_key(&blocks) {
            Ok(key) => return Ok(key),
            Err(Stop::Failed(error)) => return Err(error.into()),
            Err(Stop::Miss(miss)) => {
                for block in &miss.blocks {
                    blocks.supply(block.file.load(block).await?);
                }
            }
        }
    }
}

fn print_reader(out: &mut dyn Write, file: &Reader, name: &str) -> Result<(), Error> {
    let info = file.info();
    let number = |name| info.get(name).and_then(|value| integer(value)).unwrap_or(0);
    let first = file.root_index_entries().next().map(|entry| entry.key);
    let compression = file.trailer().compression.name().to_lowercase();
    // HBase prints the bytes of its index objects here.
    writeln!(out, "Block index size as per heapsize: {}", file.root_index_bytes())?;
    writeln!(out, "reader={name},\n    compression={compression},\n{CACHE_FLAGS}")?;
    writeln!(out, "    firstKey={},", format_optional(first))?;
    writeln!(out, "    lastKey={},", format_optional(info.last_key.as_deref()))?;
    writeln!(out, "    avgKeyLen={},", number(names::AVG_KEY_LEN))?;
    writeln!(out, "    avgValueLen={},", number(names::AVG_VALUE_LEN))?;
    Ok(writeln!(out, "    entries={},\n    length={}", info.entry_count, file.len())?)
}

fn print_trailer(out: &mut dyn Write, file: &Reader) -> Result<(), Error> {
    let trailer = file.trailer();
    let comparator = match trailer.order {
        CellOrder::Meta => "MetaCellComparator",
        _ => "CellComparatorImpl",
    };
    // HBase's offsets are signed; -1 means that there is no data block.
    let (first, last) = (trailer.first_data_block_offset as i64, trailer.last_data_block_offset as i64);
    let lines = [
        format!("fileinfoOffset={}", trailer.file_info_offset),
        format!("loadOnOpenDataOffset={}", trailer.load_on_open_offset),
        format!("dataIndexCount={}", trailer.data_index_count),
        format!("metaIndexCount={}", trailer.meta_index_count),
        format!("totalUncomressedBytes={}", trailer.total_plain_bytes),
        format!("entryCount={}", trailer.entry_count),
        format!("compressionCodec={}", trailer.compression.name()),
        format!("uncompressedDataIndexSize={}", trailer.data_index_plain_bytes),
        format!("numDataIndexLevels={}", trailer.data_index_levels),
        format!("firstDataBlockOffset={first}"),
        format!("lastDataBlockOffset={last}"),
        format!("comparatorClassName=org.apache.hadoop.hbase.{comparator}"),
        "encryptionKey=NONE".to_owned(),
        format!("majorVersion={}", trailer.major),
        format!("minorVersion={}", trailer.minor),
    ];
    Ok(writeln!(out, "Trailer:\n    {}", lines.join(",\n    "))?)
}

fn print_info(out: &mut dyn Write, file: &Reader) -> Result<(), Error> {
    writeln!(out, "Fileinfo:")?;
    let info = file.info();
    for (name, value) in &info.raw {
        let shown = match &**name {
            names::TIME_RANGE => format!("{}....{}", info.time_range.min, info.time_range.max),
            name => format_info(name, value),
        };
        writeln!(out, "    {} = {shown}", to_string_binary(name))?;
    }
    Ok(())
}

/// The value of an entry, in the form that HBase chooses by its name.
fn format_info(name: &[u8], value: &[u8]) -> String {
    let formatted = match name {
        names::MAX_SEQ_ID
        | names::DELETE_FAMILY_COUNT
        | names::EARLIEST_PUT_TS
        | names::MAX_MEMSTORE_TS
        | names::CREATE_TIME
        | names::BULK_LOAD_TIME
        | names::AVG_KEY_LEN
        | names::AVG_VALUE_LEN
        | names::KEY_VALUE_VERSION
        | names::MAX_TAGS_LEN => integer(value).map(|value| value.to_string()),
        names::MAJOR_COMPACTION
        | names::TAGS_COMPRESSED
        | names::HISTORICAL
        | names::EXCLUDE_FROM_MINOR_COMPACTION => (value.len() == 1).then(|| (value[0] != 0).to_string()),
        names::LAST_KEY => {
            cell::key::check(value).is_ok().then(|| format!("{}/vlen=0/mvcc=0", format_key(value)))
        }
        _ => None,
    };
    formatted.unwrap_or_else(|| to_string_binary(value))
}

/// A big-endian number of four or eight bytes.
fn integer(value: &[u8]) -> Option<i64> {
    match value.len() {
        4 => Some(i64::from(i32::from_be_bytes(*value.first_chunk()?))),
        8 => Some(i64::from_be_bytes(*value.first_chunk()?)),
        _ => None,
    }
}

fn print_bloom(out: &mut dyn Write, title: &str, bloom: Option<BloomDescription>) -> Result<(), Error> {
    writeln!(out, "{title}")?;
    let Some(bloom) = bloom else { return Ok(writeln!(out, "    Not present")?) };
    let comparator = if bloom.is_by_column { "CellComparatorImpl" } else { "ByteArrayComparator" };
    let percentage = match bloom.keys_max {
        0 => 0.0,
        keys_max => bloom.key_count as f64 / keys_max as f64 * 100.0,
    };
    writeln!(out, "    BloomSize: {}", bloom.bytes)?;
    writeln!(out, "    No of Keys in bloom: {}", bloom.key_count)?;
    writeln!(out, "    Max Keys for bloom: {}", bloom.keys_max)?;
    writeln!(out, "    Percentage filled: {percentage:.0}%")?;
    writeln!(out, "    Number of chunks: {}", bloom.chunk_count)?;
    Ok(writeln!(out, "    Comparator: {comparator}")?)
}
