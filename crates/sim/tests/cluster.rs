//! A cluster keeps its promises under faults.
//!
//! This is the only test of its program: then the runs are the same each time (see `replay.rs`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sim::WorldOptions;
use sim::cluster::scenario::{ClusterOptions, run};

/// Faults of each run.
const STEPS: usize = 4;
/// Seeds and numbers of faults that once found a fault of the product: regions that were merged
/// away came back, a region was opened without the edits in the logs of its dead server (two
/// causes), a log that was removed came back after a power loss, a region was opened while the stop
/// of its server was closing it, a server was recovered twice, a paused server added edits to a log
/// that had been recovered, `hbase:meta` was not opened again after it had failed to open, a region
/// was closed while its edits were only in the logs of a dead server.
const FOUND: [(u64, usize); 9] = [
    (15, 12),
    (317, 12),
    (68, 12),
    (168, 12),
    (2816, 12),
    (10585, 12),
    (100026, 12),
    (42607, 12),
    (205905, 12),
];

#[test]
fn a_cluster_keeps_its_promises_under_faults() {
    let others = (0..10).map(|seed| (seed, STEPS));
    for (seed, steps) in others.chain(FOUND) {
        let run = run(WorldOptions::new(seed), ClusterOptions::new(steps));
        let Ok(Ok(summary)) = &run.result else {
            panic!("seed {seed}: {:?}\n{}", run.result, run.last.join("\n"));
        };
        assert!(run.is_freed, "seed {seed}: processes that were killed leak memory");
        assert!(summary.writes > 10 && summary.reads > 10, "seed {seed}: {summary:?}");
    }
}
