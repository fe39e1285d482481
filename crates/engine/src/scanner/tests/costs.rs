//! Measurements, not checks. Run with:
//!
//! ```text
//! cargo test --release -p engine costs -- --ignored --nocapture --test-threads 1
//! ```
#![allow(clippy::disallowed_methods)] // Measures real time.

use std::time::Instant;

use super::*;
use crate::scanner::{ResultEnd, ResultSink};

const ROWS: u64 = 200_000;

/// Copies and counts the cells, as a server would copy them.
#[derive(Default)]
struct CopySink {
    cells: u64,
    out: Vec<u8>,
}

impl ResultSink for CopySink {
    fn begin_result(&mut self, _continues_row: bool) {
        if self.out.len() > 1 << 20 {
            self.out.clear();
        }
    }
    fn cell(&mut self, cell: &cell::Cell<'_>) {
        self.cells += 1;
        cell.write_without_tags(&mut self.out);
    }
    fn end_result(&mut self, _end: ResultEnd) {}
    fn rollback_row(&mut self) {}
    fn bytes(&self) -> usize {
        self.out.len()
    }
}

fn row(at: u64) -> String {
    format!("{at:026}")
}

/// Rows of one cell of 100 bytes, distributed round-robin over `files` files and, if `in_memory`,
/// the memstore.
fn region(files: u64, in_memory: bool) -> TestRegion {
    let mut region = TestRegion::new(vec![FamilyDescriptor::new("f")]);
    region.loader = Arc::new(BlockLoader::new(1 << 30));
    region.kind.block_bytes = 64 << 10;
    let parts = files + u64::from(in_memory);
    for part in 0..parts {
        for at in (part..ROWS).step_by(parts as usize) {
            let cell = KeyValue::new(row(at).as_bytes(), b"f", b"q", 5, CellType::Put, &[b'v'; 100]);
            region.insert(&cell, at + 1);
        }
        if part < files {
            region.flush(0);
        }
    }
    region
}

fn run(region: &TestRegion, scan: &Scan, sink: &mut CopySink) {
    let mut scanner = region.scanner(scan);
    now(crate::scanner::drive(&mut scanner, &mut Limits::default(), sink)).unwrap();
}

#[test]
#[ignore = "a measurement"]
fn cost_of_reads_of_cached_rows() {
    for (files, in_memory) in [(1, false), (0, true), (1, true), (4, false)] {
        let region = region(files, in_memory);
        let mut sink = CopySink::default();
        run(&region, &Scan::default(), &mut sink);
        for reversed in [false, true] {
            let start = Instant::now();
            run(&region, &Scan { reversed, ..Scan::default() }, &mut sink);
            println!(
                "{files} files, memory {in_memory}: scan reversed {reversed} {} ns a row",
                start.elapsed().as_nanos() as u64 / ROWS
            );
        }
        for qualifiers in [&[][..], &["q"]] {
            let gets = 100_000;
            let start = Instant::now();
            for at in 0..gets {
                let row = Bytes::from(row(at * 7919 % ROWS));
                let get =
                    Scan { start_row: row.clone(), stop_row: row, include_stop_row: true, ..Scan::default() };
                run(&region, &only(get, "f", qualifiers), &mut sink);
            }
            println!(
                "{files} files, memory {in_memory}: get of {} columns {} ns",
                qualifiers.len(),
                start.elapsed().as_nanos() as u64 / gets
            );
        }
        assert_eq!(sink.cells, 3 * ROWS + 200_000);
        let start = Instant::now();
        let files = region.stores[0].view.files.clone();
        let memstores = [region.stores[0].view.active.clone()];
        let kept = region.compacted(0, &memstores, &files, Retention::Minor, u64::MAX).len() as u64;
        println!("compaction {} ns a cell, copy included", start.elapsed().as_nanos() as u64 / kept);
    }
}
