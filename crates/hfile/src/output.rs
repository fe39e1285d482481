//! Builds the bytes of a file: compresses, frames and checksums blocks, and appends them in
//! sequence.

use crate::block::checksum::ChecksumType;
use crate::block::header::{HEADER_LEN, Header, NO_BLOCK};
use crate::block::kind::BlockKind;
use crate::compression::Codec;
use crate::index::Target;

/// Number of block kinds.
const KINDS: usize = BlockKind::DeleteFamilyBloomMeta as usize + 1;

/// The bytes of a file that were not yet passed to the file system.
pub(crate) struct Output {
    codec: Codec,
    checksum: ChecksumType,
    checksum_chunk_len: u32,
    pending: Vec<u8>,
    /// Bytes of the file, including pending ones.
    len: u64,
    /// Offset of the last block of each kind, or [`NO_BLOCK`].
    previous: [u64; KINDS],
    first_data_block: u64,
    plain_bytes: u64,
}

impl Output {
    pub(crate) fn new(codec: Codec, checksum: ChecksumType, checksum_chunk_len: u32) -> Output {
        Output {
            codec,
            checksum,
            checksum_chunk_len,
            pending: Vec::new(),
            len: 0,
            previous: [NO_BLOCK; KINDS],
            first_data_block: NO_BLOCK,
            plain_bytes: 0,
        }
    }

    /// Appends a data block.
    pub(crate) fn put_data(&mut self, encoded: bool, payload: &[u8]) -> Target {
        let target = self.put_framed(BlockKind::Data, encoded, payload);
        if self.first_data_block == NO_BLOCK {
            self.first_data_block = target.offset;
        }
        target
    }

    /// Appends a block that is not a data block.
    pub(crate) fn put(&mut self, kind: BlockKind, payload: &[u8]) -> Target {
        self.put_framed(kind, false, payload)
    }

    /// Appends a block without adding it to [`plain_bytes`](Self::plain_bytes). HBase does this for
    /// the upper levels of the data index.
    pub(crate) fn put_uncounted(&mut self, kind: BlockKind, payload: &[u8]) -> Target {
        let plain_bytes = self.plain_bytes;
        let target = self.put_framed(kind, false, payload);
        self.plain_bytes = plain_bytes;
        target
    }

    fn put_framed(&mut self, kind: BlockKind, encoded: bool, payload: &[u8]) -> Target {
        let compressed = self.codec.compress(payload);
        let stored = compressed.as_deref().unwrap_or(payload);
        let chunk_len = self.checksum_chunk_len;
        let data_len = HEADER_LEN + stored.len();
        let on_disk_len = stored.len() + ChecksumType::total_len(data_len, chunk_len as usize);
        let start = self.pending.len();
        self.pending.reserve(HEADER_LEN + on_disk_len);
        let header = Header {
            kind,
            encoded,
            on_disk_len: on_disk_len as u32,
            plain_len: payload.len() as u32,
            previous: std::mem::replace(&mut self.previous[kind as usize], self.len),
            checksum: self.checksum,
            chunk_len,
            data_len: data_len as u32,
        };
        header.write(&mut self.pending);
        self.pending.extend_from_slice(stored);
        self.checksum.append(&mut self.pending, start, chunk_len as usize);
        let target = Target { offset: self.len, len: header.total_len() as u32 };
        debug_assert!(
            self.pending.len() - start == target.len as usize,
            "a block has the length that its header states"
        );
        self.len += u64::from(target.len);
        self.plain_bytes += (HEADER_LEN + payload.len()) as u64;
        target
    }

    /// The bytes of the block that was added last, at `target`.
    pub(crate) fn last(&self, target: Target) -> &[u8] {
        debug_assert!(target.offset + u64::from(target.len) == self.len, "the block was added last");
        &self.pending[self.pending.len() - target.len as usize..]
    }

    pub(crate) fn codec(&self) -> Codec {
        self.codec
    }

    /// Appends bytes that are not a block.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        self.len += bytes.len() as u64;
    }

    /// Takes the pending bytes, to be written to the file system.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Number of pending bytes.
    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// Bytes of the file so far, including pending ones.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of the blocks before compression, headers included.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// Offsets of the first and the last data block, or [`NO_BLOCK`].
    pub(crate) fn data_blocks(&self) -> (u64, u64) {
        (self.first_data_block, self.previous[BlockKind::Data as usize])
    }
}
