//! Replaces the operating system's random numbers on the threads of simulations.
//!
//! The iteration order of the standard library's hash maps depends on keys that each thread reads
//! from the system once. Without this module, two runs of one seed would iterate in different
//! orders. The standard library finds `getrandom` when the program is linked, so a function of this
//! name in the program replaces that of the C library.

use std::cell::Cell;
use std::ffi::{c_uint, c_void};

thread_local! {
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Makes the hash keys of this thread depend only on `seed`. Call it before the thread creates its
/// first hash map.
pub fn seed_thread(seed: u64) {
    SEED.set(Some(seed));
}

/// `getrandom` of the C library: random bytes from the system, except on a seeded thread.
///
/// # Safety
/// `buffer` must be valid for writes of `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, len: usize, flags: c_uint) -> isize {
    let Ok(Some(seed)) = SEED.try_with(Cell::get) else {
        // SAFETY: the same contract as this function's.
        let read = unsafe { libc::syscall(libc::SYS_getrandom, buffer, len, flags) };
        return read as isize;
    };
    // SAFETY: the caller guarantees that `len` bytes can be written.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) };
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = crate::random::seed_of(seed, "entropy").rotate_left(at as u32 * 8) as u8 ^ at as u8;
    }
    len as isize
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The iteration order of a hash set on a new thread.
    #[allow(clippy::disallowed_methods)] // Hash keys belong to a thread.
    fn order(seed: Option<u64>) -> Vec<u32> {
        let iterate = move || {
            if let Some(seed) = seed {
                seed_thread(seed);
            }
            (0..100).collect::<HashSet<u32>>().into_iter().collect()
        };
        std::thread::spawn(iterate).join().unwrap()
    }

    #[test]
    fn the_seed_determines_the_order_of_hash_sets() {
        assert_eq!(order(Some(1)), order(Some(1)));
        assert_ne!(order(Some(1)), order(Some(2)));
    }

    #[test]
    fn other_threads_have_random_orders() {
        assert_ne!(order(None), order(None));
    }
}
