//! The ranges of `MultiRowRangeFilter`: always sorted and disjoint.

use cell::filter::RowRange;

use super::invalid_filter;
use crate::convert::Refused;

/// Decodes ranges. HBase's clients send them sorted and merged; ranges of other clients are sorted
/// and merged here.
///
/// # Errors
/// As in HBase's class: for an empty list, and for a range that ends before it begins.
pub(super) fn decode(ranges: &[proto::RowRange]) -> Result<Vec<RowRange>, Refused> {
    if ranges.is_empty() {
        return Err(invalid_filter("java.lang.IllegalArgumentException: No ranges found."));
    }
    let mut sorted = ranges.iter().map(range).collect::<Result<Vec<_>, _>>()?;
    sorted.sort_by(|left, right| left.start.cmp(&right.start));
    let mut merged: Vec<RowRange> = Vec::with_capacity(sorted.len());
    for next in sorted {
        match merged.last_mut().filter(|last| meets(last, &next)) {
            Some(last) => merge(last, next),
            None => merged.push(next),
        }
    }
    let is_before = |low: &RowRange, high: &RowRange| {
        low.stop < high.start || (low.stop == high.start && !(low.stop_inclusive && high.start_inclusive))
    };
    debug_assert!(
        merged.windows(2).all(|pair| is_before(&pair[0], &pair[1])),
        "ranges are sorted and disjoint after the merge"
    );
    Ok(merged)
}

fn range(message: &proto::RowRange) -> Result<RowRange, Refused> {
    let range = RowRange {
        start: message.start_row.clone().unwrap_or_default(),
        start_inclusive: message.start_row_inclusive(),
        stop: message.stop_row.clone().unwrap_or_default(),
        stop_inclusive: message.stop_row_inclusive(),
    };
    let empty = range.start == range.stop && !(range.start_inclusive && range.stop_inclusive);
    if !range.stop.is_empty() && (range.stop < range.start || empty) {
        return Err(invalid_filter("java.lang.IllegalArgumentException: Invalid rowRange"));
    }
    Ok(range)
}

/// Whether the ranges overlap or touch. `next` must not start before `last`.
fn meets(last: &RowRange, next: &RowRange) -> bool {
    last.start == next.start
        || last.stop.is_empty()
        || last.stop > next.start
        || (last.stop == next.start && (last.stop_inclusive || next.start_inclusive))
}

fn merge(last: &mut RowRange, next: RowRange) {
    if last.start == next.start {
        last.start_inclusive |= next.start_inclusive;
    }
    if last.stop == next.stop {
        last.stop_inclusive |= next.stop_inclusive;
    } else if !last.stop.is_empty() && (next.stop.is_empty() || next.stop > last.stop) {
        (last.stop, last.stop_inclusive) = (next.stop, next.stop_inclusive);
    }
}

/// The message of a range.
pub(super) fn encode(range: &RowRange) -> proto::RowRange {
    proto::RowRange {
        start_row: Some(range.start.clone()),
        start_row_inclusive: Some(range.start_inclusive),
        stop_row: Some(range.stop.clone()),
        stop_row_inclusive: Some(range.stop_inclusive),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `[a,c)` and the like.
    fn message(text: &str) -> proto::RowRange {
        let (start, stop) = text[1..text.len() - 1].split_once(',').unwrap();
        proto::RowRange {
            start_row: Some(start.to_string().into()),
            start_row_inclusive: Some(text.starts_with('[')),
            stop_row: Some(stop.to_string().into()),
            stop_row_inclusive: Some(text.ends_with(']')),
        }
    }

    fn shown(ranges: &[&str]) -> String {
        let messages: Vec<_> = ranges.iter().map(|text| message(text)).collect();
        let one = |range: &RowRange| {
            let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
            let open = if range.start_inclusive { '[' } else { '(' };
            let close = if range.stop_inclusive { ']' } else { ')' };
            format!("{open}{},{}{close}", text(&range.start), text(&range.stop))
        };
        decode(&messages).map_or("refused".into(), |ranges| ranges.iter().map(one).collect())
    }

    #[test]
    fn ranges_are_sorted_and_merged() {
        assert_eq!(shown(&["[e,g]", "[a,c)"]), "[a,c)[e,g]");
        assert_eq!(shown(&["[a,c)", "[b,d]"]), "[a,d]");
        assert_eq!(shown(&["[a,c)", "[c,d]"]), "[a,d]");
        assert_eq!(shown(&["[a,c)", "(c,d]"]), "[a,c)(c,d]");
        assert_eq!(shown(&["(a,c]", "[a,b]"]), "[a,c]");
        assert_eq!(shown(&["[a,)", "[c,d]"]), "[a,)");
        assert_eq!(shown(&["[a,b]", "[a,)"]), "[a,)");
    }

    #[test]
    fn impossible_ranges_are_refused() {
        assert_eq!(shown(&[]), "refused");
        assert_eq!(shown(&["[b,a]"]), "refused");
        assert_eq!(shown(&["[b,b)"]), "refused");
    }
}
