//! File info: named entries that describe a file. Entries that this crate uses are typed.
//!
//! Payload of the block: `PBUF`, then a length-delimited `FileInfoProto` with entries sorted by
//! name.

use std::collections::BTreeMap;

use bytes::Bytes;
use cell::schema::{BlockEncoding, BloomType};
use prost::Message;
use proto::{BytesBytesPair, CompactionEventTracker, FileInfoProto, TimeRangeTracker};

use crate::error::{Fault, Parsed};
use crate::index::Target;
use crate::input::Input;

/// Names of entries. Source: HBase `HFileInfo`, `HStoreFile`, `HFileWriterImpl`,
/// `BloomFilterFactory`.
pub mod names {
    #![allow(missing_docs)]
    pub const LAST_KEY: &[u8] = b"hfile.LASTKEY";
    pub const AVG_KEY_LEN: &[u8] = b"hfile.AVG_KEY_LEN";
    pub const AVG_VALUE_LEN: &[u8] = b"hfile.AVG_VALUE_LEN";
    pub const CREATE_TIME: &[u8] = b"hfile.CREATE_TIME_TS";
    pub const MAX_TAGS_LEN: &[u8] = b"hfile.MAX_TAGS_LEN";
    pub const TAGS_COMPRESSED: &[u8] = b"hfile.TAGS_COMPRESSED";
    pub const KEY_VALUE_VERSION: &[u8] = b"KEY_VALUE_VERSION";
    pub const MAX_MEMSTORE_TS: &[u8] = b"MAX_MEMSTORE_TS_KEY";
    pub const DATA_BLOCK_ENCODING: &[u8] = b"DATA_BLOCK_ENCODING";
    pub const INDEX_BLOCK_ENCODING: &[u8] = b"INDEX_BLOCK_ENCODING";
    pub const MAX_SEQ_ID: &[u8] = b"MAX_SEQ_ID_KEY";
    pub const MAJOR_COMPACTION: &[u8] = b"MAJOR_COMPACTION_KEY";
    pub const EXCLUDE_FROM_MINOR_COMPACTION: &[u8] = b"EXCLUDE_FROM_MINOR_COMPACTION";
    pub const COMPACTION_EVENT: &[u8] = b"COMPACTION_EVENT_KEY";
    pub const TIME_RANGE: &[u8] = b"TIMERANGE";
    pub const EARLIEST_PUT_TS: &[u8] = b"EARLIEST_PUT_TS";
    pub const BLOOM_TYPE: &[u8] = b"BLOOM_FILTER_TYPE";
    pub const BLOOM_PARAM: &[u8] = b"BLOOM_FILTER_PARAM";
    pub const LAST_BLOOM_KEY: &[u8] = b"LAST_BLOOM_KEY";
    pub const DELETE_FAMILY_COUNT: &[u8] = b"DELETE_FAMILY_COUNT";
    pub const HISTORICAL: &[u8] = b"HISTORICAL";
    pub const BULK_LOAD_TIME: &[u8] = b"BULKLOAD_TIMESTAMP";
    pub const SKIP_RESET_SEQ_ID: &[u8] = b"SKIP_RESET_SEQ_ID";
    /// The MOB files that a store file refers to. Every store file of a MOB family has it.
    pub const MOB_FILE_REFS: &[u8] = b"MOB_FILE_REFS";
    /// Number of cells in a MOB file.
    pub const MOB_CELLS_COUNT: &[u8] = b"MOB_CELLS_COUNT";
    /// Marks a file that a bulk load tool wrote.
    pub const BULK_LOAD_SOURCE_TASK: &[u8] = b"BULKLOAD_SOURCE_TASK";
    /// Grampus only. HBase ignores names that it does not know.
    pub const READABLE_SINCE: &[u8] = b"GRAMPUS_READABLE_SINCE";
    /// Grampus only.
    pub const PLAIN_ROWS: &[u8] = b"GRAMPUS_PLAIN_ROWS";
    /// Grampus only.
    pub const SIDECAR: &[u8] = b"GRAMPUS_COLUMN_SIDECAR";
}

const PROTOBUF_MAGIC: &[u8] = b"PBUF";
/// The only value of [`names::KEY_VALUE_VERSION`] that means that sequence ids are stored.
const WITH_SEQ_IDS: u32 = 1;

/// The smallest and the greatest timestamp in a file, including delete markers. Empty if `min`
/// is greater than `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The smallest timestamp.
    pub min: i64,
    /// The greatest timestamp, inclusive.
    pub max: i64,
}

impl TimeRange {
    /// The empty range (HBase's initial tracker).
    pub const EMPTY: TimeRange = TimeRange { min: i64::MAX, max: -1 };
    /// The range of all timestamps, which is assumed if a file does not state one.
    pub const ALL: TimeRange = TimeRange { min: 0, max: i64::MAX };

    /// Extends the range to include `timestamp`.
    #[inline]
    pub fn include(&mut self, timestamp: i64) {
        self.min = self.min.min(timestamp);
        self.max = self.max.max(timestamp);
    }

    /// Whether a timestamp in `from..to` may be in the file.
    pub fn overlaps(&self, from: i64, to: i64) -> bool {
        self.min < to && self.max >= from
    }
}

/// The file info, decoded.
#[derive(Clone, Debug)]
pub struct FileInfo {
    /// Orders the files of a store. Edits up to this sequence id need no replay (`MAX_SEQ_ID_KEY`).
    pub max_seq_id: Option<u64>,
    /// Timestamps in the file (`TIMERANGE`); [`TimeRange::ALL`] if not stated.
    pub time_range: TimeRange,
    /// The smallest timestamp of a put, `i64::MAX` if there are no puts (`EARLIEST_PUT_TS`).
    pub earliest_put_ts: Option<i64>,
    /// Number of cells (from the trailer).
    pub entry_count: u64,
    /// Number of family delete markers (`DELETE_FAMILY_COUNT`); `None` if not stated.
    pub delete_family_count: Option<u64>,
    /// Whether the file is the output of a compaction of all files of its store
    /// (`MAJOR_COMPACTION_KEY`).
    pub is_major: bool,
    /// Whether minor compactions ignore the file (`EXCLUDE_FROM_MINOR_COMPACTION`).
    pub exclude_from_minor: bool,
    /// Whether all cells are hidden by newer ones (`HISTORICAL`).
    pub is_historical: bool,
    /// The oldest read point (a sequence id) at which the file is complete
    /// (`GRAMPUS_READABLE_SINCE`): the flush or compaction that wrote it kept every version that is
    /// visible at this read point or later. `None` if not stated.
    pub readable_since: Option<u64>,
    /// Number of rows, if all cells are puts without tags (`GRAMPUS_PLAIN_ROWS`). `None` if other
    /// cells exist, or if not stated.
    pub plain_rows: Option<u64>,
    /// Position of the column sidecar's catalog, if there is one (`GRAMPUS_COLUMN_SIDECAR`: eight
    /// bytes of offset, four bytes of length).
    pub(crate) sidecar: Option<Target>,
    /// Names of the files whose cells were all merged into this one (`COMPACTION_EVENT_KEY`).
    pub compacted_files: Vec<String>,
    /// The type of the general Bloom filter.
    pub bloom: BloomType,
    /// Number of row bytes in the keys of a row prefix filter.
    pub bloom_prefix_len: u32,
    /// The last key of the general Bloom filter. Later keys are certainly absent.
    pub last_bloom_key: Option<Bytes>,
    /// The key of the last cell.
    pub last_key: Option<Bytes>,
    /// The greatest sequence id of a cell, if sequence ids are stored.
    pub max_memstore_ts: u64,
    /// Whether cells carry tags.
    pub includes_tags: bool,
    /// Whether tags are compressed with a dictionary.
    pub tags_compressed: bool,
    /// Whether cells carry sequence ids.
    pub includes_mvcc: bool,
    /// Encoding of the data blocks.
    pub encoding: BlockEncoding,
    /// Creation time of the file, milliseconds since the epoch.
    pub create_time_ms: Option<i64>,
    /// Time of the bulk load, if the file was bulk loaded.
    pub bulk_load_time_ms: Option<i64>,
    /// Whether a bulk loaded file keeps its own sequence ids.
    pub skip_reset_seq_id: bool,
    /// All entries, including those above.
    pub raw: BTreeMap<Bytes, Bytes>,
}

impl FileInfo {
    /// Parses the payload of a file info block.
    pub(crate) fn parse(payload: &[u8], entry_count: u64) -> Parsed<FileInfo> {
        FileInfo::from_raw(parse_map(payload)?, entry_count)
    }

    fn from_raw(raw: BTreeMap<Bytes, Bytes>, entry_count: u64) -> Parsed<FileInfo> {
        if raw.get(names::INDEX_BLOCK_ENCODING).is_some_and(|name| name != "NONE") {
            return Err(Fault::Unsupported("index block encoding".into()));
        }
        let includes_mvcc = number(&raw, names::KEY_VALUE_VERSION)? == Some(i64::from(WITH_SEQ_IDS));
        let includes_tags = raw.contains_key(names::MAX_TAGS_LEN);
        Ok(FileInfo {
            max_seq_id: number(&raw, names::MAX_SEQ_ID)?.map(|id| id.max(0) as u64),
            time_range: raw.get(names::TIME_RANGE).map_or(Ok(TimeRange::ALL), time_range)?,
            earliest_put_ts: number(&raw, names::EARLIEST_PUT_TS)?,
            entry_count,
            delete_family_count: number(&raw, names::DELETE_FAMILY_COUNT)?.map(|count| count.max(0) as u64),
            is_major: flag(&raw, names::MAJOR_COMPACTION),
            exclude_from_minor: flag(&raw, names::EXCLUDE_FROM_MINOR_COMPACTION),
            is_historical: flag(&raw, names::HISTORICAL),
            compacted_files: compacted_files(&raw)?,
            bloom: bloom_type(raw.get(names::BLOOM_TYPE))?,
            bloom_prefix_len: number(&raw, names::BLOOM_PARAM)?.unwrap_or(0).max(0) as u32,
            last_bloom_key: raw.get(names::LAST_BLOOM_KEY).cloned(),
            last_key: raw.get(names::LAST_KEY).cloned(),
            max_memstore_ts: if includes_mvcc {
                number(&raw, names::MAX_MEMSTORE_TS)?.unwrap_or(0).max(0) as u64
            } else {
                0
            },
            includes_tags,
            tags_compressed: includes_tags && flag(&raw, names::TAGS_COMPRESSED),
            includes_mvcc,
            encoding: encoding(raw.get(names::DATA_BLOCK_ENCODING))?,
            create_time_ms: number(&raw, names::CREATE_TIME)?,
            bulk_load_time_ms: number(&raw, names::BULK_LOAD_TIME)?,
            skip_reset_seq_id: flag(&raw, names::SKIP_RESET_SEQ_ID),
            plain_rows: number(&raw, names::PLAIN_ROWS)?.and_then(|rows| u64::try_from(rows).ok()),
            sidecar: raw.get(names::SIDECAR).map(|entry| decode_location(entry)).transpose()?,
            readable_since: number(&raw, names::READABLE_SINCE)?.map(|id| id.max(0) as u64),
            raw,
        })
    }

    /// The raw value of an entry.
    pub fn get(&self, name: &[u8]) -> Option<&Bytes> {
        self.raw.get(name)
    }
}

fn parse_map(payload: &[u8]) -> Parsed<BTreeMap<Bytes, Bytes>> {
    let mut input = Input::new(payload);
    if input.take(PROTOBUF_MAGIC.len(), "file info truncated")? != PROTOBUF_MAGIC {
        return Err(Fault::Unsupported("file info without protobuf magic".into()));
    }
    let len = input.varint("file info truncated")? as usize;
    // Copy first, so that the entries share one small buffer and do not pin the block.
    let message = Bytes::copy_from_slice(input.take(len, "file info truncated")?);
    let message = FileInfoProto::decode(message).map_err(|_| Fault::Damaged("file info does not parse"))?;
    Ok(message.map_entry.into_iter().map(|pair| (pair.first, pair.second)).collect())
}

/// Encodes the payload of a file info block.
pub(crate) fn write_map(map: &BTreeMap<Bytes, Bytes>) -> Vec<u8> {
    let map_entry = map
        .iter()
        .map(|(name, value)| BytesBytesPair { first: name.clone(), second: value.clone() })
        .collect();
    let mut out = PROTOBUF_MAGIC.to_vec();
    out.extend_from_slice(&FileInfoProto { map_entry }.encode_length_delimited_to_vec());
    out
}

/// An entry that HBase writes as a four- or eight-byte integer.
fn number(raw: &BTreeMap<Bytes, Bytes>, name: &[u8]) -> Parsed<Option<i64>> {
    let Some(value) = raw.get(name) else { return Ok(None) };
    if let Ok(wide) = <[u8; 8]>::try_from(&value[..]) {
        return Ok(Some(i64::from_be_bytes(wide)));
    }
    match <[u8; 4]>::try_from(&value[..]) {
        Ok(narrow) => Ok(Some(i64::from(i32::from_be_bytes(narrow)))),
        Err(_) => Err(Fault::Damaged("number in file info is not 4 or 8 bytes long")),
    }
}

fn flag(raw: &BTreeMap<Bytes, Bytes>, name: &[u8]) -> bool {
    raw.get(name).is_some_and(|value| value.iter().any(|byte| *byte != 0))
}

fn time_range(value: &Bytes) -> Parsed<TimeRange> {
    if let Some(message) = value.strip_prefix(PROTOBUF_MAGIC) {
        let tracker =
            TimeRangeTracker::decode(message).map_err(|_| Fault::Damaged("time range does not parse"))?;
        let (min, max) = (tracker.from.map(|from| from as i64), tracker.to.map(|to| to as i64));
        return Ok(TimeRange { min: min.unwrap_or(0), max: max.unwrap_or(i64::MAX) });
    }
    let mut input = Input::new(value);
    let range =
        TimeRange { min: input.u64("short time range")? as i64, max: input.u64("short time range")? as i64 };
    input.end("long time range")?;
    Ok(range)
}

fn compacted_files(raw: &BTreeMap<Bytes, Bytes>) -> Parsed<Vec<String>> {
    let Some(value) = raw.get(names::COMPACTION_EVENT) else { return Ok(Vec::new()) };
    let message =
        value.strip_prefix(PROTOBUF_MAGIC).ok_or(Fault::Damaged("compaction event without magic"))?;
    let tracker = CompactionEventTracker::decode(message)
        .map_err(|_| Fault::Damaged("compaction event does not parse"))?;
    tracker
        .compacted_store_file
        .iter()
        .map(|name| String::from_utf8(name.to_vec()).map_err(|_| Fault::Damaged("file name is not text")))
        .collect()
}

/// Encodes the value of [`names::SIDECAR`].
pub(crate) fn encode_location(Target { offset, len }: Target) -> Vec<u8> {
    [&offset.to_be_bytes()[..], &len.to_be_bytes()].concat()
}

fn decode_location(entry: &[u8]) -> Parsed<Target> {
    let mut input = Input::new(entry);
    let location =
        Target { offset: input.u64("short sidecar entry")?, len: input.u32("short sidecar entry")? };
    input.end("long sidecar entry")?;
    Ok(location)
}

/// Encodes the value of [`names::COMPACTION_EVENT`].
pub(crate) fn compaction_event(files: &[String]) -> Bytes {
    let compacted_store_file = files.iter().map(|name| Bytes::copy_from_slice(name.as_bytes())).collect();
    let mut out = PROTOBUF_MAGIC.to_vec();
    out.extend_from_slice(&CompactionEventTracker { compacted_store_file }.encode_to_vec());
    out.into()
}

fn bloom_type(name: Option<&Bytes>) -> Parsed<BloomType> {
    Ok(match name.map(|name| &name[..]) {
        None | Some(b"NONE") => BloomType::None,
        Some(b"ROW") => BloomType::Row,
        Some(b"ROWCOL") => BloomType::RowCol,
        Some(b"ROWPREFIX_FIXED_LENGTH") => BloomType::RowPrefix,
        Some(_) => return Err(Fault::Damaged("unknown Bloom type")),
    })
}

/// HBase's name of a Bloom filter type.
pub(crate) fn bloom_name(bloom: BloomType) -> &'static str {
    match bloom {
        BloomType::None => "NONE",
        BloomType::Row => "ROW",
        BloomType::RowCol => "ROWCOL",
        BloomType::RowPrefix => "ROWPREFIX_FIXED_LENGTH",
    }
}

fn encoding(name: Option<&Bytes>) -> Parsed<BlockEncoding> {
    Ok(match name.map(|name| &name[..]) {
        None | Some(b"NONE") => BlockEncoding::None,
        Some(b"PREFIX") => BlockEncoding::Prefix,
        Some(b"DIFF") => BlockEncoding::Diff,
        Some(b"FAST_DIFF") => BlockEncoding::FastDiff,
        Some(b"ROW_INDEX_V1") => BlockEncoding::RowIndexV1,
        Some(other) => {
            return Err(Fault::Unsupported(format!("block encoding {}", other.escape_ascii())));
        }
    })
}

/// HBase's name of a block encoding.
pub(crate) fn encoding_name(encoding: BlockEncoding) -> &'static str {
    match encoding {
        BlockEncoding::None => "NONE",
        BlockEncoding::Prefix => "PREFIX",
        BlockEncoding::Diff => "DIFF",
        BlockEncoding::FastDiff => "FAST_DIFF",
        BlockEncoding::RowIndexV1 => "ROW_INDEX_V1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(entries: &[(&'static [u8], &'static [u8])]) -> Parsed<FileInfo> {
        let map = entries
            .iter()
            .map(|(name, value)| (Bytes::from_static(name), Bytes::from_static(value)))
            .collect();
        FileInfo::parse(&write_map(&map), 7)
    }

    #[test]
    fn an_empty_map_has_defaults() {
        let info = info(&[]).unwrap();
        assert_eq!(info.time_range, TimeRange::ALL);
        assert_eq!((info.entry_count, info.max_seq_id, info.includes_mvcc), (7, None, false));
    }

    #[test]
    fn both_forms_of_a_time_range_are_read() {
        let plain = info(&[(names::TIME_RANGE, &[0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9])]).unwrap();
        let message = info(&[(names::TIME_RANGE, b"PBUF\x08\x03\x10\x09")]).unwrap();
        assert_eq!(plain.time_range, TimeRange { min: 3, max: 9 });
        assert_eq!(message.time_range, TimeRange { min: 3, max: 9 });
        assert!(plain.time_range.overlaps(9, 10) && !plain.time_range.overlaps(10, 20));
    }

    #[test]
    fn bad_entries_are_refused() {
        assert!(info(&[(names::MAX_SEQ_ID, &[1, 2, 3])]).is_err());
        assert!(matches!(info(&[(names::DATA_BLOCK_ENCODING, b"PREFIX_TREE")]), Err(Fault::Unsupported(_))));
        assert!(info(&[(names::COMPACTION_EVENT, b"x")]).is_err());
        assert!(FileInfo::parse(b"PBUF\xff\xff\xff\xff\x0f", 0).is_err());
    }

    #[test]
    fn compacted_files_are_read_back() {
        let files = vec!["a".to_string(), "b".to_string()];
        let raw = [(Bytes::from_static(names::COMPACTION_EVENT), compaction_event(&files))].into();
        assert_eq!(FileInfo::from_raw(raw, 0).unwrap().compacted_files, files);
        assert_eq!(&compaction_event(&[])[..], b"PBUF");
    }
}
