//! The sorted entries under the memstore: a B+ tree whose pages and entries lie in one arena.
//!
//! One writer at a time (it holds the tree's lock through [`Writer`]), any number of readers that take no lock. Nothing is
//! ever freed, so what a reader found stays valid as long as the tree; all memory goes at once with the last reference to
//! it. A cell is replaced only by another one of its key and sequence id, that is, by the write that it belongs to, which no
//! reader sees yet.
//!
//! ```text
//! inner pages     [ entry, child | entry, child | ... ] --next--> ...      the entry is the least below the child
//! leaves          [ entry | entry | ... ] --next--> ...
//! ```
//!
//! A number of each entry's row stands in the page, so that most comparisons are one compare of integers: it is made of the
//! eight bytes behind what rows have in common, for the first ones often tell nothing apart (`user…`, numbers with zeros in
//! front). What they have in common is known from the memstore before, or from the first cells; until it is settled, and
//! for who began before it was, numbers count for nothing.
//!
//! All `unsafe` of the memstore is here and in `page`, `entry` and `arena`. What it rests on:
//! 1. an entry is written before it is put into a page, with Release, and never again; who takes it from a page, with
//!    Acquire, sees it whole;
//! 2. arena memory is freed only when the tree is dropped, and every [`Cursor`] holds the tree.

use std::cmp::Ordering;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cell::{Cell, CellOrder, key};

use super::arena::Arena;
use super::common_front;
use super::entry::{Entry, cell_of, key_of, seq_id_of};
use super::page::{Before, ENTRIES_MAX, Page, PageRef, Place, Way};

/// Cells that a forward seek steps over before it searches from the top.
const SEEK_STEPS: usize = 4;

/// Cells whose places are looked for together.
pub(super) const AHEAD: usize = 16;

/// Cells from which it is settled what rows have in common, if nobody has said so before.
const SETTLING_CELLS: usize = 256;

/// Sorted cells, to which more come.
pub(super) struct Tree {
    order: CellOrder,
    // What most rows begin with. All numbers are by it once it is there: who sees it sees them.
    common: OnceLock<Box<[u8]>>,
    // Null before the first cell.
    root: AtomicPtr<Page>,
    arena_bytes: AtomicU64,
    state: Mutex<WriterState>,
}

/// What only the writer needs.
struct WriterState {
    arena: Arena,
    // The leaf of the last insert (null: none). Rows that come in order go there without a search.
    hint: *mut Page,
    // Inserted until it is settled what rows have in common.
    unsettled_cells: usize,
}

// SAFETY: the raw pointers lead into the arena that the tree owns; readers only follow pages and entries that are atomics or
// never written again, and the writer's pointers are used under its lock.
unsafe impl Send for Tree {}
// SAFETY: as above.
unsafe impl Sync for Tree {}

/// What a comparison needs of the key that is looked for.
struct Target<'a> {
    // `None`: numbers count for nothing.
    number: Option<u64>,
    key: &'a [u8],
}

/// Bytes of a row that its number is made of.
pub(super) const NUMBER_LEN: usize = 8;

/// A number of a row that orders as the rows do, as far as it tells them apart: the eight bytes behind `common`; rows that
/// do not begin so are before or behind all that do.
#[inline]
fn number_of(order: CellOrder, common: &[u8], key: &[u8]) -> u64 {
    if order != CellOrder::Plain {
        return 0;
    }
    let row = key::row(key);
    let Some(rest) = row.strip_prefix(common) else {
        return if row < common { 0 } else { u64::MAX };
    };
    let number = match rest.first_chunk::<NUMBER_LEN>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; NUMBER_LEN];
            padded[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(padded)
        }
    };
    number.clamp(1, u64::MAX - 1)
}

impl Tree {
    pub(super) fn new(order: CellOrder) -> Tree {
        Tree {
            order,
            common: OnceLock::new(),
            root: AtomicPtr::new(ptr::null_mut()),
            arena_bytes: AtomicU64::new(0),
            state: Mutex::new(WriterState { arena: Arena::new(), hint: ptr::null_mut(), unsettled_cells: 0 }),
        }
    }

    /// Bytes of memory that hold the cells.
    pub(super) fn arena_bytes(&self) -> u64 {
        self.arena_bytes.load(Relaxed)
    }

    pub(super) fn order(&self) -> CellOrder {
        self.order
    }

    /// Says what most rows will begin with, if there is no cell yet.
    pub(super) fn expect_common(&self, common: &[u8]) {
        // No cell comes meanwhile.
        let _writer = self.write();
        if self.root().is_none() {
            // Said before: it stays.
            let _ = self.common.set(common.into());
        }
    }

    /// The first cell and the last one.
    pub(super) fn first_and_last(&self) -> Option<(Cell<'_>, Cell<'_>)> {
        let first = self.first_behind(&|_, _| false)?.entry;
        let last = NonNull::new(self.find(&|_, _| true)?.before)?;
        // SAFETY: entries of this tree.
        Some(unsafe { (cell_of(first), cell_of(last)) })
    }

    /// Becomes the one writer. A writer that panicked left the tree whole: a page is changed by plain stores.
    pub(super) fn write(&self) -> Writer<'_> {
        Writer { tree: self, state: self.state.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    #[inline]
    fn target<'a>(&self, key: &'a [u8]) -> Target<'a> {
        Target { number: self.common.get().map(|common| number_of(self.order, common, key)), key }
    }

    #[inline]
    fn compare_key(&self, number: u64, entry: NonNull<Entry>, target: &Target<'_>) -> Ordering {
        let by_number = target.number.map_or(Ordering::Equal, |target| number.cmp(&target));
        // SAFETY: an entry of this tree (invariants 1 and 2).
        by_number.then_with(|| self.order.compare_keys(unsafe { key_of(entry) }, target.key))
    }

    /// How the entry compares with a cell of the target's key and of `seq_id`: of equal keys the greater id comes first.
    #[inline]
    fn compare(&self, number: u64, entry: NonNull<Entry>, target: &Target<'_>, seq_id: u64) -> Ordering {
        // SAFETY: as above.
        self.compare_key(number, entry, target).then_with(|| seq_id.cmp(&unsafe { seq_id_of(entry) }))
    }

    /// Holds for entries before the target's cell of `seq_id`.
    #[inline]
    fn before(&self, target: &Target<'_>, seq_id: u64) -> impl Before {
        move |number, entry| self.compare(number, entry, target, seq_id) == Ordering::Less
    }

    #[inline]
    fn root(&self) -> Option<PageRef> {
        // SAFETY: a page of this tree's arena (invariant 2).
        unsafe { PageRef::of(self.root.load(Acquire)) }
    }

    /// The place behind the last entry for which `is_before` holds; `None` if there are no pages yet.
    #[inline]
    fn find(&self, is_before: &impl Before) -> Option<Place> {
        self.root().map(|root| self.find_below(root, is_before))
    }

    #[inline]
    fn find_below(&self, root: PageRef, is_before: &impl Before) -> Place {
        let mut page = root;
        loop {
            match page.way(is_before) {
                Way::To(other) => page = other,
                Way::Here(place) => return place,
            }
        }
    }

    /// The place behind the last entry before `key`.
    #[inline]
    fn find_key(&self, key: &[u8]) -> Option<Place> {
        let root = self.root()?;
        let target = self.target(key);
        let is_before = |number, entry| self.compare_key(number, entry, &target) == Ordering::Less;
        Some(self.find_below(root, &is_before))
    }

    /// The first entry for which `is_before` does not hold.
    #[inline]
    fn first_behind(&self, is_before: &impl Before) -> Option<Stand> {
        self.find(is_before).and_then(Stand::behind)
    }
}

/// Where a cursor stands.
#[derive(Clone, Copy)]
struct Stand {
    page: PageRef,
    index: usize,
    // Of the page, when the entry was at this index.
    version: u32,
    entry: NonNull<Entry>,
}

impl Stand {
    /// At the entry behind a place.
    #[inline]
    fn behind(place: Place) -> Option<Stand> {
        match NonNull::new(place.behind) {
            Some(entry) => {
                Some(Stand { page: place.page, index: place.index, version: place.version, entry })
            }
            None => place.next.map(Stand::first_of),
        }
    }

    /// At the first entry of a page that is behind another one, and so is never empty.
    fn first_of(page: PageRef) -> Stand {
        loop {
            let version = page.begin_read();
            if let Some(entry) = page.entry_at(0, version).and_then(NonNull::new) {
                return Stand { page, index: 0, version, entry };
            }
        }
    }
}

/// The one writer of a tree, as long as it lives.
pub(super) struct Writer<'a> {
    tree: &'a Tree,
    state: MutexGuard<'a, WriterState>,
}

impl Writer<'_> {
    /// Copies a cell into its place, and into that of a cell with the same key and sequence id.
    pub(super) fn insert(&mut self, cell: &Cell<'_>) {
        self.insert_from(None, cell);
    }

    /// The same with several, at most [`AHEAD`]. The way to a place waits for memory at every page; their ways wait
    /// together.
    pub(super) fn insert_group(&mut self, cells: &[Cell<'_>]) {
        let starts = self.look_ahead(cells);
        for (cell, start) in cells.iter().zip(starts) {
            self.insert_from(start, cell);
        }
    }

    /// For each of the cells the leaf for it, whose memory is asked for, as long as nothing is inserted; `None` where no
    /// search is worth while.
    fn look_ahead(&self, cells: &[Cell<'_>]) -> [Option<PageRef>; AHEAD] {
        let none = [None; AHEAD];
        let (Some(root), Some(first)) = (self.tree.root(), cells.first()) else { return none };
        if self.hinted_leaf(&self.tree.before(&self.tree.target(first.key), first.seq_id)).is_some() {
            // They come in order.
            return none;
        }
        let mut pages = [root; AHEAD];
        for level in (0..root.level()).rev() {
            for (page, cell) in pages.iter_mut().zip(cells) {
                let target = self.tree.target(cell.key);
                if let Way::To(below) = page.way(&self.tree.before(&target, cell.seq_id)) {
                    below.prefetch(level);
                    *page = below;
                }
            }
        }
        pages.map(Some)
    }

    /// Copies a cell into its place, which is at the page `start`, if there is one, or was when pages behind it were not
    /// split off from it yet.
    fn insert_from(&mut self, start: Option<PageRef>, cell: &Cell<'_>) {
        let target = self.tree.target(cell.key);
        let slot = (target.number.unwrap_or_default(), Entry::copy(&mut self.state.arena, cell));
        self.insert_slot(start, slot, &target, cell.seq_id);
        self.tree.arena_bytes.store(self.state.arena.chunk_bytes() as u64, Relaxed);
        if target.number.is_none() {
            self.state.unsettled_cells += 1;
            if self.state.unsettled_cells == SETTLING_CELLS {
                self.settle();
            }
        }
    }

    /// Settles what rows have in common, from those that are there.
    fn settle(&mut self) {
        let Some((first, last)) = self.tree.first_and_last() else { return };
        let common: Box<[u8]> = common_front(first.row(), last.row()).into();
        // SAFETY: entries of this tree.
        let number_of = |entry| number_of(self.tree.order, &common, unsafe { key_of(entry) });
        let mut first_of_level = self.tree.root();
        while let Some(leftmost) = first_of_level {
            std::iter::successors(Some(leftmost), |page| page.next_page())
                .for_each(|page| page.renumber(number_of));
            first_of_level = (leftmost.level() > 0).then(|| leftmost.child_at(0));
        }
        // Who sees this sees the numbers, too. Nobody else sets it: that takes the writer's lock.
        let _ = self.tree.common.set(common);
    }

    fn insert_slot(
        &mut self,
        start: Option<PageRef>,
        slot: (u64, NonNull<Entry>),
        target: &Target<'_>,
        seq_id: u64,
    ) {
        let tree = self.tree;
        let is_before = tree.before(target, seq_id);
        let leaf = self.leaf_for(start, &is_before);
        let index = leaf.index_of(&is_before);
        // What follows may be the first of the next page.
        let (behind, behind_index) = match leaf.next_page() {
            Some(next) if index == leaf.len() => (next, 0),
            _ => (leaf, index),
        };
        if behind_index < behind.len() {
            let (number, entry) = behind.entry(behind_index);
            if tree.compare(number, entry, target, seq_id) == Ordering::Equal {
                return behind.replace(behind_index, slot.1);
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

    /// The leaf of the last insert, if the last entry is there for which `is_before` holds.
    fn hinted_leaf(&self, is_before: &impl Before) -> Option<PageRef> {
        // SAFETY: a page of this tree's arena.
        let hint = unsafe { PageRef::of(self.state.hint) }?;
        let (number, first) = hint.entry(0);
        (is_before(number, first) && !hint.ends_before(is_before)).then_some(hint)
    }

    /// The leaf where the last entry is for which `is_before` holds, as seen from `start`.
    fn leaf_for(&mut self, start: Option<PageRef>, is_before: &impl Before) -> PageRef {
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
    fn path_to(&self, is_before: &impl Before, leaf: PageRef) -> Vec<PageRef> {
        let mut path = Vec::new();
        let mut at = self.tree.root().expect("there is a leaf");
        while at != leaf {
            path.push(at);
            at = at.child_at(at.index_of(is_before));
        }
        path
    }

    /// Splits a full page and inserts an entry at its `index`. The new page behind it, and the one of the two that has the
    /// entry.
    fn split(
        &mut self,
        full: PageRef,
        index: usize,
        slot: (u64, NonNull<Entry>),
        child: *mut Page,
    ) -> (PageRef, PageRef) {
        const HALF: usize = ENTRIES_MAX / 2;
        let right = PageRef::make(&mut self.state.arena, full.level());
        if index == ENTRIES_MAX && full.next_page().is_none() {
            // In order: pages in front stay full.
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

    /// Makes `right`, split off from `left`, known to the inner pages of `path`.
    fn insert_above(&mut self, mut path: Vec<PageRef>, mut left: PageRef, mut right: PageRef) {
        loop {
            let slot = right.entry(0);
            let Some(above) = path.pop() else {
                let root = PageRef::make(&mut self.state.arena, left.level() + 1);
                root.insert(0, left.entry(0), left.as_ptr());
                root.insert(1, slot, right.as_ptr());
                return self.tree.root.store(root.as_ptr(), Release);
            };
            let index = 1
                + (0..above.len())
                    .position(|at| above.child_at(at) == left)
                    .expect("the way down led over it");
            if above.len() < ENTRIES_MAX {
                return above.insert(index, slot, right.as_ptr());
            }
            (left, right) = (above, self.split(above, index, slot, right.as_ptr()).0);
        }
    }
}

/// A place in a tree: at a cell, or at none (before the first seek, past the end).
pub(super) struct Cursor {
    tree: Arc<Tree>,
    stand: Option<Stand>,
}

// SAFETY: pages and entries are only read, and the tree that owns them goes along.
unsafe impl Send for Cursor {}
// SAFETY: as above; nothing changes through a shared reference.
unsafe impl Sync for Cursor {}

impl Cursor {
    pub(super) fn new(tree: Arc<Tree>) -> Cursor {
        Cursor { tree, stand: None }
    }

    pub(super) fn seek(&mut self, key: &[u8]) {
        self.stand = self.tree.find_key(key).and_then(Stand::behind);
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
        self.stand = self.tree.find_key(key).and_then(|place| {
            let entry = NonNull::new(place.before)?;
            Some(Stand { page: place.page, index: place.index - 1, version: place.version, entry })
        });
    }

    #[inline]
    pub(super) fn next(&mut self) {
        let Some(Stand { page, index, version, entry }) = self.stand else { return };
        self.stand = match page.entry_at(index + 1, version).map(NonNull::new) {
            Some(Some(entry)) => Some(Stand { page, index: index + 1, version, entry }),
            Some(None) => match page.next_page_at(version) {
                Some(next) => next.map(Stand::first_of),
                None => self.first_behind_entry(entry),
            },
            // It was changed since.
            None => self.first_behind_entry(entry),
        };
    }

    /// The entry behind `entry`.
    fn first_behind_entry(&self, entry: NonNull<Entry>) -> Option<Stand> {
        // SAFETY: an entry of the tree that this cursor holds.
        let cell = unsafe { cell_of(entry) };
        let target = self.tree.target(cell.key);
        self.tree.first_behind(&|number, other| {
            self.tree.compare(number, other, &target, cell.seq_id) != Ordering::Greater
        })
    }

    #[inline]
    pub(super) fn cell(&self) -> Option<Cell<'_>> {
        // SAFETY: an entry of the tree that this cursor holds.
        self.stand.map(|stand| unsafe { cell_of(stand.entry) })
    }
}
