//! The replay of the logs of several dead servers, with a failure at any entry.

use std::sync::Arc;

use base::BoxFuture;
use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::recovery::JoinedEntries;
use engine::region::RegionOptions;
use engine::replay::Entries;
use engine::{Opening, Region};
use fs::FilePath;
use fs::memory::MemoryFs;

use crate::common::world::{open, options, region_info, run, scan, services, table};

/// Rows that each server wrote, too many for one memstore of `small_memstores`.
const ROWS: usize = 20;
const VALUE: [u8; 1 << 10] = [7; 1 << 10];

fn small_memstores() -> RegionOptions {
    RegionOptions { flush_bytes: 4 << 10, block_multiplier: 1 << 20, ..options() }
}

fn rows(prefix: &str) -> impl Iterator<Item = String> {
    (0..ROWS).map(move |number| format!("{prefix}{number:02}"))
}

/// Opens the region, writes rows, and crashes. Nothing is flushed.
async fn write_and_crash(env: &Env, fs: MemoryFs, prefix: &str) -> MemoryFs {
    let opened = open(env, Arc::new(fs.clone()), options()).await.unwrap();
    for row in rows(prefix) {
        let cell = KeyValue::new(row.as_bytes(), b"f", b"q", LATEST_TIMESTAMP, CellType::Put, &VALUE);
        let put = Mutation::put(Bytes::from(row), vec![cell]);
        opened.region.batch(vec![put]).await.remove(0).unwrap();
    }
    fs.crash(&mut || 0)
}

/// The entries in the logs of one server.
async fn entries(fs: &MemoryFs, start_code: u64) -> Box<dyn Entries> {
    let dir = FilePath::new(&format!("WALs/host,16020,{start_code}"));
    let logs = wal::recovery::logs_in(fs, &dir).await.unwrap();
    let index = Arc::new(wal::recovery::scan(fs, &logs).await.unwrap());
    Box::new(wal::recovery::read_region(Arc::new(fs.clone()), index, &region_info().encoded_name()))
}

/// Entries whose reader fails after some of them.
struct FailsAfter {
    entries: JoinedEntries,
    left: usize,
}

impl Entries for FailsAfter {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<wal::Entry>>> {
        Box::pin(async move {
            if self.left == 0 {
                let (file, what) = (FilePath::new("log"), "a failure of the test");
                return Err(wal::Error::Damaged { file, offset: 0, what });
            }
            self.left -= 1;
            self.entries.next().await
        })
    }

    fn lowest_to_come(&self) -> Option<u64> {
        self.entries.lowest_to_come()
    }
}

/// Opens the region with the logs of both dead servers, on another server.
async fn open_with(
    env: &Env,
    fs: &MemoryFs,
    parts: [u64; 2],
    left: usize,
) -> Result<Arc<Region>, engine::Error> {
    let dir = FilePath::new("WALs/other,16020,9");
    let log_options = wal::LogOptions::new(dir, "other", FilePath::new("oldWALs"));
    let on_fatal = Arc::new(|_: &wal::Error| ());
    let shared: Arc<dyn fs::FileSystem> = Arc::new(fs.clone());
    let log = wal::Log::start(env.clone(), shared.clone(), log_options, on_fatal).await.unwrap();
    let joined = JoinedEntries::new(vec![entries(fs, parts[0]).await, entries(fs, parts[1]).await]);
    let opening = Opening {
        info: region_info(),
        table: Arc::new(table()),
        entries: Box::new(FailsAfter { entries: joined, left }),
    };
    let opened = Region::open(services(env, shared, log.clone(), small_memstores()), opening).await;
    log.close().await;
    opened
}

/// A region was open on two servers, one after the other, and none flushed it. Memory is flushed
/// while the region opens, and the open fails. The next one must not take the edits that were not
/// read yet for flushed ones.
#[test]
fn a_replay_that_fails_after_a_flush_skips_no_edit_later() {
    run(async {
        let env = base::testing::env(7);
        let first = write_and_crash(&env, MemoryFs::new(), "a").await;
        let killed = write_and_crash(&env, first, "b").await;
        let expected: Vec<String> = rows("a").chain(rows("b")).collect();
        let (mut failures, mut flushes) = (0, 0);
        for parts in [[1, 2], [2, 1]] {
            for left in (0..2 * ROWS + 4).step_by(3) {
                let fs = killed.crash(&mut || 0);
                failures += usize::from(open_with(&env, &fs, parts, left).await.is_err());
                let fs = fs.crash(&mut || 0);
                let region = open_with(&env, &fs, parts, usize::MAX).await.unwrap();
                flushes += region.metrics().stores[0].files;
                let found: Vec<String> = scan(&region)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|shown| String::from_utf8(shown.0).unwrap())
                    .collect();
                assert_eq!(found, expected, "after a failure at entry {left} of {parts:?}");
            }
        }
        assert!(failures > 2 * ROWS / 3, "{failures} opens failed");
        assert!(flushes > 0, "memory was flushed during the replays");
    });
}
