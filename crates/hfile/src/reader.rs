//! An open file: what is kept in memory for as long as it is open, and loading of its blocks.
//!
//! Opened with one read of the file's end in most cases: trailer, root of the index, file info, places of the Bloom
//! chunks. All else is a [`Block`] that a [`Cursor`] asks for and the driver loads. A block that fails its checks is
//! read once more before it counts as corrupt: memory and cables fail more often than disks.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use bytes::Bytes;
use cell::schema::BloomType;
use cell::{CellOrder, key};
use fs::{FilePath, FileReader, FileSystem};

use crate::block::header::{HEADER_LEN, Header};
use crate::block::kind::BlockKind;
use crate::block::plain::CellFields;
use crate::block::{Block, BlockFormat};
use crate::bloom::{BloomMeta, column_key, row_part};
use crate::compression::{Codec, PLAIN_LEN_MAX};
use crate::cursor::Cursor;
use crate::error::{Fault, Parsed, Result};
use crate::index::{Index, Middle, Target};
use crate::info::FileInfo;
use crate::source::{BlockRef, BlockSource, Miss, Stop};
use crate::trailer::{self, Trailer};

/// Bytes of the file's end that opening reads at once: trailer and load-on-open section of all but large files.
const TAIL_LEN: u64 = 64 << 10;
/// File info is entries of a few bytes; more is not believed, since its entries take more memory than disk.
const FILE_INFO_LEN_MAX: usize = 64 << 20;

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
        let file = fs.open(path).await?;
        let tail_at = file.len().saturating_sub(TAIL_LEN);
        let tail = file.read_at(tail_at, (file.len() - tail_at) as usize).await?;
        let damaged = |fault: Fault| fault.at(path, file.len());
        let trailer_len = trailer::trailer_len(&tail).map_err(damaged)?;
        if trailer_len > tail.len() {
            return Err(damaged(Fault::Damaged("shorter than its trailer")));
        }
        let end = file.len() - trailer_len as u64;
        let trailer =
            Trailer::parse(&tail[tail.len() - trailer_len..], end).map_err(|fault| fault.at(path, end))?;
        if options.order.is_some_and(|order| order != trailer.order) {
            return Err(damaged(Fault::Damaged("cells have another order than those of this table")));
        }
        let codec = Codec::of(trailer.compression).map_err(|fault| fault.at(path, end))?;
        let format =
            BlockFormat { codec, order: trailer.order, fields: CellFields::default(), tags_packed: false };
        let section = Section { file: &file, file_id, tail: &tail, tail_at, end, format };
        section.open(trailer, options).await
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

    /// A cursor before the first cell.
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor::new(self.clone())
    }

    /// Loads a block: one read (two if the length is not known), checked and decompressed.
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
        let room = self.blocks_end().saturating_sub(first.offset);
        let len = (bytes.max(first.len as usize) as u64).min(room) as usize;
        if len <= first.len as usize {
            return Ok(vec![self.load(first).await?]);
        }
        let run = self.file.read_at(first.offset, len).await?;
        let mut blocks = Vec::new();
        let mut at = 0;
        while let Ok(header) = Header::parse(&run[at..])
            && let Some(on_disk) = run[at..].get(..header.total_len())
        {
            // Copied: a cached block must not keep the whole run in memory.
            let on_disk = Bytes::copy_from_slice(on_disk);
            let Ok(block) = Block::decode(on_disk, self.file_id, first.offset + at as u64, &self.format)
            else {
                break;
            };
            blocks.push(Arc::new(block));
            at += header.total_len();
        }
        match blocks.first() {
            Some(block) if block.kind() == first.kind => Ok(blocks),
            _ => Ok(vec![self.load(first).await?]),
        }
    }

    /// Whether the file may have cells of `row`, as far as its filters say; false is certain.
    ///
    /// # Errors
    /// [`Stop::Miss`] if a chunk of the filter is needed.
    pub fn may_have_row(
        self: &Arc<Self>,
        row: &[u8],
        source: &dyn BlockSource,
    ) -> std::result::Result<bool, Stop> {
        let Some(meta) = self.filter() else { return Ok(true) };
        match self.info.bloom {
            BloomType::Row => {}
            // Prefixes of rows of hbase:meta are not sorted as the rows are.
            BloomType::RowPrefix if self.order() == CellOrder::Plain => {}
            _ => return Ok(true),
        }
        let part = row_part(self.info.bloom, self.info.bloom_prefix_len, row);
        let last = self.info.last_bloom_key.as_deref();
        if last.is_some_and(|last| self.order().compare_rows(part, last) == Ordering::Greater) {
            return Ok(false);
        }
        self.may_hold(meta, part, source)
    }

    /// Whether the file may have cells of the column, family delete markers of the row included; false is certain.
    ///
    /// # Errors
    /// [`Stop::Miss`] if a chunk of the filter is needed.
    pub fn may_have_column(
        self: &Arc<Self>,
        row: &[u8],
        qualifier: &[u8],
        source: &dyn BlockSource,
    ) -> std::result::Result<bool, Stop> {
        if self.info.bloom != BloomType::RowCol {
            return self.may_have_row(row, source);
        }
        let Some(meta) = self.filter() else { return Ok(true) };
        // A family delete marker has the empty qualifier.
        for qualifier in [qualifier, &[]] {
            let key = column_key(row, qualifier);
            let last = self.info.last_bloom_key.as_deref();
            let is_behind_last =
                last.is_some_and(|last| self.order().compare_keys(&key, last) == Ordering::Greater);
            if !is_behind_last && self.may_hold(meta, &key, source)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the file may have family delete markers in `row`; false is certain.
    ///
    /// # Errors
    /// [`Stop::Miss`] if a chunk of the filter is needed.
    pub fn may_have_delete_family(
        self: &Arc<Self>,
        row: &[u8],
        source: &dyn BlockSource,
    ) -> std::result::Result<bool, Stop> {
        if self.info.delete_family_count == Some(0) {
            return Ok(false);
        }
        if self.bloom_failed.load(atomic::Ordering::Relaxed) {
            return Ok(true);
        }
        match (&self.delete_family_bloom, &self.bloom) {
            (Some(meta), _) => self.may_hold(meta, row, source),
            (None, Some(meta)) if self.info.bloom == BloomType::RowCol => {
                self.may_hold(meta, &column_key(row, &[]), source)
            }
            _ => Ok(true),
        }
    }

    /// The general filter, unless a chunk of it could not be read.
    fn filter(&self) -> Option<&BloomMeta> {
        self.bloom.as_ref().filter(|_| !self.bloom_failed.load(atomic::Ordering::Relaxed))
    }

    fn may_hold(
        self: &Arc<Self>,
        meta: &BloomMeta,
        key: &[u8],
        source: &dyn BlockSource,
    ) -> std::result::Result<bool, Stop> {
        let Some(chunk) = meta.chunk_of(key) else { return Ok(false) };
        let block = self.find(chunk, BlockKind::BloomChunk, source)?;
        Ok(meta.may_hold(block.payload(), key))
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

    pub(crate) fn assigned_seq_id(&self) -> Option<u64> {
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

/// The part of a file that is read when it is opened, as it is being read.
struct Section<'a> {
    file: &'a Arc<dyn FileReader>,
    file_id: u64,
    tail: &'a Bytes,
    tail_at: u64,
    /// Where the trailer starts.
    end: u64,
    format: BlockFormat,
}

impl Section<'_> {
    async fn open(self, trailer: Trailer, options: OpenOptions) -> Result<Arc<Reader>> {
        let path = self.file.path();
        let order = trailer.order;
        let mut at = trailer.load_on_open_offset;
        let root_block = self.next(&mut at, BlockKind::RootIndex).await?;
        let damaged_at = |offset: u64| move |fault: Fault| fault.at(path, offset);
        let (root, middle) = Index::parse_data_root(
            root_block.payload().clone(),
            trailer.data_index_count,
            trailer.data_index_levels,
            order,
        )
        .map_err(damaged_at(root_block.offset()))?;
        self.next(&mut at, BlockKind::RootIndex).await?;
        if at != trailer.file_info_offset {
            return Err(damaged_at(self.end)(Fault::Damaged("file info is not where the trailer says")));
        }
        let info_block = self.next(&mut at, BlockKind::FileInfo).await?;
        let info = parse_info(&info_block, &trailer).map_err(damaged_at(info_block.offset()))?;
        let (mut bloom, mut delete_family_bloom) = (None, None);
        while at < self.end {
            let block = self.any_at(at).await?;
            let of_columns = block.kind() == BlockKind::BloomMeta && info.bloom == BloomType::RowCol;
            let meta = match BloomMeta::parse(block.payload().clone(), of_columns, order) {
                Ok(meta) => Some(meta),
                // A filter of a newer kind: the file is read without.
                Err(Fault::Unsupported(_)) => None,
                Err(fault) => return Err(damaged_at(at)(fault)),
            };
            match block.kind() {
                BlockKind::BloomMeta => bloom = meta,
                BlockKind::DeleteFamilyBloomMeta => delete_family_bloom = meta,
                _ => return Err(damaged_at(at)(Fault::Damaged("unexpected block in front of the trailer"))),
            }
            at += u64::from(block.on_disk_len());
        }
        let fields = CellFields { tags: info.includes_tags, mvcc: info.includes_mvcc };
        let format = BlockFormat { fields, tags_packed: info.tags_compressed, ..self.format };
        Ok(Arc::new(Reader {
            file: self.file.clone(),
            file_id: self.file_id,
            trailer,
            info,
            format,
            root,
            middle,
            bloom,
            delete_family_bloom,
            assigned_seq_id: options.assigned_seq_id,
            bloom_failed: AtomicBool::new(false),
        }))
    }

    /// The block at `at`, which must be of `kind`; `at` is moved behind it.
    async fn next(&self, at: &mut u64, kind: BlockKind) -> Result<Block> {
        let block = self.any_at(*at).await?;
        if block.kind() != kind {
            return Err(
                Fault::Damaged("unexpected block in the section read on open").at(self.file.path(), *at)
            );
        }
        *at += u64::from(block.on_disk_len());
        Ok(block)
    }

    async fn any_at(&self, at: u64) -> Result<Block> {
        if let Some(block) = self.in_tail(at) {
            return Ok(block);
        }
        let target = Target { offset: at, len: 0 };
        let loaded = load_block(&**self.file, self.file_id, target, self.end, &self.format).await?;
        loaded.map_err(|fault| fault.at(self.file.path(), at))
    }

    /// The block, if all of it was read with the tail and is sound.
    fn in_tail(&self, at: u64) -> Option<Block> {
        let start = usize::try_from(at.checked_sub(self.tail_at)?).ok()?;
        let rest = self.tail.get(start..(self.end - self.tail_at) as usize)?;
        let header = Header::parse(rest).ok()?;
        // Copied: what is kept of it must not keep the whole tail.
        let on_disk = Bytes::copy_from_slice(rest.get(..header.total_len())?);
        Block::decode(on_disk, self.file_id, at, &self.format).ok()
    }
}

fn parse_info(block: &Block, trailer: &Trailer) -> Parsed<FileInfo> {
    if block.payload().len() > FILE_INFO_LEN_MAX {
        return Err(Fault::Damaged("file info is too large"));
    }
    let info = FileInfo::parse(block.payload(), trailer.entry_count)?;
    match &info.last_key {
        Some(last) => key::check_parts(last)?,
        None if trailer.data_index_count > 0 => {
            return Err(Fault::Damaged("file with cells but no last key"));
        }
        None => {}
    }
    if let Some(last) = info.last_bloom_key.as_ref().filter(|_| info.bloom == BloomType::RowCol) {
        key::check_parts(last)?;
    }
    Ok(info)
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
    Ok(Block::decode(on_disk, file_id, target.offset, format))
}
