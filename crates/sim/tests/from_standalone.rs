//! A cluster that takes over the directory of a standalone server has all writes of its clients.
//!
//! This is the only test of its program: then the runs are the same each time (see `replay.rs`).

use sim::WorldOptions;
use sim::cluster::scenario::{ClusterOptions, run};

/// Faults of each run.
const STEPS: usize = 2;
/// Number of seeds.
const SEEDS: u64 = 4;

#[test]
fn a_cluster_has_all_writes_of_the_standalone_server_before_it() {
    let options = ClusterOptions { from_standalone: true, ..ClusterOptions::new(STEPS) };
    for seed in 0..SEEDS {
        let run = run(WorldOptions::new(seed), options);
        let Ok(Ok(summary)) = &run.result else {
            panic!("seed {seed}: {:?}\n{}", run.result, run.last.join("\n"));
        };
        assert!(summary.writes > 10 && summary.reads > 10, "seed {seed}: {summary:?}");
    }
}
