//! The sorted entries of a memstore: a B+ tree whose pages and entries are in one arena.
//!
//! There is one writer at a time, which holds the tree's lock through [`Writer`], and any number of
//! readers without a lock. Nothing is freed before the tree, so what a reader found stays valid as
//! long as the tree. All memory is freed with the last reference to the tree. A cell is replaced
//! only by one with the same key and sequence id, that is, by the same write, which no reader sees
//! yet.
//!
//! ```text
//! inner pages     [ entry, child | entry, child | ... ] --next--> ...
//! leaves          [ entry | entry | ... ] --next--> ...
//! ```
//!
//! The entry of an inner page is the least one below its child.
//!
//! For each entry, the page has a row prefix as an integer, so that most comparisons are integer
//! comparisons. It consists of the eight bytes of the row after the common prefix of the rows,
//! because the first bytes often do not distinguish rows (`user…`, numbers with leading zeros). The
//! common prefix comes from the previous memstore, or from the first cells. Row prefixes are
//! ignored until it is set, and in searches that began before.
//!
//! All `unsafe` code of the memstore is here and in `page`, `entry` and `arena`. It relies on two
//! invariants:
//! 1. An entry is written before it is put into a page, with Release, and never again. A thread
//!    that loads it from a page, with Acquire, sees it complete.
//! 2. Arena memory is freed only when the tree is dropped, and every [`Cursor`] holds the tree.

use std::cmp::Ordering;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cell::{Cell, CellOrder, key};

use super::arena::Arena;
use super::common_prefix;
use super::entry::{Entry, cell_of, key_of, seq_id_of};
use super::page::{ENTRIES_MAX, LeafPosition, Page, PageRef, SearchStep, SortsBefore};

/// Cells that a forward seek steps over before it searches from the root.
const SEEK_STEPS: usize = 4;

/// Number of cells whose leaves are searched for together.
pub(super) const GROUP_LEN: usize = 16;

/// Number of cells from which the common prefix is computed, if it was not set before.
const PREFIX_SAMPLE_CELLS: usize = 256;

/// Sorted cells. More can be inserted, none removed.
pub(super) struct Tree {
    order: CellOrder,
    // The common prefix of most rows. It is set after all row prefixes are computed from it, so a
    // thread that sees it sees them too.
    common_prefix: OnceLock<Box<[u8]>>,
    // Null before the first cell.
    root: AtomicPtr<Page>,
    arena_bytes: AtomicU64,
    state: Mutex<WriterState>,
}

/// State that only the writer uses.
struct WriterState {
    arena: Arena,
    // The leaf of the last insert, or null. Rows in ascending order are inserted there without a
    // search.
    hint: *mut Page,
    // Number of cells inserted before the common prefix was set.
    cells_without_prefix: usize,
}

// SAFETY: the raw pointers point into the arena that the tree owns. Readers only follow pages and
// entries, which are atomics or never written again. The writer's pointers are used under its lock.
unsafe impl Send for Tree {}
// SAFETY: as above.
unsafe impl Sync for Tree {}

/// A key that is searched for, and the prefix of its row.
struct SearchTarget<'a> {
    // `None`: row prefixes are ignored.
    row_prefix: Option<u64>,
    key: &'a [u8],
}

/// Length in bytes of a row prefix.
pub(super) const ROW_PREFIX_LEN: usize = 8;

/// The row prefix of `key`: the eight bytes after `common_prefix`. Row prefixes order as the rows
/// do, but different rows may have equal ones. A row that does not begin with `common_prefix` gets
/// the least or greatest value. Other orders than `Plain` have no row prefixes: all are 0.
#[inline]
fn row_prefix_of(order: CellOrder, common_prefix: &[u8], key: &[u8]) -> u64 {
    if order != CellOrder::Plain {
        return 0;
    }
    let row = key::row(key);
    let Some(rest) = row.strip_prefix(common_prefix) else {
        return if row < common_prefix { 0 } else { u64::MAX };
    };
    let row_prefix = match rest.first_chunk::<ROW_PREFIX_LEN>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; ROW_PREFIX_LEN];
            padded[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(padded)
        }
    };
    row_prefix.clamp(1, u64::MAX - 1)
}

impl Tree {
    pub(super) fn new(order: CellOrder) -> Tree {
        Tree {
            order,
            common_prefix: OnceLock::new(),
            root: AtomicPtr::new(ptr::null_mut()),
            arena_bytes: AtomicU64::new(0),
            state: Mutex::new(WriterState {
                arena: Arena::new(),
                hint: ptr::null_mut(),
                cells_without_prefix: 0,
            }),
        }
    }

    /// Bytes of memory that the cells occupy.
    pub(super) fn arena_bytes(&self) -> u64 {
        self.arena_bytes.load(Relaxed)
    }

    pub(super) fn order(&self) -> CellOrder {
        self.order
    }

    /// Sets the common prefix that most rows will have, if there is no cell yet.
    pub(super) fn set_common_prefix(&self, common_prefix: &[u8]) {
        // No cell is inserted meanwhile.
        let _writer = self.write();
        if self.root().is_none() {
            // If it was set before, it stays.
            let _ = self.common_prefix.set(common_prefix.into());
        }
    }

    /// The first and the last cell.
    pub(super) fn first_and_last(&self) -> Option<(Cell<'_>, Cell<'_>)> {
        let first = self.first_after(&|_, _| false)?.entry;
        let last = NonNull::new(self.find(&|_, _| true)?.before)?;
        // SAFETY: entries of this tree.
        Some(unsafe { (cell_of(first), cell_of(last)) })
    }

    /// Locks the tree for writing. A panicked writer leaves the tree consistent: pages change by
    /// plain stores.
    pub(super) fn write(&self) -> Writer<'_> {
        Writer { tree: self, state: self.state.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    #[inline]
    fn target<'a>(&self, key: &'a [u8]) -> SearchTarget<'a> {
        SearchTarget {
            row_prefix: self.common_prefix.get().map(|common| row_prefix_of(self.order, common, key)),
            key,
        }
    }

    #[inline]
    fn compare_key(&self, row_prefix: u64, entry: NonNull<Entry>, target: &SearchTarget<'_>) -> Ordering {
        let by_row_prefix = target.row_prefix.map_or(Ordering::Equal, |target| row_prefix.cmp(&target));
        // SAFETY: an entry of this tree (invariants 1 and 2).
        by_row_prefix.then_with(|| self.order.compare_keys(unsafe { key_of(entry) }, target.key))
    }

    /// Compares the entry with a cell of the target's key and of `seq_id`. Of equal keys the
    /// greater id comes first.
    #[inline]
    fn compare(
        &self,
        row_prefix: u64,
        entry: NonNull<Entry>,
        target: &SearchTarget<'_>,
        seq_id: u64,
    ) -> Ordering {
        // SAFETY: as above.
        self.compare_key(row_prefix, entry, target).then_with(|| seq_id.cmp(&unsafe { seq_id_of(entry) }))
    }

    /// A predicate that holds for entries before the target's cell of `seq_id`.
    #[inline]
    fn before(&self, target: &SearchTarget<'_>, seq_id: u64) -> impl SortsBefore {
        move |row_prefix, entry| self.compare(row_prefix, entry, target, seq_id) == Ordering::Less
    }

    #[inline]
    fn root(&self) -> Option<PageRef> {
        // SAFETY: a page of this tree's arena (invariant 2).
        unsafe { PageRef::of(self.root.load(Acquire)) }
    }

    /// The position after the last entry for which `is_before` holds; `None` if there are no pages
    /// yet.
    #[inline]
    fn find(&self, is_before: &impl SortsBefore) -> Option<LeafPosition> {
        self.root().map(|root| self.find_below(root, is_before))
    }

    #[inline]
    fn find_below(&self, root: PageRef, is_before: &impl SortsBefore) -> LeafPosition {
        let mut page = root;
        loop {
            match page.search_step(is_before) {
                SearchStep::To(other) => page = other,
                SearchStep::Here(position) => return position,
            }
        }
    }

    /// Whether the entries of a page are in order, each once. For the writer.
    fn is_sorted(&self, page: PageRef) -> bool {
        // The first entry of an inner page may be out of order.
        let first = usize::from(page.level() > 0);
        // SAFETY: entries of this tree.
        let cells = (first..page.len()).map(|at| unsafe { cell_of(page.entry(at).1) });
        cells.is_sorted_by(|left, right| self.order.compare(left, right) == Ordering::Less)
    }

    /// The position after the last entry before `key`.
    #[inline]
    fn find_key(&self, key: &[u8]) -> Option<LeafPosition> {
        let root = self.root()?;
        let target = self.target(key);
        let is_before = |row_prefix, entry| self.compare_key(row_prefix, entry, &target) == Ordering::Less;
        Some(self.find_below(root, &is_before))
    }

    /// The first entry for which `is_before` does not hold.
    #[inline]
    fn first_after(&self, is_before: &impl SortsBefore) -> Option<EntryPosition> {
        self.find(is_before).and_then(EntryPosition::after)
    }
}

/// The entry that a cursor is at.
#[derive(Clone, Copy)]
struct EntryPosition {
    page: PageRef,
    index: usize,
    // The version of the page when the entry was at this index.
    version: u32,
    entry: NonNull<Entry>,
}

impl EntryPosition {
    /// At the entry after a position.
    #[inline]
    fn after(position: LeafPosition) -> Option<EntryPosition> {
        match NonNull::new(position.after) {
            Some(entry) => Some(EntryPosition {
                page: position.page,
                index: position.index,
                version: position.version,
                entry,
            }),
            None => position.next.map(EntryPosition::first_of),
        }
    }

    /// At the first entry of a page that follows another one, and so is never empty.
    fn first_of(page: PageRef) -> EntryPosition {
        loop {
            let version = page.begin_read();
            if let Some(entry) = page.entry_at(0, version).and_then(NonNull::new) {
                return EntryPosition { page, index: 0, version, entry };
            }
        }
    }
}

/// The only writer of a tree, as long as it lives.
pub(super) struct Writer<'a> {
    tree: &'a Tree,
    state: MutexGuard<'a, WriterState>,
}

impl Writer<'_> {
    /// Inserts a copy of a cell. It replaces a cell with the same key and sequence id.
    pub(super) fn insert(&mut self, cell: &Cell<'_>) {
        self.insert_from(None, cell);
    }

    /// Inserts copies of several cells, at most [`GROUP_LEN`]. A search waits for memory at every
    /// page, so all searches of a group advance together, level by level, and their waits overlap.
    pub(super) fn insert_group(&mut self, cells: &[Cell<'_>]) {
        debug_assert!(cells.len() <= GROUP_LEN, "each cell of a group has a start");
        let starts = self.prefetch_leaves(cells);
        for (cell, start) in cells.iter().zip(starts) {
            self.insert_from(start, cell);
        }
    }

    /// Finds and prefetches the leaf of each cell. A later insert may split it. Returns only `None`
    /// if the hint makes searches unnecessary.
    fn prefetch_leaves(&self, cells: &[Cell<'_>]) -> [Option<PageRef>; GROUP_LEN] {
        let none = [None; GROUP_LEN];
        let (Some(root), Some(first)) = (self.tree.root(), cells.first()) else { return none };
        if self.hinted_leaf(&self.tree.before(&self.tree.target(first.key), first.seq_id)).is_some() {
            // The cells come in order, so the hint finds their leaves.
            return none;
        }
        let mut pages = [root; GROUP_LEN];
        for level in (0..root.level()).rev() {
            for (page, cell) in pages.iter_mut().zip(cells) {
                let target = self.tree.target(cell.key);
                if let SearchStep::To(below) = page.search_step(&self.tree.before(&target, cell.seq_id)) {
                    below.prefetch(level);
                    *page = below;
                }
            }
        }
        pages.map(Some)
    }

    /// Inserts a copy of a cell. The search starts at the page `start`, if given. It is the cell's
    /// leaf, or was before later inserts split pages off from it.
    fn insert_from(&mut self, start: Option<PageRef>, cell: &Cell<'_>) {
        let target = self.tree.target(cell.key);
        let slot = (target.row_prefix.unwrap_or_default(), Entry::copy(&mut self.state.arena, cell));
        self.insert_slot(start, slot, &target, cell.seq_id);
        self.tree.arena_bytes.store(self.state.arena.chunk_bytes() as u64, Relaxed);
        if target.row_prefix.is_none() {
            self.state.cells_without_prefix += 1;
            if self.state.cells_without_prefix == PREFIX_SAMPLE_CELLS {
                self.set_prefix_from_cells();
            }
        }
    }

    /// Computes the common prefix and the row prefixes of the current cells, then sets the former.
    fn set_prefix_from_cells(&mut self) {
        let Some((first, last)) = self.tree.first_and_last() else { return };
        let common_prefix: Box<[u8]> = common_prefix(first.row(), last.row()).into();
        // SAFETY: entries of this tree.
        let row_prefix_of = |entry| row_prefix_of(self.tree.order, &common_prefix, unsafe { key_of(entry) });
        let mut first_of_level = self.tree.root();
        while let Some(leftmost) = first_of_level {
            std::iter::successors(Some(leftmost), |page| page.next_page())
                .for_each(|page| page.set_row_prefixes(row_prefix_of));
            first_of_level = (leftmost.level() > 0).then(|| leftmost.child_at(0));
        }
        // A thread that sees the common prefix sees the row prefixes too. No other thread sets it,
        // because that takes the writer's lock.
        let set = self.tree.common_prefix.set(common_prefix);
        debug_assert!(set.is_ok(), "the common prefix is set once");
    }

    fn insert_slot(
        &mut self,
        start: Option<PageRef>,
        slot: (u64, NonNull<Entry>),
        target: &SearchTarget<'_>,
        seq_id: u64,
    ) {
        let tree = self.tree;
        let is_before = tree.before(target, seq_id);
        let leaf = self.leaf_for(start, &is_before);
        let index = leaf.index_of(&is_before);
        // The following entry may be the first of the next page.
        let (after, after_index) = match leaf.next_page() {
            Some(next) if index == leaf.len() => (next, 0),
            _ => (leaf, index),
        };
        if after_index < after.len() {
            let (row_prefix, entry) = after.entry(after_index);
            if tree.compare(row_prefix, entry, target, seq_id) == Ordering::Equal {
                return after.replace(after_index, slot.1);
            }
        }
        let holder = match leaf.len() < ENTRIES_MAX {
            true => {
                leaf.insert(index, slot, ptr::null_mut());
                leaf
            }
            false => {
                let path = self.path_to(&is_before, leaf);
                let (right, holder) = self.split(leaf, index, slot, ptr::null_mut());
                self.insert_above(path, leaf, right);
                holder
            }
        };
        self.state.hint = holder.as_ptr();
    }

    /// The leaf of the last insert, if it has the last entry for which `is_before` holds.
    fn hinted_leaf(&self, is_before: &impl SortsBefore) -> Option<PageRef> {
        // SAFETY: a page of this tree's arena.
        let hint = unsafe { PageRef::of(self.state.hint) }?;
        let (row_prefix, first) = hint.entry(0);
        (is_before(row_prefix, first) && !hint.ends_before(is_before)).then_some(hint)
    }

    /// The leaf that has the last entry for which `is_before` holds. The search starts at `start`,
    /// or without it at the hint or the root. In an empty tree, this creates the root.
    fn leaf_for(&mut self, start: Option<PageRef>, is_before: &impl SortsBefore) -> PageRef {
        let hinted = if start.is_none() { self.hinted_leaf(is_before) } else { None };
        let tree = self.tree;
        let found = || Some(tree.find_below(start.or_else(|| tree.root())?, is_before).page);
        hinted.or_else(found).unwrap_or_else(|| {
            let root = PageRef::make(&mut self.state.arena, 0);
            self.tree.root.store(root.as_ptr(), Release);
            root
        })
    }

    /// The inner pages from the root down to the one above `leaf`.
    fn path_to(&self, is_before: &impl SortsBefore, leaf: PageRef) -> Vec<PageRef> {
        let mut path = Vec::new();
        let mut at = self.tree.root().expect("there is a leaf");
        while at != leaf {
            path.push(at);
            at = at.child_at(at.index_of(is_before));
        }
        path
    }

    /// Splits a full page and inserts an entry at its `index`. Returns the new right page, and the
    /// page that has the entry.
    fn split(
        &mut self,
        full: PageRef,
        index: usize,
        slot: (u64, NonNull<Entry>),
        child: *mut Page,
    ) -> (PageRef, PageRef) {
        const HALF: usize = ENTRIES_MAX / 2;
        debug_assert!(self.tree.is_sorted(full), "the entries of a page are in order");
        let right = PageRef::make(&mut self.state.arena, full.level());
        if index == ENTRIES_MAX && full.next_page().is_none() {
            // Rows in ascending order: earlier pages stay full.
            full.append(right, slot, child);
            return (right, right);
        }
        full.split(HALF, right);
        if index <= HALF {
            full.insert(index, slot, child);
            return (right, full);
        }
        right.insert(index - HALF, slot, child);
        (right, right)
    }

    /// Adds `right`, which was split off from `left`, to the inner pages of `path`.
    fn insert_above(&mut self, mut path: Vec<PageRef>, mut left: PageRef, mut right: PageRef) {
        loop {
            let slot = right.entry(0);
            let Some(above) = path.pop() else {
                let root = PageRef::make(&mut self.state.arena, left.level() + 1);
                root.insert(0, left.entry(0), left.as_ptr());
                root.insert(1, slot, right.as_ptr());
                return self.tree.root.store(root.as_ptr(), Release);
            };
            debug_assert!(above.level() == left.level() + 1, "a page is one level below its parent");
            let index = 1
                + (0..above.len())
                    .position(|at| above.child_at(at) == left)
                    .expect("a page is a child of the page above it");
            if above.len() < ENTRIES_MAX {
                return above.insert(index, slot, right.as_ptr());
            }
            (left, right) = (above, self.split(above, index, slot, right.as_ptr()).0);
        }
    }
}

/// A position in a tree: at a cell, or at none (before the first seek, past the end).
pub(super) struct Cursor {
    tree: Arc<Tree>,
    position: Option<EntryPosition>,
}

// SAFETY: pages and entries are only read, and the cursor holds the tree that owns them.
unsafe impl Send for Cursor {}
// SAFETY: as above; nothing changes through a shared reference.
unsafe impl Sync for Cursor {}

impl Cursor {
    pub(super) fn new(tree: Arc<Tree>) -> Cursor {
        Cursor { tree, position: None }
    }

    pub(super) fn seek(&mut self, key: &[u8]) {
        self.position = self.tree.find_key(key).and_then(EntryPosition::after);
    }

    pub(super) fn seek_forward(&mut self, key: &[u8]) {
        for _ in 0..SEEK_STEPS {
            match self.cell() {
                Some(cell) if self.tree.order.compare_keys(cell.key, key) == Ordering::Less => self.next(),
                _ => return,
            }
        }
        let is_short = |cell: Cell<'_>| self.tree.order.compare_keys(cell.key, key) == Ordering::Less;
        if self.cell().is_some_and(is_short) {
            self.seek(key);
        }
    }

    pub(super) fn seek_before(&mut self, key: &[u8]) {
        self.position = self.tree.find_key(key).and_then(|position| {
            let entry = NonNull::new(position.before)?;
            Some(EntryPosition {
                page: position.page,
                index: position.index - 1,
                version: position.version,
                entry,
            })
        });
    }

    #[inline]
    pub(super) fn next(&mut self) {
        let Some(EntryPosition { page, index, version, entry }) = self.position else { return };
        self.position = match page.entry_at(index + 1, version).map(NonNull::new) {
            Some(Some(entry)) => Some(EntryPosition { page, index: index + 1, version, entry }),
            Some(None) => match page.next_page_at(version) {
                Some(next) => next.map(EntryPosition::first_of),
                None => self.first_after_entry(entry),
            },
            // The page changed since.
            None => self.first_after_entry(entry),
        };
        debug_assert!(self.is_after(entry), "a step goes forward");
    }

    /// Whether the cursor is at no entry, or at one after `entry`.
    fn is_after(&self, entry: NonNull<Entry>) -> bool {
        // SAFETY: an entry of the tree that this cursor holds.
        let before = unsafe { cell_of(entry) };
        self.cell().is_none_or(|cell| self.tree.order.compare(&before, &cell) == Ordering::Less)
    }

    /// The entry after `entry`.
    fn first_after_entry(&self, entry: NonNull<Entry>) -> Option<EntryPosition> {
        // SAFETY: an entry of the tree that this cursor holds.
        let cell = unsafe { cell_of(entry) };
        let target = self.tree.target(cell.key);
        self.tree.first_after(&|row_prefix, other| {
            self.tree.compare(row_prefix, other, &target, cell.seq_id) != Ordering::Greater
        })
    }

    #[inline]
    pub(super) fn cell(&self) -> Option<Cell<'_>> {
        // SAFETY: an entry of the tree that this cursor holds.
        self.position.map(|position| unsafe { cell_of(position.entry) })
    }
}
