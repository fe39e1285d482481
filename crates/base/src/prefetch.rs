//! Prefetch hints for memory that will be read soon.

/// Prefetches the cache lines of the first `bytes` bytes of `memory`, or of all of it if it is
/// shorter. A hint without visible effect.
#[inline]
pub fn prefetch<T>(memory: &[T], bytes: usize) {
    prefetch_at(memory.as_ptr().cast(), size_of_val(memory).min(bytes));
}

/// The same for the `bytes` bytes from `start`, which may be any address.
#[inline]
pub fn prefetch_at(start: *const u8, bytes: usize) {
    const LINE_BYTES: usize = 64;
    // Start at a line boundary, so that the last line is not missed.
    let before = start.addr() % LINE_BYTES;
    for at in (0..before + bytes).step_by(LINE_BYTES) {
        prefetch_line(start.wrapping_sub(before).wrapping_add(at));
    }
}

#[inline]
fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees, and faults for no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    // Other architectures have no stable intrinsic.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
