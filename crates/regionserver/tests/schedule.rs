//! The scheduler on a file system that fails: a failed flush is retried without a new request.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::cell::{CellType, KeyValue};
use cell::mutation::Mutation;
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use engine::budget::MemstoreBudget;
use engine::region::{CompactionKind, FlushReason, Maintenance, RegionOptions};
use engine::scanner::BlockLoader;
use engine::{Opening, Region, RegionServices};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use proto::get_region_info_response::CompactionState;
use regionserver::regions::OnlineRegions;
use regionserver::schedule::Schedule;
use regionserver::schedule::compactions::{CompactionOptions, Pool};
use wal::{Log, LogOptions};

/// Longer than any pause between two attempts.
const LONG: Duration = Duration::from_secs(60);

struct World {
    region: Arc<Region>,
    regions: Arc<OnlineRegions>,
    schedule: Arc<Schedule>,
    faulty: Faulty,
    env: Env,
    services: RegionServices,
}

async fn world() -> World {
    let env = base::testing::env(7);
    let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    let fs: Arc<dyn FileSystem> = Arc::new(faulty.clone());
    let root = RootDir::new(FilePath::root());
    let options =
        LogOptions::new(root.wals_dir().join("host,16020,1"), "host%2C16020%2C1", root.old_wals_dir());
    let log = Log::start(env.clone(), fs.clone(), options, Arc::new(|_: &wal::Error| ())).await.unwrap();
    let regions = Arc::new(OnlineRegions::default());
    let budget = Arc::new(MemstoreBudget::unlimited());
    let schedule = Schedule::new(env.clone(), regions.clone(), budget.clone(), CompactionOptions::default());
    let services = RegionServices {
        env: env.clone(),
        fs: fs.clone(),
        root,
        tracker: Arc::new(layout::RenameTracker),
        log,
        loader: Arc::new(BlockLoader::new(1 << 20)),
        budget,
        maintenance: schedule.clone(),
        mob: Arc::default(),
        options: Arc::new(RegionOptions { flush_retries: 1, ..RegionOptions::default() }),
        instruments: Arc::new(engine::instruments::Instruments::begin(env.clock.monotonic())),
        nonces: Arc::default(),
        server: None,
    };
    let region = open(&services, "t").await;
    regions.insert(region.clone());
    World { region, regions, schedule, faulty, env, services }
}

/// Opens the only region of a new table.
async fn open(services: &RegionServices, table: &str) -> Arc<Region> {
    let (fs, name) = (&services.fs, TableName::parse(table).unwrap());
    let info = RegionInfo::new(name.clone(), "".into(), "".into(), 1);
    let table = Arc::new(TableDescriptor::new(name).with_family(FamilyDescriptor::new("f")));
    services.root.write_region_info(&**fs, &info).await.unwrap();
    let index = Arc::new(wal::recovery::scan(&**fs, &[]).await.unwrap());
    let entries = Box::new(wal::recovery::read_region(fs.clone(), index, &info.encoded_name()));
    Region::open(services.clone(), Opening { info, table, entries }).await.unwrap()
}

async fn put(region: &Region, row: &str) {
    let cell = KeyValue::new(row.as_bytes(), b"f", b"q", cell::LATEST_TIMESTAMP, CellType::Put, b"v");
    let put = Mutation::put(Bytes::copy_from_slice(row.as_bytes()), vec![cell]);
    region.batch(vec![put]).await.remove(0).unwrap();
}

impl World {
    async fn put(&self, row: &str) {
        put(&self.region, row).await;
    }

    fn unflushed_bytes(&self) -> u64 {
        self.region.metrics().memstore_data_bytes
    }
}

/// Runs `test` on a runtime whose clock advances only while all tasks wait.
fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test);
}

#[test]
fn a_failed_flush_is_retried() {
    run(async {
        let world = world().await;
        world.put("a").await;
        world.faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default"));
        world.schedule.request_flush(&world.region, FlushReason::Size);
        world.env.clock.sleep(LONG).await;
        assert!(world.unflushed_bytes() > 0, "no flush can succeed");
        assert_eq!(world.schedule.flushes(), 1, "the retry is pending");
        world.faulty.heal();
        world.env.clock.sleep(LONG).await;
        assert_eq!(world.unflushed_bytes(), 0);
        assert_eq!(world.schedule.flushes(), 0);
    });
}

#[test]
fn a_flush_that_fails_once_is_retried_after_a_short_pause() {
    run(async {
        let world = world().await;
        world.put("a").await;
        world.faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default").times(1));
        world.schedule.request_flush(&world.region, FlushReason::Size);
        world.env.clock.sleep(Duration::from_millis(500)).await;
        assert_eq!((world.unflushed_bytes(), world.schedule.flushes()), (0, 0));
    });
}

#[test]
fn flushes_that_fail_keep_no_other_region_from_being_flushed() {
    run(async {
        let world = world().await;
        // As many as can be flushed at the same time.
        let failing = [world.region.clone(), open(&world.services, "failing").await];
        let good = open(&world.services, "good").await;
        for region in [&failing[1], &good] {
            world.regions.insert(region.clone());
        }
        for region in failing.iter().chain([&good]) {
            put(region, "a").await;
        }
        for region in &failing {
            let part = format!("/{}/", region.encoded_name());
            world.faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at(&part));
            world.schedule.request_flush(region, FlushReason::Size);
        }
        world.env.clock.sleep(LONG).await;
        assert_eq!(world.schedule.flushes(), 2, "their retries are pending");
        world.schedule.request_flush(&failing[0], FlushReason::Pressure);
        world.env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(good.metrics().memstore_data_bytes, 0, "the largest of the others is flushed");
    });
}

#[test]
fn flushes_that_wait_for_compactions_keep_no_other_region_from_being_flushed() {
    run(async {
        let mut world = world().await;
        world.schedule.compactions().switch(false);
        let mut options = RegionOptions::default();
        options.compaction.settings.blocking_files = 1;
        world.services.options = Arc::new(options);
        // One more than can be flushed at the same time.
        let mut full = Vec::new();
        for table in ["full1", "full2", "full3"] {
            full.push(open(&world.services, table).await);
        }
        for region in &full {
            world.regions.insert(region.clone());
            for row in ["a", "b"] {
                put(region, row).await;
                region.flush().await.unwrap();
            }
            put(region, "a").await;
        }
        for region in &full[..2] {
            world.schedule.request_flush(region, FlushReason::Size);
        }
        world.env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(world.schedule.flushes(), 2, "they wait");
        world.put("a").await;
        world.schedule.request_flush(&full[0], FlushReason::Pressure);
        world.env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(world.unflushed_bytes(), 0, "this region has room for another file");
        world.schedule.request_flush(&full[0], FlushReason::Pressure);
        world.env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(world.schedule.flushes(), 2, "enough flushes wait");
    });
}

#[test]
fn an_offline_region_is_not_flushed() {
    run(async {
        let world = world().await;
        world.put("a").await;
        world.faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default"));
        world.schedule.request_flush(&world.region, FlushReason::Size);
        world.env.clock.sleep(LONG).await;
        world.regions.remove(world.region.encoded_name());
        world.env.clock.sleep(LONG).await;
        assert_eq!(world.schedule.flushes(), 0);
    });
}

impl World {
    /// Writes a file with one row.
    async fn file(&self, row: &str) {
        self.put(row).await;
        self.region.flush().await.unwrap();
    }

    fn files(&self) -> usize {
        self.region.metrics().stores[0].files
    }

    fn state(&self) -> CompactionState {
        self.schedule.compactions().state(&self.region)
    }

    async fn request(&self, kind: CompactionKind) {
        self.schedule.compactions().request_by_user(&self.region, None, kind).await.unwrap();
    }

    async fn settle(&self) {
        let compactions = self.schedule.compactions();
        while compactions.running() + compactions.waiting() > 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// A client that waits for the end of a compaction polls the state, so it must also show queued
/// compactions.
#[test]
fn a_region_is_compacting_from_the_call_to_the_end() {
    run(async {
        let world = world().await;
        world.file("a").await;
        world.request(CompactionKind::Minor).await;
        assert_eq!(world.state(), CompactionState::None, "a minor compaction needs more than one file");
        world.request(CompactionKind::Major).await;
        assert_eq!(world.state(), CompactionState::Major);
        world.settle().await;
        assert_eq!((world.files(), world.region.metrics().compactions), (1, 1));
    });
}

/// A request for a major compaction during another one is served by the store's next compaction.
#[test]
fn a_blocked_major_compaction_runs_later() {
    run(async {
        let world = world().await;
        world.file("a").await;
        world.request(CompactionKind::Major).await;
        world.request(CompactionKind::Major).await;
        world.settle().await;
        assert_eq!(world.region.metrics().compactions, 1);
        world.request(CompactionKind::Minor).await;
        world.settle().await;
        assert_eq!(world.region.metrics().compactions, 2);
        world.request(CompactionKind::Minor).await;
        assert_eq!(world.state(), CompactionState::None);
    });
}

#[test]
fn nothing_is_compacted_while_compactions_are_off() {
    run(async {
        let world = world().await;
        let compactions = world.schedule.compactions();
        for row in ["a", "b", "c"] {
            world.file(row).await;
        }
        assert!(compactions.switch(false), "they were on");
        assert!(!compactions.switch(false), "they are off");
        world.request(CompactionKind::Minor).await;
        world.schedule.check_stores();
        world.settle().await;
        assert_eq!(world.files(), 3);
        compactions.switch(true);
        world.schedule.check_stores();
        world.settle().await;
        assert_eq!(world.files(), 3, "only every thousandth round checks a store");
        world.region.request_compactions();
        world.settle().await;
        assert_eq!(world.files(), 1);
    });
}

#[test]
fn a_request_is_queued_once_and_can_be_cleared() {
    run(async {
        let world = world().await;
        world.file("a").await;
        let compactions = world.schedule.compactions();
        world.request(CompactionKind::Major).await;
        compactions.request(&world.region, b"f");
        compactions.request(&world.region, b"f");
        assert_eq!((compactions.running(), compactions.waiting()), (1, 1), "at most one runs");
        compactions.clear(Pool::Short);
        assert_eq!(compactions.waiting(), 0);
        assert_eq!(world.state(), CompactionState::Major, "the running one continues");
        world.settle().await;
        assert_eq!(world.region.metrics().compactions, 1);
    });
}

#[test]
fn a_store_that_becomes_more_urgent_is_compacted_first() {
    run(async {
        let world = world().await;
        let [early, urgent] = [open(&world.services, "early").await, open(&world.services, "urgent").await];
        let files = async |region: &Arc<Region>, count| {
            for at in 0..count {
                put(region, &at.to_string()).await;
                region.flush().await.unwrap();
            }
            region.request_compactions();
        };
        world.file("a").await;
        for (table, delay) in [("t", LONG), ("early", Duration::from_secs(1))] {
            let slow = Rule::new(Fault::Delay(delay)).on(Operation::Read);
            world.faulty.add(slow.at(&format!("data/default/{table}/")));
        }
        world.request(CompactionKind::Major).await;
        files(&early, 3).await;
        files(&urgent, 3).await;
        let compactions = world.schedule.compactions();
        assert_eq!((compactions.running(), compactions.waiting()), (1, 2), "at most one runs");
        // Two more files move it forward.
        files(&urgent, 2).await;
        assert_eq!((compactions.running(), compactions.waiting()), (1, 2));
        while urgent.metrics().compactions == 0 {
            world.env.clock.sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(early.metrics().compactions, 0);
        world.env.clock.sleep(LONG).await;
        assert_eq!((early.metrics().compactions, urgent.metrics().compactions), (1, 1));
    });
}

#[test]
fn a_flush_that_waits_for_compactions_delays_no_other_region() {
    run(async {
        let world = world().await;
        let others = ["one", "two", "three"].map(|table| open(&world.services, table));
        let others = futures_util::future::join_all(others).await;
        world.schedule.compactions().switch(false);
        // More than `hbase.hstore.blockingStoreFiles`.
        for region in &others[..2] {
            for row in 0..17 {
                put(region, &row.to_string()).await;
                region.flush().await.unwrap();
            }
            put(region, "unflushed").await;
            world.schedule.request_flush(region, FlushReason::Size);
        }
        put(&others[2], "unflushed").await;
        world.schedule.request_flush(&others[2], FlushReason::Size);
        world.env.clock.sleep(Duration::from_secs(1)).await;
        let unflushed: Vec<_> =
            others.iter().map(|region| region.metrics().memstore_data_bytes > 0).collect();
        assert_eq!(unflushed, [true, true, false]);
    });
}

#[test]
fn compacted_files_are_archived_after_the_last_scanner() {
    run(async {
        let world = world().await;
        world.file("a").await;
        let scanner = world.region.scanner(&cell::query::Scan::default()).unwrap();
        world.request(CompactionKind::Major).await;
        world.settle().await;
        world.schedule.archive_compacted_files().await;
        let directory = FilePath::root().join("data/default/t");
        let count = async || {
            let dir = directory.join(world.region.encoded_name()).join("f");
            world.faulty.list(&dir).await.unwrap().len()
        };
        assert_eq!(count().await, 2, "a scanner reads the old one");
        drop(scanner);
        world.schedule.archive_compacted_files().await;
        assert_eq!(count().await, 1);
    });
}
