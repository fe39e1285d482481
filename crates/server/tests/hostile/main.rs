//! Clients with excessive requests: each is answered or rejected as in HBase, the server's memory
//! stays within its limit, and other clients are served meanwhile.
//!
//! The quick form runs with the other tests. The full form (`--ignored`, with a release build) uses
//! extreme sizes. Both print what bystanders saw during each attack.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the server under test is another process, reached through real sockets"
)]

#[path = "../common/mod.rs"]
mod common;
mod connection;
mod sustained;
mod table;
mod watch;

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use base::compression::Algorithm;
use bytes::Bytes;
use common::{PORTS, Server, TempDir};
use connection::{Connection, Outcome};
use prost::Message;
use rpc::frame::{RemoteException, RequestHeader};
use rustix::process::{Resource, getrlimit, setrlimit};
use table::Table;
use watch::{Bystanders, forget_peak, resident_bytes};

const REQUEST_TOO_BIG: &str = "org.apache.hadoop.hbase.exceptions.RequestTooBigException";
const ROW_TOO_BIG: &str = "org.apache.hadoop.hbase.regionserver.RowTooBigException";
const DO_NOT_RETRY: &str = "org.apache.hadoop.hbase.DoNotRetryIOException";

/// The sizes of the attacks.
struct Sizes {
    memory_mib: u64,
    batch_rows: usize,
    row_mib: usize,
    connections: usize,
    scanners: usize,
    slow_readers: usize,
    // Duration of the slow attacks.
    slow_attack_duration: Duration,
    bomb_mib: usize,
    // Limit for the 99th percentile of the bystanders' gets; generous, because tests share the
    // machine.
    latency_max: Duration,
}

const QUICK: Sizes = Sizes {
    memory_mib: 512,
    batch_rows: 20_000,
    row_mib: 24,
    connections: 300,
    scanners: 500,
    slow_readers: 4,
    slow_attack_duration: Duration::from_secs(3),
    bomb_mib: 64,
    latency_max: Duration::from_secs(5),
};

const FULL: Sizes = Sizes {
    memory_mib: 2048,
    batch_rows: 1_000_000,
    row_mib: 1025,
    connections: 10_000,
    scanners: 10_000,
    slow_readers: 50,
    slow_attack_duration: Duration::from_secs(150),
    bomb_mib: 400,
    latency_max: Duration::from_secs(1),
};

#[test]
fn hostile_clients_do_not_affect_others() {
    World::start(QUICK).attack();
}

#[test]
#[ignore = "takes minutes, gigabytes and 20,000 descriptors; needs a release build"]
fn hostile_clients_do_not_affect_others_at_full_size() {
    World::start(FULL).attack();
}

struct World {
    sizes: Sizes,
    table: Table,
    server: Server,
    _dir: TempDir,
}

impl World {
    fn start(sizes: Sizes) -> World {
        let dir = TempDir::new();
        let memory = format!("grampus.memory={} MiB", sizes.memory_mib);
        let server = Server::start_with(&dir.join("data"), &["--set", &memory]);
        assert!(server.shell("create 't', 'f'").status.success());
        let table = Table::find(PORTS[3] + server.offset);
        World { sizes, table, server, _dir: dir }
    }

    fn attack(&self) {
        println!(
            "{:<28} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6}",
            "MiB, ms", "time", "gets", "p50", "p99", "max", "busy", "peak"
        );
        self.run_attack("no attack", || thread::sleep(Duration::from_secs(1)));
        self.run_attack("a frame of 300 MB", || self.long_frame());
        self.run_attack("frames without an end", || self.unfinished_frames());
        self.run_attack("a batch of many rows", || self.large_batch());
        self.run_attack("a put of a whole row", || self.row_in_one_put());
        self.run_attack("a large row in many puts", || self.large_row());
        self.run_attack("a get of that row", || self.get_large_row());
        self.run_attack("a scan of that row", || self.scan_large_row());
        self.run_attack("bombs", || self.bombs());
        self.run_attack("nested filters", || self.nested_filters());
        self.run_attack("many open scanners", || self.open_scanners());
        self.run_attack("many connections", || self.connections());
        self.run_attack("slow readers", || self.slow_readers());
        self.run_attack("no attack any more", || thread::sleep(Duration::from_secs(1)));
    }

    /// Runs an attack with bystanders, and checks their measurements and the server's peak memory.
    fn run_attack(&self, name: &str, attack: impl FnOnce()) {
        let pid = self.server.pid();
        forget_peak(pid);
        let bystanders = Bystanders::start(&self.table);
        let begun = Instant::now();
        attack();
        let took = begun.elapsed();
        let measured = bystanders.stop();
        let (_, peak) = resident_bytes(pid);
        let (p50, p99, max) = (measured.quantile(0.5), measured.quantile(0.99), measured.quantile(1.0));
        let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
        println!(
            "{name:<28} {:>7.0} {:>7} {:>6.1} {:>6.1} {:>6.0} {:>6} {:>6}",
            millis(took),
            measured.count(),
            millis(p50),
            millis(p99),
            millis(max),
            measured.refused,
            peak >> 20
        );
        assert!(peak >> 20 <= self.sizes.memory_mib, "{name}: {} MiB", peak >> 20);
        assert!(p99 <= self.sizes.latency_max, "{name}: {p99:?}");
        assert!(
            measured.refused * 2 <= measured.count(),
            "{name}: {} of {} gets",
            measured.refused,
            measured.count()
        );
    }

    fn open(&self) -> Connection {
        Connection::open(self.table.port).unwrap()
    }

    /// Only the head of the frame is sent. The server responds to it and closes the connection.
    fn long_frame(&self) {
        for len in [300_000_000u32, u32::MAX] {
            let mut connection = self.open();
            let header = RequestHeader {
                call_id: 7,
                method: "Mutate".into(),
                request_param: true,
                ..RequestHeader::default()
            };
            let mut frame = bytes::BytesMut::new();
            rpc::frame::put_request(&mut frame, &header, &[0; 20_000]);
            frame[..4].copy_from_slice(&len.to_be_bytes());
            connection.stream.write_all(&frame).unwrap();
            let answer = connection.answer().unwrap();
            assert_eq!(answer.call_id, 7);
            refused(answer.outcome, REQUEST_TOO_BIG);
            assert!(connection.is_closed_within(Duration::from_secs(10)));
        }
    }

    /// More frames than fit into memory if their declared lengths counted; most of each is sent.
    fn unfinished_frames(&self) {
        let len = 20 << 20;
        let part = vec![0; len * 3 / 4];
        let mut held = Vec::new();
        for _ in 0..self.sizes.memory_mib / 32 {
            let mut connection = self.open();
            let head = connection.head("Mutate", &[], len);
            connection.stream.write_all(&head).unwrap();
            connection.stream.write_all(&part).unwrap();
            held.push(connection);
        }
        // Two periods of the shorter timeout.
        thread::sleep(Duration::from_secs(11));
        let mut ended = held.iter_mut().map(|held| held.is_closed_within(Duration::from_millis(50)));
        assert!(ended.any(|ended| ended), "connections that hold memory without progress are closed");
    }

    fn large_batch(&self) {
        let (message, cells) = self.table.batch(self.sizes.batch_rows);
        let mut connection = self.open();
        let (answer, _) = connection.call("Multi", &message, &cells).unwrap().unwrap();
        let answer = proto::MultiResponse::decode(answer).unwrap();
        let entries = &answer.region_action_result[0].result_or_exception;
        assert_eq!(entries.len(), self.sizes.batch_rows);
        for (at, entry) in entries.iter().enumerate() {
            assert_eq!(entry.index, Some(at as u32));
            assert!(entry.exception.is_none(), "{entry:?}");
        }
        let (_, cells): (proto::GetResponse, _) = connection.call_ok("Get", &self.table.get(b"b0019999"));
        assert!(!cells.is_empty());
    }

    /// The server rejects the request as soon as it has the head. The client may find the
    /// connection closed while it writes.
    fn row_in_one_put(&self) {
        let value = vec![7; self.sizes.row_mib << 20];
        if value.len() < 256 << 20 {
            // The value fits into a request, but exceeds the limit of a cell.
            let (message, cells) = self.table.put(b"wide", b"q", &value);
            return refused(self.open().call("Mutate", &message, &cells).unwrap(), DO_NOT_RETRY);
        }
        let mut connection = self.open();
        let head = connection.head("Mutate", &[], value.len());
        connection.stream.write_all(&head).unwrap();
        let _ = connection.stream.write_all(&value);
        if let Ok(answer) = connection.answer() {
            refused(answer.outcome, REQUEST_TOO_BIG);
        }
    }

    /// Puts that are rejected for lack of memory are retried, as by real clients.
    fn large_row(&self) {
        let mut connection = self.open();
        let value: Vec<u8> =
            (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for column in 0..self.sizes.row_mib {
            let (message, cells) = self.table.put(b"wide", format!("{column:05}").as_bytes(), &value);
            let begun = Instant::now();
            loop {
                match connection.call("Mutate", &message, &cells).unwrap() {
                    Ok(_) => break,
                    Err(busy) if !busy.do_not_retry && begun.elapsed() < Duration::from_secs(60) => {
                        thread::sleep(Duration::from_millis(100));
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    }

    fn get_large_row(&self) {
        let request = self.table.get(b"wide");
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (mut connection, request) = (self.open(), request.clone());
                thread::spawn(move || connection.call("Get", &request, &[]).unwrap())
            })
            .collect();
        for thread in threads {
            let exception = thread.join().unwrap().map(|_| ()).unwrap_err();
            // Concurrent gets may also be rejected for lack of memory.
            assert!(exception.class == ROW_TOO_BIG || exception.server_overloaded, "{exception:?}");
        }
        refused(self.open().call("Get", &request, &[]).unwrap(), ROW_TOO_BIG);
    }

    /// Clients that accept partial rows get the whole row.
    fn scan_large_row(&self) {
        let mut connection = self.open();
        let mut request = self.table.scan();
        let scan = proto::Scan {
            start_row: Some("wide".into()),
            max_result_size: Some(2 << 20),
            ..proto::Scan::default()
        };
        request.scan = Some(scan);
        request.number_of_rows = Some(i32::MAX as u32);
        let (mut answer, mut cells): (proto::ScanResponse, _) = connection.call_ok("Scan", &request);
        let mut bytes = 0;
        loop {
            bytes += cells.len();
            if answer.more_results_in_region == Some(false) {
                break;
            }
            assert!(cells.len() < 4 << 20, "{}", cells.len());
            let next = proto::ScanRequest {
                scanner_id: answer.scanner_id,
                region: None,
                scan: None,
                ..request.clone()
            };
            (answer, cells) = connection.call_ok("Scan", &next);
        }
        assert!(bytes >= self.sizes.row_mib << 20, "{bytes}");
    }

    fn bombs(&self) {
        let zeros = vec![0; self.sizes.bomb_mib << 20];
        let gzip = Algorithm::Gzip.compress(&zeros);
        drop(zeros);
        let class = "org.apache.hadoop.io.compress.GzipCodec";
        let (message, _) = self.table.put(b"bomb", b"q", b"");
        for _ in 0..4 {
            let mut connection = Connection::open_with(self.table.port, Some(class)).unwrap();
            let exception = connection.call("Mutate", &message, &gzip).unwrap().map(|_| ()).unwrap_err();
            assert!(exception.class == DO_NOT_RETRY || exception.server_overloaded, "{exception:?}");
        }
    }

    fn nested_filters(&self) {
        let mut connection = self.open();
        for depth in [200, 2000] {
            let exception = refuse(connection.call("Scan", &self.table.deeply_filtered(depth), &[]).unwrap());
            assert!(exception.do_not_retry, "{exception:?}");
        }
        let (_, cells): (proto::ScanResponse, _) = connection.call_ok("Scan", &self.table.deeply_filtered(2));
        assert!(!cells.is_empty());
    }

    /// Opens scanners and reads the first row with each. After another row was written and
    /// everything was flushed, each scanner must continue with the same second row.
    fn open_scanners(&self) {
        let mut connection = self.open();
        let mut first_rows = |wanted: u32| -> (u64, Bytes) {
            let request = proto::ScanRequest { number_of_rows: Some(wanted), ..self.table.scan() };
            let (answer, cells): (proto::ScanResponse, _) = connection.call_ok("Scan", &request);
            (answer.scanner_id(), cells)
        };
        let (_, first) = first_rows(1);
        let (_, first_two) = first_rows(2);
        let second = first_two.strip_prefix(&first[..]).expect("the second row follows the first");
        let scanners: Vec<u64> = (0..self.sizes.scanners)
            .map(|_| {
                let (scanner, cells) = first_rows(1);
                assert_eq!(cells, first);
                scanner
            })
            .collect();
        // A row between the first and the second.
        assert!(self.server.shell("put 't', 'b0000000x', 'f:q', 'later'; flush 't'").status.success());
        assert_ne!(first_rows(2).1, first_two);
        for scanner in scanners {
            let next = proto::ScanRequest {
                scanner_id: Some(scanner),
                number_of_rows: Some(1),
                ..proto::ScanRequest::default()
            };
            let (_, cells): (proto::ScanResponse, _) = connection.call_ok("Scan", &next);
            assert_eq!(cells, second, "each scanner continues at its position");
        }
    }

    /// All connections are served, twice in sequence.
    fn connections(&self) {
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
        let request = self.table.get(b"bystander");
        let mut open: Vec<_> = (0..self.sizes.connections).map(|_| self.open()).collect();
        for _ in 0..2 {
            for connection in &mut open {
                connection.send("Get", &request, &[]).unwrap();
            }
            for connection in &mut open {
                assert!(connection.answer().unwrap().outcome.is_ok());
            }
        }
    }

    /// Clients that request much data and read one byte per second.
    fn slow_readers(&self) {
        let mut request = self.table.scan();
        request.number_of_rows = Some(i32::MAX as u32);
        request.scan = Some(proto::Scan { start_row: Some("wide".into()), ..proto::Scan::default() });
        let mut readers: Vec<_> = (0..self.sizes.slow_readers).map(|_| self.open()).collect();
        for reader in &mut readers {
            for _ in 0..4 {
                reader.send("Scan", &request, &[]).unwrap();
            }
            reader.stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        }
        let begun = Instant::now();
        while begun.elapsed() < self.sizes.slow_attack_duration {
            for reader in &mut readers {
                let _ = reader.stream.read(&mut [0]);
            }
            thread::sleep(Duration::from_secs(1));
        }
    }
}

fn refuse(outcome: Outcome) -> RemoteException {
    outcome.map(|_| ()).expect_err("refused")
}

fn refused(outcome: Outcome, class: &str) {
    let exception = refuse(outcome);
    assert_eq!(exception.class, class, "{exception:?}");
}
