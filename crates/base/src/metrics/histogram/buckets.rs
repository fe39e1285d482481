//! The histogram buckets, each a sixteenth of its value wide.

/// Each power of two is divided into two to this power buckets.
const PARTS_BITS: u32 = 4;
const PARTS: u64 = 1 << PARTS_BITS;
/// Larger values count as the largest value of this many bits: a terabyte, or twelve days in
/// microseconds.
pub(super) const VALUE_BITS: u32 = 40;
pub(super) const BUCKETS: usize = ((VALUE_BITS - PARTS_BITS + 1) << PARTS_BITS) as usize;

/// The bucket index of a value.
#[inline]
pub(super) fn bucket_of(value: u64) -> usize {
    // Each value below PARTS has its own bucket.
    let power = (value | PARTS).ilog2() - PARTS_BITS;
    let bucket = (u64::from(power) << PARTS_BITS) + (value >> power);
    (bucket as usize).min(BUCKETS - 1)
}

/// Smallest value of a bucket.
pub(super) fn lowest_of(bucket: usize) -> u64 {
    let (power, part) = (bucket as u64 >> PARTS_BITS, bucket as u64 & (PARTS - 1));
    match power {
        0 => part,
        _ => (PARTS | part) << (power - 1),
    }
}

/// Largest value of a bucket.
pub(super) fn highest_of(bucket: usize) -> u64 {
    lowest_of(bucket + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bucket_that_is_narrow() {
        assert_eq!(bucket_of((1 << VALUE_BITS) - 1), BUCKETS - 1);
        for bucket in 0..BUCKETS {
            let (low, high) = (lowest_of(bucket), highest_of(bucket));
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            assert!(high - low <= low / 16, "{low} to {high}");
        }
    }
}
