//! Random decisions of the simulation, all derived from the seed of the world.

use std::time::Duration;

use base::env::Random;
use base::testing::SeededRandom;

/// A sequence of random decisions. Each part of the world has its own, so that a change of one part
/// does not change the decisions of the others.
pub struct RandomSource(SeededRandom);

impl RandomSource {
    /// The sequence of `part` in the world of `seed`.
    pub fn new(seed: u64, part: &str) -> RandomSource {
        RandomSource(SeededRandom::new(seed_of(seed, part)))
    }

    /// The next 64 random bits.
    pub fn next(&self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&self, end: u64) -> u64 {
        self.next() % end
    }

    /// An index of a list of `len` elements.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn index(&self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True in one of `of` cases.
    pub fn one_in(&self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// A duration from `from` (inclusive) to `to` (exclusive).
    pub fn between(&self, from: Duration, to: Duration) -> Duration {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        from + Duration::from_nanos(self.below(nanos(to.saturating_sub(from)).max(1)))
    }
}

impl Random for RandomSource {
    fn next_u64(&self) -> u64 {
        self.next()
    }
}

/// The seed of one part of the world of `seed`.
pub fn seed_of(seed: u64, part: &str) -> u64 {
    let mut digest = crate::timeline::Digest::default();
    digest.add(seed);
    digest.add_bytes(part.as_bytes());
    digest.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_seeds_have_different_sequences() {
        let first = |seed, part: &str| RandomSource::new(seed, part).next();
        assert_eq!(first(1, "network"), first(1, "network"));
        assert_ne!(first(1, "network"), first(1, "disk"));
        assert_ne!(first(1, "network"), first(2, "network"));
    }

    #[test]
    fn durations_are_within_their_bounds() {
        let random = RandomSource::new(1, "");
        let (from, to) = (Duration::from_nanos(5), Duration::from_nanos(8));
        for _ in 0..100 {
            assert!((from..to).contains(&random.between(from, to)));
        }
        assert_eq!(random.between(to, to), to);
    }
}
