//! The Thrift services of a server, of `grampus thrift` and of `grampus thrift2`: the same
//! responses as HBase's Thrift servers, all transports, and the limits.
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod transcript;
mod wire;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use common::{Gateway, Server, TempDir, grampus, run, text};
use serde_json::json;
use wire::{Argument, Connection, Transport, call};

const PORT: u16 = 9090;
const PORT2: u16 = 9091;

/// A server with both services, and further options.
fn serve(dir: &TempDir, options: &[&str]) -> Server {
    let mut arguments =
        vec!["--set", "hbase.regionserver.thrift.port=9090", "--set", "grampus.thrift2.port=9091"];
    arguments.extend(options.iter().flat_map(|option| ["--set", option]));
    Server::start_with(&dir.join("data"), &arguments)
}

fn create_table() -> Vec<u8> {
    let family = vec![(1, Argument::Text("f"))];
    call("createTable", &[(1, Argument::Text("t")), (2, Argument::Structs(vec![family]))])
}

fn put(row: &'static str, value: &'static str) -> Vec<u8> {
    let mutation = vec![(2, Argument::Text("f:a")), (3, Argument::Text(value))];
    let mutations = Argument::Structs(vec![mutation]);
    call("mutateRow", &[(1, Argument::Text("t")), (2, Argument::Text(row)), (3, mutations)])
}

fn get(row: &'static str) -> Vec<u8> {
    call("get", &[(1, Argument::Text("t")), (2, Argument::Text(row)), (3, Argument::Text("f:a"))])
}

/// The value of the only cell of a response to `get`.
fn value_of(response: &serde_json::Value) -> &str {
    response.pointer("/reply/0/0/1").and_then(|value| value.as_str()).unwrap_or_else(|| panic!("{response}"))
}

#[test]
fn responses_are_those_of_hbase() {
    let dir = TempDir::new();
    let server = serve(&dir, &[]);
    let open = |port| (Connection::open(port + server.offset, Transport::Unframed), 0);
    let (mut one, mut two) = (open(PORT), open(PORT2));
    let exchanges = transcript::exchanges();
    assert!(exchanges.len() > 350, "{} exchanges", exchanges.len());
    let differences = exchanges.iter().filter(|exchange| exchange.is_difference).count();
    assert!(differences < 40, "{differences} differences from HBase");
    let mut wrong = Vec::new();
    for exchange in &exchanges {
        let (connection, scanner) = if exchange.service() == "one" { &mut one } else { &mut two };
        wrong.extend(exchange.difference(connection, scanner));
    }
    assert!(wrong.is_empty(), "{} of {} responses:\n{}", wrong.len(), exchanges.len(), wrong.join("\n"));
}

#[test]
fn one_port_serves_all_transports() {
    let dir = TempDir::new();
    let server = serve(&dir, &[]);
    let port = PORT + server.offset;
    let transports = [Transport::Unframed, Transport::Framed, Transport::Http];
    let mut connections = transports.map(|transport| Connection::open(port, transport));
    assert_eq!(connections[0].call(&create_table()).unwrap(), json!({"reply": {}}));
    for (connection, value) in connections.iter_mut().zip(["unframed", "framed", "http"]) {
        assert_eq!(connection.call(&put("r", value)).unwrap(), json!({"reply": {}}));
        assert_eq!(value_of(&connection.call(&get("r")).unwrap()), value);
    }
    // Several calls in one packet are answered in order.
    let unframed = &mut connections[0];
    unframed.stream.write_all(&[put("r", "first"), get("r")].concat()).unwrap();
    let (put_response, get_response) = (unframed.call(&[]).unwrap(), unframed.call(&[]).unwrap());
    assert_eq!((put_response, value_of(&get_response)), (json!({"reply": {}}), "first"));
}

#[test]
fn a_server_serves_thrift_only_if_its_port_is_set() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    for port in [PORT, PORT2] {
        let port = port + server.offset;
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok(), "nothing listens on port {port}");
    }
}

/// Starts `grampus thrift` or `grampus thrift2`. Returns it and its port.
fn gateway(command: &str, arguments: &[&str]) -> (Gateway, u16) {
    Gateway::start(command, arguments, "  Thrift ")
}

#[test]
fn gateways_serve_another_process() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let zookeeper = server.zookeeper();
    let (_one, port) = gateway("thrift", &["--zookeeper", &zookeeper]);
    let mut one = Connection::open(port, Transport::Framed);
    assert_eq!(one.call(&create_table()).unwrap(), json!({"reply": {}}));
    assert_eq!(one.call(&put("r", "value")).unwrap(), json!({"reply": {}}));
    let (_two, port) = gateway("thrift2", &["--zookeeper", &zookeeper, "--readonly"]);
    let mut two = Connection::open(port, Transport::Unframed);
    let row = || vec![(1, Argument::Text("r"))];
    let read = call("get", &[(1, Argument::Text("t")), (2, Argument::Struct(row()))]);
    let read = two.call(&read).unwrap();
    assert_eq!(read.pointer("/reply/0/2/0/3"), Some(&json!("value")), "{read}");
    let deleted = call("deleteSingle", &[(1, Argument::Text("t")), (2, Argument::Struct(row()))]);
    let refused = two.call(&deleted).unwrap();
    assert_eq!(refused, json!({"reply": {"1": {"1": "Thrift Server is in Read-only mode.", "2": false}}}));
    let output = text(&server.shell("get 't', 'r'").stdout);
    assert!(output.contains("value=value"), "{output}");
    server.stop();
    let kind = two.call(&call("getThriftServerType", &[])).unwrap();
    assert_eq!(kind, json!({"reply": {"0": 2}}), "the gateway survives the end of the cluster");
}

#[test]
fn a_busy_port_is_reported_with_the_option_of_the_service() {
    let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = busy.local_addr().unwrap().port().to_string();
    for (command, option) in
        [("thrift", "hbase.regionserver.thrift.port"), ("thrift2", "grampus.thrift2.port")]
    {
        let output = run(grampus().args([command, "--port", &port]));
        let error = text(&output.stderr);
        assert!(!output.status.success() && error.contains(&format!("--set {option}=PORT")), "{error}");
    }
}

/// Whether the server closes the connection without a response.
fn is_closed(connection: &mut Connection) -> bool {
    match connection.stream.read(&mut [0; 1]) {
        Ok(len) => len == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn what_is_no_call_or_too_long_ends_only_its_connection() {
    let dir = TempDir::new();
    let options = [
        "grampus.thrift.request.bytes.max=100000",
        "hbase.regionserver.thrift.framed.max_frame_size_in_mb=1",
    ];
    let server = serve(&dir, &options);
    let port = PORT + server.offset;
    let long_name = [&[0x80, 1, 0, 1][..], &1_000_000_u32.to_be_bytes()].concat();
    let negative = [&[0x80, 1, 0, 1][..], &[0xff; 8]].concat();
    let long_frame = [&(2_u32 << 20).to_be_bytes()[..], &[0x80]].concat();
    let version = [&[0x80, 2, 0, 1][..], &[0, 0, 0, 1, b'm', 0, 0, 0, 1, 0]].concat();
    let cases: [(&str, &[u8]); 6] = [
        ("garbage", &[0xff, 0, 1, 2]),
        ("TLS", &[0x16, 3, 1, 0, 200, 1]),
        ("a long name", &long_name),
        ("a negative length", &negative),
        ("a long frame", &long_frame),
        ("another version", &version),
    ];
    for (what, bytes) in cases {
        let mut connection = Connection::open(port, Transport::Unframed);
        connection.stream.write_all(bytes).unwrap();
        assert!(is_closed(&mut connection), "{what}");
    }
    // Invalid arguments are reported, and the connection continues.
    let mut framed = Connection::open(port, Transport::Framed);
    let mut damaged = call("get", &[(1, Argument::Texts(&["t"]))]);
    let at = damaged.len() - 10;
    damaged[at] = 0x55;
    let response = framed.call(&damaged).unwrap();
    assert_eq!(response.pointer("/exception/2"), Some(&json!(7)), "{response}");
    let unknown = framed.call(&call("nothing", &[])).unwrap();
    let expected = json!({"exception": {"1": "Invalid method name: 'nothing'", "2": 1}});
    assert_eq!(unknown, expected);
}

#[test]
fn http_requests_that_browsers_can_send_are_refused() {
    let dir = TempDir::new();
    let server = serve(&dir, &["grampus.thrift.request.bytes.max=100000"]);
    let port = PORT + server.offset;
    let status = |head: &str| {
        let mut connection = Connection::open(port, Transport::Http);
        connection.stream.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
        connection.head().unwrap().split(' ').nth(1).unwrap().to_owned()
    };
    let thrift = "Content-Type: application/x-thrift";
    assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost"), "405");
    assert_eq!(status("OPTIONS / HTTP/1.1\r\nHost: localhost"), "405");
    assert_eq!(status("TRACE / HTTP/1.1\r\nHost: localhost"), "403");
    let long = |bytes| format!("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {}", "a".repeat(bytes));
    assert_eq!(status(&long(63 << 10)), "405");
    assert_eq!(status(&long(64 << 10)), "431");
    assert_eq!(status("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0"), "415");
    assert_eq!(
        status("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 0"),
        "415"
    );
    assert_eq!(
        status(&format!("POST / HTTP/1.1\r\nHost: evil.example\r\n{thrift}\r\nContent-Length: 0")),
        "421"
    );
    assert_eq!(
        status(&format!("POST / HTTP/1.1\r\nHost: localhost\r\n{thrift}\r\nContent-Length: 0")),
        "400"
    );
    assert_eq!(
        status(&format!("POST / HTTP/1.1\r\nHost: localhost\r\n{thrift}\r\nContent-Length: 100001")),
        "413"
    );
}

#[test]
fn connections_are_limited_in_number_and_time() {
    let dir = TempDir::new();
    let options = ["grampus.thrift.connections.max=2", "hbase.thrift.server.socket.read.timeout=2 s"];
    let server = serve(&dir, &options);
    let port = PORT + server.offset;
    let started = Instant::now();
    let mut idle = Connection::open(port, Transport::Unframed);
    let mut half = Connection::open(port, Transport::Framed);
    half.stream.write_all(&[0, 0, 1, 0, 0x80, 1]).unwrap();
    let no_tables = json!({"reply": {"0": []}});
    let mut third = Connection::open(port, Transport::Unframed);
    assert_eq!(third.call(&call("getTableNames", &[])).unwrap(), no_tables);
    assert!(is_closed(&mut idle), "the first of two connections made room for the third");
    let early = started.elapsed();
    assert!(early < Duration::from_millis(1900), "{early:?}");
    assert!(is_closed(&mut half), "a connection without progress");
    let passed = started.elapsed();
    assert!(passed > Duration::from_millis(1900) && passed < Duration::from_secs(30), "{passed:?}");
}

#[test]
fn scanners_expire_and_are_limited() {
    let dir = TempDir::new();
    let options = ["grampus.thrift.scanners.per.client.max=2", "hbase.client.scanner.timeout.period=10 s"];
    let server = serve(&dir, &options);
    let mut connection = Connection::open(PORT + server.offset, Transport::Unframed);
    connection.call(&create_table()).unwrap();
    for row in ["a", "b", "c"] {
        connection.call(&put(row, "value")).unwrap();
    }
    let mut open = || {
        let scan = [(1, Argument::Text("t")), (2, Argument::Text("")), (3, Argument::Texts(&["f"]))];
        let response = connection.call(&call("scannerOpen", &scan)).unwrap();
        response.pointer("/reply/0").and_then(|id| id.as_i64()).unwrap() as i32
    };
    let (first, second, third) = (open(), open(), open());
    let mut next = |id| {
        let rows = connection.call(&call("scannerGet", &[(1, Argument::I32(id))])).unwrap();
        rows.pointer("/reply/0").map(|rows| rows.as_array().unwrap().len())
    };
    assert_eq!(next(first), None, "the least recently used scanner was closed");
    assert_eq!((next(second), next(third)), (Some(1), Some(1)));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(next(second), Some(1), "a used scanner lives");
    // A scanner is closed within the period of the search for unused ones.
    std::thread::sleep(Duration::from_secs(16));
    assert_eq!((next(second), next(third)), (None, None), "unused scanners expire");
}

#[test]
fn responses_are_limited_in_size() {
    let dir = TempDir::new();
    let server = serve(&dir, &["grampus.thrift.response.bytes.max=300"]);
    let mut connection = Connection::open(PORT + server.offset, Transport::Unframed);
    connection.call(&create_table()).unwrap();
    let rows = ["a", "b", "c", "d", "e", "g"];
    for row in rows {
        connection.call(&put(row, "a value of this row")).unwrap();
    }
    let all =
        call("getRows", &[(1, Argument::Text("t")), (2, Argument::Texts(&["a", "b", "c", "d", "e", "g"]))]);
    let refused = connection.call(&all).unwrap();
    let message = refused.pointer("/reply/1/1").and_then(|message| message.as_str());
    assert!(message.is_some_and(|message| message.contains("larger than 300 bytes")), "{refused}");
    let open = [(1, Argument::Text("t")), (2, Argument::Text("")), (3, Argument::Texts(&["f"]))];
    let opened = connection.call(&call("scannerOpen", &open)).unwrap();
    let id = opened.pointer("/reply/0").and_then(|id| id.as_i64()).unwrap() as i32;
    let many = call("scannerGetList", &[(1, Argument::I32(id)), (2, Argument::I32(100))]);
    assert!(connection.call(&many).unwrap().pointer("/reply/1").is_some(), "too many rows");
    // No row is lost.
    let mut count = 0;
    loop {
        let next = connection.call(&call("scannerGet", &[(1, Argument::I32(id))])).unwrap();
        match next.pointer("/reply/0").and_then(|rows| rows.as_array()).map(Vec::len) {
            Some(1) => count += 1,
            Some(0) => break,
            other => panic!("{other:?}: {next}"),
        }
    }
    assert_eq!(count, rows.len());
}

#[test]
fn an_applied_change_succeeds_without_memory_for_its_response() {
    let dir = TempDir::new();
    // A Thrift service then has 4 MiB, of which large requests and responses may use 3 MiB.
    let server = serve(&dir, &["hbase.ipc.server.max.callqueue.size=16 MiB"]);
    let mut one = Connection::open(PORT + server.offset, Transport::Unframed);
    let mut two = Connection::open(PORT2 + server.offset, Transport::Unframed);
    one.call(&create_table()).unwrap();
    let value: &'static str = "v".repeat(1_600_000).leak();
    assert_eq!(one.call(&put("r", value)).unwrap(), json!({"reply": {}}));
    let columns = [(3, Argument::Texts(&["f:a"])), (4, Argument::Texts(&["1"]))];
    let append = [[(1, Argument::Text("t")), (2, Argument::Text("r"))], columns].concat();
    let appended = one.call(&call("append", &[(1, Argument::Struct(append))])).unwrap();
    assert!(value_of(&appended).ends_with("v1"));
    let column = vec![(1, Argument::Text("f")), (2, Argument::Text("a")), (3, Argument::Text("2"))];
    let append = vec![(1, Argument::Text("r")), (2, Argument::Structs(vec![column]))];
    let append = call("append", &[(1, Argument::Text("t")), (2, Argument::Struct(append))]);
    let appended = two.call(&append).unwrap();
    let appended = appended.pointer("/reply/0/2/0/3").and_then(|value| value.as_str());
    assert!(appended.is_some_and(|value| value.ends_with("v12")));
    let read = one.call(&get("r")).unwrap();
    let message = read.pointer("/reply/1/1").and_then(|message| message.as_str());
    assert!(message.is_some_and(|message| message.contains("larger than")), "the response is too large");
}

#[test]
fn rows_of_a_scan_in_one_call_do_not_need_an_open_scanner() {
    let dir = TempDir::new();
    let server = serve(&dir, &["grampus.thrift.scanners.per.client.max=1"]);
    let mut one = Connection::open(PORT + server.offset, Transport::Unframed);
    one.call(&create_table()).unwrap();
    one.call(&put("r", "value")).unwrap();
    let mut two = Connection::open(PORT2 + server.offset, Transport::Unframed);
    let scan = || [(1, Argument::Text("t")), (2, Argument::Struct(Vec::new()))];
    let opened = two.call(&call("openScanner", &scan())).unwrap();
    let id = opened.pointer("/reply/0").and_then(|id| id.as_i64()).unwrap() as i32;
    let results = [&scan()[..], &[(3, Argument::I32(10))]].concat();
    let rows = two.call(&call("getScannerResults", &results)).unwrap();
    assert_eq!(rows.pointer("/reply/0/0/1"), Some(&json!("r")), "{rows}");
    let next = two.call(&call("getScannerRows", &[(1, Argument::I32(id)), (2, Argument::I32(10))])).unwrap();
    assert_eq!(next.pointer("/reply/0/0/1"), Some(&json!("r")), "the client's scanner is still open: {next}");
}

#[test]
fn a_client_that_still_sends_sees_the_refusal_and_can_continue() {
    let dir = TempDir::new();
    let server = serve(&dir, &["grampus.thrift.request.bytes.max=100000"]);
    let mut connection = Connection::open(PORT + server.offset, Transport::Http);
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-thrift\r\n\
                Content-Length: 4000000\r\n\r\n";
    connection.stream.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    connection.stream.write_all(&vec![0; 4_000_000]).unwrap();
    let response = connection.head().unwrap();
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    let reason = "the message is too long\n";
    connection.stream.read_exact(&mut vec![0; reason.len()]).unwrap();
    assert_eq!(connection.call(&call("getTableNames", &[])).unwrap(), json!({"reply": {"0": []}}));
}

#[test]
fn an_idle_timeout_of_zero_never_closes_a_connection() {
    let dir = TempDir::new();
    let server = serve(&dir, &["hbase.thrift.server.socket.read.timeout=0"]);
    for transport in [Transport::Unframed, Transport::Http] {
        let mut connection = Connection::open(PORT + server.offset, transport);
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(1200));
            assert_eq!(connection.call(&call("getTableNames", &[])).unwrap(), json!({"reply": {"0": []}}));
        }
    }
}
