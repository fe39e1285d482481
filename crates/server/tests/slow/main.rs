//! Deliberately slow requests appear in the slow log with their cause: a costly filter, a locked
//! row, a client that does not read. (A cold disk and a slow log of writes need a slow file system;
//! see `regionserver`'s tests.)
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the server under test is another process, reached through real sockets"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../hostile/connection.rs"]
mod connection;
#[path = "../hostile/table.rs"]
mod table;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use common::{PORTS, Server, TempDir, text};
use connection::Connection;
use prost::Message;
use table::{Table, mutation, put_cell};

const COLUMNS: usize = 10_000;
const EXPRESSIONS: usize = 200;
const SLOW: &str = "hbase.ipc.warn.response.time=100";

struct World {
    server: Server,
    table: Table,
    _dir: TempDir,
}

impl World {
    /// Starts a server that records calls of more than 100 ms, and writes a row with many columns
    /// and rows of 4 MiB.
    fn begin() -> World {
        let dir = TempDir::new();
        let server = Server::start_with(&dir.join("data"), &["--set", SLOW]);
        assert!(server.shell("create 't', 'f'").status.success());
        let table = Table::find(PORTS[3] + server.offset);
        let mut connection = table.connect();
        let (mut cells, mut wide) = (BytesMut::new(), mutation(b"wide"));
        (0..COLUMNS)
            .for_each(|at| put_cell(&mut cells, b"wide", format!("q{at:05}").as_bytes(), &[b'v'; 100]));
        wide.associated_cell_count = Some(COLUMNS as i32);
        connection.call("Mutate", &table.change(wide, None), &cells).unwrap().unwrap();
        for at in 0..8 {
            let (message, cells) = table.put(format!("big{at}").as_bytes(), b"q", &vec![at; 4 << 20]);
            connection.call("Mutate", &message, &cells).unwrap().unwrap();
        }
        World { server, table, _dir: dir }
    }

    /// The recorded slow calls, newest first, with the request that clients from 2.5 on send.
    fn slow_calls(&self) -> Vec<proto::SlowLogPayload> {
        const PACKAGE: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$";
        let mut admin = Connection::open_for(PORTS[3] + self.server.offset, "AdminService").unwrap();
        let asked = proto::SlowLogResponseRequest { limit: Some(100), ..Default::default() };
        let request = proto::LogRequest {
            log_class_name: format!("{PACKAGE}SlowLogResponseRequest"),
            log_message: asked.encode_to_vec().into(),
        };
        let (entry, _): (proto::LogEntry, _) = admin.call_ok("GetLogEntries", &request);
        assert_eq!(entry.log_class_name, format!("{PACKAGE}SlowLogResponses"));
        proto::SlowLogResponses::decode(entry.log_message).unwrap().slow_log_payloads
    }

    /// Waits for a slow call of `method` that spent most of its time in `share`.
    fn wait_for(&self, method: &str, share: &str) -> proto::SlowLogPayload {
        for _ in 0..200 {
            if let Some(call) = self.find(method, share) {
                return call;
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("no slow {method} by {share}: {:#?}", self.slow_calls());
    }

    fn find(&self, method: &str, share: &str) -> Option<proto::SlowLogPayload> {
        let is_it = |call: &proto::SlowLogPayload| {
            call.method_name == method && call.param().contains(&format!("; time: {share} "))
        };
        self.slow_calls().into_iter().find(is_it)
    }
}

impl Table {
    fn connect(&self) -> Connection {
        Connection::open(self.port).unwrap()
    }

    fn change(
        &self,
        mutation: proto::MutationProto,
        condition: Option<proto::Condition>,
    ) -> proto::MutateRequest {
        proto::MutateRequest { region: self.specifier(), mutation, condition, ..Default::default() }
    }

    fn scan_of(&self, scan: proto::Scan) -> proto::ScanRequest {
        proto::ScanRequest { scan: Some(scan), number_of_rows: Some(100), ..self.scan() }
    }
}

/// A filter that compares each value with many regular expressions, none of which matches.
fn costly() -> proto::Filter {
    let named = |name: &str, bytes: Vec<u8>| proto::Filter {
        name: format!("org.apache.hadoop.hbase.filter.{name}"),
        serialized_filter: Some(bytes.into()),
    };
    let one = |at: usize| {
        let comparator = proto::RegexStringComparator {
            pattern: format!("[a-u]+{at}[a-z]*x"),
            pattern_flags: 0,
            charset: "UTF-8".into(),
            engine: None,
        };
        let comparator = proto::Comparator {
            name: "org.apache.hadoop.hbase.filter.RegexStringComparator".into(),
            serialized_comparator: Some(comparator.encode_to_vec().into()),
        };
        let compare = proto::CompareFilter { compare_op: 2, comparator: Some(comparator) };
        named("ValueFilter", proto::ValueFilter { compare_filter: compare }.encode_to_vec())
    };
    let filters = (0..EXPRESSIONS).map(one).collect();
    named("FilterList", proto::FilterList { operator: 2, filters }.encode_to_vec())
}

#[test]
fn slow_calls_have_a_latency_breakdown() {
    let world = World::begin();
    let table = &world.table;
    let wide = || (Some(Bytes::from("wide")), Some(Bytes::from("wide\0")));

    // A costly filter.
    let (start_row, stop_row) = wide();
    let scan = proto::Scan { start_row, stop_row, filter: Some(costly()), ..Default::default() };
    let (_, cells): (proto::ScanResponse, _) = table.connect().call_ok("Scan", &table.scan_of(scan));
    assert!(cells.is_empty(), "nothing passes");
    let found = world.wait_for("Scan", "filter");
    assert!(
        found.region_name().starts_with("t,,") && found.param().contains("filter= FilterList"),
        "{found:?}"
    );
    assert!(found.processing_time >= 100 && found.user_name == "mallory", "{found:?}");

    // A client that does not read.
    let scan =
        proto::Scan { start_row: Some("big".into()), stop_row: Some("bih".into()), ..Default::default() };
    let mut slow = table.connect();
    slow.send("Scan", &table.scan_of(scan), &[]).unwrap();
    slow.stream.peek(&mut [0]).expect("the answer is there");
    thread::sleep(Duration::from_secs(1));
    slow.answer().unwrap().outcome.unwrap();
    let found = world.wait_for("Scan", "network");
    assert!(found.response_size > 32 << 20, "{found:?}");

    // A locked row.
    if thread::available_parallelism().unwrap().get() > 1 {
        // Whether a call waits depends on the threads of the connections, and on scheduling.
        let mut tries = (0..10).map(|_| {
            wait_for_a_row(&world);
            world.find("Mutate", "lock")
        });
        let found = tries.find_map(|found| found).expect("a call that waited for a row");
        assert!(found.param().contains("row= wide, type= PUT;"), "{found:?}");
    } else {
        println!("one core: no call can wait for a row lock while another call holds it");
    }

    // The calls are in the log, too, and they are cleared on request.
    let lines = world.server.errors();
    for part in ["(responseTooSlow): {", "\"method\":\"Scan\"", "\"timems\":{", "\"client\":\"127.0.0.1:"] {
        assert!(lines.contains(part), "{part} is not in {lines}");
    }
    let mut admin = Connection::open_for(PORTS[3] + world.server.offset, "AdminService").unwrap();
    let (cleared, _): (proto::ClearSlowLogResponses, _) =
        admin.call_ok("ClearSlowLogsResponses", &proto::ClearSlowLogResponseRequest {});
    assert!(cleared.is_cleaned && world.slow_calls().is_empty());
}

/// Some clients write a row while another client's conditional change compares the row's columns.
fn wait_for_a_row(world: &World) {
    let (table, done) = (&world.table, AtomicBool::new(false));
    let condition = proto::Condition { row: "wide".into(), filter: Some(costly()), ..Default::default() };
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let (message, cells) = table.put(b"wide", b"other", b"v");
                let mut connection = table.connect();
                while !done.load(Ordering::Relaxed) {
                    connection.call("Mutate", &message, &cells).unwrap().unwrap();
                }
            });
        }
        let mut cells = BytesMut::new();
        put_cell(&mut cells, b"wide", b"another", b"v");
        let mut connection = table.connect();
        for _ in 0..3 {
            let message = table.change(mutation(b"wide"), Some(condition.clone()));
            connection.call("Mutate", &message, &cells).unwrap().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("{}", text(&world.server.shell("get 't', 'wide', 'f:other'").stdout));
}
