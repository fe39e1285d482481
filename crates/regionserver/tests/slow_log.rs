//! Calls of a server with a slow disk are in the slow log, with the phase that they waited for:
//! blocks or the log.

use std::time::Duration;

use crate::world::{SECOND, World, run};
use fs::faulty::{Fault, Operation, Rule};
use regionserver::Admin;
use regionserver::slow_log::CallPhase;
use wire::service::AdminService;

fn is_about(time: Duration, expected: Duration) -> bool {
    time >= expected && time < expected + SECOND / 10
}

#[test]
fn a_write_that_waits_for_the_log_is_attributed_to_it() {
    run(async {
        let world = World::begin().await;
        world.put("quick").await;
        assert!(world.slow_calls().is_empty());
        world.delay(Operation::Sync, SECOND);
        world.put("slow").await;
        let [call] = &world.slow_calls()[..] else { panic!("one slow call") };
        assert_eq!((call.method.as_str(), call.phases.longest()), ("Mutate", CallPhase::Wal));
        assert!(is_about(call.took, SECOND) && is_about(call.phases.get(CallPhase::Wal), SECOND), "{call:?}");
        assert!(call.details.param.contains("row= slow, type= PUT"), "{call:?}");
        assert_eq!((call.user.as_str(), call.details.table.as_deref()), ("me", Some("t")));
    });
}

#[test]
fn reads_that_wait_for_blocks_are_attributed_to_the_disk() {
    run(async {
        let world = World::begin().await;
        world.put("row").await;
        let region = world.server.regions().all().remove(0);
        region.flush().await.unwrap();
        world.delay(Operation::Read, SECOND);
        world.get("row").await;
        world.get("row").await;
        let [call] = &world.slow_calls()[..] else { panic!("one slow call: the second one hits the cache") };
        assert_eq!((call.method.as_str(), call.phases.longest()), ("Get", CallPhase::Disk));
        assert!(
            call.phases.get(CallPhase::Disk) >= SECOND && call.phases.get(CallPhase::Wal).is_zero(),
            "{call:?}"
        );
    });
}

#[test]
fn a_damaged_block_is_counted() {
    run(async {
        let world = World::begin().await;
        world.put("row").await;
        let region = world.server.regions().all().remove(0);
        region.flush().await.unwrap();
        world.faulty.add(Rule::new(Fault::Flip).on(Operation::Read));
        let get =
            cell::query::Get { row: "row".into(), selection: Default::default(), existence_only: false };
        let damaged = region.get(&get).await.err().expect("a wrong byte is not returned");
        assert!(damaged.to_string().contains("corrupt"), "{damaged}");
        // The block of the Bloom filter, without which the read continued, and the data block.
        assert_eq!(world.server.damaged_reads(), 2);
        world.faulty.heal();
        world.get("row").await;
        assert_eq!(world.server.damaged_reads(), 2);
    });
}

#[test]
fn the_newest_calls_are_retained() {
    run(async {
        let world = World::begin().await;
        world.delay(Operation::Sync, SECOND);
        for row in ["a", "b", "c"] {
            world.put(row).await;
        }
        let rows: Vec<_> = world.slow_calls().iter().map(|call| call.details.param.clone()).collect();
        assert!(rows.len() == 2 && rows[0].contains("row= c") && rows[1].contains("row= b"), "{rows:?}");
        world.scan().await;
        assert_eq!(world.slow_calls().len(), 2);
        assert!(world.server.slow_log().clear() && world.slow_calls().is_empty());
    });
}

#[test]
fn requested_calls_are_selected() {
    run(async {
        let world = World::begin().await;
        world.delay(Operation::Sync, SECOND);
        world.put("row").await;
        let admin = Admin(world.server.clone());
        let count = async |request: proto::SlowLogResponseRequest| {
            admin.get_slow_log_responses(request).await.unwrap().slow_log_payloads.len()
        };
        let of_table = |table: &str| proto::SlowLogResponseRequest {
            table_name: Some(table.into()),
            user_name: Some("me".into()),
            ..Default::default()
        };
        let both = proto::slow_log_response_request::FilterByOperator::And as i32;
        assert_eq!(count(proto::SlowLogResponseRequest::default()).await, 1);
        assert_eq!(count(of_table("other")).await, 1, "one matching condition is enough");
        assert_eq!(
            count(proto::SlowLogResponseRequest { filter_by_operator: Some(both), ..of_table("other") })
                .await,
            0
        );
        assert_eq!(
            count(proto::SlowLogResponseRequest { filter_by_operator: Some(both), ..of_table("t") }).await,
            1
        );
        assert_eq!(count(proto::SlowLogResponseRequest { limit: Some(0), ..Default::default() }).await, 0);
        let large = admin.get_large_log_responses(proto::SlowLogResponseRequest::default()).await.unwrap();
        assert!(large.slow_log_payloads.is_empty());
        let other = proto::LogRequest { log_class_name: "Balancer".into(), log_message: Default::default() };
        assert!(admin.get_log_entries(other).await.unwrap_err().do_not_retry);
    });
}
