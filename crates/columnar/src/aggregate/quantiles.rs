//! Approximate quantiles: counts in buckets with exponentially growing bounds. The relative error
//! is at most 1 %.
//!
//! Source: Masson, Rim, Lee, "DDSketch: a fast and fully-mergeable quantile sketch with
//! relative-error guarantees" (2019).

use std::collections::BTreeMap;

/// Maximum relative error of a reported quantile.
pub const ERROR: f64 = 0.01;
/// Offset that makes the numbers of buckets of small values positive.
const SHIFT: i32 = 1 << 20;

/// Counts of numbers by bucket.
///
/// Bucket 0 counts zeros. Bucket `b > 0` counts numbers from `g^(b - SHIFT - 1)` to
/// `g^(b - SHIFT)`, where `g = (1 + ERROR) / (1 - ERROR)`. Negative buckets count negative numbers.
/// NaN is not counted; infinities are in the outermost buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    buckets: BTreeMap<i32, u64>,
    count: u64,
}

impl Quantiles {
    /// Adds one number.
    pub fn add(&mut self, value: f64) {
        if let Some(bucket) = bucket(value) {
            self.add_to(bucket, 1);
        }
    }

    /// Adds `count` numbers to a bucket.
    pub fn add_to(&mut self, bucket: i32, count: u64) {
        let own = self.buckets.entry(bucket).or_default();
        *own = own.saturating_add(count);
        self.count = self.count.saturating_add(count);
    }

    /// Adds the numbers of `other`.
    pub fn merge(&mut self, other: &Quantiles) {
        other.buckets().for_each(|(bucket, count)| self.add_to(bucket, count));
    }

    /// Non-empty buckets and their counts, in order.
    pub fn buckets(&self) -> impl Iterator<Item = (i32, u64)> {
        self.buckets.iter().map(|(bucket, count)| (*bucket, *count))
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The approximate quantile at `share` (0 to 1); `None` if there are no numbers.
    pub fn at(&self, share: f64) -> Option<f64> {
        let rank = (share.clamp(0.0, 1.0) * self.count.saturating_sub(1) as f64) as u64;
        let mut before = 0;
        for (bucket, count) in self.buckets() {
            before = count.saturating_add(before);
            if before > rank {
                return Some(middle(bucket));
            }
        }
        None
    }

    /// Heap bytes, excluding `self`.
    pub fn heap_len(&self) -> usize {
        self.buckets.len() * 24
    }
}

fn growth_ln() -> f64 {
    ((1.0 + ERROR) / (1.0 - ERROR)).ln()
}

fn bucket(value: f64) -> Option<i32> {
    if value.is_nan() {
        return None;
    }
    if value == 0.0 {
        return Some(0);
    }
    let size = value.abs().min(f64::MAX);
    let bucket = (size.ln() / growth_ln()).ceil() as i32 + SHIFT;
    Some(if value < 0.0 { -bucket } else { bucket })
}

/// The number with the same relative distance to both bounds of a bucket.
fn middle(bucket: i32) -> f64 {
    if bucket == 0 {
        return 0.0;
    }
    let upper = (f64::from(bucket.saturating_abs() - SHIFT) * growth_ln()).exp();
    let middle = upper * (1.0 - ERROR);
    if bucket < 0 { -middle } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near() {
        let mut parts = [Quantiles::default(), Quantiles::default()];
        for value in -500..=500 {
            parts[(value & 1) as usize].add(f64::from(value) * 3.5);
        }
        let [mut all, other] = parts;
        all.merge(&other);
        assert_eq!(all.count(), 1001);
        for (share, exact) in [(0.0, -1750.0), (0.25, -875.0), (0.5, 0.0), (0.9, 1400.0), (1.0, 1750.0)] {
            let found = all.at(share).expect("there are some");
            assert!((found - exact).abs() <= exact.abs() * 0.0101, "{found} for {exact}");
        }
        assert_eq!(Quantiles::default().at(0.5), None);
    }

    #[test]
    fn extremes() {
        let mut all = Quantiles::default();
        for value in [f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324] {
            all.add(value);
        }
        assert_eq!(all.count(), 5);
        assert!(all.at(1.0).is_some_and(|found| found > 1e308));
        assert!(all.at(0.0).is_some_and(|found| found < -1e308));
    }
}
