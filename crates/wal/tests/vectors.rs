//! Logs that HBase 2.5.10 wrote, compared entry by entry with the listings of HBase's own reader.

#![allow(clippy::unwrap_used)] // In a test a panic is the report.

mod support;

use std::fmt::Write;
use std::sync::Arc;

use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use support::read_all;
use wal::{Ending, Entry, recovery};

fn escaped(bytes: &[u8]) -> String {
    let plain = |byte: u8| (32..127).contains(&byte) && byte != b'\\';
    bytes.iter().fold(String::new(), |mut out, &byte| {
        match plain(byte) {
            true => out.push(char::from(byte)),
            false => write!(out, "\\x{byte:02X}").unwrap(),
        }
        out
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn uuid((high, low): &(u64, u64)) -> String {
    let digits = format!("{high:016x}{low:016x}");
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}

/// Formats an entry as the listings do.
fn listed(entry: &Entry, out: &mut String) {
    let key = &entry.key;
    let scopes = match key.scopes.first() {
        None => "none".into(),
        Some(scope) => format!("{}:{}", escaped(&scope.family), scope.code),
    };
    let clusters: Vec<String> = key.cluster_ids.iter().map(uuid).collect();
    writeln!(
        out,
        "ENTRY pos={} region={} table={} seq={} writeTime={} scopes={scopes} nonceGroup={} nonce={} clusterIds=[{}]",
        entry.offset,
        escaped(&key.region),
        escaped(&key.table),
        key.seq_id,
        key.write_time_ms,
        key.nonce.0,
        key.nonce.1,
        clusters.join(", ")
    )
    .unwrap();
    for cell in entry.key_values() {
        let cell = cell::KeyValue::from_bytes(cell).unwrap();
        let cell = cell.view(0);
        writeln!(
            out,
            "  CELL row={} fam={} qual={} ts={} type={} tags={} valhex={}",
            escaped(cell.row()),
            escaped(cell.family()),
            escaped(cell.qualifier()),
            cell.timestamp(),
            cell.type_code(),
            hex(cell.tags),
            hex(cell.value)
        )
        .unwrap();
    }
}

async fn check(name: &str, log: &[u8], listing: &str) {
    let fs = MemoryFs::new();
    let path = FilePath::new(&format!("WALs/h%2C1%2C2/h%2C1%2C2.{name}"));
    fs.put(&path, log);
    let (entries, tail) = read_all(&fs, &path).await.unwrap();
    let mut out = format!("FILE {name}.wal size={}\n", log.len());
    entries.iter().for_each(|entry| listed(entry, &mut out));
    assert_eq!(out, listing);
    assert_eq!(tail.ending, Ending::Trailer);

    // Truncated anywhere, it is read up to there, as in HBase. A truncated compressed entry is the
    // end, too.
    for len in 0..log.len() {
        fs.put(&path, &log[..len]);
        let whole = entries.iter().take_while(|entry| entry.end <= len as u64).count();
        let (found, _) = read_all(&fs, &path).await.unwrap();
        assert_eq!(found[..], entries[..whole], "{name} truncated to {len} bytes");
    }
}

#[tokio::test]
async fn a_plain_log() {
    check("wal-plain", include_bytes!("vectors/wal-plain.wal"), include_str!("vectors/wal-plain.txt")).await;
}

#[tokio::test]
async fn a_log_with_dictionaries() {
    let log = include_bytes!("vectors/wal-dict-compressed.wal");
    check("wal-dict-compressed", log, include_str!("vectors/wal-dict-compressed.txt")).await;
}

#[tokio::test]
async fn a_log_with_dictionaries_and_compressed_values() {
    let log = include_bytes!("vectors/wal-dict-value-gz.wal");
    check("wal-dict-value-gz", log, include_str!("vectors/wal-dict-value-gz.txt")).await;
}

/// No flipped bit in a log of HBase causes more than an error.
#[tokio::test]
async fn no_flipped_bit_makes_a_reader_panic() {
    let fs = MemoryFs::new();
    let path = FilePath::new("WALs/s/s.1");
    for log in [
        &include_bytes!("vectors/wal-plain.wal")[..],
        include_bytes!("vectors/wal-dict-compressed.wal"),
        include_bytes!("vectors/wal-dict-value-gz.wal"),
    ] {
        let mut refused = 0;
        for at in 0..log.len() {
            for bit in 0..8 {
                let mut flipped = log.to_vec();
                flipped[at] ^= 1 << bit;
                fs.put(&path, flipped);
                refused += usize::from(read_all(&fs, &path).await.is_err());
                let _ = recovery::scan(&fs, std::slice::from_ref(&path)).await;
            }
        }
        assert!(refused > 0);
    }
}

#[tokio::test]
async fn recovery_finds_the_region_in_logs_of_all_three_forms() {
    let memory = MemoryFs::new();
    let mut paths = Vec::new();
    for (number, log) in [
        &include_bytes!("vectors/wal-plain.wal")[..],
        include_bytes!("vectors/wal-dict-compressed.wal"),
        include_bytes!("vectors/wal-dict-value-gz.wal"),
    ]
    .into_iter()
    .enumerate()
    {
        paths.push(FilePath::new(&format!("WALs/s/s.{number}")));
        memory.put(&paths[number], log);
    }
    let fs: Arc<dyn FileSystem> = Arc::new(memory);
    let index = Arc::new(recovery::scan(&*fs, &paths).await.unwrap());
    let name = "1701a7ecba2642ef944c55a801acd7cf";
    let region = index.region(name).unwrap();
    assert_eq!((region.entries, region.lowest_seq_id, region.highest_seq_id), (24, 1, 8));
    assert_eq!(region.table, "t1");
    // Markers (6 to 8) do not keep a log.
    assert_eq!(index.logs()[0].highest, [(name.into(), 5)].into());
    let mut reader = recovery::read_region(fs.clone(), index.clone(), name);
    let mut seq_ids = Vec::new();
    while let Some(entry) = reader.next().await.unwrap() {
        seq_ids.push(entry.key.seq_id);
    }
    assert_eq!(seq_ids, (1..=8).cycle().take(24).collect::<Vec<u64>>());
    assert!(recovery::read_region(fs, index, "other").next().await.unwrap().is_none());
}
