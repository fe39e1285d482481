//! Cell blocks of a connection that negotiated a compressor: uncompressed for the service,
//! compressed on the wire.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use bytes::Bytes;
use rpc::frame::{self, RequestHeader};
use rpc::header::ConnectionHeader;
use rpc::{Compressor, ServerOptions};
use support::{Harness, Raw, body, java_header, request};

const PACKAGE: &str = "org.apache.hadoop.io.compress.";
const CLASSES: [&str; 6] =
    ["GzipCodec", "DefaultCodec", "DeflateCodec", "SnappyCodec", "Lz4Codec", "ZStandardCodec"];

async fn open(harness: &Harness, class: &str) -> (Raw, Compressor) {
    let class = format!("{PACKAGE}{class}");
    let compressor = Compressor::of_class(&class).unwrap();
    assert_eq!(compressor.class(), class);
    let header = ConnectionHeader { compressor_class: Some(class), ..java_header() };
    (harness.open_with(&header).await, compressor)
}

async fn echoed(raw: &mut Raw, call_id: u32, cells: &[u8]) -> Bytes {
    raw.send(&request(call_id, "Echo", b"m", cells)).await;
    raw.response().await.outcome.unwrap().1
}

#[tokio::test(start_paused = true)]
async fn cells_are_plain_for_the_service_and_compressed_on_the_wire() {
    let harness = Harness::new(ServerOptions::default()).await;
    for class in CLASSES {
        let (mut raw, compressor) = open(&harness, class).await;
        for plain in [&b"cells"[..], &[7; 1 << 20]] {
            let answer = echoed(&mut raw, 1, &compressor.compress(plain)).await;
            assert_eq!(compressor.decompress(&answer, 1 << 20).unwrap(), plain, "{class}");
            let seen = harness.service.last.lock().unwrap().take().unwrap();
            assert_eq!(seen.cells, plain, "{class}");
            assert_eq!(seen.connection.compressor, Some(compressor));
        }
        // An empty block has no stream, in either direction.
        assert_eq!(echoed(&mut raw, 2, b"").await, "");
    }
    assert_eq!(harness.server.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_empty_compressor_is_none() {
    let harness = Harness::new(ServerOptions::default()).await;
    let header = ConnectionHeader { compressor_class: Some(String::new()), ..java_header() };
    let mut raw = harness.open_with(&header).await;
    assert_eq!(echoed(&mut raw, 1, b"as they are").await, "as they are");
}

/// HBase intends to send this response, but closes the connection first.
#[tokio::test(start_paused = true)]
async fn an_unknown_compressor_is_named_and_the_connection_closed() {
    let harness = Harness::new(ServerOptions::default()).await;
    let header = ConnectionHeader { compressor_class: Some("org.example.Codec".into()), ..java_header() };
    let answer = harness.open_with(&header).await.until_closed().await;
    let response = frame::parse_response(&body(&answer)).unwrap();
    assert_eq!(response.call_id, rpc::preamble::CONNECTION_CALL_ID);
    let exception = response.outcome.unwrap_err();
    assert_eq!(exception.class, "org.apache.hadoop.hbase.ipc.UnsupportedCompressionCodecException");
    assert!(exception.stack_trace.contains("org.example.Codec"));
    assert!(exception.do_not_retry);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_block_fails_only_its_call() {
    let harness = Harness::new(ServerOptions::default()).await;
    for class in CLASSES {
        let (mut raw, compressor) = open(&harness, class).await;
        raw.send(&request(1, "Echo", b"m", b"no stream at all")).await;
        let exception = raw.response().await.outcome.unwrap_err();
        assert_eq!(exception.class, proto::exception::class::DO_NOT_RETRY_IO.name);
        assert!(exception.stack_trace.contains("unable to read call parameter"), "{}", exception.stack_trace);
        let answer = echoed(&mut raw, 2, &compressor.compress(b"good")).await;
        assert_eq!(compressor.decompress(&answer, 100).unwrap(), "good");
    }
}

/// The size of a decompressed block is limited like a request, and counts as bytes in memory.
#[tokio::test(start_paused = true)]
async fn bombs_are_refused() {
    let options = ServerOptions { max_request_bytes: 1 << 20, ..ServerOptions::default() };
    let harness = Harness::new(options).await;
    let small = ServerOptions { queued_bytes_max: 300_000, ..ServerOptions::default() };
    let crowded = Harness::new(small).await;
    for class in CLASSES {
        let (mut raw, compressor) = open(&harness, class).await;
        raw.send(&request(1, "Echo", b"m", &compressor.compress(&vec![0; 20 << 20]))).await;
        let exception = raw.response().await.outcome.unwrap_err();
        assert_eq!(exception.class, proto::exception::class::DO_NOT_RETRY_IO.name, "{class}");
        assert_eq!(harness.server.queued_bytes(), 0);

        let (mut raw, compressor) = open(&crowded, class).await;
        raw.send(&request(1, "Echo", b"m", &compressor.compress(&vec![0; 400_000]))).await;
        let exception = raw.response().await.outcome.unwrap_err();
        assert_eq!(exception.class, "org.apache.hadoop.hbase.CallQueueTooBigException", "{class}");
        raw.send(&request(2, "Echo", b"m", &compressor.compress(&vec![0; 150_000]))).await;
        let outcome = raw.response().await.outcome;
        assert!(outcome.is_ok(), "{class}: {outcome:?}");
        assert_eq!(crowded.server.queued_bytes(), 0);
    }
}

/// A block is in memory as long as its call runs.
#[tokio::test(start_paused = true)]
async fn expanded_bytes_count_until_the_call_ends() {
    let harness = Harness::new(ServerOptions::default()).await;
    let (mut raw, compressor) = open(&harness, "GzipCodec").await;
    let header = RequestHeader { call_id: 1, method: "Wait".into(), ..RequestHeader::default() };
    raw.send(&support::request_with(header, b"", &compressor.compress(&vec![0; 500_000]))).await;
    support::eventually(&harness.env, || harness.server.queued_bytes() >= 500_000).await;
    harness.service.gate.notify_one();
    assert_eq!(raw.response().await.call_id, 1);
    assert_eq!(harness.server.queued_bytes(), 0);
}
