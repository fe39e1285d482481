//! Edits, their acknowledgements, and logs over a file system in memory.

#![allow(dead_code)] // Each test file uses a part.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::env::Env;
use bytes::{BufMut, Bytes, BytesMut};
use cell::{CellType, KeyValue};
use fs::{FilePath, FileSystem};
use tokio::sync::Notify;
use wal::{Committed, Edit, Entry, Error, Log, LogOptions, LogReader, Tail};

/// The outcome of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed(u64),
    Failed(u64, String),
}

/// Records the outcomes of one region's edits.
#[derive(Default)]
pub struct Acks {
    outcomes: Mutex<Vec<Outcome>>,
    changed: Notify,
}

impl Acks {
    pub fn new() -> Arc<Acks> {
        Arc::default()
    }

    pub fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.lock().unwrap().clone()
    }

    pub fn committed(&self) -> Vec<u64> {
        let of = |outcome| match outcome {
            Outcome::Committed(seq_id) => Some(seq_id),
            Outcome::Failed(..) => None,
        };
        self.outcomes().into_iter().filter_map(of).collect()
    }

    pub fn failed(&self) -> usize {
        self.outcomes().len() - self.committed().len()
    }

    /// Waits until `count` edits have an outcome.
    pub async fn wait(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            if self.outcomes.lock().unwrap().len() >= count {
                return;
            }
            changed.await;
        }
    }

    fn push(&self, outcome: Outcome) {
        self.outcomes.lock().unwrap().push(outcome);
        self.changed.notify_waiters();
    }
}

impl Committed for Acks {
    fn committed(&self, seq_id: u64) {
        self.push(Outcome::Committed(seq_id));
    }

    fn failed(&self, seq_id: u64, error: &Error) {
        self.push(Outcome::Failed(seq_id, error.to_string()));
    }
}

/// One cell, preceded by its length.
pub fn cells(row: &str, value: &[u8]) -> Bytes {
    let cell = KeyValue::new(row.as_bytes(), b"f", b"q", 1_700_000_000_000, CellType::Put, value);
    let mut out = BytesMut::new();
    out.put_u32(cell.bytes().len() as u32);
    out.put_slice(cell.bytes());
    out.freeze()
}

/// An encoded region name of 32 digits.
pub fn region_name(number: usize) -> Arc<str> {
    format!("{number:032x}").into()
}

pub fn edit(region: &Arc<str>, seq_id: u64, value: &[u8], listener: &Arc<Acks>) -> Edit {
    Edit {
        region: region.clone(),
        table: Bytes::from_static(b"t"),
        seq_id,
        write_time_ms: 1_700_000_000_000 + seq_id,
        cells: cells(&format!("row-{seq_id:06}"), value),
        cell_count: 1,
        nonce: (0, 0),
        scopes: Arc::default(),
        cluster_ids: None,
        logged: true,
        forced: false,
        listener: listener.clone(),
    }
}

pub fn options() -> LogOptions {
    LogOptions {
        reserve_bytes: 64 << 10,
        ..LogOptions::new(FilePath::new("WALs/s"), "s", FilePath::new("oldWALs"))
    }
}

/// Counts how often a log reported that it stopped.
#[derive(Clone, Default)]
pub struct Fatal(Arc<AtomicU64>);

impl Fatal {
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub async fn start(env: &Env, fs: Arc<dyn FileSystem>, options: LogOptions) -> (Arc<Log>, Fatal) {
    let fatal = Fatal::default();
    let count = fatal.clone();
    let on_fatal = Arc::new(move |_: &Error| {
        count.0.fetch_add(1, Ordering::Relaxed);
    });
    (Log::start(env.clone(), fs, options, on_fatal).await.unwrap(), fatal)
}

/// All entries of a log, and its end.
pub async fn read_all(fs: &dyn FileSystem, path: &FilePath) -> wal::Result<(Vec<Entry>, Tail)> {
    let mut reader = LogReader::open(fs, path).await?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next().await? {
        entries.push(entry);
    }
    let tail = reader.tail().expect("the reader reached the end");
    Ok((entries, tail))
}

pub async fn logs(fs: &dyn FileSystem, dir: &str) -> Vec<FilePath> {
    wal::recovery::logs_in(fs, &FilePath::new(dir)).await.unwrap()
}
