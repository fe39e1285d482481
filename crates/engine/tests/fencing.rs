//! A server that was frozen, together with its clocks, while it used a region. Another server opens
//! the region meanwhile, deletes all rows, and drops their cells and delete markers. Whatever the
//! first server does when it continues, no row comes back.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::region::{BulkFile, BulkLoad, BulkSource, CompactionKind, RegionOptions};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::shared::Shared;
use fs::{FilePath, FileSystem};

use crate::common::world::{Opened, names, open, options, region_info, run, scan, store_dir};

const ROWS: [&str; 3] = ["a", "b", "c"];
/// How long the first server is frozen.
const FROZEN: Duration = Duration::from_secs(10);
/// The other server is done before the first one continues.
const LATER: Duration = Duration::from_secs(1);

/// A disk, and what the first server sees of it.
struct Disk {
    env: Env,
    memory: MemoryFs,
    faulty: Faulty,
}

impl Disk {
    fn new() -> Disk {
        let (env, memory) = (base::testing::env(7), MemoryFs::new());
        let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        Disk { env, memory, faulty }
    }

    /// Opens the region on the first server.
    async fn open_first(&self, options: RegionOptions) -> Result<Opened, String> {
        open(&self.env, Arc::new(Shared::new(Arc::new(self.faulty.clone()))), options).await
    }

    async fn open_elsewhere(&self) -> Opened {
        let memory: Arc<dyn FileSystem> = Arc::new(self.memory.clone());
        open(&self.env, Arc::new(Shared::new(memory)), options()).await.unwrap()
    }

    /// Freezes the first server before its call of the file system after the first `calls` ones in
    /// the directory of the region.
    fn freeze_after(&self, calls: u64) {
        let dir = format!("data/default/t/{}", region_info().encoded_name());
        self.faulty.add(Rule::new(Fault::Delay(FROZEN)).at(&dir).after(calls).times(1));
    }

    /// Opens the region on the other server while server `number` is frozen. The new name of the
    /// directory of logs is one that [`open`] replays.
    async fn take_over(&self, number: u64) -> Opened {
        self.env.clock.sleep(LATER).await;
        let dir = |number: u64| FilePath::new(&format!("WALs/host,16020,{number}"));
        // A server that was frozen before it had a log opens the region after this one.
        if self.memory.stat(&dir(number)).await.unwrap().is_some() {
            self.memory.rename(&dir(number), &dir(number + 100)).await.unwrap();
        }
        self.open_elsewhere().await
    }

    /// What the other server does while server `number` is frozen.
    async fn take_over_and_delete(&self, number: u64) {
        let other = self.take_over(number).await;
        for row in ROWS {
            one(&other, Mutation::delete(row, Vec::new())).await;
        }
        other.region.flush().await.unwrap();
        other.region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(scan(&other.region).await.unwrap(), []);
        other.region.close().await.unwrap();
        other.log.close().await;
    }

    /// Checks that the region has no cells when it is opened again.
    async fn check(&self, calls: u64) {
        self.faulty.heal();
        let again = self.open_elsewhere().await;
        assert_eq!(scan(&again.region).await.unwrap(), [], "frozen after {calls} calls");
        again.region.close().await.unwrap();
    }
}

async fn one(opened: &Opened, mutation: Mutation) {
    opened.region.batch(vec![mutation]).await.remove(0).unwrap();
}

fn put(row: &'static str) -> Mutation {
    let cell = |family: &[u8]| {
        KeyValue::new(row.as_bytes(), family, b"q", LATEST_TIMESTAMP, CellType::Put, row.as_bytes())
    };
    Mutation::put(row, vec![cell(b"f"), cell(b"g")])
}

/// Freezes the first server at each of its calls during `work`, which begins after the rows were
/// written.
async fn freeze_at_every_call(has_files: bool, work: impl AsyncFn(&Opened, &Disk) -> bool) {
    for calls in 0.. {
        let disk = Disk::new();
        let first = disk.open_first(options()).await.unwrap();
        for row in ROWS {
            one(&first, put(row)).await;
            if has_files {
                first.region.flush().await.unwrap();
            }
        }
        disk.freeze_after(calls);
        let (is_done, ()) = tokio::join!(work(&first, &disk), disk.take_over_and_delete(1));
        if disk.faulty.faults() == 0 {
            assert!(is_done && calls > 10, "the work has {calls} calls");
            return;
        }
        disk.check(calls).await;
    }
}

/// The first flush creates the directories for new files.
#[test]
fn a_flush_adds_no_file_after_a_takeover() {
    run(freeze_at_every_call(false, async |first: &Opened, _: &Disk| first.region.flush().await.is_ok()));
}

#[test]
fn a_compaction_adds_no_file_after_a_takeover() {
    run(freeze_at_every_call(true, async |first: &Opened, _: &Disk| {
        first.region.compact(None, CompactionKind::Minor).await.is_ok()
    }));
}

/// A load needs no edit in the log before it moves its files, if memory is empty.
#[test]
fn a_bulk_load_adds_no_file_after_a_takeover() {
    run(freeze_at_every_call(true, async |first: &Opened, disk: &Disk| {
        first.region.compact(None, CompactionKind::Major).await.is_ok()
            && match archived_file(disk).await {
                Some(file) => load(first, file).await,
                None => false,
            }
    }));
}

/// The first server may write the record of its load late, or leave it.
#[test]
fn a_frozen_bulk_load_does_not_block_loads_elsewhere() {
    run(async {
        for calls in 0.. {
            let disk = Disk::new();
            let first = disk.open_first(options()).await.unwrap();
            for row in ROWS {
                one(&first, put(row)).await;
                first.region.flush().await.unwrap();
            }
            first.region.compact(None, CompactionKind::Major).await.unwrap();
            let file = archived_file(&disk).await.unwrap();
            disk.freeze_after(calls);
            let (is_done, other) = tokio::join!(load(&first, file.clone()), disk.take_over(1));
            if disk.faulty.faults() == 0 {
                assert!(is_done && calls > 10, "the load has {calls} calls");
                return;
            }
            assert!(load(&other, file).await, "frozen after {calls} calls");
        }
    });
}

/// A file of the region itself, which has cells of its rows.
async fn archived_file(disk: &Disk) -> Option<FilePath> {
    let dir = FilePath::new(&format!("archive/{}", store_dir("f")));
    names(&disk.memory, dir.as_str()).await.first().map(|name| dir.join(name))
}

/// Loads a copy of a file.
async fn load(opened: &Opened, path: FilePath) -> bool {
    let files = vec![BulkFile { family: Bytes::from_static(b"f"), source: BulkSource::Own(path) }];
    let (cluster_ids, replicate) = (Vec::new(), false);
    let load = BulkLoad { files, assigns_seq_id: true, copies: true, cluster_ids, replicate };
    opened.region.bulk_load(load).await.unwrap_or(false)
}

/// The edits are in the log of an earlier run, and do not fit into the memstores.
#[test]
fn an_opening_adds_no_file_after_a_takeover() {
    run(async {
        for calls in 0.. {
            let disk = Disk::new();
            let earlier = disk.open_first(options()).await.unwrap();
            for row in ROWS {
                one(&earlier, put(row)).await;
            }
            earlier.region.abandon();
            earlier.log.close().await;
            disk.freeze_after(calls);
            let small = RegionOptions { flush_bytes: 1, ..options() };
            let (opened, ()) = tokio::join!(disk.open_first(small), disk.take_over_and_delete(2));
            if disk.faulty.faults() == 0 {
                assert!(opened.is_ok() && calls > 20, "an opening has {calls} calls");
                return;
            }
            disk.check(calls).await;
        }
    });
}

/// A server that still has its log creates the directory for new files again.
#[test]
fn a_missing_directory_for_new_files_is_created_again() {
    run(async {
        let disk = Disk::new();
        let first = disk.open_first(options()).await.unwrap();
        let scratch = format!("data/default/t/{}/.tmp", region_info().encoded_name());
        for (row, files) in [("a", 1), ("b", 2)] {
            one(&first, put(row)).await;
            first.region.flush().await.unwrap();
            assert_eq!(names(&disk.memory, &store_dir("f")).await.len(), files);
            disk.memory.delete(&FilePath::new(&scratch)).await.unwrap();
        }
    });
}

/// A directory needs disk space, and a region must open on a full disk.
#[test]
fn a_region_opens_without_space_for_its_directories() {
    run(async {
        let disk = Disk::new();
        let full = Rule::new(Fault::NoSpace).on(Operation::MakeDirs).at(".tmp/");
        disk.faulty.add(full);
        let first = disk.open_first(options()).await.unwrap();
        one(&first, put("a")).await;
        first.region.flush().await.unwrap_err();
        disk.faulty.heal();
        first.region.flush().await.unwrap();
        assert_eq!(names(&disk.memory, &store_dir("f")).await.len(), 1);
    });
}
