//! Measures the time from a start to a client's first response, and the memory of an idle server.
//! To be run manually:
//!
//! ```text
//! cargo build --release -p server
//! GRAMPUS_KILL_BINARY=$PWD/target/release/grampus \
//!     cargo test -p server --test kill9 -- --ignored --nocapture
//! ```
#![allow(clippy::disallowed_methods, reason = "the test measures a process and its directory")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::env::{Env, TaskClass};
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::Get;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::{Client, ClientOptions, Registry, Table};

use crate::server::Server;
use crate::{cells, world};

const ROWS: u64 = 1_000_000;
const VALUE_BYTES: usize = 100;
const BATCH: u64 = 2_000;
const LOADERS: u64 = 4;
/// Nothing is flushed, and no write is rejected.
const UNFLUSHED: [&str; 2] = ["hbase.hregion.memstore.flush.size=2 GiB", "grampus.memory=4 GiB"];

/// A directory for one measurement, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for the measurement can be created");
        Directory(dir)
    }

    fn start(&self, settings: &[&str]) -> Server {
        Server::start(&self.0.join("data"), &self.0.join("server.log"), settings)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn name() -> TableName {
    TableName::parse("measure").expect("a legal name")
}

fn table(client: &Client) -> Table {
    client.table(name())
}

async fn connected(env: &Env, server: &mut Server) -> Client {
    let zookeeper = server.ready(env).await;
    Client::new(env.clone(), Registry::zookeeper(&zookeeper, "/hbase"), ClientOptions::default())
}

async fn get(table: &Table, row: Bytes) -> client::Row {
    let get = Get { row, selection: Default::default(), existence_only: false };
    table.get(&get).await.expect("a get is answered")
}

/// Memory of a process in KiB, by the name of its line in `/proc/PID/status`.
fn memory_kib(process: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process has a status");
    let found = status.lines().find_map(|text| text.strip_prefix(line)).expect("the line is there");
    found.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
#[ignore = "a measurement"]
fn empty_start() {
    world::on_a_runtime("empty", async |env| {
        for first in [true, false, false] {
            let dir = Directory::new("empty-start");
            let begin = env.clock.monotonic();
            let mut server = dir.start(&[]);
            let client = connected(&env, &mut server).await;
            let ready = env.clock.monotonic() - begin;
            // The first get that an empty server can answer is one of `hbase:meta`.
            get(&client.table(TableName::meta()), "measure".into()).await;
            let answered = env.clock.monotonic() - begin;
            println!("empty start: ready after {ready:?}, first answer after {answered:?}");
            if first {
                env.clock.sleep(Duration::from_secs(2)).await;
                println!("idle: {} KiB resident", memory_kib(server.id(), "VmRSS"));
            }
            server.kill();
        }
    });
}

#[test]
#[ignore = "a measurement"]
fn restart_with_a_million_rows_in_the_log_of_one_region() {
    world::on_a_runtime("restart", async |env| restart(env, 1).await);
}

#[test]
#[ignore = "a measurement"]
fn restart_with_a_million_rows_in_the_log_of_eight_regions() {
    world::on_a_runtime("restart", async |env| restart(env, 8).await);
}

async fn restart(env: Env, regions: u64) {
    let dir = Directory::new(&format!("restart-{regions}"));
    let mut server = dir.start(&UNFLUSHED);
    let client = connected(&env, &mut server).await;
    let descriptor = TableDescriptor::new(name()).with_family(FamilyDescriptor::new("f"));
    client
        .admin()
        .create_table(&descriptor, &cells::split_keys(regions))
        .await
        .expect("a table can be created");
    let begin = env.clock.monotonic();
    load(&env, &table(&client)).await;
    println!("{regions} regions: loaded in {:?}", env.clock.monotonic() - begin);
    println!("{} KiB resident", memory_kib(server.id(), "VmRSS"));
    server.kill();
    for _ in 0..3 {
        let begin = env.clock.monotonic();
        let mut server = dir.start(&UNFLUSHED);
        let client = connected(&env, &mut server).await;
        let ready = env.clock.monotonic() - begin;
        let row = get(&table(&client), row_key(ROWS / 2)).await;
        let answered = env.clock.monotonic() - begin;
        assert_eq!(row.value(b"f", b"q"), Some(&value(ROWS / 2)[..]));
        println!("{regions} regions: ready after {ready:?}, first answer after {answered:?}");
        assert!(!get(&table(&client), row_key(ROWS - 1)).await.is_empty());
        println!("{} KiB resident", memory_kib(server.id(), "VmRSS"));
        server.kill();
    }
}

/// Row keys by number, distributed over the regions.
fn row_key(number: u64) -> Bytes {
    Bytes::from(format!("{:x}{number:09}", number % 16))
}

fn value(number: u64) -> [u8; VALUE_BYTES] {
    [b'a' + (number % 26) as u8; VALUE_BYTES]
}

async fn load(env: &Env, table: &Table) {
    let next = Arc::new(AtomicU64::new(0));
    let loaders: Vec<_> = (0..LOADERS)
        .map(|_| {
            let (table, next) = (table.clone(), next.clone());
            env.spawn(TaskClass::Service, async move {
                loop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= ROWS {
                        return;
                    }
                    let put = |number| {
                        let row = row_key(number);
                        let value = value(number);
                        let cell = KeyValue::new(&row, b"f", b"q", LATEST_TIMESTAMP, CellType::Put, &value);
                        Mutation::put(row, vec![cell])
                    };
                    table
                        .mutate_all((first..first + BATCH).map(put).collect())
                        .await
                        .expect("rows are written");
                }
            })
        })
        .collect();
    for loader in loaders {
        loader.await.expect("a loader ends");
    }
}
