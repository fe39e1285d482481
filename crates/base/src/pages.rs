//! Memory in whole pages that is returned to the system when it is freed.
//!
//! Blocks and memstores hold most of a server's memory, and memory moves between them. A general
//! allocator keeps freed memory for objects of the same size. This allocator keeps only the
//! addresses, which cost nothing, and returns the physical memory, so that the process's resident
//! size matches its accounting. Runs of the same number of pages share a free list, so runs are
//! never split or merged. A few free runs per size stay resident, because fresh pages cost kernel
//! time.
//!
//! Fresh memory comes in large pages where the system has them. They need fewer page-table steps:
//! reading a random row in a cached block as part of a multi-get is a tenth cheaper. When a run
//! within a large page is returned, the large page is split, and later memory there comes in small
//! pages. The process's resident size does not grow by that. A control group may be charged for the
//! rest of the large page until it needs the memory for something else.

use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Page size and alignment in bytes: the smallest unit that the system allocates and frees.
pub const PAGE_BYTES: usize = 4096;
/// Longest run in the free lists; longer runs are mapped and unmapped directly. A run of this
/// length is one large page, which is returned whole.
const RUN_PAGES_MAX: usize = LARGE_PAGE_BYTES / PAGE_BYTES;
/// Bytes of a large page. Only runs of at most this length stay resident after they are freed.
pub const LARGE_PAGE_BYTES: usize = 2 << 20;
/// Bytes of address space reserved at a time. An address takes no memory before it is written to.
const RESERVE_BYTES: usize = 64 << 20;
/// Bytes of the reserve for which large pages are requested at a time.
const LARGE_REQUEST_BYTES: usize = 8 << 20;
/// Most bytes of resident free runs of one size, except large pages.
const RESIDENT_BYTES_MAX: usize = 2 << 20;
/// Most bytes of resident free runs of all sizes together, except large pages.
const ALL_RESIDENT_BYTES_MAX: usize = 16 << 20;

/// Sets how many bytes of free large pages stay resident, so that new memstores reuse the pages of
/// flushed ones. The default is one large page.
pub fn set_resident_large_bytes(bytes: u64) {
    Store::lock().set_resident_large_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
}

/// A run of pages with an initialized prefix.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    pages: usize,
    filled: usize,
}

// SAFETY: the run owns its memory, which changes through `&mut self` only.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Allocates at least `bytes` bytes, which must not be 0. Nothing is filled yet.
    pub fn new(bytes: usize) -> Pages {
        assert!(bytes > 0, "cannot allocate zero bytes");
        let pages = bytes.div_ceil(PAGE_BYTES);
        let start = if pages > RUN_PAGES_MAX { map(pages * PAGE_BYTES) } else { Store::lock().take(pages) };
        let alignment = if pages == RUN_PAGES_MAX { LARGE_PAGE_BYTES } else { PAGE_BYTES };
        debug_assert!(start.addr().get().is_multiple_of(alignment), "a run starts with a page");
        Pages { start, pages, filled: 0 }
    }

    /// A copy of `bytes`, which must not be empty.
    pub fn copy_of(bytes: &[u8]) -> Pages {
        let mut pages = Pages::new(bytes.len());
        let copied = pages.fill(|spare| Ok::<_, ()>(spare[..bytes.len()].write_copy_of_slice(bytes)));
        debug_assert_eq!(copied, Ok(bytes.len()));
        pages
    }

    /// Allocated bytes.
    pub fn capacity(&self) -> usize {
        self.pages * PAGE_BYTES
    }

    /// The first byte. All bytes from there up to the capacity belong to this run, filled or not.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Passes the unfilled bytes to `fill`, which returns the prefix that it wrote. Returns the
    /// number of bytes written.
    ///
    /// # Errors
    /// Those of `fill`.
    ///
    /// # Panics
    /// If `fill` returns a slice that is not a prefix of its buffer.
    pub fn fill<E>(
        &mut self,
        fill: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8], E>,
    ) -> Result<usize, E> {
        let room = self.capacity() - self.filled;
        // SAFETY: within the run, and borrowed like `self`; may be uninitialized.
        let spare = unsafe {
            std::slice::from_raw_parts_mut(
                self.start.as_ptr().add(self.filled).cast::<MaybeUninit<u8>>(),
                room,
            )
        };
        let first = spare.as_ptr().cast::<u8>();
        let written = fill(spare)?;
        assert!(ptr::eq(written.as_ptr(), first) && written.len() <= room, "not a prefix of the buffer");
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
        // SAFETY: mapped with this length, and no other reference exists.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.capacity()) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Maps fresh addresses, whose memory is allocated on the first write. Ends the process if the
/// system has none, as allocators do.
fn map(bytes: usize) -> NonNull<u8> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice touches no existing memory.
    let mapped = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
    match mapped.ok().and_then(|start| NonNull::new(start.cast())) {
        Some(start) => start,
        None => {
            let layout = std::alloc::Layout::from_size_align(bytes, PAGE_BYTES).expect("a valid layout");
            std::alloc::handle_alloc_error(layout)
        }
    }
}

/// Free runs, by their number of pages.
struct Store {
    sizes: Vec<FreeRuns>,
    reserve: Reserve,
    /// Reserve for runs of one large page, aligned to large pages.
    large: Reserve,
    large_resident_bytes_max: usize,
    /// Bytes of resident free runs, except large pages.
    resident_bytes: usize,
}

/// Reserved addresses that no run has used yet.
struct Reserve {
    start: Option<NonNull<u8>>,
    bytes: usize,
    /// Bytes from `start` on for which large pages were requested, and bytes before `start` in the
    /// same request that runs already use.
    large: usize,
    large_before: usize,
    /// Whether all runs of this reserve are large pages.
    is_whole: bool,
}

impl Reserve {
    const fn new(is_whole: bool) -> Reserve {
        Reserve { start: None, bytes: 0, large: 0, large_before: 0, is_whole }
    }

    /// Takes the next `bytes`. If fewer are left, reserves [`RESERVE_BYTES`] more first.
    fn take(&mut self, bytes: usize) -> NonNull<u8> {
        let start = match self.start {
            Some(start) if self.bytes >= bytes => start,
            // The rest is abandoned: it is address space, not memory.
            _ => {
                self.freeze_large();
                *self = Reserve { bytes: RESERVE_BYTES, ..Reserve::new(self.is_whole) };
                map_aligned()
            }
        };
        self.start = Some(start);
        if self.large < bytes {
            self.request_large();
        }
        debug_assert!(bytes <= self.large && self.large <= self.bytes, "large pages are requested before");
        self.bytes -= bytes;
        self.large -= bytes;
        self.large_before += bytes;
        // SAFETY: within the reserve or at its end.
        self.start = Some(unsafe { start.add(bytes) });
        start
    }

    /// Requests large pages for the next addresses.
    fn request_large(&mut self) {
        let Some(start) = self.start else { return };
        // SAFETY: within the reserve or at its end.
        let from = unsafe { start.add(self.large) };
        let more = LARGE_REQUEST_BYTES.min(self.bytes - self.large);
        self.freeze_large();
        // SAFETY: advice on a mapping of this module without contents. Small pages work if the
        // system has no large ones.
        let _ = unsafe { madvise(from.as_ptr().cast(), more, Advice::LinuxHugepage) };
        self.large_before = 0;
        self.large += more;
    }

    /// Keeps existing large pages, but stops the kernel from forming new ones around runs in use.
    /// Otherwise memory that these runs return would be filled up to a large page again.
    fn freeze_large(&self) {
        let (Some(start), true) = (self.start, self.large_before > 0 && !self.is_whole) else { return };
        let whole = self.large_before + self.large;
        // SAFETY: `request_large` requested this range as large pages, in this reserve.
        let begun = unsafe { start.sub(self.large_before) };
        // SAFETY: advice that changes no contents.
        let _ = unsafe { madvise(begun.as_ptr().cast(), whole, Advice::LinuxNoHugepage) };
    }
}

/// [`RESERVE_BYTES`] of fresh addresses, aligned to a large page.
fn map_aligned() -> NonNull<u8> {
    let mapped = map(RESERVE_BYTES + LARGE_PAGE_BYTES);
    let before = mapped.as_ptr().align_offset(LARGE_PAGE_BYTES);
    // SAFETY: within the mapping, which is longer than the used part by one large page.
    unsafe { mapped.add(before) }
}

/// Free runs of one size.
#[derive(Default)]
struct FreeRuns {
    /// Runs that are resident.
    resident: Vec<NonNull<u8>>,
    /// Runs without memory: addresses only.
    unbacked: Vec<NonNull<u8>>,
}

impl FreeRuns {
    /// Returns the memory and keeps the addresses.
    fn return_memory(&mut self, run: NonNull<u8>, pages: usize) {
        // SAFETY: the run is free, so its contents may be lost.
        let returned = unsafe { madvise(run.as_ptr().cast(), pages * PAGE_BYTES, Advice::LinuxDontNeed) };
        debug_assert!(returned.is_ok());
        self.unbacked.push(run);
    }
}

// SAFETY: the store owns all memory that it points to.
unsafe impl Send for Store {}

static STORE: Mutex<Store> = Mutex::new(Store::new());

impl Store {
    const fn new() -> Store {
        Store {
            sizes: Vec::new(),
            reserve: Reserve::new(false),
            large: Reserve::new(true),
            large_resident_bytes_max: LARGE_PAGE_BYTES,
            resident_bytes: 0,
        }
    }

    fn lock() -> MutexGuard<'static, Store> {
        // Lists of runs, valid after any panic: no update panics half-way.
        STORE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&mut self, pages: usize) -> NonNull<u8> {
        if self.sizes.is_empty() {
            self.sizes.resize_with(RUN_PAGES_MAX + 1, FreeRuns::default);
        }
        if let Some(run) = self.sizes[pages].resident.pop() {
            self.resident_bytes -= counted_bytes(pages);
            return run;
        }
        match self.sizes[pages].unbacked.pop() {
            Some(run) => run,
            None if pages == RUN_PAGES_MAX => self.large.take(LARGE_PAGE_BYTES),
            None => self.reserve.take(pages * PAGE_BYTES),
        }
    }

    fn put_back(&mut self, run: NonNull<u8>, pages: usize) {
        let free = &mut self.sizes[pages];
        let of_size_max =
            if pages == RUN_PAGES_MAX { self.large_resident_bytes_max } else { RESIDENT_BYTES_MAX };
        let stays = (free.resident.len() + 1) * pages * PAGE_BYTES <= of_size_max
            && self.resident_bytes + counted_bytes(pages) <= ALL_RESIDENT_BYTES_MAX;
        match stays {
            true => {
                free.resident.push(run);
                self.resident_bytes += counted_bytes(pages);
            }
            false => free.return_memory(run, pages),
        }
    }

    fn set_resident_large_bytes(&mut self, bytes: usize) {
        self.large_resident_bytes_max = bytes;
        let Some(free) = self.sizes.get_mut(RUN_PAGES_MAX) else { return };
        while free.resident.len() > bytes / LARGE_PAGE_BYTES {
            let run = free.resident.pop().expect("the list is not empty");
            free.return_memory(run, RUN_PAGES_MAX);
        }
    }
}

/// Bytes that a free run of this many pages adds to `resident_bytes`: none for a large page.
fn counted_bytes(pages: usize) -> usize {
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
    fn runs_do_not_overlap() {
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
    fn a_run_has_whole_aligned_pages() {
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
    fn pages_are_filled_in_steps() {
        let mut pages = Pages::new(10);
        assert_eq!(pages.fill(|spare| Ok::<_, ()>(spare[..3].write_copy_of_slice(&[1; 3]))), Ok(3));
        assert_eq!(pages.fill(|_| Err("no")), Err("no"));
        assert_eq!(pages.fill(|spare| Ok::<_, ()>(spare[..2].write_copy_of_slice(&[2; 2]))), Ok(2));
        assert_eq!(pages.as_ref(), [1, 1, 1, 2, 2]);
    }

    #[test]
    #[should_panic(expected = "not a prefix")]
    fn a_fill_must_return_a_prefix() {
        let _ = Pages::new(10).fill(|spare| Ok::<_, ()>(spare[1..2].write_copy_of_slice(&[1])));
    }

    #[test]
    fn freed_memory_is_returned() {
        let mut store = Store::new();
        let runs: Vec<_> = (0..100).map(|_| store.take(17)).collect();
        let before = runs.clone();
        for run in runs {
            // SAFETY: this test owns the run.
            unsafe { run.as_ptr().write(7) };
            store.put_back(run, 17);
        }
        let free = &store.sizes[17];
        assert_eq!(free.resident.len(), RESIDENT_BYTES_MAX / (17 * PAGE_BYTES));
        assert_eq!(free.resident.len() + free.unbacked.len(), 100);
        // SAFETY: addresses of this store, which no other thread reads.
        let zeroed = free.unbacked.iter().all(|run| unsafe { run.as_ptr().read() } == 0);
        assert!(zeroed, "returned runs have no memory");
        let again: Vec<_> = (0..100).map(|_| store.take(17)).collect();
        assert!(again.iter().all(|run| before.contains(run)), "addresses are reused");
        assert_eq!(store.resident_bytes, 0);
    }

    #[test]
    fn large_pages_stay_resident_up_to_the_limit() {
        let mut store = Store::new();
        let resident = |store: &Store| store.sizes[RUN_PAGES_MAX].resident.len();
        for (resident_bytes, expected) in
            [(LARGE_PAGE_BYTES, 1), (20 * LARGE_PAGE_BYTES, 20), (usize::MAX, 30)]
        {
            store.set_resident_large_bytes(resident_bytes);
            let runs: Vec<_> = (0..30).map(|_| store.take(RUN_PAGES_MAX)).collect();
            runs.into_iter().for_each(|run| store.put_back(run, RUN_PAGES_MAX));
            assert_eq!(resident(&store), expected);
        }
        store.set_resident_large_bytes(3 * LARGE_PAGE_BYTES);
        assert_eq!(resident(&store), 3);
        store.set_resident_large_bytes(0);
        assert_eq!((resident(&store), store.sizes[RUN_PAGES_MAX].unbacked.len()), (0, 30));
    }
}
