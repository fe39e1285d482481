//! Sets of code points, as sorted, non-adjacent ranges.
//!
//! Java represents classes as predicates. It tests them against code units if the whole class is in
//! the Basic Multilingual Plane, else against code points. A set stores which of the two applies,
//! because the results differ for text with surrogates.

/// Largest code point.
pub(crate) const CODE_POINT_MAX: u32 = 0x10_ffff;

/// A set of code points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassSet {
    ranges: Vec<(u32, u32)>,
    /// Whether Java tests it against code units.
    pub(crate) units: bool,
}

impl ClassSet {
    /// A set that is tested against code points, from ranges in any order.
    pub(crate) fn new(mut ranges: Vec<(u32, u32)>) -> ClassSet {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        ClassSet { ranges: merged, units: false }
    }

    /// A set that is tested against code units.
    pub(crate) fn of_units(ranges: Vec<(u32, u32)>) -> ClassSet {
        ClassSet { units: true, ..ClassSet::new(ranges) }
    }

    pub(crate) fn all() -> ClassSet {
        ClassSet::new(vec![(0, CODE_POINT_MAX)])
    }

    pub(crate) fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    pub(crate) fn contains(&self, code: u32) -> bool {
        let at = self.ranges.partition_point(|(_, high)| *high < code);
        self.ranges.get(at).is_some_and(|(low, _)| *low <= code)
    }

    /// The complement, which is always tested against code points.
    pub(crate) fn negate(&self) -> ClassSet {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = 0;
        for (low, high) in &self.ranges {
            if *low > next {
                ranges.push((next, low - 1));
            }
            next = high + 1;
        }
        if next <= CODE_POINT_MAX {
            ranges.push((next, CODE_POINT_MAX));
        }
        ClassSet { ranges, units: false }
    }

    pub(crate) fn union(&self, other: &ClassSet) -> ClassSet {
        let ranges = self.ranges.iter().chain(&other.ranges).copied().collect();
        ClassSet { units: self.units && other.units, ..ClassSet::new(ranges) }
    }

    pub(crate) fn intersect(&self, other: &ClassSet) -> ClassSet {
        let (mut left, mut right) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut ranges = Vec::new();
        while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
            let (low, high) = (one.0.max(two.0), one.1.min(two.1));
            if low <= high {
                ranges.push((low, high));
            }
            if one.1 < two.1 {
                left.next();
            } else {
                right.next();
            }
        }
        ClassSet { ranges, units: self.units && other.units }
    }

    pub(crate) fn without(&self, other: &ClassSet) -> ClassSet {
        self.intersect(&other.negate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_obey_the_laws_of_sets() {
        let (one, two) = (ClassSet::new(vec![(5, 9), (1, 4), (20, 30)]), ClassSet::new(vec![(8, 21)]));
        assert_eq!(one.ranges(), [(1, 9), (20, 30)]);
        assert_eq!(one.union(&two).ranges(), [(1, 30)]);
        assert_eq!(one.intersect(&two).ranges(), [(8, 9), (20, 21)]);
        assert_eq!(one.without(&two).ranges(), [(1, 7), (22, 30)]);
        assert_eq!(one.negate().negate(), one);
        assert_eq!(ClassSet::all().negate().ranges(), []);
        assert!(one.contains(9) && !one.contains(10) && !one.contains(0) && one.contains(30));
    }

    #[test]
    fn only_classes_of_code_units_make_a_class_of_code_units() {
        let (units, points) = (ClassSet::of_units(vec![(1, 2)]), ClassSet::new(vec![(2, 3)]));
        assert!(units.union(&units).units && units.intersect(&units).units);
        assert!(!units.union(&points).units && !points.union(&units).units && !units.negate().units);
    }
}
