//! The invariant of tables: the regions of a table cover each row exactly once, without holes or
//! overlaps.
//!
//! [`check_edit`] checks each edit of `hbase:meta` that adds or removes regions, before it is
//! written. [`Integrity`] stores the faults that [`inspection`](crate::inspection) finds and the
//! refused edits, for the status pages.
//!
//! Not here: the search for faults ([`inspection`](crate::inspection)) and their repair
//! ([`repair`](crate::repair)).

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Mutex;

use cell::range::{self, KeyRange};
use cell::region::RegionInfo;
use cell::schema::TableName;
use tracing::{error, info};

use crate::refusal::printable;

/// Maximum number of refused edits that are stored.
const REFUSED_MAX: usize = 20;

/// How an edit would break the invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// No region would cover these rows.
    Hole(KeyRange),
    /// Several regions would cover these rows.
    Overlap(KeyRange),
    /// A region would have no rows.
    NoRows(RegionInfo),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Hole(range) => write!(f, "no region would cover the rows {}", format_range(range)),
            Violation::Overlap(range) => {
                write!(f, "more than one region would cover the rows {}", format_range(range))
            }
            Violation::NoRows(region) => {
                let range = format_range(&region.range());
                write!(f, "region {} would cover no row: {range}", region.encoded_name())
            }
        }
    }
}

/// Formats a range for messages: `['a', 'm')`. An empty string means no bound.
pub fn format_range(range: &KeyRange) -> String {
    format!("['{}', '{}')", printable(&range.start), printable(&range.end))
}

/// Checks that the regions of a table cover each row exactly once after an edit. Holes and overlaps
/// that the table already has are allowed, so that a damaged table can be repaired step by step,
/// and its intact parts can be split and merged. A table may also lose all of its regions.
///
/// # Errors
/// The first violation that the edit would add.
pub fn check_edit(
    current: &[RegionInfo],
    removed: &[RegionInfo],
    added: &[RegionInfo],
) -> Result<(), Violation> {
    if let Some(region) = added.iter().find(|region| region.range().is_empty()) {
        return Err(Violation::NoRows(region.clone()));
    }
    let replaced: HashSet<String> = removed.iter().chain(added).map(RegionInfo::encoded_name).collect();
    let remaining = current.iter().filter(|region| !replaced.contains(&region.encoded_name()));
    let before = ranges(current);
    let after = ranges(remaining.chain(added));
    if after.is_empty() {
        return Ok(());
    }
    // A table without regions must become complete in one edit.
    let before = match before.is_empty() {
        true => vec![range::CoverageSegment { range: KeyRange::all(), count: 1 }],
        false => range::coverage(&before),
    };
    for stretch in range::coverage(&after).into_iter().filter(|stretch| stretch.count != 1) {
        for part in &before {
            let Some(common) = part.range.intersection(&stretch.range) else { continue };
            match stretch.count {
                0 if part.count > 0 => return Err(Violation::Hole(common)),
                count if count > 1 && count > part.count => return Err(Violation::Overlap(common)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The ranges of the regions that can serve rows.
fn ranges<'a>(regions: impl IntoIterator<Item = &'a RegionInfo>) -> Vec<KeyRange> {
    serving(regions).map(RegionInfo::range).collect()
}

/// The regions that can serve rows: neither split parents nor replicas.
fn serving<'a>(regions: impl IntoIterator<Item = &'a RegionInfo>) -> impl Iterator<Item = &'a RegionInfo> {
    regions.into_iter().filter(|region| !region.is_split_parent() && region.replica_id == 0)
}

/// A fault of `hbase:meta` or of the data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No region covers these rows of a table.
    Hole(TableName, KeyRange),
    /// These regions of a table overlap: at least two, sorted by key.
    Overlap(TableName, Vec<RegionInfo>),
    /// `hbase:meta` has a region whose directory is missing.
    MissingDirectory(RegionInfo),
    /// The directory of a region that is not in `hbase:meta`: the table, the encoded name, and
    /// whether another region covers some of its rows.
    UnknownDirectory(TableName, String, bool),
    /// The directory of a table that is not in `hbase:meta`.
    UnknownTable(TableName),
    /// `hbase:meta` has a table without a readable descriptor.
    MissingDescriptor(TableName),
}

impl Fault {
    /// The affected table.
    pub fn table(&self) -> &TableName {
        match self {
            Fault::Hole(table, _)
            | Fault::Overlap(table, _)
            | Fault::UnknownDirectory(table, ..)
            | Fault::UnknownTable(table)
            | Fault::MissingDescriptor(table) => table,
            Fault::MissingDirectory(region) => &region.table,
        }
    }

    /// What an operator can do about the fault.
    pub fn remedy(&self) -> String {
        match self {
            Fault::Hole(..) => "`grampus repair holes` creates empty regions there".into(),
            Fault::Overlap(..) => "`grampus repair overlaps` merges them, and so does the next start".into(),
            Fault::MissingDirectory(region) => format!(
                "restore the directory, or accept the loss by `grampus repair region {}`",
                region.encoded_name()
            ),
            Fault::UnknownDirectory(_, _, true) => {
                "other regions have its rows; if they are whole, move the directory away".into()
            }
            Fault::UnknownDirectory(_, encoded, false) => format!(
                "`grampus repair adopt {encoded}` adds it to hbase:meta if its rows have no region; otherwise move it \
                 away"
            ),
            Fault::UnknownTable(_) => {
                "stop the server and rebuild hbase:meta with `grampus repair meta`, or move the directory away"
                    .into()
            }
            Fault::MissingDescriptor(table) => {
                format!("restore .tabledesc in the directory of {table}, or disable and drop the table")
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Hole(table, range) => {
                write!(f, "table {table}: no region covers the rows {}", format_range(range))
            }
            Fault::Overlap(table, regions) => {
                write!(f, "table {table}: regions overlap:")?;
                for region in regions {
                    write!(f, " {} {}", region.encoded_name(), format_range(&region.range()))?;
                }
                Ok(())
            }
            Fault::MissingDirectory(region) => write!(
                f,
                "table {}: the directory of region {} {} is missing",
                region.table,
                region.encoded_name(),
                format_range(&region.range())
            ),
            Fault::UnknownDirectory(table, encoded, _) => {
                write!(f, "table {table}: hbase:meta lacks region {encoded}, which has a directory")
            }
            Fault::UnknownTable(table) => {
                write!(f, "table {table}: hbase:meta lacks it, but it has a directory")
            }
            Fault::MissingDescriptor(table) => write!(f, "table {table}: it has no readable descriptor"),
        }
    }
}

/// The holes and overlaps among the regions of a table. A table without regions has none.
pub fn faults_of(table: &TableName, regions: &[RegionInfo]) -> Vec<Fault> {
    let regions: Vec<&RegionInfo> = serving(regions).collect();
    let ranges = ranges(regions.iter().copied());
    if ranges.is_empty() {
        return Vec::new();
    }
    let holes = range::holes(&ranges).into_iter().map(|range| Fault::Hole(table.clone(), range));
    let overlaps = range::overlapping(&ranges).into_iter().map(|group| {
        Fault::Overlap(table.clone(), group.into_iter().map(|at| regions[at].clone()).collect())
    });
    holes.chain(overlaps).collect()
}

/// The known faults, and the most recent refused edits.
#[derive(Debug, Default)]
pub struct Integrity {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: Vec<Fault>,
    refused: VecDeque<String>,
}

impl Integrity {
    /// Replaces the known faults with the faults that an inspection found. The known faults of
    /// `skipped` tables stay. Logs each fault when it appears and when it disappears.
    pub fn replace(&self, mut found: Vec<Fault>, skipped: impl Fn(&TableName) -> bool) {
        let mut state = self.lock();
        found.retain(|fault| !skipped(fault.table()));
        found.extend(state.faults.iter().filter(|fault| skipped(fault.table())).cloned());
        for fault in found.iter().filter(|fault| !state.faults.contains(fault)) {
            error!(remedy = fault.remedy(), "{fault}");
        }
        for fault in state.faults.iter().filter(|fault| !found.contains(fault)) {
            info!("fault no longer exists: {fault}");
        }
        state.faults = found;
    }

    /// All known faults.
    pub fn faults(&self) -> Vec<Fault> {
        self.lock().faults.clone()
    }

    /// The most recent refused edits, oldest first.
    pub fn refused(&self) -> Vec<String> {
        self.lock().refused.iter().cloned().collect()
    }

    pub(crate) fn record_refused(&self, what: &str) {
        error!(what, "an edit of hbase:meta was refused");
        let mut state = self.lock();
        if state.refused.len() == REFUSED_MAX {
            state.refused.pop_front();
        }
        state.refused.push_back(what.to_string());
        debug_assert!(state.refused.len() <= REFUSED_MAX, "the number of stored edits is bounded");
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableName {
        TableName::parse("t").unwrap()
    }

    fn region(start: &'static str, end: &'static str, id: u64) -> RegionInfo {
        RegionInfo::new(table(), start.into(), end.into(), id)
    }

    fn regions(bounds: &[&'static str]) -> Vec<RegionInfo> {
        bounds.windows(2).map(|pair| region(pair[0], pair[1], 1)).collect()
    }

    fn check(
        current: &[RegionInfo],
        removed: &[RegionInfo],
        added: &[RegionInfo],
        expected: Result<(), &str>,
    ) {
        let refused = check_edit(current, removed, added).map_err(|violation| violation.to_string());
        match (&refused, expected) {
            (Ok(()), Ok(())) => {}
            (Err(text), Err(part)) if text.contains(part) => {}
            _ => panic!("{refused:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn an_edit_leaves_no_hole_and_no_overlap() {
        let current = regions(&["", "d", "e", "m", ""]);
        check(&current, &current[..1], &[region("", "b", 2), region("b", "d", 2)], Ok(()));
        check(&current, &current[1..3], &[region("d", "m", 2)], Ok(()));
        check(&current, &current, &[], Ok(()));
        check(&current, &[], &[], Ok(()));
        check(&current, &current[1..2], &[], Err("no region would cover the rows ['d', 'e')"));
        check(&current, &current[3..], &[], Err("no region would cover the rows ['m', '')"));
        check(
            &current,
            &[],
            &[region("b", "c", 2)],
            Err("more than one region would cover the rows ['b', 'c')"),
        );
        // Merging the first region with the last one.
        let ends = [current[0].clone(), current[3].clone()];
        check(
            &current,
            &ends,
            &[region("", "", 2)],
            Err("more than one region would cover the rows ['d', 'm')"),
        );
        check(&current, &[], &[region("c", "b", 2)], Err("would cover no row"));
    }

    #[test]
    fn a_new_table_is_whole() {
        check(&[], &[], &regions(&["", "d", ""]), Ok(()));
        check(&[], &[], &regions(&["", "d"]), Err("no region would cover the rows ['d', '')"));
        check(&[], &[], &regions(&["d", ""]), Err("no region would cover the rows ['', 'd')"));
        check(&[], &[], &[region("", "", 1), region("", "", 2)], Err("more than one region"));
    }

    #[test]
    fn an_edit_that_is_repeated_changes_nothing() {
        let current = regions(&["", "d", ""]);
        check(&current, &[], &current, Ok(()));
    }

    #[test]
    fn a_damaged_table_can_be_repaired_and_used() {
        let mut current = vec![region("", "", 9)];
        current.extend(regions(&["d", "e", "m"]));
        check(&current, &current, &[region("", "", 10)], Ok(()));
        check(&current, &current[1..2], &[region("d", "dd", 2), region("dd", "e", 2)], Ok(()));
        check(&current, &[], &[region("d", "e", 3)], Err("more than one region"));
        let hole = vec![region("", "d", 1), region("m", "", 1)];
        check(&hole, &[], &[region("d", "m", 2)], Ok(()));
        check(
            &hole,
            &[],
            &[region("d", "n", 2)],
            Err("more than one region would cover the rows ['m', 'n')"),
        );
        check(&hole, &hole[..1], &[], Err("no region would cover the rows ['', 'd')"));
    }

    #[test]
    fn parents_of_splits_cover_nothing() {
        let parent = RegionInfo { split: true, offline: true, ..region("", "", 0) };
        let current = [vec![parent.clone()], regions(&["", "d", ""])].concat();
        check(&current, &[parent], &[], Ok(()));
        assert_eq!(faults_of(&table(), &current), []);
    }

    #[test]
    fn faults_are_found_and_named() {
        let mut damaged = vec![region("", "", 9)];
        damaged.extend(regions(&["d", "e", "m"]));
        let faults = faults_of(&table(), &damaged);
        assert!(matches!(&faults[..], [Fault::Overlap(_, group)] if group.len() == 3), "{faults:?}");
        let faults = faults_of(&table(), &regions(&["", "d"])[..1]);
        assert_eq!(faults[0].to_string(), "table t: no region covers the rows ['d', '')");
        assert_eq!(faults_of(&table(), &[]), []);
    }

    #[test]
    fn faults_of_skipped_tables_stay() {
        let integrity = Integrity::default();
        let hole = Fault::Hole(table(), KeyRange::new("a", "b"));
        integrity.replace(vec![hole.clone()], |_| false);
        integrity.replace(Vec::new(), |_| true);
        assert_eq!(integrity.faults(), [hole]);
        integrity.replace(Vec::new(), |_| false);
        assert_eq!(integrity.faults(), []);
    }
}
