//! How a file is written.

use cell::CellOrder;
use cell::schema::{BlockEncoding, BloomType, Compression};

use crate::block::checksum::ChecksumType;
use crate::bloom::chunk::BloomOptions;
use crate::kept::KeepWritten;

/// How a file is written. The defaults are HBase's.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The order of the cells.
    pub order: CellOrder,
    /// Bytes of cells, unencoded, at which a data block is closed.
    pub block_bytes: u32,
    /// How data blocks are packed.
    pub encoding: BlockEncoding,
    /// How blocks are compressed.
    pub compression: Compression,
    /// What the general Bloom filter answers for.
    pub bloom: BloomType,
    /// Row bytes that a [`BloomType::RowPrefix`] filter takes.
    pub bloom_prefix_len: u32,
    /// Sizes of Bloom filters.
    pub bloom_options: BloomOptions,
    /// Whether rows with family delete markers get a filter (never beside [`BloomType::RowCol`], which knows them).
    pub delete_family_bloom: bool,
    /// How blocks are checksummed.
    pub checksum: ChecksumType,
    /// Bytes that one checksum covers.
    pub checksum_chunk_bytes: u32,
    /// Whether tags are written; without, they are lost.
    pub include_tags: bool,
    /// Whether tags are packed by a dictionary; of effect only with an encoding that packs keys.
    pub compress_tags: bool,
    /// Whether sequence ids are written; without, they are lost.
    pub include_mvcc: bool,
    /// Bytes at which an index block is closed.
    pub index_block_bytes: u32,
    /// Entries that a root has at least before it is split into a further level.
    pub index_entries_min: u32,
    /// When the file is made, milliseconds since the epoch.
    pub create_time_ms: u64,
    /// Which blocks are set aside for [`Writer::take_kept`](crate::writer::Writer::take_kept).
    pub keep: KeepWritten,
    /// Whether cells are written once more, column by column; of effect only where they are in HBase's usual order.
    pub sidecar: bool,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions {
            order: CellOrder::Plain,
            block_bytes: 64 << 10,
            encoding: BlockEncoding::None,
            compression: Compression::None,
            bloom: BloomType::Row,
            bloom_prefix_len: 0,
            bloom_options: BloomOptions::default(),
            delete_family_bloom: true,
            checksum: ChecksumType::Crc32c,
            checksum_chunk_bytes: 16 << 10,
            include_tags: false,
            compress_tags: true,
            include_mvcc: true,
            index_block_bytes: 128 << 10,
            index_entries_min: 16,
            create_time_ms: 0,
            keep: KeepWritten::default(),
            sidecar: false,
        }
    }
}
