//! An open file: the parts that stay in memory while it is open, and the loading of its blocks.
//!
//! Opening usually takes one read of the file's end: trailer, root of the index, file info, index
//! of the Bloom chunks. All other parts are [`Block`]s. A [`Cursor`](crate::Cursor) requests them,
//! and its caller loads them. A block that fails its checks is read once more before it counts as
//! corrupt, because its bytes may have changed in transfer, not on the disk.

mod filters;
mod identity;
mod open;

use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, OnceLock};

use base::pages::Pages;
use bytes::Bytes;
use cell::{CellOrder, key};
use fs::{FilePath, FileReader, FileSystem, IoClass};

use crate::block::header::{HEADER_LEN, Header};
use crate::block::kind::BlockKind;
use crate::block::{Block, BlockFormat};
use crate::bloom::BloomMeta;
use crate::compression::{Codec, PAYLOAD_LEN_MAX};
use crate::error::{Fault, Parsed, Result};
use crate::index::{Index, MiddleEntry, Target};
use crate::info::FileInfo;
use crate::source::{BlockRef, BlockSource, Miss, Stop};
use crate::trailer::Trailer;

pub use filters::FilterCounts;

/// Facts about a file that are not stored in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// The required order of the cells. A file with another order is corrupt.
    pub order: Option<CellOrder>,
    /// A sequence id that replaces those of all cells, for a bulk loaded file.
    pub assigned_seq_id: Option<u64>,
}

/// An open file, shared by all its readers.
pub struct Reader {
    file: Arc<dyn FileReader>,
    file_id: u64,
    trailer: Trailer,
    info: FileInfo,
    format: BlockFormat,
    root: Index,
    middle: Option<MiddleEntry>,
    bloom: Option<BloomMeta>,
    delete_family_bloom: Option<BloomMeta>,
    assigned_seq_id: Option<u64>,
    /// Set when a Bloom chunk is corrupt. Filters only save work, so the file is then read without
    /// them.
    bloom_failed: AtomicBool,
    /// See [`Reader::identity`]. Bytes, whose alignment does not move the fields that reads use.
    identity: OnceLock<[u8; 16]>,
}

impl Reader {
    /// Opens a file. `file_id` identifies the file in this process. Blocks are cached under it, so
    /// it must never be reused for another file.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt),
    /// [`Error::Unsupported`](crate::Error::Unsupported), or an error of the file system.
    pub async fn open(
        fs: &dyn FileSystem,
        path: &FilePath,
        file_id: u64,
        options: OpenOptions,
    ) -> Result<Arc<Reader>> {
        open::open(fs, path, file_id, options).await
    }

    /// The file info.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// The trailer.
    pub fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    /// Length of the file in bytes.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Whether the file has no cells.
    pub fn is_empty(&self) -> bool {
        self.root.len() == 0
    }

    /// The path under which the file was opened.
    pub fn path(&self) -> &FilePath {
        self.file.path()
    }

    /// The identifier of the file in this process.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// A hash of the file's name and contents: length, trailer, file info and root index. No other
    /// file has it, not even one that replaces this file under its name. It is the same in each
    /// process, and does not change if the file moves to another directory.
    pub fn identity(&self) -> u128 {
        u128::from_le_bytes(*self.identity.get_or_init(|| identity::of(self)))
    }

    /// The order of the cells.
    pub fn order(&self) -> CellOrder {
        self.format.order
    }

    /// The first row.
    pub fn first_row(&self) -> Option<&[u8]> {
        // The index key of the first block is the key of its first cell, not a separator.
        (!self.is_empty()).then(|| key::row(self.root.key(0)))
    }

    /// The last row.
    pub fn last_row(&self) -> Option<&[u8]> {
        self.info.last_key.as_deref().map(key::row)
    }

    /// The index key of the data block in the middle of the file, at which a region can be split.
    /// `None` if the file has no cells.
    ///
    /// # Errors
    /// [`Stop::Miss`] if the file has several index levels and the middle leaf is not in `source`;
    /// [`Stop::Failed`] if the index is damaged.
    pub fn middle_key(
        self: &Arc<Self>,
        source: &dyn BlockSource,
    ) -> std::result::Result<Option<Vec<u8>>, Stop> {
        let Some(middle) = self.middle else {
            return Ok((!self.is_empty()).then(|| self.root.key(self.root.len() / 2).to_vec()));
        };
        let leaf = self.find(middle.leaf, BlockKind::LeafIndex, source)?;
        match leaf.index() {
            Some(index) if (middle.entry as usize) < index.len() => {
                Ok(Some(index.key(middle.entry as usize).to_vec()))
            }
            _ => Err(Fault::Damaged("middle-of-file entry is not in its leaf")
                .at(self.path(), middle.leaf.offset)
                .into()),
        }
    }

    /// Bytes of memory that the open file takes, without its blocks.
    pub fn heap_len(&self) -> usize {
        let bloom = |meta: &Option<BloomMeta>| meta.as_ref().map_or(0, BloomMeta::heap_len);
        let info: usize = self.info.raw.iter().map(|(name, value)| name.len() + value.len() + 64).sum();
        size_of::<Reader>()
            + self.root.payload_len()
            + self.root.heap_len()
            + bloom(&self.bloom)
            + bloom(&self.delete_family_bloom)
            + info
    }

    /// Bytes of memory that the root of the index takes.
    pub fn root_index_bytes(&self) -> u64 {
        (self.root.payload_len() + self.root.heap_len()) as u64
    }

    /// Bytes of the file's Bloom filters, uncompressed.
    pub fn bloom_bytes(&self) -> u64 {
        [&self.bloom, &self.delete_family_bloom].into_iter().flatten().map(BloomMeta::chunk_bytes).sum()
    }

    /// Loads a block with one read (two if its length is unknown), checks it and decompresses it.
    ///
    /// If a Bloom chunk is corrupt, the file is used without its filters from then on, so the step
    /// that missed the chunk can simply be repeated.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the block fails its checks twice or has another
    /// kind than requested.
    pub async fn load(&self, block: &BlockRef) -> Result<Arc<Block>> {
        self.load_for(IoClass::Read, block).await.map(|loaded| loaded.block)
    }

    /// Like [`load`](Reader::load) with a read of this class. Also returns the bytes of the block.
    ///
    /// # Errors
    /// Those of [`load`](Reader::load).
    pub async fn load_for(&self, class: IoClass, block: &BlockRef) -> Result<LoadedBlock> {
        let target = Target { offset: block.offset, len: block.len };
        let loaded = load_block((&*self.file, class), self.file_id, target, self.blocks_end(), &self.format);
        let loaded = loaded.await;
        let failed = |fault: Fault| {
            if block.kind == BlockKind::BloomChunk {
                self.bloom_failed.store(true, atomic::Ordering::Relaxed);
            }
            fault.at(self.path(), block.offset)
        };
        let (loaded, on_disk) = loaded?.map_err(failed)?;
        if loaded.kind() != block.kind {
            return Err(failed(Fault::Damaged("block kind differs from its index entry")));
        }
        Ok(LoadedBlock { block: Arc::new(loaded), on_disk })
    }

    /// The block in `on_disk`, bytes that [`load_for`](Reader::load_for) returned earlier. `None`
    /// if they are not the block. `unused_bytes` is the memory that they keep in addition to their
    /// length.
    pub fn decode(&self, block: &BlockRef, on_disk: Bytes, unused_bytes: usize) -> Option<Arc<Block>> {
        let is_of_length = block.len == 0 || block.len as usize == on_disk.len();
        let found = Block::decode(on_disk, self.file_id, block.offset, &self.format).ok()?;
        let is_it = is_of_length && found.kind() == block.kind;
        is_it.then(|| Arc::new(found.with_unused_capacity(unused_bytes)))
    }

    /// Reads ahead: loads the block `first` and the blocks after it, about `bytes` bytes, with one
    /// read. Returns at least `first`. Stops before the first block that is incomplete or invalid.
    ///
    /// # Errors
    /// As for [`Reader::load`] of the first block.
    pub async fn load_range(
        &self,
        class: IoClass,
        first: &BlockRef,
        bytes: usize,
    ) -> Result<Vec<LoadedBlock>> {
        if bytes > first.len as usize {
            let blocks = self.load_from(class, first.offset, bytes).await?;
            if blocks.first().is_some_and(|loaded| loaded.block.kind() == first.kind) {
                return Ok(blocks);
            }
        }
        Ok(vec![self.load_for(class, first).await?])
    }

    /// Loads the blocks, of any kind, in the `bytes` bytes from `offset`, which must be the start
    /// of a block, for example 0. Stops before the first block that is incomplete or invalid.
    /// Returns no blocks if `offset` is at or after the end of the blocks.
    ///
    /// # Errors
    /// Errors of the file system.
    pub async fn load_from(&self, class: IoClass, offset: u64, bytes: usize) -> Result<Vec<LoadedBlock>> {
        let available = self.blocks_end().saturating_sub(offset);
        let len = (bytes as u64).min(available) as usize;
        let bytes_read = self.file.read_for(class, offset, len).await?;
        let mut blocks = Vec::new();
        let mut at = 0;
        while let Ok(header) = Header::parse(&bytes_read[at..])
            && let Some(on_disk) = bytes_read[at..].get(..header.total_len())
        {
            // Copy the block, because a slice would keep all bytes of the read in memory. A
            // compressed block is copied by its decompression.
            let on_disk = match self.format.codec {
                Codec::None => Bytes::from_owner(Pages::copy_of(on_disk)),
                _ => bytes_read.slice_ref(on_disk),
            };
            let decoded = Block::decode(on_disk.clone(), self.file_id, offset + at as u64, &self.format);
            let Ok(block) = decoded else { break };
            blocks.push(LoadedBlock { block: Arc::new(block), on_disk });
            at += header.total_len();
        }
        Ok(blocks)
    }

    /// Returns a block from `source`, or [`Stop::Miss`].
    pub(crate) fn find(
        self: &Arc<Self>,
        target: Target,
        kind: BlockKind,
        source: &dyn BlockSource,
    ) -> std::result::Result<Arc<Block>, Stop> {
        let Some(block) = source.block(self, target.offset) else {
            let block = BlockRef { file: self.clone(), offset: target.offset, len: target.len, kind };
            return Err(Stop::Miss(Miss { blocks: vec![block] }));
        };
        if block.kind() != kind {
            let fault = Fault::Damaged("block kind differs from its index entry");
            return Err(fault.at(self.path(), target.offset).into());
        }
        Ok(block)
    }

    pub(crate) fn bloom_meta(&self) -> Option<&BloomMeta> {
        self.bloom.as_ref()
    }

    pub(crate) fn delete_family_bloom_meta(&self) -> Option<&BloomMeta> {
        self.delete_family_bloom.as_ref()
    }

    pub(crate) fn root(&self) -> &Index {
        &self.root
    }

    /// The sequence id that replaces those of all cells, if the file was bulk loaded.
    pub fn assigned_seq_id(&self) -> Option<u64> {
        self.assigned_seq_id
    }

    /// The end of the blocks that are loaded individually.
    fn blocks_end(&self) -> u64 {
        self.trailer.load_on_open_offset
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes, {} cells)", self.path(), self.len(), self.info.entry_count)
    }
}

/// A block that was read from its file.
#[derive(Clone, Debug)]
pub struct LoadedBlock {
    /// The block.
    pub block: Arc<Block>,
    /// Its bytes in the file, including header and checksums. They may be part of a longer read, of
    /// which they keep all memory.
    pub on_disk: Bytes,
}

/// Reads and checks a block that must end at or before `end`. Also returns its bytes. Repeats the
/// read once if a check fails.
///
/// The outer result is that of the file system, and the inner [`Parsed`] that of the checks.
async fn load_block(
    file: (&dyn FileReader, IoClass),
    file_id: u64,
    target: Target,
    end: u64,
    format: &BlockFormat,
) -> Result<Parsed<(Block, Bytes)>> {
    let first = try_load(file, file_id, target, end, format).await?;
    match first {
        Err(Fault::Damaged(_)) => try_load(file, file_id, target, end, format).await,
        other => Ok(other),
    }
}

async fn try_load(
    (file, class): (&dyn FileReader, IoClass),
    file_id: u64,
    target: Target,
    end: u64,
    format: &BlockFormat,
) -> Result<Parsed<(Block, Bytes)>> {
    let available = end.saturating_sub(target.offset);
    let len = if target.len > 0 {
        target.len as usize
    } else if available < HEADER_LEN as u64 {
        return Ok(Err(Fault::Damaged("block starts past the end of the blocks")));
    } else {
        match Header::parse(&file.read_for(class, target.offset, HEADER_LEN).await?) {
            Ok(header) => header.total_len(),
            Err(fault) => return Ok(Err(fault)),
        }
    };
    if len as u64 > available || len > PAYLOAD_LEN_MAX + HEADER_LEN {
        return Ok(Err(Fault::Damaged("block extends past the end of the blocks")));
    }
    let on_disk = file.read_for(class, target.offset, len).await?;
    let block = Block::decode(on_disk.clone(), file_id, target.offset, format);
    Ok(block.map(|block| (block.with_unused_capacity(file.read_overhead_bytes()), on_disk)))
}
