//! The distribution of the values of an interval.

use super::buckets::{highest_of, lowest_of};

/// The values recorded in one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    // Non-empty buckets and their counts, in ascending order.
    counts: Vec<(u16, u32)>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Interval {
    /// A value that is recorded during the read may be missing from the counts but not from the
    /// rest, or the reverse.
    pub(super) fn of(counts: Vec<(u16, u32)>, sum: u64, min: u64, max: u64) -> Interval {
        debug_assert!(counts.is_sorted_by_key(|(bucket, _)| *bucket), "buckets are in ascending order");
        let (Some(first), Some(last)) = (counts.first(), counts.last()) else { return Interval::default() };
        let (least, greatest) = (lowest_of(first.0.into()), highest_of(last.0.into()));
        let count = counts.iter().map(|(_, count)| u64::from(*count)).sum();
        let (min, max) = (min.clamp(least, greatest), max.clamp(least, greatest));
        Interval { counts, count, sum, min: min.min(max), max }
    }

    /// `count` zeros.
    pub(super) fn of_zeros(count: u64) -> Interval {
        Interval { counts: vec![(0, count as u32)], count, ..Interval::default() }
    }

    /// The values of both intervals.
    pub(super) fn with(&self, other: &Interval) -> Interval {
        let (first, second) = match (self.count, other.count) {
            (_, 0) => return self.clone(),
            (0, _) => return other.clone(),
            _ => (self, other),
        };
        let mut counts = first.counts.clone();
        for (bucket, count) in &second.counts {
            match counts.binary_search_by_key(bucket, |(bucket, _)| *bucket) {
                Ok(at) => counts[at].1 = counts[at].1.saturating_add(*count),
                Err(at) => counts.insert(at, (*bucket, *count)),
            }
        }
        Interval {
            counts,
            count: first.count + second.count,
            sum: first.sum.wrapping_add(second.sum),
            min: first.min.min(second.min),
            max: first.max.max(second.max),
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Minimum; 0 without values.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// Maximum; 0 without values.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The value that a fraction `share` (0 to 1) of the values does not exceed, within three
    /// percent; 0 without values.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut passed = 0;
        for (bucket, count) in &self.counts {
            passed += u64::from(*count);
            if passed >= rank {
                let bucket = usize::from(*bucket);
                let middle = lowest_of(bucket).midpoint(highest_of(bucket));
                return middle.clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Number of values up to `value`, where each value counts as the middle of its bucket.
    pub fn count_up_to(&self, value: u64) -> u64 {
        let up_to = self.counts.iter().take_while(|(bucket, _)| {
            let bucket = usize::from(*bucket);
            lowest_of(bucket).midpoint(highest_of(bucket)) <= value
        });
        up_to.map(|(_, count)| u64::from(*count)).sum()
    }
}
