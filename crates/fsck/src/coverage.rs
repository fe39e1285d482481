//! Whether the regions of a table cover each row once.

use base::text::to_string_binary;
use cell::EndKey;
use cell::range::{self, KeyRange};
use cell::region::RegionInfo;

/// Sorts the regions, and returns the holes and overlaps.
pub(crate) fn problems(regions: &mut [RegionInfo]) -> Vec<String> {
    regions.sort_by(|one, other| {
        let by_end = || EndKey(&one.end_key).cmp(&EndKey(&other.end_key));
        one.start_key.cmp(&other.start_key).then_with(by_end)
    });
    let Some(first) = regions.first() else {
        return vec!["it has no region in hbase:meta".to_owned()];
    };
    let ranges: Vec<KeyRange> = regions.iter().map(RegionInfo::range).collect();
    let mut found: Vec<String> = range::holes(&ranges).iter().map(hole).collect();
    // The region that reaches furthest so far.
    let mut furthest = first;
    for next in &regions[1..] {
        let end = EndKey(&furthest.end_key);
        if end.is_after(&next.start_key) {
            let (one, other) = (furthest.encoded_name(), next.encoded_name());
            found.push(format!("regions {one} and {other} overlap"));
        }
        if EndKey(&next.end_key) > end {
            furthest = next;
        }
    }
    found
}

fn hole(rows: &KeyRange) -> String {
    let (start, end) = (to_string_binary(&rows.start), to_string_binary(&rows.end));
    match (rows.start.is_empty(), rows.end.is_empty()) {
        (true, true) => "no region has any rows".into(),
        (true, false) => format!("no region has the rows before {end}"),
        (false, true) => format!("no region has the rows from {start}"),
        (false, false) => format!("no region has the rows from {start} to before {end}"),
    }
}

#[cfg(test)]
mod tests {
    use cell::schema::TableName;

    use super::*;

    /// Regions `START-END`, whose problems are found.
    fn found(ranges: &[&'static str]) -> Vec<String> {
        let region = |range: &&'static str| {
            let (start, end) = range.split_once('-').unwrap();
            RegionInfo::new(TableName::parse("t").unwrap(), start.into(), end.into(), 1)
        };
        problems(&mut ranges.iter().map(region).collect::<Vec<_>>())
    }

    #[test]
    fn regions_that_cover_all_rows_once_are_good() {
        assert_eq!(found(&["-"]), Vec::<String>::new());
        assert_eq!(found(&["m-t", "-m", "t-"]), Vec::<String>::new());
    }

    #[test]
    fn holes_are_found() {
        assert_eq!(found(&[]), ["it has no region in hbase:meta"]);
        assert_eq!(
            found(&["b-m", "n-t"]),
            [
                "no region has the rows before b",
                "no region has the rows from m to before n",
                "no region has the rows from t",
            ]
        );
    }

    #[test]
    fn overlaps_are_found() {
        for ranges in [&["-m", "k-"][..], &["-", "c-d"], &["-m", "-m", "m-"]] {
            let found = found(ranges);
            assert!(found.len() == 1 && found[0].ends_with("overlap"), "{ranges:?}: {found:?}");
        }
        // Both of the inner regions lie in the outer one, which still covers what follows them.
        assert_eq!(found(&["-", "b-c", "d-e"]).len(), 2);
    }
}
