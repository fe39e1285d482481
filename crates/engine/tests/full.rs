//! A disk that gets full at any byte of a scenario of writes, flushes, compactions, and log rolls.
//! Acknowledged writes are visible, even after a crash. Refused writes are not. No write is
//! partially visible. Everything continues when there is space again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::common::world::{open, options, region_info, run, scan, services, table};
use base::env::Env;
use bytes::Bytes;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use engine::budget::MemstoreBudget;
use engine::region::CompactionKind;
use engine::replay::NoEntries;
use engine::{Error, Opening, Region};
use fs::faulty::{Faulty, Plan};
use fs::memory::MemoryFs;
use fs::reserve::{Reserve, WithReserve};
use fs::space::Space;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use wal::{Log, LogOptions};

const STEPS: u64 = 48;
const RESERVE_BYTES: u64 = 1 << 20;
/// Disk space for the region's directory and an empty log.
const BEGIN_BYTES: u64 = 40 << 10;
/// Longer than any accepted write takes.
const LONG: Duration = Duration::from_secs(2);

struct World {
    env: Env,
    memory: MemoryFs,
    disk: Faulty,
    space: Arc<Space>,
    region: Arc<Region>,
    log: Arc<Log>,
    acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    deleted: BTreeSet<u64>,
}

impl World {
    /// A new region on a disk with space for `bytes` after the open.
    async fn begin(seed: u64, bytes: Option<u64>, reserve_bytes: u64) -> World {
        let env = base::testing::env(seed);
        let memory = MemoryFs::new();
        let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()).capacity(1 << 40));
        let space = Arc::new(Space::new(reserve_bytes / 8));
        let inner: Arc<dyn FileSystem> = Arc::new(disk.clone());
        let root = RootDir::new(FilePath::root());
        let reserve =
            Reserve::open(inner.clone(), root.reserve_dir(), reserve_bytes, space.clone()).await.unwrap();
        reserve.refill(0).await.unwrap();
        let fs: Arc<dyn FileSystem> = Arc::new(WithReserve::new(inner, reserve));
        root.write_region_info(&*fs, &region_info()).await.unwrap();
        let mut log_options =
            LogOptions::new(root.wals_dir().join("host,16020,1"), "host%2C16020%2C1", root.old_wals_dir());
        log_options.reserve_bytes = 4096;
        let on_fatal = Arc::new(|error: &wal::Error| panic!("a full disk ends the process: {error}"));
        let log = Log::start(env.clone(), fs.clone(), log_options, on_fatal).await.unwrap();
        let mut services = services(&env, fs, log.clone(), options());
        services.budget = Arc::new(MemstoreBudget::unlimited().on_disk(space.clone()));
        let entries = Box::new(NoEntries);
        let opening = Opening { info: region_info(), table: Arc::new(table()), entries };
        let region = Region::open(services, opening).await.unwrap();
        disk.set_capacity(bytes.map(|bytes| disk.used() + bytes));
        let [acknowledged, refused, deleted] = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        World { env, memory, disk, space, region, log, acknowledged, refused, deleted }
    }

    async fn poll(&self) {
        if let Some(found) = self.disk.space().await.unwrap() {
            self.space.record_poll(found, self.region.memstore_bytes());
        }
    }

    fn put(number: u64) -> Mutation {
        let row = Bytes::from(format!("row-{number:06}"));
        let value = vec![7; 200 + (number as usize * 131) % 3000];
        let cell = |family: &[u8]| KeyValue::new(&row, family, b"q", 1000, CellType::Put, &value);
        Mutation::put(row.clone(), vec![cell(b"f"), cell(b"g")])
    }

    /// Writes one row. Returns whether there was a response.
    async fn write(&mut self, number: u64) -> bool {
        let written = self.env.timeout(LONG, self.region.batch(vec![World::put(number)])).await;
        match written.map(|mut outcomes| outcomes.remove(0)) {
            Some(Ok(())) => drop(self.acknowledged.insert(number)),
            Some(Err(Error::TooBusy { what, .. })) => {
                assert!(what.contains("the disk is full"), "{what}");
                self.refused.insert(number);
            }
            Some(Err(error)) => panic!("row {number}: {error}"),
            None => return false,
        }
        true
    }

    async fn delete(&mut self, number: u64) -> bool {
        let row = Bytes::from(format!("row-{number:06}"));
        let delete = Mutation { timestamp: 2000, ..Mutation::delete(row, Vec::new()) };
        let done = self.env.timeout(LONG, self.region.batch(vec![delete])).await;
        let done = matches!(done.as_deref(), Some([Ok(())]));
        if done {
            self.deleted.insert(number);
        }
        done
    }

    /// Runs the scenario until the log waits for disk space.
    async fn run(&mut self) {
        for number in 1..=STEPS {
            self.poll().await;
            if !self.write(number).await {
                return;
            }
            // A step that fails for lack of space is retried later and must leave no damage.
            let chore = async {
                match number % 12 {
                    4 => drop(self.region.flush().await),
                    7 => drop(self.log.roll().await),
                    10 => drop(self.region.compact(None, CompactionKind::Major).await),
                    _ => {}
                }
            };
            if self.env.timeout(LONG, chore).await.is_none() {
                return;
            }
        }
    }

    /// Compares the visible rows with the responses.
    async fn check(&self, region: &Region, when: &str) {
        let shown = scan(region).await.unwrap();
        let rows = |family: &[u8]| -> BTreeSet<u64> {
            let of = shown.iter().filter(|cell| cell.1 == family);
            of.map(|cell| String::from_utf8_lossy(&cell.0)[4..].parse().unwrap()).collect()
        };
        let found = rows(b"f");
        assert_eq!(found, rows(b"g"), "{when}: a partial row");
        let missing: Vec<_> =
            self.acknowledged.difference(&self.deleted).filter(|number| !found.contains(number)).collect();
        assert!(missing.is_empty(), "{when}: {missing:?} were acknowledged");
        let wrong: Vec<_> = found.intersection(&self.refused).collect();
        assert!(wrong.is_empty(), "{when}: {wrong:?} were refused");
        assert!(found.intersection(&self.deleted).next().is_none(), "{when}: a deleted row");
    }
}

async fn bytes_of_scenario() -> u64 {
    let mut world = World::begin(1, None, 0).await;
    let before = world.disk.used();
    world.run().await;
    world.disk.used() - before
}

/// Runs the scenario on a disk that is full after `bytes`, with or without a reserve.
async fn full_at(seed: u64, bytes: u64, reserve_bytes: u64) -> (bool, bool) {
    let mut world = World::begin(seed, Some(bytes), reserve_bytes).await;
    world.run().await;
    let (refused, waited) = (!world.refused.is_empty(), world.log.waits_for_space());
    world.check(&world.region, "while the disk is full").await;
    // Power loss: a start with the disk's content and enough space.
    let image = world.memory.crash(&mut || world.env.random.next_u64());
    let reopened = open(&world.env, Arc::new(image), options()).await.unwrap();
    world.check(&reopened.region, "after a crash while the disk was full").await;
    if refused && !waited && reserve_bytes > 0 {
        world.poll().await;
        let row = *world.acknowledged.iter().next().unwrap_or(&1);
        assert!(world.delete(row).await, "full at {bytes}: a delete is possible");
    }
    world.disk.set_capacity(Some(1 << 40));
    world.poll().await;
    world.env.clock.sleep(LONG).await;
    assert!(!world.log.waits_for_space(), "full at {bytes}");
    for number in 1001..1005 {
        assert!(
            world.write(number).await && world.acknowledged.contains(&number),
            "full at {bytes}: works without a restart"
        );
    }
    world.region.flush().await.unwrap();
    world.check(&world.region, "with space again").await;
    let image = world.memory.crash(&mut || world.env.random.next_u64());
    let reopened = open(&world.env, Arc::new(image), options()).await.unwrap();
    world.check(&reopened.region, "after a crash with space again").await;
    (refused, waited)
}

#[test]
fn a_full_disk_at_any_byte_loses_no_acknowledged_write_and_needs_no_restart() {
    let needed = run(bytes_of_scenario());
    let (mut refusals, mut waits) = (0, 0);
    for (nth, bytes) in (BEGIN_BYTES..needed + BEGIN_BYTES).step_by(4111).enumerate() {
        for reserve_bytes in [0, RESERVE_BYTES] {
            let (refused, waited) = run(full_at(nth as u64, bytes, reserve_bytes));
            refusals += u64::from(refused);
            waits += u64::from(waited);
            assert!(!waited || reserve_bytes == 0, "full at {bytes}: the log has the reserve");
        }
    }
    assert!(refusals > 20, "{refusals} runs were refused writes, {waits} waited");
}
