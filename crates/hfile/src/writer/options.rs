//! Options of the writer.

use cell::CellOrder;
use cell::schema::{BlockEncoding, BloomType, Compression};
use fs::{Purpose, Role};

use crate::block::checksum::ChecksumType;
use crate::bloom::chunk::BloomOptions;
use crate::retained::RetainKinds;

/// Options of the writer. The defaults are HBase's.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Order of the cells.
    pub order: CellOrder,
    /// Unencoded bytes of cells at which a data block is closed.
    pub block_bytes: u32,
    /// Encoding of the data blocks.
    pub encoding: BlockEncoding,
    /// Codec of the blocks.
    pub compression: Compression,
    /// Type of the general Bloom filter.
    pub bloom: BloomType,
    /// Number of row bytes in the keys of a [`BloomType::RowPrefix`] filter.
    pub bloom_prefix_len: u32,
    /// Sizes of Bloom filters.
    pub bloom_options: BloomOptions,
    /// Whether to write a filter of the rows with family delete markers. Ignored with
    /// [`BloomType::RowCol`], whose filter contains them.
    pub delete_family_bloom: bool,
    /// Checksum algorithm of the blocks.
    pub checksum: ChecksumType,
    /// Number of bytes that one checksum covers.
    pub checksum_chunk_bytes: u32,
    /// Whether to write tags. Otherwise they are dropped.
    pub include_tags: bool,
    /// Whether to pack tags by a dictionary. Ignored unless the encoding packs keys.
    pub compress_tags: bool,
    /// Whether to write sequence ids. Otherwise they are dropped.
    pub include_mvcc: bool,
    /// Bytes at which an index block is closed.
    pub index_block_bytes: u32,
    /// A root with at most this many entries is not split into a further level.
    pub index_entries_min: u32,
    /// Creation time of the file, milliseconds since the epoch.
    pub create_time_ms: u64,
    /// Blocks that are always retained for
    /// [`Writer::take_retained`](crate::writer::Writer::take_retained).
    pub retain: RetainKinds,
    /// What the file is for.
    pub purpose: Purpose,
    /// The writer appends to the file when this many bytes are pending, or fewer if the storage
    /// prefers that.
    pub pending_bytes_max: usize,
    /// Whether to write a column sidecar. Ignored unless `order` is [`CellOrder::Plain`].
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
            retain: RetainKinds::default(),
            purpose: Purpose::of(Role::Flush),
            pending_bytes_max: usize::MAX,
            sidecar: false,
        }
    }
}
