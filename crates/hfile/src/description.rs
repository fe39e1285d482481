//! Facts about a file that only tools show: the sizes of its Bloom filters, the entries of the root
//! of its index, and the headers of its blocks.

use crate::block::header::Header;
use crate::block::kind::BlockKind;
use crate::bloom::BloomMeta;
use crate::reader::{LoadedBlock, Reader};
use crate::{ChecksumType, Result};

/// The sizes of a Bloom filter, as its meta block states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BloomDescription {
    /// Bytes of all chunks, uncompressed.
    pub bytes: u64,
    /// Number of keys in the filter.
    pub key_count: u64,
    /// Number of keys for which the filter has the intended error rate.
    pub keys_max: u64,
    /// Number of chunks.
    pub chunk_count: usize,
    /// Whether the keys are columns (row and qualifier), and not rows or prefixes of rows.
    pub is_by_column: bool,
}

/// An entry of the root of the data index: a data block, or an index block if there are several
/// levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry<'a> {
    /// A key that is not greater than the first key of the block, and greater than all before it.
    pub key: &'a [u8],
    /// Offset of the block.
    pub offset: u64,
    /// Bytes of the block on disk.
    pub len: u32,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The kind of the block.
    pub kind: BlockKind,
    /// Whether the payload starts with the id of a data block encoding.
    pub is_encoded: bool,
    /// Bytes of payload and checksums on disk.
    pub on_disk_len: u32,
    /// Bytes of the payload before compression.
    pub plain_len: u32,
    /// Offset of the previous block of this kind; `None` if there is none.
    pub previous: Option<u64>,
    /// The type of the checksums.
    pub checksum: ChecksumType,
    /// Number of bytes that one checksum covers.
    pub checksum_chunk_bytes: u32,
    /// Bytes of header and payload on disk.
    pub data_len: u32,
}

impl BlockHeader {
    /// Bytes of a header.
    pub const LEN: usize = crate::block::header::HEADER_LEN;

    /// Bytes of header, payload and checksums on disk.
    pub fn total_len(&self) -> usize {
        BlockHeader::LEN + self.on_disk_len as usize
    }
}

impl Reader {
    /// The general Bloom filter; `None` if the file has none.
    pub fn bloom_description(&self) -> Option<BloomDescription> {
        self.bloom_meta().map(BloomMeta::description)
    }

    /// The Bloom filter of the rows with family delete markers; `None` if the file has none.
    pub fn delete_family_bloom_description(&self) -> Option<BloomDescription> {
        self.delete_family_bloom_meta().map(BloomMeta::description)
    }

    /// The entries of the root of the data index, in order.
    pub fn root_index_entries(&self) -> impl Iterator<Item = IndexEntry<'_>> {
        let root = self.root();
        (0..root.len()).map(|at| {
            let target = root.target(at);
            IndexEntry { key: root.key(at), offset: target.offset, len: target.len }
        })
    }
}

impl LoadedBlock {
    /// The header of the block.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the bytes were changed since they were loaded.
    pub fn header(&self, file: &Reader) -> Result<BlockHeader> {
        let header =
            Header::parse(&self.on_disk).map_err(|fault| fault.at(file.path(), self.block.offset()))?;
        Ok(BlockHeader {
            kind: header.kind,
            is_encoded: header.encoded,
            on_disk_len: header.on_disk_len,
            plain_len: header.plain_len,
            previous: (header.previous != crate::block::header::NO_BLOCK).then_some(header.previous),
            checksum: header.checksum,
            checksum_chunk_bytes: header.chunk_len,
            data_len: header.data_len,
        })
    }
}
