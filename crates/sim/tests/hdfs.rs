//! A cluster on HDFS keeps its promises under faults.
//!
//! This is the only test of its program: then the runs are the same each time (see `replay.rs`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sim::WorldOptions;
use sim::cluster::Planted;
use sim::cluster::scenario::{ClusterOptions, run};

/// Faults of each run.
const STEPS: usize = 4;
/// Number of seeds.
const SEEDS: u64 = 6;

#[test]
fn a_cluster_on_hdfs_keeps_its_promises_under_faults() {
    let options = ClusterOptions { on_hdfs: true, ..ClusterOptions::new(STEPS) };
    for seed in 0..SEEDS {
        let run = run(WorldOptions::new(seed), options);
        let Ok(Ok(summary)) = &run.result else {
            panic!("seed {seed}: {:?}\n{}", run.result, run.last.join("\n"));
        };
        assert!(run.is_freed, "seed {seed}: processes that were killed leak memory");
        assert!(summary.writes > 10 && summary.reads > 10, "seed {seed}: {summary:?}");
    }
    let unfenced = ClusterOptions { planted: Some(Planted::UnfencedLogs), steps: 12, ..options };
    let is_found = |seed| run(WorldOptions::new(seed), unfenced).result.is_ok_and(|result| result.is_err());
    assert!((0..SEEDS).any(is_found), "no seed finds that logs are not fenced");
}
