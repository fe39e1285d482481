//! The client against a fake cluster with injected failures: what is retried, where, how often, and
//! with which result.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use bytes::Bytes;
use cell::mutation::{Mutation, MutationKind};
use cell::query::Scan;
use cell::schema::TableName;
use cell::{CellType, KeyValue};
use client::{Action, Client, ClientOptions, Error, Registry, ScanOptions};
use futures_util::future::join_all;
use proto::exception::{JavaException, class};
use support::fake::Fake;
use support::{FAMILY, get, keys, put};
use wire::meta::TableState;

#[tokio::test(start_paused = true)]
async fn a_region_is_looked_up_once() {
    let fake = Fake::new(2, &["g", "p"]).await;
    let table = fake.client().table(fake.table.clone());
    for n in 0..30 {
        table.mutate(&put(&format!("{}{n}", ["a", "h", "z"][n % 3]), "q", "v")).await.unwrap();
    }
    assert_eq!(fake.calls(&["Mutate", "Meta"]), [30, 3]);
    assert_eq!(fake.state().rows.len(), 30);
    assert_eq!(table.get(&get("h1")).await.unwrap().value(FAMILY, b"q"), Some(&b"v"[..]));
    assert!(table.exists(&get("h1")).await.unwrap() && !table.exists(&get("h2")).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_region_that_moved_is_looked_up_again() {
    let fake = Fake::new(2, &["g"]).await;
    let table = fake.client().table(fake.table.clone());
    table.mutate(&put("a", "q", "1")).await.unwrap();
    fake.state().regions[0].1 = 1;
    table.mutate(&put("a", "q", "2")).await.unwrap();
    // A lookup before, a read of the table's state, a lookup after.
    assert_eq!(fake.calls(&["Mutate", "Meta"]), [3, 3]);
}

#[tokio::test(start_paused = true)]
async fn the_location_in_a_region_moved_error_is_used() {
    let fake = Fake::new(2, &["g"]).await;
    let table = fake.client().table(fake.table.clone());
    table.mutate(&put("a", "q", "1")).await.unwrap();
    let moved = JavaException::region_moved(&fake.server_name(1), 7);
    fake.state().faults.push_back(("Mutate", moved));
    table.mutate(&put("a", "q", "2")).await.unwrap();
    // The region is not there: the client follows the exception, is refused, and then reads
    // hbase:meta.
    assert_eq!(fake.calls(&["Mutate", "Meta"]), [4, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_region_is_retried_after_hbases_pauses() {
    let fake = Fake::new(1, &[]).await;
    let options = ClientOptions { retries_max: 6, ..ClientOptions::default() };
    let table = fake.client_with(options).table(fake.table.clone());
    let busy = || ("Mutate", JavaException::new(class::REGION_TOO_BUSY, "memstore"));
    fake.state().faults.extend((0..6).map(|_| busy()));
    let started = fake.env.clock.monotonic();
    table.mutate(&put("a", "q", "1")).await.unwrap();
    let elapsed = fake.env.clock.monotonic() - started;
    // 1 + 2 + 3 + 5 + 10 + 20 times 100 ms, plus up to 1 %.
    assert!((4100..4200).contains(&elapsed.as_millis()), "{elapsed:?}");
    assert_eq!(fake.state().called("Meta"), 1, "the location stays cached");

    fake.state().faults.extend((0..7).map(|_| busy()));
    let error = table.mutate(&put("a", "q", "2")).await.unwrap_err();
    assert!(matches!(&error, Error::Exhausted { attempts: 7, .. }), "{error}");
    assert!(error.is_class(class::REGION_TOO_BUSY));
}

#[tokio::test(start_paused = true)]
async fn final_errors_are_not_retried() {
    let fake = Fake::new(1, &[]).await;
    let table = fake.client().table(fake.table.clone());
    let wrong = KeyValue::new(b"a", b"other", b"q", 1, CellType::Put, b"");
    let error = table.mutate(&Mutation::put("a", vec![wrong])).await.unwrap_err();
    assert!(error.is_class(class::NO_SUCH_COLUMN_FAMILY) && !error.is_retryable());
    assert_eq!(fake.state().called("Mutate"), 1);
}

#[tokio::test(start_paused = true)]
async fn disabled_and_missing_tables_have_their_own_errors() {
    let fake = Fake::new(1, &[]).await;
    let client = fake.client();
    let table = client.table(fake.table.clone());
    table.mutate(&put("a", "q", "1")).await.unwrap();
    fake.state().table_state = Some(TableState::Disabled);
    let error = table.get(&get("a")).await.unwrap_err();
    assert!(matches!(error, Error::TableNotEnabled(_)), "{error}");
    let mut scanner = table.scan(Scan::default());
    assert!(matches!(scanner.next().await, Err(Error::TableNotEnabled(_))));
    let outcomes = table.batch(vec![Action::Get(get("a"))]).await;
    assert!(matches!(outcomes[0], Err(Error::TableNotEnabled(_))));

    let missing = client.table(TableName::parse("missing").unwrap());
    let started = fake.env.clock.monotonic();
    assert!(matches!(missing.get(&get("a")).await, Err(Error::TableNotFound(_))));
    assert!(matches!(missing.regions().await, Err(Error::TableNotFound(_))));
    assert_eq!(fake.env.clock.monotonic(), started, "the client must not wait");
}

#[tokio::test(start_paused = true)]
async fn a_failed_server_is_replaced_by_the_next() {
    let fake = Fake::new(2, &["g"]).await;
    let table = fake.client().table(fake.table.clone());
    table.mutate(&put("z", "q", "1")).await.unwrap();
    fake.stop(1).await;
    fake.state().regions[1].1 = 0;
    table.mutate(&put("z", "q", "2")).await.unwrap();
    assert_eq!(table.get(&get("z")).await.unwrap().value(FAMILY, b"q"), Some(&b"2"[..]));

    fake.state().regions[1].1 = 1;
    let options = ClientOptions { retries_max: 3, ..ClientOptions::default() };
    let table = fake.client_with(options).table(fake.table.clone());
    let error = table.get(&get("z")).await.unwrap_err();
    let Error::Exhausted { last, .. } = &error else { panic!("{error}") };
    assert!(matches!(**last, Error::Connection { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_delivers_nothing_is_replaced_after_one_timeout() {
    let fake = Fake::new(1, &[]).await;
    let env = support::silent::env(&fake.env, |_, before| before == 0);
    let table = fake.client_on(env, ClientOptions::default()).table(fake.table.clone());
    let started = fake.env.clock.monotonic();
    table.mutate(&put("a", "q", "1")).await.unwrap();
    let elapsed = fake.env.clock.monotonic() - started;
    assert!((60..62).contains(&elapsed.as_secs()), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_retries_only_failed_operations() {
    let fake = Fake::new(3, &["g", "p"]).await;
    let table = fake.client().table(fake.table.clone());
    table.mutate_all(vec![put("a", "q", "1"), put("h", "q", "2")]).await.unwrap();
    let busy = JavaException::new(class::REGION_TOO_BUSY, "memstore");
    fake.state().faults.push_back(("Action", busy));
    fake.state().regions[1].1 = 0;
    let before = fake.state().called("Multi");
    let wrong = KeyValue::new(b"z", b"other", b"q", 1, CellType::Put, b"");
    let outcomes = table
        .batch(vec![
            Action::Get(get("a")),
            Action::Mutate(put("b", "q", "3")),
            Action::Get(get("h")),
            Action::Mutate(Mutation::put("z", vec![wrong])),
            Action::Get(get("none")),
        ])
        .await;
    assert_eq!(outcomes[0].as_ref().unwrap().value(FAMILY, b"q"), Some(&b"1"[..]));
    assert!(outcomes[1].as_ref().unwrap().is_empty());
    assert_eq!(outcomes[2].as_ref().unwrap().value(FAMILY, b"q"), Some(&b"2"[..]));
    assert!(outcomes[3].as_ref().unwrap_err().is_class(class::NO_SUCH_COLUMN_FAMILY));
    assert!(outcomes[4].as_ref().unwrap().is_empty());
    assert_eq!(fake.state().rows.len(), 3);
    // Three servers, then the busy action and the moved region, which are both on the first server
    // now.
    assert_eq!(fake.state().called("Multi") - before, 4);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_batch_applies_each_append_once() {
    let fake = Fake::new(1, &[]).await;
    let table = fake.client().table(fake.table.clone());
    let append = Mutation { kind: MutationKind::Append, ..put("a", "q", "v") };
    fake.state().faults.push_back(("MultiResponse", JavaException::io("lost")));
    let outcomes = table.batch(vec![Action::Mutate(append.clone()), Action::Mutate(append)]).await;
    assert!(outcomes.iter().all(Result::is_ok));
    let state = fake.state();
    assert_eq!((state.called("Multi"), state.appends), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn batches_succeed_despite_any_retryable_failure() {
    for seed in 1..20 {
        let fake = Fake::new(3, &["c", "g", "p"]).await;
        let options = ClientOptions { retries_max: 1000, ..ClientOptions::default() };
        let table = fake.client_with(options).table(fake.table.clone());
        fake.state().fault_every = 2 + seed % 5;
        let rows: Vec<String> = (0..100).map(|n| format!("{}{n}", (b'a' + (n % 26) as u8) as char)).collect();
        let puts = rows.iter().map(|row| put(row, "q", row));
        table.mutate_all(puts.collect()).await.unwrap();
        let found = table.batch(rows.iter().map(|row| Action::Get(get(row))).collect()).await;
        for (row, found) in rows.iter().zip(found) {
            assert_eq!(found.unwrap().value(FAMILY, b"q"), Some(row.as_bytes()));
        }
    }
}

/// With any response sizes, failures and region moves, each row is returned once, complete and in
/// order.
#[tokio::test(start_paused = true)]
async fn scans_succeed_despite_any_retryable_failure() {
    let fake = Fake::new(3, &["c", "g", "p"]).await;
    // Reading cell by cell from a server that fails every fourth call takes long.
    let operation_timeout = std::time::Duration::from_secs(1_000_000);
    let options = ClientOptions { retries_max: 10_000, operation_timeout, ..ClientOptions::default() };
    let client = fake.client_with(options);
    let table = client.table(fake.table.clone());
    let mut expected = Vec::new();
    for n in 0..60usize {
        let row = format!("{}{n:02}", (b'a' + (n % 26) as u8) as char);
        let cells: Vec<_> = (0..1 + n % 7)
            .map(|at| {
                KeyValue::new(row.as_bytes(), FAMILY, format!("{at}").as_bytes(), 1, CellType::Put, b"v")
            })
            .collect();
        table.mutate(&Mutation::put(row.clone(), cells)).await.unwrap();
        expected.push((row, 1 + n % 7));
    }
    expected.sort();
    for round in 0..120usize {
        {
            let mut state = fake.state();
            state.fault_every = [0, 4, 6, 9][round % 4];
            state.cells_max = [usize::MAX, 1, 3, 10][round / 4 % 4];
            let moved = round % state.regions.len();
            state.regions[moved].1 = round % 3;
        }
        let reversed = round % 2 == 1;
        let batch = [0, 0, 2, 5][round / 2 % 4];
        let in_parts = round % 5 == 4;
        let caching = [1, 2, 100][round % 3];
        let limit = [0, 0, 25][round / 3 % 3];
        let bounds = [("", ""), ("b", "q"), ("g", "p"), ("c", "")][round / 5 % 4];
        let (start, stop) = if reversed { (bounds.1, bounds.0) } else { bounds };
        let scan =
            Scan { start_row: start.into(), stop_row: stop.into(), reversed, batch, ..Scan::default() };
        let mut wanted: Vec<_> = expected
            .iter()
            .filter(|(row, _)| match reversed {
                false => row.as_str() >= bounds.0 && (bounds.1.is_empty() || row.as_str() < bounds.1),
                true => row.as_str() > bounds.0 && (bounds.1.is_empty() || row.as_str() <= bounds.1),
            })
            .collect();
        if reversed {
            wanted.reverse();
        }
        wanted.truncate(if limit > 0 { limit as usize } else { usize::MAX });
        let scanner = table.scan_with(scan, ScanOptions { caching, limit });
        let scanner = if in_parts { scanner.in_parts() } else { scanner };
        let rows = scanner.collect().await.unwrap();
        let cells_max = fake.state().cells_max;
        assert!(!in_parts || rows.iter().all(|row| row.cells.len() <= cells_max), "parts are not merged");
        let mut got: Vec<(String, usize)> = Vec::new();
        for row in &rows {
            assert!(batch == 0 || row.cells.len() <= batch as usize);
            let key = String::from_utf8(row.key().to_vec()).unwrap();
            assert!(row.cells.iter().all(|cell| cell.view(0).row() == key.as_bytes()));
            match got.last_mut() {
                Some((last, cells)) if *last == key && in_parts => *cells += row.cells.len(),
                Some((last, cells)) if *last == key && batch > 0 => {
                    assert_eq!(*cells % batch as usize, 0, "only the last part of a row is short");
                    *cells += row.cells.len();
                }
                _ => got.push((key, row.cells.len())),
            }
        }
        assert_eq!(got.iter().collect::<Vec<_>>(), wanted, "round {round}");
    }
    assert!(fake.state().called("ScanNext") > 500);
}

#[tokio::test(start_paused = true)]
async fn a_scan_whose_server_never_recovers_ends() {
    let fake = Fake::new(1, &[]).await;
    let options = ClientOptions { retries_max: 4, ..ClientOptions::default() };
    let table = fake.client_with(options).table(fake.table.clone());
    table.mutate(&put("a", "q", "1")).await.unwrap();
    fake.state().fault_every = 1;
    let mut scanner = table.scan(Scan::default());
    assert!(matches!(scanner.next().await, Err(Error::Exhausted { attempts: 5, .. })));
    assert!(scanner.next().await.unwrap().is_none(), "the scan has ended");
}

/// With a quota, a large row is read in parts, with refused calls in between.
#[tokio::test(start_paused = true)]
async fn a_scanner_continues_after_a_refused_call() {
    for class in [class::RPC_THROTTLING, class::CALL_QUEUE_TOO_BIG] {
        let fake = Fake::new(1, &[]).await;
        let table = fake.client().table(fake.table.clone());
        let cell = |at: u32| KeyValue::new(b"a", FAMILY, &at.to_be_bytes(), 1, CellType::Put, b"v");
        table.mutate(&Mutation::put("a", (0..40).map(cell).collect())).await.unwrap();
        {
            let mut state = fake.state();
            state.cells_max = 1;
            state.refuse_next = Some(JavaException::new(class, "later"));
        }
        let rows = table.scan(Scan::default()).collect().await.unwrap();
        assert_eq!(rows.iter().map(|row| row.cells.len()).collect::<Vec<_>>(), [40]);
        assert_eq!(fake.state().called("ScanOpen"), 1);
    }
}

/// Each scanner opens, returns no rows, and is lost. If opening counted as progress, the scan would
/// never end.
#[tokio::test(start_paused = true)]
async fn a_scan_whose_scanners_only_open_ends() {
    let fake = Fake::new(1, &[]).await;
    let options = ClientOptions { retries_max: 4, ..ClientOptions::default() };
    let table = fake.client_with(options).table(fake.table.clone());
    table.mutate(&put("a", "q", "1")).await.unwrap();
    let lost = JavaException::new(class::UNKNOWN_SCANNER, "scanner");
    fake.state().cells_max = 0;
    fake.state().faults.extend((0..50).map(|_| ("ScanNext", lost.clone())));
    assert!(matches!(table.scan(Scan::default()).next().await, Err(Error::Exhausted { attempts: 5, .. })));
}

#[tokio::test(start_paused = true)]
async fn scans_of_meta_and_regions_by_it() {
    let fake = Fake::new(2, &["g", "p"]).await;
    let client = fake.client();
    let rows = client.table(TableName::meta()).scan(Scan::default()).collect().await.unwrap();
    assert_eq!(keys(&rows)[0], "t");
    assert_eq!(rows.len(), 4);
    let regions = client.table(fake.table.clone()).regions().await.unwrap();
    let starts: Vec<Bytes> = regions.iter().map(|location| location.region.start_key.clone()).collect();
    assert_eq!(starts, ["", "g", "p"]);
    assert_eq!(regions[1].server, fake.server_name(1));
}

#[tokio::test(start_paused = true)]
async fn the_zookeeper_server_that_responded_last_is_contacted_first() {
    let env = base::testing::env(1);
    let coordinator = zk::MemoryCoordinator::new(&env);
    let id = zk::payload::cluster_id("master", &*env.random, "the-id");
    zk::coordinator::publish(&*coordinator, "/hbase/hbaseid", id, zk::Mode::Persistent).await.unwrap();
    let listener = env.net.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let registry = Registry::zookeeper(&format!("zk1,zk2:{}", listener.local_addr().port()), "/hbase");
    zk::Endpoint::new(env.clone(), coordinator, zk::EndpointOptions::default()).serve(listener);
    let client =
        Client::new(support::silent::env(&env, |host, _| host == "zk1"), registry, ClientOptions::default());
    for limit in [1, 0] {
        let started = env.clock.monotonic();
        assert_eq!(client.cluster_id().await.unwrap(), "the-id");
        assert_eq!((env.clock.monotonic() - started).as_secs(), limit);
    }
}

/// 50 gets and a batch wait for one lookup, whose failure is theirs too.
#[tokio::test(start_paused = true)]
async fn operations_end_in_time_if_the_cluster_is_not_reachable() {
    let env = support::silent::env(&base::testing::env(1), |_, _| true);
    let seconds = std::time::Duration::from_secs;
    // Without retries, the limit is one lookup. With retries, it is the operation's timeout.
    for (retries_max, limit) in [(0, 13), (1000, 46)] {
        let registry = Registry::zookeeper("zk1,zk2,zk3", "/hbase");
        let options = ClientOptions { retries_max, operation_timeout: seconds(45), ..Default::default() };
        let table = Client::new(env.clone(), registry, options).table(TableName::parse("t").unwrap());
        let started = env.clock.monotonic();
        let puts = (0..1000).map(|n| Action::Mutate(put(&format!("r{n}"), "q", "v")));
        let batch = table.batch(puts.collect());
        let gets = join_all((0..50).map(|n| {
            let table = table.clone();
            async move { table.get(&get(&format!("r{n}"))).await }
        }));
        let (gets, batch) = tokio::join!(gets, batch);
        assert!(gets.iter().chain(&batch).all(|outcome| matches!(outcome, Err(Error::Exhausted { .. }))));
        let elapsed = env.clock.monotonic() - started;
        assert!(elapsed <= seconds(limit), "{elapsed:?}");
    }
}

/// Many concurrent tasks share one connection and one lookup.
#[tokio::test(start_paused = true)]
async fn clients_may_be_used_from_many_tasks() {
    let fake = Fake::new(1, &[]).await;
    let client = fake.client();
    let tasks: Vec<_> = (0..50)
        .map(|n| {
            let table = client.table(fake.table.clone());
            let task = async move { table.mutate(&put(&format!("r{n}"), "q", "v")).await.unwrap() };
            fake.env.spawn(base::env::TaskClass::Service, task)
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(fake.calls(&["Mutate", "Meta"]), [50, 1]);
    assert_eq!(fake.state().rows.len(), 50);
}

#[tokio::test(start_paused = true)]
async fn both_halves_of_a_region_that_splits_are_flushed() {
    let fake = Fake::new(2, &["g", "p"]).await;
    let client = fake.client();
    fake.state().split_at_flush = Some("k".into());
    client.admin().flush(&fake.table).await.unwrap();
    assert_eq!(fake.state().flushed, ["", "g", "k", "p"]);
}
