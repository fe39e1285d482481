//! A store: the part of a region that holds one family, as memstores over files.
//!
//! Readers take no lock. They take a [`StoreView`] and hold it while they read. At its end, a flush
//! or compaction replaces the view as a whole. Invariants:
//!
//! * Files are sorted from the oldest to the newest: by sequence id, then by timestamp (a
//!   compaction that splits its output by time writes several files with one sequence id), then
//!   larger first, then by name. All cells of the snapshot are newer than those of the files. All
//!   cells of the active memstore are newer than those of the snapshot.
//! * Every view that was ever current holds all cells that a reader at that time may see. A flush
//!   or compaction drops only what none of the readers registered when it began may see. A reader
//!   that comes later with an older read point, because it lost its scanner, checks the files first
//!   (`readable_since`).
//! * A file in a view is complete, durable under its name, and never changes.
//!
//! Not here: writing files (`region::flush`, `region::compact`) and reading them (`scanner`).

use std::sync::Arc;

use fs::FilePath;
use hfile::Reader;
use layout::Reference;

use crate::half::Half;
use crate::memstore::{Memstore, common_prefix};

/// An immutable file of a store.
pub struct StoreFile {
    reader: Arc<Reader>,
    // Path in the store's directory. The reader has another path if the file is a link.
    path: FilePath,
    seq_id: u64,
    modified_ms: u64,
    // The part of the file that the store has; `None` for all of it.
    half: Option<Arc<Half>>,
}

impl StoreFile {
    /// A store file for an opened file. `seq_id` is that of its newest edit; `modified_ms` is when
    /// it was written.
    pub fn new(reader: Arc<Reader>, seq_id: u64, modified_ms: u64) -> StoreFile {
        StoreFile { path: reader.path().clone(), reader, seq_id, modified_ms, half: None }
    }

    /// The same file with another name in the store's directory.
    #[must_use]
    pub fn with_path(mut self, path: FilePath) -> StoreFile {
        self.path = path;
        self
    }

    /// Limits the store to the part of the file that `reference` names.
    #[must_use]
    pub fn with_reference(mut self, reference: &Reference) -> StoreFile {
        let half = Half::of(reference);
        if half.is_top() {
            // As in HBase, so that the halves differ when a merge brings them together again.
            self.seq_id += 1;
        }
        self.half = Some(Arc::new(half));
        self
    }

    /// Whether the file belongs to another region, and the store has only a part of it.
    pub fn is_reference(&self) -> bool {
        self.half.is_some()
    }

    /// The part of the file that the store has; `None` for all of it.
    pub fn half(&self) -> Option<&Arc<Half>> {
        self.half.as_ref()
    }

    /// Number of cells. For a part this is half of the file's, as HBase estimates.
    pub fn cell_count(&self) -> u64 {
        self.reader.info().entry_count / if self.is_reference() { 2 } else { 1 }
    }

    /// Bytes without compression; always those of the whole file.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.reader.trailer().total_plain_bytes
    }

    /// The open file; always the whole file.
    pub fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    /// Sequence id of the newest edit (`MAX_SEQ_ID_KEY`). It orders the files of a store.
    pub fn seq_id(&self) -> u64 {
        self.seq_id
    }

    /// When it was written, in milliseconds since the epoch.
    pub fn modified_ms(&self) -> u64 {
        self.modified_ms
    }

    /// The oldest read point at which the file lacks nothing that was visible then. For a file of
    /// another region it is `u64::MAX`, because that region counted its own sequence ids.
    pub fn readable_since(&self) -> u64 {
        let info = self.reader.info();
        let is_foreign = self.is_reference() || self.path != *self.reader.path();
        match info.readable_since {
            _ if is_foreign => u64::MAX,
            // Its cells became visible together, with the sequence id of the load.
            _ if self.is_bulk_loaded() => 0,
            Some(seq_id) => seq_id,
            // The edits that its writer dropped, and the edits that hid them, have ids up to this
            // one.
            None => self.seq_id.max(info.max_memstore_ts),
        }
    }

    /// Whether the file came by a bulk load.
    pub fn is_bulk_loaded(&self) -> bool {
        self.reader.assigned_seq_id().is_some() || self.reader.info().bulk_load_time_ms.is_some()
    }

    /// The greatest sequence id of a cell that this region has assigned; 0 for a bulk loaded file,
    /// whose cells may have ids of another region.
    pub(crate) fn max_own_seq_id(&self) -> u64 {
        if self.is_bulk_loaded() { 0 } else { self.reader.info().max_memstore_ts }
    }

    /// Path in the store's directory. The bytes of a link are elsewhere.
    pub fn path(&self) -> &FilePath {
        &self.path
    }

    /// File name in the store's directory.
    pub fn name(&self) -> &str {
        self.path().name()
    }

    /// Bytes on disk, of the whole file.
    pub fn len(&self) -> u64 {
        self.reader.len()
    }

    /// Whether it has no bytes; never true for a complete file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The contents of a store at one moment. Cheap to clone: all parts are shared.
#[derive(Clone)]
pub struct StoreView {
    /// The memstore that receives writes.
    pub active: Arc<Memstore>,
    /// The memstore that is being flushed.
    pub snapshot: Option<Arc<Memstore>>,
    /// Files, from the oldest to the newest.
    pub files: Arc<[Arc<StoreFile>]>,
}

impl StoreView {
    /// A view without a snapshot. `files` may be in any order.
    pub fn new(active: Arc<Memstore>, files: Vec<Arc<StoreFile>>) -> StoreView {
        StoreView { active, snapshot: None, files: sorted(files) }
    }

    /// The file, if it is the only one.
    #[inline]
    pub(crate) fn only_file(&self) -> Option<&Arc<StoreFile>> {
        match &self.files[..] {
            [file] => Some(file),
            _ => None,
        }
    }

    /// The common prefix of the rows in the newest file that has several rows.
    pub(crate) fn rows_common_prefix(&self) -> Option<&[u8]> {
        let readers = self.files.iter().rev().map(|file| file.reader());
        let (first, last) = readers
            .filter_map(|reader| Some((reader.first_row()?, reader.last_row()?)))
            .find(|(first, last)| first != last)?;
        Some(common_prefix(first, last))
    }

    /// The next view, in which `active` receives the writes and the previous active memstore is the
    /// snapshot.
    pub(crate) fn frozen(&self, active: Arc<Memstore>) -> StoreView {
        assert!(self.snapshot.is_none(), "one flush of a store at a time");
        assert!(active.is_empty(), "the memstore that follows a snapshot begins empty");
        StoreView { active, snapshot: Some(self.active.clone()), files: self.files.clone() }
    }

    /// The next view, in which the snapshot is in `file`, or had no cells to write.
    pub(crate) fn flushed(&self, file: Option<Arc<StoreFile>>) -> StoreView {
        let files = self.files.iter().cloned().chain(file).collect();
        StoreView { active: self.active.clone(), snapshot: None, files: sorted(files) }
    }

    /// The next view, which also has the files of a bulk load.
    pub(crate) fn loaded(&self, files: Vec<Arc<StoreFile>>) -> StoreView {
        let files = self.files.iter().cloned().chain(files).collect();
        StoreView { files: sorted(files), ..self.clone() }
    }

    /// The next view, in which `outputs` replace `inputs`.
    pub(crate) fn compacted(&self, inputs: &[Arc<StoreFile>], outputs: &[Arc<StoreFile>]) -> StoreView {
        let is_input = |file: &&Arc<StoreFile>| inputs.iter().any(|input| Arc::ptr_eq(input, file));
        debug_assert!(
            self.files.iter().filter(is_input).count() == inputs.len(),
            "the inputs of a compaction stay in the view until it ends"
        );
        let left = self.files.iter().filter(|file| !is_input(file));
        StoreView { files: sorted(left.chain(outputs).cloned().collect()), ..self.clone() }
    }

    /// Whether this is the same view as `other`: no flush or compaction came between them.
    pub(crate) fn is_same_as(&self, other: &StoreView) -> bool {
        let same_snapshot = match (&self.snapshot, &other.snapshot) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            (left, right) => left.is_none() && right.is_none(),
        };
        same_snapshot && Arc::ptr_eq(&self.active, &other.active) && Arc::ptr_eq(&self.files, &other.files)
    }

    /// Bytes of the memstores, as the memory budget counts them.
    pub fn memstore_bytes(&self) -> u64 {
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.heap_bytes());
        self.active.heap_bytes() + snapshot
    }

    /// Serialized bytes of the cells in the memstores.
    pub fn data_bytes(&self) -> u64 {
        self.active.data_bytes() + self.snapshot.as_ref().map_or(0, |snapshot| snapshot.data_bytes())
    }

    /// Whether a file is a reference to one of another region.
    pub fn has_references(&self) -> bool {
        self.files.iter().any(|file| file.is_reference())
    }

    /// Sequence id of the newest edit in a file; 0 if there are no files. All edits up to it are in
    /// files.
    pub fn max_file_seq_id(&self) -> u64 {
        self.files.last().map_or(0, |file| file.seq_id())
    }
}

/// Sorts the files of a store from the oldest to the newest, as HBase does for files split by time
/// (`StoreFileComparators.SEQ_ID_MAX_TIMESTAMP`). In other stores, only bulk-loaded files can share
/// a sequence id, and the ids of their cells differ.
fn sorted(mut files: Vec<Arc<StoreFile>>) -> Arc<[Arc<StoreFile>]> {
    files.sort_by(|left, right| {
        left.seq_id()
            .cmp(&right.seq_id())
            .then_with(|| max_timestamp(left).cmp(&max_timestamp(right)))
            .then_with(|| right.len().cmp(&left.len()))
            .then_with(|| left.name().cmp(right.name()))
    });
    files.into()
}

/// The newest timestamp in a file; `i64::MAX` for a file without cells.
fn max_timestamp(file: &StoreFile) -> i64 {
    let range = file.reader().info().time_range;
    if range.min > range.max { i64::MAX } else { range.max }
}

/// The views of all stores of a region at one moment, sorted by family name.
#[derive(Clone)]
pub(crate) struct RegionView {
    pub(crate) stores: Vec<StoreView>,
}

impl RegionView {
    /// The newest timestamp in any store; `None` if there are no cells.
    pub(crate) fn newest_timestamp(&self) -> Option<i64> {
        let newest = |store: &StoreView| {
            let ranges = store.files.iter().map(|file| file.reader().info().time_range);
            let in_files = ranges.filter(|range| range.min <= range.max).map(|range| range.max);
            in_files.chain(store.active.timestamps().map(|(_, newest)| newest)).max()
        };
        self.stores.iter().filter_map(newest).max()
    }

    /// This view with `store` as the view of the store `at`.
    pub(crate) fn with_store(&self, at: usize, store: StoreView) -> RegionView {
        let mut stores = self.stores.clone();
        stores[at] = store;
        RegionView { stores }
    }

    pub(crate) fn memstore_bytes(&self) -> u64 {
        self.stores.iter().map(StoreView::memstore_bytes).sum()
    }

    /// The oldest read point at which the files lack nothing that was visible then.
    pub(crate) fn readable_since(&self) -> u64 {
        let files = self.stores.iter().flat_map(|store| store.files.iter());
        files.map(|file| file.readable_since()).max().unwrap_or(0)
    }
}
