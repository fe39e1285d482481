//! Writing a file: cells in order, front to back, in one pass.
//!
//! Data blocks are closed when they are full; leaf index blocks and Bloom chunks follow them as they fill. At the end
//! come the rest of the index, file info, Bloom metas and the trailer. Given the same cells and options the bytes are
//! those that HBase writes.
//!
//! Source: HBase `HFileWriterImpl`, `StoreFileWriter`.

mod end;
mod figures;
mod options;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::schema::{BlockEncoding, BloomType};
use cell::{Cell, CellOrder, key, tags};
use fs::{FilePath, FileSystem, FileWriter, Storage, Sync};

use crate::block::builder::BlockBuilder;
use crate::block::header::HEADER_LEN;
use crate::block::kind::BlockKind;
use crate::block::plain::CellFields;
use crate::block::{Block, BlockFormat};
use crate::bloom::writer::BloomWriter;
use crate::bloom::{column_key, row_part};
use crate::compression::Codec;
use crate::error::Result;
use crate::index::separator;
use crate::index_writer::IndexWriter;
use crate::info::{TimeRange, compaction_event, names, place_entry};
use crate::kept::Kept;
use crate::output::Output;
use crate::sidecar::writer::SidecarWriter;

use figures::{Figures, deletes_family};
pub use options::WriterOptions;

/// Bytes handed to the file system at a time.
const CHUNK_LEN: usize = 256 << 10;

/// What a store says of a file it makes.
#[derive(Clone, Debug, Default)]
pub struct StoreInfo {
    /// Edits up to it are in this file or older ones.
    pub max_seq_id: u64,
    /// Made of all files of the store.
    pub is_major: bool,
    /// Holds only cells that newer ones hide.
    pub is_historical: bool,
    /// Files whose cells are in this one.
    pub compacted_files: Vec<String>,
    /// Versions that nobody sees who reads as of this sequence id or a later one may be missing; none leaves it unsaid.
    pub readable_since: Option<u64>,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Where.
    pub path: FilePath,
    /// Cells.
    pub entries: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// The key of the first cell.
    pub first_key: Option<Bytes>,
    /// The key of the last cell.
    pub last_key: Option<Bytes>,
    /// Timestamps of the cells.
    pub time_range: TimeRange,
    /// The greatest sequence id of a cell.
    pub max_memstore_ts: u64,
    /// Cells that reads skip ([`Cell::is_readable`]).
    pub unreadable_cells: u64,
    /// Cells whose tags were malformed and left out.
    pub malformed_tags: u64,
}

/// A file being written. Dropped before [`Writer::finish`], it leaves a part of a file that no reader opens.
pub struct Writer {
    file: Box<dyn FileWriter>,
    options: WriterOptions,
    out: Output,
    block: BlockBuilder,
    /// The index key of the block under construction.
    block_key: Vec<u8>,
    index: IndexWriter,
    bloom: Option<BloomWriter>,
    delete_family_bloom: Option<BloomWriter>,
    info: BTreeMap<Bytes, Bytes>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    last_bloom_key: Vec<u8>,
    last_delete_family_row: Option<Vec<u8>>,
    figures: Figures,
    malformed_tags: u64,
    kept: Kept,
    sidecar: Option<SidecarWriter>,
}

impl Writer {
    /// Makes a new file.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for a codec that is not built in, or the file system's.
    ///
    /// # Panics
    /// If the options make no sense: no bytes in a block, in a checksum's chunk or in a Bloom prefix.
    pub async fn create(fs: &dyn FileSystem, path: &FilePath, options: WriterOptions) -> Result<Writer> {
        assert!(options.block_bytes > 0 && options.checksum_chunk_bytes >= HEADER_LEN as u32);
        assert!(options.bloom != BloomType::RowPrefix || options.bloom_prefix_len > 0);
        let codec = Codec::of(options.compression).map_err(|fault| fault.at(path, 0))?;
        let file = fs.create(path, Storage::Data).await?;
        let fields = CellFields { tags: options.include_tags, mvcc: options.include_mvcc };
        let bloom = |bloom: BloomType| BloomWriter::new(&options.bloom_options, bloom);
        let has_delete_family_bloom = options.delete_family_bloom && options.bloom != BloomType::RowCol;
        Ok(Writer {
            file,
            out: Output::new(codec, options.checksum, options.checksum_chunk_bytes),
            block: BlockBuilder::new(options.encoding, fields, options.compress_tags),
            block_key: Vec::new(),
            index: IndexWriter::new(options.index_block_bytes as usize, options.index_entries_min as usize),
            bloom: (options.bloom != BloomType::None).then(|| bloom(options.bloom)),
            delete_family_bloom: has_delete_family_bloom.then(|| bloom(BloomType::Row)),
            info: BTreeMap::new(),
            first_key: Vec::new(),
            last_key: Vec::new(),
            last_bloom_key: Vec::new(),
            last_delete_family_row: None,
            figures: Figures::new(),
            malformed_tags: 0,
            kept: Kept::new(options.keep),
            sidecar: (options.sidecar && options.order == CellOrder::Plain).then(SidecarWriter::new),
            options,
        })
    }

    /// Adds a cell; waits only when enough bytes have gathered to be written out.
    ///
    /// # Errors
    /// The file system's, or [`Error::Corrupt`](crate::Error::Corrupt) if tags are to be packed that are malformed.
    ///
    /// # Panics
    /// If the cell's key is before the last one's.
    pub async fn append(&mut self, cell: &Cell<'_>) -> Result<()> {
        self.push(cell)?;
        if self.out.pending_len() >= CHUNK_LEN { self.write_out().await } else { Ok(()) }
    }

    fn push(&mut self, cell: &Cell<'_>) -> Result<()> {
        // HBase cannot read a file with tags that are none.
        let readable = tags::readable(cell.tags);
        self.malformed_tags += u64::from(readable.len() < cell.tags.len());
        let cell = &Cell { tags: readable, ..*cell };
        let is_new_key = self.check_order(cell);
        // Equal keys are never parted, so that a seek to one finds all.
        if is_new_key && !self.block.is_empty() && self.block.len() >= self.options.block_bytes as usize {
            self.finish_block();
        }
        if self.block.is_empty() {
            self.start_block(cell);
            if let Some(sidecar) = &mut self.sidecar {
                sidecar.begin_block(key::row(&self.block_key), &mut self.out);
            }
        }
        self.block.add(cell).map_err(|fault| fault.at(self.file.path(), self.out.len()))?;
        self.add_to_bloom(cell);
        let is_new_row = self.last_key.is_empty() || key::row(&self.last_key) != cell.row();
        self.figures.add(cell, is_new_row);
        if let Some(sidecar) = &mut self.sidecar {
            sidecar.add(cell, is_new_row);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(cell.key);
        Ok(())
    }

    /// Whether the key is another than the last one, which it must not be before.
    fn check_order(&mut self, cell: &Cell<'_>) -> bool {
        if self.last_key.is_empty() {
            self.first_key.extend_from_slice(cell.key);
            return true;
        }
        let order = self.options.order.compare_keys(&self.last_key, cell.key);
        assert!(
            order != Ordering::Greater,
            "{cell:?} comes before the cell added last to {}",
            self.file.path()
        );
        order == Ordering::Less
    }

    fn start_block(&mut self, cell: &Cell<'_>) {
        let has_separator = !self.last_key.is_empty() && self.options.order == CellOrder::Plain;
        self.block_key = if has_separator { separator(&self.last_key, cell.key) } else { cell.key.to_vec() };
    }

    fn add_to_bloom(&mut self, cell: &Cell<'_>) {
        let is_first = self.last_key.is_empty();
        let row = cell.row();
        if let Some(bloom) = &mut self.bloom {
            let same_row = !is_first && key::row(&self.last_key) == row;
            match self.options.bloom {
                BloomType::RowCol => {
                    if !(same_row && key::qualifier(&self.last_key) == cell.qualifier()) {
                        let key = column_key(row, cell.qualifier());
                        bloom.add(&key);
                        self.last_bloom_key = key.to_vec();
                    }
                }
                kind => {
                    let part = row_part(kind, self.options.bloom_prefix_len, row);
                    if is_first || !same_row && self.last_bloom_key != part {
                        bloom.add(part);
                        self.last_bloom_key.clear();
                        self.last_bloom_key.extend_from_slice(part);
                    }
                }
            }
        }
        if let Some(bloom) = &mut self.delete_family_bloom
            && deletes_family(cell)
            && self.last_delete_family_row.as_deref() != Some(row)
        {
            bloom.add(row);
            self.last_delete_family_row = Some(row.to_vec());
        }
    }

    fn finish_block(&mut self) {
        let encoded = self.options.encoding != BlockEncoding::None;
        let target = self.block.finish(|payload| self.out.put_data(encoded, payload));
        if self.kept.wants_data() {
            self.kept.add(target, self.out.last(target));
        }
        self.index.data_block(&self.block_key, target);
        self.put_inline(false);
    }

    /// Writes the leaf and the Bloom chunks that are full; when `closing`, all.
    fn put_inline(&mut self, closing: bool) {
        while let Some(leaf) = self.index.next_leaf(closing) {
            let target = self.out.put(BlockKind::LeafIndex, &leaf.payload);
            if self.kept.wants_leaf() {
                self.kept.add(target, self.out.last(target));
            }
            self.index.leaf_written(&leaf.first_key, target);
        }
        for bloom in [&mut self.bloom, &mut self.delete_family_bloom].into_iter().flatten() {
            while let Some(chunk) = bloom.next_ready(closing) {
                let target = self.out.put(BlockKind::BloomChunk, &chunk.bits);
                if self.kept.wants_chunk() {
                    self.kept.add(target, self.out.last(target));
                }
                bloom.written(&chunk.first_key, target);
            }
        }
    }

    /// Adds an entry to the file info.
    ///
    /// # Panics
    /// If the name is one that the writer itself gives (`hfile.`).
    pub fn put_info(&mut self, name: &[u8], value: impl Into<Bytes>) {
        assert!(!name.starts_with(b"hfile."), "names that start with hfile. are the writer's");
        self.put_entry(name, value);
    }

    /// Adds what a store says of the file to the file info.
    pub fn put_store_info(&mut self, store: &StoreInfo) {
        self.put_entry(names::MAX_SEQ_ID, store.max_seq_id.to_be_bytes().to_vec());
        self.put_entry(names::MAJOR_COMPACTION, boolean(store.is_major));
        self.put_entry(names::HISTORICAL, boolean(store.is_historical));
        self.put_entry(names::COMPACTION_EVENT, compaction_event(&store.compacted_files));
        if let Some(seq_id) = store.readable_since {
            self.put_entry(names::READABLE_SINCE, seq_id.to_be_bytes().to_vec());
        }
    }

    /// Tells how many rows the file has, if a count of them need know no more: HBase does not tell it. Behind the last cell.
    pub fn put_plain_rows(&mut self) {
        if self.figures.is_plain {
            self.put_entry(names::PLAIN_ROWS, self.figures.rows.to_be_bytes().to_vec());
        }
    }

    fn put_entry(&mut self, name: &[u8], value: impl Into<Bytes>) {
        self.info.insert(Bytes::copy_from_slice(name), value.into());
    }

    /// Sets aside the block that the cell added last is in, and what leads to it.
    pub fn keep_block(&mut self) {
        self.kept.want();
    }

    /// Whether [`take_kept`](Writer::take_kept) would give any.
    pub fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// The blocks set aside since the last call, as a [`Reader`](crate::Reader) opened under `file_id` would load them.
    pub fn take_kept(&mut self, file_id: u64) -> Vec<Arc<Block>> {
        let options = &self.options;
        let format = BlockFormat {
            codec: self.out.codec(),
            order: options.order,
            fields: CellFields { tags: options.include_tags, mvcc: options.include_mvcc },
            tags_packed: options.include_tags && packs_tags(options),
        };
        let kept = self.kept.take().into_iter();
        // What was just made can be read; else it would be found out when the file is.
        kept.filter_map(|(offset, on_disk)| Block::decode(on_disk, file_id, offset, &format).ok())
            .map(Arc::new)
            .collect()
    }

    /// Cells added so far.
    pub fn entries(&self) -> u64 {
        self.figures.entries
    }

    /// Bytes of the file so far, without the block under construction.
    pub fn len(&self) -> u64 {
        self.out.len()
    }

    /// Whether no cell was added yet.
    pub fn is_empty(&self) -> bool {
        self.figures.entries == 0
    }

    /// Completes the blocks under construction, the last to be set aside among them. No cell may be added after it.
    pub fn complete_blocks(&mut self) {
        if !self.block.is_empty() {
            self.finish_block();
        }
        self.put_inline(true);
        if let Some(sidecar) = self.sidecar.take() {
            let catalog = sidecar.finish(&mut self.out);
            self.put_entry(names::SIDECAR, place_entry(catalog));
        }
    }

    /// Completes the file and makes its bytes safe on disk; its name is the caller's to make safe.
    ///
    /// # Errors
    /// The file system's; the file is of no use then.
    pub async fn finish(mut self) -> Result<Written> {
        self.complete_blocks();
        self.put_end();
        self.write_out().await?;
        self.file.sync(Sync::Disk).await?;
        let path = self.file.path().clone();
        self.file.close().await?;
        let key = |key: Vec<u8>| (!key.is_empty()).then(|| Bytes::from(key));
        Ok(Written {
            path,
            entries: self.figures.entries,
            bytes: self.out.len(),
            first_key: key(self.first_key),
            last_key: key(self.last_key),
            time_range: self.figures.time_range,
            max_memstore_ts: self.figures.seq_id_max,
            unreadable_cells: self.figures.unreadable,
            malformed_tags: self.malformed_tags,
        })
    }

    async fn write_out(&mut self) -> Result<()> {
        Ok(self.file.append(self.out.take().into()).await?)
    }
}

/// Whether tags are packed by a dictionary, where there are any.
fn packs_tags(options: &WriterOptions) -> bool {
    options.compress_tags && options.encoding != BlockEncoding::None
}

/// A boolean of the file info, as HBase writes it.
fn boolean(value: bool) -> Bytes {
    Bytes::from_static(if value { &[0xff] } else { &[0] })
}
