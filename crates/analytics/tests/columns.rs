//! Column scans return the same rows as cell scans, and read vectors of whole stretches where
//! possible.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod common;

use std::sync::Arc;

use analytics::{BatchSink, ColumnQuery, ColumnScan, ReadStats, TakenRows};
use base::env::Env;
use bytes::Bytes;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::TimeRange;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{KeyValue, LATEST_TIMESTAMP};
use columnar::{Batch, Bounds, Column, ColumnLocation, Encoding, Value};
use common::columns::{check, raw_columns, read, wanted};
use common::regions::world::{Opened, open_table, options, region_info, run};
use engine::region::CompactionKind;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use hfile::BlockKind;
use layout::RootDir;

const ROWS: u64 = 6000;

fn table(block_bytes: &str) -> TableDescriptor {
    let family =
        |name: &'static str| FamilyDescriptor::new(name).with("BLOCKSIZE", block_bytes).with("VERSIONS", "2");
    TableDescriptor::new(TableName::parse("t").unwrap())
        .with_family(family("f").with("DATA_BLOCK_ENCODING", "FAST_DIFF"))
        .with_family(family("g"))
}

async fn opened(seed: u64) -> (Opened, Env) {
    let env = base::testing::env(seed);
    let opened = open_table(&env, Arc::new(MemoryFs::new()), options(), &table("256")).await.unwrap();
    opened.loader.set_cache_bytes(64 << 20);
    (opened, env)
}

fn row(number: u64) -> Bytes {
    format!("r{number:05}").into()
}

fn cell(number: u64, family: &[u8], qualifier: &[u8], timestamp: i64, value: &[u8]) -> KeyValue {
    KeyValue::new(&row(number), family, qualifier, timestamp, CellType::Put, value)
}

async fn write(opened: &Opened, cells: Vec<KeyValue>) {
    let put = |cell: KeyValue| Mutation::put(cell.view(0).row().to_vec(), vec![cell]);
    for result in opened.region.batch(cells.into_iter().map(put).collect()).await {
        result.unwrap();
    }
}

/// Writes random columns of some rows.
async fn load(opened: &Opened, env: &Env, family: &'static [u8], numbers: impl Iterator<Item = u64>) {
    let mut cells = Vec::new();
    for number in numbers {
        for qualifier in [&b"a"[..], b"b", b"c", b"d"] {
            let random = env.random.next_u64();
            if !random.is_multiple_of(4) {
                let value = format!("{}", random % 13);
                cells.push(cell(number, family, qualifier, LATEST_TIMESTAMP, value.as_bytes()));
            }
        }
    }
    write(opened, cells).await;
}

fn of_f() -> ColumnQuery {
    wanted(&[b"f"], raw_columns(&[(b"f", b"a"), (b"f", b"c"), (b"f", b"none")]))
}

#[test]
fn a_file_alone_is_read_by_stretches() {
    run(async {
        let (opened, env) = opened(1).await;
        for family in [&b"f"[..], b"g"] {
            load(&opened, &env, family, 0..ROWS).await;
        }
        opened.region.flush().await.unwrap();
        for families in [&b"f"[..], b"g"] {
            let of = ColumnQuery { families: vec![Bytes::copy_from_slice(families)], ..of_f() };
            let stats = check(&opened.region, &of).await;
            assert_eq!((stats.merged, stats.built), (0, 0), "{stats:?}");
            assert!(stats.in_vectors > ROWS * 9 / 10);
        }
        // Ranges that cut stretches: only the cut ones are merged, not those between.
        for (start, stop) in [(17, 5012), (0, 1), (2000, 2001), (3000, 3000), (5999, 9999)] {
            let stats =
                check(&opened.region, &ColumnQuery { start_row: row(start), stop_row: row(stop), ..of_f() })
                    .await;
            assert!(stats.merged < 2000, "{stats:?}");
        }
        // Two families have no common stretches.
        let both = wanted(&[b"f", b"g"], raw_columns(&[(b"f", b"a"), (b"g", b"a")]));
        assert_eq!(check(&opened.region, &both).await.in_vectors, 0);
    });
}

#[test]
fn values_in_mob_files_are_read() {
    run(async {
        let env = base::testing::env(3);
        let family = FamilyDescriptor::new("f").with("IS_MOB", "true").with("MOB_THRESHOLD", "20");
        let table = TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family);
        let opened = open_table(&env, Arc::new(MemoryFs::new()), options(), &table).await.unwrap();
        opened.loader.set_cache_bytes(64 << 20);
        let value = |number: u64| format!("{number}").repeat(if number.is_multiple_of(3) { 40 } else { 1 });
        let cells =
            (0..500).map(|number| cell(number, b"f", b"a", LATEST_TIMESTAMP, value(number).as_bytes()));
        write(&opened, cells.collect()).await;
        opened.region.flush().await.unwrap();
        let stats = check(&opened.region, &of_f()).await;
        assert_eq!((stats.in_vectors, stats.merged), (0, 500), "{stats:?}");
        let (found, _) = read(&opened.region, &of_f()).await;
        let is_large = |found: &&Value| matches!(found, Value::Raw(bytes) if bytes.len() == 120);
        let large = (100..500).filter(|number: &u64| number.is_multiple_of(3)).count();
        assert_eq!(found.rows.iter().flatten().filter(is_large).count(), large, "values are not references");
    });
}

#[test]
fn newer_cells_are_read() {
    run(async {
        let (opened, env) = opened(2).await;
        load(&opened, &env, b"f", 0..ROWS).await;
        opened.region.flush().await.unwrap();
        check(&opened.region, &of_f()).await;
        // Newer cells in the memstore, in a second file, in both, then in one file again.
        load(&opened, &env, b"f", 100..120).await;
        let stats = check(&opened.region, &of_f()).await;
        assert!((1..=20).contains(&stats.merged) && stats.in_vectors > ROWS * 9 / 10, "{stats:?}");
        opened.region.flush().await.unwrap();
        let stats = check(&opened.region, &of_f()).await;
        assert!((1..=20).contains(&stats.merged) && stats.in_vectors > ROWS * 9 / 10, "{stats:?}");
        load(&opened, &env, b"f", 110..7000).await;
        check(&opened.region, &of_f()).await;
        opened.region.flush().await.unwrap();
        check(&opened.region, &of_f()).await;
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        let stats = check(&opened.region, &of_f()).await;
        assert_eq!(stats.merged, 0, "{stats:?}");
    });
}

#[test]
fn a_file_in_the_gap_of_another_is_read_by_its_own_stretches() {
    run(async {
        // The larger file has rows on both sides of the other one, and none or few between.
        for between in [11_000..11_000, 11_000..11_002] {
            let (opened, env) = opened(16).await;
            load(&opened, &env, b"f", (0..3000).chain(between).chain(20_000..23_000)).await;
            opened.region.flush().await.unwrap();
            load(&opened, &env, b"f", 10_000..13_000).await;
            opened.region.flush().await.unwrap();
            let stats = check(&opened.region, &of_f()).await;
            assert!(stats.in_vectors > 8000 && stats.merged < 1000, "{stats:?}");
            check(&opened.region, &ColumnQuery { start_row: row(2900), stop_row: row(12_000), ..of_f() })
                .await;
            let counted = wanted(&[b"f"], Vec::new());
            let expected = common::columns::expected(&opened.region, &counted).await.len() as u64;
            let (found, stats) = read(&opened.region, &counted).await;
            assert!(found.count == expected && stats.merged < 1000, "{stats:?}");
        }
    });
}

#[test]
fn merged_rows_are_divided_by_all_files() {
    run(async {
        let (opened, env) = opened(17).await;
        // The largest file has the last rows. Another file has some of the rows before.
        for (family, numbers) in [(&b"f"[..], 6000..14_000), (b"f", 0..3000), (b"g", 1000..6000)] {
            load(&opened, &env, family, numbers).await;
            opened.region.flush().await.unwrap();
        }
        let both = wanted(&[b"f", b"g"], raw_columns(&[(b"f", b"a"), (b"g", b"a")]));
        for of in [both, ColumnQuery { versions: 2, ..of_f() }] {
            let scan = ColumnScan::new(&opened.region, of.clone()).unwrap();
            let units = scan.plan().await.unwrap().units;
            let before = units.iter().filter(|unit| *unit.start_row() < row(3000)).count();
            assert!(before > 5, "{before} of {}", units.len());
            assert!(units.is_sorted_by_key(|unit| unit.start_row().clone()));
            check(&opened.region, &of).await;
        }
    });
}

#[test]
fn rows_are_counted_without_reading_them() {
    run(async {
        let (opened, env) = opened(6).await;
        let count = async |stop: u64| {
            let of = ColumnQuery { stop_row: row(stop), ..wanted(&[b"f"], Vec::new()) };
            let (found, stats) = read(&opened.region, &of).await;
            let expected = common::columns::expected(&opened.region, &of).await.len() as u64;
            assert_eq!(found.count, expected);
            stats
        };
        load(&opened, &env, b"f", 0..ROWS).await;
        opened.region.flush().await.unwrap();
        load(&opened, &env, b"f", ROWS..2 * ROWS).await;
        opened.region.flush().await.unwrap();
        // Two files, neither of which is read.
        let stats = count(3 * ROWS).await;
        assert_eq!((stats.merged, stats.in_vectors, stats.built), (0, 0, 0), "{stats:?}");
        // A part of one file, and rows that are in both files: only these cells are read.
        let stats = count(ROWS + 100).await;
        assert!(stats.skipped > ROWS * 9 / 10 && stats.merged + stats.in_vectors < 3000, "{stats:?}");
        load(&opened, &env, b"f", ROWS + 10..ROWS + 20).await;
        opened.region.flush().await.unwrap();
        let stats = count(3 * ROWS).await;
        assert!(stats.skipped > ROWS * 9 / 10 && stats.merged < 2000, "{stats:?}");
        let marker = KeyValue::new(&row(5), b"f", b"", 9, CellType::DeleteFamily, b"");
        opened.region.batch(vec![Mutation::delete(row(5), vec![marker])]).await.remove(0).unwrap();
        count(3 * ROWS).await;
        opened.region.flush().await.unwrap();
        count(3 * ROWS).await;
    });
}

#[test]
fn deletes_and_time_ranges_are_respected() {
    run(async {
        let (opened, _) = opened(3).await;
        write(
            &opened,
            (0..ROWS).map(|number| cell(number, b"f", b"a", 1000 + number as i64, b"old")).collect(),
        )
        .await;
        write(&opened, (0..ROWS).step_by(2).map(|number| cell(number, b"f", b"a", 9000, b"new")).collect())
            .await;
        opened.region.flush().await.unwrap();
        let stats = check(&opened.region, &of_f()).await;
        assert_eq!(stats.merged, 0, "{stats:?}");
        for (from, to) in [(0, 9000), (1500, 9001), (9000, i64::MAX), (0, 1), (500, 20_000)] {
            let time_range = TimeRange { from, to };
            check(&opened.region, &ColumnQuery { time_range, ..of_f() }).await;
        }
        let deletes = (0..ROWS).step_by(1000).map(|number| {
            let marker = KeyValue::new(&row(number), b"f", b"a", 9000, CellType::Delete, b"");
            Mutation::delete(row(number), vec![marker])
        });
        for result in opened.region.batch(deletes.collect()).await {
            result.unwrap();
        }
        check(&opened.region, &of_f()).await;
        opened.region.flush().await.unwrap();
        check(&opened.region, &of_f()).await;
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        let stats = check(&opened.region, &of_f()).await;
        assert_eq!(stats.merged, 0, "{stats:?}");
    });
}

#[test]
fn rows_of_a_loaded_file_are_counted() {
    run(async {
        let env = base::testing::env(13);
        let (from, to) = (MemoryFs::new(), MemoryFs::new());
        let dir = FilePath::new(&format!("data/default/t/{}/f", region_info().encoded_name()));
        let opened = open_table(&env, Arc::new(from.clone()), options(), &table("256")).await.unwrap();
        // Its sequence id is higher than any in the region that it is loaded into.
        load(&opened, &env, b"f", 0..1000).await;
        opened.region.flush().await.unwrap();
        let mut names = from.list(&dir).await.unwrap().into_iter().map(|entry| entry.name);
        let name = names.find(|name| name.len() == 32).unwrap();
        to.put(&dir.join(&format!("{name}_SeqId_3_")), from.contents(&dir.join(&name)).unwrap());
        let opened = open_table(&env, Arc::new(to), options(), &table("256")).await.unwrap();
        opened.loader.set_cache_bytes(64 << 20);
        let (found, stats) = read(&opened.region, &wanted(&[b"f"], Vec::new())).await;
        assert!(found.count > 900 && stats.skipped == found.count && stats.built == 0, "{stats:?}");
        assert_eq!(check(&opened.region, &of_f()).await.in_vectors, found.count);
    });
}

#[test]
fn a_plan_begins_at_its_row() {
    run(async {
        let (opened, _) = opened(8).await;
        // Long rows, so that the index has many blocks.
        let long = |number: u64| Bytes::from([&[b'x'; 600][..], &row(number)].concat());
        let put = |number| {
            Mutation::put(
                long(number),
                vec![KeyValue::new(&long(number), b"f", b"a", 5, CellType::Put, b"1")],
            )
        };
        for result in opened.region.batch((0..3000).map(put).collect()).await {
            result.unwrap();
        }
        opened.region.flush().await.unwrap();
        let leaves = || opened.loader.kind_stats(BlockKind::LeafIndex);
        let of = ColumnQuery {
            start_row: long(2500),
            stop_row: long(2510),
            ..wanted(&[b"f"], raw_columns(&[(b"f", b"a")]))
        };
        assert_eq!(read(&opened.region, &of).await.0.rows.len(), 10);
        assert!((1..=3).contains(&leaves().entries), "{:?}", leaves());
        // Plans no more units than requested.
        let all = ColumnQuery { start_row: Bytes::new(), stop_row: Bytes::new(), ..of };
        let scan = ColumnScan::new(&opened.region, all.clone()).unwrap();
        let plan = scan.plan_up_to(4).await.unwrap();
        assert!((4..7).contains(&plan.units.len()), "{}", plan.units.len());
        assert!(plan.next_row.is_some_and(|row| row < long(1500)));
        assert!(leaves().entries < 7, "{:?}", leaves());
        check(&opened.region, &all).await;
        assert!(leaves().entries > 12, "a full scan reads many: {:?}", leaves());
    });
}

#[test]
fn a_stretch_with_a_hidden_value_is_not_read_again() {
    run(async {
        let (opened, _) = opened(9).await;
        let seven = 7_i64.to_be_bytes();
        let number = |qualifier: &'static [u8]| Column {
            location: ColumnLocation::Cell { family: "f".into(), qualifier: qualifier.into() },
            encoding: Encoding::BytesLong,
            scale: 0,
        };
        // The last value of each stretch is not a number; a second file has a number that
        // overwrites it.
        let value = |at: u64| if at % 500 == 499 { &b"seven"[..] } else { &seven };
        write(&opened, (0..ROWS).map(|at| cell(at, b"f", b"a", 5, value(at))).collect()).await;
        write(&opened, (0..ROWS).map(|at| cell(at, b"f", b"b", 5, &seven)).collect()).await;
        opened.region.flush().await.unwrap();
        write(&opened, (499..ROWS).step_by(500).map(|at| cell(at, b"f", b"a", 6, &seven)).collect()).await;
        let of = wanted(&[b"f"], vec![number(b"a")]);
        let cost = async |of: &ColumnQuery| {
            let before = opened.loader.stats().hits;
            let (found, stats) = read(&opened.region, of).await;
            assert_eq!(found.rows.len() as u64, ROWS);
            assert!(found.rows.iter().all(|row| row.iter().all(|value| *value == Value::Whole(7))));
            (opened.loader.stats().hits - before, stats)
        };
        // All blocks are in memory.
        common::columns::expected(&opened.region, &of).await;
        let ((first, _), (second, stats)) = (cost(&of).await, cost(&of).await);
        assert!(second * 4 < first * 3 && stats.merged > ROWS / 2, "{second} {first} {stats:?}");
        // The vector of another column is built and cached.
        let (_, stats) = cost(&wanted(&[b"f"], vec![number(b"b")])).await;
        assert!(stats.in_vectors > ROWS * 9 / 10 && stats.built > 0, "{stats:?}");
        assert!(cost(&of).await.0 * 4 < first * 3);
    });
}

/// A sink that needs no rows.
struct UninterestedSink(u64);

impl BatchSink for UninterestedSink {
    fn may_use(&self, _bounds: &[Bounds]) -> bool {
        false
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<TakenRows, engine::Error> {
        self.0 += batch.len as u64;
        Ok(TakenRows::All)
    }

    fn rows(&mut self, _rows: u64) {}
}

#[test]
fn new_rows_are_located_in_their_stretch_without_keys() {
    run(async {
        let (opened, _) = opened(10).await;
        let all = |numbers: std::ops::Range<u64>| numbers.map(|at| cell(at, b"f", b"a", 5, b"1")).collect();
        write(&opened, all(0..ROWS)).await;
        opened.region.flush().await.unwrap();
        let of = wanted(&[b"f"], raw_columns(&[(b"f", b"a")]).split_off(1));
        read(&opened.region, &of).await;
        let before = opened.loader.cached_bytes();
        write(&opened, (7..ROWS).step_by(100).map(|at| cell(at, b"f", b"a", 6, b"2")).collect()).await;
        let (found, stats) = read(&opened.region, &of).await;
        assert_eq!((stats.merged, stats.in_vectors, stats.built), (60, ROWS - 60, 0), "{stats:?}");
        let fresh = found.rows.iter().filter(|row| row[0] == Value::Raw("2".into()));
        assert_eq!((fresh.count(), found.rows.len() as u64), (60, ROWS));
        assert!(opened.loader.cached_bytes() < before + ROWS, "less than one byte per row");
        // A row is counted once, wherever it is read; so are rows that are new in the stretch.
        write(&opened, vec![cell(ROWS - 5, b"f", b"c", 6, b"2")]).await;
        let scan = ColumnScan::new(&opened.region, of).unwrap();
        let (mut sink, mut stats) = (UninterestedSink(0), ReadStats::default());
        for unit in &scan.plan().await.unwrap().units {
            stats.add(&scan.read(unit, &mut sink).await.unwrap().stats);
        }
        assert_eq!((stats.rows(), stats.merged, sink.0), (ROWS, 61, 61), "{stats:?}");
    });
}

/// A sink that records the size of batches.
#[derive(Debug, Default)]
struct BatchSizes {
    batches: usize,
    rows: usize,
    rows_max: usize,
    bytes_max: usize,
}

impl BatchSink for BatchSizes {
    fn may_use(&self, _bounds: &[Bounds]) -> bool {
        true
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<TakenRows, engine::Error> {
        let bytes = batch.columns.iter().map(|column| column.heap_len()).sum();
        (self.batches, self.rows) = (self.batches + 1, self.rows + batch.len);
        self.rows_max = self.rows_max.max(batch.len);
        self.bytes_max = self.bytes_max.max(bytes);
        Ok(TakenRows::All)
    }

    fn rows(&mut self, _rows: u64) {}
}

#[test]
fn large_values_are_passed_in_slices() {
    run(async {
        let (opened, _) = opened(12).await;
        let large = |at: u64| cell(at, b"f", b"a", 5, &vec![at as u8; 1 << 20]);
        write(&opened, (0..24).map(large).collect()).await;
        opened.region.flush().await.unwrap();
        let of = wanted(&[b"f"], raw_columns(&[(b"f", b"a")]));
        // From the file, then with rows in memory that hide all of the file.
        for _ in 0..2 {
            let scan = ColumnScan::new(&opened.region, of.clone()).unwrap();
            let mut sink = BatchSizes::default();
            for unit in &scan.plan().await.unwrap().units {
                scan.read(unit, &mut sink).await.unwrap();
            }
            assert!(sink.rows == 24 && sink.batches > 4 && sink.bytes_max < 7 << 20, "{sink:?}");
            write(&opened, (0..24).map(large).collect()).await;
        }
    });
}

/// Takes all rows that were found, then stops.
#[derive(Default)]
struct StopAfterBatch(Vec<Bytes>);

impl BatchSink for StopAfterBatch {
    fn may_use(&self, _bounds: &[Bounds]) -> bool {
        true
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<TakenRows, engine::Error> {
        let key = |row| match batch.columns[0].get(row) {
            Value::Raw(key) => key,
            other => panic!("{other:?}"),
        };
        self.0.extend((0..batch.len).map(key));
        Ok(TakenRows::All)
    }

    fn rows(&mut self, _rows: u64) {}

    fn wants_more(&mut self) -> Result<bool, engine::Error> {
        Ok(false)
    }
}

#[test]
fn a_sink_that_stops_between_rows_resumes_at_the_next() {
    run(async {
        let (opened, _) = opened(14).await;
        // So large that a batch reaches its byte limit when the next row has already been found.
        let large = |at: u64| cell(at, b"f", b"a", 5, &vec![at as u8; 6000]);
        write(&opened, (0..8000).map(large).collect()).await;
        let mut of = wanted(&[b"f"], raw_columns(&[(b"f", b"b")]));
        let (mut rows, mut parts) = (Vec::new(), 0);
        loop {
            let scan = ColumnScan::new(&opened.region, of.clone()).unwrap();
            let plan = scan.plan_up_to(1).await.unwrap();
            let mut sink = StopAfterBatch::default();
            let read = scan.read(&plan.units[0], &mut sink).await.unwrap();
            rows.append(&mut sink.0);
            parts += 1;
            match read.next_row.or(plan.next_row) {
                Some(next_row) => of.start_row = next_row,
                None => break,
            }
        }
        assert!(parts > 2, "{parts} parts");
        assert_eq!(rows.len(), 8000);
        assert!(rows.is_sorted_by(|one, other| one < other));
    });
}

#[test]
fn versions_are_rows_of_their_time() {
    run(async {
        let (opened, env) = opened(11).await;
        let three = |versions| ColumnQuery { versions, ..of_f() };
        let values = async |of: &ColumnQuery| read(&opened.region, of).await.0.rows;
        let texts = |rows: Vec<Vec<Value>>| -> Vec<String> {
            let text = |value: &Value| value.raw().map_or("-".into(), |raw| raw.escape_ascii().to_string());
            rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect()
        };
        write(
            &opened,
            vec![
                cell(1, b"f", b"a", 5, b"a5"),
                cell(1, b"f", b"c", 5, b"c5"),
                cell(1, b"f", b"c", 7, b"c7"),
                cell(1, b"f", b"a", 8, b"a8"),
                cell(1, b"f", b"a", 9, b"a9"),
                cell(2, b"f", b"d", 9, b"not read"),
            ],
        )
        .await;
        // The family keeps two versions of each column.
        let expected = ["r00001 a9 - -", "r00001 a8 - -", "r00001 - c7 -", "r00001 - c5 -", "r00002 - - -"];
        assert_eq!(texts(values(&three(9)).await), expected);
        assert_eq!(texts(values(&three(1)).await), ["r00001 a9 c7 -", "r00002 - - -"]);
        for _ in 0..3 {
            load(&opened, &env, b"f", 0..2000).await;
            check(&opened.region, &three(2)).await;
            opened.region.flush().await.unwrap();
        }
        check(&opened.region, &three(2)).await;
        check(&opened.region, &three(3)).await;
    });
}

/// A table with unlimited versions, and columns of numbers.
async fn with_versions(seed: u64, columns: usize) -> (Opened, Vec<Column>) {
    let env = base::testing::env(seed);
    let family = FamilyDescriptor::new("f").with("VERSIONS", "1000000");
    let table = TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family);
    let opened = open_table(&env, Arc::new(MemoryFs::new()), options(), &table).await.unwrap();
    let location = |at| ColumnLocation::Cell { family: "f".into(), qualifier: format!("q{at:04}").into() };
    let column = |at| Column { location: location(at), encoding: Encoding::BytesLong, scale: 0 };
    (opened, (0..columns).map(column).collect())
}

#[test]
fn rows_of_many_timestamps_are_passed_in_batches() {
    run(async {
        let (opened, columns) = with_versions(14, 100).await;
        let put = |number| {
            let one = |at: usize| {
                let time = 5 + at as i64;
                cell(number, b"f", format!("q{at:04}").as_bytes(), time, &time.to_be_bytes())
            };
            Mutation::put(row(number), (0..100).map(one).collect())
        };
        for result in opened.region.batch((0..300).map(put).collect()).await {
            result.unwrap();
        }
        let of = ColumnQuery { versions: 2, ..wanted(&[b"f"], columns) };
        for _ in 0..2 {
            let scan = ColumnScan::new(&opened.region, of.clone()).unwrap();
            let mut sink = BatchSizes::default();
            for unit in &scan.plan().await.unwrap().units {
                scan.read(unit, &mut sink).await.unwrap();
            }
            // One row per cell, with a field per column.
            assert_eq!(sink.rows, 30_000);
            assert!((2000..10_000).contains(&sink.rows_max) && sink.batches < 15, "{sink:?}");
            opened.region.flush().await.unwrap();
        }
    });
}

#[test]
fn a_row_of_too_many_timestamps_is_rejected() {
    run(async {
        let (opened, mut columns) = with_versions(15, 1024).await;
        let times = (0..23_000).map(|at| cell(7, b"f", b"q0000", 1 + at, &at.to_be_bytes())).collect();
        opened.region.batch(vec![Mutation::put(row(7), times)]).await.remove(0).unwrap();
        let mut of = ColumnQuery { versions: 30_000, ..wanted(&[b"f"], columns.clone()) };
        let failed = failure(&opened, of.clone()).await;
        assert!(failed.starts_with("row r00007: ") && failed.contains("fewer columns"), "{failed}");
        columns.truncate(8);
        of.columns = columns;
        let (found, _) = read(&opened.region, &of).await;
        assert_eq!(found.rows.len(), 23_000);
        assert_eq!(found.rows[0][..2], [Value::Whole(22_999), Value::Null]);
    });
}

#[test]
fn a_scan_reads_at_one_read_point() {
    run(async {
        let (opened, env) = opened(4).await;
        load(&opened, &env, b"f", 0..ROWS).await;
        opened.region.flush().await.unwrap();
        let expected = common::columns::expected(&opened.region, &of_f()).await;
        let scan = ColumnScan::new(&opened.region, of_f()).unwrap();
        let units = scan.plan().await.unwrap().units;
        load(&opened, &env, b"f", 0..ROWS).await;
        opened.region.flush().await.unwrap();
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        let mut found = common::columns::CollectedRows::default();
        for unit in &units {
            scan.read(unit, &mut found).await.unwrap();
        }
        assert_eq!(found.rows, expected);
    });
}

/// The error that a scan returns.
async fn failure(opened: &Opened, wanted: ColumnQuery) -> String {
    let scan = ColumnScan::new(&opened.region, wanted).unwrap();
    let mut failed = None;
    for unit in &scan.plan().await.unwrap().units {
        if let Err(error) = scan.read(unit, &mut common::columns::CollectedRows::default()).await {
            failed.get_or_insert(error.to_string());
        }
    }
    failed.expect("a value does not match its column's encoding")
}

#[test]
fn invalid_numbers_are_reported_with_their_row() {
    run(async {
        let (opened, _) = opened(5).await;
        write(&opened, vec![cell(1, b"f", b"a", 5, &7_i64.to_be_bytes()), cell(2, b"f", b"a", 5, b"seven")])
            .await;
        let column = |encoding| Column {
            location: ColumnLocation::Cell { family: "f".into(), qualifier: "a".into() },
            encoding,
            scale: 0,
        };
        for _ in 0..2 {
            let failed = failure(&opened, wanted(&[b"f"], vec![column(Encoding::BytesLong)])).await;
            assert!(failed.starts_with("row r00002: f:a: "), "{failed}");
            opened.region.flush().await.unwrap();
        }
        let first = ColumnQuery { stop_row: row(2), ..wanted(&[b"f"], vec![column(Encoding::BytesLong)]) };
        assert_eq!(read(&opened.region, &first).await.0.rows, [[Value::Whole(7)]]);
    });
}

#[test]
fn hidden_values_need_not_be_numbers() {
    run(async {
        let (opened, _) = opened(7).await;
        let seven = 7_i64.to_be_bytes();
        let long = Column {
            location: ColumnLocation::Cell { family: "f".into(), qualifier: "a".into() },
            encoding: Encoding::BytesLong,
            scale: 0,
        };
        let of = wanted(&[b"f"], vec![raw_columns(&[]).remove(0), long]);
        let found = async |of: &ColumnQuery| read(&opened.region, of).await.0.rows;
        let is = |number: u64, value: Value| vec![Value::Raw(row(number)), value];
        // A number overwrites text: in memory, in another file, in the same file.
        write(&opened, (0..4).map(|number| cell(number, b"f", b"a", 5, b"seven")).collect()).await;
        opened.region.flush().await.unwrap();
        write(&opened, (0..4).map(|number| cell(number, b"f", b"a", 6, &seven)).collect()).await;
        let sevens: Vec<_> = (0..4).map(|number| is(number, Value::Whole(7))).collect();
        assert_eq!(found(&of).await, sevens);
        opened.region.flush().await.unwrap();
        assert_eq!(found(&of).await, sevens);
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(found(&of).await, sevens);
        // The text is only visible to a scan of that time range.
        let before = ColumnQuery { time_range: TimeRange { from: 0, to: 6 }, ..of.clone() };
        let text = failure(&opened, before).await;
        assert!(text.starts_with("row r00000: f:a: "), "{text}");
        // Delete markers of a column or version have no value.
        let more = (10..13).map(|number| cell(number, b"f", b"a", 6, &seven));
        write(&opened, more.chain([cell(12, b"f", b"a", 5, &seven)]).collect()).await;
        for (number, kind) in [(11, CellType::DeleteColumn), (12, CellType::Delete)] {
            let marker = KeyValue::new(&row(number), b"f", b"a", 6, kind, b"");
            let delete = Mutation::delete(row(number), vec![marker]);
            opened.region.batch(vec![delete]).await.remove(0).unwrap();
        }
        let left: Vec<_> = (0..4).chain([10, 12]).map(|number| is(number, Value::Whole(7))).collect();
        assert_eq!(found(&of).await, left);
        opened.region.flush().await.unwrap();
        assert_eq!(found(&of).await, left);
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(found(&of).await, left);
    });
}

/// A region whose files have column sidecars, with one file of rows, on its own file system.
async fn with_sidecar(seed: u64) -> (Opened, Env, Arc<MemoryFs>) {
    let env = base::testing::env(seed);
    let fs = Arc::new(MemoryFs::new());
    let family = FamilyDescriptor::new("f").with("BLOCKSIZE", "256").with("COLUMN_SIDECAR", "true");
    let table = TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family);
    let opened = open_table(&env, fs.clone(), options(), &table).await.unwrap();
    opened.loader.set_cache_bytes(64 << 20);
    load(&opened, &env, b"f", 0..ROWS).await;
    opened.region.flush().await.unwrap();
    (opened, env, fs)
}

#[test]
fn a_sidecar_is_read_instead_of_cells() {
    run(async {
        let (opened, env, _) = with_sidecar(11).await;
        let data_blocks = || opened.loader.kind_stats(BlockKind::Data).entries;
        let (_, stats) = read(&opened.region, &of_f()).await;
        assert!(stats.in_vectors > ROWS * 9 / 10 && stats.merged == 0 && stats.built > 0, "{stats:?}");
        // One data block may be read together with the adjacent strips.
        assert!(data_blocks() <= 1, "cells were read: {} blocks", data_blocks());
        // Columns that no scan has read yet, ranges of rows, and newer cells in memory and files.
        let others = wanted(&[b"f"], raw_columns(&[(b"f", b"b"), (b"f", b"d"), (b"g", b"a")]));
        check(&opened.region, &of_f()).await;
        check(&opened.region, &others).await;
        check(&opened.region, &ColumnQuery { start_row: row(17), stop_row: row(5012), ..of_f() }).await;
        load(&opened, &env, b"f", 100..120).await;
        let stats = check(&opened.region, &of_f()).await;
        assert!((1..=20).contains(&stats.merged) && stats.in_vectors > ROWS * 9 / 10, "{stats:?}");
        opened.region.flush().await.unwrap();
        check(&opened.region, &of_f()).await;
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        let stats = check(&opened.region, &of_f()).await;
        assert_eq!(stats.merged, 0, "{stats:?}");
    });
}

#[test]
fn vectors_that_would_be_very_large_are_not_built_from_a_sidecar() {
    run(async {
        let (opened, _, _) = with_sidecar(18).await;
        // All suffixes of all keys are different.
        let long = |number: u64| Bytes::from([&row(number)[..], &[b'x'; 8000], &row(number)].concat());
        let put = |number| {
            let cell = KeyValue::new(&long(number), b"f", b"a", 5, CellType::Put, b"1");
            Mutation::put(long(number), vec![cell])
        };
        for result in opened.region.batch((ROWS..ROWS + 50).map(put).collect()).await {
            result.unwrap();
        }
        opened.region.flush().await.unwrap();
        let columns = |count| {
            let location = |offset| ColumnLocation::RowBytes { offset, length: None };
            (0..count)
                .map(|at| Column { location: location(at), encoding: Encoding::Raw, scale: 0 })
                .collect()
        };
        let of = |count| ColumnQuery { start_row: row(ROWS), ..wanted(&[b"f"], columns(count)) };
        let (_, stats) = read(&opened.region, &of(4)).await;
        assert_eq!((stats.in_vectors, stats.merged), (50, 0), "{stats:?}");
        let scan = ColumnScan::new(&opened.region, of(1000)).unwrap();
        let (mut sink, mut stats) = (BatchSizes::default(), ReadStats::default());
        for unit in &scan.plan().await.unwrap().units {
            stats.add(&scan.read(unit, &mut sink).await.unwrap().stats);
        }
        assert_eq!((stats.in_vectors, stats.merged, sink.rows), (0, 50, 50), "{stats:?}");
        assert!(sink.bytes_max < 16 << 20, "{sink:?}");
    });
}

#[test]
fn without_its_sidecar_a_file_is_read_by_its_cells() {
    run(async {
        let (opened, env, fs) = with_sidecar(12).await;
        let family = RootDir::new(FilePath::root()).family_dir(&region_info(), b"f");
        let files = fs.list(&family).await.unwrap();
        let path = family.join(&files.iter().find(|file| !file.is_dir).unwrap().name);
        let table = (**opened.region.table()).clone();
        opened.region.close().await.unwrap();
        let whole = fs.contents(&path).unwrap();
        let metas: Vec<usize> =
            (0..whole.len() - 8).filter(|at| whole[*at..].starts_with(b"METABLKc")).collect();
        assert!(metas.len() > 20);
        // Damage in strips, directories, and the catalog, which comes last.
        for at in metas.iter().step_by(metas.len() / 20).chain(metas.last()) {
            let mut damaged = whole.clone();
            damaged[at + 40] ^= 1;
            fs.put(&path, damaged);
            let opened = open_table(&env, fs.clone(), options(), &table).await.unwrap();
            check(&opened.region, &of_f()).await;
            opened.region.close().await.unwrap();
        }
    });
}
