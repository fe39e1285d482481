//! A word to the processor about memory that will be read soon, so that it need not wait for it then.

/// Asks for the cache lines of the first `bytes` bytes of `memory`, as many as there are. A hint: it changes nothing.
#[inline]
pub fn prefetch<T>(memory: &[T], bytes: usize) {
    const LINE_BYTES: usize = 64;
    let len = size_of_val(memory).min(bytes);
    for at in (0..len).step_by(LINE_BYTES) {
        prefetch_line(memory.as_ptr().cast::<u8>().wrapping_add(at));
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
