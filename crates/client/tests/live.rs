//! The client against a running cluster of HBase or Grampus. Set `HBASE_ZOOKEEPER=host:port`, or
//! `HBASE_BOOTSTRAP=host:port` for the RPC registry, and run with `--ignored`. The test creates and
//! deletes a table.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::Duration;

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, Scan, TimeRange};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue};
use client::{Action, Client, ClientOptions, Error, Registry, ScanOptions, Table};
use proto::exception::class;
use support::{FAMILY, get, keys, put};

fn client() -> Client {
    let registry = match (std::env::var("HBASE_ZOOKEEPER"), std::env::var("HBASE_BOOTSTRAP")) {
        (Ok(quorum), _) => Registry::zookeeper(&quorum, "/hbase"),
        (_, Ok(servers)) => Registry::rpc(&servers),
        _ => panic!("set HBASE_ZOOKEEPER or HBASE_BOOTSTRAP"),
    };
    let options = ClientOptions { procedure_timeout: Duration::from_secs(60), ..ClientOptions::default() };
    Client::new(support::os::env(), registry, options)
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs a running cluster"]
async fn a_table_from_creation_to_removal() {
    let client = client();
    let admin = client.admin();
    let name = TableName::parse("grampus_client_live").unwrap();
    if admin.table_exists(&name).await.unwrap() {
        if admin.is_enabled(&name).await.unwrap() {
            admin.disable_table(&name).await.unwrap();
        }
        admin.delete_table(&name).await.unwrap();
    }
    assert!(!client.cluster_id().await.unwrap().is_empty());

    let family = FamilyDescriptor::new("f").with("VERSIONS", "3").with("NOTE", "kept");
    let table = TableDescriptor::new(name.clone()).with_family(family);
    let splits = ["g", "p"].map(Bytes::from);
    admin.create_table(&table, &splits).await.unwrap();
    let again = admin.create_table(&table, &splits).await.unwrap_err();
    assert!(again.is_class(class::TABLE_EXISTS), "{again}");
    let described = admin.describe(&name).await.unwrap();
    assert_eq!(described.families[&b"f"[..]].max_versions(), 3);
    assert_eq!(described.families[&b"f"[..]].attribute("NOTE"), Some("kept"));
    assert!(admin.list_tables(Some("grampus_client.*"), false).await.unwrap().contains(&name));
    assert!(admin.is_enabled(&name).await.unwrap());
    let status = admin.cluster_status().await.unwrap();
    assert_eq!(status.servers.len(), 1);
    assert!(status.master.is_some() && !status.version.is_empty());

    let table = client.table(name.clone());
    let regions = table.regions().await.unwrap();
    assert_eq!(regions.iter().map(|at| at.region.start_key.clone()).collect::<Vec<_>>(), ["", "g", "p"]);
    single_rows(&table).await;
    batches(&table).await;
    scans(&table).await;
    admin.flush(&name).await.unwrap();
    scans(&table).await;
    admin.compact(&name, true).await.unwrap();
    scans(&table).await;

    admin.disable_table(&name).await.unwrap();
    let refused = table.get(&get("a")).await.unwrap_err();
    assert!(matches!(refused, Error::TableNotEnabled(_)), "{refused}");
    let refused = admin.disable_table(&name).await.unwrap_err();
    assert!(refused.is_class(class::TABLE_NOT_ENABLED), "{refused}");
    admin.enable_table(&name).await.unwrap();
    assert_eq!(table.get(&get("m")).await.unwrap().value(FAMILY, b"q"), Some(&b"2"[..]));
    admin.disable_table(&name).await.unwrap();
    admin.delete_table(&name).await.unwrap();
    assert!(!admin.table_exists(&name).await.unwrap());
    let refused = table.get(&get("a")).await.unwrap_err();
    assert!(matches!(refused, Error::TableNotFound(_)), "{refused}");
}

async fn single_rows(table: &Table) {
    table.mutate(&put("m", "q", "1")).await.unwrap();
    table.mutate(&put("m", "q", "2")).await.unwrap();
    table.mutate(&put("m", "r", "3")).await.unwrap();
    let row = table.get(&get("m")).await.unwrap();
    assert_eq!(
        (row.cells.len(), row.value(FAMILY, b"q"), row.value(FAMILY, b"r")),
        (2, Some(&b"2"[..]), Some(&b"3"[..]))
    );
    let columns = vec![FamilyColumns { family: "f".into(), qualifiers: Some(vec!["q".into()]) }];
    let selection = CellSelection { columns, max_versions: 9, ..CellSelection::default() };
    let all = table.get(&Get { selection: selection.clone().into(), ..get("m") }).await.unwrap();
    assert_eq!(all.cells.len(), 2);
    let newest = all.cells[0].view(0).timestamp();
    let before = TimeRange { from: 0, to: newest };
    let old = table
        .get(&Get { selection: CellSelection { time_range: before, ..selection }.into(), ..get("m") })
        .await
        .unwrap();
    assert_eq!(old.value(FAMILY, b"q"), Some(&b"1"[..]));
    assert!(table.exists(&get("m")).await.unwrap() && !table.exists(&get("none")).await.unwrap());
    assert!(table.get(&get("none")).await.unwrap().is_empty());

    let marker = KeyValue::new(b"m", FAMILY, b"r", i64::MAX, CellType::DeleteColumn, b"");
    table.mutate(&Mutation::delete("m", vec![marker])).await.unwrap();
    assert_eq!(table.get(&get("m")).await.unwrap().cells.len(), 1);
    table.mutate(&put("gone", "q", "x")).await.unwrap();
    table.mutate(&Mutation::delete("gone", Vec::new())).await.unwrap();
    assert!(table.get(&get("gone")).await.unwrap().is_empty());
    let wrong = KeyValue::new(b"m", b"nofamily", b"q", i64::MAX, CellType::Put, b"");
    let refused = table.mutate(&Mutation::put("m", vec![wrong])).await.unwrap_err();
    assert!(refused.is_class(class::NO_SUCH_COLUMN_FAMILY), "{refused}");
}

async fn batches(table: &Table) {
    let puts = (0..300).map(|n| put(&format!("{}{n:03}", ["a", "h", "z"][n % 3]), "q", &n.to_string()));
    table.mutate_all(puts.collect()).await.unwrap();
    let wrong = KeyValue::new(b"a1", b"nofamily", b"q", i64::MAX, CellType::Put, b"");
    let outcomes = table
        .batch(vec![
            Action::Get(get("z299")),
            Action::Mutate(Mutation::put("a1", vec![wrong])),
            Action::Mutate(put("b1", "q", "batch")),
            Action::Get(get("none")),
            Action::Get(get("h001")),
        ])
        .await;
    assert_eq!(outcomes[0].as_ref().unwrap().value(FAMILY, b"q"), Some(&b"299"[..]));
    assert!(outcomes[1].as_ref().unwrap_err().is_class(class::NO_SUCH_COLUMN_FAMILY), "{:?}", outcomes[1]);
    assert!(outcomes[2].as_ref().unwrap().is_empty() && outcomes[3].as_ref().unwrap().is_empty());
    assert_eq!(outcomes[4].as_ref().unwrap().value(FAMILY, b"q"), Some(&b"1"[..]));
    table.mutate(&Mutation::delete("b1", Vec::new())).await.unwrap();
}

async fn scans(table: &Table) {
    let mut expected: Vec<String> = (0..300).map(|n| format!("{}{n:03}", ["a", "h", "z"][n % 3])).collect();
    expected.push("m".into());
    expected.sort();
    let collect = |scan: Scan, options: ScanOptions| async move {
        table.scan_with(scan, options).collect().await.unwrap()
    };
    for caching in [1, 7, 1000, i32::MAX as u32] {
        let options = ScanOptions { caching, limit: 0 };
        assert_eq!(keys(&collect(Scan::default(), options).await), expected, "caching {caching}");
    }
    let mut backwards = expected.clone();
    backwards.reverse();
    let reversed = Scan { reversed: true, ..Scan::default() };
    for caching in [1, 9, 1000] {
        let options = ScanOptions { caching, limit: 0 };
        assert_eq!(keys(&collect(reversed.clone(), options).await), backwards, "reversed, caching {caching}");
    }
    for limit in [1, 150, 301, 400] {
        let options = ScanOptions { limit, ..ScanOptions::default() };
        let wanted = &expected[..expected.len().min(limit as usize)];
        assert_eq!(keys(&collect(Scan::default(), options).await), wanted, "limit {limit}");
    }
    for (include_start_row, include_stop_row) in [(true, true), (true, false), (false, true), (false, false)]
    {
        for (start, stop) in [("a150", "z002"), ("a000", "m"), ("h001", "h298"), ("f", "g"), ("m", "m")] {
            let bounds = |start: &'static str, stop: &'static str, reversed| Scan {
                start_row: start.into(),
                stop_row: stop.into(),
                include_start_row,
                include_stop_row,
                reversed,
                ..Scan::default()
            };
            let inside = |row: &&String, start: &str, include_start: bool, stop: &str, include_stop: bool| {
                (row.as_str() > start || (include_start && *row == start))
                    && (row.as_str() < stop || (include_stop && *row == stop))
            };
            let wanted: Vec<_> = expected
                .iter()
                .filter(|row| inside(row, start, include_start_row, stop, include_stop_row))
                .collect();
            let rows = collect(bounds(start, stop, false), ScanOptions::default()).await;
            assert_eq!(
                keys(&rows),
                wanted.iter().map(|row| row.as_str()).collect::<Vec<_>>(),
                "{start}..{stop}"
            );
            let wanted: Vec<_> = backwards
                .iter()
                .filter(|row| inside(row, start, include_stop_row, stop, include_start_row))
                .collect();
            let rows = collect(bounds(stop, start, true), ScanOptions::default()).await;
            assert_eq!(
                keys(&rows),
                wanted.iter().map(|row| row.as_str()).collect::<Vec<_>>(),
                "{stop}..{start}"
            );
        }
    }
    let early = table.scan_with(Scan::default(), ScanOptions { caching: 2, limit: 0 });
    let mut early = early;
    assert_eq!(early.next().await.unwrap().unwrap().key(), b"a000");
    early.close().await;
}

/// Rows with many cells and several megabytes: parts by batch size, parts by response size.
#[tokio::test(flavor = "current_thread")]
#[ignore = "needs a running cluster"]
async fn large_rows_are_returned_whole_or_in_batches() {
    let client = client();
    let admin = client.admin();
    let name = TableName::parse("grampus_client_wide").unwrap();
    if admin.table_exists(&name).await.unwrap() {
        admin.disable_table(&name).await.unwrap();
        admin.delete_table(&name).await.unwrap();
    }
    let table = TableDescriptor::new(name.clone()).with_family(FamilyDescriptor::new("f"));
    admin.create_table(&table, &[]).await.unwrap();
    let table = client.table(name.clone());
    let value = "x".repeat(20_000);
    for row in ["r1", "r2"] {
        let cells: Vec<_> = (0..250)
            .map(|n| {
                KeyValue::new(
                    row.as_bytes(),
                    FAMILY,
                    format!("{n:04}").as_bytes(),
                    5,
                    CellType::Put,
                    value.as_bytes(),
                )
            })
            .collect();
        table.mutate(&Mutation::put(row, cells)).await.unwrap();
    }
    let rows = table.scan(Scan::default()).collect().await.unwrap();
    assert_eq!(rows.iter().map(|row| row.cells.len()).collect::<Vec<_>>(), [250, 250]);
    let pieces = table.scan(Scan { batch: 100, ..Scan::default() }).collect().await.unwrap();
    assert_eq!(pieces.iter().map(|row| row.cells.len()).collect::<Vec<_>>(), [100, 100, 50, 100, 100, 50]);
    assert_eq!(table.get(&get("r2")).await.unwrap().cells.len(), 250);
    admin.disable_table(&name).await.unwrap();
    admin.delete_table(&name).await.unwrap();
}
