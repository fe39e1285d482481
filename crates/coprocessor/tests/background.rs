//! Long-running calls: what ends them early, and what happens in the meantime. Loads of blocks are
//! delayed here, so that there is enough time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{World, call, column, refused, request, run, world};
use coprocessor::Error;
use engine::region::CompactionKind;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use prost::Message;

/// Duration of a block load.
const LOAD: Duration = Duration::from_secs(1);
const ROWS: i64 = 1200;

/// A region with a file of many blocks, each of which loads slowly.
async fn slow() -> (World, Faulty) {
    let env = base::testing::env(7);
    let fs = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    let world = world(Arc::new(fs.clone()), env).await;
    for row in 0..ROWS {
        world.put(&format!("r{row:05}"), &[("l", 1, &row.to_be_bytes()), ("m", 1, &[7; 4000])]).await;
    }
    world.region.flush().await.unwrap();
    fs.add(Rule::new(Fault::Delay(LOAD)).on(Operation::Read).at("/f/"));
    (world, fs)
}

/// Requests the sum of all rows, with a client timeout.
async fn sum(world: &World, timeout: Option<Duration>) -> coprocessor::Result<i64> {
    let call = call("AggregateService", "GetSum", &request("Long", &column("l")).encode_to_vec());
    let response = world.endpoints.call(&world.region, &call, timeout).await?;
    let answer = proto::AggregateResponse::decode(&response.message[..]).unwrap();
    Ok(proto::LongMsg::decode(answer.first_part[0].clone()).unwrap().long_msg)
}

fn whole_sum() -> i64 {
    (0..ROWS).sum()
}

#[test]
fn a_call_ends_when_its_client_disconnects() {
    run(async {
        let (world, fs) = slow().await;
        let holders = Arc::strong_count(&world.region);
        let finished = world.env.timeout(3 * LOAD, sum(&world, None)).await;
        assert!(finished.is_none(), "the call takes longer");
        world.env.clock.sleep(2 * LOAD).await;
        let reads = fs.calls(Operation::Read);
        world.env.clock.sleep(20 * LOAD).await;
        assert_eq!(fs.calls(Operation::Read), reads, "no reads after the client has disconnected");
        assert_eq!(Arc::strong_count(&world.region), holders);
        fs.heal();
        assert_eq!(sum(&world, None).await.unwrap(), whole_sum(), "its permit is free again");
    });
}

#[test]
fn a_call_ends_at_its_deadline() {
    run(async {
        let (world, _) = slow().await;
        let begun = world.env.clock.monotonic();
        let error = refused(sum(&world, Some(3 * LOAD)).await.unwrap_err());
        assert_eq!(error.message, "the client no longer waits");
        assert!(world.env.clock.monotonic() - begun < 6 * LOAD);
    });
}

#[test]
fn a_call_ends_when_its_region_closes() {
    run(async {
        let (world, _) = slow().await;
        let closes = async {
            world.env.clock.sleep(3 * LOAD).await;
            world.region.close().await.unwrap();
        };
        let (answer, ()) = tokio::join!(sum(&world, None), closes);
        assert!(matches!(answer, Err(Error::Region(engine::Error::NotServing { .. }))), "{answer:?}");
    });
}

#[test]
fn a_call_reads_a_snapshot_of_its_start() {
    run(async {
        let (world, _) = slow().await;
        let changes = async {
            world.env.clock.sleep(3 * LOAD).await;
            for row in [ROWS - 1, ROWS + 1] {
                world.put(&format!("r{row:05}"), &[("l", 2, &1_000_000i64.to_be_bytes())]).await;
            }
            world.region.flush().await.unwrap();
            world.region.compact(None, CompactionKind::Major).await.unwrap();
        };
        let (answer, ()) = tokio::join!(sum(&world, None), changes);
        assert_eq!(answer.unwrap(), whole_sum());
        assert_eq!(sum(&world, None).await.unwrap(), whole_sum() - (ROWS - 1) + 2_000_000);
    });
}

#[test]
fn many_calls_are_queued_and_all_are_answered() {
    run(async {
        let (world, _) = slow().await;
        let world = Arc::new(world);
        let mut calls = Vec::new();
        for _ in 0..20 {
            let (done, answer) = tokio::sync::oneshot::channel();
            let query = world.clone();
            world.env.spawn(base::env::TaskClass::Connection, async move {
                let _ = done.send(sum(&query, None).await);
            });
            calls.push(answer);
        }
        for answer in calls {
            assert_eq!(answer.await.unwrap().unwrap(), whole_sum());
        }
    });
}
