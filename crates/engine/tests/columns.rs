//! Rows as vectors of columns: what a scan of cells gives, by stretches of files where that can be.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod common;

use std::sync::Arc;

use base::env::Env;
use bytes::Bytes;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::TimeRange;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{KeyValue, LATEST_TIMESTAMP};
use columnar::{Column, Encoding, Place, Value};
use common::columns::{check, raw_columns, read, wanted};
use common::world::{Opened, open_table, options, run};
use engine::columns::{ColumnScan, Wanted};
use engine::region::CompactionKind;
use fs::memory::MemoryFs;

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

/// Some columns of some rows.
async fn load(opened: &Opened, env: &Env, family: &'static [u8], numbers: impl Iterator<Item = u64>) {
    let mut cells = Vec::new();
    for number in numbers {
        for qualifier in [&b"a"[..], b"b", b"c", b"d"] {
            let chance = env.random.next_u64();
            if !chance.is_multiple_of(4) {
                let value = format!("{}", chance % 13);
                cells.push(cell(number, family, qualifier, LATEST_TIMESTAMP, value.as_bytes()));
            }
        }
    }
    write(opened, cells).await;
}

fn of_f() -> Wanted {
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
            let of = Wanted { families: vec![Bytes::copy_from_slice(families)], ..of_f() };
            let looked = check(&opened.region, &of).await;
            assert_eq!((looked.merged, looked.built), (0, 0), "{looked:?}");
            assert!(looked.in_vectors > ROWS * 9 / 10);
        }
        // Ranges that cut stretches: those are merged, what is whole between them is not.
        for (start, stop) in [(17, 5012), (0, 1), (2000, 2001), (3000, 3000), (5999, 9999)] {
            let looked =
                check(&opened.region, &Wanted { start_row: row(start), stop_row: row(stop), ..of_f() }).await;
            assert!(looked.merged < 2000, "{looked:?}");
        }
        // Two families have no common stretches.
        let both = wanted(&[b"f", b"g"], raw_columns(&[(b"f", b"a"), (b"g", b"a")]));
        assert_eq!(check(&opened.region, &both).await.in_vectors, 0);
    });
}

#[test]
fn what_is_newer_is_seen() {
    run(async {
        let (opened, env) = opened(2).await;
        load(&opened, &env, b"f", 0..ROWS).await;
        opened.region.flush().await.unwrap();
        check(&opened.region, &of_f()).await;
        // In the memstore, in a second file, in both; then in one file again.
        load(&opened, &env, b"f", 100..120).await;
        let looked = check(&opened.region, &of_f()).await;
        assert!((1..=20).contains(&looked.merged) && looked.in_vectors > ROWS * 9 / 10, "{looked:?}");
        opened.region.flush().await.unwrap();
        let looked = check(&opened.region, &of_f()).await;
        assert!((1..=20).contains(&looked.merged) && looked.in_vectors > ROWS * 9 / 10, "{looked:?}");
        load(&opened, &env, b"f", 110..7000).await;
        check(&opened.region, &of_f()).await;
        opened.region.flush().await.unwrap();
        check(&opened.region, &of_f()).await;
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        let looked = check(&opened.region, &of_f()).await;
        assert_eq!(looked.merged, 0, "{looked:?}");
    });
}

#[test]
fn rows_are_counted_without_a_look_at_them() {
    run(async {
        let (opened, env) = opened(6).await;
        let count = async |stop: u64| {
            let of = Wanted { stop_row: row(stop), ..wanted(&[b"f"], Vec::new()) };
            let (found, looked) = read(&opened.region, &of).await;
            let expected = common::columns::expected(&opened.region, &of).await.len() as u64;
            assert_eq!(found.count, expected);
            looked
        };
        load(&opened, &env, b"f", 0..ROWS).await;
        opened.region.flush().await.unwrap();
        load(&opened, &env, b"f", ROWS..2 * ROWS).await;
        opened.region.flush().await.unwrap();
        // Two files, neither of which was read.
        let looked = count(3 * ROWS).await;
        assert_eq!((looked.merged, looked.in_vectors, looked.built), (0, 0, 0), "{looked:?}");
        // A part of one of them, and rows that another file has too: only there cells are looked at.
        let looked = count(ROWS + 100).await;
        assert!(looked.skipped > ROWS * 9 / 10 && looked.merged + looked.in_vectors < 3000, "{looked:?}");
        load(&opened, &env, b"f", ROWS + 10..ROWS + 20).await;
        opened.region.flush().await.unwrap();
        let looked = count(3 * ROWS).await;
        assert!(looked.skipped > ROWS * 9 / 10 && looked.merged < 2000, "{looked:?}");
        let marker = KeyValue::new(&row(5), b"f", b"", 9, CellType::DeleteFamily, b"");
        opened.region.batch(vec![Mutation::delete(row(5), vec![marker])]).await.remove(0).unwrap();
        count(3 * ROWS).await;
        opened.region.flush().await.unwrap();
        count(3 * ROWS).await;
    });
}

#[test]
fn deletes_and_times_are_minded() {
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
        let looked = check(&opened.region, &of_f()).await;
        assert_eq!(looked.merged, 0, "{looked:?}");
        for (from, to) in [(0, 9000), (1500, 9001), (9000, i64::MAX), (0, 1), (500, 20_000)] {
            let time_range = TimeRange { from, to };
            check(&opened.region, &Wanted { time_range, ..of_f() }).await;
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
        let looked = check(&opened.region, &of_f()).await;
        assert_eq!(looked.merged, 0, "{looked:?}");
    });
}

#[test]
fn a_scan_sees_one_moment() {
    run(async {
        let (opened, env) = opened(4).await;
        load(&opened, &env, b"f", 0..ROWS).await;
        opened.region.flush().await.unwrap();
        let expected = common::columns::expected(&opened.region, &of_f()).await;
        let scan = ColumnScan::new(&opened.region, of_f()).unwrap();
        let units = scan.units().await.unwrap();
        load(&opened, &env, b"f", 0..ROWS).await;
        opened.region.flush().await.unwrap();
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        let mut found = common::columns::Found::default();
        for unit in &units {
            scan.read(unit, &mut found).await.unwrap();
        }
        assert_eq!(found.rows, expected);
    });
}

/// What a scan fails with.
async fn failure(opened: &Opened, wanted: Wanted) -> String {
    let scan = ColumnScan::new(&opened.region, wanted).unwrap();
    let mut failed = None;
    for unit in &scan.units().await.unwrap() {
        if let Err(error) = scan.read(unit, &mut common::columns::Found::default()).await {
            failed.get_or_insert(error.to_string());
        }
    }
    failed.expect("a value is not as its column says")
}

#[test]
fn numbers_that_are_none_are_told_with_their_row() {
    run(async {
        let (opened, _) = opened(5).await;
        write(&opened, vec![cell(1, b"f", b"a", 5, &7_i64.to_be_bytes()), cell(2, b"f", b"a", 5, b"seven")])
            .await;
        let column = |encoding| Column {
            place: Place::Cell { family: "f".into(), qualifier: "a".into() },
            encoding,
            scale: 0,
        };
        for _ in 0..2 {
            let failed = failure(&opened, wanted(&[b"f"], vec![column(Encoding::BytesLong)])).await;
            assert!(failed.starts_with("row r00002: f:a: "), "{failed}");
            opened.region.flush().await.unwrap();
        }
        let first = Wanted { stop_row: row(2), ..wanted(&[b"f"], vec![column(Encoding::BytesLong)]) };
        assert_eq!(read(&opened.region, &first).await.0.rows, [[Value::Whole(7)]]);
    });
}

#[test]
fn what_nobody_sees_need_not_be_a_number() {
    run(async {
        let (opened, _) = opened(7).await;
        let seven = 7_i64.to_be_bytes();
        let long = Column {
            place: Place::Cell { family: "f".into(), qualifier: "a".into() },
            encoding: Encoding::BytesLong,
            scale: 0,
        };
        let of = wanted(&[b"f"], vec![raw_columns(&[]).remove(0), long]);
        let found = async |of: &Wanted| read(&opened.region, of).await.0.rows;
        let is = |number: u64, value: Value| vec![Value::Raw(row(number)), value];
        // A number written over what is none: in memory, in another file, in the same one.
        write(&opened, (0..4).map(|number| cell(number, b"f", b"a", 5, b"seven")).collect()).await;
        opened.region.flush().await.unwrap();
        write(&opened, (0..4).map(|number| cell(number, b"f", b"a", 6, &seven)).collect()).await;
        let sevens: Vec<_> = (0..4).map(|number| is(number, Value::Whole(7))).collect();
        assert_eq!(found(&of).await, sevens);
        opened.region.flush().await.unwrap();
        assert_eq!(found(&of).await, sevens);
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(found(&of).await, sevens);
        // The text is there for who asks for that time only.
        let before = Wanted { time_range: TimeRange { from: 0, to: 6 }, ..of.clone() };
        let told = failure(&opened, before).await;
        assert!(told.starts_with("row r00000: f:a: "), "{told}");
        // What deletes a column or a version of it stands in its place, and has no value.
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
