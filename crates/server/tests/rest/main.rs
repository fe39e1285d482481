//! The REST API of a server and of `grampus rest`: the same responses as HBase's REST server, the
//! examples of the documentation, and the limits.
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod http;
mod transcript;

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Gateway, Server, TempDir, run, text};
use http::Connection;

const PORT: u16 = 8080;

/// A server with the REST API, and further options.
fn serve(dir: &TempDir, options: &[&str]) -> (Server, u16) {
    let mut arguments = vec!["--set", "hbase.rest.port=8080"];
    arguments.extend(options.iter().flat_map(|option| ["--set", option]));
    let server = Server::start_with(&dir.join("data"), &arguments);
    let port = PORT + server.offset;
    (server, port)
}

/// Creates table `t` with family `f`.
fn create_table(connection: &mut Connection) {
    let schema = br#"{"name":"t","ColumnSchema":[{"name":"f"}]}"#;
    let created = connection.request("PUT", "/t/schema", &[("Content-Type", "application/json")], schema);
    assert_eq!(created.status, 201, "{}", created.text());
}

fn put(connection: &mut Connection, row: &str, value: &[u8]) -> u16 {
    let headers = [("Content-Type", "application/octet-stream")];
    connection.request("PUT", &format!("/t/{row}/f:a"), &headers, value).status
}

#[test]
fn responses_are_those_of_hbase() {
    let dir = TempDir::new();
    let (_server, port) = serve(&dir, &[]);
    let (mut connection, mut scanner) = (Connection::open(port), "none".to_owned());
    let exchanges = transcript::exchanges();
    assert!(exchanges.len() > 500, "{} exchanges", exchanges.len());
    let differences = exchanges.iter().filter(|exchange| exchange.is_difference).count();
    assert!(differences < 30, "{differences} differences from HBase");
    let mut wrong = Vec::new();
    for exchange in &exchanges {
        let response = exchange.send(&mut connection, &mut scanner);
        wrong.extend(exchange.difference(&response));
    }
    assert!(wrong.is_empty(), "{} of {} responses:\n{}", wrong.len(), exchanges.len(), wrong.join("\n"));
}

#[test]
fn a_server_serves_the_api_only_if_its_port_is_set() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let port = PORT + server.offset;
    assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok(), "nothing listens on port {port}");
}

/// Starts `grampus rest`. Returns it and its port.
fn gateway(arguments: &[&str]) -> (Gateway, u16) {
    Gateway::start("rest", arguments, "http://")
}

#[test]
fn a_gateway_serves_another_process() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let zookeeper = server.zookeeper();
    let (_gateway, port) = gateway(&["--zookeeper", &zookeeper]);
    let mut connection = Connection::open(port);
    create_table(&mut connection);
    assert_eq!(put(&mut connection, "r", b"value"), 200);
    let (_reader, reader_port) = gateway(&["--zookeeper", &zookeeper, "--readonly"]);
    let mut reader = Connection::open(reader_port);
    assert_eq!(
        reader.request("GET", "/t/r/f:a", &[("Accept", "application/octet-stream")], b"").body,
        b"value"
    );
    let refused = reader.request("DELETE", "/t/r", &[], b"");
    assert_eq!((refused.status, refused.text().as_str()), (403, "Forbidden\r\n"));
    let output = text(&server.shell("get 't', 'r'").stdout);
    assert!(output.contains("value=value"), "{output}");
    server.stop();
    let failed = connection.request("GET", "/openapi.json", &[], b"");
    assert_eq!(failed.status, 200, "the gateway survives the end of the cluster");
}

/// HBase's `RemoteHTable` compares names of headers exactly.
#[test]
fn names_of_headers_are_written_as_by_hbase() {
    let dir = TempDir::new();
    let (_server, port) = serve(&dir, &[]);
    let mut connection = Connection::open(port);
    create_table(&mut connection);
    assert_eq!(put(&mut connection, "r", b"value"), 200);
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let head = "GET /t/r/f:a HTTP/1.1\r\nHost: localhost\r\nAccept: application/octet-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let lines: Vec<String> = BufReader::new(stream).lines().map_while(Result::ok).collect();
    for name in ["X-Timestamp: ", "Content-Type: "] {
        assert!(lines.iter().any(|line| line.starts_with(name)), "{name} in {lines:?}");
    }
}

#[test]
fn the_examples_of_the_documentation_work() {
    let dir = TempDir::new();
    let (_server, port) = serve(&dir, &[]);
    let page = include_str!("../../../../docs/rest.md")
        .replace("http://localhost:8080", &format!("http://127.0.0.1:{port}"));
    let blocks: Vec<&str> =
        page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let commands: Vec<&str> = blocks.into_iter().filter(|block| block.contains("curl")).collect();
    assert!(commands.len() > 5, "the page has examples");
    // The blocks run in order in one shell. A request that fails ends it.
    let script = format!(
        "set -eu\ncurl() {{ command curl -sS --fail-with-body --max-time 60 \"$@\"; echo; }}\n{}",
        commands.concat()
    );
    let output = run(Command::new("sh").args(["-c", &script]));
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", text(&output.stderr));
    for part in ["\"table\":[{\"name\":\"users\"}]", "dmFsdWUx"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
}

#[test]
fn large_and_malformed_requests_are_refused() {
    let dir = TempDir::new();
    let (_server, port) =
        serve(&dir, &["grampus.rest.request.bytes.max=1 MiB", "grampus.rest.response.bytes.max=1 MiB"]);
    let mut connection = Connection::open(port);
    create_table(&mut connection);
    assert_eq!(put(&mut connection, "r", &vec![7; 1 << 20]), 200, "a body of the maximum size");
    assert_eq!(put(&mut connection, "r", &vec![7; (1 << 20) + 1]), 413);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; 64 << 20]).unwrap();
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let headers = [("Content-Type", "application/octet-stream"), ("Content-Encoding", "gzip")];
    assert_eq!(
        connection.request("PUT", "/t/r/f:a", &headers, &bomb).status,
        413,
        "decompressed bytes count"
    );
    let long = format!("/t/multiget?{}", "row=none&".repeat(6_000));
    assert_eq!(connection.get(&long).status, 404, "a long list of rows is served");
    for (row, size) in [("a1", 700 << 10), ("a2", 700 << 10)] {
        assert_eq!(put(&mut connection, row, &vec![1; size]), 200);
    }
    assert_eq!(connection.get("/t/a1,a9").status, 413, "a range that is too large");
    let scanned = connection.get("/t/a*");
    assert_eq!((scanned.status, scanned.body.len() > 1 << 20), (200, true), "a stateless scan is streamed");
    let mut garbage = Connection::open(port);
    garbage.send(b"\x16\x03\x01\x02\x00 no HTTP\r\n\r\n");
    assert_eq!(garbage.response(false).status, 400);
    assert_eq!(connection.get("/t/exists").status, 200);
}

#[test]
fn a_client_that_still_sends_sees_the_refusal_and_can_continue() {
    let dir = TempDir::new();
    let (_server, port) = serve(&dir, &["grampus.rest.request.bytes.max=1 MiB"]);
    let mut connection = Connection::open(port);
    create_table(&mut connection);
    for (path, len, status) in [("/version", 10, 405), ("/t/r/f:a", 8 << 20, 413)] {
        connection.send(
            format!(
                "PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n\
                 Content-Length: {len}\r\n\r\n"
            )
            .as_bytes(),
        );
        std::thread::sleep(Duration::from_millis(200));
        connection.send(&vec![7; len]);
        assert_eq!(connection.response(false).status, status, "{path}");
        assert_eq!(put(&mut connection, "r", b"next"), 200, "{path}");
    }
}

#[test]
fn chunked_bodies_are_accepted() {
    let dir = TempDir::new();
    let (_server, port) = serve(&dir, &[]);
    let mut connection = Connection::open(port);
    create_table(&mut connection);
    connection.send(
        b"PUT /t/r/f:a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n\
          Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    );
    assert_eq!(connection.response(false).status, 200);
    let read = connection.request("GET", "/t/r/f:a", &[("Accept", "application/octet-stream")], b"");
    assert_eq!(read.body, b"abcde");
}

#[test]
fn slow_clients_and_many_scanners_do_not_affect_others() {
    let dir = TempDir::new();
    let options = [
        "hbase.rest.threads.max=4",
        "hbase.rest.thread.idle.timeout=2 s",
        "grampus.rest.connections.max=100",
        "grampus.rest.scanners.per.client.max=5",
    ];
    let (_server, port) = serve(&dir, &options);
    let mut honest = Connection::open(port);
    create_table(&mut honest);
    assert_eq!(put(&mut honest, "r", b"v"), 200);
    // Half headers, and bodies that never arrive: more than there are threads.
    let mut slow: Vec<TcpStream> = Vec::new();
    for at in 0..60 {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let part = if at % 2 == 0 {
            "GET /t/r HTTP/1.1\r\nHost: loc"
        } else {
            "PUT /t/r/f:a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 100\r\n\r\nx"
        };
        stream.write_all(part.as_bytes()).unwrap();
        slow.push(stream);
    }
    let started = Instant::now();
    for _ in 0..50 {
        assert_eq!(honest.get("/t/r").status, 200);
    }
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let mut idle = Connection::open(port);
    idle.send(b"GET /t/r HTTP/1.1\r\nHost: loc");
    std::thread::sleep(Duration::from_secs(3));
    // A status may precede the end of the connection.
    while !idle.is_closed() {}
    // The honest client's connection was idle for too long, too.
    let mut honest = Connection::open(port);
    // A client that opens scanners without end loses its own.
    let mut ids = Vec::new();
    for _ in 0..7 {
        let created = honest.request("PUT", "/t/scanner", &[("Content-Type", "application/json")], b"{}");
        assert_eq!(created.status, 201);
        ids.push(created.header("location").unwrap().rsplit("/t/").next().unwrap().to_owned());
    }
    let open = ids.iter().filter(|id| honest.get(&format!("/t/{id}")).status == 200).count();
    assert_eq!(open, 5);
    drop(slow);
}

#[test]
fn silent_connections_make_room_for_new_ones() {
    let dir = TempDir::new();
    let (_server, port) = serve(&dir, &["grampus.rest.connections.max=20"]);
    let mut honest = Connection::open(port);
    create_table(&mut honest);
    let mut silent: Vec<Connection> = Vec::new();
    for _ in 0..60 {
        let mut connection = Connection::open(port);
        connection.send(b"GET /t/r HTTP/1.1\r\nHost: loc");
        silent.push(connection);
        assert_eq!(put(&mut honest, "r", b"v"), 200, "the active connection stays");
    }
    assert_eq!(Connection::open(port).get("/t/r").status, 200, "a new client is served");
    // All but 18 made room for others.
    assert!(silent[..42].iter_mut().all(Connection::is_closed));
}

#[test]
fn foreign_hosts_and_forged_requests_are_refused() {
    let dir = TempDir::new();
    let (_server, port) =
        serve(&dir, &["hbase.rest.csrf.enabled=true", "hbase.rest.http.allow.options.method=false"]);
    let mut connection = Connection::open(port);
    assert_eq!(connection.request("GET", "/", &[("Host", "evil.example")], b"").status, 421);
    let browser = ("User-Agent", "Mozilla/5.0");
    assert_eq!(connection.request("GET", "/", &[browser], b"").status, 200);
    assert_eq!(connection.request("POST", "/namespaces/n", &[browser], b"").status, 400);
    assert_eq!(
        connection.request("POST", "/namespaces/n", &[browser, ("X-XSRF-HEADER", "x")], b"").status,
        201
    );
    assert_eq!(connection.request("OPTIONS", "/", &[], b"").status, 403);
}

#[test]
fn an_applied_change_succeeds_if_its_response_is_large() {
    let dir = TempDir::new();
    let (_server, port) = serve(&dir, &["grampus.rest.response.bytes.max=100"]);
    let mut connection = Connection::open(port);
    create_table(&mut connection);
    assert_eq!(put(&mut connection, "r", &[b'v'; 200]), 200);
    // Row `r`, column `f:a`, value `1`.
    let cells = br#"{"Row":[{"key":"cg==","Cell":[{"column":"Zjph","$":"MQ=="}]}]}"#;
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json")];
    let appended = connection.request("PUT", "/t/r?check=append&rr=true", &headers, cells);
    assert_eq!((appended.status, appended.body.len() > 200), (200, true), "{}", appended.text());
}

#[test]
fn an_idle_timeout_of_zero_never_closes_a_connection() {
    let dir = TempDir::new();
    let (_server, port) = serve(&dir, &["hbase.rest.thread.idle.timeout=0"]);
    let mut connection = Connection::open(port);
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(1200));
        assert_eq!(connection.get("/version").status, 200);
    }
}
