//! The sorted entries of a memstore: a B+ tree whose pages and entries are in one arena.
//!
//! One writer at a time holds the tree's lock, through [`Writer`]. Readers take no lock. Pages and
//! entries are freed only with the tree, when its last reference is dropped. So an entry that a
//! reader has found stays valid while the reader holds the tree.
//!
//! Cells are never removed. A write that has two cells with the same key replaces the first one by
//! the second, before readers may see the write.
//!
//! ```text
//! inner pages     [ entry, child | entry, child | ... ] --next--> ...
//! leaves          [ entry | entry | ... ] --next--> ...
//! ```
//!
//! An inner page has one entry per child: the least entry in the leaves below that child. The first
//! entry of a level is an exception: later inserts can put smaller entries below its child.
//!
//! A page also has the *head* of each entry's row: the eight bytes after the *common prefix* of the
//! rows, as an integer. Most comparisons compare only heads. The common prefix is left out because
//! it does not distinguish rows (`user…`, numbers with leading zeros). It comes from the previous
//! memstore, or from the first cells. A search that begins before it is set compares whole keys.
//!
//! All `unsafe` code of the memstore is here and in `page`, `entry` and `arena`. It relies on two
//! invariants:
//! 1. An entry is complete before a pointer to it is stored into a page (with Release). It never
//!    changes afterwards. A thread that loads the pointer (with Acquire) sees the complete entry.
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

/// Number of cells that a forward seek passes one by one before it searches from the root.
const SEEK_STEPS: usize = 4;

/// Maximum number of cells of [`Writer::insert_group`].
pub(super) const GROUP_LEN: usize = 16;

/// Number of cells after which the common prefix is computed, if it is not set by then.
const PREFIX_SAMPLE_CELLS: usize = 256;

/// Sorted cells. More can be inserted, none removed.
pub(super) struct Tree {
    order: CellOrder,
    // The common prefix of most rows. The heads of all entries are stored before it is set, so a
    // thread that sees the common prefix also sees the heads.
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

// SAFETY: the raw pointers point into the arena that the tree owns. Entries do not change, and all
// fields of pages that change are atomics. The writer's pointers are used under its lock.
unsafe impl Send for Tree {}
// SAFETY: as above.
unsafe impl Sync for Tree {}

/// The key of a search, and the head of its row.
struct SearchTarget<'a> {
    // `None` if heads are not compared.
    row_head: Option<u64>,
    key: &'a [u8],
}

/// Length of a head in bytes.
pub(super) const ROW_HEAD_LEN: usize = 8;

/// The head of `key`'s row: the eight bytes after `common_prefix`. A row that does not begin with
/// `common_prefix` gets the least or the greatest value. In orders other than `Plain` all heads are
/// 0.
///
/// The row with the smaller head comes first. Different rows can have equal heads.
#[inline]
fn row_head_of(order: CellOrder, common_prefix: &[u8], key: &[u8]) -> u64 {
    if order != CellOrder::Plain {
        return 0;
    }
    let row = key::row(key);
    let Some(rest) = row.strip_prefix(common_prefix) else {
        return if row < common_prefix { 0 } else { u64::MAX };
    };
    let row_head = match rest.first_chunk::<ROW_HEAD_LEN>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; ROW_HEAD_LEN];
            padded[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(padded)
        }
    };
    row_head.clamp(1, u64::MAX - 1)
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
        // While this holds the lock, no cell is inserted.
        let _writer = self.write();
        if self.root().is_none() {
            // Has no effect if the common prefix was set before.
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

    /// Locks the tree for writing, even if an earlier writer has panicked.
    pub(super) fn write(&self) -> Writer<'_> {
        Writer { tree: self, state: self.state.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    #[inline]
    fn target<'a>(&self, key: &'a [u8]) -> SearchTarget<'a> {
        SearchTarget {
            row_head: self.common_prefix.get().map(|common| row_head_of(self.order, common, key)),
            key,
        }
    }

    #[inline]
    fn compare_key(&self, row_head: u64, entry: NonNull<Entry>, target: &SearchTarget<'_>) -> Ordering {
        let by_head = target.row_head.map_or(Ordering::Equal, |target| row_head.cmp(&target));
        // SAFETY: an entry of this tree (invariants 1 and 2).
        by_head.then_with(|| self.order.compare_keys(unsafe { key_of(entry) }, target.key))
    }

    /// Compares the entry with a cell that has the target's key and the sequence id `seq_id`. Among
    /// equal keys, the greater sequence id comes first.
    #[inline]
    fn compare(
        &self,
        row_head: u64,
        entry: NonNull<Entry>,
        target: &SearchTarget<'_>,
        seq_id: u64,
    ) -> Ordering {
        // SAFETY: as above.
        self.compare_key(row_head, entry, target).then_with(|| seq_id.cmp(&unsafe { seq_id_of(entry) }))
    }

    /// A predicate that holds for the entries before the cell with the target's key and `seq_id`.
    #[inline]
    fn predicate_before(&self, target: &SearchTarget<'_>, seq_id: u64) -> impl SortsBefore {
        move |row_head, entry| self.compare(row_head, entry, target, seq_id) == Ordering::Less
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

    /// Whether the entries of a page are in strictly ascending order. Only for the writer.
    fn is_sorted(&self, page: PageRef) -> bool {
        // The first entry of a level may be out of order, see the module documentation.
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
        let is_before = |row_head, entry| self.compare_key(row_head, entry, &target) == Ordering::Less;
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
    /// The entry after a position; `None` at the end of the tree.
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

    /// The first entry of `page`, which must not be empty.
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

    /// Inserts copies of at most [`GROUP_LEN`] cells. Each search waits for memory at every page.
    /// The searches of a group therefore advance together, level by level, so that their waits
    /// overlap.
    pub(super) fn insert_group(&mut self, cells: &[Cell<'_>]) {
        debug_assert!(cells.len() <= GROUP_LEN, "a group has at most GROUP_LEN cells");
        let starts = self.prefetch_leaves(cells);
        for (cell, start) in cells.iter().zip(starts) {
            self.insert_from(start, cell);
        }
    }

    /// Finds and prefetches the leaf of each cell. All elements are `None` if the tree is empty, or
    /// if the first cell belongs into the leaf of the last insert.
    fn prefetch_leaves(&self, cells: &[Cell<'_>]) -> [Option<PageRef>; GROUP_LEN] {
        let none = [None; GROUP_LEN];
        let (Some(root), Some(first)) = (self.tree.root(), cells.first()) else { return none };
        if self.hinted_leaf(&self.tree.predicate_before(&self.tree.target(first.key), first.seq_id)).is_some()
        {
            // Cells usually arrive in order, so the other cells belong there too.
            return none;
        }
        let mut pages = [root; GROUP_LEN];
        for level in (0..root.level()).rev() {
            for (page, cell) in pages.iter_mut().zip(cells) {
                let target = self.tree.target(cell.key);
                if let SearchStep::To(below) =
                    page.search_step(&self.tree.predicate_before(&target, cell.seq_id))
                {
                    below.prefetch(level);
                    *page = below;
                }
            }
        }
        pages.map(Some)
    }

    /// Inserts a copy of a cell. `start` is the cell's leaf if it is known. If that leaf was split
    /// since, the search continues to the leaves after it.
    fn insert_from(&mut self, start: Option<PageRef>, cell: &Cell<'_>) {
        let target = self.tree.target(cell.key);
        let slot = (target.row_head.unwrap_or_default(), Entry::copy(&mut self.state.arena, cell));
        self.insert_slot(start, slot, &target, cell.seq_id);
        self.tree.arena_bytes.store(self.state.arena.chunk_bytes() as u64, Relaxed);
        if target.row_head.is_none() {
            self.state.cells_without_prefix += 1;
            if self.state.cells_without_prefix == PREFIX_SAMPLE_CELLS {
                self.set_prefix_from_cells();
            }
        }
    }

    /// Sets the heads of the current cells, then the common prefix.
    fn set_prefix_from_cells(&mut self) {
        let Some((first, last)) = self.tree.first_and_last() else { return };
        let common_prefix: Box<[u8]> = common_prefix(first.row(), last.row()).into();
        // SAFETY: entries of this tree.
        let row_head_of = |entry| row_head_of(self.tree.order, &common_prefix, unsafe { key_of(entry) });
        let mut first_of_level = self.tree.root();
        while let Some(leftmost) = first_of_level {
            std::iter::successors(Some(leftmost), |page| page.next_page())
                .for_each(|page| page.set_row_heads(row_head_of));
            first_of_level = (leftmost.level() > 0).then(|| leftmost.child_at(0));
        }
        // No other thread can set the common prefix, because this thread holds the writer's lock.
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
        let is_before = tree.predicate_before(target, seq_id);
        let leaf = self.leaf_for(start, &is_before);
        let index = leaf.index_of(&is_before);
        // The entry after the insert position may be the first one of the next page.
        let (after, after_index) = match leaf.next_page() {
            Some(next) if index == leaf.len() => (next, 0),
            _ => (leaf, index),
        };
        if after_index < after.len() {
            let (row_head, entry) = after.entry(after_index);
            if tree.compare(row_head, entry, target, seq_id) == Ordering::Equal {
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

    /// The leaf of the last insert, if the target belongs there. `is_before` holds for the entries
    /// before the target.
    fn hinted_leaf(&self, is_before: &impl SortsBefore) -> Option<PageRef> {
        // SAFETY: a page of this tree's arena.
        let hint = unsafe { PageRef::of(self.state.hint) }?;
        let (row_head, first) = hint.entry(0);
        (is_before(row_head, first) && !hint.ends_before(is_before)).then_some(hint)
    }

    /// The leaf in which the target belongs. `is_before` holds for the entries before the target.
    /// The search starts at `start`. Without `start`, the leaf of the last insert is checked first,
    /// and then the search starts at the root. In an empty tree, this creates the root.
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

    /// Splits the page `full` into itself and a new page, and inserts an entry at `index`. Returns
    /// the new page, and the page that received the entry.
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
            // Inserts in ascending order leave full pages, not half-full ones.
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
        let is_before = |cell: Cell<'_>| self.tree.order.compare_keys(cell.key, key) == Ordering::Less;
        if self.cell().is_some_and(is_before) {
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
            // The page has changed.
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
        self.tree.first_after(&|row_head, other| {
            self.tree.compare(row_head, other, &target, cell.seq_id) != Ordering::Greater
        })
    }

    #[inline]
    pub(super) fn cell(&self) -> Option<Cell<'_>> {
        // SAFETY: an entry of the tree that this cursor holds.
        self.position.map(|position| unsafe { cell_of(position.entry) })
    }
}
