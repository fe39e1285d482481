//! Ranges of row keys, and how they cover the key space.
//!
//! An empty start key is before all rows and an empty end key is after all rows. Never compare an
//! end key with another key as bytes: [`EndKey`] has the right order, and all code that compares
//! region ranges uses it.
//!
//! Rows are compared as bytes. `hbase:meta`, whose rows have another order, has one region without
//! bounds.

use std::cmp::Ordering;

use bytes::Bytes;

/// The exclusive end of a range. An empty key is after all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndKey<'a>(pub &'a [u8]);

impl EndKey<'_> {
    /// Whether the range has no upper bound.
    pub fn is_unbounded(self) -> bool {
        self.0.is_empty()
    }

    /// Whether `row` is before this end.
    #[inline]
    pub fn is_after(self, row: &[u8]) -> bool {
        self.0.is_empty() || row < self.0
    }
}

impl Ord for EndKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0.is_empty(), other.0.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.0.cmp(other.0),
        }
    }
}

impl PartialOrd for EndKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The lower of two end keys.
pub fn min_end<'a>(left: &'a Bytes, right: &'a Bytes) -> &'a Bytes {
    if EndKey(left) <= EndKey(right) { left } else { right }
}

/// The higher of two end keys.
pub fn max_end<'a>(left: &'a Bytes, right: &'a Bytes) -> &'a Bytes {
    if EndKey(left) >= EndKey(right) { left } else { right }
}

/// The rows in `[start, end)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The first row; empty for no bound.
    pub start: Bytes,
    /// The first row after the range; empty for no bound.
    pub end: Bytes,
}

impl KeyRange {
    /// Builds a range from its bounds.
    pub fn new(start: impl Into<Bytes>, end: impl Into<Bytes>) -> KeyRange {
        KeyRange { start: start.into(), end: end.into() }
    }

    /// All rows.
    pub fn all() -> KeyRange {
        KeyRange { start: Bytes::new(), end: Bytes::new() }
    }

    /// Whether the range contains no row.
    pub fn is_empty(&self) -> bool {
        !EndKey(&self.end).is_after(&self.start)
    }

    /// Whether the range contains `row`.
    pub fn contains(&self, row: &[u8]) -> bool {
        *self.start <= *row && EndKey(&self.end).is_after(row)
    }

    /// Whether the two ranges overlap.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        EndKey(&self.end).is_after(&other.start) && EndKey(&other.end).is_after(&self.start)
    }

    /// Whether one range begins where the other ends.
    pub fn is_adjacent(&self, other: &KeyRange) -> bool {
        let follows =
            |first: &KeyRange, second: &KeyRange| !first.end.is_empty() && first.end == second.start;
        follows(self, other) || follows(other, self)
    }

    /// The intersection; `None` if it is empty.
    pub fn intersection(&self, other: &KeyRange) -> Option<KeyRange> {
        let start = (&self.start).max(&other.start).clone();
        let both = KeyRange { start, end: min_end(&self.end, &other.end).clone() };
        (!both.is_empty()).then_some(both)
    }

    /// The smallest range that covers both.
    pub fn span(&self, other: &KeyRange) -> KeyRange {
        let start = (&self.start).min(&other.start).clone();
        KeyRange { start, end: max_end(&self.end, &other.end).clone() }
    }

    /// The union as one range; `None` if there is a gap between the two.
    pub fn merge(&self, other: &KeyRange) -> Option<KeyRange> {
        (self.is_adjacent(other) || self.overlaps(other)).then(|| self.span(other))
    }
}

/// A part of the key space and the number of ranges that cover it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageSegment {
    /// The rows of this part.
    pub range: KeyRange,
    /// Number of ranges that cover it.
    pub count: usize,
}

/// Counts how many of `ranges` cover each part of the key space. The parts are in order and
/// adjacent parts have different counts. Empty ranges are ignored.
pub fn coverage(ranges: &[KeyRange]) -> Vec<CoverageSegment> {
    // Keys at which the count changes, and the difference. An unbounded range has no end to record.
    let mut steps: Vec<(&Bytes, i64)> = Vec::with_capacity(ranges.len() * 2);
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        steps.push((&range.start, 1));
        if !EndKey(&range.end).is_unbounded() {
            steps.push((&range.end, -1));
        }
    }
    steps.sort();
    let mut segments: Vec<CoverageSegment> = Vec::new();
    let (mut from, mut count) = (Bytes::new(), 0_i64);
    let mut close = |from: &Bytes, end: Bytes, count: i64| match segments.last_mut() {
        Some(last) if last.count as i64 == count => last.range.end = end,
        _ => segments
            .push(CoverageSegment { range: KeyRange { start: from.clone(), end }, count: count as usize }),
    };
    for group in steps.chunk_by(|one, other| one.0 == other.0) {
        let at = group[0].0;
        if *at > from {
            close(&from, at.clone(), count);
            from = at.clone();
        }
        count += group.iter().map(|(_, step)| step).sum::<i64>();
        debug_assert!(count >= 0, "a range starts before it ends");
    }
    close(&from, Bytes::new(), count);
    debug_assert!(
        segments.windows(2).all(|pair| pair[0].range.end == pair[1].range.start),
        "the segments contain each key once"
    );
    segments
}

/// The parts of the key space that no range covers.
pub fn holes(ranges: &[KeyRange]) -> Vec<KeyRange> {
    coverage(ranges).into_iter().filter(|segment| segment.count == 0).map(|segment| segment.range).collect()
}

/// Groups of overlapping ranges, by index: each range of a group overlaps another one of the group.
/// Groups, and the indexes in each group, are in key order.
pub fn overlapping(ranges: &[KeyRange]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|at| !ranges[*at].is_empty()).collect();
    order.sort_by(|one, other| {
        let (one, other) = (&ranges[*one], &ranges[*other]);
        one.start.cmp(&other.start).then_with(|| EndKey(&one.end).cmp(&EndKey(&other.end)))
    });
    let mut groups: Vec<(Bytes, Vec<usize>)> = Vec::new();
    for at in order {
        let range = &ranges[at];
        match groups.last_mut() {
            Some((end, group)) if EndKey(end).is_after(&range.start) => {
                *end = max_end(end, &range.end).clone();
                group.push(at);
            }
            _ => groups.push((range.end.clone(), vec![at])),
        }
    }
    groups.into_iter().map(|(_, group)| group).filter(|group| group.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &'static str, end: &'static str) -> KeyRange {
        KeyRange::new(start, end)
    }

    #[test]
    fn an_empty_end_key_is_after_all_rows() {
        assert!(EndKey(b"") > EndKey(b"\xff\xff") && EndKey(b"a") < EndKey(b"b"));
        assert_eq!(EndKey(b"").cmp(&EndKey(b"")), Ordering::Equal);
        assert!(
            range("b", "").contains(b"z") && range("", "b").contains(b"") && !range("", "b").contains(b"b")
        );
        assert!(range("b", "b").is_empty() && range("c", "b").is_empty());
        assert!(!range("b", "").is_empty() && !KeyRange::all().is_empty());
    }

    #[test]
    fn the_last_range_is_not_adjacent_to_the_first() {
        // Their empty keys are equal as bytes, but mean the two ends of the key space.
        assert!(!range("", "d").is_adjacent(&range("m", "")));
        assert!(!range("m", "").is_adjacent(&range("", "d")));
        assert!(!range("", "").is_adjacent(&range("", "")));
        assert!(range("", "d").is_adjacent(&range("d", "m")) && range("d", "m").is_adjacent(&range("", "d")));
    }

    #[test]
    fn ranges_overlap_or_not() {
        assert!(range("a", "").overlaps(&range("c", "f")) && range("c", "f").overlaps(&range("a", "")));
        assert!(range("", "").overlaps(&range("", "")) && range("", "b").overlaps(&range("a", "c")));
        assert!(!range("a", "c").overlaps(&range("c", "f")) && !range("m", "").overlaps(&range("", "d")));
        assert_eq!(range("", "c").intersection(&range("b", "")), Some(range("b", "c")));
        assert_eq!(range("", "c").intersection(&range("c", "")), None);
        assert_eq!(range("", "c").merge(&range("c", "")), Some(KeyRange::all()));
        assert_eq!(range("", "b").merge(&range("c", "")), None);
        assert_eq!(range("b", "c").span(&range("f", "")), range("b", ""));
    }

    #[test]
    fn coverage_counts_ranges_of_each_part() {
        let counts = |ranges: &[KeyRange]| {
            let segments = coverage(ranges);
            let text = |key: &Bytes| String::from_utf8(key.to_vec()).unwrap();
            let shown = |segment: &CoverageSegment| {
                format!("{}-{}:{}", text(&segment.range.start), text(&segment.range.end), segment.count)
            };
            segments.iter().map(shown).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(counts(&[]), "-:0");
        assert_eq!(counts(&[range("", "d"), range("d", "")]), "-:1");
        assert_eq!(counts(&[range("", ""), range("d", "e"), range("e", "m")]), "-d:1 d-m:2 m-:1");
        assert_eq!(counts(&[range("b", "c"), range("x", "x")]), "-b:0 b-c:1 c-:0");
        assert_eq!(counts(&[range("", ""), range("", "")]), "-:2");
        assert_eq!(holes(&[range("b", "c"), range("d", "")]), [range("", "b"), range("c", "d")]);
        assert!(holes(&[range("", "c"), range("c", "")]).is_empty());
    }

    #[test]
    fn overlapping_ranges_form_groups() {
        let ranges = [range("m", ""), range("e", "m"), range("d", "e"), range("", ""), range("", "")];
        assert_eq!(overlapping(&ranges[..3]), Vec::<Vec<usize>>::new());
        assert_eq!(overlapping(&ranges), [[3, 4, 2, 1, 0]]);
        let two = [range("", "c"), range("b", "d"), range("d", "e"), range("e", "h"), range("f", "g")];
        assert_eq!(overlapping(&two), [[0, 1], [3, 4]]);
    }

    /// Compares with counting the ranges of each row separately.
    #[test]
    fn coverage_agrees_with_counting_each_row() {
        let mut state = 1_u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..500 {
            let mut key = || match next(8) {
                0 => Bytes::new(),
                digit => Bytes::from(vec![b'a' + digit as u8]),
            };
            let ranges: Vec<KeyRange> = (0..5).map(|_| KeyRange { start: key(), end: key() }).collect();
            let segments = coverage(&ranges);
            for row in [&b""[..], b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i", b"zz"] {
                let counted = ranges.iter().filter(|range| range.contains(row)).count();
                let found: Vec<_> = segments.iter().filter(|segment| segment.range.contains(row)).collect();
                assert_eq!((found.len(), found[0].count), (1, counted), "{ranges:?} {row:?}");
            }
        }
    }
}
