//! The server, tested with a raw client: HBase's responses to unusual openings, the order of
//! responses, limits, and hostile clients in bounded time. The clock is paused: time advances only
//! when no task can continue.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use proto::exception::{JavaException, class};
use rpc::frame::{self, RequestHeader};
use rpc::header::ConnectionHeader;
use rpc::{Authorizer, Call, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use support::{CLUSTER_ID, Harness, body, eventually, hex, java_header, request, request_with};

async fn harness() -> Harness {
    Harness::new(ServerOptions::default()).await
}

#[tokio::test(start_paused = true)]
async fn the_registry_preamble_is_answered_as_hbase_does() {
    let harness = harness().await;
    let mut raw = harness.raw().await;
    raw.send(b"Regist").await;
    let expected = hex(&format!("0000002e 06 08ffffffff0f 26 0a24 \"{CLUSTER_ID}\""));
    assert_eq!(raw.until_closed().await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_bad_preamble_is_answered_as_hbase_does() {
    let harness = harness().await;
    let mut raw = harness.raw().await;
    raw.send(b"Regish").await;
    let answer = raw.until_closed().await;
    // The captured response ends with another client's port, which has five digits as well.
    let captured = hex(
        "00000086 8401 08ffffffff0f 127c 0a34 \"org.apache.hadoop.hbase.ipc.FatalConnectionException\" 1242 \
        \"Expected HEADER=HBas but received HEADER=Regi from 127.0.0.1:46036\" 2801",
    );
    let port_at = captured.len() - 7;
    assert_eq!(answer.len(), captured.len());
    assert_eq!(answer[..port_at], captured[..port_at]);
    assert_eq!(answer[port_at + 5..], [0x28, 1]);
}

#[tokio::test(start_paused = true)]
async fn other_bad_preambles_name_their_class() {
    for (preamble, class) in [
        (b"HBas\x07P", "org.apache.hadoop.hbase.ipc.WrongVersionException"),
        (b"HBas\0\x60", "org.apache.hadoop.hbase.ipc.BadAuthException"),
        (b"GET / ", "org.apache.hadoop.hbase.ipc.FatalConnectionException"),
    ] {
        let mut raw = harness().await.raw().await;
        raw.send(preamble).await;
        let response = raw.response().await;
        let exception = response.outcome.unwrap_err();
        assert_eq!(response.call_id, u32::MAX);
        assert_eq!((exception.class.as_str(), exception.do_not_retry), (class, true));
        assert!(raw.until_closed().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_security_preamble_is_refused_and_the_connection_continues() {
    let harness = harness().await;
    let mut raw = harness.raw().await;
    raw.send(b"Securi").await;
    let exception = raw.response().await.outcome.unwrap_err();
    assert_eq!(exception.class, "org.apache.hadoop.hbase.ipc.SecurityNotEnabledException");
    assert!(!exception.do_not_retry);
    let mut opening = BytesMut::new();
    rpc::preamble::put_opening(&mut opening, &java_header().encode());
    raw.send(&opening).await;
    raw.call(1, "Echo", b"hello").await;
    assert_eq!(raw.response().await.outcome.unwrap().0, "hello");
}

#[tokio::test(start_paused = true)]
async fn a_sasl_client_is_switched_to_simple() {
    let harness = harness().await;
    let mut raw = harness.raw().await;
    raw.send(b"HBas\0Q").await;
    assert_eq!(raw.take(8).await, hex("00000000 ffffffa8"));
    let header = java_header().encode();
    raw.send(&hex("00000005 \"token\"")).await;
    raw.send(&(header.len() as u32).to_be_bytes()).await;
    raw.send(&header).await;
    raw.call(1, "Echo", b"").await;
    assert_eq!(raw.response().await.call_id, 1);
}

#[tokio::test(start_paused = true)]
async fn the_negotiated_properties_reach_the_service() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    let header = RequestHeader {
        call_id: 5,
        method: "Echo".into(),
        priority: 200,
        timeout_ms: Some(3),
        ..RequestHeader::default()
    };
    raw.send(&request_with(header, b"param", b"cells")).await;
    let (message, cells) = raw.response().await.outcome.unwrap();
    assert_eq!((&message[..], &cells[..]), (&b"param"[..], &b"cells"[..]));
    let call = harness.service.last.lock().unwrap().take().unwrap();
    assert_eq!(call.priority, 200);
    assert_eq!(call.timeout(), Some(Duration::from_millis(20)), "the minimum timeout is 20 ms");
    let info = &call.connection;
    assert_eq!((info.service, info.user()), ("ClientService", Some("alice")));
    assert_eq!(info.codec, Some(rpc::Codec::KeyValue));
    assert!(info.version_at_least(2, 5) && !info.version_at_least(2, 6));
}

/// Lets only `Echo` run, and only for `alice`.
#[derive(Debug)]
struct OnlyEchoOfAlice;

impl Authorizer for OnlyEchoOfAlice {
    fn authorize(&self, call: &Call) -> Result<(), JavaException> {
        match (call.connection.user(), &*call.method) {
            (Some("alice"), "Echo") => Ok(()),
            (user, method) => {
                Err(JavaException::new(class::ACCESS_DENIED, format!("{user:?} may not call {method}")))
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_authorized_does_not_reach_the_service() {
    let options = ServerOptions { authorizer: Arc::new(OnlyEchoOfAlice), ..ServerOptions::default() };
    let harness = Harness::new(options).await;
    let mut raw = harness.open().await;
    raw.call(1, "Fail", b"").await;
    let denied = raw.response().await.outcome.unwrap_err();
    assert_eq!(denied.class, class::ACCESS_DENIED.name);
    assert!(harness.service.last.lock().unwrap().is_none(), "the service was not called");
    raw.call(2, "Echo", b"param").await;
    assert!(raw.response().await.outcome.is_ok(), "the connection still serves authorized calls");
    assert_eq!(harness.service.last.lock().unwrap().take().unwrap().connection.principal, None);
    assert_eq!(harness.server.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order_when_ready_immediately() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    let mut all = BytesMut::new();
    for call_id in 0..1000u32 {
        all.extend_from_slice(&request(call_id, "Echo", &call_id.to_be_bytes(), &[]));
    }
    raw.send(&all).await;
    for call_id in 0..1000u32 {
        let response = raw.response().await;
        assert_eq!(
            (response.call_id, &response.outcome.unwrap().0[..]),
            (call_id, &call_id.to_be_bytes()[..])
        );
    }
    assert_eq!(harness.server.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_does_not_delay_later_ones() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    raw.call(1, "Wait", b"late").await;
    raw.call(2, "Yield", b"soon").await;
    raw.call(3, "Echo", b"now").await;
    let first = [raw.response().await.call_id, raw.response().await.call_id];
    assert!(first.contains(&2) && first.contains(&3), "{first:?}");
    harness.service.gate.notify_one();
    let late = raw.response().await;
    assert_eq!((late.call_id, late.outcome.unwrap().0), (1, "late".into()));
}

/// Requests arrive in pieces of every size, which also split the length fields.
#[tokio::test(start_paused = true)]
async fn frames_may_arrive_in_any_pieces() {
    let harness = harness().await;
    for step in [1, 2, 3, 7, 1000] {
        let mut raw = harness.open().await;
        let frames = [request(1, "Echo", b"abc", b"cells"), request(2, "Echo", &[], &[])].concat();
        for piece in frames.chunks(step) {
            raw.send(piece).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(raw.response().await.outcome.unwrap(), ("abc".into(), "cells".into()));
        assert_eq!(raw.response().await.call_id, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn large_frames_and_large_responses_are_transferred() {
    let harness = harness().await;
    let raw = harness.open().await;
    let cells: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let (env, frame) = (harness.env.clone(), request(9, "Echo", b"p", &cells));
    let (mut reader, mut writer) = tokio::io::split(raw.stream);
    env.spawn(base::env::TaskClass::Service, async move {
        writer.write_all(&frame).await.unwrap();
        std::future::pending::<()>().await;
    });
    let mut answer = vec![0; 4];
    use tokio::io::AsyncReadExt;
    reader.read_exact(&mut answer).await.unwrap();
    answer.resize(u32::from_be_bytes(answer[..].try_into().unwrap()) as usize, 0);
    reader.read_exact(&mut answer).await.unwrap();
    assert!(rpc::frame::parse_response(&answer.into()).unwrap().outcome.unwrap().1 == cells);
    assert_eq!(harness.server.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn failures_carry_class_text_and_location() {
    let mut raw = harness().await.open().await;
    raw.call(1, "Fail", b"").await;
    let exception = raw.response().await.outcome.unwrap_err();
    assert_eq!(exception.class, "org.apache.hadoop.hbase.exceptions.RegionMovedException");
    assert_eq!(exception.stack_trace, format!("{}: moved\n", exception.class));
    assert_eq!(exception.location, Some(("h1".into(), 16020)));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_fails_only_its_call() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    for (call_id, method) in [(1, "PanicAtOnce"), (2, "Panic")] {
        raw.call(call_id, method, b"").await;
        let response = raw.response().await;
        let exception = response.outcome.unwrap_err();
        assert_eq!(response.call_id, call_id);
        assert!(exception.do_not_retry && exception.stack_trace.contains("intended panic"), "{exception:?}");
    }
    raw.call(3, "Echo", b"alive").await;
    assert_eq!(raw.response().await.outcome.unwrap().0, "alive");
    assert_eq!(harness.server.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_with_their_times_and_bytes() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    let received_before = harness.server.instruments().received.get();
    raw.call(1, "Wait", &[7; 1000]).await;
    harness.env.clock.sleep(Duration::from_millis(70)).await;
    harness.service.gate.notify_one();
    raw.response().await;
    raw.call(2, "Fail", b"").await;
    raw.response().await;
    let calls = harness.server.instruments();
    let micros = calls.total_time.micros();
    assert_eq!((micros.count(), micros.sum()), (2, 70_000));
    assert_eq!(calls.process_time.micros().sum(), 70_000, "it was started immediately");
    assert_eq!((calls.exceptions.get(), calls.queue_time.micros().sum()), (1, 0));
    assert!((1000..1200).contains(&(calls.received.get() - received_before)));
    assert!(calls.sent.get() > 1000, "the server echoes the bytes that it received");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_big_is_answered_from_its_header_then_closed() {
    let harness = Harness::new(ServerOptions { max_request_bytes: 1000, ..ServerOptions::default() }).await;
    for (header, class) in [
        (java_header(), "org.apache.hadoop.hbase.exceptions.RequestTooBigException"),
        (ConnectionHeader { version: None, ..java_header() }, proto::exception::class::DO_NOT_RETRY_IO.name),
    ] {
        let mut raw = harness.open_with(&header).await;
        let frame = request(77, "Multi", &[0; 2000], &[]);
        let claimed = u32::from_be_bytes(frame[..4].try_into().unwrap());
        raw.send(&frame[..40]).await;
        let response = raw.response().await;
        let exception = response.outcome.unwrap_err();
        assert_eq!((response.call_id, exception.class.as_str(), exception.do_not_retry), (77, class, true));
        let text = format!(
            "{class}: RPC data length of {claimed} received from 127.0.0.1 is greater than max allowed 1000. Set \
             \"hbase.ipc.max.request.size\" on server to override this limit (not recommended)\n"
        );
        assert_eq!(exception.stack_trace, text);
        assert!(raw.until_closed().await.is_empty());
    }
}

/// The historical ping, and the maximum value of a length field.
#[tokio::test(start_paused = true)]
async fn a_length_of_minus_one_followed_by_garbage_closes_the_connection() {
    let mut raw = harness().await.open().await;
    raw.send(&hex("ffffffff ffffffffffffffffffffffff")).await;
    assert!(raw.until_closed().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_inconsistent_body_fails_only_its_call() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    let header = RequestHeader { call_id: 4, method: "Echo".into(), ..RequestHeader::default() };
    let mut truncated = request_with(header, b"abc", b"cells").to_vec();
    truncated.truncate(truncated.len() - 2);
    let len = (truncated.len() - 4) as u32;
    truncated[..4].copy_from_slice(&len.to_be_bytes());
    raw.send(&truncated).await;
    let response = raw.response().await;
    let exception = response.outcome.unwrap_err();
    assert_eq!(
        (response.call_id, exception.class.as_str()),
        (4, proto::exception::class::DO_NOT_RETRY_IO.name)
    );
    raw.call(5, "Echo", b"").await;
    assert_eq!(raw.response().await.call_id, 5);
    assert_eq!(harness.service.begun.load(Ordering::SeqCst), 1);
    assert_eq!(harness.server.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_budget_are_told_to_retry() {
    let options = ServerOptions { queued_bytes_max: 300_000, ..ServerOptions::default() };
    let harness = Harness::new(options).await;
    let mut holder = harness.open().await;
    holder.send(&request(1, "Wait", b"", &vec![0; 200_000])).await;
    eventually(&harness.env, || harness.service.begun.load(Ordering::SeqCst) == 1).await;

    let mut other = harness.open().await;
    other.send(&request(2, "Echo", b"", &vec![0; 150_000])).await;
    let response = other.response().await;
    let exception = response.outcome.unwrap_err();
    assert_eq!(response.call_id, 2);
    assert_eq!(exception.class, "org.apache.hadoop.hbase.CallQueueTooBigException");
    assert!(exception.server_overloaded && !exception.do_not_retry);
    // The rejected body was skipped, not parsed as requests; small requests are still admitted.
    other.call(3, "Echo", b"small").await;
    assert_eq!(other.response().await.outcome.unwrap().0, "small");

    harness.service.gate.notify_one();
    assert_eq!(holder.response().await.call_id, 1);
    other.send(&request(4, "Echo", b"", &vec![0; 150_000])).await;
    assert_eq!(other.response().await.outcome.unwrap().1.len(), 150_000);
    assert_eq!(harness.server.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_an_incomplete_frame_are_counted() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    let frame = request(1, "Echo", b"", &[7; 60_000]);
    raw.send(&frame[..50_000]).await;
    eventually(&harness.env, || harness.server.queued_bytes() >= 50_000).await;
    raw.send(&frame[50_000..]).await;
    assert_eq!(raw.response().await.outcome.unwrap().1.len(), 60_000);
    assert_eq!(harness.server.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn frames_that_only_claim_to_be_large_cost_nothing() {
    let harness = harness().await;
    let mut raws = Vec::new();
    for _ in 0..20 {
        let mut raw = harness.open().await;
        raw.send(&hex("0fffffff 05 0801 1a0141")).await;
        raws.push(raw);
    }
    harness.env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(harness.server.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_has_ten_seconds() {
    for sent in [&b""[..], b"HB", b"HBas\0P", b"HBas\0P\0\0\0\x62\x0a", b"Securi", b"HBas\0Q"] {
        let harness = harness().await;
        let started = harness.env.clock.monotonic();
        let mut raw = harness.raw().await;
        raw.send(sent).await;
        raw.until_closed().await;
        let took = harness.env.clock.monotonic() - started;
        assert!((10..11).contains(&took.as_secs()), "{sent:?}: {took:?}");
        assert_eq!(harness.server.connections(), 0);
    }
}

/// Sending one byte per second does not extend the handshake timeout.
#[tokio::test(start_paused = true)]
async fn a_slow_handshake_is_closed_however_steady() {
    let harness = harness().await;
    let started = harness.env.clock.monotonic();
    let mut raw = harness.raw().await;
    let mut opening = BytesMut::new();
    rpc::preamble::put_opening(&mut opening, &java_header().encode());
    for byte in opening {
        if raw.stream.write_all(&[byte]).await.is_err() {
            break;
        }
        harness.env.clock.sleep(Duration::from_secs(1)).await;
    }
    assert!(harness.env.clock.monotonic() - started < Duration::from_secs(13));
}

#[tokio::test(start_paused = true)]
async fn long_headers_and_tokens_are_refused_unread() {
    for opening in ["\"HBas\" 0050 00004001", "\"HBas\" 0050 ffffffff", "\"HBas\" 0051 7fffffff"] {
        let harness = harness().await;
        let started = harness.env.clock.monotonic();
        let mut raw = harness.raw().await;
        raw.send(&hex(opening)).await;
        raw.until_closed().await;
        assert!(harness.env.clock.monotonic() - started < Duration::from_secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn half_a_frame_is_waited_for_a_minute() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    raw.call(1, "Echo", b"").await;
    raw.response().await;
    harness.env.clock.sleep(Duration::from_secs(600)).await;
    raw.call(2, "Echo", b"").await;
    assert_eq!(raw.response().await.call_id, 2, "idle time between frames is not a stall");

    let started = harness.env.clock.monotonic();
    raw.send(&request(3, "Echo", b"abcdef", &[])[..9]).await;
    assert!(raw.until_closed().await.is_empty());
    let took = harness.env.clock.monotonic() - started;
    assert!((60..62).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_not_read_from_and_then_closed() {
    let options = ServerOptions { unsent_bytes_soft_max: 100_000, ..ServerOptions::default() };
    let harness = Harness::new(options).await;
    let mut raw = harness.open().await;
    for call_id in 0..200u32 {
        raw.call(call_id, "Cells", &10_000u32.to_be_bytes()).await;
    }
    harness.env.clock.sleep(Duration::from_secs(1)).await;
    // The pipe holds 64 KiB and the server stops at the soft limit: about 17 calls, not 200.
    let begun = harness.service.begun.load(Ordering::SeqCst);
    assert!((10..25).contains(&begun), "{begun}");
    // When the client reads again, all responses arrive in order.
    for call_id in 0..200u32 {
        assert_eq!(raw.response().await.call_id, call_id);
    }

    raw.call(1000, "Cells", &1_000_000u32.to_be_bytes()).await;
    harness.env.clock.sleep(Duration::from_secs(70)).await;
    assert_eq!(harness.server.connections(), 0, "not reading for a minute closes the connection");
}

#[tokio::test(start_paused = true)]
async fn occasional_bytes_are_not_enough() {
    let harness = harness().await;
    let mut slow_reader = harness.open().await;
    slow_reader.call(1, "Cells", &1_000_000u32.to_be_bytes()).await;
    let mut slow_writer = harness.open().await;
    let frame = request(1, "Echo", &[7; 1000], &[]);
    for byte in &frame[..150] {
        let _ = slow_writer.stream.write_all(&[*byte]).await;
        let _ = slow_reader.stream.read_u8().await;
        harness.env.clock.sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(harness.server.connections(), 0);
    assert_eq!(harness.server.shared().stalled(), 2);
    assert_eq!((harness.server.queued_bytes(), harness.server.shared().response_budget().used()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn unread_responses_are_counted_and_their_connection_is_closed_under_pressure() {
    let options = ServerOptions { response_bytes_max: 1 << 20, ..ServerOptions::default() };
    let harness = Harness::new(options).await;
    let mut other = harness.open().await;
    let mut holder = harness.open().await;
    holder.call(1, "Cells", &2_000_000u32.to_be_bytes()).await;
    harness.env.clock.sleep(Duration::from_secs(1)).await;
    assert!(harness.server.shared().response_budget().used() >= 1_900_000, "unread responses are counted");
    other.call(1, "Echo", b"").await;
    let refused = other.response().await.outcome.unwrap_err();
    assert_eq!(refused.class, "org.apache.hadoop.hbase.CallQueueTooBigException");
    assert!(refused.server_overloaded && !refused.do_not_retry);
    assert_eq!(harness.server.shared().calls_refused(), 1);
    harness.env.clock.sleep(Duration::from_secs(5)).await;
    assert_eq!(
        harness.server.connections(),
        1,
        "under memory pressure, a client that does not read is closed sooner"
    );
    other.call(2, "Echo", b"").await;
    assert!(other.response().await.outcome.is_ok());
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_maximum_are_refused() {
    let options = ServerOptions { calls_max: Some(2), ..ServerOptions::default() };
    let harness = Harness::new(options).await;
    let mut raw = harness.open().await;
    for call_id in 1..=3 {
        raw.call(call_id, "Wait", b"").await;
    }
    let refused = raw.response().await;
    assert_eq!(refused.call_id, 3);
    let refused = refused.outcome.unwrap_err();
    assert_eq!(refused.class, "org.apache.hadoop.hbase.CallQueueTooBigException");
    assert!(refused.stack_trace.contains("too many items queued ?"), "{refused:?}");
    harness.service.gate.notify_waiters();
    assert!(raw.response().await.outcome.is_ok() && raw.response().await.outcome.is_ok());
    raw.call(4, "Echo", b"").await;
    assert_eq!(raw.response().await.call_id, 4);
}

#[tokio::test(start_paused = true)]
async fn calls_for_user_tables_do_not_shut_out_system_calls() {
    let options = ServerOptions { calls_max: Some(2), ..ServerOptions::default() };
    let harness = Harness::new(options).await;
    let (mut user, mut system) = (harness.open().await, harness.open().await);
    let call = |call_id, priority, method: &str| {
        let header = RequestHeader { call_id, priority, method: method.into(), ..RequestHeader::default() };
        request_with(header, b"", &[])
    };
    for (call_id, priority) in [(1, 0), (2, 10), (3, 0)] {
        user.send(&call(call_id, priority, "Wait")).await;
    }
    assert!(user.response().await.outcome.is_err(), "the third call");
    for (call_id, priority) in [(1, 100), (2, 200)] {
        system.send(&call(call_id, priority, "Echo")).await;
        assert!(system.response().await.outcome.is_ok());
    }
    for call_id in 3..=5 {
        system.send(&call(call_id, 200, "Wait")).await;
    }
    let refused = system.response().await;
    assert_eq!((refused.call_id, refused.outcome.is_err()), (5, true), "they have the same maximum");
}

#[tokio::test(start_paused = true)]
async fn servers_share_their_limits() {
    let options = ServerOptions { connections_max: 1, ..ServerOptions::default() };
    let shared = rpc::server::Shared::new(&options);
    let one = Harness::sharing(options.clone(), shared.clone()).await;
    let two = Harness::sharing(options, shared.clone()).await;
    let client = one.open().await;
    eventually(&one.env, || one.server.connections() == 1).await;
    assert!(two.raw().await.until_closed().await.is_empty());
    assert_eq!((shared.connections(), shared.connections_rejected()), (1, 1));
    drop(client);
    eventually(&one.env, || shared.connections() == 0).await;
    let mut raw = two.open().await;
    raw.call(1, "Echo", b"").await;
    assert_eq!(raw.response().await.call_id, 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_queued_past_its_deadline_is_dropped() {
    let options = ServerOptions { unsent_bytes_soft_max: 10_000, ..ServerOptions::default() };
    let harness = Harness::new(options).await;
    let mut raw = harness.open().await;
    let hurried = |call_id, timeout_ms| {
        let header = RequestHeader { call_id, method: "Echo".into(), timeout_ms, ..RequestHeader::default() };
        request_with(header, b"x", &[])
    };
    let both =
        [request(1, "Cells", &200_000u32.to_be_bytes(), &[]), hurried(2, Some(1000)), hurried(3, None)];
    raw.send(&both.concat()).await;
    harness.env.clock.sleep(Duration::from_secs(5)).await;
    assert_eq!(raw.response().await.call_id, 1);
    assert_eq!(raw.response().await.call_id, 3, "call 2 has timed out");
}

#[tokio::test(start_paused = true)]
async fn a_call_continues_when_its_client_has_disconnected() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    raw.call(1, "Wait", b"").await;
    eventually(&harness.env, || harness.service.begun.load(Ordering::SeqCst) == 1).await;
    drop(raw);
    harness.env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(harness.service.ended.load(Ordering::SeqCst), 0);
    harness.service.gate.notify_one();
    eventually(&harness.env, || harness.service.ended.load(Ordering::SeqCst) == 1).await;
    eventually(&harness.env, || harness.server.connections() == 0).await;
}

/// The same for a connection that the server closes because its responses are not read.
#[tokio::test(start_paused = true)]
async fn a_call_continues_when_its_client_has_stalled() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    raw.call(1, "Wait", b"").await;
    raw.call(2, "Cells", &1_000_000u32.to_be_bytes()).await;
    harness.env.clock.sleep(Duration::from_secs(70)).await;
    assert_eq!(harness.service.ended.load(Ordering::SeqCst), 1, "the waiting call still waits");
    harness.service.gate.notify_one();
    eventually(&harness.env, || harness.service.ended.load(Ordering::SeqCst) == 2).await;
    eventually(&harness.env, || harness.server.connections() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn connections_beyond_the_caps_are_closed() {
    let options =
        ServerOptions { connections_max: 5, handshakes_per_address_max: 3, ..ServerOptions::default() };
    let harness = Harness::new(options).await;
    let mut handshakes = Vec::new();
    for _ in 0..3 {
        handshakes.push(harness.raw().await);
    }
    assert!(harness.raw().await.until_closed().await.is_empty(), "a fourth handshake from one address");
    handshakes.clear();
    eventually(&harness.env, || harness.server.connections() == 0).await;
    let mut clients = Vec::new();
    for call_id in 0..5 {
        let mut client = harness.open().await;
        client.call(call_id, "Echo", b"").await;
        client.response().await;
        clients.push(client);
    }
    assert!(harness.raw().await.until_closed().await.is_empty(), "a sixth connection");
    clients[0].call(9, "Echo", b"").await;
    assert_eq!(clients[0].response().await.call_id, 9);
}

#[tokio::test(start_paused = true)]
async fn stopping_answers_the_started_calls() {
    let harness = harness().await;
    let mut raw = harness.open().await;
    raw.call(1, "Wait", b"last").await;
    eventually(&harness.env, || harness.service.begun.load(Ordering::SeqCst) == 1).await;
    let server = harness.server.clone();
    let stopping = harness.env.spawn(base::env::TaskClass::Service, async move { server.stop().await });
    harness.env.clock.sleep(Duration::from_secs(1)).await;
    harness.service.gate.notify_one();
    assert_eq!(raw.response().await.outcome.unwrap().0, "last");
    assert!(raw.until_closed().await.is_empty());
    stopping.await.unwrap();
    assert_eq!(harness.server.connections(), 0);
    assert!(
        harness.env.net.connect("localhost", harness.port).await.is_err() || {
            harness.raw().await.until_closed().await.is_empty()
        }
    );
}

/// Whatever a client sends after a valid opening, its connection ends or continues, and the server
/// serves others.
#[tokio::test(start_paused = true)]
async fn random_bytes_harm_no_other_connection() {
    let harness = harness().await;
    let random = &harness.env.random;
    for round in 0..500u64 {
        let mut raw = if round % 3 == 0 { harness.raw().await } else { harness.open().await };
        let mut bytes = vec![0; (random.next_u64() % 2000) as usize];
        random.fill(&mut bytes);
        if round % 2 == 0 {
            // A plausible length field reaches deeper code paths.
            let len = (bytes.len() as u32).saturating_sub(4).to_be_bytes();
            bytes.splice(..4.min(bytes.len()), len);
        }
        let _ = raw.stream.write_all(&bytes).await;
        if round % 5 == 0 {
            let _ = raw.stream.shutdown().await;
            raw.until_closed().await;
        }
    }
    let mut raw = harness.open().await;
    raw.call(1, "Echo", b"alive").await;
    assert_eq!(raw.response().await.outcome.unwrap().0, "alive");
    drop(raw);
    harness.env.clock.sleep(Duration::from_secs(100)).await;
    assert_eq!((harness.server.connections(), harness.server.queued_bytes()), (0, 0));
}

/// The names of HBase's services. A service that a port does not have is rejected with a message
/// that every client understands.
#[tokio::test(start_paused = true)]
async fn an_unknown_service_is_named_and_the_connection_closed() {
    let harness = Harness::new(ServerOptions::default()).await;
    for service in
        [Some("AdminService"), Some("MasterService"), Some("HbckService"), Some("x"), Some(""), None]
    {
        let header = ConnectionHeader { service_name: service.map(String::from), ..java_header() };
        let answer = harness.open_with(&header).await.until_closed().await;
        let response = frame::parse_response(&body(&answer)).unwrap();
        assert_eq!(response.call_id, rpc::preamble::CONNECTION_CALL_ID);
        let exception = response.outcome.unwrap_err();
        assert_eq!(exception.class, "org.apache.hadoop.hbase.ipc.FatalConnectionException");
        let text = exception.stack_trace;
        assert!(text.starts_with("org.apache.hadoop.hbase.ipc.UnknownServiceException: "), "{text}");
        assert!(text.contains(service.unwrap_or("no service is named")) && exception.do_not_retry, "{text}");
    }
    let header = ConnectionHeader { codec_class: Some("org.example.Codec".into()), ..java_header() };
    let answer = harness.open_with(&header).await.until_closed().await;
    let exception = frame::parse_response(&body(&answer)).unwrap().outcome.unwrap_err();
    assert!(exception.stack_trace.contains("UnsupportedCellCodecException: org.example.Codec"));
}
