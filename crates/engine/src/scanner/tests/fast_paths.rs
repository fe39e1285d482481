//! Tests the fast paths (slices of rows, and Gets without a scanner) and resting scanners against
//! the general path. Cells, results, flags, and remaining limits must be equal after each call.

use base::metrics::Counts;
use cell::filter::{
    Column, Comparator, Compare, CompareOp, Filter, ListOperator, RowRange, SingleColumnValue,
};
use cell::query::Get;
use proptest::prelude::*;

use super::model::{FAMILIES, ROWS, Rules, build, config, dice, limits, rules, scans, steps};
use super::*;
use crate::instruments::StoreCounts;
use crate::scanner::{RowPlan, RowRead, StoreRowLocator, drive};

/// Filters that allow the fast path, and others.
fn filters() -> impl Strategy<Value = Option<Filter>> {
    fn compare(op: CompareOp, value: &'static str) -> Compare {
        Compare { op, comparator: Comparator::Binary(value.into()) }
    }
    let op = || proptest::sample::select(vec![CompareOp::Less, CompareOp::Equal, CompareOp::GreaterOrEqual]);
    let single = |op, filter_if_missing, latest_version_only| {
        Filter::SingleColumnValue(SingleColumnValue {
            column: Column { family: "f".into(), qualifier: "q".into() },
            compare: compare(op, "v3"),
            filter_if_missing,
            latest_version_only,
        })
    };
    let leaf = prop_oneof![
        op().prop_map(|op| Filter::Value(compare(op, "v3"))),
        op().prop_map(|op| Filter::Row(compare(op, "b"))),
        op().prop_map(|op| Filter::Qualifier(compare(op, "q"))),
        (op(), any::<bool>(), any::<bool>())
            .prop_map(move |(op, missing, latest)| single(op, missing, latest)),
        any::<bool>().prop_map(|len_as_val| Filter::KeyOnly { len_as_val }),
        Just(Filter::FirstKeyOnly),
        Just(Filter::Page { page_size: 2 }),
        Just(Filter::ColumnPrefix("q".into())),
    ];
    let list = (any::<bool>(), proptest::collection::vec(leaf.clone(), 1..3)).prop_map(|(all, filters)| {
        let operator = if all { ListOperator::MustPassAll } else { ListOperator::MustPassOne };
        Filter::List { operator, filters }
    });
    let skip = leaf.clone().prop_map(|filter| Filter::Skip(Box::new(filter)));
    proptest::option::of(prop_oneof![3 => leaf, 1 => list, 1 => skip])
}

/// Filters that give hints, and others.
fn leading_filters() -> impl Strategy<Value = Option<Filter>> {
    let range = |(start, stop): (&'static str, &'static str)| RowRange {
        start: start.into(),
        start_inclusive: true,
        stop: stop.into(),
        stop_inclusive: false,
    };
    let ranges =
        [vec![("a", "b"), ("c", "d")], vec![("aa", "c")], vec![("b", "")], vec![("", "aa"), ("bb", "e")]];
    let ranges = proptest::sample::select(ranges.to_vec());
    let ranges = ranges.prop_map(move |ranges| ranges.into_iter().map(range).collect());
    let counts = (1..4i32).prop_map(|limit| Some(Filter::ColumnCountGet { limit }));
    prop_oneof![1 => counts, 2 => filters(), 1 => ranges.prop_map(|ranges| Some(Filter::MultiRowRange(ranges)))]
}

/// Flushes a store, or compacts it for readers at the read point and later.
fn flush_or_compact(
    region: &mut TestRegion,
    compaction: Option<Retention>,
    read_point: u64,
    mut dice: impl FnMut() -> u64,
) {
    let at = dice() as usize % FAMILIES.len();
    if dice().is_multiple_of(3) && region.stores[at].view.snapshot.is_none() {
        return region.freeze(at);
    }
    // A major compaction drops markers, so the cells that they hide must be in the files.
    region.flush(at);
    if let Some(retention) = compaction {
        region.compact(at, retention, read_point);
    }
}

/// Counters of the stores of a region.
fn counts() -> Arc<[Counts<StoreCounts>]> {
    FAMILIES.iter().map(|_| Counts::default()).collect()
}

/// For each store, the number of rows counted as read from memory only, and of all others.
fn rows_counted(counts: &[Counts<StoreCounts>]) -> Vec<(u64, u64)> {
    counts.iter().map(|of| (of.get(|of| &of.memstore_reads), of.get(|of| &of.mixed_reads))).collect()
}

fn file_kind(block_bytes: u32) -> FileKind {
    FileKind { block_bytes, ..FileKind::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_fast_path_changes_no_result(
        steps in steps(),
        rules in proptest::collection::vec(rules(), FAMILIES.len()),
        scans in proptest::collection::vec((scans(), filters()), 1..6),
        block_bytes in 50..2000u32,
        seed: u64,
    ) {
        let (region, _) = build(&rules, &steps, file_kind(block_bytes));
        for (mut scan, filter) in scans {
            scan.selection.columns.retain(|columns| columns.family == "f");
            if scan.selection.columns.is_empty() {
                scan = only(scan, "f", &[]);
                scan.raw = false;
            }
            (scan.reversed, scan.batch) = (false, if filter.is_some() { 0 } else { scan.batch });
            scan.selection.filter = filter.map(Arc::new);
            let (of_walking, of_common) = (counts(), counts());
            let mut walking = region.scanner_counting(&scan, of_walking.clone());
            let mut common = region.scanner_counting(&scan, of_common.clone()).without_fast_path();
            let (mut walked, mut expected) = (CellList::default(), CellList::default());
            let mut dice = dice(seed);
            loop {
                let limits = limits(6, 300, &mut dice);
                let (mut left, mut left_expected) = (limits.clone(), limits.clone());
                let progress = call(&mut walking, &mut left, &mut walked, |_| true);
                let progress_expected = call(&mut common, &mut left_expected, &mut expected, |_| true);
                prop_assert_eq!(progress, progress_expected, "{:?}", scan);
                prop_assert_eq!(&walked.cells, &expected.cells, "{:?}", scan);
                prop_assert_eq!(&walked.results, &expected.results, "{:?}", scan);
                let of = |limits: &Limits| (limits.results, limits.rows, limits.bytes);
                prop_assert_eq!(of(&left), of(&left_expected), "{:?}", scan);
                prop_assert_eq!(walking.last_row(), common.last_row());
                prop_assert_eq!(walking.rows_read_and_returned(), common.rows_read_and_returned());
                prop_assert_eq!(rows_counted(&of_walking), rows_counted(&of_common), "{:?}", scan);
                if progress.stopped == Stopped::Exhausted {
                    break;
                }
            }
        }
    }

    #[test]
    fn resting_between_calls_changes_no_result(
        steps in steps(),
        rules in proptest::collection::vec(rules(), FAMILIES.len()),
        scans in proptest::collection::vec((scans(), leading_filters()), 1..6),
        block_bytes in 50..2000u32,
        split_row in proptest::option::of(proptest::sample::select(vec!["b", "c"])),
        compaction in proptest::option::of(prop_oneof![Just(Retention::Minor), Just(Retention::Major)]),
        seed: u64,
    ) {
        // For what compactions may drop although readers see it, see
        // `compactions_change_no_visible_cell`.
        let adapted = |rules: Rules| match compaction {
            Some(_) => rules.without_limits(),
            None => rules,
        };
        let rules: Vec<Rules> = rules.into_iter().map(adapted).collect();
        let (mut region, _) = build(&rules, &steps, FileKind { split_row, ..file_kind(block_bytes) });
        let mut dice = dice(seed);
        for (mut scan, filter) in scans {
            scan.batch = if filter.is_some() { 0 } else { scan.batch };
            scan.selection.load_families_on_demand = Some(!scan.reversed);
            scan.selection.filter = filter.map(Arc::new);
            let is_of_all_time = scan.selection.time_range.is_all() && scan.selection.family_time_ranges.is_empty();
            let compaction = compaction.filter(|_| is_of_all_time && !scan.raw);
            let (mut resting, mut awake) = (region.scanner(&scan), region.scanner(&scan));
            let (mut found, mut expected) = (CellList::default(), CellList::default());
            let mut is_done = false;
            while !is_done {
                let limits = limits(6, 300, &mut dice);
                let mut left = limits.clone();
                let progress = call(&mut resting, &mut left, &mut found, |_| true);
                is_done = progress.stopped == Stopped::Exhausted;
                // If a compaction drops all cells of a row, the row is no longer seen, which
                // changes where calls end.
                if compaction.is_none() {
                    let mut left_expected = limits;
                    let progress_expected = call(&mut awake, &mut left_expected, &mut expected, |_| true);
                    prop_assert_eq!(progress, progress_expected, "{:?}", scan);
                    prop_assert_eq!(&found.results, &expected.results, "{:?}", scan);
                    let of = |limits: &Limits| (limits.results, limits.rows, limits.bytes);
                    prop_assert_eq!(of(&left), of(&left_expected), "{:?}", scan);
                    prop_assert_eq!(resting.last_row(), awake.last_row());
                    prop_assert_eq!(resting.rows_read_and_returned(), awake.rows_read_and_returned());
                }
                drop(resting.rest());
                if dice().is_multiple_of(2) {
                    flush_or_compact(&mut region, compaction, resting.read_point(), &mut dice);
                }
                if resting.is_resting() {
                    resting.wake(region.stores.iter().map(|store| (&store.rules, &store.view)));
                }
            }
            if compaction.is_some() {
                call(&mut awake, &mut Limits::default(), &mut expected, |_| true);
            }
            prop_assert_eq!(&found.cells, &expected.cells, "{:?}", scan);
        }
    }

    #[test]
    fn gets_without_a_scanner_equal_those_with_one(
        steps in steps(),
        rules in proptest::collection::vec(rules(), FAMILIES.len()),
        scans in proptest::collection::vec(scans(), 1..6),
        block_bytes in 50..2000u32,
        bloom in prop_oneof![Just(BloomType::None), Just(BloomType::Row), Just(BloomType::RowCol)],
        is_located: bool,
        stages in 0..=hfile::RowLocator::STAGES,
    ) {
        let (mut region, _) = build(&rules, &steps, FileKind { bloom, ..file_kind(block_bytes) });
        region.loader = Arc::new(BlockLoader::new(64 << 20));
        let mut list = CellList::default();
        now(drive(&mut region.scanner(&all_versions()), &mut Limits::default(), &mut list)).unwrap();
        let views: Vec<_> = region.stores.iter().map(|store| store.view.clone()).collect();
        for scan in scans.into_iter().filter(|scan| !scan.raw) {
            // One plan for all rows, as in a batch.
            let (selection, mut plans) = (Arc::new(scan.selection.clone()), None);
            for row in ROWS.into_iter().chain(["", "aa", "e"]) {
                let get = Get { row: row.into(), selection: selection.clone(), existence_only: false };
                let read_point = scan.read_point.unwrap_or(u64::MAX);
                let mut expected = CellList::default();
                let same = Scan { read_point: scan.read_point, ..Scan::of(&get) };
                let of_scanner = counts();
                let mut scanner = region.scanner_counting(&same, of_scanner.clone());
                now(drive(&mut scanner, &mut Limits::default(), &mut expected)).unwrap();
                let mut found = CellList::default();
                let rules = region.stores.iter().map(|store| &store.rules);
                let plan = plans.get_or_insert_with(|| RowPlan::of(&selection, rules, NOW_MS));
                let mut locator = StoreRowLocator::default();
                if is_located {
                    let first = plan.first_store().map(|at| &views[at]);
                    locator = StoreRowLocator::new(&get.row, first, &*region.loader);
                    for _ in 0..stages {
                        locator.advance(&get.row, first, &*region.loader);
                    }
                }
                let read = RowRead::new(&get.row, &mut locator, CellOrder::Plain, read_point, &*region.loader);
                let is_read = read.read(plan, &views, &mut found).unwrap();
                let is_simple = selection.store_limit.is_none() && selection.store_offset == 0;
                let of_row = counts();
                plan.count_reads(&of_row);
                prop_assert_eq!(is_read, is_simple, "all blocks are cached");
                if is_read && !row.is_empty() {
                    prop_assert_eq!(&found.cells, &expected.cells, "{:?}", get);
                    prop_assert_eq!(&found.results, &expected.results, "{:?}", get);
                    prop_assert_eq!(rows_counted(&of_row), rows_counted(&of_scanner), "{:?}", get);
                } else if !row.is_empty() {
                    prop_assert!(rows_counted(&of_row).iter().all(|rows| *rows == (0, 0)), "the scanner counts the row");
                }
            }
        }
    }
}
