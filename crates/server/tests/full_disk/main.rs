//! A full disk: the real binary on a small file system, with an external record of the writes that
//! it acknowledged.
//!
//! Each cycle fills the disk at a random byte, with the server's own writes or with another
//! program's, while a client writes. Then reads must continue and deletes must be possible. No
//! acknowledged write may be missing: not while the disk is full, not after `kill -9` and a start
//! on the full disk, and not when there is space again. Writes must resume without a restart.
//!
//! If the full disk is a tier and the next tier has space, no write is refused at all.
//!
//! The tests mount file systems, which needs privileges. Without them the tests print a note and
//! pass. Environment variables:
//!
//! * `GRAMPUS_FULL_DISK_POINTS`: cycles on each file system (default 3, on tmpfs only);
//! * `GRAMPUS_FULL_DISK_SEED`: seed of the test's own random choices.
#![allow(clippy::disallowed_methods, reason = "the test controls a process and its disk")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../kill9/choices.rs"]
#[allow(dead_code, reason = "each test uses a part of this module")]
mod choices;
mod disk;
#[path = "../kill9/network.rs"]
mod network;
#[path = "../kill9/server.rs"]
#[allow(dead_code, reason = "each test uses a part of this module")]
mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::env::{Env, TaskClass};
use bytes::Bytes;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::{Get, Scan};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use client::{Client, ClientOptions, Registry, Table};

use crate::choices::RandomChoices;
use crate::disk::{Disk, Kind};
use crate::server::Server;

const POINTS: u64 = 3;
/// A disk that memstores, logs and flushed files fill quickly.
const MIB: u64 = 64;
/// A root directory that is also a tier: half of it is kept, and is enough for a reserve and logs.
const ROOT_MIB: u64 = 192;
/// Rows of about 15 KB: with their log, 210 MB.
const ROWS_BEYOND_TIER: u64 = 7_000;
/// Maximum time between freeing space and a successful write.
const RESUMES_WITHIN: Duration = Duration::from_secs(15);
const SETTINGS: [&str; 3] = [
    "hbase.hregion.memstore.flush.size=4 MiB",
    "hbase.regionserver.hlog.blocksize=8 MiB",
    "grampus.memory=256 MiB",
];

/// The required content of the table: the value of each row, `None` if its delete was acknowledged.
/// Rows whose last write got no response may be in either state.
#[derive(Default)]
struct Ledger {
    rows: BTreeMap<Bytes, Option<Bytes>>,
    unanswered: BTreeMap<Bytes, Option<Bytes>>,
    next: u64,
}

/// One file system, and the client that records what was acknowledged.
struct World {
    env: Env,
    choices: RandomChoices,
    disk: Disk,
    /// The server's root directory.
    data: PathBuf,
    settings: Vec<String>,
    ledger: Ledger,
    reads: Vec<Duration>,
    refusals: u64,
    deletes: u64,
    restarts: u64,
    resumed: Duration,
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

fn on_a_runtime(test: impl AsyncFnOnce(Env)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seed = number_of("GRAMPUS_FULL_DISK_SEED").unwrap_or(1);
    runtime.block_on(async move { test(network::env(seed)).await });
}

fn table_name() -> TableName {
    TableName::parse("t").unwrap()
}

fn connect(env: &Env, zookeeper: &str, retries: u32) -> Client {
    let registry = Registry::zookeeper(zookeeper, "/hbase");
    let options = ClientOptions {
        retries_max: retries,
        rpc_timeout: Duration::from_secs(3),
        operation_timeout: Duration::from_secs(10),
        class: TaskClass::Service,
        ..ClientOptions::default()
    };
    Client::new(env.clone(), registry, options)
}

/// The writer tries each write twice, so that rejections are visible. The reader retries like a
/// normal client, because the region may be splitting.
struct Clients {
    writer: Client,
    reader: Client,
}

impl World {
    /// A world whose server has everything on `disk`.
    fn new(env: Env, disk: Disk) -> World {
        World {
            choices: RandomChoices::new(number_of("GRAMPUS_FULL_DISK_SEED").unwrap_or(1)),
            env,
            data: disk.join("data"),
            disk,
            settings: SETTINGS.map(str::to_owned).to_vec(),
            ledger: Ledger::default(),
            reads: Vec::new(),
            refusals: 0,
            deletes: 0,
            restarts: 0,
            resumed: Duration::ZERO,
        }
    }

    async fn start(&self) -> (Server, Clients) {
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        let mut server = Server::start(&self.data, &self.disk.outside("log"), &settings);
        let zookeeper = server.ready(&self.env).await;
        let (writer, reader) = (connect(&self.env, &zookeeper, 1), connect(&self.env, &zookeeper, 8));
        (server, Clients { writer, reader })
    }

    /// Writes a new row. Returns whether the write was acknowledged.
    async fn put(&mut self, table: &Table) -> bool {
        let row = Bytes::from(format!("row-{:08}", self.ledger.next));
        self.ledger.next += 1;
        let len = self.choices.within(1_000..30_000) as usize;
        let value = Bytes::from(format!("{}-", self.ledger.next).repeat(len / 8));
        let cell = KeyValue::new(&row, b"f", b"q", cell::LATEST_TIMESTAMP, CellType::Put, &value);
        let done = table.mutate(&Mutation::put(row.clone(), vec![cell])).await;
        self.record(row, Some(value), done.is_ok());
        done.is_ok()
    }

    async fn delete(&mut self, table: &Table) -> bool {
        let rows: Vec<_> = self.ledger.rows.iter().filter(|(_, value)| value.is_some()).collect();
        let Some((row, _)) = rows.get(self.choices.within(0..rows.len().max(1) as u64) as usize) else {
            return true;
        };
        let row = Bytes::clone(row);
        let done = table.mutate(&Mutation::delete(row.clone(), Vec::new())).await;
        self.record(row, None, done.is_ok());
        done.is_ok()
    }

    fn record(&mut self, row: Bytes, value: Option<Bytes>, acknowledged: bool) {
        if acknowledged {
            self.ledger.unanswered.remove(&row);
            self.ledger.rows.insert(row, value);
        } else {
            self.ledger.unanswered.insert(row, value);
        }
    }

    /// Compares the whole table with the ledger.
    async fn check(&self, table: &Table, when: &str) {
        let mut found = BTreeMap::new();
        let mut scanner = table.scan(Scan::default());
        while let Some(row) = scanner.next().await.unwrap_or_else(|error| panic!("{when}: scan: {error}")) {
            let value = Bytes::copy_from_slice(row.value(b"f", b"q").expect("a cell"));
            found.insert(Bytes::copy_from_slice(row.key()), value);
        }
        for (row, expected) in &self.ledger.rows {
            let (is, name) = (found.remove(row), row.escape_ascii());
            let may_be = self.ledger.unanswered.get(row);
            assert!(
                is == *expected || may_be.is_some_and(|may_be| is == *may_be),
                "{when}: row {name} is {:?}, but {:?} was acknowledged",
                is.map(|value| value.len()),
                expected.as_ref().map(Bytes::len)
            );
        }
        for (row, value) in found {
            let expected = self.ledger.unanswered.get(&row);
            assert_eq!(expected, Some(&Some(value)), "{when}: row {} was never written", row.escape_ascii());
        }
    }

    /// Reads acknowledged rows, which must succeed.
    async fn read(&mut self, table: &Table) {
        let rows: Vec<Bytes> = self.ledger.rows.keys().cloned().collect();
        for _ in 0..50.min(rows.len()) {
            let row = rows[self.choices.within(0..rows.len() as u64) as usize].clone();
            let get = Get { row, selection: Default::default(), existence_only: false };
            let begun = Instant::now();
            table.get(&get).await.unwrap_or_else(|error| panic!("a read while the disk is full: {error}"));
            self.reads.push(begun.elapsed());
        }
    }

    fn use_tiers(&mut self, tiers: &str) {
        self.settings.push(format!("grampus.tiers={tiers}"));
        // A split would refuse a write for a moment.
        let policy = "org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy";
        self.settings.push(format!("hbase.regionserver.region.split.policy={policy}"));
    }

    /// Writes more than the first tier holds, with a kill on the way. No write may be refused. At
    /// the end the server is killed.
    async fn write_beyond_first_tier(&mut self, filled_by_other_program: bool) {
        let (mut server, mut clients) = self.start().await;
        let table = TableDescriptor::new(table_name()).with_family(FamilyDescriptor::new("f"));
        clients.reader.admin().create_table(&table, &[]).await.unwrap();
        let mut table = clients.writer.table(table_name());
        for nth in 0..ROWS_BEYOND_TIER {
            if filled_by_other_program && nth == ROWS_BEYOND_TIER / 3 {
                self.disk.fill(0);
            }
            if nth == ROWS_BEYOND_TIER * 2 / 3 {
                server.kill();
                (server, clients) = self.start().await;
                table = clients.writer.table(table_name());
                self.check(&table, "after a start with a full tier").await;
            }
            assert!(self.put(&table).await, "write {nth} was refused; {}", server.log_tail());
        }
        self.check(&table, "while the tier is full").await;
        self.read(&table).await;
        server.kill();
    }

    async fn start_and_check(&self, when: &str) {
        let (mut server, clients) = self.start().await;
        self.check(&clients.reader.table(table_name()), when).await;
        server.kill();
    }

    /// Fills the disk once and checks the consequences.
    async fn cycle(&mut self) {
        let _ = std::fs::remove_dir_all(&self.data);
        self.ledger = Ledger::default();
        let (mut server, mut clients) = self.start().await;
        let admin = clients.reader.admin();
        let table = TableDescriptor::new(table_name()).with_family(FamilyDescriptor::new("f"));
        admin.create_table(&table, &[]).await.unwrap();
        let mut table = clients.writer.table(table_name());
        let mut reads = clients.reader.table(table_name());
        // Another program leaves the server a random number of bytes. In half of the cycles it
        // later takes these too.
        let left = self.choices.within(8 << 20..(MIB - 10) << 20);
        self.disk.fill(left);
        let filled_by_other_program = self.choices.once_in(2).then(|| self.choices.within(1..left / 15_000));
        let mut refused = 0;
        for nth in 0.. {
            if filled_by_other_program == Some(nth) {
                self.disk.fill(0);
            }
            refused += u64::from(!self.put(&table).await);
            if refused >= 3 {
                break;
            }
        }
        self.refusals += refused;
        self.read(&reads).await;
        self.check(&reads, "while the disk is full").await;
        self.deletes += u64::from(self.delete(&table).await);
        if self.choices.once_in(2) {
            server.kill();
            self.restarts += 1;
            (server, clients) = self.start().await;
            table = clients.writer.table(table_name());
            reads = clients.reader.table(table_name());
            self.check(&reads, "after a start on the full disk").await;
            self.read(&reads).await;
        }
        self.disk.free_all();
        let begun = Instant::now();
        while !self.put(&table).await {
            let waited = begun.elapsed();
            assert!(
                waited < RESUMES_WITHIN,
                "writes do not resume after space was freed; {}",
                server.log_tail()
            );
            self.env.clock.sleep(Duration::from_millis(100)).await;
        }
        self.resumed = self.resumed.max(begun.elapsed());
        self.check(&reads, "when there is room again").await;
        server.kill();
        self.start_and_check("after the last start").await;
    }
}

/// Mounts a small file system, or prints why it cannot.
fn mount(name: &str, kind: Kind, mib: u64) -> Option<Disk> {
    let mounted = Disk::mount(name, kind, mib);
    mounted.inspect_err(|reason| println!("skipped: a file system cannot be mounted here ({reason})")).ok()
}

fn full_disks(kind: Kind, points: u64) {
    let Some(disk) = mount("full", kind, MIB) else { return };
    on_a_runtime(async |env| {
        let mut world = World::new(env, disk);
        let begun = Instant::now();
        for point in 0..points {
            world.cycle().await;
            if point % 20 == 19 {
                println!("{kind:?}: {} of {points} points after {:?}", point + 1, begun.elapsed());
            }
        }
        world.reads.sort();
        let at = |part: f64| world.reads[((world.reads.len() - 1) as f64 * part) as usize];
        println!(
            "{kind:?}: {points} points, 0 acknowledged writes lost; {} writes refused, {} deletes while full, {} \
             starts on the full disk; reads while full: p50 {:?}, p99 {:?}, max {:?}; writes resumed within \
             {:?} after space was freed",
            world.refusals,
            world.deletes,
            world.restarts,
            at(0.5),
            at(0.99),
            at(1.0),
            world.resumed
        );
    });
}

#[test]
fn no_acknowledged_write_is_lost_on_a_full_tmpfs() {
    full_disks(Kind::Tmpfs, number_of("GRAMPUS_FULL_DISK_POINTS").unwrap_or(POINTS));
}

#[test]
fn no_acknowledged_write_is_lost_on_a_full_ext4() {
    match number_of("GRAMPUS_FULL_DISK_POINTS") {
        Some(points) => full_disks(Kind::Ext4, points),
        None => println!("skipped: runs with GRAMPUS_FULL_DISK_POINTS only"),
    }
}

/// The first tier is a real disk that fills up, by the server's writes and by another program's.
#[test]
fn writes_continue_on_the_next_tier_when_one_is_full() {
    let Some(disk) = mount("tier", Kind::Tmpfs, MIB) else { return };
    on_a_runtime(async |env| {
        let (fast, slow) = (disk.join("fast"), disk.outside("slow"));
        let mut world = World::new(env, disk);
        world.data = world.disk.outside("data");
        world.use_tiers(&format!("fast ssd {}; slow hdd {}", fast.display(), slow.display()));
        world.write_beyond_first_tier(true).await;
        assert!(size_of(&fast) > 0 && size_of(&slow) > MIB << 20, "the data is on both tiers");
        world.disk.free_all();
        world.start_and_check("after the last start").await;
    });
}

/// The first tier is also the root directory, which keeps space for names.
#[test]
fn writes_continue_on_the_next_tier_when_the_root_is_full() {
    let Some(disk) = mount("root", Kind::Tmpfs, ROOT_MIB) else { return };
    on_a_runtime(async |env| {
        let slow = disk.outside("slow");
        let mut world = World::new(env, disk);
        world.use_tiers(&format!("fast ssd root; slow hdd {}", slow.display()));
        world.write_beyond_first_tier(false).await;
        assert!(size_of(&world.data) > 16 << 20, "the root directory has data too");
        assert!(size_of(&slow) > MIB << 20, "most data is on the next tier");
        world.start_and_check("after the last start").await;
    });
}

/// The size of all files below a directory, in bytes.
fn size_of(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            found if found.is_dir() => size_of(&entry.path()),
            found => found.len(),
        })
        .sum()
}
