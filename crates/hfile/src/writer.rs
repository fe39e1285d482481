//! Writes a file: cells in order, front to back, in one pass.
//!
//! Index leaves and Bloom chunks are written between the data blocks, as soon as they are full. The
//! other levels of the index, file info, Bloom metas and the trailer come at the end. For the same
//! cells and options, the bytes equal those that HBase writes.
//!
//! Source: HBase `HFileWriterImpl`, `StoreFileWriter`.

mod cell_statistics;
mod end;
mod options;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::schema::{BlockEncoding, BloomType};
use cell::{Cell, CellOrder, key, tags};
use fs::{FilePath, FileSystem, FileWriter, SyncLevel};

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
use crate::info::{TimeRange, compaction_event, encode_location, names};
use crate::output::Output;
use crate::retained::RetainedBlocks;
use crate::sidecar::writer::SidecarWriter;

use cell_statistics::{CellStatistics, deletes_family};
pub use options::WriterOptions;

/// File info that only the store knows.
#[derive(Clone, Debug, Default)]
pub struct StoreInfo {
    /// Edits up to this sequence id are in this file or in older files.
    pub max_seq_id: u64,
    /// Whether the file was made from all files of the store.
    pub is_major: bool,
    /// Whether all cells are hidden by newer cells.
    pub is_historical: bool,
    /// Names of the files whose cells were merged into this one.
    pub compacted_files: Vec<String>,
    /// The oldest read point at which the file is complete: it has every version that is visible at
    /// this read point or later. `None` if unknown.
    pub readable_since: Option<u64>,
    /// The MOB files that the cells refer to, encoded; `None` if the family has none.
    pub mob_file_refs: Option<Bytes>,
    /// Number of cells, for a MOB file.
    pub mob_cells: Option<u64>,
}

/// Summary of a written file.
#[derive(Clone, Debug)]
pub struct WrittenFile {
    /// Path of the file.
    pub path: FilePath,
    /// Number of cells.
    pub entries: u64,
    /// Length of the file in bytes.
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
    /// Number of cells whose malformed tags were dropped.
    pub malformed_tags: u64,
}

/// A file being written. If dropped before [`Writer::finish`], it leaves an incomplete file that no
/// reader opens.
pub struct Writer {
    file: Box<dyn FileWriter>,
    /// Number of pending bytes at which they are appended to the file.
    append_bytes: usize,
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
    statistics: CellStatistics,
    malformed_tags: u64,
    retained: RetainedBlocks,
    sidecar: Option<SidecarWriter>,
}

impl Writer {
    /// Creates a file.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for an unsupported codec, or an error of
    /// the file system.
    ///
    /// # Panics
    /// If the options are invalid: no bytes in a block or a Bloom prefix, or a checksum chunk
    /// shorter than a block header.
    pub async fn create(fs: &dyn FileSystem, path: &FilePath, options: WriterOptions) -> Result<Writer> {
        assert!(options.block_bytes > 0 && options.checksum_chunk_bytes >= HEADER_LEN as u32);
        assert!(options.bloom != BloomType::RowPrefix || options.bloom_prefix_len > 0);
        let codec = Codec::of(options.compression).map_err(|fault| fault.at(path, 0))?;
        let file = fs.create_for(path, &options.purpose).await?;
        let fields = CellFields { tags: options.include_tags, mvcc: options.include_mvcc };
        let bloom = |bloom: BloomType| BloomWriter::new(&options.bloom_options, bloom);
        let has_delete_family_bloom = options.delete_family_bloom && options.bloom != BloomType::RowCol;
        Ok(Writer {
            append_bytes: file.transfer_bytes().min(options.pending_bytes_max),
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
            statistics: CellStatistics::new(),
            malformed_tags: 0,
            retained: RetainedBlocks::new(options.retain),
            sidecar: (options.sidecar && options.order == CellOrder::Plain).then(SidecarWriter::new),
            options,
        })
    }

    /// Adds a cell. Waits only when enough bytes are pending to be written.
    ///
    /// # Errors
    /// Errors of the file system, or [`Error::Corrupt`](crate::Error::Corrupt) if tags cannot be
    /// packed.
    ///
    /// # Panics
    /// If the cell sorts before the previous cell.
    pub async fn append(&mut self, cell: &Cell<'_>) -> Result<()> {
        self.push(cell)?;
        if self.out.pending_len() >= self.append_bytes { self.write_out().await } else { Ok(()) }
    }

    fn push(&mut self, cell: &Cell<'_>) -> Result<()> {
        // HBase cannot read a file with malformed tags.
        let readable = tags::readable(cell.tags);
        self.malformed_tags += u64::from(readable.len() < cell.tags.len());
        let cell = &Cell { tags: readable, ..*cell };
        let is_new_key = self.check_order(cell);
        // Cells with equal keys stay in one block, so that a seek to the key finds all of them.
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
        self.statistics.add(cell, is_new_row);
        if let Some(sidecar) = &mut self.sidecar {
            sidecar.add(cell, is_new_row);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(cell.key);
        Ok(())
    }

    /// Whether the key of `cell` differs from the previous key. Panics if it is less.
    fn check_order(&mut self, cell: &Cell<'_>) -> bool {
        if self.last_key.is_empty() {
            self.first_key.extend_from_slice(cell.key);
            return true;
        }
        let order = self.options.order.compare_keys(&self.last_key, cell.key);
        assert!(
            order != Ordering::Greater,
            "{cell:?} sorts before the last cell added to {}",
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
        if self.retained.retains_data() {
            self.retained.add(target, self.out.last(target));
        }
        self.index.data_block(&self.block_key, target);
        self.put_inline(false);
    }

    /// Writes the full index leaves and Bloom chunks. If `closing`, the other ones too.
    fn put_inline(&mut self, closing: bool) {
        while let Some(leaf) = self.index.next_leaf(closing) {
            let target = self.out.put(BlockKind::LeafIndex, &leaf.payload);
            if self.retained.retains_leaf() {
                self.retained.add(target, self.out.last(target));
            }
            self.index.leaf_written(&leaf.first_key, target);
        }
        for bloom in [&mut self.bloom, &mut self.delete_family_bloom].into_iter().flatten() {
            while let Some(chunk) = bloom.next_ready(closing) {
                let target = self.out.put(BlockKind::BloomChunk, &chunk.bits);
                if self.retained.retains_chunk() {
                    self.retained.add(target, self.out.last(target));
                }
                bloom.written(&chunk.first_key, target);
            }
        }
    }

    /// Adds an entry to the file info.
    ///
    /// # Panics
    /// If the writer itself sets the entry (names that start with `hfile.`).
    pub fn put_info(&mut self, name: &[u8], value: impl Into<Bytes>) {
        assert!(!name.starts_with(b"hfile."), "names that start with hfile. are reserved for the writer");
        self.put_entry(name, value);
    }

    /// Adds the store's entries to the file info.
    pub fn put_store_info(&mut self, store: &StoreInfo) {
        self.put_entry(names::MAX_SEQ_ID, store.max_seq_id.to_be_bytes().to_vec());
        self.put_entry(names::MAJOR_COMPACTION, boolean(store.is_major));
        self.put_entry(names::HISTORICAL, boolean(store.is_historical));
        self.put_entry(names::COMPACTION_EVENT, compaction_event(&store.compacted_files));
        if let Some(seq_id) = store.readable_since {
            self.put_entry(names::READABLE_SINCE, seq_id.to_be_bytes().to_vec());
        }
        if let Some(refs) = &store.mob_file_refs {
            self.put_entry(names::MOB_FILE_REFS, refs.clone());
        }
        if let Some(cells) = store.mob_cells {
            self.put_entry(names::MOB_CELLS_COUNT, cells.to_be_bytes().to_vec());
        }
    }

    /// Adds the number of rows to the file info if all cells are puts without tags. Row counts use
    /// it; HBase has no such entry. To be called after the last cell.
    pub fn put_plain_rows(&mut self) {
        if self.statistics.is_plain {
            self.put_entry(names::PLAIN_ROWS, self.statistics.rows.to_be_bytes().to_vec());
        }
    }

    fn put_entry(&mut self, name: &[u8], value: impl Into<Bytes>) {
        self.info.insert(Bytes::copy_from_slice(name), value.into());
    }

    /// Retains the block of the last added cell for [`take_retained`](Writer::take_retained), and
    /// the index and Bloom blocks that cover it.
    pub fn retain_block(&mut self) {
        self.retained.retain_current();
    }

    /// Whether [`take_retained`](Writer::take_retained) would return any blocks.
    pub fn has_retained(&self) -> bool {
        !self.retained.is_empty()
    }

    /// The blocks retained since the last call, as a [`Reader`](crate::Reader) opened under
    /// `file_id` would load them.
    pub fn take_retained(&mut self, file_id: u64) -> Vec<Arc<Block>> {
        let options = &self.options;
        let format = BlockFormat {
            codec: self.out.codec(),
            order: options.order,
            fields: CellFields { tags: options.include_tags, mvcc: options.include_mvcc },
            tags_packed: options.include_tags && packs_tags(options),
        };
        let retained = self.retained.take().into_iter();
        // A block that was just built should decode. If it does not, reading the file reports it.
        retained
            .filter_map(|(offset, on_disk)| Block::decode(on_disk, file_id, offset, &format).ok())
            .map(Arc::new)
            .collect()
    }

    /// Number of cells added so far.
    pub fn entries(&self) -> u64 {
        self.statistics.entries
    }

    /// Bytes of the file so far, without the block under construction.
    pub fn len(&self) -> u64 {
        self.out.len()
    }

    /// Whether no cells were added yet.
    pub fn is_empty(&self) -> bool {
        self.statistics.entries == 0
    }

    /// Completes the blocks under construction, including the last ones to retain. No cell may be
    /// added afterwards.
    pub fn complete_blocks(&mut self) {
        if !self.block.is_empty() {
            self.finish_block();
        }
        self.put_inline(true);
        if let Some(sidecar) = self.sidecar.take() {
            let catalog = sidecar.finish(&mut self.out);
            self.put_entry(names::SIDECAR, encode_location(catalog));
        }
    }

    /// Completes the file and syncs its bytes to disk. The caller must sync the directory entry.
    ///
    /// # Errors
    /// Errors of the file system; the file is then unusable.
    pub async fn finish(mut self) -> Result<WrittenFile> {
        self.complete_blocks();
        self.put_end();
        self.write_out().await?;
        self.file.sync(SyncLevel::Disk).await?;
        let path = self.file.path().clone();
        self.file.close().await?;
        let key = |key: Vec<u8>| (!key.is_empty()).then(|| Bytes::from(key));
        Ok(WrittenFile {
            path,
            entries: self.statistics.entries,
            bytes: self.out.len(),
            first_key: key(self.first_key),
            last_key: key(self.last_key),
            time_range: self.statistics.time_range,
            max_memstore_ts: self.statistics.seq_id_max,
            unreadable_cells: self.statistics.unreadable,
            malformed_tags: self.malformed_tags,
        })
    }

    async fn write_out(&mut self) -> Result<()> {
        Ok(self.file.append(self.out.take().into()).await?)
    }
}

/// Whether the file info states that tags are packed by a dictionary, if there are tags.
/// (ROW_INDEX_V1 does not pack them in either case.)
fn packs_tags(options: &WriterOptions) -> bool {
    options.compress_tags && options.encoding != BlockEncoding::None
}

/// A boolean value of the file info in HBase's form.
fn boolean(value: bool) -> Bytes {
    Bytes::from_static(if value { &[0xff] } else { &[0] })
}
