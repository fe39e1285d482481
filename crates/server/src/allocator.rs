//! The process's allocator: mimalloc, which handles many small allocations of different lengths
//! well by separating them by size and thread. Large, long-lived memory is in `base::pages`.
//!
//! Rust's usual binding calls mimalloc's aligned functions for every allocation. Where a length is
//! not a power of two and no free block of its size is available, these functions allocate more and
//! move the start. That is unnecessary, because mimalloc's blocks already have sufficient
//! alignment. It cost a twentieth of all instructions of a Get, plus the extra memory.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_long, c_void};

use libmimalloc_sys as sys;
use rustix::process::{Resource, getrlimit};

/// How long freed pages stay committed. mimalloc's default of one second is long enough for the
/// memory of a burst of requests to be resident twice.
const PURGE_DELAY_MS: c_long = 10;
/// Source: `mi_option_e` of mimalloc 3.
const PURGE_DELAY_OPTION: sys::mi_option_t = 15;

/// Address space reserved at a time, in KiB. Source: `mi_option_e` of mimalloc 3.
const ARENA_RESERVE_OPTION: sys::mi_option_t = 23;
/// With a limit of address space, this fraction of it is reserved at a time, between 32 MiB and
/// mimalloc's own default (1 GiB).
const ARENA_DIVISOR: u64 = 32;
const ARENA_KIB_MIN: u64 = 32 << 10;
const ARENA_KIB_MAX: u64 = 1 << 20;

/// Alignment of every block of at least this length. A shorter block is aligned to the largest
/// power of two that does not exceed its length, at least 8. Source: `MI_MAX_ALIGN_SIZE` of
/// mimalloc, which asserts it for each block (`_mi_page_malloc_zero`).
const GUARANTEED_ALIGNMENT: usize = 16;

/// mimalloc; requests alignment explicitly only where mimalloc does not guarantee it anyway.
pub(crate) struct Allocator;

/// Whether mimalloc aligns a block of this length sufficiently without a request.
#[inline]
fn is_aligned(size: usize, align: usize) -> bool {
    align <= GUARANTEED_ALIGNMENT && align <= size
}

// SAFETY: memory comes from mimalloc and returns to it, and mimalloc knows the length of its
// blocks. The alignment is either requested or guaranteed for all blocks of that length.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let memory = match is_aligned(size, align) {
            // SAFETY: any length may be requested.
            true => unsafe { sys::mi_malloc(size) },
            // SAFETY: any length may be requested, aligned to a power of two.
            false => unsafe { sys::mi_malloc_aligned(size, align) },
        };
        memory.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let memory = match is_aligned(size, align) {
            // SAFETY: as above.
            true => unsafe { sys::mi_zalloc(size) },
            // SAFETY: as above.
            false => unsafe { sys::mi_zalloc_aligned(size, align) },
        };
        memory.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: the caller got the memory from this allocator.
        unsafe { sys::mi_free(memory.cast()) };
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let memory = memory.cast::<c_void>();
        let memory = match is_aligned(size, layout.align()) {
            // SAFETY: the caller got the memory from this allocator; a moved block is aligned as
            // above.
            true => unsafe { sys::mi_realloc(memory, size) },
            // SAFETY: as above, with a requested alignment.
            false => unsafe { sys::mi_realloc_aligned(memory, size, layout.align()) },
        };
        memory.cast()
    }
}

/// Sets mimalloc's options. Call it first in `main`.
pub(crate) fn set_up() {
    // SAFETY: sets a number within the allocator; no other thread reads it yet.
    unsafe { sys::mi_option_set(PURGE_DELAY_OPTION, PURGE_DELAY_MS) };
    // A process with a limit of address space may not be able to reserve 1 GiB at a time.
    if let Some(limit) = getrlimit(Resource::As).current {
        let kib = (limit / 1024 / ARENA_DIVISOR).clamp(ARENA_KIB_MIN, ARENA_KIB_MAX);
        // SAFETY: as above.
        unsafe { sys::mi_option_set(ARENA_RESERVE_OPTION, kib as c_long) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_the_requested_alignment() {
        let mut kept = Vec::new();
        for size in (1..300).chain([1000, 1025, 3000, 5000, 70_000, 200_001, 3 << 20]) {
            for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the layout is not empty; each block is freed once, with its own layout.
                unsafe {
                    let memory = Allocator.alloc(layout);
                    assert!(!memory.is_null() && memory.addr().is_multiple_of(align), "{layout:?}");
                    memory.write_bytes(7, size);
                    let zeroed = Allocator.alloc_zeroed(layout);
                    assert!(zeroed.addr().is_multiple_of(align), "{layout:?}");
                    assert!((0..size).all(|at| zeroed.add(at).read() == 0), "{layout:?}");
                    Allocator.dealloc(zeroed, layout);
                    let longer = Allocator.realloc(memory, layout, size + 33);
                    assert!(longer.addr().is_multiple_of(align), "{layout:?}");
                    assert!((0..size).all(|at| longer.add(at).read() == 7), "{layout:?}");
                    kept.push((longer, Layout::from_size_align(size + 33, align).unwrap()));
                }
            }
        }
        // SAFETY: as above.
        kept.into_iter().for_each(|(memory, layout)| unsafe { Allocator.dealloc(memory, layout) });
    }
}
