//! Tests of a region's public interface, one behavior per test: which requests are refused and why,
//! which timestamps cells get, disk failures, and the files in the directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::model::VisibleCell;
use crate::common::world::{
    Opened, names, open, open_table, options, region_info, run, scan, store_dir, table, unfinished_files,
};
use base::BoxFuture;
use base::env::{Clock, Env};
use bytes::Bytes;
use cell::cell::CellType;
use cell::mutation::{Durability, Mutation};
use cell::query::{CellSelection, Get, MultiGet, Scan};
use cell::{KeyValue, LATEST_TIMESTAMP};
use engine::region::{CompactionKind, Flushed, RegionOptions, RegionState};
use engine::scanner::{CellList, Limits, drive};
use engine::{Error, Region};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};

fn put_at(row: &str, family: &str, qualifier: &str, timestamp: i64, value: &str) -> Mutation {
    let (family, qualifier) = (family.as_bytes(), qualifier.as_bytes());
    let cell = KeyValue::new(row.as_bytes(), family, qualifier, timestamp, CellType::Put, value.as_bytes());
    Mutation::put(row.as_bytes().to_vec(), vec![cell])
}

fn put(row: &str, value: &str) -> Mutation {
    put_at(row, "f", "q", LATEST_TIMESTAMP, value)
}

fn delete_newest(row: &str, times: usize) -> Mutation {
    let marker = KeyValue::new(row.as_bytes(), b"g", b"q", LATEST_TIMESTAMP, CellType::Delete, b"");
    Mutation::delete(row.as_bytes().to_vec(), vec![marker; times])
}

async fn one(region: &Region, mutation: Mutation) -> Result<(), Error> {
    region.batch(vec![mutation]).await.remove(0)
}

/// `row=value` of all visible cells.
async fn values(region: &Region) -> String {
    let text = |shown: &VisibleCell| format!("{}={}", shown.0.escape_ascii(), shown.4.escape_ascii());
    scan(region).await.unwrap().iter().map(text).collect::<Vec<_>>().join(" ")
}

async fn fresh(options: RegionOptions) -> (Opened, MemoryFs, Env) {
    let (env, memory) = (base::testing::env(7), MemoryFs::new());
    (open(&env, Arc::new(memory.clone()), options).await.unwrap(), memory, env)
}

#[test]
fn each_mutation_of_a_batch_gets_its_own_result() {
    run(async {
        let (opened, ..) = fresh(RegionOptions { cell_bytes_max: 100, ..options() }).await;
        let mut wrong_row = put("a", "v");
        wrong_row.row = "b".into();
        let marker_in_append = Mutation::append("a", delete_newest("a", 1).cells);
        let batch = vec![
            put("a", "1"),
            put_at("b", "x", "q", 1, "v"),
            put("c", &"v".repeat(100)),
            wrong_row,
            marker_in_append,
            Mutation::put("", vec![]),
            put("d", "2"),
        ];
        let results = opened.region.batch(batch).await;
        let is_bad = |at: usize| matches!(results[at], Err(Error::BadRequest { .. }));
        assert!(results[0].is_ok() && results[6].is_ok());
        assert!(matches!(&results[1], Err(Error::NoSuchFamily { family, .. }) if family == "x"));
        assert!((2..6).all(is_bad), "{results:?}");
        assert_eq!(values(&opened.region).await, "a=1 d=2");
    });
}

#[test]
fn an_atomic_batch_is_all_or_nothing() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let error = opened.region.batch_atomic(vec![put("a", "1"), put_at("b", "x", "q", 1, "v")]).await;
        assert!(matches!(error, Err(Error::NoSuchFamily { .. })));
        assert_eq!(values(&opened.region).await, "");
        opened.region.batch_atomic(vec![put("a", "1"), put("b", "2")]).await.unwrap();
        assert_eq!(values(&opened.region).await, "a=1 b=2");
    });
}

#[test]
fn rows_of_other_regions_are_rejected() {
    run(async {
        let (env, memory) = (base::testing::env(7), MemoryFs::new());
        let opened = open(&env, Arc::new(memory.clone()), options()).await.unwrap();
        let mut info = region_info();
        (info.start_key, info.end_key) = ("c".into(), "g".into());
        let services = crate::common::world::services(&env, Arc::new(memory), opened.log.clone(), options());
        let entries = Box::new(engine::replay::NoEntries);
        let opening = engine::Opening { info, table: Arc::new(table()), entries };
        let region = Region::open(services, opening).await.unwrap();
        for (row, inside) in [("b", false), ("c", true), ("fz", true), ("g", false)] {
            let (written, get) = (one(&region, put(row, "v")).await, get(row));
            let read = region.get(&get).await;
            assert_eq!(written.is_ok(), inside, "{row}");
            assert_eq!(read.is_ok(), inside, "{row}");
            assert!(inside || matches!(written, Err(Error::WrongRegion { .. })));
        }
        assert_eq!(values(&region).await, "c=v fz=v");
    });
}

fn get(row: &str) -> Get {
    Get {
        row: Bytes::copy_from_slice(row.as_bytes()),
        selection: CellSelection::default().into(),
        existence_only: false,
    }
}

#[test]
fn a_read_only_table_is_read_only() {
    run(async {
        let (env, memory) = (base::testing::env(7), MemoryFs::new());
        let mut table = table();
        table.attributes.insert("READONLY".into(), "true".into());
        let opened = open_table(&env, Arc::new(memory), options(), &table).await.unwrap();
        assert!(matches!(one(&opened.region, put("a", "1")).await, Err(Error::ReadOnly { .. })));
        assert_eq!(values(&opened.region).await, "");
    });
}

/// A wall clock that the test sets. Everything else is tokio's clock.
struct SettableClock {
    wall_ms: AtomicU64,
    inner: Arc<dyn Clock>,
}

impl Clock for SettableClock {
    fn now_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::Relaxed)
    }
    fn monotonic(&self) -> Duration {
        self.inner.monotonic()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.inner.sleep(duration)
    }
}

#[test]
fn the_servers_timestamps_never_go_back() {
    run(async {
        let mut env = base::testing::env(7);
        let clock = Arc::new(SettableClock { wall_ms: AtomicU64::new(5000), inner: env.clock.clone() });
        env.clock = clock.clone();
        let opened = open(&env, Arc::new(MemoryFs::new()), options()).await.unwrap();
        one(&opened.region, put("a", "early")).await.unwrap();
        clock.wall_ms.store(3000, Ordering::Relaxed);
        one(&opened.region, put("a", "late")).await.unwrap();
        let shown = scan(&opened.region).await.unwrap();
        assert_eq!((shown[0].3, &shown[0].4[..]), (5000, &b"late"[..]));
    });
}

#[test]
fn a_marker_of_the_newest_version_finds_it_in_memory_and_in_files() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        let region = &opened.region;
        for timestamp in 1..=3 {
            one(region, put_at("a", "g", "q", timestamp, &timestamp.to_string())).await.unwrap();
            region.flush().await.unwrap();
        }
        one(region, delete_newest("a", 2)).await.unwrap();
        assert_eq!(values(region).await, "a=1");
        one(region, delete_newest("a", 1)).await.unwrap();
        assert_eq!(values(region).await, "");
        // Nothing is left to delete: the marker gets the server's clock and hides nothing that is
        // written later.
        one(region, delete_newest("a", 1)).await.unwrap();
        one(region, put_at("a", "g", "q", 9, "9")).await.unwrap();
        assert_eq!(values(region).await, "a=9");
        let raw = Scan { raw: true, ..Scan::default() };
        let markers = region.scan_all(&raw).await.unwrap();
        let newest = markers.cells.iter().map(|(cell, _)| cell.view(0).timestamp()).max().unwrap();
        assert!(newest <= env.clock.now_ms() as i64);
    });
}

#[test]
fn unlogged_writes_are_lost_by_a_crash_and_kept_by_a_flush() {
    run(async {
        let (opened, memory, env) = fresh(options()).await;
        let unlogged = |row| Mutation { durability: Durability::SkipWal, ..put(row, "u") };
        let results = opened.region.batch(vec![unlogged("a"), put("b", "l")]).await;
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(values(&opened.region).await, "a=u b=l");
        let crashed = memory.crash(&mut || 0);
        let reopened = open(&env, Arc::new(crashed), options()).await.unwrap();
        assert_eq!(values(&reopened.region).await, "b=l");
        opened.region.flush().await.unwrap();
        let reopened = open(&env, Arc::new(memory.crash(&mut || 0)), options()).await.unwrap();
        assert_eq!(values(&reopened.region).await, "a=u b=l");
    });
}

#[test]
fn a_region_with_edits_that_skip_the_log_is_not_abandoned_before_they_are_flushed() {
    run(async {
        let (env, memory) = (base::testing::env(7), MemoryFs::new());
        let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        let opened = open(&env, Arc::new(faulty.clone()), options()).await.unwrap();
        let region = &opened.region;
        one(region, put("a", "l")).await.unwrap();
        assert!(!region.has_unlogged());
        one(region, Mutation { durability: Durability::SkipWal, ..put("b", "u") }).await.unwrap();
        assert!(region.has_unlogged() && !region.abandon_if_logged());
        region.flush_families(&[Bytes::from_static(b"g")]).await.unwrap();
        assert!(region.has_unlogged(), "another family was flushed");
        faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default"));
        region.flush().await.unwrap_err();
        assert!(region.has_unlogged(), "the flush has failed");
        faulty.heal();
        one(region, Mutation { durability: Durability::SkipWal, ..put("c", "u") }).await.unwrap();
        region.flush().await.unwrap();
        assert!(!region.has_unlogged());
        one(region, put("d", "l")).await.unwrap();
        assert!(region.abandon_if_logged());
        assert_eq!(region.state(), RegionState::Closed);
    });
}

/// Of two equal cells in a write the later one wins, whether or not it is logged.
#[test]
fn the_later_of_two_equal_cells_of_a_write_wins_logged_or_not() {
    run(async {
        let unlogged = |mutation| Mutation { durability: Durability::SkipWal, ..mutation };
        for later_is_logged in [false, true] {
            let (opened, memory, env) = fresh(options()).await;
            let (first, later) = (put_at("a", "f", "q", 5, "first"), put_at("a", "f", "q", 5, "later"));
            let (first, later) =
                if later_is_logged { (unlogged(first), later) } else { (first, unlogged(later)) };
            opened.region.batch_atomic(vec![first, later]).await.unwrap();
            assert_eq!(values(&opened.region).await, "a=later");
            let crashed = memory.crash(&mut || 0);
            let reopened = open(&env, Arc::new(crashed), options()).await.unwrap();
            let logged = if later_is_logged { "a=later" } else { "a=first" };
            assert_eq!(values(&reopened.region).await, logged);
        }
    });
}

#[test]
fn a_full_memstore_rejects_writes_until_it_is_flushed() {
    run(async {
        let options = RegionOptions { flush_bytes: 32 << 10, block_multiplier: 2, ..options() };
        let (opened, ..) = fresh(options).await;
        let region = &opened.region;
        let mut rows = 0;
        let refused = loop {
            match one(region, put(&format!("r{rows:04}"), &"v".repeat(1000))).await {
                Ok(()) => rows += 1,
                Err(error) => break error,
            }
            assert!(rows < 10_000, "the memstore has no limit");
        };
        assert!(matches!(refused, Error::TooBusy { .. }), "{refused}");
        assert!(region.metrics().memstore_bytes > 64 << 10);
        region.flush().await.unwrap();
        assert_eq!(region.metrics().memstore_data_bytes, 0);
        one(region, put("z", "v")).await.unwrap();
        assert_eq!(scan(region).await.unwrap().len(), rows + 1);
    });
}

#[test]
fn a_closed_region_has_an_empty_memstore_and_serves_nothing() {
    run(async {
        let (opened, memory, env) = fresh(options()).await;
        one(&opened.region, put("a", "1")).await.unwrap();
        opened.region.close().await.unwrap();
        opened.region.close().await.unwrap();
        assert_eq!(opened.region.state(), RegionState::Closed);
        assert!(matches!(one(&opened.region, put("a", "2")).await, Err(Error::NotServing { .. })));
        assert!(matches!(opened.region.get(&get("a")).await, Err(Error::NotServing { .. })));
        let last = opened.region.mvcc().write_point();
        let edits = format!("data/default/t/{}/recovered.edits", region_info().encoded_name());
        assert_eq!(names(&memory, &edits).await, [format!("{last}.seqid")]);
        let reopened = open(&env, Arc::new(memory), options()).await.unwrap();
        assert_eq!(reopened.region.open_seq_id(), last + 1);
        assert_eq!(reopened.region.metrics().memstore_data_bytes, 0);
        assert_eq!(values(&reopened.region).await, "a=1");
    });
}

#[test]
fn a_scan_that_lost_its_scanner_resumes_at_its_read_point_while_all_cells_are_retained() {
    run(async {
        let (opened, memory, env) = fresh(options()).await;
        one(&opened.region, put("a", "old")).await.unwrap();
        let scanner = opened.region.scanner(&Scan::default()).unwrap();
        let lost = Scan { read_point: Some(scanner.read_point()), ..Scan::default() };
        one(&opened.region, put("a", "new")).await.unwrap();
        opened.region.close().await.unwrap();
        drop(scanner);
        // Reopened, as after a move: the flush at the close kept the version that the scanner saw.
        let reopened = open(&env, Arc::new(memory), options()).await.unwrap();
        assert_eq!(resumed_values(&reopened.region, &lost).await, "old");
        assert_eq!(values(&reopened.region).await, "a=new");
        // No reader uses that read point any more, so the old version is dropped.
        reopened.region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(resumed_values(&reopened.region, &lost).await, "new");
    });
}

/// The values that a resumed scan returns.
async fn resumed_values(region: &Region, scan: &Scan) -> String {
    let mut scanner = region.resumed_scanner(scan).unwrap();
    let mut list = CellList::default();
    drive(&mut scanner, &mut Limits::default(), &mut list).await.unwrap();
    list.cells.iter().map(|(cell, _)| cell.view(0).value.escape_ascii().to_string()).collect()
}

#[test]
fn a_new_region_begins_with_hbases_sequence_id() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        assert_eq!(opened.region.open_seq_id(), 2);
        assert_eq!(opened.region.flush().await.unwrap(), Flushed::Nothing);
    });
}

async fn open_with_faults() -> (Opened, Faulty, MemoryFs, Env) {
    let (env, memory) = (base::testing::env(7), MemoryFs::new());
    let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
    let opened = open(&env, Arc::new(faulty.clone()), options()).await.unwrap();
    (opened, faulty, memory, env)
}

/// Writes that arrive while a closing region flushes are flushed too, before writes are refused.
#[test]
fn a_closing_region_accepts_writes_until_little_is_left_to_flush() {
    run(async {
        let (opened, faulty, _, env) = open_with_faults().await;
        let region = &opened.region;
        let megabytes = |count: usize| "v".repeat(count << 20);
        for row in ["a1", "a2"] {
            one(region, put(row, &megabytes(7))).await.unwrap();
        }
        let second = Duration::from_secs(1);
        let scratch = format!("data/default/t/{}/.tmp/f", region_info().encoded_name());
        faulty.add(Rule::new(Fault::Delay(second)).on(Operation::Create).at(&scratch));
        let writing = async {
            env.clock.sleep(second / 2).await;
            one(region, put("b", &megabytes(6))).await.expect("during the first flush");
            env.clock.sleep(second).await;
            one(region, put("c", "3")).await.expect("during the second");
            env.clock.sleep(second).await;
            one(region, put("d", "4")).await.expect_err("little was left to flush, and the region closes");
        };
        let (closed, ()) = tokio::join!(region.close(), writing);
        closed.unwrap();
        assert_eq!((region.metrics().flushes, region.metrics().memstore_data_bytes), (3, 0));
    });
}

#[test]
fn a_failed_flush_keeps_its_snapshots_and_the_next_one_writes_them() {
    run(async {
        for operation in
            [Operation::Create, Operation::Append, Operation::Sync, Operation::Rename, Operation::SyncDir]
        {
            let (opened, faulty, memory, _) = open_with_faults().await;
            let batch = vec![put("a", "1"), put_at("a", "g", "q", 1, "2")];
            assert!(opened.region.batch(batch).await.iter().all(Result::is_ok));
            faulty.add(Rule::new(Fault::Fail).on(operation).at("data/default"));
            opened.region.flush().await.expect_err("all flushes fail");
            assert_eq!(values(&opened.region).await, "a=1 a=2", "{operation:?}");
            one(&opened.region, put("b", "3")).await.unwrap();
            faulty.heal();
            assert!(matches!(opened.region.flush().await.unwrap(), Flushed::Files { .. }));
            assert_eq!(opened.region.metrics().memstore_data_bytes, 0);
            assert_eq!(values(&opened.region).await, "a=1 a=2 b=3", "{operation:?}");
            assert_eq!(unfinished_files(&memory, "f").await, [""; 0], "{operation:?}");
        }
    });
}

#[test]
fn a_region_survives_a_full_disk() {
    run(async {
        let (opened, faulty, ..) = open_with_faults().await;
        one(&opened.region, put("a", &"v".repeat(5000))).await.unwrap();
        faulty.set_space(Some(2000));
        assert!(matches!(opened.region.flush().await, Err(Error::Fs(fs::Error::NoSpace { .. }))));
        faulty.set_space(None);
        opened.region.flush().await.unwrap();
        assert_eq!(scan(&opened.region).await.unwrap().len(), 1);
    });
}

#[test]
fn a_log_that_fails_twice_ends_the_region() {
    run(async {
        let (opened, faulty, memory, env) = open_with_faults().await;
        one(&opened.region, put("a", "1")).await.unwrap();
        faulty.add(Rule::new(Fault::Fail).on(Operation::Sync).at("WALs"));
        let results = opened.region.batch(vec![put("b", "2"), put("c", "3")]).await;
        assert!(results.iter().all(|result| matches!(result, Err(Error::Log { .. }))), "{results:?}");
        assert!(opened.dead.load(Ordering::Acquire), "the server is notified");
        // The failed writes are in the memstore, so nothing may be read, written, or flushed any
        // more.
        assert!(matches!(opened.region.get(&get("b")).await, Err(Error::Log { .. })));
        assert!(matches!(one(&opened.region, put("d", "4")).await, Err(Error::Log { .. })));
        opened.region.flush().await.expect_err("a flush would make refused writes durable");
        let reopened = open(&env, Arc::new(memory.crash(&mut || 0)), options()).await.unwrap();
        assert_eq!(values(&reopened.region).await, "a=1");
    });
}

#[test]
fn a_log_that_fails_once_loses_nothing() {
    run(async {
        let (opened, faulty, memory, env) = open_with_faults().await;
        faulty.add(Rule::new(Fault::Fail).on(Operation::Sync).at("WALs").times(1));
        one(&opened.region, put("a", "1")).await.unwrap();
        one(&opened.region, put("b", "2")).await.unwrap();
        let reopened = open(&env, Arc::new(memory.crash(&mut || 0)), options()).await.unwrap();
        assert_eq!(values(&reopened.region).await, "a=1 b=2");
    });
}

#[test]
fn compacted_files_are_archived_when_no_scanner_holds_them() {
    run(async {
        let (opened, memory, _) = fresh(options()).await;
        let region = &opened.region;
        for row in ["a", "b"] {
            one(region, put(row, "1")).await.unwrap();
            region.flush().await.unwrap();
        }
        let inputs = names(&memory, &store_dir("f")).await;
        let scanner = region.scanner(&Scan::default()).unwrap();
        assert_eq!(region.compact(Some(b"f"), CompactionKind::Minor).await.unwrap(), 2);
        let archive = format!("archive/{}", store_dir("f"));
        assert_eq!(names(&memory, &archive).await, [""; 0], "a scanner reads the inputs");
        assert_eq!(names(&memory, &store_dir("f")).await.len(), 3);
        drop(scanner);
        region.archive_retired().await;
        assert_eq!(names(&memory, &archive).await, inputs);
        assert_eq!(names(&memory, &store_dir("f")).await.len(), 1);
        assert_eq!(values(region).await, "a=1 b=1");
    });
}

/// When it wakes, it continues at its own read point, with the current view of the region.
#[test]
fn a_scanner_at_rest_holds_neither_files_nor_memstores() {
    run(async {
        let (opened, memory, _) = fresh(options()).await;
        let region = &opened.region;
        for row in ["a", "b", "c"] {
            one(region, put(row, "1")).await.unwrap();
            region.flush().await.unwrap();
        }
        one(region, put("d", "1")).await.unwrap();
        let inputs = names(&memory, &store_dir("f")).await;
        let mut scanner = region.scanner(&Scan::default()).unwrap();
        let mut list = CellList::default();
        drive(&mut scanner, &mut Limits { rows: 1, ..Limits::default() }, &mut list).await.unwrap();
        assert!(!region.should_rest(&scanner));
        for row in ["b", "d", "e"] {
            one(region, put(row, "2")).await.unwrap();
        }
        one(region, Mutation::delete("c", vec![])).await.unwrap();
        region.flush().await.unwrap();
        assert!(region.should_rest(&scanner));
        drop(scanner.rest());
        assert!(!region.should_rest(&scanner), "it holds nothing");
        region.compact(None, CompactionKind::Major).await.unwrap();
        let archived = names(&memory, &format!("archive/{}", store_dir("f"))).await;
        assert!(inputs.iter().all(|input| archived.contains(input)), "{archived:?}");
        region.wake(&mut scanner);
        drive(&mut scanner, &mut Limits::default(), &mut list).await.unwrap();
        let shown = |(cell, _): &(KeyValue, u64)| {
            format!("{}={}", cell.view(0).row().escape_ascii(), cell.view(0).value.escape_ascii())
        };
        assert_eq!(list.cells.iter().map(shown).collect::<Vec<_>>().join(" "), "a=1 b=1 c=1 d=1");
    });
}

/// The marker was dropped with the put it hid. A crash before the inputs are archived must not
/// bring back the put alone.
#[test]
fn files_that_another_one_replaces_are_dropped_at_open() {
    run(async {
        let (opened, memory, env) = fresh(options()).await;
        let region = &opened.region;
        one(region, put_at("a", "f", "q", 1, "1")).await.unwrap();
        region.flush().await.unwrap();
        one(region, Mutation::delete("a", vec![])).await.unwrap();
        region.flush().await.unwrap();
        let scanner = region.scanner(&Scan::default()).unwrap();
        region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(names(&memory, &store_dir("f")).await.len(), 3, "the inputs and an output without cells");
        let reopened = open(&env, Arc::new(memory.crash(&mut || 0)), options()).await.unwrap();
        assert_eq!(values(&reopened.region).await, "");
        assert_eq!(reopened.region.metrics().stores[0].files, 1);
        drop(scanner);
    });
}

/// A file that could not be archived when the region opened stays replaced, although the file that
/// lists it is compacted away.
#[test]
fn replaced_files_that_an_open_cannot_archive_stay_replaced() {
    run(async {
        let (opened, memory, env) = fresh(options()).await;
        let region = &opened.region;
        one(region, put_at("a", "f", "q", 1, "1")).await.unwrap();
        region.flush().await.unwrap();
        one(region, Mutation::delete("a", vec![])).await.unwrap();
        region.flush().await.unwrap();
        let scanner = region.scanner(&Scan::default()).unwrap();
        region.compact(None, CompactionKind::Major).await.unwrap();
        let crashed = memory.crash(&mut || 0);
        drop(scanner);
        let faulty = Faulty::new(Arc::new(crashed.clone()), Plan::new(env.clock.clone()));
        // Files stay in the store until the next open.
        faulty.add(Rule::new(Fault::Fail).on(Operation::Rename).at(&store_dir("f")));
        let opened = open(&env, Arc::new(faulty.clone()), options()).await.unwrap();
        for row in ["b", "c"] {
            one(&opened.region, put(row, "1")).await.unwrap();
            opened.region.flush().await.unwrap();
        }
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        opened.region.close().await.unwrap();
        let reopened = open(&env, Arc::new(crashed), options()).await.unwrap();
        assert_eq!(values(&reopened.region).await, "b=1 c=1");
    });
}

/// A table is dropped, and a snapshot cloned under its name: its regions have the same names, and
/// smaller sequence ids. A flush of the old region was late.
#[test]
fn a_flush_of_a_closed_region_hides_no_edit_of_a_later_region_of_its_name() {
    run(async {
        let (opened, memory, env) = fresh(options()).await;
        for row in ["a", "b", "c", "d"] {
            one(&opened.region, put(row, "1")).await.unwrap();
        }
        opened.region.close().await.unwrap();
        opened.region.flush().await.unwrap();
        memory.delete(&FilePath::new("data/default/t")).await.unwrap();
        let root = layout::RootDir::new(FilePath::root());
        root.write_region_info(&memory, &region_info()).await.unwrap();
        let fs: Arc<dyn FileSystem> = Arc::new(memory.clone());
        let services = crate::common::world::services(&env, fs, opened.log.clone(), options());
        let (table, entries) = (Arc::new(table()), Box::new(engine::replay::NoEntries));
        let opening = engine::Opening { info: region_info(), table, entries };
        let later = Region::open(services, opening).await.unwrap();
        one(&later, put("e", "1")).await.unwrap();
        assert!(later.mvcc().write_point() < opened.region.mvcc().write_point());
        let written = opened.log.open_file().unwrap();
        opened.log.roll().await.unwrap();
        env.clock.sleep(Duration::from_secs(1)).await;
        assert!(memory.stat(&written).await.unwrap().is_some(), "the log has an edit that is not in a file");
    });
}

/// A compaction failed after its output was moved into the store, and the output could not be
/// deleted. A later compaction of one of the inputs replaces the output, but not the other input.
#[test]
fn the_output_of_a_failed_compaction_replaces_nothing() {
    run(async {
        let (env, memory) = (base::testing::env(7), MemoryFs::new());
        let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        // A minor compaction takes only small files.
        let mut small = options();
        small.compaction.settings.bytes_max = 10 << 10;
        let opened = open(&env, Arc::new(faulty.clone()), small).await.unwrap();
        for (row, value) in [("a", "large".repeat(10_000)), ("b", "1".into())] {
            one(&opened.region, put(row, &value)).await.unwrap();
            opened.region.flush().await.unwrap();
        }
        let scratch = format!("data/default/t/{}/.tmp/f", region_info().encoded_name());
        faulty.add(Rule::new(Fault::FailAfter).on(Operation::Rename).at(&scratch).times(1));
        faulty.add(Rule::new(Fault::Fail).on(Operation::Delete).at(&store_dir("f")));
        assert!(opened.region.compact(Some(b"f"), CompactionKind::Major).await.is_err());
        assert_eq!(names(&memory, &store_dir("f")).await.len(), 3, "the output is still in the store");
        one(&opened.region, put("c", "1")).await.unwrap();
        opened.region.flush().await.unwrap();
        assert_eq!(opened.region.compact(Some(b"f"), CompactionKind::Minor).await.unwrap(), 2);
        opened.region.close().await.unwrap();
        let reopened = open(&env, Arc::new(memory.clone()), options()).await.unwrap();
        let rows: Vec<_> = scan(&reopened.region).await.unwrap().into_iter().map(|shown| shown.0).collect();
        assert_eq!(rows, [b"a", b"b", b"c"]);
    });
}

#[test]
fn the_deletion_of_a_failed_output_is_retried() {
    run(async {
        let (opened, faulty, memory, _) = open_with_faults().await;
        let region = &opened.region;
        one(region, put("a", "1")).await.unwrap();
        let scratch = format!("data/default/t/{}/.tmp/f", region_info().encoded_name());
        faulty.add(Rule::new(Fault::FailAfter).on(Operation::Rename).at(&scratch).times(1));
        faulty.add(Rule::new(Fault::Fail).on(Operation::Delete).at(&store_dir("f")));
        region.flush().await.unwrap();
        assert_eq!(names(&memory, &store_dir("f")).await.len(), 2, "the output of the first attempt stayed");
        faulty.heal();
        region.archive_retired().await;
        assert_eq!(names(&memory, &store_dir("f")).await.len(), 1);
        assert_eq!(values(region).await, "a=1");
    });
}

#[test]
fn a_flush_ends_although_its_caller_has_gone() {
    run(async {
        let (opened, faulty, _, env) = open_with_faults().await;
        one(&opened.region, put("a", "1")).await.unwrap();
        faulty.add(Rule::new(Fault::Delay(Duration::from_secs(5))).on(Operation::Rename));
        assert!(env.timeout(Duration::from_secs(1), opened.region.flush()).await.is_none());
        env.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(opened.region.metrics().stores[0].files, 1, "no file is outside of the view");
        assert_eq!(opened.region.metrics().memstore_data_bytes, 0);
    });
}

#[test]
fn recovered_edits_of_a_split_log_are_replayed_flushed_and_removed() {
    run(async {
        let (opened, memory, env) = fresh(options()).await;
        one(&opened.region, put("a", "1")).await.unwrap();
        opened.region.abandon();
        opened.log.close().await;
        // A log split leaves a log with this region's edits. Only its path differs.
        let logs = wal::recovery::logs_in(&memory, &FilePath::new("WALs/host,16020,1")).await.unwrap();
        let bytes = memory.contents(&logs[0]).unwrap();
        memory.delete(&logs[0]).await.unwrap();
        let seq_id = opened.region.mvcc().read_point();
        let edits = format!("data/default/t/{}/recovered.edits", region_info().encoded_name());
        memory.put(&FilePath::new(&format!("{edits}/{seq_id:019}")), bytes);
        let reopened = open(&env, Arc::new(memory.clone()), options()).await.unwrap();
        assert_eq!(values(&reopened.region).await, "a=1");
        assert_eq!(reopened.region.metrics().memstore_data_bytes, 0);
        let open_seq_id = reopened.region.open_seq_id();
        assert_eq!(names(&memory, &edits).await, [format!("{}.seqid", open_seq_id - 1)]);
        assert!(open_seq_id > seq_id);
    });
}

#[test]
fn tags_come_back_from_files() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let tags = [0, 9, 8, 0, 0, 0, 0, 0x7f, 0, 0, 0];
        let cell = KeyValue::with_tags(b"a", b"f", b"q", LATEST_TIMESTAMP, CellType::Put, b"v", &tags);
        one(&opened.region, Mutation::put("a", vec![cell])).await.unwrap();
        for _ in 0..2 {
            let list = opened.region.get(&get("a")).await.unwrap();
            assert_eq!(list.cells[0].0.view(0).tags, tags);
            opened.region.flush().await.unwrap();
        }
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(opened.region.get(&get("a")).await.unwrap().cells[0].0.view(0).tags, tags);
    });
}

#[test]
fn requests_are_executed_by_the_chores() {
    run(async {
        let (env, memory) = (base::testing::env(7), MemoryFs::new());
        let first = open(&env, Arc::new(memory.clone()), options()).await.unwrap();
        let options = RegionOptions { flush_bytes: 16 << 10, ..options() };
        let mut services = crate::common::world::services(&env, Arc::new(memory), first.log.clone(), options);
        services.maintenance = Arc::new(engine::chores::Chores::new(env.clone()));
        let mut info = region_info();
        info.region_id += 1;
        let entries = Box::new(engine::replay::NoEntries);
        let opening = engine::Opening { info, table: Arc::new(table()), entries };
        let region = Region::open(services, opening).await.unwrap();
        for row in 0..200 {
            one(&region, put(&format!("r{row:03}"), &"v".repeat(1000))).await.unwrap();
            env.clock.sleep(Duration::from_millis(1)).await;
        }
        env.clock.sleep(Duration::from_secs(1)).await;
        let metrics = region.metrics();
        assert!(metrics.flushes > 5 && metrics.compactions > 1, "{metrics:?}");
        assert!(metrics.stores[0].files < 4, "{metrics:?}");
        assert_eq!(scan(&region).await.unwrap().len(), 200);
    });
}

/// Rows are written and read atomically, while other threads flush and compact.
#[test]
fn readers_never_see_a_partial_write() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let main = runtime();
    let opened = main.block_on(async { fresh(options()).await.0 });
    let (region, busy) = (&opened.region, &AtomicUsize::new(4));
    // Writes continue until there were enough flushes.
    let left = |busy: &AtomicUsize| busy.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            scope.spawn(move || {
                runtime().block_on(async {
                    let mut round = 0;
                    while round < 500 || region.metrics().flushes < 20 {
                        one(region, whole_row(&format!("{writer}-{round}"))).await.unwrap();
                        round += 1;
                    }
                });
                busy.fetch_sub(1, Ordering::Relaxed);
            });
        }
        for _ in 0..2 {
            scope.spawn(move || {
                runtime().block_on(async {
                    while left(busy) > 2 {
                        check_whole(&region.get(&get("row")).await.unwrap());
                    }
                });
                busy.fetch_sub(1, Ordering::Relaxed);
            });
        }
        // This thread's runtime also runs the log, so it continues until all threads are done.
        main.block_on(async {
            while left(busy) > 0 {
                region.flush().await.unwrap();
                region.compact(None, CompactionKind::Minor).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
    });
}

fn whole_row(value: &str) -> Mutation {
    let cell = |family: &[u8], qualifier: &[u8]| {
        KeyValue::new(b"row", family, qualifier, LATEST_TIMESTAMP, CellType::Put, value.as_bytes())
    };
    Mutation::put("row", vec![cell(b"f", b"a"), cell(b"f", b"b"), cell(b"g", b"a"), cell(b"g", b"b")])
}

fn check_whole(list: &CellList) {
    let values: Vec<&[u8]> = list.cells.iter().map(|(cell, _)| cell.view(0).value).collect();
    assert!(values.is_empty() || values.len() == 4, "a torn row: {:?}", list.cells);
    assert!(values.iter().all(|value| *value == values[0]), "a torn row: {:?}", list.cells);
}

/// Measures how long it takes to open a region with a million unflushed rows. Runs only when
/// requested.
#[test]
#[ignore = "a measurement"]
fn a_long_replay() {
    let dir = std::env::temp_dir().join(format!("engine-replay-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let env = base::testing::env(7);
        let pool = Arc::new(base::pool::Pool::new("files", 2));
        let fs: Arc<dyn FileSystem> = Arc::new(fs::local::LocalFs::new(&dir, pool).unwrap());
        let large = RegionOptions { flush_bytes: 4 << 30, ..options() };
        let opened = open(&env, fs.clone(), large.clone()).await.unwrap();
        let started = env.clock.monotonic();
        for batch in 0..1000 {
            let rows = (0..1000).map(|row| put(&format!("row{:08}", batch * 1000 + row), &"v".repeat(100)));
            assert!(opened.region.batch(rows.collect()).await.iter().all(Result::is_ok));
        }
        println!("written in {:?}", env.clock.monotonic() - started);
        opened.region.abandon();
        let started = env.clock.monotonic();
        let reopened = open(&env, fs, large).await.unwrap();
        let bytes = reopened.region.metrics().memstore_data_bytes;
        println!("{bytes} bytes opened in {:?}", env.clock.monotonic() - started);
    });
    std::fs::remove_dir_all(dir).unwrap();
}

/// A sink that reports that it is full after a number of bytes.
struct FullSink {
    list: CellList,
    memory: usize,
}

impl engine::scanner::ResultSink for FullSink {
    fn begin_result(&mut self, continues_row: bool) {
        self.list.begin_result(continues_row);
    }
    fn cell(&mut self, cell: &cell::Cell<'_>) {
        self.list.cell(cell);
    }
    fn end_result(&mut self, end: engine::scanner::ResultEnd) {
        self.list.end_result(end);
    }
    fn rollback_row(&mut self) {
        self.list.rollback_row();
    }
    fn bytes(&self) -> usize {
        self.list.bytes()
    }
    fn memory(&mut self) -> engine::scanner::SinkMemory {
        match self.list.bytes() < self.memory {
            true => engine::scanner::SinkMemory::Enough,
            false => engine::scanner::SinkMemory::Full,
        }
    }
}

async fn wide_row(options: RegionOptions) -> Opened {
    let (opened, ..) = fresh(options).await;
    for column in 0..40 {
        let cell = put_at("wide", "f", &format!("{column:02}"), 1, &"v".repeat(10_000));
        one(&opened.region, cell).await.unwrap();
    }
    opened
}

#[test]
fn a_row_that_is_too_big_is_not_read_in_one_piece() {
    run(async {
        let opened = wide_row(RegionOptions { row_bytes_max: 100_000, ..options() }).await;
        let get = Get { row: "wide".into(), selection: Default::default(), existence_only: false };
        let refused = opened.region.get(&get).await.map(|_| ()).unwrap_err();
        assert!(matches!(&refused, Error::RowTooBig { what } if what.contains("100000")), "{refused}");
        // In several parts it can be read completely.
        let mut scanner = opened.region.scanner(&Scan::default()).unwrap();
        let mut list = CellList::default();
        loop {
            let mut limits = engine::scanner::Limits {
                bytes: 50_000,
                partials: true,
                ..engine::scanner::Limits::default()
            };
            let progress = engine::scanner::drive(&mut scanner, &mut limits, &mut list).await.unwrap();
            if progress.stopped == engine::scanner::Stopped::Exhausted {
                break;
            }
        }
        assert_eq!(list.cells.len(), 40);
    });
}

#[test]
fn a_scan_ends_early_when_its_sink_is_out_of_memory_and_fails_if_it_cannot() {
    run(async {
        let opened = wide_row(options()).await;
        let scan = Scan::default();
        for partials in [true, false] {
            let mut scanner = opened.region.scanner(&scan).unwrap();
            let mut sink = FullSink { list: CellList::default(), memory: 100_000 };
            let mut limits = engine::scanner::Limits { partials, ..engine::scanner::Limits::default() };
            let outcome = engine::scanner::drive(&mut scanner, &mut limits, &mut sink).await;
            match outcome {
                Ok(progress) if partials => {
                    assert_eq!(progress.stopped, engine::scanner::Stopped::Bytes);
                    assert!((10..20).contains(&sink.list.cells.len()), "{}", sink.list.cells.len());
                }
                Err(Error::OutOfMemory { bytes }) if !partials => assert!(bytes < 200_000, "{bytes}"),
                other => panic!("partials {partials}: {other:?}"),
            }
        }
    });
}

#[test]
fn a_batch_reader_returns_each_row_in_any_order() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let rows = ["a", "b", "c", "d"];
        for row in rows {
            one(&opened.region, put(row, row)).await.unwrap();
        }
        opened.region.flush().await.unwrap();
        // From here on all blocks are cached.
        values(&opened.region).await;
        let alike = |first: &'static str, others: usize| {
            let mut gets = MultiGet::new(get(first), "abcd".into());
            (0..others).for_each(|at| gets.push(at..at + 1));
            gets
        };
        let gets = alike("d", 4);
        for order in [&[0, 1, 2, 3, 4][..], &[1, 3, 4], &[4, 2, 2], &[3, 0, 1]] {
            let mut reader = opened.region.batch_reader(&gets);
            for &at in order {
                let mut list = CellList::default();
                assert!(reader.try_read(at, &mut list).unwrap(), "{order:?}");
                assert_eq!(list.cells[0].0.view(0).row(), gets.row(at), "{order:?}");
                reader.rows().read(&gets.get(at), &mut list).await.unwrap();
                assert_eq!(list.cells[0], list.cells[1]);
            }
        }
        // More Gets than the prefetcher has slots.
        let mut many = alike("b", 0);
        (0..1000).for_each(|at| many.push(at % 4..at % 4 + 1));
        let mut reader = opened.region.batch_reader(&many);
        for at in 0..many.len() {
            let mut list = CellList::default();
            assert!(reader.try_read(at, &mut list).unwrap(), "{at}");
            assert_eq!(list.cells[0].0.view(0).row(), many.row(at), "{at}");
        }
        let no_row = alike("", 1);
        let mut reader = opened.region.batch_reader(&no_row);
        let mut list = CellList::default();
        assert!(reader.try_read(0, &mut list).is_err(), "an empty row");
        assert!(reader.rows().read(&get(""), &mut list).await.is_err() && list.cells.is_empty());
        assert!(reader.try_read(1, &mut list).unwrap() && list.cells.len() == 1);
    });
}
