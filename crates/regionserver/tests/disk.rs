//! A region server with a full, lost or failing disk: refused writes, reported errors, and a stop
//! that ends in bounded time.

use std::time::Duration;

use crate::world::{World, run};
use bytes::Bytes;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use engine::Error;
use fs::FileSystem;
use fs::faulty::{Fault, Operation, Rule};
use regionserver::Disk;
use regionserver::errors::java_exception;

/// Longer than the server takes to detect the fault.
const DETECTED_WITHIN: Duration = Duration::from_secs(3);

async fn write(world: &World, mutation: Mutation) -> Result<(), Error> {
    world.server.regions().all().remove(0).batch(vec![mutation]).await.remove(0)
}

fn put(row: &'static str) -> Mutation {
    let value = [7; 100];
    let cell = KeyValue::new(row.as_bytes(), b"f", b"q", cell::LATEST_TIMESTAMP, CellType::Put, &value);
    Mutation::put(Bytes::from_static(row.as_bytes()), vec![cell])
}

fn delete(row: &'static str) -> Mutation {
    Mutation::delete(Bytes::from_static(row.as_bytes()), Vec::new())
}

#[test]
fn a_full_disk_refuses_data_and_accepts_deletes() {
    run(async {
        let world = World::begin().await;
        world.put("a").await;
        world.faulty.set_capacity(Some(world.faulty.used() + 2_000));
        world.env.clock.sleep(DETECTED_WITHIN).await;
        let refused = write(&world, put("b")).await.unwrap_err();
        let exception = java_exception(&refused);
        assert_eq!(exception.class, "org.apache.hadoop.hbase.RegionTooBusyException");
        assert!(refused.to_string().contains("the disk is full"), "{refused}");
        world.get("a").await;
        write(&world, delete("a")).await.unwrap();
        let load = world.server.server_load();
        assert!(load.grampus_warnings[0].contains("The disk is full"), "{:?}", load.grampus_warnings);
        world.faulty.set_capacity(Some(1 << 40));
        world.env.clock.sleep(DETECTED_WITHIN).await;
        write(&world, put("b")).await.unwrap();
        world.get("b").await;
        assert_eq!(world.server.server_load().grampus_warnings, [""; 0]);
    });
}

/// On HDFS, a roll waits a minute if no DataNode answers.
#[test]
fn a_roll_on_a_full_disk_does_not_delay_the_polls() {
    run(async {
        let world = World::begin().await;
        let value = vec![7; 2 << 20];
        let cell = KeyValue::new(b"a", b"f", b"q", cell::LATEST_TIMESTAMP, CellType::Put, &value);
        write(&world, Mutation::put("a", vec![cell])).await.unwrap();
        let rolls = world.faulty.calls(Operation::Create);
        let delay = Fault::Delay(20 * DETECTED_WITHIN);
        world.faulty.add(Rule::new(delay).on(Operation::Create).at("WALs/"));
        world.faulty.set_capacity(Some(world.faulty.used() + 2_000));
        world.env.clock.sleep(DETECTED_WITHIN).await;
        write(&world, put("b")).await.unwrap_err();
        assert!(world.faulty.calls(Operation::Create) > rolls, "a roll waits");
        world.faulty.set_capacity(Some(1 << 40));
        world.env.clock.sleep(DETECTED_WITHIN).await;
        write(&world, put("b")).await.unwrap();
    });
}

#[test]
fn a_lost_directory_refuses_all_writes_and_is_reported() {
    run(async {
        let world = World::begin().await;
        world.put("a").await;
        world.faulty.add(Rule::new(Fault::Fail).on(Operation::Stat).at("WALs"));
        world.env.clock.sleep(DETECTED_WITHIN).await;
        for mutation in [put("b"), delete("a")] {
            let refused = write(&world, mutation).await.unwrap_err();
            assert!(refused.to_string().contains("the data directory is lost"), "{refused}");
        }
        let failures = world.server.server_load().grampus_failures;
        assert!(failures[0].contains("The data directory is lost"), "{failures:?}");
        let begun = tokio::time::Instant::now();
        let unflushed = world.server.stop().await.unwrap_err();
        assert!(unflushed.contains("the data directory is lost"), "{unflushed}");
        assert!(begun.elapsed() < 2 * DETECTED_WITHIN, "{:?}", begun.elapsed());
    });
}

#[test]
fn an_unavailable_remote_file_system_is_not_lost() {
    run(async {
        let disk = Disk { poll_period: DETECTED_WITHIN / 6, ..Disk::remote() };
        let world = World::with_disk(disk).await;
        world.put("a").await;
        for fault in [Fault::Fail, Fault::Hang] {
            world.faulty.add(Rule::new(fault).on(Operation::Stat));
            // A poll that hangs fails after 30 s.
            world.env.clock.sleep(20 * DETECTED_WITHIN).await;
            write(&world, put("b")).await.unwrap();
            assert_eq!(world.server.server_load().grampus_failures, [""; 0], "{fault:?}");
            world.faulty.heal();
        }
        let log_dir = fs::FilePath::new(&format!("WALs/{}", world.server.name()));
        world.disk.delete(&log_dir).await.unwrap();
        world.env.clock.sleep(20 * DETECTED_WITHIN).await;
        let refused = write(&world, put("c")).await.unwrap_err();
        assert!(refused.to_string().contains("the data directory is lost"), "{refused}");
        // It stays lost while the file system is unavailable.
        world.faulty.add(Rule::new(Fault::Fail).on(Operation::Stat));
        world.env.clock.sleep(2 * DETECTED_WITHIN).await;
        write(&world, put("c")).await.unwrap_err();
    });
}

#[test]
fn a_stop_abandons_failing_flushes_and_the_log_keeps_the_edits() {
    run(async {
        let world = World::begin().await;
        world.put("a").await;
        world.faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default"));
        let begun = tokio::time::Instant::now();
        let unflushed = world.server.stop().await.unwrap_err();
        assert!(
            unflushed.contains("1 regions were not flushed") && unflushed.contains("planned fault"),
            "{unflushed}"
        );
        let took = begun.elapsed();
        assert!((Duration::from_secs(4)..Duration::from_secs(10)).contains(&took), "{took:?}");
        let dir = fs::FilePath::new(&format!("WALs/{}", world.server.name()));
        let paths = wal::recovery::logs_in(&world.faulty, &dir).await.unwrap();
        let index = wal::recovery::scan(&world.faulty, &paths).await.unwrap();
        let entries: u64 = index.logs().iter().map(|log| log.highest.len() as u64).sum();
        assert_eq!(entries, 1, "the region's edits are still in a log");
    });
}

#[test]
fn a_transient_flush_failure_does_not_fail_the_stop() {
    run(async {
        let world = World::begin().await;
        world.put("a").await;
        world.faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default").times(3));
        world.server.stop().await.unwrap();
    });
}
