//! A row larger than the server's memory: written cell by cell, read in parts, and rejected when
//! requested as a whole.
//!
//! `GRAMPUS_GIANT_MIB` sets its size (default 320).
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "kill9/network.rs"]
mod network;

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::{CellSelection, Get, Scan};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::{Client, ClientOptions, Registry, ScanOptions, Table};
use common::{Server, TempDir};
use proto::exception::class;

const MIB: u64 = 1 << 20;
const CELLS: u64 = 320;
/// Maximum growth of the server's memory while a client reads the row in parts.
const GROWTH_MAX_MIB: u64 = 64;

#[test]
fn a_row_larger_than_memory_is_read_in_pieces() {
    let cells = std::env::var("GRAMPUS_GIANT_MIB").map_or(CELLS, |text| text.parse().expect("a number"));
    let dir = TempDir::new();
    let settings = [
        "grampus.memory=256m",
        "hfile.block.cache.size=0.1",
        "hbase.ipc.max.request.size=4m",
        "hbase.hregion.memstore.flush.size=16m",
    ];
    let server = Server::start_with(&dir.join("data"), &settings.map(|setting| ["--set", setting]).concat());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let registry = Registry::zookeeper(&server.zookeeper(), "/hbase");
        let client = Client::new(network::env(5), registry, ClientOptions::default());
        let name = TableName::parse("giant").unwrap();
        let table = TableDescriptor::new(name.clone()).with_family(FamilyDescriptor::new("f"));
        client.admin().create_table(&table, &[]).await.unwrap();
        let table = client.table(name.clone());
        write(&table, cells).await;
        client.admin().flush(&name).await.unwrap();
        read_in_pieces(&server, &table, cells).await;
        refused(&table, cells).await;
        read_in_pieces(&server, &table, cells).await;
    });
}

fn value(column: u64) -> Vec<u8> {
    (0..MIB).map(|at| ((at ^ column).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn put(columns: std::ops::Range<u64>) -> Mutation {
    let cell = |column: u64| {
        let qualifier = format!("{column:06}");
        KeyValue::new(b"giant", b"f", qualifier.as_bytes(), LATEST_TIMESTAMP, CellType::Put, &value(column))
    };
    Mutation::put("giant", columns.map(cell).collect())
}

async fn write(table: &Table, cells: u64) {
    for column in 0..cells {
        table.mutate(&put(column..column + 1)).await.unwrap();
    }
}

/// Reads the row one cell at a time and checks the growth of the server's memory.
async fn read_in_pieces(server: &Server, table: &Table, cells: u64) {
    let selection = CellSelection { cache_blocks: false, ..CellSelection::default() };
    let scan = Scan { batch: 1, selection, ..Scan::default() };
    let mut scanner = table.scan_with(scan, ScanOptions { caching: 2, ..ScanOptions::default() });
    let before = resident_mib(server);
    let (mut column, mut most) = (0, 0);
    while let Some(piece) = scanner.next().await.unwrap() {
        assert_eq!(piece.cells.len(), 1);
        assert!(piece.value(b"f", format!("{column:06}").as_bytes()) == Some(&value(column)));
        column += 1;
        most = most.max(resident_mib(server));
    }
    assert_eq!(column, cells);
    println!("{cells} MiB read in parts: the server's memory grew from {before} MiB to {most} MiB");
    assert!(most < before + GROWTH_MAX_MIB, "from {before} MiB to {most} MiB");
}

/// The row as a whole and a put above the request size limit are rejected.
async fn refused(table: &Table, cells: u64) {
    let get = Get { row: "giant".into(), selection: Default::default(), existence_only: false };
    let error = table.get(&get).await.unwrap_err();
    assert!(error.is_class(class::ROW_TOO_BIG), "{error}");
    let error = table.mutate(&put(cells..cells + 5)).await.unwrap_err();
    assert!(error.is_class(class::REQUEST_TOO_BIG), "{error}");
    let first = Get { row: Bytes::from_static(b"no"), ..get };
    assert!(table.get(&first).await.unwrap().is_empty(), "other rows are read");
}

fn resident_mib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
