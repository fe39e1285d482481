//! Procedures that a power cut ends at any call of the file system: the next start finds them done or not begun, and
//! carries on what the journal holds. No half of one keeps the server from starting.
//!
//! The cluster is the real one (master, region server, journal, logs) over a file system in memory. For each procedure
//! the disk fails its Nth call and all that follow, what survives a power cut at that moment is started again, and
//! looked at; for every N until the procedure ends before the disk does.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod alter;
mod cluster;
mod failures;
mod integrity;
mod limits;
mod namespaces;
mod snapshots;
mod splits;

use std::sync::Arc;
use std::time::Duration;

use base::testing::{SeededRandom, env};
use fs::faulty::{Fault, Faulty, Plan, Rule};
use fs::memory::MemoryFs;
use wire::exception::Answer;

use cluster::Cluster;

/// How long (of the test's clock) a procedure over a dead disk is watched.
pub const WATCHED: Duration = Duration::from_secs(2);

/// What became of the procedure that the power cut met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It had ended.
    Ended,
    /// It was submitted: it must be carried out.
    Submitted,
    /// Nobody was told that it would be.
    Unknown,
}

/// A runtime of its own, whose tasks end with it, and whose time passes when all wait for it.
fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

/// Cuts the power at every `step`th call of `change` on what `prepare` has made, starts again, and lets `look` see.
pub fn cut_everywhere(
    step: u64,
    prepare: impl AsyncFn(&Cluster),
    change: impl AsyncFn(&Cluster) -> Answer<Option<u64>>,
    look: impl AsyncFn(&Cluster, Met),
) {
    let prepared = run(async {
        let fs = MemoryFs::new();
        let cluster = Cluster::start(&env(1), Arc::new(fs.clone())).await.unwrap();
        prepare(&cluster).await;
        cluster.stop().await;
        fs
    });
    let mut met_all = Vec::new();
    for calls in (0..).step_by(usize::try_from(step).unwrap()) {
        let random = SeededRandom::new(calls);
        let disk = prepared.crash(&mut || random.next());
        let met = run(cut_after(calls, &disk, &change));
        run(async {
            let image = disk.crash(&mut || random.next());
            let env = env(calls + 1000);
            env.clock.sleep(Duration::from_secs(3600)).await;
            let cluster = Cluster::start(&env, Arc::new(image)).await.unwrap_or_else(|error| {
                panic!("cut after {calls} calls, {met:?}: does not start: {error}");
            });
            cluster.settle().await;
            eprintln!("cut after {calls} calls: {met:?}");
            look(&cluster, met).await;
        });
        met_all.push(met);
        if met == Met::Ended {
            break;
        }
    }
    let count = |wanted| met_all.iter().filter(|met| **met == wanted).count();
    assert!(count(Met::Submitted) > 3 && count(Met::Unknown) > 0, "{met_all:?}");
}

async fn cut_after(
    calls: u64,
    disk: &MemoryFs,
    change: &impl AsyncFn(&Cluster) -> Answer<Option<u64>>,
) -> Met {
    let env = env(7);
    // Later than what was prepared, and earlier than the next start: times are names of servers and logs.
    env.clock.sleep(Duration::from_secs(60)).await;
    let faulty = Faulty::new(Arc::new(disk.clone()), Plan::new(env.clock.clone()));
    let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
    faulty.add(Rule::new(Fault::Fail).after(calls));
    let submitted = env.timeout(WATCHED, change(&cluster)).await;
    let Some(Ok(proc_id)) = submitted else { return Met::Unknown };
    match env.timeout(WATCHED, cluster.wait(proc_id)).await {
        Some(Ok(())) if faulty.faults() == 0 => Met::Ended,
        _ => Met::Submitted,
    }
}

/// Random numbers.
pub trait Next {
    /// The next one.
    fn next(&self) -> u64;
}

impl Next for SeededRandom {
    fn next(&self) -> u64 {
        base::env::Random::next_u64(self)
    }
}
