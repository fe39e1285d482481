//! The rows of a benchmark's table: keys as PerformanceEvaluation writes them, values that are told from the key.

use bytes::Bytes;

/// The family and the qualifier of the one column, PerformanceEvaluation's.
pub(super) const FAMILY: &[u8] = b"info0";
pub(super) const QUALIFIER: &[u8] = b"0";
/// The column that is counted up and appended to, so that the values of the other stay as they were written.
pub(super) const COUNTER: &[u8] = b"counter";

/// Digits of a key (PerformanceEvaluation's `ROW_LENGTH`).
const KEY_LEN: usize = 26;
/// Values begin with one of so many letters, so that a filter lets a known share of them pass.
const SHARES: u64 = 10;

/// The rows of a table, by their number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    /// How many there are.
    pub(super) count: u64,
    /// Bytes of a value.
    pub(super) value_len: usize,
}

impl Rows {
    /// The key of row `at`: its number with zeros before it.
    pub(super) fn key(at: u64) -> Bytes {
        let mut key = vec![b'0'; KEY_LEN];
        let mut left = at;
        for digit in key.iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        key.into()
    }

    /// The value of row `at`: letters that do not compress well, the same each time.
    pub(super) fn value(&self, at: u64) -> Vec<u8> {
        let mut chance = Chance::new(at);
        let mut value = Vec::with_capacity(self.value_len + 8);
        value.push(b'a' + (chance.next() % SHARES) as u8);
        while value.len() < self.value_len {
            value.extend(chance.next().to_le_bytes());
        }
        value.truncate(self.value_len);
        value
    }

    /// How values begin of which about `tenths` tenths of all rows are: the letters before this one.
    pub(super) fn share_end(tenths: u8) -> [u8; 1] {
        [b'a' + tenths.min(SHARES as u8)]
    }
}

/// Numbers that look random, the same for the same seed (SplitMix64, by Steele, Lea and Flood).
#[derive(Debug, Clone)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Chance {
        Chance(seed)
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
        assert!(end > 0, "there is no number below 0");
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
    fn chance_stays_below_its_end_and_reaches_all() {
        let mut chance = Chance::new(1);
        let mut met = [false; 5];
        for _ in 0..1_000 {
            met[chance.below(5) as usize] = true;
        }
        assert_eq!(met, [true; 5]);
    }
}
