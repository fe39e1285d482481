//! When a major compaction of a store is due (HBase: `shouldPerformMajorCompaction`).
//!
//! The period differs from store to store, so that they are not all due simultaneously after a
//! restart. The difference derives from the name of the oldest file, so that it is the same after
//! every restart.

use crate::compaction::date_tiered;
use crate::compaction::facts::{FileFacts, SelectionTime};
use crate::compaction::settings::{Policy, Settings};

/// Whether a major compaction of `files` is due.
pub fn is_due(settings: &Settings, files: &[FileFacts], time: SelectionTime) -> bool {
    let Some(oldest) = files.first() else { return false };
    let period_ms = period_ms(settings, &oldest.name);
    let written_ms = files.iter().map(|file| file.modified_ms as i64).min().unwrap_or(0);
    // A negative period has always elapsed.
    if period_ms == 0 || written_ms <= 0 || written_ms >= time.now_ms.saturating_sub(period_ms) {
        return false;
    }
    match (settings.policy, files) {
        (Policy::DateTiered, _) => date_tiered::is_worth_rewriting(settings, files, time),
        (_, [only]) => is_partly_expired(only, time),
        _ => true,
    }
}

/// Whether a single file has an expired cell. Otherwise it would be rewritten unchanged.
fn is_partly_expired(file: &FileFacts, time: SelectionTime) -> bool {
    let age_ms = time.now_ms.saturating_sub(file.min_timestamp);
    time.ttl_ms.is_some_and(|ttl_ms| age_ms > ttl_ms)
}

/// Milliseconds between major compactions of the store whose oldest file has this name; 0 for
/// never.
pub fn period_ms(settings: &Settings, oldest_name: &str) -> i64 {
    let (period, jitter) = (settings.major_period_ms, settings.major_jitter);
    if period <= 0 || jitter <= 0.0 {
        return period;
    }
    let jitter = java_round(period as f64 * jitter);
    let shift = java_round((jitter.saturating_mul(2)) as f64 * java_random(java_hash(oldest_name)));
    period.saturating_add(jitter).saturating_sub(shift)
}

/// `Math.round` of Java.
fn java_round(number: f64) -> i64 {
    (number + 0.5).floor() as i64
}

/// `String.hashCode` of Java.
fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The first `nextDouble` of a `java.util.Random` with this seed.
fn java_random(seed: i32) -> f64 {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = (i64::from(seed) as u64 ^ MULTIPLIER) & MASK;
    let mut next = |bits: u32| {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        state >> (48 - bits)
    };
    let high = next(26);
    ((high << 27) + next(27)) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of a JVM: `"".hashCode()`, `"abc".hashCode()`, and `new Random(seed).nextDouble()`.
    #[test]
    fn random_numbers_equal_those_of_java() {
        let hashes = ["", "abc", "0123456789abcdef0123456789abcdef"].map(java_hash);
        assert_eq!(hashes, [0, 96354, -1_783_317_168]);
        assert_eq!(java_random(0), 0.730967787376657);
        assert_eq!(java_random(-1), 0.26894263088050496);
        assert_eq!(java_random(-1_783_317_168), 0.7266765104586825);
    }

    #[test]
    fn the_period_is_near_its_mean_and_depends_on_the_name() {
        let settings = Settings { major_period_ms: 1000, major_jitter: 0.5, ..Settings::default() };
        let periods: Vec<i64> = (0..100_u128)
            .map(|n| period_ms(&settings, &format!("{:032x}", n * 0x9E37_79B9_7F4A_7C15_u128)))
            .collect();
        assert!(periods.iter().all(|period| (500..=1500).contains(period)), "{periods:?}");
        assert!(periods.iter().any(|period| *period < 800) && periods.iter().any(|period| *period > 1200));
        assert_eq!(period_ms(&Settings { major_jitter: 0.0, ..settings.clone() }, "a"), 1000);
        assert_eq!(period_ms(&Settings { major_period_ms: 0, ..settings }, "a"), 0);
    }
}
