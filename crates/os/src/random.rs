//! Random numbers, seeded by the kernel.

use std::sync::atomic::{AtomicU64, Ordering};

use base::env::Random;

/// SplitMix64 with a seed from the kernel. For names, salts and jitter, not for secrets.
pub struct OsRandom {
    state: AtomicU64,
}

impl OsRandom {
    /// Creates a generator with a seed from the kernel.
    ///
    /// # Panics
    /// If the kernel returns no random bytes.
    pub fn new() -> OsRandom {
        let mut seed = [0u8; 8];
        let filled = rustix::rand::getrandom(&mut seed[..], rustix::rand::GetRandomFlags::empty());
        assert_eq!(filled, Ok(seed.len()), "the kernel returns random bytes");
        OsRandom { state: AtomicU64::new(u64::from_ne_bytes(seed)) }
    }
}

impl Random for OsRandom {
    fn next_u64(&self) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.state.fetch_add(GOLDEN, Ordering::Relaxed).wrapping_add(GOLDEN);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
