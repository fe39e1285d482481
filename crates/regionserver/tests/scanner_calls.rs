//! Repeated, reordered and late calls of a scanner get the same responses as from HBase 2.5.10.

use std::time::Duration;

use crate::world::{World, run};
use bytes::Bytes;
use cell::schema::FamilyDescriptor;
use fs::faulty::{Fault, Operation, Rule};
use prost::Message;
use proto::{Scan, ScanRequest, ScanResponse};
use rpc::Codec;

const OUT_OF_ORDER: &str = "org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException";
const UNKNOWN: &str = "org.apache.hadoop.hbase.UnknownScannerException";

/// The outcome of a call: the number of rows and whether the region has more, or the exception.
#[derive(Debug, PartialEq)]
enum CallOutcome {
    Rows(usize, Option<bool>),
    Refused(String, String),
}

/// The response of an ended scanner: its id and nothing else.
const NOTHING: CallOutcome = CallOutcome::Rows(0, None);

fn out_of_order(expected: u64, got: u64) -> CallOutcome {
    let message = format!("Expected nextCallSeq: {expected} But the nextCallSeq got from client: {got}");
    CallOutcome::Refused(OUT_OF_ORDER.into(), message)
}

fn out_of_order_at_the_end(expected: u64, got: u64) -> CallOutcome {
    let message = format!(
        "Expected nextCallSeq for closed request: {expected} But the nextCallSeq got from client: {got}"
    );
    CallOutcome::Refused(OUT_OF_ORDER.into(), message)
}

async fn call(world: &World, request: &ScanRequest) -> (CallOutcome, Option<u64>) {
    match world.call_by(Codec::KeyValue, "Scan", request, Bytes::new()).await {
        Ok(reply) => {
            let response = ScanResponse::decode(reply.message).unwrap();
            let rows = CallOutcome::Rows(response.cells_per_result.len(), response.more_results_in_region);
            (rows, response.scanner_id)
        }
        Err(failure) => (CallOutcome::Refused(failure.class.into_owned(), failure.message), None),
    }
}

async fn open_with(
    world: &World,
    rows: u32,
    change: impl FnOnce(&mut ScanRequest),
) -> (CallOutcome, Option<u64>) {
    let mut request = ScanRequest {
        region: Some(world.region.clone()),
        scan: Some(Scan::default()),
        number_of_rows: Some(rows),
        ..Default::default()
    };
    change(&mut request);
    call(world, &request).await
}

/// Opens a scanner with a call that requests `rows` rows.
async fn open(world: &World, rows: u32) -> u64 {
    open_with(world, rows, |_| ()).await.1.unwrap()
}

fn next(id: u64, call_seq: Option<u64>, rows: u32) -> ScanRequest {
    ScanRequest {
        scanner_id: Some(id),
        next_call_seq: call_seq,
        number_of_rows: Some(rows),
        ..Default::default()
    }
}

/// A region of five rows.
async fn begin() -> World {
    let world = World::begin().await;
    for row in ["r0", "r1", "r2", "r3", "r4"] {
        world.put(row).await;
    }
    world
}

#[test]
fn a_call_that_repeats_the_one_that_exhausted_the_scanner_is_refused() {
    run(async {
        let world = begin().await;
        let (opened, id) = open_with(&world, 1000, |_| ()).await;
        assert_eq!(opened, CallOutcome::Rows(5, Some(false)));
        let id = id.unwrap();
        for _ in 0..2 {
            for wrong in [0, 2, 5] {
                let answer = call(&world, &next(id, Some(wrong), 1000)).await.0;
                assert_eq!(answer, out_of_order_at_the_end(1, wrong));
                let renewed = ScanRequest { renew: Some(true), ..next(id, Some(wrong), 0) };
                assert_eq!(call(&world, &renewed).await.0, out_of_order_at_the_end(1, wrong));
            }
            assert_eq!(call(&world, &next(id, Some(1), 1000)).await.0, NOTHING);
            assert_eq!(call(&world, &next(id, None, 1000)).await.0, NOTHING);
            // The client closes the scanner; this changes nothing.
            let close = ScanRequest { close_scanner: Some(true), ..next(id, None, 0) };
            assert_eq!(call(&world, &close).await.0, NOTHING);
        }

        let id = open(&world, 1).await;
        assert_eq!(call(&world, &next(id, Some(0), 1000)).await.0, CallOutcome::Rows(4, Some(false)));
        for wrong in [0, 1, 3] {
            let answer = call(&world, &next(id, Some(wrong), 1000)).await.0;
            assert_eq!(answer, out_of_order_at_the_end(2, wrong));
        }
        assert_eq!(call(&world, &next(id, Some(2), 1000)).await.0, NOTHING);
    });
}

#[test]
fn repeated_and_skipped_calls_of_an_open_scanner_are_refused() {
    run(async {
        let world = begin().await;
        let id = open(&world, 1).await;
        assert_eq!(call(&world, &next(id, Some(1), 1)).await.0, out_of_order(0, 1));
        assert_eq!(call(&world, &next(id, Some(0), 1)).await.0, CallOutcome::Rows(1, Some(true)));
        assert_eq!(call(&world, &next(id, Some(0), 1)).await.0, out_of_order(1, 0));
        assert_eq!(call(&world, &next(id, Some(1), 1)).await.0, CallOutcome::Rows(1, Some(true)));
        assert_eq!(call(&world, &next(id, Some(3), 1)).await.0, out_of_order(2, 3));
        let renew = |call_seq| ScanRequest { renew: Some(true), ..next(id, call_seq, 0) };
        assert_eq!(call(&world, &renew(Some(2))).await.0, NOTHING);
        assert_eq!(call(&world, &renew(Some(2))).await.0, out_of_order(3, 2));
        assert_eq!(call(&world, &renew(None)).await.0, NOTHING);
        assert_eq!(call(&world, &next(id, Some(3), 1)).await.0, CallOutcome::Rows(1, Some(true)));
        assert_eq!(call(&world, &next(id, None, 5)).await.0, CallOutcome::Rows(1, Some(false)));
        assert_eq!(call(&world, &next(id, Some(4), 1)).await.0, out_of_order_at_the_end(5, 4));
    });
}

#[test]
fn a_closed_scanner_remembers_the_closing_call() {
    run(async {
        let world = begin().await;
        let id = open(&world, 1).await;
        let close = |call_seq, rows| ScanRequest { close_scanner: Some(true), ..next(id, call_seq, rows) };
        assert_eq!(call(&world, &close(Some(1), 0)).await.0, out_of_order(0, 1));
        assert_eq!(call(&world, &close(Some(0), 1)).await.0, CallOutcome::Rows(1, Some(true)));
        for wrong in [0, 1] {
            let answer = call(&world, &next(id, Some(wrong), 1)).await.0;
            assert_eq!(answer, out_of_order_at_the_end(2, wrong));
        }
        assert_eq!(call(&world, &next(id, Some(2), 1)).await.0, NOTHING);

        let (opened, id) = open_with(&world, 2, |request| request.close_scanner = Some(true)).await;
        assert_eq!(opened, CallOutcome::Rows(2, Some(true)));
        let answer = call(&world, &next(id.unwrap(), Some(0), 1)).await.0;
        assert_eq!(answer, out_of_order_at_the_end(1, 0));

        // A row limit also ends the scanner.
        let id = open(&world, 1).await;
        let limited = ScanRequest { limit_of_rows: Some(1), ..next(id, Some(0), 2) };
        assert_eq!(call(&world, &limited).await.0, CallOutcome::Rows(1, Some(true)));
        assert_eq!(call(&world, &next(id, Some(0), 1)).await.0, out_of_order_at_the_end(2, 0));
    });
}

#[test]
fn the_call_that_opens_a_scanner_may_have_a_number() {
    run(async {
        let world = begin().await;
        let (opened, id) = open_with(&world, 1, |request| request.next_call_seq = Some(0)).await;
        assert_eq!(opened, CallOutcome::Rows(1, Some(true)));
        let id = id.unwrap();
        assert_eq!(call(&world, &next(id, Some(0), 1)).await.0, out_of_order(1, 0));
        assert_eq!(call(&world, &next(id, Some(1), 1)).await.0, CallOutcome::Rows(1, Some(true)));
        let (refused, _) = open_with(&world, 1, |request| request.next_call_seq = Some(7)).await;
        assert_eq!(refused, out_of_order(0, 7));
    });
}

#[test]
fn an_exhausted_scanner_is_unknown_after_its_lease() {
    run(async {
        let world = begin().await;
        let id = open(&world, 1000).await;
        world.env.clock.sleep(2 * world.server.options().scanner_lease).await;
        let (CallOutcome::Refused(class, _), _) = call(&world, &next(id, Some(0), 1)).await else {
            panic!("the scanner is still known");
        };
        assert_eq!(class, UNKNOWN);
    });
}

/// A call is dropped when its connection has been closed for a while.
#[test]
fn a_scanner_whose_call_was_dropped_is_forgotten() {
    run(async {
        let before = begin().await;
        before.served().flush().await.unwrap();
        // The new server has no block of the file in its cache.
        let world = before.after_power_loss(FamilyDescriptor::new("f")).await;
        world.faulty.add(Rule::new(Fault::Delay(Duration::from_secs(5))).on(Operation::Read));
        let request = open_with(&world, 1, |_| ());
        assert!(world.env.timeout(Duration::from_secs(1), request).await.is_none(), "it waits for a block");
        assert_eq!(world.server.scanners().open_count(), 0);
        world.faulty.heal();
        open(&world, 1).await;
        assert_eq!(world.server.scanners().open_count(), 1);
    });
}
