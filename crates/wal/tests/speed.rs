//! Measures how long recovery of a dead server with 200 MB of log takes:
//! `cargo test --release -p wal --test speed -- --ignored --nocapture`. It prints measurements and
//! asserts no limits, since timings on a shared machine vary.

#![allow(clippy::unwrap_used)] // In a test a panic is the report.

mod support;

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::pool::Pool;
use base::testing;
use fs::FilePath;
use fs::local::LocalFs;
use support::{Acks, edit, logs, options, region_name, start};
use wal::{LogOptions, recovery};

/// Formats the time that passed, and this thread's CPU time, since the stopwatch began.
struct Stopwatch<'a> {
    env: &'a Env,
    begun: Duration,
    computed: Duration,
}

impl Stopwatch<'_> {
    fn begin(env: &Env) -> Stopwatch<'_> {
        Stopwatch { env, begun: env.clock.monotonic(), computed: computed() }
    }

    fn shown(&self) -> String {
        let passed = self.env.clock.monotonic() - self.begun;
        format!(
            "{} ms, of them {} ms computing here",
            passed.as_millis(),
            (computed() - self.computed).as_millis()
        )
    }
}

fn computed() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

#[tokio::test]
#[ignore = "measures, does not test"]
async fn write_index_and_read_200_megabytes() {
    let root =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wal-speed-{}", std::process::id()));
    let pool = Arc::new(Pool::new("fs", 4));
    let fs = Arc::new(LocalFs::create(&root, pool).unwrap());
    let env = testing::env(1);
    for value_bytes in [100, 1000] {
        let dir = format!("WALs/s{value_bytes}");
        let options = LogOptions { dir: FilePath::new(&dir), reserve_bytes: 1 << 20, ..options() };
        let (log, _) = start(&env, fs.clone(), options).await;
        let acks = Acks::new();
        let regions: Vec<_> = (0..10).map(region_name).collect();
        let value = vec![7; value_bytes];
        let watch = Stopwatch::begin(&env);
        let mut seq_id = 0;
        while log.statistics().bytes < 200 << 20 {
            for _ in 0..1000 {
                seq_id += 1;
                // Batches of five, as clients with buffered writes make them.
                log.append(edit(&regions[seq_id as usize / 5 % 10], seq_id, &value, &acks));
            }
            acks.wait(seq_id as usize).await;
        }
        println!("{value_bytes} B values: {seq_id} edits in groups of 1000 written in {}", watch.shown());
        let paths = logs(&*fs, &dir).await;
        let watch = Stopwatch::begin(&env);
        let index = Arc::new(recovery::scan(&*fs, &paths).await.unwrap());
        println!("  indexed in {}", watch.shown());
        assert_eq!(index.regions().map(|(_, region)| region.entries).sum::<u64>(), seq_id);
        let watch = Stopwatch::begin(&env);
        for region in &regions {
            let mut reader = recovery::read_region(fs.clone(), index.clone(), region);
            while reader.next().await.unwrap().is_some() {}
        }
        println!("  ten regions read in {}", watch.shown());
        log.close().await;
    }
    std::fs::remove_dir_all(&root).unwrap();
}
