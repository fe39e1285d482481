//! An open file: what is kept in memory for as long as it is open, and loading of its blocks.
//!
//! Opened with one read of the file's end in most cases: trailer, root of the index, file info, places of the Bloom
//! chunks. All else is a [`Block`] that a [`Cursor`] asks for and the driver loads. A block that fails its checks is
//! read once more before it counts as corrupt: memory and cables fail more often than disks.

mod filters;
mod open;

use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use base::pages::Pages;
use bytes::Bytes;
use cell::{CellOrder, key};
use fs::{FilePath, FileReader, FileSystem};

use crate::block::header::{HEADER_LEN, Header};
use crate::block::kind::BlockKind;
use crate::block::{Block, BlockFormat};
use crate::bloom::BloomMeta;
use crate::compression::{Codec, PLAIN_LEN_MAX};
use crate::cursor::Cursor;
use crate::error::{Fault, Parsed, Result};
use crate::index::{Index, Middle, Target};
use crate::info::FileInfo;
use crate::outline::Outline;
use crate::source::{BlockRef, BlockSource, Miss, Stop};
use crate::trailer::Trailer;

pub use filters::FiltersAsked;

/// What the opener of a file knows of it already.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// The order that the cells must have; a file of another order is corrupt.
    pub order: Option<CellOrder>,
    /// A sequence id that all cells are given (a bulk loaded file).
    pub assigned_seq_id: Option<u64>,
}

/// An open file. Shared by all that read it.
pub struct Reader {
    file: Arc<dyn FileReader>,
    file_id: u64,
    trailer: Trailer,
    info: FileInfo,
    format: BlockFormat,
    root: Index,
    middle: Option<Middle>,
    bloom: Option<BloomMeta>,
    delete_family_bloom: Option<BloomMeta>,
    assigned_seq_id: Option<u64>,
    /// Set once a chunk could not be read: filters only save work, so the file is read without them.
    bloom_failed: AtomicBool,
}

impl Reader {
    /// Opens a file. `file_id` names it in the process: blocks are cached under it, so it is never used again.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), [`Error::Unsupported`](crate::Error::Unsupported), or the file system's.
    pub async fn open(
        fs: &dyn FileSystem,
        path: &FilePath,
        file_id: u64,
        options: OpenOptions,
    ) -> Result<Arc<Reader>> {
        open::open(fs, path, file_id, options).await
    }

    /// What the file says of itself.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// The trailer.
    pub fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Whether the file has no cells.
    pub fn is_empty(&self) -> bool {
        self.root.len() == 0
    }

    /// The path it was opened under.
    pub fn path(&self) -> &FilePath {
        self.file.path()
    }

    /// The name of the file in this process.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// The order of the cells.
    pub fn order(&self) -> CellOrder {
        self.format.order
    }

    /// The first row.
    pub fn first_row(&self) -> Option<&[u8]> {
        // The index has the first block under the key of its first cell, not under a separator.
        (!self.is_empty()).then(|| key::row(self.root.key(0)))
    }

    /// The last row.
    pub fn last_row(&self) -> Option<&[u8]> {
        self.info.last_key.as_deref().map(key::row)
    }

    /// The data block in the middle of the file and a key in front of it, for splits; `None` if the file has several
    /// index levels and the leaf that knows is not in `source`, or has no cells.
    ///
    /// # Errors
    /// [`Stop::Miss`] for that leaf.
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
            _ => Err(Fault::Damaged("middle of the file is not in its leaf")
                .at(self.path(), middle.leaf.offset)
                .into()),
        }
    }

    /// Bytes of memory that the open file takes apart from its blocks.
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

    /// Bytes of memory that the root of its index takes.
    pub fn root_index_bytes(&self) -> u64 {
        (self.root.payload_len() + self.root.heap_len()) as u64
    }

    /// Bytes of its Bloom filters, unpacked.
    pub fn bloom_bytes(&self) -> u64 {
        [&self.bloom, &self.delete_family_bloom].into_iter().flatten().map(BloomMeta::chunk_bytes).sum()
    }

    /// A cursor before the first cell.
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor::new(self.clone())
    }

    /// Its data blocks as the index has them, every `stride` of them, from `row` on.
    pub fn outline(self: &Arc<Self>, stride: usize, row: &[u8]) -> Outline {
        Outline::new(self.clone(), stride, row)
    }

    /// Loads a block: one read (two if the length is not known), checked and decompressed.
    ///
    /// After a Bloom chunk could not be read the file does without its filters: the step that asked for it can simply be
    /// made again.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if it fails its checks twice, or is not of the kind asked for.
    pub async fn load(&self, block: &BlockRef) -> Result<Arc<Block>> {
        let target = Target { offset: block.offset, len: block.len };
        let loaded = load_block(&*self.file, self.file_id, target, self.blocks_end(), &self.format).await;
        let failed = |fault: Fault| {
            if block.kind == BlockKind::BloomChunk {
                self.bloom_failed.store(true, atomic::Ordering::Relaxed);
            }
            fault.at(self.path(), block.offset)
        };
        let loaded = loaded?.map_err(failed)?;
        if loaded.kind() != block.kind {
            return Err(failed(Fault::Damaged("block is of another kind than its index says")));
        }
        Ok(Arc::new(loaded))
    }

    /// Reads ahead: the block and those behind it, up to about `bytes` bytes, in one read. At least the block itself is
    /// there; of the others those that are whole and sound.
    ///
    /// # Errors
    /// As [`Reader::load`], for the first block.
    pub async fn load_run(&self, first: &BlockRef, bytes: usize) -> Result<Vec<Arc<Block>>> {
        if bytes > first.len as usize {
            let blocks = self.load_from(first.offset, bytes).await?;
            if blocks.first().is_some_and(|block| block.kind() == first.kind) {
                return Ok(blocks);
            }
        }
        Ok(vec![self.load(first).await?])
    }

    /// The blocks, of whatever kind, in about `bytes` bytes from `offset` on, where a block must start; 0 is one. Those
    /// that are whole and sound, up to the first that is not: none at the end of the blocks, and none behind.
    ///
    /// # Errors
    /// The file system's.
    pub async fn load_from(&self, offset: u64, bytes: usize) -> Result<Vec<Arc<Block>>> {
        let room = self.blocks_end().saturating_sub(offset);
        let run = self.file.read_at(offset, (bytes as u64).min(room) as usize).await?;
        let mut blocks = Vec::new();
        let mut at = 0;
        while let Ok(header) = Header::parse(&run[at..])
            && let Some(on_disk) = run[at..].get(..header.total_len())
        {
            // A cached block must not keep the whole run in memory; what is decompressed is copied anyway.
            let on_disk = match self.format.codec {
                Codec::None => Bytes::from_owner(Pages::copy_of(on_disk)),
                _ => run.slice_ref(on_disk),
            };
            let Ok(block) = Block::decode(on_disk, self.file_id, offset + at as u64, &self.format) else {
                break;
            };
            blocks.push(Arc::new(block));
            at += header.total_len();
        }
        Ok(blocks)
    }

    /// A block that must be in `source`.
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
            let fault = Fault::Damaged("block is of another kind than its index says");
            return Err(fault.at(self.path(), target.offset).into());
        }
        Ok(block)
    }

    pub(crate) fn root(&self) -> &Index {
        &self.root
    }

    /// The sequence id that all of its cells are given, if it was bulk loaded.
    pub fn assigned_seq_id(&self) -> Option<u64> {
        self.assigned_seq_id
    }

    /// Where the blocks end that are loaded one by one.
    fn blocks_end(&self) -> u64 {
        self.trailer.load_on_open_offset
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes, {} cells)", self.path(), self.len(), self.info.entry_count)
    }
}

/// Reads and checks a block that must end before `end`; once more if it fails its checks.
async fn load_block(
    file: &dyn FileReader,
    file_id: u64,
    target: Target,
    end: u64,
    format: &BlockFormat,
) -> Result<Parsed<Block>> {
    let first = try_load(file, file_id, target, end, format).await?;
    match first {
        Err(Fault::Damaged(_)) => try_load(file, file_id, target, end, format).await,
        other => Ok(other),
    }
}

async fn try_load(
    file: &dyn FileReader,
    file_id: u64,
    target: Target,
    end: u64,
    format: &BlockFormat,
) -> Result<Parsed<Block>> {
    let room = end.saturating_sub(target.offset);
    let len = if target.len > 0 {
        target.len as usize
    } else if room < HEADER_LEN as u64 {
        return Ok(Err(Fault::Damaged("block behind the end of blocks")));
    } else {
        match Header::parse(&file.read_at(target.offset, HEADER_LEN).await?) {
            Ok(header) => header.total_len(),
            Err(fault) => return Ok(Err(fault)),
        }
    };
    if len as u64 > room || len > PLAIN_LEN_MAX + HEADER_LEN {
        return Ok(Err(Fault::Damaged("block reaches behind the end of blocks")));
    }
    let on_disk = file.read_at(target.offset, len).await?;
    let block = Block::decode(on_disk, file_id, target.offset, format);
    Ok(block.map(|block| block.with_spare(file.spare_bytes())))
}
