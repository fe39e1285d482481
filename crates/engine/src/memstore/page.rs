//! A page of the tree: sorted entries, changed in place by one writer while other threads read.
//!
//! The version of a page works as a seqlock: a change makes it odd and then even again. A reader
//! that finds a changed version retries. All fields that change are atomics, so that a concurrent
//! read is well defined. Pages are freed only with the tree. A page loses entries only in a split.
//! The entries move to the next page, where a reader of the old page finds them.

use std::hint;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*, fence};

use base::prefetch::{prefetch, prefetch_at};

use super::arena::Arena;
use super::entry::Entry;

/// Maximum number of entries of a page. A search reads a few adjacent cache lines of them.
pub(super) const ENTRIES_MAX: usize = 32;

/// Number of spins on a page that is being changed before a reader yields. A change takes about ten
/// nanoseconds.
const SPINS_MAX: usize = 100;

/// The part that leaves and inner pages have in common.
#[repr(C)]
pub(super) struct Page {
    version: AtomicU32,
    count: AtomicU32,
    // 0 for leaves.
    level: u32,
    next: AtomicPtr<Page>,
    // Lower bound of the entries in the next page; null in the last page of a level.
    upper_bound: AtomicPtr<Entry>,
    upper_bound_head: AtomicU64,
    // The heads of the entries' rows.
    row_heads: [AtomicU64; ENTRIES_MAX],
    entries: [AtomicPtr<Entry>; ENTRIES_MAX],
}

/// A page above the leaves. The entry at index `i` is the least entry below child `i`. The first
/// child of a level is an exception: smaller entries may be below it.
#[repr(C)]
struct InnerPage {
    page: Page,
    children: [AtomicPtr<Page>; ENTRIES_MAX],
}

/// A page of a live tree. The holder also holds the tree, or is its writer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRef(NonNull<Page>);

impl Deref for PageRef {
    type Target = Page;

    #[inline]
    fn deref(&self) -> &Page {
        // SAFETY: pages are complete before they are linked, and are freed with their tree.
        unsafe { self.0.as_ref() }
    }
}

/// A position in a leaf: after all entries that are before the target.
#[derive(Clone, Copy)]
pub(super) struct LeafPosition {
    pub(super) page: PageRef,
    pub(super) index: usize,
    /// The version of the page when it was read.
    pub(super) version: u32,
    /// The entry before the position, and the one after it; the latter is null at the page's end.
    pub(super) before: *mut Entry,
    pub(super) after: *mut Entry,
    /// The next page.
    pub(super) next: Option<PageRef>,
}

/// Where a search continues from a page.
pub(super) enum SearchStep {
    To(PageRef),
    Here(LeafPosition),
}

/// A predicate on an entry and the head of its row. It holds for the first entries, up to some
/// position.
pub(super) trait SortsBefore: Fn(u64, NonNull<Entry>) -> bool {}
impl<F: Fn(u64, NonNull<Entry>) -> bool> SortsBefore for F {}

impl PageRef {
    /// The page at `page`; `None` for null.
    ///
    /// # Safety
    /// It was made by [`PageRef::make`] in an arena that lives as long as the result and its
    /// copies.
    #[inline]
    pub(super) unsafe fn of(page: *mut Page) -> Option<PageRef> {
        NonNull::new(page).map(PageRef)
    }

    #[inline]
    pub(super) fn as_ptr(self) -> *mut Page {
        self.0.as_ptr()
    }

    /// A page that this one links to.
    #[inline]
    fn linked(page: &AtomicPtr<Page>) -> Option<PageRef> {
        // Pages link to pages of their own tree.
        NonNull::new(page.load(Acquire)).map(PageRef)
    }

    /// Allocates an empty page.
    pub(super) fn make(arena: &mut Arena, level: u32) -> PageRef {
        let len = if level == 0 { size_of::<Page>() } else { size_of::<InnerPage>() };
        let start = arena.allocate(len);
        // SAFETY: `start` is aligned and has room for the page. All zeros is a page of level 0
        // without entries. No other pointer to it exists yet.
        unsafe {
            ptr::write_bytes(start.as_ptr(), 0, len);
            let page = start.cast::<Page>();
            (&raw mut (*page.as_ptr()).level).write(level);
            PageRef(page)
        }
    }

    /// Prefetches the page, which has this level.
    pub(super) fn prefetch(self, level: u32) {
        let len = if level == 0 { size_of::<Page>() } else { size_of::<InnerPage>() };
        prefetch_at(self.0.as_ptr().cast(), len);
    }

    pub(super) fn level(self) -> u32 {
        self.level
    }

    /// Number of entries. Only for the writer.
    pub(super) fn len(self) -> usize {
        self.count.load(Relaxed) as usize
    }

    /// The next page of the level.
    pub(super) fn next_page(self) -> Option<PageRef> {
        PageRef::linked(&self.next)
    }

    /// The next page, if this one still has `version`.
    pub(super) fn next_page_at(self, version: u32) -> Option<Option<PageRef>> {
        let next = self.next_page();
        self.is_unchanged(version).then_some(next)
    }

    /// The entry at `index`, which must exist, and its head. Only for the writer.
    pub(super) fn entry(self, index: usize) -> (u64, NonNull<Entry>) {
        let entry =
            NonNull::new(self.entries[index].load(Acquire)).expect("entries are not null below the count");
        (self.row_heads[index].load(Relaxed), entry)
    }

    /// Lower bound of the entries in the next page, and its head.
    pub(super) fn upper_bound(self) -> Option<(u64, NonNull<Entry>)> {
        NonNull::new(self.upper_bound.load(Acquire)).map(|entry| (self.upper_bound_head.load(Relaxed), entry))
    }

    fn children(&self) -> &[AtomicPtr<Page>; ENTRIES_MAX] {
        assert!(self.level > 0, "leaves have no children");
        // SAFETY: a page above level 0 was made as an `InnerPage`, of which it is the first field.
        unsafe { &(*self.0.as_ptr().cast::<InnerPage>()).children }
    }

    /// The child at `index`, which must exist.
    pub(super) fn child_at(self, index: usize) -> PageRef {
        PageRef::linked(&self.children()[index]).expect("children are not null below the count")
    }

    /// Number of entries for which `is_before` holds. `None` if a concurrent change made the page
    /// inconsistent.
    ///
    /// In the first inner page of a level, the first entry may be out of order. The search compares
    /// that entry last. The results 0 and 1 both lead to the first child, so its order does not
    /// matter.
    #[inline]
    fn count_before(self, is_before: &impl SortsBefore) -> Option<usize> {
        let (mut low, mut high) = (0, (self.count.load(Relaxed) as usize).min(ENTRIES_MAX));
        while low < high {
            let middle = (low + high) / 2;
            let entry = NonNull::new(self.entries[middle].load(Acquire))?;
            match is_before(self.row_heads[middle].load(Relaxed), entry) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Some(low)
    }

    /// In a leaf, the number of entries for which `is_before` holds. In an inner page, the index of
    /// the child that has the last such entry. Only for the writer.
    pub(super) fn index_of(self, is_before: &impl SortsBefore) -> usize {
        let count = self.count_before(is_before).expect("the writer always reads a consistent page");
        if self.level == 0 { count } else { count.saturating_sub(1) }
    }

    /// Whether the last entry for which `is_before` holds is in a later page.
    #[inline]
    pub(super) fn ends_before(self, is_before: &impl SortsBefore) -> bool {
        self.upper_bound().is_some_and(|(row_head, entry)| is_before(row_head, entry))
    }

    /// The next step of the search for the last entry for which `is_before` holds.
    #[inline]
    pub(super) fn search_step(self, is_before: &impl SortsBefore) -> SearchStep {
        // Prefetch all heads that the search may compare, so that it waits for memory only once.
        prefetch(&self.row_heads, size_of_val(&self.row_heads));
        loop {
            let version = self.begin_read();
            let step = self.try_search_step(version, is_before);
            if let Some(step) = step
                && self.is_unchanged(version)
            {
                return step;
            }
            hint::spin_loop();
        }
    }

    #[inline]
    fn try_search_step(self, version: u32, is_before: &impl SortsBefore) -> Option<SearchStep> {
        if self.ends_before(is_before) {
            return self.next_page().map(SearchStep::To);
        }
        let index = self.count_before(is_before)?;
        if self.level > 0 {
            return PageRef::linked(&self.children()[index.saturating_sub(1)]).map(SearchStep::To);
        }
        let count = self.count.load(Relaxed) as usize;
        let at = |index: usize| self.entries.get(index).map_or(ptr::null_mut(), |entry| entry.load(Acquire));
        Some(SearchStep::Here(LeafPosition {
            page: self,
            index,
            version,
            before: index.checked_sub(1).map_or(ptr::null_mut(), at),
            after: if index < count { at(index) } else { ptr::null_mut() },
            next: self.next_page(),
        }))
    }

    /// The entry at `index`; null after the last one. `None` if the page has another version.
    #[inline]
    pub(super) fn entry_at(self, index: usize, version: u32) -> Option<*mut Entry> {
        if self.version.load(Acquire) != version {
            return None;
        }
        let is_there = index < self.count.load(Relaxed) as usize && index < ENTRIES_MAX;
        let entry = if is_there { self.entries[index].load(Acquire) } else { ptr::null_mut() };
        self.is_unchanged(version).then_some(entry)
    }

    /// The version, as soon as no change is in progress.
    #[inline]
    pub(super) fn begin_read(self) -> u32 {
        let mut spins = 0;
        loop {
            let version = self.version.load(Acquire);
            if version.is_multiple_of(2) {
                return version;
            }
            spins += 1;
            match spins < SPINS_MAX {
                true => hint::spin_loop(),
                // The writer was preempted during a change.
                false => std::thread::yield_now(),
            }
        }
    }

    /// Whether everything read since `version` is consistent.
    #[inline]
    fn is_unchanged(self, version: u32) -> bool {
        fence(Acquire);
        self.version.load(Relaxed) == version
    }

    /// Applies a change. Only for the writer.
    fn change(self, change: impl FnOnce(PageRef)) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        fence(Release);
        change(self);
        self.version.store(version.wrapping_add(2), Release);
    }

    /// Sets the heads of all entries. No search may use them yet. Only for the writer.
    pub(super) fn set_row_heads(self, row_head_of: impl Fn(NonNull<Entry>) -> u64) {
        for index in 0..self.len() {
            let (_, entry) = self.entry(index);
            self.row_heads[index].store(row_head_of(entry), Relaxed);
        }
        if let Some((_, entry)) = self.upper_bound() {
            self.upper_bound_head.store(row_head_of(entry), Relaxed);
        }
    }

    /// Replaces an entry with an equal one.
    pub(super) fn replace(self, index: usize, entry: NonNull<Entry>) {
        debug_assert!(index < self.len(), "only an existing entry is replaced");
        self.entries[index].store(entry.as_ptr(), Release);
    }

    /// Inserts an entry, and in an inner page its child. The page must not be full.
    pub(super) fn insert(self, index: usize, (row_head, entry): (u64, NonNull<Entry>), child: *mut Page) {
        self.change(|page| {
            let count = page.len();
            debug_assert!(count < ENTRIES_MAX && index <= count, "a page has room for a new entry");
            for at in (index..count).rev() {
                page.move_slot(at, page, at + 1);
            }
            page.set_slot(index, row_head, entry.as_ptr(), child);
            page.count.store(count as u32 + 1, Relaxed);
        });
    }

    /// Moves the entries from `index` on to the new page `right`, which becomes the next page.
    pub(super) fn split(self, index: usize, right: PageRef) {
        debug_assert!(
            self.len() == ENTRIES_MAX && right.len() == 0 && right.level == self.level,
            "a full page is split into itself and an empty page of its level"
        );
        for at in index..self.len() {
            self.move_slot(at, right, at - index);
        }
        right.count.store((self.len() - index) as u32, Relaxed);
        self.link(right, index);
    }

    /// Makes `new`, which has entries, the next page. The first `count` entries remain in this
    /// page.
    fn link(self, new: PageRef, count: usize) {
        new.next.store(self.next.load(Relaxed), Relaxed);
        new.upper_bound.store(self.upper_bound.load(Relaxed), Relaxed);
        new.upper_bound_head.store(self.upper_bound_head.load(Relaxed), Relaxed);
        let (row_head, first) = new.entry(0);
        debug_assert!(count > 0, "a page that another one follows has entries");
        self.change(|page| {
            page.count.store(count as u32, Relaxed);
            page.next.store(new.as_ptr(), Release);
            page.upper_bound_head.store(row_head, Relaxed);
            page.upper_bound.store(first.as_ptr(), Release);
        });
    }

    /// Makes `new` the next page. Its only entry must be after all other entries of the level.
    pub(super) fn append(self, new: PageRef, (row_head, entry): (u64, NonNull<Entry>), child: *mut Page) {
        debug_assert!(self.next_page().is_none(), "only the last page of a level is appended to");
        new.set_slot(0, row_head, entry.as_ptr(), child);
        new.count.store(1, Relaxed);
        self.link(new, self.len());
    }

    fn set_slot(self, at: usize, row_head: u64, entry: *mut Entry, child: *mut Page) {
        self.row_heads[at].store(row_head, Relaxed);
        // Release: a thread that loads the entry sees everything that was written to it.
        self.entries[at].store(entry, Release);
        if self.level > 0 {
            self.children()[at].store(child, Release);
        }
    }

    fn move_slot(self, from: usize, page: PageRef, to: usize) {
        let child = if self.level > 0 { self.children()[from].load(Relaxed) } else { ptr::null_mut() };
        page.set_slot(to, self.row_heads[from].load(Relaxed), self.entries[from].load(Relaxed), child);
    }
}
