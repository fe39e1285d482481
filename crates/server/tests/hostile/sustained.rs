//! Sustained attacks: clients keep the server busy from one or several connections, while
//! bystanders get their row.
//!
//! The quick form runs each attack for one second. `GRAMPUS_HOSTILE_SECONDS=60 cargo test --release
//! -p server --test hostile sustained -- --nocapture` runs each for a minute from 1, 2, 4 and 8
//! connections, prints a table, and requires a 99th percentile of at most 100 ms.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use base::compression::Algorithm;
use bytes::Bytes;
use prost::Message;
use proto::filter_list::Operator;

use crate::common::{PORTS, Server, TempDir};
use crate::connection::Connection;
use crate::table::Table;
use crate::watch::{Bystanders, forget_peak, resident_bytes};

const MEMORY_MIB: u64 = 256;
/// Rows that scans read.
const ROWS: usize = 20_000;
/// Requests sent before any response is read.
const PIPELINED: usize = 16;
/// Limit for bystanders' latency in the long form, and in the quick form, which shares the machine
/// with other tests.
const LATENCY_MAX: Duration = Duration::from_millis(100);
const QUICK_LATENCY_MAX: Duration = Duration::from_secs(2);

const PACKAGE: &str = "org.apache.hadoop.io.compress.";
const CODECS: [(&str, Algorithm); 5] = [
    ("DefaultCodec", Algorithm::Zlib),
    ("GzipCodec", Algorithm::Gzip),
    ("SnappyCodec", Algorithm::Snappy),
    ("ZStandardCodec", Algorithm::Zstd),
    ("Lz4Codec", Algorithm::Lz4),
];

type Attack = fn(&Table, usize, Instant);

const ATTACKS: [(&str, Attack); 14] = [
    ("bombs of 8 MiB", |table, at, end| bombs(table, at, end, 8 << 20)),
    ("bombs of 250 MB", |table, at, end| bombs(table, at, end, 250_000_000)),
    ("lists of 5,000 filters", |table, _, end| scans(table, end, &prefixes(5_000))),
    ("the same, abandoned", abandoned_scans),
    ("lists of 150,000 filters", |table, _, end| scans(table, end, &prefixes(150_000))),
    ("lists of 1,000,000 filters", |table, _, end| scans(table, end, &prefixes(1_000_000))),
    ("regular expressions", |table, _, end| {
        scans(table, end, &regexes(50, "(b|0|[b0-9]){1,60}(b*b*)*[0-9]+x"))
    }),
    ("the same, by backtracking", |table, _, end| {
        scans(table, end, &regexes(50, r"(b?)(?:(?:[b0-9]+)+[b0-9]*)+\1y"));
    }),
    ("gets with long filters", |table, _, end| gets_with_filter(table, end)),
    ("batches of 50,000 puts", |table, _, end| batches(table, end)),
    ("pipelined gets", |table, _, end| pipelined_gets(table, end)),
    ("scanners with long filters", |table, _, end| scanners(table, end)),
    ("floods of connections", |table, _, end| flood(table, end)),
    ("scans of everything", |table, _, end| long_scans(table, end)),
];

#[test]
fn sustained_attacks_do_not_affect_others() {
    let seconds = std::env::var("GRAMPUS_HOSTILE_SECONDS").ok().map(|text| text.parse::<u64>().unwrap());
    let only = std::env::var("GRAMPUS_HOSTILE_ONLY").unwrap_or_default();
    let (connections, latency_max) = match seconds {
        Some(_) => (&[1, 2, 4, 8][..], LATENCY_MAX),
        None => (&[4][..], QUICK_LATENCY_MAX),
    };
    let dir = TempDir::new();
    let memory = format!("grampus.memory={MEMORY_MIB} MiB");
    let server = Server::start_with(&dir.join("data"), &["--set", &memory]);
    assert!(server.shell("create 't', 'f'").status.success());
    let table = Table::find(PORTS[3] + server.offset);
    fill(&table);
    println!(
        "{:<28} {:>5} {:>7} {:>7} {:>7} {:>7} {:>5} {:>5}",
        "attack", "conns", "gets", "p50 ms", "p99 ms", "max ms", "busy", "MiB"
    );
    let mut faults = Vec::new();
    for (name, attack) in ATTACKS.into_iter().filter(|(name, _)| name.contains(&only)) {
        for &connections in connections {
            let measured =
                run_attack(&server, &table, (connections, attack), Duration::from_secs(seconds.unwrap_or(1)));
            println!("{name:<28} {connections:>5} {}", measured.line());
            if measured.p99 > latency_max
                || measured.peak_mib > MEMORY_MIB
                || measured.refused * 2 > measured.gets
            {
                faults.push(format!("{name} from {connections} connections: {}", measured.line()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The bystanders' measurements and the server's peak memory.
struct AttackResult {
    gets: usize,
    refused: usize,
    p50: Duration,
    p99: Duration,
    max: Duration,
    peak_mib: u64,
}

impl AttackResult {
    fn line(&self) -> String {
        let [p50, p99, max] = [self.p50, self.p99, self.max].map(|time| time.as_secs_f64() * 1e3);
        let AttackResult { gets, refused, peak_mib, .. } = self;
        format!("{gets:>7} {p50:>7.1} {p99:>7.1} {max:>7.0} {refused:>5} {peak_mib:>5}")
    }
}

fn run_attack(
    server: &Server,
    table: &Table,
    (connections, attack): (usize, Attack),
    time: Duration,
) -> AttackResult {
    forget_peak(server.pid());
    let end = Instant::now() + time;
    let attackers: Vec<_> = (0..connections)
        .map(|at| {
            let table = table.clone();
            thread::spawn(move || attack(&table, at, end))
        })
        .collect();
    // Wait until the attack has begun.
    thread::sleep(Duration::from_millis(100));
    let bystanders = Bystanders::start(table);
    thread::sleep(end.saturating_duration_since(Instant::now()));
    let measured = bystanders.stop();
    let (_, peak) = resident_bytes(server.pid());
    for attacker in attackers {
        attacker.join().unwrap();
    }
    AttackResult {
        gets: measured.count(),
        refused: measured.refused,
        p50: measured.quantile(0.5),
        p99: measured.quantile(0.99),
        max: measured.quantile(1.0),
        peak_mib: peak >> 20,
    }
}

fn fill(table: &Table) {
    let (message, cells) = table.batch(ROWS);
    Connection::open(table.port).unwrap().call("Multi", &message, &cells).unwrap().unwrap();
}

/// Sends groups of requests and reads their responses, whatever they are, until `end`. A closed
/// connection is reopened.
fn keep_sending(
    table: &Table,
    end: Instant,
    compressor: Option<&str>,
    (method, message, cells): (&str, &impl Message, &[u8]),
    group: usize,
) {
    while Instant::now() < end {
        let Ok(mut connection) = Connection::open_with(table.port, compressor) else { continue };
        while Instant::now() < end {
            let sent = (0..group).try_for_each(|_| connection.send(method, message, cells));
            if sent.is_err() || (0..group).any(|_| connection.answer().is_err()) {
                break;
            }
        }
    }
}

fn bombs(table: &Table, at: usize, end: Instant, bytes: usize) {
    let (class, algorithm) = CODECS[at % CODECS.len()];
    let bomb = algorithm.compress(&vec![0; bytes]);
    let (message, _) = table.put(b"bomb", b"q", b"");
    let class = format!("{PACKAGE}{class}");
    keep_sending(table, end, Some(&class), ("Mutate", &message, &bomb), PIPELINED);
}

fn named(name: &str, message: &impl Message) -> proto::Filter {
    proto::Filter {
        name: format!("org.apache.hadoop.hbase.filter.{name}"),
        serialized_filter: Some(message.encode_to_vec().into()),
    }
}

fn list(filters: Vec<proto::Filter>) -> proto::Filter {
    named("FilterList", &proto::FilterList { operator: Operator::MustPassOne.into(), filters })
}

/// A list of prefix filters that match no row.
fn prefixes(count: usize) -> proto::Filter {
    let prefix = |at| named("PrefixFilter", &proto::PrefixFilter { prefix: Some(format!("x{at}").into()) });
    list((0..count).map(prefix).collect())
}

/// A list of regular expressions, each with very many ways to match.
fn regexes(count: usize, source: &str) -> proto::Filter {
    let regex = |at: usize| {
        let pattern = proto::RegexStringComparator {
            pattern: format!("{source}{at}"),
            pattern_flags: 0,
            charset: "UTF-8".into(),
            engine: None,
        };
        let comparator = proto::Comparator {
            name: "org.apache.hadoop.hbase.filter.RegexStringComparator".into(),
            serialized_comparator: Some(pattern.encode_to_vec().into()),
        };
        let compare_filter = proto::CompareFilter {
            compare_op: proto::CompareType::Equal.into(),
            comparator: Some(comparator),
        };
        named("RowFilter", &proto::RowFilter { compare_filter })
    };
    list((0..count).map(regex).collect())
}

fn filtered(table: &Table, filter: &proto::Filter) -> proto::ScanRequest {
    let scan = proto::Scan { filter: Some(filter.clone()), ..proto::Scan::default() };
    proto::ScanRequest {
        scan: Some(scan),
        number_of_rows: Some(i32::MAX as u32),
        close_scanner: Some(true),
        ..table.scan()
    }
}

fn scans(table: &Table, end: Instant, filter: &proto::Filter) {
    keep_sending(table, end, None, ("Scan", &filtered(table, filter), &[]), 2);
}

fn abandoned_scans(table: &Table, _: usize, end: Instant) {
    let request = filtered(table, &prefixes(5_000));
    while Instant::now() < end {
        let Ok(mut connection) = Connection::open(table.port) else { continue };
        for _ in 0..4 {
            let _ = connection.send("Scan", &request, &[]);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn gets_with_filter(table: &Table, end: Instant) {
    let mut request = table.get(b"bystander");
    request.get.filter = Some(prefixes(20_000));
    keep_sending(table, end, None, ("Get", &request, &[]), PIPELINED);
}

fn batches(table: &Table, end: Instant) {
    let (message, cells) = table.batch(50_000);
    keep_sending(table, end, None, ("Multi", &message, &cells), 1);
}

fn pipelined_gets(table: &Table, end: Instant) {
    keep_sending(table, end, None, ("Get", &table.get(b"b0000007"), &[]), 2_000);
}

/// Opens scanners and never uses them.
fn scanners(table: &Table, end: Instant) {
    let filter =
        named("PrefixFilter", &proto::PrefixFilter { prefix: Some(Bytes::from(vec![b'x'; 1 << 20])) });
    let request =
        proto::ScanRequest { number_of_rows: Some(0), close_scanner: None, ..filtered(table, &filter) };
    keep_sending(table, end, None, ("Scan", &request, &[]), 4);
}

/// Opens connections that send half a header, and drops them in groups of 100.
fn flood(table: &Table, end: Instant) {
    while Instant::now() < end {
        let mut held = Vec::new();
        while held.len() < 100 && Instant::now() < end {
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", table.port)) else { break };
            let _ = stream.write_all(b"HBas\0\x50\0\0");
            held.push(stream);
        }
    }
}

fn long_scans(table: &Table, end: Instant) {
    let request = proto::ScanRequest {
        number_of_rows: Some(i32::MAX as u32),
        close_scanner: Some(true),
        ..table.scan()
    };
    keep_sending(table, end, None, ("Scan", &request, &[]), 4);
}
