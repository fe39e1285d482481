//! The rows of a benchmark's table: PerformanceEvaluation's keys, and values derived from the keys.

use bytes::Bytes;

/// Family and qualifier of the only column, as in PerformanceEvaluation.
pub(super) const FAMILY: &[u8] = b"info0";
pub(super) const QUALIFIER: &[u8] = b"0";
/// The column of increments and appends. It is separate, so that they do not change the other
/// column's values.
pub(super) const COUNTER: &[u8] = b"counter";

/// Digits of a key (PerformanceEvaluation's `ROW_LENGTH`).
const KEY_LEN: usize = 26;
/// Number of letters that values begin with. A filter on the letter passes a known share of the
/// values.
const SHARES: u64 = 10;

/// The rows of a table, addressed by number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    /// Number of rows.
    pub(super) count: u64,
    /// Size of a value in bytes.
    pub(super) value_len: usize,
}

impl Rows {
    /// The key of row `at`: its number, padded with zeros.
    pub(super) fn key(at: u64) -> Bytes {
        let mut key = vec![b'0'; KEY_LEN];
        let mut left = at;
        for digit in key.iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        key.into()
    }

    /// The value of row `at`: bytes that compress badly, and the same on each call.
    pub(super) fn value(&self, at: u64) -> Vec<u8> {
        let mut random = SplitMix64::new(at);
        let mut value = Vec::with_capacity(self.value_len + 8);
        value.push(b'a' + (random.next() % SHARES) as u8);
        while value.len() < self.value_len {
            value.extend(random.next().to_le_bytes());
        }
        value.truncate(self.value_len);
        value
    }

    /// The exclusive upper bound of values that selects about `tenths` tenths of all rows.
    pub(super) fn share_end(tenths: u8) -> [u8; 1] {
        [b'a' + tenths.min(SHARES as u8)]
    }
}

/// A pseudorandom sequence, determined by its seed (SplitMix64, by Steele, Lea and Flood).
#[derive(Debug, Clone)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub(super) fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "end must be above 0");
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_numbers() {
        assert_eq!(Rows::key(0), "00000000000000000000000000");
        assert_eq!(Rows::key(1_234), "00000000000000000000001234");
        assert!(Rows::key(9) < Rows::key(10));
    }

    #[test]
    fn values_have_their_length_and_are_the_same_each_time() {
        for value_len in [1, 8, 9, 100] {
            let rows = Rows { count: 10, value_len };
            assert_eq!(rows.value(7).len(), value_len);
            assert_eq!(rows.value(7), rows.value(7));
        }
    }

    #[test]
    fn a_share_of_the_values_begins_below_its_end() {
        let rows = Rows { count: 10_000, value_len: 8 };
        for (tenths, wanted) in [(0, 0.0), (1, 0.1), (5, 0.5), (10, 1.0)] {
            let end = Rows::share_end(tenths);
            let below = (0..rows.count).filter(|at| rows.value(*at)[..] < end[..]).count();
            let share = below as f64 / rows.count as f64;
            assert!((share - wanted).abs() < 0.02, "{tenths} tenths: {share}");
        }
    }

    #[test]
    fn random_numbers_stay_below_their_end_and_reach_all() {
        let mut random = SplitMix64::new(1);
        let mut met = [false; 5];
        for _ in 0..1_000 {
            met[random.below(5) as usize] = true;
        }
        assert_eq!(met, [true; 5]);
    }
}
