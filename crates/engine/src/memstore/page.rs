//! A page of the tree: entries in order, changed in place by one writer while others read.
//!
//! A change makes the version odd and then even again; who read beside it sees that and reads once more. All fields are
//! atomics, so that such a read is no more than useless. Pages are never freed before the tree, and a page never loses
//! entries but to the one that is split off behind it; who comes too late for an entry finds it there.

use std::hint;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*, fence};

use base::prefetch::{prefetch, prefetch_at};

use super::arena::Arena;
use super::entry::Entry;

/// Entries of a page at most: what a search looks at of them are a few cache lines side by side.
pub(super) const ENTRIES_MAX: usize = 32;

/// How often a page is looked at again at once while it is being changed, which takes some ten nanoseconds.
const SPINS_MAX: usize = 100;

/// Entries, and behind the fixed part of an inner page the pages they begin.
#[repr(C)]
pub(super) struct Page {
    version: AtomicU32,
    count: AtomicU32,
    // 0 for leaves.
    level: u32,
    next: AtomicPtr<Page>,
    // The first entry behind this page, with its number; null in the last page of a level.
    high: AtomicPtr<Entry>,
    high_number: AtomicU64,
    // Of the entries' rows.
    numbers: [AtomicU64; ENTRIES_MAX],
    entries: [AtomicPtr<Entry>; ENTRIES_MAX],
}

/// A page of a level above the leaves: the entry of index `i` is the least one below child `i`, but for the first page of a
/// level, below whose first child there may be less.
#[repr(C)]
struct InnerPage {
    page: Page,
    children: [AtomicPtr<Page>; ENTRIES_MAX],
}

/// A page of a tree that lives: who has one holds the tree, or is its writer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRef(NonNull<Page>);

impl Deref for PageRef {
    type Target = Page;

    #[inline]
    fn deref(&self) -> &Page {
        // SAFETY: pages are whole before they are linked, and are freed with their tree.
        unsafe { self.0.as_ref() }
    }
}

/// A place in a leaf: behind all entries that are before something.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) page: PageRef,
    pub(super) index: usize,
    /// Of the page when it was looked at.
    pub(super) version: u32,
    /// The entry in front, and the one behind; the latter is null at the page's end.
    pub(super) before: *mut Entry,
    pub(super) behind: *mut Entry,
    /// The next page.
    pub(super) next: Option<PageRef>,
}

/// Where a search goes from a page.
pub(super) enum Way {
    To(PageRef),
    Here(Place),
}

/// Holds for the first entries, by the number of an entry's row and the entry.
pub(super) trait Before: Fn(u64, NonNull<Entry>) -> bool {}
impl<F: Fn(u64, NonNull<Entry>) -> bool> Before for F {}

impl PageRef {
    /// The page at `page`; `None` for null.
    ///
    /// # Safety
    /// It was made by [`PageRef::make`] in an arena that lives as long as the result and its copies.
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

    /// An empty page.
    pub(super) fn make(arena: &mut Arena, level: u32) -> PageRef {
        let len = if level == 0 { size_of::<Page>() } else { size_of::<InnerPage>() };
        let start = arena.allocate(len);
        // SAFETY: `start` is aligned and has room for the page; all zero is a page of level 0 without entries, and
        // nobody else knows it yet.
        unsafe {
            ptr::write_bytes(start.as_ptr(), 0, len);
            let page = start.cast::<Page>();
            (&raw mut (*page.as_ptr()).level).write(level);
            PageRef(page)
        }
    }

    /// Asks for the memory of the page, which is of this level.
    pub(super) fn prefetch(self, level: u32) {
        let len = if level == 0 { size_of::<Page>() } else { size_of::<InnerPage>() };
        prefetch_at(self.0.as_ptr().cast(), len);
    }

    pub(super) fn level(self) -> u32 {
        self.level
    }

    /// Entries; for the writer.
    pub(super) fn len(self) -> usize {
        self.count.load(Relaxed) as usize
    }

    /// The page behind.
    pub(super) fn next_page(self) -> Option<PageRef> {
        PageRef::linked(&self.next)
    }

    /// The page behind, if this one is as it was at `version`.
    pub(super) fn next_page_at(self, version: u32) -> Option<Option<PageRef>> {
        let next = self.next_page();
        self.is_unchanged(version).then_some(next)
    }

    /// The entry at `index`, which the writer knows to be there, with its number.
    pub(super) fn entry(self, index: usize) -> (u64, NonNull<Entry>) {
        let entry =
            NonNull::new(self.entries[index].load(Acquire)).expect("entries are there up to the count");
        (self.numbers[index].load(Relaxed), entry)
    }

    /// The first entry behind this page, with its number.
    pub(super) fn high(self) -> Option<(u64, NonNull<Entry>)> {
        NonNull::new(self.high.load(Acquire)).map(|high| (self.high_number.load(Relaxed), high))
    }

    fn children(&self) -> &[AtomicPtr<Page>; ENTRIES_MAX] {
        assert!(self.level > 0, "leaves have no children");
        // SAFETY: a page of a level above 0 was made as an `InnerPage`, of which it is the first field.
        unsafe { &(*self.0.as_ptr().cast::<InnerPage>()).children }
    }

    /// The child at `index`, which is there.
    pub(super) fn child_at(self, index: usize) -> PageRef {
        PageRef::linked(&self.children()[index]).expect("children are there up to the count")
    }

    /// How many entries `is_before` holds for; it holds for the first ones. `None` for what no state of the page shows.
    ///
    /// The first entry of the first inner page of a level may be out of order, for less was inserted below it; it is looked
    /// at last, and decides nothing: both ways lead to the first child.
    #[inline]
    fn count_before(self, is_before: &impl Before) -> Option<usize> {
        let (mut low, mut high) = (0, (self.count.load(Relaxed) as usize).min(ENTRIES_MAX));
        while low < high {
            let middle = (low + high) / 2;
            let entry = NonNull::new(self.entries[middle].load(Acquire))?;
            match is_before(self.numbers[middle].load(Relaxed), entry) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Some(low)
    }

    /// Index of the child, or of the place in a leaf, behind all entries that `is_before` holds for; for the writer.
    pub(super) fn index_of(self, is_before: &impl Before) -> usize {
        let count = self.count_before(is_before).expect("the writer sees a page as it is");
        if self.level == 0 { count } else { count.saturating_sub(1) }
    }

    /// Whether the last entry that `is_before` holds for is behind this page.
    #[inline]
    pub(super) fn ends_before(self, is_before: &impl Before) -> bool {
        self.high().is_some_and(|(number, high)| is_before(number, high))
    }

    /// Where the last entry is that `is_before` holds for, as seen from here.
    #[inline]
    pub(super) fn way(self, is_before: &impl Before) -> Way {
        // All that a search of the page may look at: it is waited for once.
        prefetch(&self.numbers, size_of_val(&self.numbers));
        loop {
            let version = self.begin_read();
            let way = self.try_way(version, is_before);
            if let Some(way) = way
                && self.is_unchanged(version)
            {
                return way;
            }
            hint::spin_loop();
        }
    }

    #[inline]
    fn try_way(self, version: u32, is_before: &impl Before) -> Option<Way> {
        if self.ends_before(is_before) {
            return self.next_page().map(Way::To);
        }
        let index = self.count_before(is_before)?;
        if self.level > 0 {
            return PageRef::linked(&self.children()[index.saturating_sub(1)]).map(Way::To);
        }
        let count = self.count.load(Relaxed) as usize;
        let at = |index: usize| self.entries.get(index).map_or(ptr::null_mut(), |entry| entry.load(Acquire));
        Some(Way::Here(Place {
            page: self,
            index,
            version,
            before: index.checked_sub(1).map_or(ptr::null_mut(), at),
            behind: if index < count { at(index) } else { ptr::null_mut() },
            next: self.next_page(),
        }))
    }

    /// The entry at `index` if the page is as it was at `version`: null behind the last one.
    #[inline]
    pub(super) fn entry_at(self, index: usize, version: u32) -> Option<*mut Entry> {
        if self.version.load(Acquire) != version {
            return None;
        }
        let is_there = index < self.count.load(Relaxed) as usize && index < ENTRIES_MAX;
        let entry = if is_there { self.entries[index].load(Acquire) } else { ptr::null_mut() };
        self.is_unchanged(version).then_some(entry)
    }

    /// The version, when nobody changes the page.
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
                // The writer has lost its processor in the midst of a change.
                false => std::thread::yield_now(),
            }
        }
    }

    /// Whether what was read since `version` belongs together.
    #[inline]
    fn is_unchanged(self, version: u32) -> bool {
        fence(Acquire);
        self.version.load(Relaxed) == version
    }

    /// Changes the page, by the one writer.
    fn change(self, change: impl FnOnce(PageRef)) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        fence(Release);
        change(self);
        self.version.store(version.wrapping_add(2), Release);
    }

    /// Gives all entries other numbers, by which nobody goes yet; for the writer.
    pub(super) fn renumber(self, number_of: impl Fn(NonNull<Entry>) -> u64) {
        for index in 0..self.len() {
            let (_, entry) = self.entry(index);
            self.numbers[index].store(number_of(entry), Relaxed);
        }
        if let Some((_, high)) = self.high() {
            self.high_number.store(number_of(high), Relaxed);
        }
    }

    /// Puts an entry in the place of an equal one.
    pub(super) fn replace(self, index: usize, entry: NonNull<Entry>) {
        self.entries[index].store(entry.as_ptr(), Release);
    }

    /// Inserts an entry, and in an inner page the child it begins. There must be room.
    pub(super) fn insert(self, index: usize, (number, entry): (u64, NonNull<Entry>), child: *mut Page) {
        self.change(|page| {
            let count = page.len();
            debug_assert!(count < ENTRIES_MAX && index <= count);
            for at in (index..count).rev() {
                page.move_slot(at, page, at + 1);
            }
            page.set_slot(index, number, entry.as_ptr(), child);
            page.count.store(count as u32 + 1, Relaxed);
        });
    }

    /// Moves the entries from `index` on to `right`, a new page, which becomes the next one.
    pub(super) fn split(self, index: usize, right: PageRef) {
        for at in index..self.len() {
            self.move_slot(at, right, at - index);
        }
        right.count.store((self.len() - index) as u32, Relaxed);
        self.link(right, index);
    }

    /// Makes `new` the next page, before which there are `count` entries left here. It has entries.
    fn link(self, new: PageRef, count: usize) {
        new.next.store(self.next.load(Relaxed), Relaxed);
        new.high.store(self.high.load(Relaxed), Relaxed);
        new.high_number.store(self.high_number.load(Relaxed), Relaxed);
        let (number, first) = new.entry(0);
        self.change(|page| {
            page.count.store(count as u32, Relaxed);
            page.next.store(new.as_ptr(), Release);
            page.high_number.store(number, Relaxed);
            page.high.store(first.as_ptr(), Release);
        });
    }

    /// Makes `new` the next page, with one entry that is behind all others of the level.
    pub(super) fn append(self, new: PageRef, (number, entry): (u64, NonNull<Entry>), child: *mut Page) {
        new.set_slot(0, number, entry.as_ptr(), child);
        new.count.store(1, Relaxed);
        self.link(new, self.len());
    }

    fn set_slot(self, at: usize, number: u64, entry: *mut Entry, child: *mut Page) {
        self.numbers[at].store(number, Relaxed);
        // Release: whoever meets the entry sees all that was written to it.
        self.entries[at].store(entry, Release);
        if self.level > 0 {
            self.children()[at].store(child, Release);
        }
    }

    fn move_slot(self, from: usize, page: PageRef, to: usize) {
        let child = if self.level > 0 { self.children()[from].load(Relaxed) } else { ptr::null_mut() };
        page.set_slot(to, self.numbers[from].load(Relaxed), self.entries[from].load(Relaxed), child);
    }
}
