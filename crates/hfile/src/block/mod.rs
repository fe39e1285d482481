//! Blocks: the unit that is read, checked, decompressed and cached.
//!
//! A [`Block`] is what a block on disk becomes in memory: its payload, decompressed but still encoded, in one buffer,
//! and beside it what makes it quick to search (marks at rows, restarts, entries of an index). Invariant: whatever is in
//! a `Block` was walked when it was made; its lengths add up and its keys are in order. Code that moves within one
//! relies on that.

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

/// Bytes of the encoding id in front of an encoded payload.
pub(crate) const ENCODING_ID_LEN: usize = 2;

/// Bytes of a value that it costs less to keep with the memory of its block than to copy. More than a piece of an answer has
/// (64 KiB): who has sent one looks whether its memory can be another's, for which a block's would be copied after all.
pub const LARGE_VALUE_LEN: usize = 65 << 10;

/// What has to be known of a file to take its blocks apart.
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
    /// Whether its first key was found to fit the index that leads to it.
    start_checked: AtomicBool,
    /// Bytes of the buffer that holds the payload, whatever part of it that is.
    buffer_len: usize,
    payload: Bytes,
    body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Plain(PlainCells),
    Packed(PackedCells),
    // Apart, as it is larger than the others and there are few.
    Index(Box<Index>),
    Other,
}

impl Block {
    /// The block that `on_disk` (all of it, and nothing else) is.
    pub(crate) fn decode(on_disk: Bytes, file_id: u64, offset: u64, format: &BlockFormat) -> Parsed<Block> {
        let header = verify(&on_disk)?;
        let stored = on_disk.slice(HEADER_LEN..header.data_len as usize);
        let mut payload = match format.codec {
            Codec::None if header.plain_len as usize == stored.len() => stored,
            Codec::None => return Err(Fault::Damaged("lengths of an uncompressed block differ")),
            // A block without payload is stored as the codec's empty frame, or as nothing at all.
            _ if header.plain_len == 0 => Bytes::new(),
            Codec::Packed(algorithm) => {
                // In pages, as all that is cached; what a decompressor fills is soon the next one's again.
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
            start_checked: AtomicBool::new(false),
            buffer_len: if shares_input { on_disk.len() } else { payload.len() },
            payload,
            body,
        })
    }

    /// The same block, where the buffer that was decoded is larger by `bytes` than what was in it.
    pub(crate) fn with_spare(mut self, bytes: usize) -> Block {
        // One that was decompressed does not keep that buffer.
        if self.buffer_len > self.payload.len() {
            self.buffer_len += bytes;
        }
        self
    }

    /// The file it is of.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// Where in the file it is.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes it takes on disk, header and checksums included.
    pub fn on_disk_len(&self) -> u32 {
        self.on_disk_len
    }

    /// Whether [`set_start_checked`](Self::set_start_checked) was called.
    #[inline]
    pub(crate) fn is_start_checked(&self) -> bool {
        self.start_checked.load(Ordering::Relaxed)
    }

    /// Its first key fits the index that leads to it; neither ever changes, so that this need be looked at once.
    pub(crate) fn set_start_checked(&self) {
        self.start_checked.store(true, Ordering::Relaxed);
    }

    /// What is in it.
    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// Bytes of memory it takes.
    pub fn heap_len(&self) -> usize {
        let beside = match &self.body {
            Body::Plain(cells) => cells.heap_len(),
            Body::Packed(cells) => cells.heap_len(),
            Body::Index(index) => size_of::<Index>() + index.heap_len(),
            Body::Other => 0,
        };
        size_of::<Block>() + self.buffer_len.next_multiple_of(PAGE_BYTES) + beside
    }

    /// Bytes of what it holds, unpacked.
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// Asks the processor for the block itself, without what it points at.
    pub(crate) fn prefetch(&self) {
        prefetch(std::slice::from_ref(self), size_of::<Block>());
    }

    /// Asks the processor for what a seek to `row` looks at first. Quick once what [`prefetch`](Self::prefetch) asked for has
    /// come. Gives what [`likely_cell`](Self::likely_cell) needs not search again.
    pub(crate) fn prefetch_search(&self, row: &[u8]) -> Range<usize> {
        match &self.body {
            Body::Plain(cells) => cells.prefetch_marks(row),
            _ => 0..0,
        }
    }

    /// The cell that a seek to `row` finds, most likely, which the seek needs not search again; `marks` are what
    /// [`prefetch_search`](Self::prefetch_search) gave. Quick once what that asked for has come.
    pub(crate) fn likely_cell(&self, row: &[u8], marks: Range<usize>) -> Option<usize> {
        match &self.body {
            Body::Plain(cells) => Some(cells.likely_mark(row, marks)),
            _ => None,
        }
    }

    /// Asks the processor for a cell that [`likely_cell`](Self::likely_cell) gave.
    pub(crate) fn prefetch_cell(&self, likely: usize) {
        if let Body::Plain(cells) = &self.body {
            cells.prefetch_cell(&self.payload, likely);
        }
    }

    /// The value at `range` of the payload with the memory of the block, if it is worth keeping that for it: if it is
    /// [large](LARGE_VALUE_LEN), and half at least of what is kept.
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
        return Err(Fault::Damaged("block has another length than its index says"));
    }
    let (data, sums) = on_disk.split_at(header.data_len as usize);
    debug_assert_eq!(sums.len(), ChecksumType::total_len(data.len(), header.chunk_len as usize));
    header.checksum.verify(data, sums, header.chunk_len as usize)?;
    Ok(header)
}

/// Checks the cells of a data block. Where they cannot be entered in the middle, `payload` is replaced by one of plain
/// cells.
fn load_cells(payload: &mut Bytes, encoded: bool, format: &BlockFormat) -> Parsed<Body> {
    let (fields, order) = (format.fields, format.order);
    if !encoded {
        return PlainCells::load(payload, 0, fields, order).map(Body::Plain);
    }
    let id = payload.first_chunk().ok_or(Fault::Damaged("encoding id cut"))?;
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
