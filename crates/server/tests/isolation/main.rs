//! Several clients write rows of ten families with twenty columns atomically and concurrently.
//! Others read them, while the table is flushed, compacted, split and merged.
//!
//! No read may find a torn row, and the history of every row must be linearizable ([`history`]). No
//! client may see an error.
//!
//! `GRAMPUS_ISOLATION_SECONDS` sets the duration (default 6).
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../kill9/choices.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod choices;
#[path = "../common/mod.rs"]
mod common;
mod history;
#[path = "../kill9/network.rs"]
mod network;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::{Get, Scan};
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::{Client, ClientOptions, Registry, Row};

use choices::RandomChoices;
use common::{Server, TempDir};
use history::{History, Operation};

const FAMILIES: usize = 10;
const COLUMNS: usize = 20;
const ROWS: u64 = 12;
const WRITERS: u64 = 4;
const READERS: u64 = 3;
const SECONDS: u64 = 6;
/// Additional time on busy machines.
const EXTRA_SECONDS: u64 = 60;

/// State that all clients share.
struct World {
    env: Env,
    // Clock of begins and ends of operations.
    moments: AtomicU64,
    versions: AtomicU64,
    ended: AtomicBool,
    // Whether the table has been flushed, compacted and split.
    disturbed: AtomicBool,
    histories: Mutex<BTreeMap<Bytes, History>>,
}

impl World {
    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn record_write(&self, row: &Bytes, operation: Operation) {
        self.histories.lock().unwrap().entry(row.clone()).or_default().writes.push(operation);
    }

    fn record_read(&self, row: &Bytes, operation: Operation) {
        self.histories.lock().unwrap().entry(row.clone()).or_default().reads.push(operation);
    }
}

fn row_key(number: u64) -> Bytes {
    Bytes::from(format!("{number:02}-row"))
}

fn name() -> TableName {
    TableName::parse("isolation").unwrap()
}

/// Writes a version into all columns: as a single put, or as one put per family in an atomic batch.
async fn write(world: &World, table: &client::Table, choices: &RandomChoices) {
    let row = row_key(choices.within(0..ROWS));
    let version = world.versions.fetch_add(1, Ordering::SeqCst);
    let puts: Vec<Mutation> =
        (0..FAMILIES).map(|family| Mutation::put(row.clone(), cells_of(&row, family, version))).collect();
    let began = world.moment();
    let outcome = match choices.once_in(2) {
        true => table.mutate_row(&puts).await,
        false => {
            let cells = puts.into_iter().flat_map(|put| put.cells).collect();
            table.mutate(&Mutation::put(row.clone(), cells)).await
        }
    };
    outcome.unwrap_or_else(|error| panic!("a write failed: {error}"));
    world.record_write(&row, Operation { version, began, ended: world.moment() });
}

fn cells_of(row: &[u8], family: usize, version: u64) -> Vec<KeyValue> {
    let cell = |column: usize| {
        let (family, qualifier) = (format!("f{family}"), format!("column-{column:02}"));
        let value = version.to_be_bytes();
        KeyValue::new(row, family.as_bytes(), qualifier.as_bytes(), LATEST_TIMESTAMP, CellType::Put, &value)
    };
    (0..COLUMNS).map(cell).collect()
}

/// The version that all columns of a row share; 0 for a missing row.
fn version_of(row: &Row) -> u64 {
    let versions: Vec<u64> = row
        .cells
        .iter()
        .map(|cell| u64::from_be_bytes(cell.view(0).value.try_into().expect("a version has eight bytes")))
        .collect();
    let Some(first) = versions.first() else { return 0 };
    let whole = versions.len() == FAMILIES * COLUMNS && versions.iter().all(|version| version == first);
    assert!(whole, "row {} is torn: {versions:?}", row.key().escape_ascii());
    *first
}

/// Reads one row with a get, or all rows with one scan.
async fn read(world: &World, table: &client::Table, choices: &RandomChoices) {
    let began = world.moment();
    if choices.once_in(3) {
        let scan = Scan { reversed: choices.once_in(2), ..Scan::default() };
        let rows = table.scan(scan).collect().await.unwrap_or_else(|error| panic!("a scan failed: {error}"));
        let ended = world.moment();
        let mut found: BTreeMap<Bytes, u64> = (0..ROWS).map(|number| (row_key(number), 0)).collect();
        for row in &rows {
            let key = Bytes::copy_from_slice(row.key());
            assert!(found.insert(key, version_of(row)).is_some_and(|before| before == 0), "a row came twice");
        }
        for (row, version) in found {
            world.record_read(&row, Operation { version, began, ended });
        }
        return;
    }
    let row = row_key(choices.within(0..ROWS));
    let get = Get { row: row.clone(), selection: Default::default(), existence_only: false };
    let found = table.get(&get).await.unwrap_or_else(|error| panic!("a get failed: {error}"));
    world.record_read(&row, Operation { version: version_of(&found), began, ended: world.moment() });
}

/// Flushes, compacts, splits and merges the table.
async fn disturb(world: &World, client: &Client, choices: &RandomChoices) -> [u32; 4] {
    let (admin, table) = (client.admin(), name());
    let mut times = [0; 4];
    while !world.has_ended() {
        let kind = choices.within(0..4) as usize;
        let regions = admin.regions(&table).await.unwrap();
        let outcome = match kind {
            0 => admin.flush(&table).await,
            1 => admin.compact(&table, choices.once_in(2)).await,
            2 => {
                let row = row_key(choices.within(1..ROWS));
                let holds = |region: &&RegionInfo| region.contains(&row) && region.start_key != row;
                let Some(region) = regions.iter().find(holds) else { continue };
                admin.split_region(region, Some(row)).await
            }
            _ if regions.len() < 2 => continue,
            _ => {
                let first = choices.within(0..regions.len() as u64 - 1) as usize;
                let names: Vec<Bytes> =
                    regions[first..first + 2].iter().map(|region| region.encoded_name().into()).collect();
                admin.merge_regions(&names, false).await
            }
        };
        // Impossible operations are rejected: regions are not split or merged while they have
        // references.
        times[kind] += u32::from(outcome.is_ok());
        world.disturbed.store(times[..3].iter().all(|times| *times > 0), Ordering::SeqCst);
        world.env.clock.sleep(choices.millis(1..150)).await;
    }
    times
}

#[test]
fn rows_are_written_and_read_atomically() {
    let seconds =
        std::env::var("GRAMPUS_ISOLATION_SECONDS").map_or(SECONDS, |text| text.parse().expect("a number"));
    let dir = TempDir::new();
    let server = Server::start_with(
        &dir.join("data"),
        &["--set", "hbase.hregion.memstore.flush.size=4m", "--set", "hbase.catalogjanitor.interval=1000"],
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(load(&server, Duration::from_secs(seconds)));
}

async fn load(server: &Server, time: Duration) {
    let choices = RandomChoices::new(7);
    let env = network::env(choices.seed());
    let new_client = || {
        let registry = Registry::zookeeper(&server.zookeeper(), "/hbase");
        Client::new(env.clone(), registry, ClientOptions::default())
    };
    let families = (0..FAMILIES).map(|family| FamilyDescriptor::new(format!("f{family}")));
    let table = families.fold(TableDescriptor::new(name()), TableDescriptor::with_family);
    let client = new_client();
    client.admin().create_table(&table, &[]).await.unwrap();
    let world = Arc::new(World {
        env: env.clone(),
        moments: AtomicU64::new(1),
        versions: AtomicU64::new(1),
        ended: AtomicBool::new(false),
        disturbed: AtomicBool::new(false),
        histories: Mutex::default(),
    });
    let mut loads = tokio::task::JoinSet::new();
    for number in 0..WRITERS + READERS {
        let (world, table, choices) =
            (world.clone(), new_client().table(name()), RandomChoices::new(choices.seed()));
        loads.spawn(async move {
            while !world.has_ended() {
                match number < WRITERS {
                    true => write(&world, &table, &choices).await,
                    false => read(&world, &table, &choices).await,
                }
            }
        });
    }
    let timer = world.clone();
    loads.spawn(async move {
        timer.env.clock.sleep(time).await;
        // On a busy machine, little happens in that time.
        for _ in 0..EXTRA_SECONDS {
            if timer.disturbed.load(Ordering::SeqCst) {
                break;
            }
            timer.env.clock.sleep(Duration::from_secs(1)).await;
        }
        timer.ended.store(true, Ordering::SeqCst);
    });
    let disturbed = disturb(&world, &client, &choices);
    let ended = async {
        while let Some(ended) = loads.join_next().await {
            if let Err(failed) = ended {
                world.ended.store(true, Ordering::SeqCst);
                std::panic::resume_unwind(failed.into_panic());
            }
        }
    };
    let (times, ()) = tokio::join!(disturbed, ended);
    let histories = world.histories.lock().unwrap();
    let (writes, reads) = histories.values().fold((0, 0), |(writes, reads), history| {
        (writes + history.writes.len(), reads + history.reads.len())
    });
    println!("{writes} writes, {reads} rows read; flushes, compactions, splits, merges: {times:?}");
    for (row, history) in histories.iter() {
        history.check().unwrap_or_else(|why| panic!("row {}: {why}", row.escape_ascii()));
    }
    let enough = if time.as_secs() < 30 { &times[..3] } else { &times[..] };
    assert!(writes > 0 && reads > 0 && enough.iter().all(|times| *times > 0), "too little happened");
}
