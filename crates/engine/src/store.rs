//! A store: the part of a region that holds one family, as memstores over files.
//!
//! Readers never lock: they take a [`StoreView`], which is replaced whole when a flush or a compaction publishes its
//! result, and keep it as long as they read. Invariants:
//!
//! * Files are ordered from the oldest to the newest: by sequence id, then by timestamp (a compaction that cuts its output
//!   by time makes several of one sequence id), then larger first, then by name. All cells of the snapshot are newer than those of the files, all of the active memstore newer than those of the snapshot.
//! * Every view of a region that was ever current holds all cells that a reader at its time may see: what a flush or a
//!   compaction drops is dropped for the read points of all readers registered when it began. Who comes later at an older
//!   one, because it lost its scanner, asks the files first (`readable_since`).
//! * A file in a view is complete, durable under its name, and never changes.
//!
//! Not here: who makes files (`region::flush`, `region::compact`), how they are read (`scanner`).

use std::sync::Arc;

use fs::FilePath;
use hfile::Reader;
use layout::Reference;

use crate::half::Half;
use crate::memstore::{Memstore, common_front};

/// An immutable file of a store.
pub struct StoreFile {
    reader: Arc<Reader>,
    // In the store's directory; the reader's is another one if the file is a link.
    path: FilePath,
    seq_id: u64,
    modified_ms: u64,
    // Which part of the file the store has; none if it has all of it.
    half: Option<Arc<Half>>,
}

impl StoreFile {
    /// Takes an opened file; `seq_id` is the newest edit it holds, `modified_ms` when it was written.
    pub fn new(reader: Arc<Reader>, seq_id: u64, modified_ms: u64) -> StoreFile {
        StoreFile { path: reader.path().clone(), reader, seq_id, modified_ms, half: None }
    }

    /// The same for a file that has another name in the store's directory.
    #[must_use]
    pub fn named(mut self, path: FilePath) -> StoreFile {
        self.path = path;
        self
    }

    /// The part of the file that `reference` names.
    #[must_use]
    pub fn referred(mut self, reference: &Reference) -> StoreFile {
        let half = Half::of(reference);
        if half.is_top() {
            // As HBase counts, so that the halves are told apart where they come together again.
            self.seq_id += 1;
        }
        self.half = Some(Arc::new(half));
        self
    }

    /// Whether the file is another region's, and the store has a part of it only.
    pub fn is_reference(&self) -> bool {
        self.half.is_some()
    }

    /// The part of the file that the store has; none if it has all of it.
    pub fn half(&self) -> Option<&Arc<Half>> {
        self.half.as_ref()
    }

    /// Cells in it; of a part half of those of the file, as HBase estimates.
    pub fn cell_count(&self) -> u64 {
        self.reader.info().entry_count / if self.is_reference() { 2 } else { 1 }
    }

    /// The open file, all of it.
    pub fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    /// The newest edit it holds (`MAX_SEQ_ID_KEY`): orders the files of a store.
    pub fn seq_id(&self) -> u64 {
        self.seq_id
    }

    /// When it was written, milliseconds since the epoch.
    pub fn modified_ms(&self) -> u64 {
        self.modified_ms
    }

    /// The oldest read point at which nothing is missing that was visible then. Of a file of another region none is old
    /// enough: that one counted for itself.
    pub fn readable_since(&self) -> u64 {
        let info = self.reader.info();
        let is_foreign = self.is_reference() || self.path != *self.reader.path();
        match info.readable_since {
            _ if is_foreign => u64::MAX,
            Some(seq_id) => seq_id,
            None if info.bulk_load_time_ms.is_some() => 0,
            // Whatever its writer dropped, and what hid it, was among the edits up to here.
            None => self.seq_id.max(info.max_memstore_ts),
        }
    }

    /// Its name in the store's directory; of a link the bytes are elsewhere.
    pub fn path(&self) -> &FilePath {
        &self.path
    }

    /// Its name within the store's directory.
    pub fn name(&self) -> &str {
        self.path().name()
    }

    /// Bytes on disk, of the whole file.
    pub fn len(&self) -> u64 {
        self.reader.len()
    }

    /// Whether it has no bytes; never so for a complete file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a store holds at one moment. Cheap to make from another: all its parts are shared.
#[derive(Clone)]
pub struct StoreView {
    /// Takes the writes.
    pub active: Arc<Memstore>,
    /// Being flushed.
    pub snapshot: Option<Arc<Memstore>>,
    /// From the oldest to the newest.
    pub files: Arc<[Arc<StoreFile>]>,
}

impl StoreView {
    /// A view without a snapshot; `files` in any order.
    pub fn new(active: Arc<Memstore>, files: Vec<Arc<StoreFile>>) -> StoreView {
        StoreView { active, snapshot: None, files: in_order(files) }
    }

    /// The file, if it is the only one.
    #[inline]
    pub(crate) fn only_file(&self) -> Option<&Arc<StoreFile>> {
        match &self.files[..] {
            [file] => Some(file),
            _ => None,
        }
    }

    /// What the rows of the newest file that has several rows begin with.
    pub(crate) fn common_of_rows(&self) -> Option<&[u8]> {
        let readers = self.files.iter().rev().map(|file| file.reader());
        let (first, last) = readers
            .filter_map(|reader| Some((reader.first_row()?, reader.last_row()?)))
            .find(|(first, last)| first != last)?;
        Some(common_front(first, last))
    }

    /// The view when `active` takes the writes and what took them before is the snapshot.
    pub(crate) fn frozen(&self, active: Arc<Memstore>) -> StoreView {
        assert!(self.snapshot.is_none(), "one flush of a store at a time");
        StoreView { active, snapshot: Some(self.active.clone()), files: self.files.clone() }
    }

    /// The view when the snapshot is in `file`, or was empty after all.
    pub(crate) fn flushed(&self, file: Option<Arc<StoreFile>>) -> StoreView {
        let files = self.files.iter().cloned().chain(file).collect();
        StoreView { active: self.active.clone(), snapshot: None, files: in_order(files) }
    }

    /// The view when `outputs` take the place of `inputs`.
    pub(crate) fn compacted(&self, inputs: &[Arc<StoreFile>], outputs: &[Arc<StoreFile>]) -> StoreView {
        let is_input = |file: &&Arc<StoreFile>| inputs.iter().any(|input| Arc::ptr_eq(input, file));
        let left = self.files.iter().filter(|file| !is_input(file));
        StoreView { files: in_order(left.chain(outputs).cloned().collect()), ..self.clone() }
    }

    /// Whether this is the same view as `other`: nothing was flushed or compacted between the two.
    pub(crate) fn is(&self, other: &StoreView) -> bool {
        let same_snapshot = match (&self.snapshot, &other.snapshot) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            (left, right) => left.is_none() && right.is_none(),
        };
        same_snapshot && Arc::ptr_eq(&self.active, &other.active) && Arc::ptr_eq(&self.files, &other.files)
    }

    /// Bytes of the memstores as the memory budget counts them.
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

    /// The newest edit in a file; 0 if there are none. All edits up to it are in files.
    pub fn max_file_seq_id(&self) -> u64 {
        self.files.last().map_or(0, |file| file.seq_id())
    }
}

/// Sorts the files of a store from the oldest to the newest as HBase does where files are cut by time
/// (`StoreFileComparators.SEQ_ID_MAX_TIMESTAMP`). In other stores no two files have the same sequence id, but for bulk
/// loaded ones, whose cells differ in theirs.
fn in_order(mut files: Vec<Arc<StoreFile>>) -> Arc<[Arc<StoreFile>]> {
    files.sort_by(|left, right| {
        left.seq_id()
            .cmp(&right.seq_id())
            .then_with(|| max_timestamp(left).cmp(&max_timestamp(right)))
            .then_with(|| right.len().cmp(&left.len()))
            .then_with(|| left.name().cmp(right.name()))
    });
    files.into()
}

/// The newest timestamp in a file; that of a file without cells is the greatest.
fn max_timestamp(file: &StoreFile) -> i64 {
    let range = file.reader().info().time_range;
    if range.min > range.max { i64::MAX } else { range.max }
}

/// The views of all stores of a region at one moment, by family in order of names.
#[derive(Clone)]
pub(crate) struct RegionView {
    pub(crate) stores: Vec<StoreView>,
}

impl RegionView {
    /// This view with another one for the store `at`.
    pub(crate) fn with_store(&self, at: usize, store: StoreView) -> RegionView {
        let mut stores = self.stores.clone();
        stores[at] = store;
        RegionView { stores }
    }

    pub(crate) fn memstore_bytes(&self) -> u64 {
        self.stores.iter().map(StoreView::memstore_bytes).sum()
    }

    /// The oldest read point at which nothing is missing that was visible then.
    pub(crate) fn readable_since(&self) -> u64 {
        let files = self.stores.iter().flat_map(|store| store.files.iter());
        files.map(|file| file.readable_since()).max().unwrap_or(0)
    }
}
