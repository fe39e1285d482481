//! What was written and is not in a file yet: cells in order, in memory.
//!
//! A memstore is filled by one writer at a time and read by any number of scanners without locks. Cells are copied in
//! and stay until the whole memstore is dropped, which a scanner's [`Cursor`] defers. It knows nothing of read points:
//! a cell is there as soon as it is inserted, and who reads passes over sequence ids that it may not see.

mod arena;
mod entry;
mod page;
mod tree;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use cell::key::common_len;
use cell::query::TimeRange;
use cell::{Cell, CellOrder, CellType};

use tree::Tree;

/// Cells in HBase's order, newest write of equal keys first.
pub struct Memstore {
    tree: Arc<Tree>,
    figures: Figures,
}

/// What rows from `first` to `last` begin with, and most others of their region are likely to.
///
/// It leaves as many bytes of a row as a memstore can tell rows by: the first thousand of a million numbers have more zeros in front
/// than all have, and if these were said to be common, those behind would not be told apart.
pub fn common_front<'a>(first: &'a [u8], last: &[u8]) -> &'a [u8] {
    let left = first.len().min(last.len()).saturating_sub(tree::NUMBER_LEN);
    &first[..common_len(first, last).min(left)]
}

/// Changed by the writer only, read by anyone.
struct Figures {
    data_bytes: AtomicU64,
    cells: AtomicU64,
    family_deletes: AtomicU64,
    seq_id_max: AtomicU64,
    // Empty while `from` is behind `to`.
    timestamp_from: AtomicI64,
    timestamp_to: AtomicI64,
}

impl Memstore {
    /// An empty memstore; it takes next to no memory before the first cell.
    pub fn new(order: CellOrder) -> Memstore {
        Memstore {
            tree: Arc::new(Tree::new(order)),
            figures: Figures {
                data_bytes: AtomicU64::new(0),
                cells: AtomicU64::new(0),
                family_deletes: AtomicU64::new(0),
                seq_id_max: AtomicU64::new(0),
                timestamp_from: AtomicI64::new(i64::MAX),
                timestamp_to: AtomicI64::new(i64::MIN),
            },
        }
    }

    /// Says what rows will begin with, as most of them do in this region: cells are then found quicker. Of no effect once
    /// there are cells, or when it was said before.
    pub fn expect_common(&self, common: &[u8]) {
        self.tree.expect_common(common);
    }

    /// What all its rows begin with, as [`common_front`] has it; `None` if there are not two.
    pub fn common_of_rows(&self) -> Option<Vec<u8>> {
        let (first, last) = self.tree.first_and_last()?;
        let (first, last) = (first.row(), last.row());
        (first != last).then(|| common_front(first, last).to_vec())
    }

    /// The order of its cells.
    pub fn order(&self) -> CellOrder {
        self.tree.order()
    }

    /// Becomes the one writer until the result is dropped; waits for another one.
    pub fn write(&self) -> Writer<'_> {
        Writer { tree: self.tree.write(), figures: &self.figures }
    }

    /// Inserts one cell; for several, [`write`](Memstore::write) locks once.
    pub fn insert(&self, cell: &Cell<'_>) {
        self.write().insert(cell);
    }

    /// Bytes of the cells, serialized (HBase's data size).
    pub fn data_bytes(&self) -> u64 {
        self.figures.data_bytes.load(Relaxed)
    }

    /// Bytes of memory that the cells take; behind an insert at least [`data_bytes`](Memstore::data_bytes).
    pub fn heap_bytes(&self) -> u64 {
        self.tree.arena_bytes()
    }

    /// Cells inserted.
    pub fn cell_count(&self) -> u64 {
        self.figures.cells.load(Relaxed)
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.cell_count() == 0
    }

    /// Markers that delete a family, or a version of one, among the cells.
    pub fn family_delete_count(&self) -> u64 {
        self.figures.family_deletes.load(Relaxed)
    }

    /// Greatest sequence id inserted; 0 if there are no cells.
    pub fn max_seq_id(&self) -> u64 {
        self.figures.seq_id_max.load(Relaxed)
    }

    /// Smallest and largest timestamp, `None` if there are no cells. Markers that reach back to all earlier versions
    /// count from 0, as in a file's time range.
    pub fn timestamps(&self) -> Option<(i64, i64)> {
        let (from, to) = (self.figures.timestamp_from.load(Relaxed), self.figures.timestamp_to.load(Relaxed));
        (from <= to).then_some((from, to))
    }

    /// Whether a cell with a timestamp in `range` and not before `oldest` may be there.
    pub fn may_have_time(&self, range: TimeRange, oldest: i64) -> bool {
        self.timestamps().is_some_and(|(from, to)| {
            to >= oldest
                && (range.is_all() || ((from < range.to || range.to == i64::MAX) && to >= range.from))
        })
    }

    /// A cursor at no cell. It keeps the cells alive.
    pub fn cursor(&self) -> Cursor {
        Cursor(tree::Cursor::new(self.tree.clone()))
    }
}

/// The one writer of a memstore, as long as it lives.
pub struct Writer<'a> {
    tree: tree::Writer<'a>,
    figures: &'a Figures,
}

impl Writer<'_> {
    /// Copies a cell in, in place of one that is equal in key and sequence id, as HBase's `CellSet` does.
    ///
    /// The key must be well formed: cells of foreign bytes are checked where they come in.
    pub fn insert(&mut self, cell: &Cell<'_>) {
        // Figures go first, so that they cover every cell that a reader can meet.
        self.figures.count(cell);
        self.tree.insert(cell);
    }

    /// The same with several cells: quicker, if they are many.
    pub fn insert_all<'c>(&mut self, cells: impl IntoIterator<Item = Cell<'c>>) {
        let mut cells = cells.into_iter();
        let Some(first) = cells.next() else { return };
        // Most writes are of one cell, which needs no list.
        let Some(second) = cells.next() else { return self.insert(&first) };
        let mut group = Vec::with_capacity(tree::AHEAD);
        group.extend([first, second]);
        while !group.is_empty() {
            group.extend(cells.by_ref().take(tree::AHEAD - group.len()));
            group.iter().for_each(|cell| self.figures.count(cell));
            self.tree.insert_group(&group);
            group.clear();
            group.extend(cells.next());
        }
    }
}

impl Figures {
    /// Under the writer's lock, so plain loads and stores do.
    fn count(&self, cell: &Cell<'_>) {
        let add = |figure: &AtomicU64, more: u64| figure.store(figure.load(Relaxed) + more, Relaxed);
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

/// A place in a memstore: at a cell, or at none (before the first seek, past the end).
pub struct Cursor(tree::Cursor);

impl Cursor {
    /// Goes to the first cell whose key is `key` or behind it.
    pub fn seek(&mut self, key: &[u8]) {
        self.0.seek(key);
    }

    /// As [`seek`](Cursor::seek) for a `key` that is not before the current cell's; quick if it is near. Stays past the
    /// end.
    pub fn seek_forward(&mut self, key: &[u8]) {
        self.0.seek_forward(key);
    }

    /// Goes to the last cell whose key is before `key`, to none if there is no such cell.
    pub fn seek_before(&mut self, key: &[u8]) {
        self.0.seek_before(key);
    }

    /// Goes to the next cell; stays past the end.
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
