//! Tests of rows, how they are cut into results, and the outcome of calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::BoxFuture;
use base::env::Clock;

use super::*;
use crate::scanner::Deadline;

fn region(program: &str) -> TestRegion {
    let mut region = TestRegion::new(vec![FamilyDescriptor::new("f"), FamilyDescriptor::new("g")]);
    region.run(program);
    region
}

/// Results separated by ` | `, their cells by `, `; partial results end with `+`.
fn results(list: &CellList) -> String {
    let mut cells = list.cells.iter();
    let shown = list.results.iter().map(|(count, partial)| {
        let cells: Vec<_> = cells.by_ref().take(*count).map(|(cell, _)| formatted(cell)).collect();
        format!("{}{}", cells.join(", "), if *partial { "+" } else { "" })
    });
    shown.collect::<Vec<_>>().join(" | ")
}

/// All calls of a scan, each with the same limits, as `results -> why the call stopped`.
fn calls(region: &TestRegion, scan: &Scan, limits: &Limits) -> Vec<String> {
    let mut scanner = region.scanner(scan);
    let mut calls = Vec::new();
    loop {
        let mut list = CellList::default();
        let progress = call(&mut scanner, &mut limits.clone(), &mut list, |_| true);
        let mid_row = if progress.mid_row { " mid row" } else { "" };
        calls.push(format!("{} -> {:?}{mid_row}", results(&list), progress.stopped));
        assert!(calls.len() < 100, "the scan does not end: {calls:?}");
        if progress.stopped == Stopped::Exhausted {
            return calls;
        }
    }
}

fn check(program: &str, scan: &Scan, limits: &Limits, expected: &[&str]) {
    let program = format!("{program}  flush");
    assert_eq!(calls(&region(&program), scan, limits), expected);
}

const ROWS: &str = "put a/f:q@1=1  put b/f:q@1=2  flush  put b/g:q@1=3  put c/g:q@1=4  put d/f:q@1=5";

fn rows(start: &'static str, stop: &'static str) -> Scan {
    Scan { start_row: start.into(), stop_row: stop.into(), ..Scan::default() }
}

/// The rows that a scan returns, forward and reversed.
fn rows_of(scan: &Scan) -> (String, String) {
    let region = region(ROWS);
    let rows = |scan: &Scan| {
        let list = region.scan(scan);
        let mut rows: Vec<_> = list.cells.iter().map(|(cell, _)| cell.view(0).row().to_vec()).collect();
        rows.dedup();
        String::from_utf8(rows.concat()).unwrap()
    };
    let reversed = Scan {
        reversed: true,
        start_row: scan.stop_row.clone(),
        include_start_row: scan.include_stop_row,
        stop_row: scan.start_row.clone(),
        include_stop_row: scan.include_start_row,
        ..scan.clone()
    };
    (rows(scan), rows(&reversed))
}

#[test]
fn rows_come_in_either_order_with_inclusive_or_exclusive_bounds() {
    let both = |text: &str| (text.to_string(), text.chars().rev().collect());
    assert_eq!(rows_of(&Scan::default()), both("abcd"));
    assert_eq!(rows_of(&rows("b", "d")), both("bc"));
    assert_eq!(rows_of(&rows("b", "")), both("bcd"));
    assert_eq!(rows_of(&rows("", "b")), both("a"));
    assert_eq!(
        rows_of(&Scan { include_start_row: false, include_stop_row: true, ..rows("b", "d") }),
        both("cd")
    );
    assert_eq!(rows_of(&rows("bb", "bc")), both(""));
    assert_eq!(rows_of(&rows("x", "")), both(""));
    assert_eq!(rows_of(&Scan { include_stop_row: true, ..rows("c", "c") }), both("c"));
}

#[test]
fn the_cells_of_a_row_are_in_order_in_a_reversed_scan_too() {
    let reversed = Scan { reversed: true, ..Scan::default() };
    check(
        ROWS,
        &reversed,
        &Limits::default(),
        &["d/f:q@1=5 | c/g:q@1=4 | b/f:q@1=2, b/g:q@1=3 | a/f:q@1=1 -> Exhausted"],
    );
}

#[test]
fn results_and_rows_are_counted() {
    let two = Limits { results: 2, ..Limits::default() };
    check(
        ROWS,
        &Scan::default(),
        &two,
        &["a/f:q@1=1 | b/f:q@1=2, b/g:q@1=3 -> Results", "c/g:q@1=4 | d/f:q@1=5 -> Exhausted"],
    );
    let three = Limits { rows: 3, ..Limits::default() };
    check(
        ROWS,
        &Scan::default(),
        &three,
        &["a/f:q@1=1 | b/f:q@1=2, b/g:q@1=3 | c/g:q@1=4 -> Rows", "d/f:q@1=5 -> Exhausted"],
    );
}

#[test]
fn a_batch_splits_rows_and_marks_their_last_part() {
    let scan = Scan { batch: 2, ..Scan::default() };
    let program = "put a/f:p@1=1  put a/f:q@1=2  put a/g:p@1=3  put a/g:q@1=4  put b/f:q@1=5";
    check(
        program,
        &scan,
        &Limits::default(),
        &["a/f:p@1=1, a/f:q@1=2+ | a/g:p@1=3, a/g:q@1=4 | b/f:q@1=5 -> Exhausted"],
    );
    let one = Limits { results: 1, ..Limits::default() };
    check(
        program,
        &scan,
        &one,
        &[
            "a/f:p@1=1, a/f:q@1=2+ -> Results mid row",
            "a/g:p@1=3, a/g:q@1=4 -> Results",
            "b/f:q@1=5 -> Exhausted",
        ],
    );
    // A row counts once, when its last part is returned.
    let row = Limits { rows: 1, ..Limits::default() };
    check(
        program,
        &scan,
        &row,
        &["a/f:p@1=1, a/f:q@1=2+ | a/g:p@1=3, a/g:q@1=4 -> Rows", "b/f:q@1=5 -> Rows", " -> Exhausted"],
    );
}

/// As in HBase, an older version after the last cell makes the result partial, because it was not
/// judged yet.
#[test]
fn a_result_is_partial_if_any_cell_of_the_row_follows() {
    let scan = Scan { batch: 1, ..Scan::default() };
    let program = "put a/f:q@1=1  put a/f:q@2=2  put b/f:q@1=3";
    check(program, &scan, &Limits::default(), &["a/f:q@2=2+ | b/f:q@1=3 -> Exhausted"]);
    // The row counts nevertheless.
    let row = Limits { rows: 1, ..Limits::default() };
    check(program, &scan, &row, &["a/f:q@2=2+ -> Rows", "b/f:q@1=3 -> Rows", " -> Exhausted"]);
}

#[test]
fn the_byte_limit_splits_rows_only_if_allowed() {
    let program = "put a/f:p@1=1  put a/f:q@1=2  put b/f:q@1=3";
    let bytes = |bytes, partials| Limits { bytes, partials, ..Limits::default() };
    // The cell that crosses the limit is returned.
    check(
        program,
        &Scan::default(),
        &bytes(1, true),
        &["a/f:p@1=1+ -> Bytes mid row", "a/f:q@1=2 -> Bytes", "b/f:q@1=3 -> Exhausted"],
    );
    check(
        program,
        &Scan::default(),
        &bytes(1, false),
        &["a/f:p@1=1, a/f:q@1=2 -> Bytes", "b/f:q@1=3 -> Exhausted"],
    );
    check(program, &Scan::default(), &bytes(1000, true), &["a/f:p@1=1, a/f:q@1=2 | b/f:q@1=3 -> Exhausted"]);
}

#[test]
fn cells_of_each_family_are_limited_and_skipped_per_row() {
    let program = "put a/f:p@1=1  put a/f:q@1=2  put a/f:s@1=3  put a/g:p@1=4  put b/g:p@1=5  put b/g:q@1=6";
    let mut scan = Scan::default();
    scan.selection.store_limit = Some(1);
    check(program, &scan, &Limits::default(), &["a/f:p@1=1, a/g:p@1=4 | b/g:p@1=5 -> Exhausted"]);
    scan.selection.store_offset = 1;
    check(program, &scan, &Limits::default(), &["a/f:q@1=2 | b/g:q@1=6 -> Exhausted"]);
    scan.selection.store_limit = None;
    check(program, &scan, &Limits::default(), &["a/f:q@1=2, a/f:s@1=3 | b/g:q@1=6 -> Exhausted"]);
}

#[test]
fn rows_without_a_cell_that_passes_give_no_result() {
    let program = "put a/f:q@1=1  delete-family a/f@1  put b/f:q@1=2  put c/f:q@1=3  delete c/f:q@1";
    check(program, &Scan::default(), &Limits::default(), &["b/f:q@1=2 -> Exhausted"]);
    let reversed = Scan { reversed: true, ..Scan::default() };
    check(program, &reversed, &Limits::default(), &["b/f:q@1=2 -> Exhausted"]);
}

/// A clock that advances by one millisecond whenever it is read.
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now_ms(&self) -> u64 {
        0
    }
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
    }
    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_deadline_ends_a_call_among_empty_rows_too_and_no_row_is_lost() {
    let mut region = TestRegion::new(vec![FamilyDescriptor::new("f")]);
    for at in 0..2000 {
        region.run(&format!("put r{at:05}/f:q@1=v  delete r{at:05}/f:q@1"));
    }
    region.run("put s/f:q@1=1");
    (0..2000).for_each(|at| region.run(&format!("put t/f:{at:05}@1=v")));
    region.run("flush");
    for (scan, partials) in [
        (Scan::default(), true),
        (Scan { reversed: true, ..Scan::default() }, true),
        (Scan::default(), false),
    ] {
        let clock = Arc::new(Ticking(AtomicU64::new(0)));
        let mut scanner = region.scanner(&scan);
        let (mut list, mut heartbeats, mut mid_row) = (CellList::default(), 0, 0);
        loop {
            let at = clock.monotonic() + Duration::from_millis(2);
            let deadline = Some(Deadline { clock: clock.clone(), at });
            let mut limits = Limits { partials, deadline, ..Limits::default() };
            let progress = call(&mut scanner, &mut limits, &mut list, |_| true);
            heartbeats += u32::from(progress.stopped == Stopped::Time);
            mid_row += u32::from(progress.mid_row);
            if progress.stopped == Stopped::Exhausted {
                break;
            }
            assert_eq!(progress.stopped, Stopped::Time);
        }
        assert_eq!(list.cells.len(), 2001);
        assert!(heartbeats > 5, "{heartbeats} heartbeats");
        assert_eq!(mid_row > 0, partials, "rows are cut only if that is allowed");
    }
}

#[test]
fn a_cold_get_names_the_blocks_of_all_files_and_families_in_one_miss() {
    let mut region = region(
        "put r/f:q@1=1  put r/g:q@1=1  flush  put r/f:q@2=1  put r/g:q@2=1  flush  put x/f:q@3=1  flush",
    );
    region.kind.bloom = BloomType::None;
    region.run("put r/f:q@3=1  put r/g:q@3=1  flush");
    let get = Scan { include_stop_row: true, ..rows("r", "r") };
    let mut scanner = region.scanner(&get);
    let mut list = CellList::default();
    let (mut rounds, mut blocks) = (0, 0);
    let progress = loop {
        match scanner.next(&mut Limits::default(), &mut list) {
            Ok(progress) => break progress,
            Err(Stop::Failed(error)) => panic!("{error}"),
            Err(Stop::Miss(miss)) => {
                rounds += 1;
                blocks += miss.blocks.len();
                miss.blocks.iter().for_each(|block| scanner.supply(now(block.file.load(block)).unwrap()));
            }
        }
    };
    assert_eq!((progress.stopped, results(&list)), (Stopped::Exhausted, "r/f:q@3=1, r/g:q@3=1".to_string()));
    // The filters of two files per family, and the block of the file without a filter; then the
    // blocks of those two files. The file that has only row x is not read at all.
    assert_eq!((rounds, blocks), (2, 10));
}

#[test]
fn files_and_memstores_without_wanted_cells_are_not_read() {
    let region = region("put b/f:q@5=1  flush  put d/f:q@9=2  flush  put f/f:q@7=3");
    let sources = |scan: &Scan| {
        let store = &region.stores[0];
        super::super::select::select(&store.view, CellOrder::Plain, &store.rules, scan, None, 99, NOW_MS)
            .len()
    };
    assert_eq!(sources(&Scan::default()), 3);
    assert_eq!(sources(&between(Scan::default(), 0, 7)), 1);
    assert_eq!(sources(&between(Scan::default(), 6, 10)), 2);
    assert_eq!(sources(&rows("c", "")), 2);
    assert_eq!(sources(&rows("e", "")), 1);
    assert_eq!(sources(&Scan { reversed: true, ..rows("c", "") }), 2);
}

/// A cold scan of many blocks reads ahead in a few runs, and returns the same cells.
#[test]
fn a_driven_scan_reads_ahead_and_sees_every_row_once() {
    let mut region = TestRegion::new(vec![FamilyDescriptor::new("f")]);
    region.kind.block_bytes = 1 << 10;
    for part in 0..3 {
        (0..3000).for_each(|at| region.run(&format!("put r{at:05}/f:q{part}@1=value-{at}")));
        region.run("flush");
    }
    for scan in [Scan::default(), Scan { reversed: true, ..Scan::default() }, rows("r01000", "r02000")] {
        let mut scanner = region.scanner(&scan);
        let mut list = CellList::default();
        let progress = now(crate::scanner::drive(&mut scanner, &mut Limits::default(), &mut list)).unwrap();
        assert_eq!(progress, Progress { stopped: Stopped::Exhausted, mid_row: false });
        let count = if scan.start_row.is_empty() { 3000 } else { 1000 };
        assert_eq!((list.results.len(), list.cells.len()), (count, 3 * count));
        let sorted = list.results.iter().all(|result| *result == (3, false));
        assert!(sorted, "each row has its three cells");
    }
}

/// As HBase 2.5.10 responds to `setMaxResultsPerColumnFamily(0)`.
#[test]
fn a_limit_of_zero_cells_returns_one_per_family() {
    let program = "put a/f:p@1=1  put a/f:q@1=2  put a/g:p@1=3  put a/g:q@1=4";
    let mut scan = Scan::default();
    scan.selection.store_limit = Some(0);
    check(program, &scan, &Limits::default(), &["a/f:p@1=1, a/g:p@1=3 -> Exhausted"]);
    scan.selection.store_offset = 1;
    check(program, &scan, &Limits::default(), &["a/f:q@1=2, a/g:q@1=4 -> Exhausted"]);
}
