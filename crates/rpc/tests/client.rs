//! The client's connection, tested with the server and with misbehaving servers.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::Duration;

use bytes::Bytes;
use rpc::client::{Answer, ConnectOptions, Connection, Error, Request};
use rpc::{CellBlock, ServerOptions};
use support::{Harness, hex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn connect(harness: &Harness) -> Connection {
    let options = ConnectOptions::for_user("bob");
    Connection::connect(&harness.env, "localhost", harness.port, "ClientService", &options).await.unwrap()
}

fn request(method: &str, param: impl Into<Bytes>) -> Request {
    Request {
        method: method.into(),
        param: param.into(),
        cells: CellBlock::new(),
        timeout: Duration::from_secs(5),
        priority: 0,
    }
}

#[tokio::test(start_paused = true)]
async fn calls_and_cells_are_sent_both_ways() {
    let harness = Harness::new(ServerOptions::default()).await;
    let connection = connect(&harness).await;
    let mut cells = CellBlock::new();
    cells.tail().extend_from_slice(b"small");
    cells.push(Bytes::from(vec![9; 500_000]));
    let sent = cells.clone().into_bytes();
    let answer = connection.call(Request { cells, ..request("Echo", "message") }).await.unwrap();
    assert_eq!(answer, Answer { message: "message".into(), cells: sent });
    let call = harness.service.last.lock().unwrap().take().unwrap();
    assert_eq!(call.connection.user(), Some("bob"));
    assert_eq!(call.timeout(), Some(Duration::from_secs(5)));
    assert!(call.connection.version_at_least(1, 3), "so that Get results are sent as cell blocks");
}

#[tokio::test(start_paused = true)]
async fn many_calls_share_a_connection() {
    let harness = Harness::new(ServerOptions::default()).await;
    let connection = connect(&harness).await;
    let late = connection.call(request("Wait", "late"));
    let others = async {
        for n in 0..500u32 {
            let answer = connection.call(request("Echo", n.to_be_bytes().to_vec())).await.unwrap();
            assert_eq!(answer.message, n.to_be_bytes()[..]);
        }
        harness.service.gate.notify_one();
    };
    let (late, ()) = tokio::join!(late, others);
    assert_eq!(late.unwrap().message, "late");
}

#[tokio::test(start_paused = true)]
async fn exceptions_are_typed() {
    let harness = Harness::new(ServerOptions::default()).await;
    let error = connect(&harness).await.call(request("Fail", "")).await.unwrap_err();
    let Error::Remote(exception) = error else { panic!("{error}") };
    assert_eq!(exception.class, "org.apache.hadoop.hbase.exceptions.RegionMovedException");
    assert_eq!(exception.location, Some(("h1".into(), 16020)));
}

#[tokio::test(start_paused = true)]
async fn a_late_response_is_dropped_and_the_connection_continues() {
    let harness = Harness::new(ServerOptions::default()).await;
    let connection = connect(&harness).await;
    let error = connection.call(request("Wait", "late")).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    harness.service.gate.notify_one();
    assert_eq!(connection.call(request("Echo", "next")).await.unwrap().message, "next");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_silent_for_long_takes_no_more_calls() {
    let harness = Harness::new(ServerOptions::default()).await;
    let connection = connect(&harness).await;
    let slow = |seconds| Request { timeout: Duration::from_secs(seconds), ..request("Wait", "slow") };
    let late = async {
        harness.env.clock.sleep(Duration::from_secs(50)).await;
        connection.call(slow(60)).await
    };
    let first = async {
        assert!(matches!(connection.call(slow(60)).await, Err(Error::TimedOut { .. })));
        assert!(connection.is_lost());
        assert!(matches!(connection.call(request("Echo", "")).await, Err(Error::Lost(_))));
        harness.service.gate.notify_waiters();
    };
    let (late, ()) = tokio::join!(late, first);
    assert_eq!(late.unwrap().message, "slow", "a waiting call still gets its response");
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_kept_if_requests_must_stay_in_order() {
    let harness = Harness::new(ServerOptions::default()).await;
    let options = ConnectOptions { silence_max: None, ..ConnectOptions::for_user("bob") };
    let connection = Connection::connect(&harness.env, "localhost", harness.port, "ClientService", &options)
        .await
        .unwrap();
    let slow = Request { timeout: Duration::from_secs(100), ..request("Wait", "slow") };
    assert!(matches!(connection.call(slow).await, Err(Error::TimedOut { .. })));
    assert_eq!(connection.call(request("Echo", "next")).await.unwrap().message, "next");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_while_others_are_answered_does_not_affect_the_connection() {
    let harness = Harness::new(ServerOptions::default()).await;
    let connection = connect(&harness).await;
    let hung = Request { timeout: Duration::from_secs(100), ..request("Wait", "hung") };
    let others = async {
        harness.env.clock.sleep(Duration::from_secs(30)).await;
        connection.call(request("Echo", "")).await.unwrap();
    };
    let (hung, ()) = tokio::join!(connection.call(hung), others);
    assert!(matches!(hung, Err(Error::TimedOut { .. })) && !connection.is_lost());
    connection.call(request("Echo", "")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_fails_its_calls_and_takes_no_more() {
    let harness = Harness::new(ServerOptions::default()).await;
    let options = ConnectOptions::for_user("bob");
    let unknown = Connection::connect(&harness.env, "localhost", harness.port, "NoSuchService", &options)
        .await
        .unwrap();
    let error = unknown.call(request("Echo", "")).await.unwrap_err();
    let Error::Remote(exception) = &error else { panic!("{error}") };
    assert!(exception.class.ends_with("FatalConnectionException"), "{}", exception.class);
    assert!(error.to_string().contains("UnknownServiceException: NoSuchService"), "{error}");
    support::eventually(&harness.env, || unknown.is_lost()).await;
    assert!(unknown.call(request("Echo", "")).await.is_err());
    let refused = Connection::connect(&harness.env, "localhost", 1, "ClientService", &options).await;
    assert!(matches!(refused, Err(Error::Connect { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_too_long_fails_only_its_call() {
    let harness = Harness::new(ServerOptions::default()).await;
    let options = ConnectOptions { max_response_bytes: 1000, ..ConnectOptions::for_user("bob") };
    let connection = Connection::connect(&harness.env, "localhost", harness.port, "ClientService", &options)
        .await
        .unwrap();
    let cells = |len: u32| connection.call(request("Cells", len.to_be_bytes().to_vec()));
    let long_calls = async {
        for len in [1_000, 300_000] {
            assert!(matches!(cells(len).await, Err(Error::TooLong { max: 1000, .. })));
        }
        harness.service.gate.notify_one();
    };
    let (other, ()) = tokio::join!(connection.call(request("Wait", "other")), long_calls);
    assert_eq!(other.unwrap().message, "other");
    assert_eq!(cells(900).await.unwrap().cells.len(), 900);
}

/// A server that returns invalid responses.
#[tokio::test(start_paused = true)]
async fn invalid_responses_lose_the_connection() {
    for answer in [
        "00000003 ffffff",
        "7fffffff 00",
        "80000000 02 0800",
        "00000000",
        "00000004 02 0801 ff",
        "00000002 0602",
    ] {
        let env = base::testing::env(3);
        let listener = env.net.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let port = listener.local_addr().port();
        let serving = async {
            let mut stream = (listener.accept().await.unwrap().open)().unwrap();
            // The preamble, and the length of the connection header.
            let mut opening = vec![0; 10];
            stream.read_exact(&mut opening).await.unwrap();
            stream.write_all(&hex(answer)).await.unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
        };
        let calling = async {
            let options = ConnectOptions::for_user("bob");
            let connection =
                Connection::connect(&env, "localhost", port, "ClientService", &options).await.unwrap();
            let error = connection.call(request("Echo", "")).await.unwrap_err();
            assert!(matches!(error, Error::Lost(_)), "{answer}: {error}");
        };
        tokio::join!(serving, calling);
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_sees_the_close_of_the_last_holder() {
    let harness = Harness::new(ServerOptions::default()).await;
    let connection = connect(&harness).await;
    connection.call(request("Echo", "")).await.unwrap();
    assert_eq!(harness.server.connections(), 1);
    let clone = connection.clone();
    drop(connection);
    clone.call(request("Echo", "")).await.unwrap();
    drop(clone);
    support::eventually(&harness.env, || harness.server.connections() == 0).await;
}
