//! Memory in whole pages that goes back to the system when it is let go.
//!
//! Blocks and memstores are what a server's memory is, and by turns one has what the other had. A general allocator keeps
//! what was freed for things of the same size; this one keeps addresses, which cost nothing, and gives the memory behind
//! them back, so that the process takes what it counts. Runs of the same number of pages follow each other in the same
//! place, so that nothing is ever cut or joined. A little is kept at hand for the next run of that size, because fresh
//! pages cost the kernel time.
//!
//! Fresh memory comes in large pages where the system has them: the processor finds what it looks for in fewer steps, and a
//! row at random in a cached block is a tenth of a multi-get cheaper. A large page of which a run is given back is one no longer, and
//! what comes there again are small ones. (The process has no more resident for it; a control group may be charged with the rest of
//! the page until it wants the memory for something else.)

use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Bytes of a page, and what addresses are multiples of: the least that the system gives and takes.
pub const PAGE_BYTES: usize = 4096;
/// Runs of more pages are the system's own business. Runs of just as many are a large page each, which is given back whole.
const RUN_PAGES_MAX: usize = LARGE_PAGE_BYTES / PAGE_BYTES;
/// Bytes of a large page; shorter runs are kept at hand.
pub const LARGE_PAGE_BYTES: usize = 2 << 20;
/// Addresses that are asked for at a time; none of them is memory before it is written to.
const RESERVE_BYTES: usize = 64 << 20;
/// Of these, for so many at a time large pages are asked for.
const ASKED_FOR_BYTES: usize = 8 << 20;
/// Memory kept at hand for runs of one size, large pages not among them.
const AT_HAND_BYTES_MAX: usize = 2 << 20;
/// The same for all those sizes together.
const ALL_AT_HAND_BYTES_MAX: usize = 16 << 20;

/// Keeps up to so many bytes of large pages at hand: those that memstores which were flushed gave back are there for the
/// next ones. One of them if nobody says.
pub fn keep_large_at_hand(bytes: u64) {
    Store::lock().keep_large_at_hand(usize::try_from(bytes).unwrap_or(usize::MAX));
}

/// A run of pages, the first bytes of which are filled.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    pages: usize,
    filled: usize,
}

// SAFETY: the memory is owned; it changes through `&mut self` only.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// At least `bytes` bytes, which must not be 0; nothing is filled yet.
    pub fn new(bytes: usize) -> Pages {
        assert!(bytes > 0, "no pages for no bytes");
        let pages = bytes.div_ceil(PAGE_BYTES);
        let start = if pages > RUN_PAGES_MAX { map(pages * PAGE_BYTES) } else { Store::lock().take(pages) };
        Pages { start, pages, filled: 0 }
    }

    /// A copy of `bytes`, which must not be empty.
    pub fn copy_of(bytes: &[u8]) -> Pages {
        let mut pages = Pages::new(bytes.len());
        let copied = pages.fill(|spare| Ok::<_, ()>(spare[..bytes.len()].write_copy_of_slice(bytes)));
        debug_assert_eq!(copied, Ok(bytes.len()));
        pages
    }

    /// Bytes of memory it takes.
    pub fn capacity(&self) -> usize {
        self.pages * PAGE_BYTES
    }

    /// The first byte; what lies behind is this run's up to its capacity, filled or not.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Lets `fill` write to the bytes behind the filled ones; it returns those that it wrote, from the first on. Returns how
    /// many.
    ///
    /// # Errors
    /// Those of `fill`.
    ///
    /// # Panics
    /// If what `fill` returns is not the beginning of what it was given.
    pub fn fill<E>(
        &mut self,
        fill: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8], E>,
    ) -> Result<usize, E> {
        let room = self.capacity() - self.filled;
        // SAFETY: within the run, and borrowed as `self` is; may be uninitialized.
        let spare = unsafe {
            std::slice::from_raw_parts_mut(
                self.start.as_ptr().add(self.filled).cast::<MaybeUninit<u8>>(),
                room,
            )
        };
        let first = spare.as_ptr().cast::<u8>();
        let written = fill(spare)?;
        assert!(ptr::eq(written.as_ptr(), first) && written.len() <= room, "other bytes than those to fill");
        let len = written.len();
        self.filled += len;
        Ok(len)
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the first `filled` bytes were written, and change through `&mut self` only.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.filled) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.pages <= RUN_PAGES_MAX {
            Store::lock().put_back(self.start, self.pages);
            return;
        }
        // SAFETY: mapped with this length, and nobody else has it.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.capacity()) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Fresh addresses, whose memory comes when it is written to. Ends the process where there are none, as allocators do.
fn map(bytes: usize) -> NonNull<u8> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
    let mapped = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
    match mapped.ok().and_then(|start| NonNull::new(start.cast())) {
        Some(start) => start,
        None => {
            let layout = std::alloc::Layout::from_size_align(bytes, PAGE_BYTES).expect("a length of memory");
            std::alloc::handle_alloc_error(layout)
        }
    }
}

/// Runs that nobody has, by their number of pages.
struct Store {
    sizes: Vec<Free>,
    reserve: Reserve,
    /// For runs of a large page, which begin where one does.
    large: Reserve,
    large_at_hand_bytes_max: usize,
    /// Those of large pages are not among them.
    at_hand_bytes: usize,
}

/// Addresses not given out yet.
struct Reserve {
    start: Option<NonNull<u8>>,
    bytes: usize,
    /// Of these, so many come in large pages, and so many that were given out before.
    large: usize,
    large_before: usize,
    /// Whether what is given out is given back in large pages only.
    is_whole: bool,
}

impl Reserve {
    const fn new(is_whole: bool) -> Reserve {
        Reserve { start: None, bytes: 0, large: 0, large_before: 0, is_whole }
    }

    /// The next `bytes`; where there are not so many left, of [`RESERVE_BYTES`] more.
    fn take(&mut self, bytes: usize) -> NonNull<u8> {
        let start = match self.start {
            Some(start) if self.bytes >= bytes => start,
            // What was left is given up: addresses, no memory.
            _ => {
                self.settle();
                *self = Reserve { bytes: RESERVE_BYTES, ..Reserve::new(self.is_whole) };
                map_aligned()
            }
        };
        self.start = Some(start);
        if self.large < bytes {
            self.ask_for_large();
        }
        self.bytes -= bytes;
        self.large -= bytes;
        self.large_before += bytes;
        // SAFETY: within the reserve or at its end.
        self.start = Some(unsafe { start.add(bytes) });
        start
    }

    /// Asks for large pages for what comes next.
    fn ask_for_large(&mut self) {
        let Some(start) = self.start else { return };
        // SAFETY: within the reserve or at its end.
        let from = unsafe { start.add(self.large) };
        let more = ASKED_FOR_BYTES.min(self.bytes - self.large);
        self.settle();
        // SAFETY: advice on a mapping of ours that holds nothing. Where the system has no large pages, small ones do.
        let _ = unsafe { madvise(from.as_ptr().cast(), more, Advice::LinuxHugepage) };
        self.large_before = 0;
        self.large += more;
    }

    /// The large pages that are there stay, but where runs were given out there will be no more of them: parts that these give back must
    /// stay given back, and not be filled up to a large page again.
    fn settle(&self) {
        let (Some(start), true) = (self.start, self.large_before > 0 && !self.is_whole) else { return };
        let whole = self.large_before + self.large;
        // SAFETY: it was asked for as large pages by `ask_for_large`, in this reserve.
        let begun = unsafe { start.sub(self.large_before) };
        // SAFETY: advice that changes nothing of what is there.
        let _ = unsafe { madvise(begun.as_ptr().cast(), whole, Advice::LinuxNoHugepage) };
    }
}

/// [`RESERVE_BYTES`] of fresh addresses, which begin where a large page may.
fn map_aligned() -> NonNull<u8> {
    let mapped = map(RESERVE_BYTES + LARGE_PAGE_BYTES);
    let before = mapped.as_ptr().align_offset(LARGE_PAGE_BYTES);
    // SAFETY: within the mapping, which is longer by a large page than what is used of it.
    unsafe { mapped.add(before) }
}

/// Runs of one size that nobody has.
#[derive(Default)]
struct Free {
    /// With memory behind them.
    at_hand: Vec<NonNull<u8>>,
    /// Addresses only.
    bare: Vec<NonNull<u8>>,
}

impl Free {
    /// Keeps the addresses only.
    fn give_back(&mut self, run: NonNull<u8>, pages: usize) {
        // SAFETY: nobody has the run; what it held need not stay.
        let given_back = unsafe { madvise(run.as_ptr().cast(), pages * PAGE_BYTES, Advice::LinuxDontNeed) };
        debug_assert!(given_back.is_ok());
        self.bare.push(run);
    }
}

// SAFETY: what it points to is owned by nobody else.
unsafe impl Send for Store {}

static STORE: Mutex<Store> = Mutex::new(Store::new());

impl Store {
    const fn new() -> Store {
        Store {
            sizes: Vec::new(),
            reserve: Reserve::new(false),
            large: Reserve::new(true),
            large_at_hand_bytes_max: LARGE_PAGE_BYTES,
            at_hand_bytes: 0,
        }
    }

    fn lock() -> MutexGuard<'static, Store> {
        // Lists of runs: whole after any panic, there being none in between.
        STORE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&mut self, pages: usize) -> NonNull<u8> {
        if self.sizes.is_empty() {
            self.sizes.resize_with(RUN_PAGES_MAX + 1, Free::default);
        }
        if let Some(run) = self.sizes[pages].at_hand.pop() {
            self.at_hand_bytes -= counted(pages);
            return run;
        }
        match self.sizes[pages].bare.pop() {
            Some(run) => run,
            None if pages == RUN_PAGES_MAX => self.large.take(LARGE_PAGE_BYTES),
            None => self.reserve.take(pages * PAGE_BYTES),
        }
    }

    fn put_back(&mut self, run: NonNull<u8>, pages: usize) {
        let free = &mut self.sizes[pages];
        let of_size_max =
            if pages == RUN_PAGES_MAX { self.large_at_hand_bytes_max } else { AT_HAND_BYTES_MAX };
        let keeps = (free.at_hand.len() + 1) * pages * PAGE_BYTES <= of_size_max
            && self.at_hand_bytes + counted(pages) <= ALL_AT_HAND_BYTES_MAX;
        match keeps {
            true => {
                free.at_hand.push(run);
                self.at_hand_bytes += counted(pages);
            }
            false => free.give_back(run, pages),
        }
    }

    fn keep_large_at_hand(&mut self, bytes: usize) {
        self.large_at_hand_bytes_max = bytes;
        let Some(free) = self.sizes.get_mut(RUN_PAGES_MAX) else { return };
        while free.at_hand.len() > bytes / LARGE_PAGE_BYTES {
            let run = free.at_hand.pop().expect("more than none");
            free.give_back(run, RUN_PAGES_MAX);
        }
    }
}

/// What a run of so many pages adds to the bytes at hand of all sizes but the largest.
fn counted(pages: usize) -> usize {
    if pages == RUN_PAGES_MAX { 0 } else { pages * PAGE_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Random;
    use crate::testing::SeededRandom;

    fn filled(bytes: usize, with: u8) -> Pages {
        Pages::copy_of(&vec![with; bytes])
    }

    #[test]
    fn runs_are_apart_and_keep_what_was_written() {
        let random = SeededRandom::new(5);
        let mut held: Vec<(Pages, u8, usize)> = Vec::new();
        for step in 0..3000_u32 {
            let bytes = 1 + (random.next_u64() % 200_000) as usize;
            held.push((filled(bytes, step as u8), step as u8, bytes));
            if held.len() > 100 {
                let (pages, with, bytes) = held.swap_remove((random.next_u64() % 100) as usize);
                assert!(pages.as_ref().iter().all(|byte| *byte == with) && pages.as_ref().len() == bytes);
            }
        }
        for (pages, with, bytes) in held {
            assert!(pages.as_ref().iter().all(|byte| *byte == with) && pages.as_ref().len() == bytes);
        }
    }

    #[test]
    fn a_run_begins_at_a_page_and_has_whole_ones() {
        let large = LARGE_PAGE_BYTES;
        for (bytes, capacity, align) in [
            (1, 4096, 4096),
            (4096, 4096, 4096),
            (4097, 8192, 4096),
            (large, large, large),
            (3 << 20, 3 << 20, 4096),
        ] {
            let pages = Pages::new(bytes);
            assert_eq!((pages.capacity(), pages.start().as_ptr() as usize % align), (capacity, 0));
            assert!(pages.as_ref().is_empty());
        }
    }

    #[test]
    fn it_is_filled_in_steps() {
        let mut pages = Pages::new(10);
        assert_eq!(pages.fill(|spare| Ok::<_, ()>(spare[..3].write_copy_of_slice(&[1; 3]))), Ok(3));
        assert_eq!(pages.fill(|_| Err("no")), Err("no"));
        assert_eq!(pages.fill(|spare| Ok::<_, ()>(spare[..2].write_copy_of_slice(&[2; 2]))), Ok(2));
        assert_eq!(pages.as_ref(), [1, 1, 1, 2, 2]);
    }

    #[test]
    #[should_panic(expected = "other bytes")]
    fn what_is_filled_must_be_its_own() {
        let _ = Pages::new(10).fill(|spare| Ok::<_, ()>(spare[1..2].write_copy_of_slice(&[1])));
    }

    #[test]
    fn memory_goes_back() {
        let mut store = Store::new();
        let runs: Vec<_> = (0..100).map(|_| store.take(17)).collect();
        let before = runs.clone();
        for run in runs {
            // SAFETY: the run is this test's.
            unsafe { run.as_ptr().write(7) };
            store.put_back(run, 17);
        }
        let free = &store.sizes[17];
        assert_eq!(free.at_hand.len(), AT_HAND_BYTES_MAX / (17 * PAGE_BYTES));
        assert_eq!(free.at_hand.len() + free.bare.len(), 100);
        // SAFETY: addresses of this store, which nobody else reads.
        let zeroed = free.bare.iter().all(|run| unsafe { run.as_ptr().read() } == 0);
        assert!(zeroed, "what is given back is memory no more");
        let again: Vec<_> = (0..100).map(|_| store.take(17)).collect();
        assert!(again.iter().all(|run| before.contains(run)), "addresses are used again");
        assert_eq!(store.at_hand_bytes, 0);
    }

    #[test]
    fn large_pages_are_kept_as_somebody_says() {
        let mut store = Store::new();
        let at_hand = |store: &Store| store.sizes[RUN_PAGES_MAX].at_hand.len();
        for (kept, expected) in [(LARGE_PAGE_BYTES, 1), (20 * LARGE_PAGE_BYTES, 20), (usize::MAX, 30)] {
            store.keep_large_at_hand(kept);
            let runs: Vec<_> = (0..30).map(|_| store.take(RUN_PAGES_MAX)).collect();
            runs.into_iter().for_each(|run| store.put_back(run, RUN_PAGES_MAX));
            assert_eq!(at_hand(&store), expected);
        }
        store.keep_large_at_hand(3 * LARGE_PAGE_BYTES);
        assert_eq!(at_hand(&store), 3);
        store.keep_large_at_hand(0);
        assert_eq!((at_hand(&store), store.sizes[RUN_PAGES_MAX].bare.len()), (0, 30));
    }
}
