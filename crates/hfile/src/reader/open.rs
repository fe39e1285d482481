//! Opens a file: trailer, root of the index, file info, index of the Bloom chunks.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use cell::key;
use cell::schema::BloomType;
use fs::{FilePath, FileReader, FileSystem, IoClass};

use super::{OpenOptions, Reader, load_block};
use crate::block::header::Header;
use crate::block::kind::BlockKind;
use crate::block::plain::CellFields;
use crate::block::{Block, BlockFormat};
use crate::bloom::BloomMeta;
use crate::compression::Codec;
use crate::error::{Fault, Parsed, Result};
use crate::index::{Index, Target};
use crate::info::FileInfo;
use crate::trailer::{self, Trailer};

/// Bytes of the file's end that the first read covers: trailer and load-on-open section of all but
/// large files.
const TAIL_LEN: u64 = 64 << 10;
/// Maximum size of the file info. It normally has a few small entries. A larger size is rejected,
/// because entries take more memory than disk.
const FILE_INFO_LEN_MAX: usize = 64 << 20;

/// See [`Reader::open`].
pub(super) async fn open(
    fs: &dyn FileSystem,
    path: &FilePath,
    file_id: u64,
    options: OpenOptions,
) -> Result<Arc<Reader>> {
    let file = fs.open_uncached(path).await?;
    let tail_at = file.len().saturating_sub(TAIL_LEN);
    let tail = file.read_at(tail_at, (file.len() - tail_at) as usize).await?;
    let damaged = |fault: Fault| fault.at(path, file.len());
    let trailer_len = trailer::trailer_len(&tail).map_err(damaged)?;
    if trailer_len > tail.len() {
        return Err(damaged(Fault::Damaged("file shorter than its trailer")));
    }
    let end = file.len() - trailer_len as u64;
    let trailer =
        Trailer::parse(&tail[tail.len() - trailer_len..], end).map_err(|fault| fault.at(path, end))?;
    if options.order.is_some_and(|order| order != trailer.order) {
        return Err(damaged(Fault::Damaged("cell order differs from the table's")));
    }
    let codec = Codec::of(trailer.compression).map_err(|fault| fault.at(path, end))?;
    let format =
        BlockFormat { codec, order: trailer.order, fields: CellFields::default(), tags_packed: false };
    let section = Section { file: &file, file_id, tail: &tail, tail_at, end, format };
    section.open(trailer, options).await
}

/// State while the load-on-open section of a file is being read.
struct Section<'a> {
    file: &'a Arc<dyn FileReader>,
    file_id: u64,
    tail: &'a Bytes,
    tail_at: u64,
    /// Offset of the trailer.
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
            return Err(damaged_at(self.end)(Fault::Damaged(
                "file info is not at the offset that the trailer states",
            )));
        }
        let info_block = self.next(&mut at, BlockKind::FileInfo).await?;
        let info = parse_info(&info_block, &trailer).map_err(damaged_at(info_block.offset()))?;
        let (mut bloom, mut delete_family_bloom) = (None, None);
        while at < self.end {
            let block = self.any_at(at).await?;
            let of_columns = block.kind() == BlockKind::BloomMeta && info.bloom == BloomType::RowCol;
            let meta = match BloomMeta::parse(block.payload().clone(), of_columns, order) {
                Ok(meta) => Some(meta),
                // A filter of an unknown version: read the file without it.
                Err(Fault::Unsupported(_)) => None,
                Err(fault) => return Err(damaged_at(at)(fault)),
            };
            match block.kind() {
                BlockKind::BloomMeta => bloom = meta,
                BlockKind::DeleteFamilyBloomMeta => delete_family_bloom = meta,
                _ => return Err(damaged_at(at)(Fault::Damaged("unexpected block before the trailer"))),
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
            identity: OnceLock::new(),
        }))
    }

    /// The block at `at`, which must be of `kind`. Advances `at` past it.
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
        let file = (&**self.file, IoClass::Read);
        let loaded = load_block(file, self.file_id, target, self.end, &self.format).await?;
        loaded.map(|(block, _)| block).map_err(|fault| fault.at(self.file.path(), at))
    }

    /// The block, if it lies completely within the tail and is valid.
    fn in_tail(&self, at: u64) -> Option<Block> {
        let start = usize::try_from(at.checked_sub(self.tail_at)?).ok()?;
        let rest = self.tail.get(start..(self.end - self.tail_at) as usize)?;
        let header = Header::parse(rest).ok()?;
        // Copied, so that the retained parts do not keep the whole tail in memory.
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
        Some(last) => key::check(last)?,
        None if trailer.data_index_count > 0 => {
            return Err(Fault::Damaged("file with cells but no last key"));
        }
        None => {}
    }
    if let Some(last) = info.last_bloom_key.as_ref().filter(|_| info.bloom == BloomType::RowCol) {
        key::check(last)?;
    }
    Ok(info)
}
