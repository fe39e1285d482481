//! A region server that is stopped while the master orders it to close and open regions.

use std::sync::atomic::Ordering;

use crate::world::{SECOND, World, run};
use cell::mutation::{Durability, Mutation};
use cell::region::RegionInfo;
use cell::schema::FamilyDescriptor;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use fs::faulty::{Fault, Operation, Rule};
use regionserver::Admin;
use wire::service::AdminService;

fn close_order(info: &RegionInfo, id: i64) -> proto::ExecuteProceduresRequest {
    let close = proto::CloseRegionRequest {
        region: proto::RegionSpecifier { r#type: 1, value: info.name() },
        close_proc_id: Some(id),
        grampus_region_info: Some(info.into()),
        ..Default::default()
    };
    proto::ExecuteProceduresRequest { close_region: vec![close], ..Default::default() }
}

fn open_order(info: &RegionInfo, id: i64) -> proto::ExecuteProceduresRequest {
    let open = proto::open_region_request::RegionOpenInfo {
        region: info.into(),
        open_proc_id: Some(id),
        ..Default::default()
    };
    let open = proto::OpenRegionRequest { open_info: vec![open], ..Default::default() };
    proto::ExecuteProceduresRequest { open_region: vec![open], ..Default::default() }
}

async fn put_unlogged(world: &World, row: &'static str) {
    let cell = KeyValue::new(row.as_bytes(), b"f", b"q", LATEST_TIMESTAMP, CellType::Put, b"v");
    let put = Mutation { durability: Durability::SkipWal, ..Mutation::put(row, vec![cell]) };
    world.served().batch(vec![put]).await.remove(0).unwrap();
}

#[test]
fn a_region_that_the_stop_closes_is_not_opened_again() {
    run(async {
        let world = World::begin().await;
        world.put("a").await;
        let info = world.served().info().clone();
        // The flush of the stop is slow.
        world.delay(Operation::Create, SECOND);
        let admin = Admin(world.server.clone());
        let reopen = async {
            world.env.clock.sleep(SECOND / 10).await;
            admin.execute_procedures(close_order(&info, 1)).await.unwrap();
            world.env.clock.sleep(SECOND / 10).await;
            admin.execute_procedures(open_order(&info, 2)).await.unwrap();
        };
        let (stopped, ()) = tokio::join!(world.server.stop(), reopen);
        stopped.unwrap();
        world.env.clock.sleep(60 * SECOND).await;
        assert!(world.server.regions().is_empty(), "a region that is open has edits that no file has");
    });
}

#[test]
fn regions_are_closed_at_the_same_time() {
    run(async {
        let world = World::begin().await;
        let table = world.served().info().table.clone();
        for id in 2..=6 {
            world.open(&RegionInfo::new(table.clone(), "".into(), "".into(), id)).await;
        }
        // Each close creates a file.
        world.delay(Operation::Create, SECOND);
        let begun = tokio::time::Instant::now();
        world.server.stop().await.unwrap();
        assert!(begun.elapsed() < 4 * SECOND, "{:?}", begun.elapsed());
    });
}

#[test]
fn a_stop_with_a_limit_abandons_regions_that_are_not_closed() {
    run(async {
        let world = World::begin().await;
        world.put("a").await;
        let region = world.served();
        world.faulty.add(Rule::new(Fault::Hang).on(Operation::Create).at("data/default"));
        let begun = tokio::time::Instant::now();
        world.server.stop_within(10 * SECOND).await.unwrap();
        assert!(begun.elapsed() < 11 * SECOND, "{:?}", begun.elapsed());
        assert!(world.server.regions().is_empty());
        assert_eq!(region.state(), engine::region::RegionState::Closed);
        let dir = fs::FilePath::new(&format!("WALs/{}", world.server.name()));
        let paths = wal::recovery::logs_in(&world.faulty, &dir).await.unwrap();
        let index = wal::recovery::scan(&world.faulty, &paths).await.unwrap();
        let entries: u64 = index.logs().iter().map(|log| log.highest.len() as u64).sum();
        assert_eq!(entries, 1, "the region's edits are still in a log");
    });
}

#[test]
fn a_stop_with_a_limit_abandons_logs_that_do_not_respond() {
    run(async {
        for operation in [Operation::Append, Operation::Sync] {
            let world = World::begin().await;
            world.put("a").await;
            world.faulty.add(Rule::new(Fault::Hang).on(operation).at("WALs/"));
            let begun = tokio::time::Instant::now();
            world.server.stop_within(10 * SECOND).await.unwrap();
            assert!(begun.elapsed() < 13 * SECOND, "{operation:?}: {:?}", begun.elapsed());
        }
    });
}

#[test]
fn a_stop_with_a_limit_flushes_edits_that_skip_the_log() {
    run(async {
        let world = World::begin().await;
        put_unlogged(&world, "a").await;
        world.faulty.add(Rule::new(Fault::Delay(20 * SECOND)).on(Operation::Create).at("data/default"));
        world.server.stop_within(10 * SECOND).await.unwrap();
        let next = world.after_power_loss(FamilyDescriptor::new("f")).await;
        next.get("a").await;
    });
}

#[test]
fn a_stop_with_a_limit_fails_only_if_edits_are_lost() {
    run(async {
        for is_logged in [true, false] {
            let world = World::begin().await;
            match is_logged {
                true => world.put("a").await,
                false => put_unlogged(&world, "a").await,
            }
            world.faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default"));
            let stopped = world.server.stop_within(10 * SECOND).await;
            match stopped {
                Ok(()) => assert!(is_logged, "the edit is lost"),
                Err(lost) => {
                    assert!(!is_logged, "{lost}");
                    assert!(
                        lost.contains("SKIP_WAL edits are lost") && lost.contains("planned fault"),
                        "{lost}"
                    );
                }
            }
        }
    });
}

#[test]
fn a_server_that_has_stopped_accepts_that_it_counts_as_dead() {
    run(async {
        let world = World::begin().await;
        world.put("a").await;
        world.server.stop().await.unwrap();
        world.is_dead.store(true, Ordering::Relaxed);
        // It panics if the server ends its process.
        world.server.report().await;
    });
}
