//! A log truncated at every byte, and with a bit flipped in every byte. Damage below the durable
//! end is an error. After damage above it the entries are a prefix. Nothing is ever read that was
//! not written.

#![allow(clippy::unwrap_used)] // In a test a panic is the report.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::env::Env;
use base::testing;
use fs::FilePath;
use fs::memory::MemoryFs;
use support::{Acks, edit, logs, options, read_all, region_name, start};
use wal::{Entry, Error, recovery};

/// Bytes at the end of a log of which every byte is flipped.
const FLIPPED_BYTES: usize = 64 << 10;

/// The state in which the log was left before it is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriterState {
    /// Right after a group was committed.
    Busy,
    /// Some time after a group was committed.
    Idle,
    /// Closed properly.
    Closed,
}

struct Subject {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// All bytes below it are durable according to the log itself.
    durable: u64,
    /// Where the content ends.
    end: u64,
}

async fn subject(env: &Env, state: WriterState, reserve_bytes: u64) -> Subject {
    let memory = MemoryFs::new();
    let options = wal::LogOptions { reserve_bytes, ..options() };
    let (log, _) = start(env, Arc::new(memory.clone()), options).await;
    let acks = Acks::new();
    let mut seq_id = 0;
    let mut group_start = 0;
    let path = logs(&memory, "WALs/s").await.remove(0);
    loop {
        let bytes = log.statistics().bytes;
        if bytes > FLIPPED_BYTES as u64 {
            break;
        }
        group_start = bytes;
        for _ in 0..1 + env.random.next_u64() % 8 {
            seq_id += 1;
            let value: Vec<u8> =
                (0..env.random.next_u64() % 700).map(|_| env.random.next_u64() as u8).collect();
            log.append(edit(&region_name(seq_id as usize % 3), seq_id, &value, &acks));
        }
        acks.wait(seq_id as usize).await;
    }
    match state {
        WriterState::Busy => (),
        WriterState::Idle => env.clock.sleep(Duration::from_secs(1)).await,
        WriterState::Closed => log.close().await,
    }
    let bytes = memory.contents(&path).unwrap();
    let (entries, tail) = read_all(&memory, &path).await.unwrap();
    assert_eq!(entries.len() as u64, seq_id);
    let durable = if state != WriterState::Busy { tail.end } else { entries[0].offset + group_start };
    Subject { bytes, entries, durable, end: tail.end }
}

/// Reads `bytes` as a log. Every eighth call also scans it as recovery does, and both must agree.
async fn read(bytes: Vec<u8>) -> Result<Vec<Entry>, (u64, &'static str)> {
    let memory = MemoryFs::new();
    let path = FilePath::new("WALs/s/s.1");
    memory.put(&path, bytes);
    let refusal = |error| match error {
        Error::Damaged { file, offset, what } => {
            assert_eq!(file, path);
            (offset, what)
        }
        other => panic!("{other}"),
    };
    let entries = read_all(&memory, &path).await.map(|(entries, _)| entries).map_err(refusal);
    static READ: AtomicU64 = AtomicU64::new(0);
    if !READ.fetch_add(1, Ordering::Relaxed).is_multiple_of(8) {
        return entries;
    }
    let index = recovery::scan(&memory, std::slice::from_ref(&path)).await.map_err(refusal);
    let count = index.as_ref().map(|index| index.regions().map(|(_, region)| region.entries).sum::<u64>());
    match (&entries, count) {
        (Ok(entries), Ok(count)) => assert_eq!(entries.len() as u64, count),
        (Err(one), Err(other)) => assert_eq!(one, other),
        other => panic!("reader and recovery disagree: {other:?}"),
    }
    entries
}

async fn check_flip(subject: &Subject, at: usize, bit: u32) {
    let mut flipped = subject.bytes.clone();
    flipped[at] ^= 1 << bit;
    let at = at as u64;
    let found = read(flipped).await;
    let whole: Vec<&Entry> = subject.entries.iter().take_while(|entry| entry.end <= at).collect();
    if at < subject.entries[0].offset {
        assert_eq!(found.unwrap_err().0, 0, "the header, flipped at {at}.{bit}");
    } else if at < subject.durable {
        let damaged = subject.entries.iter().find(|entry| entry.end > at).unwrap();
        let (offset, _) = found.expect_err("damage in durable bytes is an error");
        assert_eq!(offset, damaged.offset, "flipped at {at}.{bit}");
    } else {
        let found = found.unwrap_or_else(|refused| panic!("flipped at {at}.{bit}, refused {refused:?}"));
        let expected = if at < subject.end { &whole } else { &subject.entries.iter().collect() };
        assert_eq!(found.iter().collect::<Vec<_>>(), *expected, "flipped at {at}.{bit}");
    }
}

/// Flips one random bit of every `stride`th byte, or each bit of every byte with
/// `WAL_FLIP_ALL_BITS=1`.
async fn flips(seed: u64, state: WriterState, reserve_bytes: u64, stride: usize) {
    let all_bits = std::env::var_os("WAL_FLIP_ALL_BITS").is_some();
    let stride = if all_bits { 1 } else { stride };
    let env = testing::env(seed);
    let subject = subject(&env, state, reserve_bytes).await;
    let until = subject.bytes.len().min(subject.end as usize + 200);
    let header = 0..200;
    let last = until.saturating_sub(FLIPPED_BYTES)..until;
    for at in header.chain(last.step_by(stride)) {
        let bits = if all_bits { 0..8 } else { (env.random.next_u64() % 8) as u32..8 };
        for bit in bits.take(if all_bits { 8 } else { 1 }) {
            check_flip(&subject, at, bit).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn flipped_while_busy() {
    flips(1, WriterState::Busy, 32 << 10, 1).await;
}

#[tokio::test(start_paused = true)]
async fn flipped_while_idle() {
    flips(2, WriterState::Idle, 32 << 10, 11).await;
}

#[tokio::test(start_paused = true)]
async fn flipped_after_close() {
    flips(3, WriterState::Closed, 32 << 10, 11).await;
}

#[tokio::test(start_paused = true)]
async fn flipped_where_nothing_is_reserved() {
    flips(4, WriterState::Busy, 0, 11).await;
}

/// Truncated anywhere, the entries are a prefix. A truncated file does not show what it held; only
/// the log after it does (see `the_next_log_states_what_is_missing`).
#[tokio::test(start_paused = true)]
async fn truncated_at_every_byte() {
    let cases = [
        (5, WriterState::Busy, 32 << 10, 1),
        (6, WriterState::Closed, 32 << 10, 7),
        (7, WriterState::Busy, 0, 7),
    ];
    for (seed, state, reserve_bytes, stride) in cases {
        let env = testing::env(seed);
        let subject = subject(&env, state, reserve_bytes).await;
        for len in (0..subject.bytes.len().min(subject.end as usize + 100)).step_by(stride) {
            let whole = subject.entries.iter().take_while(|entry| entry.end <= len as u64).count();
            let found = read(subject.bytes[..len].to_vec()).await.unwrap();
            assert_eq!(found[..], subject.entries[..whole], "truncated to {len} bytes");
        }
    }
}

/// As after the loss of a disk sector: zeros in place of bytes.
#[tokio::test(start_paused = true)]
async fn zeros_in_place_of_a_sector() {
    let env = testing::env(8);
    let subject = subject(&env, WriterState::Busy, 32 << 10).await;
    for start in (512..subject.end as usize).step_by(512) {
        let end = (start + 512).min(subject.bytes.len());
        let mut zeroed = subject.bytes.clone();
        zeroed[start..end].fill(0);
        let found = read(zeroed).await;
        let hit = subject.entries.iter().find(|entry| entry.end > start as u64).unwrap();
        // The mark that states what is durable is in the first entry of the last group. Without it,
        // only the group before is known to be durable.
        if hit.offset < subject.durable && (end as u64) <= subject.durable {
            assert_eq!(found.unwrap_err().0, hit.offset);
        } else if let Ok(found) = found {
            let whole = subject.entries.iter().take_while(|entry| entry.end <= start as u64).count();
            assert_eq!(found[..], subject.entries[..whole]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_log_states_what_is_missing() {
    let env = testing::env(9);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    let acks = Acks::new();
    for seq_id in 1..=20 {
        log.append(edit(&region_name(1), seq_id, b"value", &acks));
        acks.wait(seq_id as usize).await;
    }
    log.roll().await.unwrap();
    log.append(edit(&region_name(1), 21, b"value", &acks));
    acks.wait(21).await;
    env.clock.sleep(Duration::from_secs(1)).await;

    let paths = logs(&memory, "WALs/s").await;
    assert_eq!(paths.len(), 2);
    let bytes = memory.contents(&paths[0]).unwrap();
    let (entries, tail) = read_all(&memory, &paths[0]).await.unwrap();
    assert_eq!(entries.len(), 20);
    let index = recovery::scan(&memory, &paths).await.unwrap();
    assert_eq!(index.region(&region_name(1)).unwrap().entries, 21);
    for len in 0..bytes.len() {
        memory.put(&paths[0], &bytes[..len]);
        let scanned = recovery::scan(&memory, &paths).await;
        let whole = entries.iter().take_while(|entry| entry.end <= len as u64).last();
        match scanned {
            Ok(_) => assert!(len as u64 >= tail.end, "truncated to {len} bytes"),
            Err(Error::Damaged { file, offset, .. }) => {
                assert!((len as u64) < tail.end, "truncated to {len} bytes");
                assert_eq!(file, paths[0]);
                let header = if len < 117 { 0 } else { 117 };
                assert_eq!(offset, whole.map_or(header, |entry| entry.end));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Bytes of another log, or of this log at another offset, are not entries of this log.
#[tokio::test(start_paused = true)]
async fn entries_of_another_log_are_not_read() {
    let env = testing::env(10);
    let one = subject(&env, WriterState::Busy, 0).await;
    let other = subject(&testing::env(11), WriterState::Busy, 0).await;
    let header = one.entries[0].offset as usize;
    // Another file's entries after this file's header, as when a disk shows blocks of a removed
    // file.
    let mixed = [&one.bytes[..header], &other.bytes[header..]].concat();
    assert_eq!(read(mixed).await.unwrap(), []);
    // A copy of this file's last entry at its end.
    let last = one.entries.last().unwrap();
    let twice = [&one.bytes[..], &one.bytes[last.offset as usize..last.end as usize]].concat();
    assert_eq!(read(twice).await.unwrap(), one.entries);
}

/// Any bytes after a header cost bounded memory and give a result.
#[tokio::test(start_paused = true)]
async fn garbage_is_no_entry() {
    let env = testing::env(12);
    let subject = subject(&env, WriterState::Busy, 0).await;
    let header = subject.entries[0].offset as usize;
    let plain = include_bytes!("vectors/wal-plain.wal");
    let dictionary = include_bytes!("vectors/wal-dict-compressed.wal");
    for round in 0..3000 {
        let mut rubbish = vec![0; (env.random.next_u64() % 600) as usize];
        env.random.fill(&mut rubbish);
        if round % 3 == 0 && rubbish.len() > 10 {
            // A key length of 256 MiB to 4 GiB, far above the maximum.
            rubbish[..5].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, (round % 16) as u8]);
        }
        let ours = [&subject.bytes[..header], &rubbish].concat();
        assert_eq!(read(ours).await.unwrap(), []);
        for (bytes, header) in [(&plain[..], 85), (dictionary, 87)] {
            let memory = MemoryFs::new();
            let path = FilePath::new("WALs/s/s.1");
            memory.put(&path, [&bytes[..header], &rubbish].concat());
            if let Ok((entries, _)) = read_all(&memory, &path).await {
                assert_eq!(entries, []);
            }
        }
    }
}
