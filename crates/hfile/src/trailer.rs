//! The trailer: the last bytes of a file. It locates the sections that are read on open.
//!
//! ```text
//! magic 8 | length-delimited FileTrailerProto | zeros | version 4
//! total length: 4096 bytes in version 3, 212 bytes in version 2
//! version: minor 1 | major 3
//! ```
//!
//! The trailer has no checksum. This module checks its contents against the file's length; the
//! reader checks them against the blocks that it points at.

use cell::CellOrder;
use cell::schema::Compression;
use prost::Message;
use proto::FileTrailerProto;

use crate::compression::compression_of;
use crate::error::{Fault, Parsed};
use crate::input::Input;

/// Bytes of a version 3 trailer.
pub(crate) const TRAILER_LEN: usize = 4096;
/// Bytes of a version 2 trailer.
const TRAILER_LEN_V2: usize = 212;
const VERSION_LEN: usize = 4;
const MAGIC: &[u8; 8] = b"TRABLK\"$";
const MAJOR: u32 = 3;
/// The newest minor version. Since version 2.3 the trailer is protobuf and blocks have checksums.
const MINOR: u8 = 3;
/// Maximum number of index levels. HBase's writer stops at 16.
const LEVELS_MAX: u32 = 16;

/// HBase's names of the plain order in its different versions. The first one is written, because
/// old readers know it.
const PLAIN_COMPARATORS: [&str; 4] = [
    "org.apache.hadoop.hbase.KeyValue$KVComparator",
    "org.apache.hadoop.hbase.CellComparatorImpl",
    "org.apache.hadoop.hbase.CellComparator",
    "org.apache.hadoop.hbase.KeyValue$KeyComparator",
];
/// HBase's names of the order of `hbase:meta`. The first one is written.
const META_COMPARATORS: [&str; 5] = [
    "org.apache.hadoop.hbase.KeyValue$MetaComparator",
    "org.apache.hadoop.hbase.MetaCellComparator",
    "org.apache.hadoop.hbase.CellComparatorImpl$MetaCellComparator",
    "org.apache.hadoop.hbase.CellComparator$MetaCellComparator",
    "org.apache.hadoop.hbase.KeyValue$MetaKeyComparator",
];

/// The contents of the trailer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Major version of the format: 2 or 3.
    pub major: u32,
    /// Minor version of the format.
    pub minor: u8,
    /// Offset of the file info block.
    pub file_info_offset: u64,
    /// Offset of the root of the data index, which starts the section that is read on open.
    pub load_on_open_offset: u64,
    /// Bytes of all data index blocks before compression.
    pub data_index_plain_bytes: u64,
    /// Bytes of the file before compression.
    pub total_plain_bytes: u64,
    /// Number of entries in the root of the data index.
    pub data_index_count: u32,
    /// Number of entries in the meta index.
    pub meta_index_count: u32,
    /// Number of cells.
    pub entry_count: u64,
    /// Levels of the data index; 1 if the root points at data blocks.
    pub data_index_levels: u32,
    /// Offset of the first data block, `u64::MAX` if there is none.
    pub first_data_block_offset: u64,
    /// Offset of the last data block, `u64::MAX` if there is none.
    pub last_data_block_offset: u64,
    /// The order of the cells.
    pub order: CellOrder,
    /// The codec of all blocks.
    pub compression: Compression,
}

/// The length of the trailer, determined from `tail`, the last bytes of the file (at least four).
pub(crate) fn trailer_len(tail: &[u8]) -> Parsed<usize> {
    let version = tail.last_chunk::<VERSION_LEN>().ok_or(Fault::Damaged("too short for a trailer"))?;
    let (major, minor) = version_of(*version);
    match major {
        3 if minor <= MINOR => Ok(TRAILER_LEN),
        2 if minor == MINOR => Ok(TRAILER_LEN_V2),
        1..=4 => Err(Fault::Unsupported(format!("HFile version {major}.{minor}"))),
        _ => Err(Fault::Damaged("no HFile version at the end")),
    }
}

fn version_of(word: [u8; VERSION_LEN]) -> (u32, u8) {
    (u32::from_be_bytes(word) & 0x00ff_ffff, word[0])
}

impl Trailer {
    /// Parses a trailer. `bytes` is exactly the trailer, `end` its offset in the file.
    pub(crate) fn parse(bytes: &[u8], end: u64) -> Parsed<Trailer> {
        let version = bytes.last_chunk::<VERSION_LEN>().ok_or(Fault::Damaged("too short for a trailer"))?;
        let (major, minor) = version_of(*version);
        let mut input = Input::new(&bytes[..bytes.len() - VERSION_LEN]);
        if input.take(MAGIC.len(), "trailer truncated")? != MAGIC {
            return Err(Fault::Damaged("missing trailer magic"));
        }
        let len = input.varint("trailer message truncated")? as usize;
        let message = FileTrailerProto::decode(input.take(len, "trailer message truncated")?)
            .map_err(|_| Fault::Damaged("trailer message does not parse"))?;
        if message.encryption_key.is_some() {
            return Err(Fault::Unsupported("encryption".into()));
        }
        let trailer = Trailer {
            major,
            minor,
            file_info_offset: message.file_info_offset(),
            load_on_open_offset: message.load_on_open_data_offset(),
            data_index_plain_bytes: message.uncompressed_data_index_size(),
            total_plain_bytes: message.total_uncompressed_bytes(),
            data_index_count: message.data_index_count(),
            meta_index_count: message.meta_index_count(),
            entry_count: message.entry_count(),
            data_index_levels: message.num_data_index_levels(),
            first_data_block_offset: message.first_data_block_offset(),
            last_data_block_offset: message.last_data_block_offset(),
            order: order_of(message.comparator_class_name())?,
            compression: compression_of(message.compression_codec.unwrap_or(Compression::None as u32))?,
        };
        trailer.check(end)?;
        Ok(trailer)
    }

    fn check(&self, end: u64) -> Parsed<()> {
        if self.load_on_open_offset >= end || self.file_info_offset >= end {
            return Err(Fault::Damaged("trailer points past its own start"));
        }
        if self.file_info_offset < self.load_on_open_offset {
            return Err(Fault::Damaged("file info outside of the section read on open"));
        }
        if self.data_index_levels == 0 || self.data_index_levels > LEVELS_MAX {
            return Err(Fault::Damaged("impossible number of index levels"));
        }
        Ok(())
    }

    /// The bytes of a version 3 trailer.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let message = FileTrailerProto {
            file_info_offset: Some(self.file_info_offset),
            load_on_open_data_offset: Some(self.load_on_open_offset),
            uncompressed_data_index_size: Some(self.data_index_plain_bytes),
            total_uncompressed_bytes: Some(self.total_plain_bytes),
            data_index_count: Some(self.data_index_count),
            meta_index_count: Some(self.meta_index_count),
            entry_count: Some(self.entry_count),
            num_data_index_levels: Some(self.data_index_levels),
            first_data_block_offset: Some(self.first_data_block_offset),
            last_data_block_offset: Some(self.last_data_block_offset),
            comparator_class_name: Some(
                match self.order {
                    CellOrder::Plain => PLAIN_COMPARATORS[0],
                    CellOrder::Meta => META_COMPARATORS[0],
                }
                .into(),
            ),
            compression_codec: Some(self.compression as u32),
            encryption_key: None,
        };
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&message.encode_length_delimited_to_vec());
        assert!(out.len() <= TRAILER_LEN - VERSION_LEN, "the trailer message exceeds its fixed size");
        out.resize(TRAILER_LEN - VERSION_LEN, 0);
        out.extend_from_slice(&(u32::from(MINOR) << 24 | MAJOR).to_be_bytes());
        out
    }
}

fn order_of(comparator: &str) -> Parsed<CellOrder> {
    if PLAIN_COMPARATORS.contains(&comparator) {
        Ok(CellOrder::Plain)
    } else if META_COMPARATORS.contains(&comparator) {
        Ok(CellOrder::Meta)
    } else {
        Err(Fault::Unsupported(format!("comparator {comparator:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailer() -> Trailer {
        Trailer {
            major: 3,
            minor: 3,
            file_info_offset: 200,
            load_on_open_offset: 100,
            data_index_plain_bytes: 30,
            total_plain_bytes: 5000,
            data_index_count: 1,
            meta_index_count: 0,
            entry_count: 12,
            data_index_levels: 1,
            first_data_block_offset: 0,
            last_data_block_offset: 0,
            order: CellOrder::Meta,
            compression: Compression::Gz,
        }
    }

    #[test]
    fn a_trailer_is_read_as_written() {
        let bytes = trailer().to_bytes();
        assert_eq!(bytes.len(), trailer_len(&bytes).unwrap());
        assert_eq!(Trailer::parse(&bytes, 1000), Ok(trailer()));
        assert_eq!(Trailer::parse(&bytes, 200), Err(Fault::Damaged("trailer points past its own start")));
    }

    /// Version 2.3 differs only in the length and the version word.
    #[test]
    fn a_trailer_of_version_2_is_read() {
        let bytes = trailer().to_bytes();
        let mut old = bytes[..TRAILER_LEN_V2 - VERSION_LEN].to_vec();
        old.extend_from_slice(&[3, 0, 0, 2]);
        assert_eq!(trailer_len(&old), Ok(TRAILER_LEN_V2));
        assert_eq!(Trailer::parse(&old, 1000), Ok(Trailer { major: 2, ..trailer() }));
        old[TRAILER_LEN_V2 - 4] = 0;
        assert!(matches!(trailer_len(&old), Err(Fault::Unsupported(_))), "2.0 has no checksums");
    }

    #[test]
    fn garbage_is_no_trailer() {
        assert!(trailer_len(&[0; 4]).is_err());
        assert!(trailer_len(&[]).is_err());
        assert!(Trailer::parse(&[0; TRAILER_LEN], 1000).is_err());
    }
}
