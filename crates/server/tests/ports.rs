//! Every port of a running server with unintended clients: wrong services and methods, ZooKeeper
//! monitoring commands, pages requested under foreign host names, and more connections than there
//! are descriptors.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the server under test is another process, reached through real sockets"
)]

mod common;
#[path = "hostile/connection.rs"]
mod connection;
#[path = "hostile/table.rs"]
mod table;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use common::{PORTS, Server, TempDir};
use connection::Connection;

const MASTER: usize = 1;
const MASTER_PAGES: usize = 2;
const REGION_SERVER: usize = 3;
const REGION_SERVER_PAGES: usize = 4;

/// All services of HBase 2.5, 2.6 and 3.0, and one that does not exist.
const SERVICES: [&str; 14] = [
    "ClientService",
    "AdminService",
    "MasterService",
    "RegionServerStatusService",
    "ClientMetaService",
    "HbckService",
    "LockService",
    "BootstrapNodeService",
    "RegistryService",
    "ReplicationServerService",
    "ReplicationServerStatusService",
    "MasterHbckService",
    "AuthenticationService",
    "NoSuchService",
];

fn connect(server: &Server, port: usize) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, PORTS[port] + server.offset)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends some bytes to a port and returns what it sends until it closes the connection.
fn answer(server: &Server, port: usize, request: &str) -> String {
    let mut stream = connect(server, port);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn every_service_and_method_gets_a_response() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    for port in [MASTER, REGION_SERVER] {
        for service in SERVICES {
            let mut connection = Connection::open_for(PORTS[port] + server.offset, service).unwrap();
            let head = connection.head("NoSuchMethod", &[], 0);
            connection.stream.write_all(&head).unwrap();
            let answer = connection.answer().unwrap_or_else(|error| panic!("{service} at {port}: {error}"));
            let exception = answer.outcome.unwrap_err();
            match answer.call_id {
                rpc::preamble::CONNECTION_CALL_ID => {
                    assert!(
                        exception.class.ends_with("ipc.FatalConnectionException"),
                        "{service}: {exception:?}"
                    );
                    let named = format!("ipc.UnknownServiceException: {service}");
                    assert!(exception.stack_trace.contains(&named), "{exception:?}");
                    assert!(connection.is_closed_within(Duration::from_secs(10)));
                }
                _ => {
                    let is_internal = exception.class.ends_with("AccessDeniedException");
                    assert!(
                        is_internal || exception.class.ends_with("DoNotRetryIOException"),
                        "{service}: {exception:?}"
                    );
                    assert!(exception.stack_trace.contains("NoSuchMethod"), "{exception:?}");
                }
            }
        }
    }
}

#[test]
fn pages_have_strict_headers_and_check_the_host_name() {
    let dir = TempDir::new();
    let server = Server::start_with(&dir.join("data"), &["--set", "grampus.info.hosts=proxy.example"]);
    let get_from = |port, path: &str, host: &str| {
        answer(&server, port, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    };
    for (port, paths) in [
        (MASTER_PAGES, ["/master-status", "/conf", "/jmx?qry=none", "/nothing"]),
        (REGION_SERVER_PAGES, ["/rs-status", "/prometheus?qry=none", "/history", "/favicon.ico"]),
    ] {
        for path in paths {
            let text = get_from(port, path, "localhost");
            let (head, _) = text.split_once("\r\n\r\n").unwrap();
            let head = head.to_ascii_lowercase();
            for header in [
                "x-content-type-options: nosniff",
                "content-security-policy: default-src 'none';",
                "x-frame-options: deny",
                "referrer-policy: no-referrer",
            ] {
                assert!(head.contains(header), "{path}: {header} in {head}");
            }
        }
        let status = |host: &str| get_from(port, paths[0], host).lines().next().unwrap().to_owned();
        for own in ["localhost:16010", "127.0.0.1", "[::1]:1", "PROXY.example:80"] {
            assert_eq!(status(own), "HTTP/1.1 200 OK", "{own}");
        }
        for foreign in ["evil.example", "evil.example:16010", "localhost.evil.example"] {
            assert_eq!(status(foreign), "HTTP/1.1 421 Misdirected Request", "{foreign}");
        }
    }
}

#[test]
fn zookeeper_monitoring_commands_are_supported() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    assert_eq!(answer(&server, 0, "ruok"), "imok");
    assert_eq!(answer(&server, 0, "isro"), "rw");
    assert!(answer(&server, 0, "srvr").contains("\nMode: standalone\nNode count: "));
    assert!(answer(&server, 0, "mntr").contains("\nzk_server_state\tstandalone\n"));
}

/// With a short client timeout, the response is short enough to arrive in time.
#[test]
fn a_full_scan_responds_within_the_client_timeout() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    assert!(server.shell("create 't', 'f'").status.success());
    let table = table::Table::find(PORTS[REGION_SERVER] + server.offset);
    let mut connection = Connection::open(table.port).unwrap();
    for part in 0..20u8 {
        let (message, cells) = table.put(&[b'r', part], b"q", &vec![part; 1 << 20]);
        connection.call("Mutate", &message, &cells).unwrap().unwrap();
    }
    let scan = proto::Scan { max_result_size: Some(u64::MAX >> 1), ..proto::Scan::default() };
    let request =
        proto::ScanRequest { scan: Some(scan), number_of_rows: Some(i32::MAX as u32), ..table.scan() };
    connection.timeout_ms = Some(1000);
    let (answer, cells): (proto::ScanResponse, _) = connection.call_ok("Scan", &request);
    assert!(cells.len() < 6 << 20, "{} bytes for half of the client's timeout of one second", cells.len());
    assert_eq!((answer.more_results, answer.more_results_in_region), (Some(true), Some(true)));
    connection.timeout_ms = None;
    let (_, cells): (proto::ScanResponse, _) = connection.call_ok("Scan", &request);
    assert!(cells.len() >= 20 << 20, "without a timeout all rows in one response: {} bytes", cells.len());
}

/// A connection that sends nothing is closed, and so is one that sends a header byte by byte.
#[test]
fn silent_connections_to_pages_are_closed() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let (mut silent, mut slow) = (connect(&server, MASTER_PAGES), connect(&server, REGION_SERVER_PAGES));
    slow.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let begun = Instant::now();
    let closed = |stream: &mut TcpStream| match stream.read(&mut [0; 1000]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
    };
    while !closed(&mut slow) {
        let _ = slow.write_all(b"G");
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "a connection with a slow header is not closed in time"
        );
    }
    assert!(closed(&mut silent), "an idle connection is closed");
    assert!(begun.elapsed() < Duration::from_secs(40));
}

/// With few descriptors, open connections on all other ports leave enough descriptors for requests
/// and files.
#[test]
fn open_connections_do_not_exhaust_descriptors() {
    let dir = TempDir::new();
    let server = Server::start_limited(&dir.join("data"), 256);
    assert!(server.shell("create 't', 'f'").status.success());
    let mut held = Vec::new();
    for _ in 0..300 {
        for port in [0, MASTER_PAGES, REGION_SERVER_PAGES] {
            held.push(connect(&server, port));
        }
    }
    let begun = Instant::now();
    let output = server.shell("put 't', 'r', 'f:q', 'v'; flush 't'; get 't', 'r'");
    let printed = format!("{}{}", common::text(&output.stdout), common::text(&output.stderr));
    assert!(output.status.success(), "{printed}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
