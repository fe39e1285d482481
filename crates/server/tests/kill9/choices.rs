//! Random choices of the test.

use std::ops::Range;
use std::time::Duration;

use base::env::Random;
use base::testing::SeededRandom;

/// Random choices that depend on a seed.
pub struct RandomChoices(SeededRandom);

impl RandomChoices {
    pub fn new(seed: u64) -> RandomChoices {
        RandomChoices(SeededRandom::new(seed))
    }

    /// A number in `range`.
    pub fn within(&self, range: Range<u64>) -> u64 {
        range.start + self.0.next_u64() % (range.end - range.start)
    }

    pub fn millis(&self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    /// True once in `times`, on average.
    pub fn once_in(&self, times: u64) -> bool {
        self.within(0..times) == 0
    }

    /// A seed for a part of the test.
    pub fn seed(&self) -> u64 {
        self.0.next_u64()
    }
}
