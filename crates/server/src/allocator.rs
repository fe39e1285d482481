//! The process's allocator: mimalloc, which keeps many small allocations of different lengths apart by size and thread. What
//! is large and lives long is in `base::pages`.
//!
//! The way for aligned memory, which Rust's usual binding takes for everything, makes an allocation longer and moves its
//! beginning wherever a length is no power of two and no block of its size is at hand, though blocks are aligned well enough as
//! they are: a twentieth of all instructions of a Get, and the memory it was longer by.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_long, c_void};

use libmimalloc_sys as sys;
use rustix::process::{Resource, getrlimit};

/// How long freed pages are kept. The allocator's own default of a second is long enough for a burst of requests to be in
/// memory twice.
const PURGE_DELAY_MS: c_long = 10;
/// Source: `mi_option_e` of mimalloc 3.
const PURGE_DELAY_OPTION: sys::mi_option_t = 15;

/// Addresses that are reserved at a time, in KiB. Source: `mi_option_e` of mimalloc 3.
const ARENA_RESERVE_OPTION: sys::mi_option_t = 23;
/// Of a limit of addresses this part is reserved at a time; the bounds are 32 MiB and mimalloc's own default.
const ARENA_PART: u64 = 32;
const ARENA_KIB_MIN: u64 = 32 << 10;
const ARENA_KIB_MAX: u64 = 1 << 20;

/// What all memory is aligned to that is not shorter; what is shorter is aligned to its length's power of two below, 8 at
/// least. Source: `MI_MAX_ALIGN_SIZE` of mimalloc, which asserts it of each block (`_mi_page_malloc_zero`).
const ALIGNED: usize = 16;

/// mimalloc, asked for alignment only where that is not there by itself.
pub(crate) struct Allocator;

/// Whether memory of this length is aligned so by itself.
#[inline]
fn is_aligned(size: usize, align: usize) -> bool {
    align <= ALIGNED && align <= size
}

// SAFETY: memory comes from mimalloc and goes back to it, which knows the length of its blocks; the alignment is either asked
// for or below what all blocks of the length have.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let memory = match is_aligned(size, align) {
            // SAFETY: any length may be asked for.
            true => unsafe { sys::mi_malloc(size) },
            // SAFETY: any length may be asked for, aligned to a power of two.
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
        // SAFETY: the caller has it from here.
        unsafe { sys::mi_free(memory.cast()) };
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let memory = memory.cast::<c_void>();
        let memory = match is_aligned(size, layout.align()) {
            // SAFETY: the caller has it from here; what it is moved to is aligned as above.
            true => unsafe { sys::mi_realloc(memory, size) },
            // SAFETY: the same, asked for.
            false => unsafe { sys::mi_realloc_aligned(memory, size, layout.align()) },
        };
        memory.cast()
    }
}

/// Sets it up; first of all in `main`.
pub(crate) fn set_up() {
    // SAFETY: sets a number within the allocator; nothing else reads it yet.
    unsafe { sys::mi_option_set(PURGE_DELAY_OPTION, PURGE_DELAY_MS) };
    // A process that may have few addresses cannot reserve a GiB of them at a time.
    if let Some(limit) = getrlimit(Resource::As).current {
        let kib = (limit / 1024 / ARENA_PART).clamp(ARENA_KIB_MIN, ARENA_KIB_MAX);
        // SAFETY: as above.
        unsafe { sys::mi_option_set(ARENA_RESERVE_OPTION, kib as c_long) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_as_it_is_asked_for() {
        let mut kept = Vec::new();
        for size in (1..300).chain([1000, 1025, 3000, 5000, 70_000, 200_001, 3 << 20]) {
            for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the layout is not empty; each piece is given back once, by the layout that it has.
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
