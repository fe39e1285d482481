//! Tests of families with `NEW_VERSION_BEHAVIOR`: single rules, and random programs against a
//! model. The model performs the writes in order, and stores only cells that are alive.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;

fn family(versions: u32) -> FamilyDescriptor {
    FamilyDescriptor::new("f").with("VERSIONS", &versions.to_string()).with("NEW_VERSION_BEHAVIOR", "true")
}

/// Checks the result of a scan with the program's cells in memory, in a file, and in one file per
/// cell; also after compactions of those files.
fn check_scan(versions: u32, scan: &Scan, program: &str, expected: &str) {
    let in_files = program.replace("  ", "  flush  ") + "  flush";
    for spread in [program.to_string(), format!("{program}  flush"), in_files.clone()] {
        let mut region = TestRegion::new(vec![family(versions)]);
        region.run(&spread);
        assert_eq!(formatted_all(&region.scan(scan).cells), expected, "{spread}");
    }
    for retention in [Retention::Minor, Retention::Major] {
        let mut region = TestRegion::new(vec![family(versions)]);
        region.run(&in_files);
        region.compact(0, retention, u64::MAX);
        assert_eq!(formatted_all(&region.scan(scan).cells), expected, "{retention:?}: {program}");
    }
}

fn check(versions: u32, program: &str, expected: &str) {
    check_scan(versions, &all_versions(), program, expected);
}

#[test]
fn a_marker_hides_only_earlier_writes() {
    check(5, "delete r/f:q@5  put r/f:q@5=a", "r/f:q@5=a");
    check(5, "put r/f:q@5=a  delete r/f:q@5", "");
    check(5, "put r/f:q@5=a  delete-column r/f:q@9  put r/f:q@4=b", "r/f:q@4=b");
    check(5, "put r/f:q@5=a  delete-family r/f@9  put r/f:q@4=b", "r/f:q@4=b");
    check(
        5,
        "put r/f:q@5=a  put r/f:q@4=b  delete-family-version r/f@5  put r/f:q@5=c",
        "r/f:q@5=c  r/f:q@4=b",
    );
}

#[test]
fn among_equal_timestamps_the_last_write_wins() {
    check(5, "put r/f:q@5=a  put r/f:q@5=b", "r/f:q@5=b");
    check(5, "put r/f:q@5=a  put r/f:q@5=b  delete r/f:q@5", "");
    check(5, "put r/f:q@5=a  delete r/f:q@5  put r/f:q@5=b  put r/f:q@5=c", "r/f:q@5=c");
}

#[test]
fn displaced_versions_stay_hidden() {
    check(1, "put r/f:q@5=a  put r/f:q@6=b  delete r/f:q@6", "");
    check(2, "put r/f:q@5=a  put r/f:q@6=b  delete r/f:q@6", "r/f:q@5=a");
    check(1, "put r/f:q@6=b  delete r/f:q@6  put r/f:q@5=a", "r/f:q@5=a");
    check(2, "put r/f:q@1=a  put r/f:q@2=b  put r/f:q@3=c  delete r/f:q@3", "r/f:q@2=b");
}

#[test]
fn markers_of_the_family_hide_nothing_of_the_empty_qualifier() {
    // As in HBase. Markers of the column do hide them.
    check(5, "put r/f@5=a  put r/f:q@5=b  delete-family r/f@9", "r/f@5=a");
    check(5, "put r/f@5=a  delete-column r/f@9", "");
    check(5, "put r/f@5=a  put r/f@4=b  delete r/f@5  put r/f@5=c", "r/f@5=c  r/f@4=b");
}

#[test]
fn late_markers_ignore_the_markers_before_them() {
    // As in HBase: the marker of the family is older than that of the version, but comes after it.
    let program = "put r/f:q@6=a  put r/f:q@4=b  delete-family-version r/f@6  put r/f:q@3=c";
    check(1, program, "r/f:q@3=c");
    check(1, &format!("{program}  delete-family r/f@1"), "");
}

#[test]
fn before_a_marker_of_one_version_writes_of_one_timestamp_count_each() {
    // As in HBase, where it makes no difference without such a marker.
    let program = "put r/f:q@6=a  put r/f:q@1=b  put r/f:q@6=c";
    check(2, &format!("{program}  put r/f:q@6=d"), "r/f:q@6=d  r/f:q@1=b");
    check(2, &format!("{program}  delete-family-version r/f@2  put r/f:q@6=d"), "r/f:q@6=d");
}

#[test]
fn columns_and_time_ranges_are_selected_from_living_cells() {
    let program = "put r/f:a@1=z  put r/f:q@1=a  put r/f:q@2=b  put r/f:q@3=c  delete r/f:q@3  put r/f:s@9=d";
    check_scan(2, &only(all_versions(), "f", &["q"]), program, "r/f:q@2=b");
    check_scan(2, &only(all_versions(), "f", &["b", "q", "s", "z"]), program, "r/f:q@2=b  r/f:s@9=d");
    check_scan(5, &between(all_versions(), 2, 9), program, "r/f:q@2=b");
    check_scan(5, &only(Scan::default(), "f", &["a", "q"]), program, "r/f:a@1=z  r/f:q@2=b");
}

#[test]
fn only_a_major_compaction_drops_dead_cells() {
    let program = "put r/f:q@1=a  flush  put r/f:q@2=b  put r/f:q@3=c  flush  delete r/f:q@3  flush";
    for (retention, kept) in [
        (Retention::Minor, "delete r/f:q@3  r/f:q@3=c  r/f:q@2=b  r/f:q@1=a"),
        (Retention::Major, "r/f:q@2=b"),
    ] {
        let mut region = TestRegion::new(vec![family(2)]);
        region.run(program);
        region.compact(0, retention, u64::MAX);
        let raw = Scan { raw: true, ..all_versions() };
        assert_eq!(formatted_all(&region.scan(&raw).cells), kept, "{retention:?}");
    }
}

#[test]
fn markers_newer_than_a_reader_are_retained() {
    let mut region = TestRegion::new(vec![family(1)]);
    region.run("put r/f:q@1=a  flush  put r/f:q@2=b  flush  delete r/f:q@2  flush");
    region.compact(0, Retention::Major, 1);
    let raw = Scan { raw: true, ..all_versions() };
    assert_eq!(formatted_all(&region.scan(&raw).cells), "delete r/f:q@2  r/f:q@2=b  r/f:q@1=a");
    assert_eq!(
        formatted_all(&region.scan(&Scan { read_point: Some(1), ..all_versions() }).cells),
        "r/f:q@1=a"
    );
    assert_eq!(formatted_all(&region.scan(&all_versions()).cells), "");
}

const QUALIFIERS: [&str; 2] = ["p", "q"];

#[derive(Clone, Debug)]
enum Step {
    Write { qualifier: usize, timestamp: i64, kind: CellType },
    Flush,
    Compact(bool),
}

/// Markers of a whole column or family are newer than every put. A program has either markers of
/// columns, or markers of one version of the family. Otherwise HBase cannot determine which of them
/// came first ([`late_markers_ignore_the_markers_before_them`]).
fn steps() -> impl Strategy<Value = Vec<Step>> {
    any::<bool>().prop_flat_map(|by_column| {
        let other = if by_column { CellType::DeleteColumn } else { CellType::DeleteFamilyVersion };
        let kind = prop_oneof![
            8 => Just(CellType::Put),
            3 => Just(CellType::Delete),
            1 => Just(other),
            1 => Just(CellType::DeleteFamily),
        ];
        let write = (0..QUALIFIERS.len(), 1..8i64, kind).prop_map(|(qualifier, timestamp, kind)| {
            let is_whole = matches!(kind, CellType::DeleteColumn | CellType::DeleteFamily);
            Step::Write { qualifier, timestamp: if is_whole { 9 } else { timestamp }, kind }
        });
        let step =
            prop_oneof![10 => write, 2 => Just(Step::Flush), 1 => any::<bool>().prop_map(Step::Compact)];
        proptest::collection::vec(step, 1..40)
    })
}

/// The cells that are alive: by qualifier, then by timestamp.
#[derive(Default)]
struct Model {
    columns: BTreeMap<&'static str, BTreeMap<i64, String>>,
}

impl Model {
    fn write(&mut self, versions: u32, qualifier: &'static str, at: i64, kind: CellType, value: &str) {
        let column = self.columns.entry(qualifier).or_default();
        match kind {
            CellType::Put => {
                column.insert(at, value.to_string());
                if column.len() > versions as usize {
                    column.pop_first();
                }
            }
            CellType::Delete => drop(column.remove(&at)),
            CellType::DeleteColumn => column.retain(|timestamp, _| *timestamp > at),
            CellType::DeleteFamily => {
                self.columns.values_mut().for_each(|column| column.retain(|timestamp, _| *timestamp > at));
            }
            _ => self.columns.values_mut().for_each(|column| drop(column.remove(&at))),
        }
    }

    fn formatted(&self, wanted: u32) -> String {
        let of_column = |(qualifier, column): (&&str, &BTreeMap<i64, String>)| {
            let newest = column.iter().rev().take(wanted as usize);
            newest.map(|(at, value)| format!("r/f:{qualifier}@{at}={value}")).collect::<Vec<_>>()
        };
        self.columns.iter().flat_map(of_column).collect::<Vec<_>>().join("  ")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_agree_with_a_model_of_living_cells(
        steps in steps(),
        versions in 1..4u32,
        wanted in 1..4u32,
        doubles: bool,
    ) {
        // A program either writes a timestamp several times, or has markers of one version.
        let mut written = HashSet::new();
        let mut is_written = |step: &Step| match step {
            Step::Write { kind: CellType::Delete | CellType::DeleteFamilyVersion, .. } => !doubles,
            Step::Write { kind: CellType::Put, qualifier, timestamp } => {
                written.insert((*qualifier, *timestamp)) || doubles
            }
            _ => true,
        };
        let steps: Vec<_> = steps.into_iter().filter(|step| is_written(step)).collect();
        let mut region = TestRegion::new(vec![family(versions)]);
        let mut model = Model::default();
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Write { qualifier, timestamp, kind } => {
                    let qualifier = QUALIFIERS[*qualifier];
                    let of_family = matches!(kind, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
                    let value = if *kind == CellType::Put { format!("v{at}") } else { String::new() };
                    let written = if of_family { "" } else { qualifier };
                    let cell = KeyValue::new(b"r", b"f", written.as_bytes(), *timestamp, *kind, value.as_bytes());
                    region.insert(&cell, at as u64 + 1);
                    model.write(versions, qualifier, *timestamp, *kind, &value);
                }
                Step::Flush => region.flush(0),
                Step::Compact(all) => {
                    let retention = if *all { Retention::Major } else { Retention::Minor };
                    if !all || region.stores[0].view.active.is_empty() {
                        region.compact(0, retention, u64::MAX);
                    }
                }
            }
            let scan = Scan {
                selection: CellSelection { max_versions: wanted, ..CellSelection::default() },
                ..Scan::default()
            };
            let expected = model.formatted(wanted);
            prop_assert_eq!(formatted_all(&region.scan(&scan).cells), &expected[..], "step {}", at);
            let single = only(scan, "f", &["a", "p", "pp", "q"]);
            prop_assert_eq!(formatted_all(&region.scan(&single).cells), &expected[..], "single columns, step {}", at);
        }
    }
}
