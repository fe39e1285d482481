//! Blocks: the unit of reading, checking, decompression and caching.
//!
//! A [`Block`] is a block in memory. One buffer holds its payload, decompressed but still encoded.
//! Search structures are stored separately: anchors, restarts, index entries. Invariant: the
//! contents of a `Block` were checked when it was created, so its lengths are consistent and its
//! keys are in order. Code that moves within a block relies on that.

pub(crate) mod builder;
pub(crate) mod checksum;
pub(crate) mod header;
pub(crate) mod kind;
pub(crate) mod packed;
pub(crate) mod plain;
pub(crate) mod position;
pub(crate) mod tags;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use base::pages::{PAGE_BYTES, Pages};
use base::prefetch::prefetch;
use bytes::Bytes;
use cell::CellOrder;

use crate::block::checksum::ChecksumType;
use crate::block::header::{HEADER_LEN, Header};
use crate::block::kind::BlockKind;
use crate::block::packed::{PackedCells, Packing};
use crate::block::plain::{CellFields, PlainCells};
use crate::compression::{self, Codec};
use crate::error::{Fault, Parsed};
use crate::index::Index;

/// Bytes of the encoding id before an encoded payload.
pub(crate) const ENCODING_ID_LEN: usize = 2;

/// Minimum size in bytes of a value that is cheaper to share with its block than to copy. Larger
/// than a piece of a response (64 KiB), so that the sender never tries to recycle a block's memory
/// as a piece.
pub const LARGE_VALUE_LEN: usize = 65 << 10;

/// The properties of a file that are needed to decode its blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockFormat {
    pub(crate) codec: Codec,
    pub(crate) order: CellOrder,
    pub(crate) fields: CellFields,
    pub(crate) tags_packed: bool,
}

/// A block in memory: checked, decompressed, searchable.
#[derive(Debug)]
pub struct Block {
    file_id: u64,
    offset: u64,
    on_disk_len: u32,
    kind: BlockKind,
    /// Whether the first key was compared with the index entry that points at the block.
    first_key_checked: AtomicBool,
    /// Bytes of the buffer that holds the payload, including the parts that are not payload.
    buffer_len: usize,
    payload: Bytes,
    body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Plain(PlainCells),
    Packed(PackedCells),
    // Boxed, because it is larger than the others and rare.
    Index(Box<Index>),
    Other,
}

impl Block {
    /// Decodes a block. `on_disk` must be exactly its bytes.
    pub(crate) fn decode(on_disk: Bytes, file_id: u64, offset: u64, format: &BlockFormat) -> Parsed<Block> {
        let header = verify(&on_disk)?;
        let stored = on_disk.slice(HEADER_LEN..header.data_len as usize);
        let mut payload = match format.codec {
            Codec::None if header.plain_len as usize == stored.len() => stored,
            Codec::None => return Err(Fault::Damaged("lengths of an uncompressed block differ")),
            // An empty payload is stored as the codec's empty frame, or as no bytes at all.
            _ if header.plain_len == 0 => Bytes::new(),
            Codec::Packed(algorithm) => {
                // Copied into pages, like all cached memory. The next decompression reuses the
                // temporary buffer.
                let plain = compression::decompress(algorithm, &stored, header.plain_len as usize)?;
                Bytes::from_owner(Pages::copy_of(&plain))
            }
        };
        let body = match header.kind {
            BlockKind::Data => load_cells(&mut payload, header.encoded, format)?,
            BlockKind::LeafIndex | BlockKind::IntermediateIndex => {
                Body::Index(Box::new(Index::parse_inner(payload.clone(), format.order)?))
            }
            _ => Body::Other,
        };
        let shares_input = matches!(format.codec, Codec::None) && !payload.is_empty();
        Ok(Block {
            file_id,
            offset,
            on_disk_len: header.total_len() as u32,
            kind: header.kind,
            first_key_checked: AtomicBool::new(false),
            buffer_len: if shares_input { on_disk.len() } else { payload.len() },
            payload,
            body,
        })
    }

    /// Adds `bytes` to the memory of the buffer that was decoded: its unused capacity.
    pub(crate) fn with_unused_capacity(mut self, bytes: usize) -> Block {
        // A decompressed block does not keep that buffer.
        if self.buffer_len > self.payload.len() {
            self.buffer_len += bytes;
        }
        self
    }

    /// The identifier of the block's file.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// Offset of the block in its file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes on disk, including header and checksums.
    pub fn on_disk_len(&self) -> u32 {
        self.on_disk_len
    }

    /// Whether [`set_first_key_checked`](Self::set_first_key_checked) was called.
    #[inline]
    pub(crate) fn is_first_key_checked(&self) -> bool {
        self.first_key_checked.load(Ordering::Relaxed)
    }

    /// Records that the first key agrees with the index entry that points at the block. Neither
    /// ever changes, so one check is enough.
    pub(crate) fn set_first_key_checked(&self) {
        self.first_key_checked.store(true, Ordering::Relaxed);
    }

    /// The kind of the block.
    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// Bytes of memory that the block takes.
    pub fn heap_len(&self) -> usize {
        let body_len = match &self.body {
            Body::Plain(cells) => cells.heap_len(),
            Body::Packed(cells) => cells.heap_len(),
            Body::Index(index) => size_of::<Index>() + index.heap_len(),
            Body::Other => 0,
        };
        size_of::<Block>() + self.buffer_len.next_multiple_of(PAGE_BYTES) + body_len
    }

    /// Bytes of the decompressed payload.
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// Prefetches the block itself, without the memory it points at.
    pub(crate) fn prefetch(&self) {
        prefetch(std::slice::from_ref(self), size_of::<Block>());
    }

    /// Prefetches the memory that a seek to `row` reads first. Fast once the memory of
    /// [`prefetch`](Self::prefetch) has arrived. Returns the range of anchors to pass to
    /// [`likely_anchor`](Self::likely_anchor).
    pub(crate) fn prefetch_search(&self, row: &[u8]) -> Range<usize> {
        match &self.body {
            Body::Plain(cells) => cells.prefetch_anchors(row),
            _ => 0..0,
        }
    }

    /// The index of the anchor at which `row` most likely begins, so that the seek need not search
    /// for it again. `anchors` is the result of [`prefetch_search`](Self::prefetch_search). Fast
    /// once the memory of that prefetch has arrived.
    pub(crate) fn likely_anchor(&self, row: &[u8], anchors: Range<usize>) -> Option<usize> {
        match &self.body {
            Body::Plain(cells) => Some(cells.likely_anchor(row, anchors)),
            _ => None,
        }
    }

    /// Prefetches the cell at an anchor that [`likely_anchor`](Self::likely_anchor) returned.
    pub(crate) fn prefetch_cell(&self, likely: usize) {
        if let Body::Plain(cells) = &self.body {
            cells.prefetch_cell(&self.payload, likely);
        }
    }

    /// The value at `range` of the payload, sharing the memory of the block. Only for a
    /// [large](LARGE_VALUE_LEN) value that fills at least half of the buffer that it keeps in
    /// memory.
    pub(crate) fn large_value(&self, range: Range<usize>) -> Option<Bytes> {
        let is_worth_it = range.len() >= LARGE_VALUE_LEN && range.len() * 2 >= self.buffer_len;
        is_worth_it.then(|| self.payload.slice(range))
    }

    /// The payload: decompressed, still encoded.
    pub(crate) fn payload(&self) -> &Bytes {
        &self.payload
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// The entries of an index block.
    pub(crate) fn index(&self) -> Option<&Index> {
        match &self.body {
            Body::Index(index) => Some(index),
            _ => None,
        }
    }

    /// The keys of the first and the last cell of a data block.
    pub(crate) fn key_range(&self) -> Option<(&[u8], &[u8])> {
        match &self.body {
            Body::Plain(cells) => Some((cells.first_key(&self.payload), cells.last_key(&self.payload))),
            Body::Packed(cells) => Some((cells.first_key(), cells.last_key())),
            _ => None,
        }
    }
}

/// Checks header and checksums of a whole block.
fn verify(on_disk: &[u8]) -> Parsed<Header> {
    let header = Header::parse(on_disk)?;
    if header.total_len() != on_disk.len() {
        return Err(Fault::Damaged("block length differs from its index entry"));
    }
    let (data, sums) = on_disk.split_at(header.data_len as usize);
    debug_assert_eq!(sums.len(), ChecksumType::total_len(data.len(), header.chunk_len as usize));
    header.checksum.verify(data, sums, header.chunk_len as usize)?;
    Ok(header)
}

/// Checks the cells of a data block. If cells cannot be decoded from the middle, replaces `payload`
/// by one of plain cells.
fn load_cells(payload: &mut Bytes, encoded: bool, format: &BlockFormat) -> Parsed<Body> {
    let (fields, order) = (format.fields, format.order);
    if !encoded {
        return PlainCells::load(payload, 0, fields, order).map(Body::Plain);
    }
    let id = payload.first_chunk().ok_or(Fault::Damaged("encoding id truncated"))?;
    let packing = match u16::from_be_bytes(*id) {
        0 => return PlainCells::load(payload, ENCODING_ID_LEN, fields, order).map(Body::Plain),
        2 => Packing::Prefix,
        3 => Packing::Diff,
        4 => Packing::FastDiff,
        7 => {
            let cells = PlainCells::load_with_row_index(payload, ENCODING_ID_LEN, fields, order)?;
            return Ok(Body::Plain(cells));
        }
        1 | 5 | 6 => return Err(Fault::Unsupported(format!("block encoding {}", u16::from_be_bytes(*id)))),
        _ => return Err(Fault::Damaged("unknown block encoding")),
    };
    if !format.tags_packed {
        return PackedCells::load(payload, ENCODING_ID_LEN, packing, fields, order).map(Body::Packed);
    }
    *payload = packed::to_plain(payload, ENCODING_ID_LEN, packing, fields)?.into();
    PlainCells::load(payload, 0, fields, order).map(Body::Plain)
}
