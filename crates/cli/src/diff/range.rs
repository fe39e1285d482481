//! Row ranges that are compared independently.

use bytes::Bytes;
use cell::EndKey;

/// The rows from `start` to before `stop`; an empty key is the start or the end of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowRange {
    pub(crate) start: Bytes,
    pub(crate) stop: Bytes,
}

/// Divides the rows from `start` to before `stop` at the start keys of the regions of both tables,
/// so that each range is in one region of each table.
pub(crate) fn ranges(mut region_starts: Vec<Bytes>, start: &Bytes, stop: &Bytes) -> Vec<RowRange> {
    region_starts.retain(|key| key > start && EndKey(stop).is_after(key));
    region_starts.sort();
    region_starts.dedup();
    let starts = std::iter::once(start).chain(&region_starts);
    let stops = region_starts.iter().chain(std::iter::once(stop));
    starts.zip(stops).map(|(start, stop)| RowRange { start: start.clone(), stop: stop.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(region_starts: &[&'static str], start: &'static str, stop: &'static str) -> Vec<String> {
        let starts = region_starts.iter().map(|key| Bytes::from_static(key.as_bytes())).collect();
        let found =
            ranges(starts, &Bytes::from_static(start.as_bytes()), &Bytes::from_static(stop.as_bytes()));
        let text = |range: RowRange| format!("{}-{}", range.start.escape_ascii(), range.stop.escape_ascii());
        found.into_iter().map(text).collect()
    }

    #[test]
    fn ranges_end_where_a_region_of_either_table_begins() {
        assert_eq!(texts(&["", ""], "", ""), ["-"]);
        assert_eq!(texts(&["", "b", "d", "", "b", "c"], "", ""), ["-b", "b-c", "c-d", "d-"]);
    }

    #[test]
    fn ranges_stay_between_the_first_and_the_last_row() {
        assert_eq!(texts(&["", "b", "d"], "b", "d"), ["b-d"]);
        assert_eq!(texts(&["", "b", "d"], "a", "e"), ["a-b", "b-d", "d-e"]);
    }
}
