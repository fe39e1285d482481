//! A cluster keeps its promises under faults.
//!
//! This is the only test of its program: then the runs are the same each time (see `replay.rs`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sim::WorldOptions;
use sim::cluster::scenario::{ClusterOptions, run};

/// Faults of each run.
const STEPS: usize = 4;

#[test]
fn a_cluster_keeps_its_promises_under_faults() {
    for seed in 0..10 {
        let run = run(WorldOptions::new(seed), ClusterOptions::new(STEPS));
        let Ok(Ok(summary)) = &run.result else {
            panic!("seed {seed}: {:?}\n{}", run.result, run.last.join("\n"));
        };
        assert!(run.is_freed, "seed {seed}: processes that were killed leak memory");
        assert!(summary.writes > 10 && summary.reads > 10, "seed {seed}: {summary:?}");
    }
}
