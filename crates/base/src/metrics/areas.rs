//! Per-thread memory for cheap counting: each counting thread has an area, and a counter has the
//! same offset in all areas.
//!
//! A thread adds to its own area with ordinary instructions, because no other thread writes there.
//! A reader sums the values at an offset over all areas. Invariants:
//!
//! * an area belongs to at most one thread at a time; when the thread ends, the next new thread
//!   inherits the area with its contents;
//! * an offset is zero in every area when it is assigned, and has one owner until the owner is
//!   dropped;
//! * areas reserve addresses. The system allocates their memory page by page on the first write;
//!   none is released.
//!
//! Based on Linux' per-CPU counters (`percpu`).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect};

/// Address space of an area: enough for the instruments of about ten thousand tables, or the counts
/// of some millions of regions.
const AREA_BYTES_MAX: usize = 1 << 30;
/// If the process's address space is limited, an area takes this part of it, because there are as
/// many areas as threads.
const AREA_PART: u64 = 256;
/// Minimum address space of an area.
const AREA_BYTES_MIN: usize = 4 << 20;

static AREA_BYTES: LazyLock<usize> = LazyLock::new(|| {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    limit.map_or(AREA_BYTES_MAX, area_bytes_within)
});

/// Address space of an area in a process with this address space `limit`.
fn area_bytes_within(limit: u64) -> usize {
    let part = usize::try_from(limit / AREA_PART).unwrap_or(AREA_BYTES_MAX);
    part.clamp(AREA_BYTES_MIN, AREA_BYTES_MAX).next_multiple_of(STEP_BYTES)
}

/// Step by which the usable part of all areas grows.
const STEP_BYTES: usize = 1 << 20;
/// Each area starts with the address of the area created before it.
const HEAD_BYTES: usize = 64;
/// After the head: a scratch region for counters that got no offset because the areas are full. It
/// is never read.
const SCRATCH_AT: usize = HEAD_BYTES;
const SCRATCH_BYTES: usize = 16 << 10;
const FIRST_OFFSET: usize = SCRATCH_AT + SCRATCH_BYTES;
/// Counters of at least a cache line are aligned to one.
const LINE_BYTES: usize = 64;
const WORD_BYTES: usize = size_of::<u64>();

/// Types that can be stored in areas.
///
/// # Safety
/// All-zero bytes must be a valid value. The type consists only of atomic integers of eight bytes
/// or less.
pub unsafe trait Zeroed: Sync + 'static {}

/// A number in a thread's own area, to which only that thread adds.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Count(AtomicU64);

// SAFETY: an atomic integer.
unsafe impl Zeroed for Count {}
// SAFETY: elements in sequence, without gaps.
unsafe impl<T: Zeroed, const LEN: usize> Zeroed for [T; LEN] {}

impl Count {
    /// Adds to the count. Only the thread that owns the area may call this.
    #[inline]
    pub fn add(&self, amount: u64) {
        // Not fetch_add, which costs as much as twenty other instructions; no other thread writes
        // here.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// The sum of all additions.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The calling thread's area, for code that updates several counters in sequence.
// A raw pointer makes the type `!Send`.
#[derive(Clone, Copy, Debug)]
pub struct OwnArea(*mut u8);

impl OwnArea {
    /// The area of the calling thread.
    #[inline]
    pub fn get() -> OwnArea {
        let area = OWN.get();
        OwnArea(if area.is_null() { assign_area() } else { area })
    }
}

/// An offset that holds a `T` in the area of every thread.
#[derive(Debug)]
pub(super) struct AreaOffset<T: Zeroed> {
    at: usize,
    of: PhantomData<fn() -> T>,
}

thread_local! {
    // This thread's area; null until the thread counts for the first time.
    static OWN: Cell<*mut u8> = const { Cell::new(ptr::null_mut()) };
    static GUARD: Cell<Option<AreaGuard>> = const { Cell::new(None) };
}

/// The most recently created area.
static NEWEST: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static AREAS: Mutex<Areas> = Mutex::new(Areas::NONE);

/// Allocation state of the areas; the same for all of them.
struct Areas {
    // Bytes from the start of an area that are writable, and the part of them that was ever
    // assigned.
    usable: usize,
    used: usize,
    // Free offsets by length.
    free_offsets: BTreeMap<usize, Vec<usize>>,
    // Areas of threads that have ended.
    free_areas: Vec<Area>,
}

#[derive(Clone, Copy)]
struct Area(*mut u8);

// SAFETY: an address of memory that is never unmapped; each access states its own reason.
unsafe impl Send for Area {}

impl<T: Zeroed> AreaOffset<T> {
    const BYTES: usize = {
        assert!(size_of::<T>() <= SCRATCH_BYTES && align_of::<T>() <= WORD_BYTES);
        size_of::<T>().next_multiple_of(WORD_BYTES)
    };

    /// Assigns an offset whose values are all zero.
    pub(super) fn new() -> AreaOffset<T> {
        let at = Areas::lock().assign(Self::BYTES);
        debug_assert!(at.is_multiple_of(WORD_BYTES), "a value of an area is aligned to a word");
        AreaOffset { at, of: PhantomData }
    }

    /// This thread's value.
    #[inline]
    pub(super) fn own(&self) -> &T {
        self.within(OwnArea::get())
    }

    /// This thread's value, for a caller that already has the thread's area.
    #[inline]
    pub(super) fn within(&self, OwnArea(area): OwnArea) -> &T {
        // SAFETY: the offset lies within the usable part of every area, holds a `T` as long as
        // `self` lives, and is aligned for it.
        unsafe { &*area.add(self.at).cast::<T>() }
    }

    /// The values of all areas.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        let newest = if self.at == SCRATCH_AT { ptr::null_mut() } else { NEWEST.load(Ordering::Acquire) };
        // SAFETY: as in `own`.
        each_from(newest).map(|Area(area)| unsafe { &*area.add(self.at).cast::<T>() })
    }
}

impl<T: Zeroed> Drop for AreaOffset<T> {
    fn drop(&mut self) {
        if self.at == SCRATCH_AT {
            return;
        }
        for Area(area) in each_from(NEWEST.load(Ordering::Acquire)) {
            for at in (self.at..self.at + Self::BYTES).step_by(WORD_BYTES) {
                // SAFETY: within the offset's bytes, which have no owner any more. They consist of
                // atomics of at most a word, so they can be accessed as words.
                let word = unsafe { AtomicU64::from_ptr(area.add(at).cast()) };
                // Do not write to untouched memory, which would allocate it.
                if word.load(Ordering::Relaxed) != 0 {
                    word.store(0, Ordering::Relaxed);
                }
            }
        }
        Areas::lock().free_offsets.entry(Self::BYTES).or_default().push(self.at);
    }
}

/// This area and all that were created before it.
fn each_from(newest: *mut u8) -> impl Iterator<Item = Area> {
    let mut next = newest;
    std::iter::from_fn(move || {
        let area = (!next.is_null()).then_some(Area(next))?;
        // SAFETY: the head of an area, written before the area was published, and never again.
        next = unsafe { area.0.cast::<*mut u8>().read() };
        Some(area)
    })
}

/// Assigns an area to the calling thread.
#[cold]
fn assign_area() -> *mut u8 {
    let mut areas = Areas::lock();
    let area = areas.free_areas.pop().unwrap_or_else(|| areas.map());
    drop(areas);
    OWN.set(area.0);
    // If the thread is ending and still counts, its area is never reused. That is rare and costs
    // only addresses.
    let _ = GUARD.try_with(|held| held.set(Some(AreaGuard(area))));
    area.0
}

/// Returns a thread's area for reuse when the thread ends.
struct AreaGuard(Area);

impl Drop for AreaGuard {
    fn drop(&mut self) {
        OWN.set(ptr::null_mut());
        Areas::lock().free_areas.push(self.0);
    }
}

impl Areas {
    const NONE: Areas =
        Areas { usable: 0, used: FIRST_OFFSET, free_offsets: BTreeMap::new(), free_areas: Vec::new() };

    fn lock() -> MutexGuard<'static, Areas> {
        // Numbers and lists, valid after any panic.
        AREAS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns an offset of `bytes` zero bytes; returns [`SCRATCH_AT`] if the areas are full.
    fn assign(&mut self, bytes: usize) -> usize {
        if let Some(offset) = self.free_offsets.get_mut(&bytes).and_then(Vec::pop) {
            return offset;
        }
        let align = if bytes >= LINE_BYTES { LINE_BYTES } else { WORD_BYTES };
        let at = self.used.next_multiple_of(align);
        if !self.make_usable(at + bytes) {
            return SCRATCH_AT;
        }
        self.used = at + bytes;
        at
    }

    /// Makes at least `bytes` of every area usable; returns whether that succeeded.
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

    /// Creates an area. Ends the process if it has no more addresses, as allocators do.
    fn map(&mut self) -> Area {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the system's choice touches no existing memory.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), *AREA_BYTES, ProtFlags::empty(), flags) };
        let area = Area(mapped.map_or(ptr::null_mut(), |start| start.cast()));
        let usable = self.usable.max(STEP_BYTES);
        if area.0.is_null() || !area.open(0..usable) {
            let layout = std::alloc::Layout::from_size_align(*AREA_BYTES, LINE_BYTES);
            std::alloc::handle_alloc_error(layout.expect("a valid layout"));
        }
        self.usable = usable;
        // Large pages would allocate memory that is never counted in. SAFETY: advice on a
        // mapping of this module without contents.
        let _ = unsafe { madvise(area.0.cast(), *AREA_BYTES, Advice::LinuxNoHugepage) };
        // SAFETY: the head of an area that is not published yet.
        unsafe { area.0.cast::<*mut u8>().write(NEWEST.load(Ordering::Relaxed)) };
        NEWEST.store(area.0, Ordering::Release);
        area
    }
}

impl Area {
    /// Makes a part of the area usable; returns whether the system allows it.
    fn open(self, part: std::ops::Range<usize>) -> bool {
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: within a mapping of this module. Access rights only grow.
        unsafe { mprotect(self.0.add(part.start).cast(), part.len(), flags) }.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(offset: &AreaOffset<[Count; 3]>) -> [u64; 3] {
        std::array::from_fn(|at| offset.all().map(|of| of[at].get()).sum())
    }

    #[test]
    fn threads_count_separately_and_are_summed() {
        let offset = AreaOffset::<[Count; 3]>::new();
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let offset = &offset;
                scope.spawn(move || (0..10_000).for_each(|_| offset.own()[1].add(thread)));
            }
        });
        assert_eq!(sum(&offset), [0, 100_000, 0], "counts of ended threads are retained");
        offset.own()[2].add(7);
        assert_eq!(sum(&offset), [0, 100_000, 7]);
    }

    #[test]
    fn a_reused_offset_is_zero() {
        // Of a length that no other test uses.
        let first = AreaOffset::<[Count; 1001]>::new();
        first.own()[1000].add(5);
        std::thread::scope(|scope| {
            scope.spawn(|| first.own()[0].add(5));
        });
        let at = first.at;
        drop(first);
        let second = AreaOffset::<[Count; 1001]>::new();
        assert_eq!(second.at, at);
        assert_eq!(second.all().flatten().map(Count::get).sum::<u64>(), 0);
        let third = AreaOffset::<[Count; 1001]>::new();
        assert_ne!(third.at, at);
    }

    #[test]
    fn offsets_do_not_overlap() {
        let (long, short) = (AreaOffset::<[Count; 9]>::new(), AreaOffset::<Count>::new());
        let next = AreaOffset::<[Count; 9]>::new();
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
    fn areas_grow_and_full_areas_use_the_unread_scratch() {
        let offset = AreaOffset::<Count>::new();
        offset.own().add(1);
        let mut areas = Areas::NONE;
        assert_eq!(areas.assign(8), FIRST_OFFSET);
        areas.used = 3 * STEP_BYTES;
        assert_eq!((areas.assign(64), areas.usable), (3 * STEP_BYTES, 4 * STEP_BYTES));
        areas.used = *AREA_BYTES - 8;
        areas.usable = *AREA_BYTES;
        assert_eq!((areas.assign(8), areas.assign(8)), (*AREA_BYTES - 8, SCRATCH_AT));
        let scratch = AreaOffset::<Count> { at: SCRATCH_AT, of: PhantomData };
        scratch.own().add(1);
        assert_eq!(scratch.all().count(), 0);
    }
}
