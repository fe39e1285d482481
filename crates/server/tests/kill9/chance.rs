//! What the test chooses at random.

use std::ops::Range;
use std::time::Duration;

use base::env::Random;
use base::testing::SeededRandom;

/// Choices that depend on a seed.
pub struct Chance(SeededRandom);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(SeededRandom::new(seed))
    }

    /// A number of `range`.
    pub fn within(&self, range: Range<u64>) -> u64 {
        range.start + self.0.next_u64() % (range.end - range.start)
    }

    pub fn millis(&self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    /// True once in `times`.
    pub fn once_in(&self, times: u64) -> bool {
        self.within(0..times) == 0
    }

    /// A seed for a part of the test.
    pub fn seed(&self) -> u64 {
        self.0.next_u64()
    }
}
