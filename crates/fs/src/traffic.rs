//! Counts of completed reads and writes.

use std::iter::Sum;
use std::ops::AddAssign;

/// Completed reads and writes, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads.
    pub reads: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.writes += other.writes;
        self.written_bytes += other.written_bytes;
    }
}

impl Sum for Traffic {
    fn sum<I: Iterator<Item = Traffic>>(all: I) -> Traffic {
        let mut sum = Traffic::default();
        all.for_each(|one| sum += one);
        sum
    }
}
