//! A word to the processor about memory that will be read soon, so that it need not wait for it then.

/// Asks for the cache lines of the first `bytes` bytes of `memory`, as many as there are. A hint: it changes nothing.
#[inline]
pub fn prefetch<T>(memory: &[T], bytes: usize) {
    prefetch_at(memory.as_ptr().cast(), size_of_val(memory).min(bytes));
}

/// The same for the `bytes` bytes from `start` on, whatever is there.
#[inline]
pub fn prefetch_at(start: *const u8, bytes: usize) {
    const LINE_BYTES: usize = 64;
    // From the beginning of a line, lest the last one be left out.
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
    // Elsewhere there is no stable way to say so.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
