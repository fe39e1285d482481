//! Memory in which counting costs next to nothing: each thread that counts has an area of its own, and what is counted has the
//! same place in all of them.
//!
//! A thread adds to what is in its area by ordinary instructions, for no other thread writes there. Who looks adds up what
//! all areas have at a place. Invariants:
//!
//! * an area is at most one thread's at a time; one whose thread has ended is the next new thread's, with all that is in it;
//! * a place is zeros in every area when it is given out, and is given out once until its owner is dropped;
//! * areas are addresses. Memory comes page by page, where something is written; none is given back.
//!
//! Source of the idea: Linux' counters of each processor (`percpu`).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect};

/// Addresses of an area: those of some ten thousand tables' instruments, or of some millions of regions' counts.
const AREA_BYTES_MAX: usize = 1 << 30;
/// Where the process has a limit of addresses, an area is this part of them: there are as many as threads.
const AREA_PART: u64 = 256;
/// Addresses of an area at least.
const AREA_BYTES_MIN: usize = 4 << 20;

static AREA_BYTES: LazyLock<usize> = LazyLock::new(|| {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    limit.map_or(AREA_BYTES_MAX, area_bytes_within)
});

/// Addresses of an area of a process that may have `limit` of them.
fn area_bytes_within(limit: u64) -> usize {
    let part = usize::try_from(limit / AREA_PART).unwrap_or(AREA_BYTES_MAX);
    part.clamp(AREA_BYTES_MIN, AREA_BYTES_MAX).next_multiple_of(STEP_BYTES)
}

/// By how much the usable part of all areas grows.
const STEP_BYTES: usize = 1 << 20;
/// Where every area has the address of the one that was made before it.
const HEAD_BYTES: usize = 64;
/// Behind the head: where those count for whom there was no place. Nobody looks there.
const UNSEEN_AT: usize = HEAD_BYTES;
const UNSEEN_BYTES: usize = 16 << 10;
const FIRST_PLACE_AT: usize = UNSEEN_AT + UNSEEN_BYTES;
/// What is as long as a cache line or longer begins with one.
const LINE_BYTES: usize = 64;
const WORD_BYTES: usize = size_of::<u64>();

/// What can be counted in areas.
///
/// # Safety
/// Bytes that are all zero are a value of it. It is made of atomic numbers of eight bytes or less, and of nothing else.
pub unsafe trait Zeroed: Sync + 'static {}

/// A number in a thread's own area, to which only that thread adds.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Count(AtomicU64);

// SAFETY: an atomic number.
unsafe impl Zeroed for Count {}
// SAFETY: one behind the other, without gaps.
unsafe impl<T: Zeroed, const LEN: usize> Zeroed for [T; LEN] {}

impl Count {
    /// Adds to it, for the thread whose area it is in.
    #[inline]
    pub fn add(&self, amount: u64) {
        // Not by fetch_add: that costs as much as twenty other instructions, and nobody else writes here.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// What was added so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The area of the thread that asks, for who counts in several places one after the other.
// A pointer, so that it is not sent to another thread.
#[derive(Clone, Copy, Debug)]
pub struct OwnArea(*mut u8);

impl OwnArea {
    /// That of this thread.
    #[inline]
    pub fn get() -> OwnArea {
        let area = OWN.get();
        OwnArea(if area.is_null() { begin() } else { area })
    }
}

/// A place for a `T` in the area of every thread.
#[derive(Debug)]
pub(super) struct Place<T: Zeroed> {
    at: usize,
    of: PhantomData<fn() -> T>,
}

thread_local! {
    // This thread's area, once it has counted.
    static OWN: Cell<*mut u8> = const { Cell::new(ptr::null_mut()) };
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
}

/// The area that was made last.
static NEWEST: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static AREAS: Mutex<Areas> = Mutex::new(Areas::NONE);

/// Which parts of areas are in use; the same in all of them.
struct Areas {
    // Bytes from the start of an area that can be written to, and those of them that were ever part of a place.
    usable: usize,
    used: usize,
    // By their length.
    free_places: BTreeMap<usize, Vec<usize>>,
    // Of threads that have ended.
    free_areas: Vec<Area>,
}

#[derive(Clone, Copy)]
struct Area(*mut u8);

// SAFETY: an address of memory that is never unmapped; who reads or writes there says why he may.
unsafe impl Send for Area {}

impl<T: Zeroed> Place<T> {
    const BYTES: usize = {
        assert!(size_of::<T>() <= UNSEEN_BYTES && align_of::<T>() <= WORD_BYTES);
        size_of::<T>().next_multiple_of(WORD_BYTES)
    };

    /// A new place, where nothing is counted yet.
    pub(super) fn new() -> Place<T> {
        Place { at: Areas::lock().give(Self::BYTES), of: PhantomData }
    }

    /// What this thread has there.
    #[inline]
    pub(super) fn own(&self) -> &T {
        self.within(OwnArea::get())
    }

    /// What this thread has there, whose area is at hand.
    #[inline]
    pub(super) fn within(&self, OwnArea(area): OwnArea) -> &T {
        // SAFETY: a place lies within the usable part of every area, holds a `T` as long as `self` lives, and is aligned for it.
        unsafe { &*area.add(self.at).cast::<T>() }
    }

    /// What every thread has there that ever counted anything.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        let newest = if self.at == UNSEEN_AT { ptr::null_mut() } else { NEWEST.load(Ordering::Acquire) };
        // SAFETY: as in `own`.
        each_from(newest).map(|Area(area)| unsafe { &*area.add(self.at).cast::<T>() })
    }
}

impl<T: Zeroed> Drop for Place<T> {
    fn drop(&mut self) {
        if self.at == UNSEEN_AT {
            return;
        }
        for Area(area) in each_from(NEWEST.load(Ordering::Acquire)) {
            for at in (self.at..self.at + Self::BYTES).step_by(WORD_BYTES) {
                // SAFETY: within the place, which is nobody's any more; words of it as all numbers there are no longer than one.
                let word = unsafe { AtomicU64::from_ptr(area.add(at).cast()) };
                // Where nothing was written no memory need come.
                if word.load(Ordering::Relaxed) != 0 {
                    word.store(0, Ordering::Relaxed);
                }
            }
        }
        Areas::lock().free_places.entry(Self::BYTES).or_default().push(self.at);
    }
}

/// This area and all that were made before it.
fn each_from(newest: *mut u8) -> impl Iterator<Item = Area> {
    let mut next = newest;
    std::iter::from_fn(move || {
        let area = (!next.is_null()).then_some(Area(next))?;
        // SAFETY: the head of an area, written before the area was made known, and never again.
        next = unsafe { area.0.cast::<*mut u8>().read() };
        Some(area)
    })
}

/// Gives the thread an area.
#[cold]
fn begin() -> *mut u8 {
    let mut areas = Areas::lock();
    let area = areas.free_areas.pop().unwrap_or_else(|| areas.map());
    drop(areas);
    OWN.set(area.0);
    // A thread that is ending, and counts still, keeps it: that is seldom, and costs addresses.
    let _ = HELD.try_with(|held| held.set(Some(Held(area))));
    area.0
}

/// A thread's area, for the next one when it ends.
struct Held(Area);

impl Drop for Held {
    fn drop(&mut self) {
        OWN.set(ptr::null_mut());
        Areas::lock().free_areas.push(self.0);
    }
}

impl Areas {
    const NONE: Areas =
        Areas { usable: 0, used: FIRST_PLACE_AT, free_places: BTreeMap::new(), free_areas: Vec::new() };

    fn lock() -> MutexGuard<'static, Areas> {
        // Numbers and lists: whole after any panic.
        AREAS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place of so many bytes, all zero; [`UNSEEN_AT`] if there is no room.
    fn give(&mut self, bytes: usize) -> usize {
        if let Some(place) = self.free_places.get_mut(&bytes).and_then(Vec::pop) {
            return place;
        }
        let align = if bytes >= LINE_BYTES { LINE_BYTES } else { WORD_BYTES };
        let at = self.used.next_multiple_of(align);
        if !self.make_usable(at + bytes) {
            return UNSEEN_AT;
        }
        self.used = at + bytes;
        at
    }

    /// Makes so many bytes of every area usable; whether it can.
    fn make_usable(&mut self, bytes: usize) -> bool {
        while self.usable < bytes {
            let step = self.usable..self.usable + STEP_BYTES;
            if step.end > *AREA_BYTES
                || !each_from(NEWEST.load(Ordering::Acquire)).all(|area| area.open(step.clone()))
            {
                return false;
            }
            self.usable = step.end;
        }
        true
    }

    /// A new area. Ends the process where there are no more addresses, as allocators do.
    fn map(&mut self) -> Area {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), *AREA_BYTES, ProtFlags::empty(), flags) };
        let area = Area(mapped.map_or(ptr::null_mut(), |start| start.cast()));
        let usable = self.usable.max(STEP_BYTES);
        if area.0.is_null() || !area.open(0..usable) {
            let layout = std::alloc::Layout::from_size_align(*AREA_BYTES, LINE_BYTES);
            std::alloc::handle_alloc_error(layout.expect("a length of memory"));
        }
        self.usable = usable;
        // Large pages would be memory for what is not counted.
        // SAFETY: advice on a mapping of ours that holds nothing.
        let _ = unsafe { madvise(area.0.cast(), *AREA_BYTES, Advice::LinuxNoHugepage) };
        // SAFETY: the head of an area that nobody knows yet.
        unsafe { area.0.cast::<*mut u8>().write(NEWEST.load(Ordering::Relaxed)) };
        NEWEST.store(area.0, Ordering::Release);
        area
    }
}

impl Area {
    /// Makes a part of it usable; whether the system lets it.
    fn open(self, part: std::ops::Range<usize>) -> bool {
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: within a mapping of ours; what could be done to these bytes before can be done after.
        unsafe { mprotect(self.0.add(part.start).cast(), part.len(), flags) }.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(place: &Place<[Count; 3]>) -> [u64; 3] {
        std::array::from_fn(|at| place.all().map(|of| of[at].get()).sum())
    }

    #[test]
    fn threads_count_apart_and_are_added_up() {
        let place = Place::<[Count; 3]>::new();
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let place = &place;
                scope.spawn(move || (0..10_000).for_each(|_| place.own()[1].add(thread)));
            }
        });
        assert_eq!(sum(&place), [0, 100_000, 0], "what threads counted that have ended is there");
        place.own()[2].add(7);
        assert_eq!(sum(&place), [0, 100_000, 7]);
    }

    #[test]
    fn a_place_that_is_given_out_again_is_empty() {
        // Of a length that no other test has.
        let first = Place::<[Count; 1001]>::new();
        first.own()[1000].add(5);
        std::thread::scope(|scope| {
            scope.spawn(|| first.own()[0].add(5));
        });
        let at = first.at;
        drop(first);
        let second = Place::<[Count; 1001]>::new();
        assert_eq!(second.at, at);
        assert_eq!(second.all().flatten().map(Count::get).sum::<u64>(), 0);
        let third = Place::<[Count; 1001]>::new();
        assert_ne!(third.at, at);
    }

    #[test]
    fn places_do_not_overlap() {
        let (long, short) = (Place::<[Count; 9]>::new(), Place::<Count>::new());
        let next = Place::<[Count; 9]>::new();
        assert!(long.at.is_multiple_of(LINE_BYTES) && long.at.abs_diff(next.at) >= 9 * WORD_BYTES);
        assert!(short.at + WORD_BYTES <= long.at || short.at >= long.at + 9 * WORD_BYTES);
        long.own()[8].add(1);
        short.own().add(2);
        assert_eq!(next.all().flatten().map(Count::get).sum::<u64>(), 0);
    }

    #[test]
    fn an_area_is_a_small_part_of_few_addresses() {
        assert_eq!(area_bytes_within(4000 << 20), 16 << 20);
        assert_eq!(area_bytes_within(1 << 20), AREA_BYTES_MIN);
        assert_eq!(area_bytes_within(u64::MAX), AREA_BYTES_MAX);
    }

    #[test]
    fn areas_grow_and_where_they_are_full_nobody_looks() {
        let place = Place::<Count>::new();
        place.own().add(1);
        let mut areas = Areas::NONE;
        assert_eq!(areas.give(8), FIRST_PLACE_AT);
        areas.used = 3 * STEP_BYTES;
        assert_eq!((areas.give(64), areas.usable), (3 * STEP_BYTES, 4 * STEP_BYTES));
        areas.used = *AREA_BYTES - 8;
        areas.usable = *AREA_BYTES;
        assert_eq!((areas.give(8), areas.give(8)), (*AREA_BYTES - 8, UNSEEN_AT));
        let unseen = Place::<Count> { at: UNSEEN_AT, of: PhantomData };
        unseen.own().add(1);
        assert_eq!(unseen.all().count(), 0);
    }
}
