//! What a server with the feature `otlp` sends to an OpenTelemetry collector.
#![cfg(feature = "otlp")]
#![allow(clippy::disallowed_methods, reason = "receivers use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use common::{Server, TempDir};

/// Reads one request and responds to it. Returns the path and the body.
fn take(stream: TcpStream) -> (String, Vec<u8>) {
    let mut stream = BufReader::new(stream);
    let (mut path, mut len) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        if let Some(rest) = line.strip_prefix("POST ") {
            path = rest.split(' ').next().unwrap().to_owned();
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            len = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body).unwrap();
    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    (path, body)
}

/// Whether a message contains a name. Names are uncompressed; the format is tested next to the code
/// that encodes it.
fn has(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn metrics_and_spans_arrive_at_a_collector() {
    let dir = TempDir::new();
    let collector = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = format!("otel.exporter.otlp.endpoint=http://{}", collector.local_addr().unwrap());
    let server = Server::start_with(
        &dir.join("data"),
        &[
            "--set",
            &endpoint,
            "--set",
            "otel.metric.export.interval=500",
            "--set",
            "otel.traces.sampler.arg=1",
        ],
    );
    assert!(server.shell("create 't', 'f'; put 't', 'r', 'f:q', 'v'; get 't', 'r'").status.success());
    let mut wanted = vec![
        ("/v1/metrics", "hbase.regionserver.Tables.Namespace_default_table_t_metric_writeRequestCount"),
        ("/v1/metrics", "hbase.master.Server.numRegionServers"),
        ("/v1/metrics", "hbase-regionserver"),
        ("/v1/traces", "RpcServer.process"),
        ("/v1/traces", "hbase.pb.MasterService/CreateTable"),
        ("/v1/traces", "hbase.pb.ClientService/Mutate"),
        ("/v1/traces", "hbase.pb.ClientService/Get"),
        ("/v1/traces", "HBASE_RPC"),
    ];
    for _ in 0..200 {
        let (path, body) = take(collector.accept().unwrap().0);
        wanted.retain(|(of, name)| *of != path || !has(&body, name));
        if wanted.is_empty() {
            break;
        }
    }
    assert_eq!(wanted, [("", ""); 0]);
    assert_eq!(server.stop().code(), Some(0));
}
