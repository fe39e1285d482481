//! The memstore: sorted cells in memory that are not in a file yet.
//!
//! One writer at a time fills a memstore, and any number of scanners read it without locks. Cells
//! are copied in and stay until the whole memstore is dropped, which a scanner's [`Cursor`] defers.
//! A memstore knows nothing of read points: a cell is visible as soon as it is inserted. Readers
//! skip sequence ids that they may not see.

mod arena;
mod entry;
mod page;
mod tree;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use cell::key::common_len;
use cell::query::TimeRange;
use cell::{Cell, CellOrder, CellType};

pub(crate) use arena::CHUNK_BYTES_MAX;
use tree::Tree;

/// Cells in HBase's order, newest write of equal keys first.
pub struct Memstore {
    tree: Arc<Tree>,
    stats: MemstoreStats,
}

/// The common prefix of the rows from `first` to `last`, which most other rows of their region
/// probably share.
///
/// It ends at least eight bytes before the end of both rows, or is empty, because a memstore
/// distinguishes rows by the eight bytes after it. Without this limit, the prefix could be too
/// long: the first thousand of a million zero-padded numbers share more leading zeros than all of
/// them do. The later rows, which do not begin with such a prefix, could not be distinguished.
pub fn common_prefix<'a>(first: &'a [u8], last: &[u8]) -> &'a [u8] {
    let left = first.len().min(last.len()).saturating_sub(tree::ROW_HEAD_LEN);
    &first[..common_len(first, last).min(left)]
}

/// Statistics of the cells. Only the writer changes them; any thread reads them.
struct MemstoreStats {
    data_bytes: AtomicU64,
    cells: AtomicU64,
    family_deletes: AtomicU64,
    seq_id_max: AtomicU64,
    // Empty while `from` is greater than `to`.
    timestamp_from: AtomicI64,
    timestamp_to: AtomicI64,
}

impl Memstore {
    /// An empty memstore. It takes almost no memory before the first cell.
    pub fn new(order: CellOrder) -> Memstore {
        Memstore {
            tree: Arc::new(Tree::new(order)),
            stats: MemstoreStats {
                data_bytes: AtomicU64::new(0),
                cells: AtomicU64::new(0),
                family_deletes: AtomicU64::new(0),
                seq_id_max: AtomicU64::new(0),
                timestamp_from: AtomicI64::new(i64::MAX),
                timestamp_to: AtomicI64::new(i64::MIN),
            },
        }
    }

    /// Sets the expected common prefix of the rows, which makes searches faster. Ignored if there
    /// are cells already, or if it was set before.
    pub fn set_common_prefix(&self, common: &[u8]) {
        self.tree.set_common_prefix(common);
    }

    /// The common prefix of all rows, computed by [`common_prefix`]; `None` if there are fewer than
    /// two rows.
    pub fn rows_common_prefix(&self) -> Option<Vec<u8>> {
        let (first, last) = self.tree.first_and_last()?;
        let (first, last) = (first.row(), last.row());
        (first != last).then(|| common_prefix(first, last).to_vec())
    }

    /// The order of the cells.
    pub fn order(&self) -> CellOrder {
        self.tree.order()
    }

    /// Locks the memstore for writing until the result is dropped. Waits for another writer.
    pub fn write(&self) -> Writer<'_> {
        Writer { tree: self.tree.write(), stats: &self.stats }
    }

    /// Inserts one cell. For several cells, [`write`](Memstore::write) locks only once.
    pub fn insert(&self, cell: &Cell<'_>) {
        self.write().insert(cell);
    }

    /// Bytes of the cells, serialized (HBase's data size).
    pub fn data_bytes(&self) -> u64 {
        self.stats.data_bytes.load(Relaxed)
    }

    /// Bytes of memory that the cells occupy. This is at least
    /// [`data_bytes`](Memstore::data_bytes), except during an insert, which updates `data_bytes`
    /// first.
    pub fn heap_bytes(&self) -> u64 {
        self.tree.arena_bytes()
    }

    /// Number of cells inserted.
    pub fn cell_count(&self) -> u64 {
        self.stats.cells.load(Relaxed)
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.cell_count() == 0
    }

    /// Number of `DeleteFamily` and `DeleteFamilyVersion` markers.
    pub fn family_delete_count(&self) -> u64 {
        self.stats.family_deletes.load(Relaxed)
    }

    /// Greatest sequence id inserted; 0 if there are no cells.
    pub fn max_seq_id(&self) -> u64 {
        self.stats.seq_id_max.load(Relaxed)
    }

    /// Smallest and largest timestamp; `None` if there are no cells. The range of a marker that
    /// deletes all earlier versions starts at 0, as in a file's time range.
    pub fn timestamps(&self) -> Option<(i64, i64)> {
        let (from, to) = (self.stats.timestamp_from.load(Relaxed), self.stats.timestamp_to.load(Relaxed));
        (from <= to).then_some((from, to))
    }

    /// Whether there may be a cell with a timestamp in `range` that is not before `oldest`.
    pub fn may_have_time(&self, range: TimeRange, oldest: i64) -> bool {
        self.timestamps().is_some_and(|(from, to)| {
            to >= oldest
                && (range.is_all() || ((from < range.to || range.to == i64::MAX) && to >= range.from))
        })
    }

    /// A cursor that is at no cell yet. It keeps the cells alive.
    pub fn cursor(&self) -> Cursor {
        Cursor(tree::Cursor::new(self.tree.clone()))
    }
}

/// The only writer of a memstore, as long as it lives.
pub struct Writer<'a> {
    tree: tree::Writer<'a>,
    stats: &'a MemstoreStats,
}

impl Writer<'_> {
    /// Copies a cell in. It replaces a cell with the same key and sequence id, as in HBase's
    /// `CellSet`.
    ///
    /// The key must be well formed: untrusted cells are validated on input.
    pub fn insert(&mut self, cell: &Cell<'_>) {
        // Update the statistics first, so that they cover every cell that a reader can find.
        self.stats.count(cell);
        self.tree.insert(cell);
    }

    /// Inserts several cells; faster than one by one if they are many.
    pub fn insert_all<'c>(&mut self, cells: impl IntoIterator<Item = Cell<'c>>) {
        let mut cells = cells.into_iter();
        let Some(first) = cells.next() else { return };
        // Most writes have one cell and need no list.
        let Some(second) = cells.next() else { return self.insert(&first) };
        let mut group = Vec::with_capacity(tree::GROUP_LEN);
        group.extend([first, second]);
        while !group.is_empty() {
            group.extend(cells.by_ref().take(tree::GROUP_LEN - group.len()));
            group.iter().for_each(|cell| self.stats.count(cell));
            self.tree.insert_group(&group);
            group.clear();
            group.extend(cells.next());
        }
    }
}

impl MemstoreStats {
    /// Called under the writer's lock, so plain loads and stores are enough.
    fn count(&self, cell: &Cell<'_>) {
        let add = |stat: &AtomicU64, more: u64| stat.store(stat.load(Relaxed) + more, Relaxed);
        add(&self.data_bytes, cell.serialized_len() as u64);
        add(&self.cells, 1);
        if cell.seq_id > self.seq_id_max.load(Relaxed) {
            self.seq_id_max.store(cell.seq_id, Relaxed);
        }
        const REACH_BACK: [u8; 2] = [CellType::DeleteColumn as u8, CellType::DeleteFamily as u8];
        const OF_FAMILY: [u8; 2] = [CellType::DeleteFamilyVersion as u8, CellType::DeleteFamily as u8];
        let (timestamp, type_code) = (cell.timestamp(), cell.type_code());
        if OF_FAMILY.contains(&type_code) {
            add(&self.family_deletes, 1);
        }
        let from = if REACH_BACK.contains(&type_code) { timestamp.min(0) } else { timestamp };
        if from < self.timestamp_from.load(Relaxed) {
            self.timestamp_from.store(from, Relaxed);
        }
        if timestamp > self.timestamp_to.load(Relaxed) {
            self.timestamp_to.store(timestamp, Relaxed);
        }
    }
}

/// A position in a memstore: at a cell, or at none (before the first seek, past the end).
pub struct Cursor(tree::Cursor);

impl Cursor {
    /// Moves to the first cell whose key is not before `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.0.seek(key);
    }

    /// Like [`seek`](Cursor::seek), for a `key` that is not before the current cell's. Fast if the
    /// target is near. A cursor past the end stays there.
    pub fn seek_forward(&mut self, key: &[u8]) {
        self.0.seek_forward(key);
    }

    /// Moves to the last cell whose key is before `key`, or to none if there is no such cell.
    pub fn seek_before(&mut self, key: &[u8]) {
        self.0.seek_before(key);
    }

    /// Moves to the next cell. A cursor past the end stays there.
    pub fn next(&mut self) {
        self.0.next();
    }

    /// The current cell.
    #[inline]
    pub fn cell(&self) -> Option<Cell<'_>> {
        self.0.cell()
    }
}

#[cfg(test)]
mod tests;
