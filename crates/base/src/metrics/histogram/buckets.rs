//! The buckets that values are counted by: a sixteenth of their value wide.

/// A bucket is a power of two divided by two to this power.
const PARTS_BITS: u32 = 4;
const PARTS: u64 = 1 << PARTS_BITS;
/// The greatest value that is told from greater ones has so many bits: a terabyte, twelve days in microseconds.
pub(super) const VALUE_BITS: u32 = 40;
pub(super) const BUCKETS: usize = ((VALUE_BITS - PARTS_BITS + 1) << PARTS_BITS) as usize;

/// The bucket of a value.
#[inline]
pub(super) fn bucket_of(value: u64) -> usize {
    // Those below PARTS are as if of its power: each has a bucket of its own.
    let power = (value | PARTS).ilog2() - PARTS_BITS;
    let bucket = (u64::from(power) << PARTS_BITS) + (value >> power);
    (bucket as usize).min(BUCKETS - 1)
}

/// The smallest value of a bucket.
pub(super) fn lowest_of(bucket: usize) -> u64 {
    let (power, part) = (bucket as u64 >> PARTS_BITS, bucket as u64 & (PARTS - 1));
    match power {
        0 => part,
        _ => (PARTS | part) << (power - 1),
    }
}

/// The greatest value of a bucket.
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
