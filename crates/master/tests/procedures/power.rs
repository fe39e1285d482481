//! Power losses during procedures.

use std::sync::Arc;
use std::time::Duration;

use base::testing::{SeededRandom, env};
use fs::faulty::{Fault, Faulty, Plan, Rule};
use fs::memory::MemoryFs;
use proto::exception::Answer;

use crate::cluster::Cluster;

/// How long a procedure on a failed disk is observed, on the test's clock.
pub const OBSERVED_FOR: Duration = Duration::from_secs(2);

/// The state of the procedure at the power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcedureState {
    /// It had ended.
    Ended,
    /// It was submitted, so it must complete.
    Submitted,
    /// The client did not get an id for it, so it may have had no effect.
    Unknown,
}

/// Runs `work` on a separate runtime. Its tasks end with it, and its clock advances only while all
/// tasks wait.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

/// Simulates a power loss at every `step`th call of `change`, which runs after `prepare`. Restarts
/// each time, and checks the result with `check`.
pub fn power_loss_at_every_call(
    step: u64,
    prepare: impl AsyncFn(&Cluster),
    change: impl AsyncFn(&Cluster) -> Answer<Option<u64>>,
    check: impl AsyncFn(&Cluster, ProcedureState),
) {
    let prepared = run(async {
        let fs = MemoryFs::new();
        let cluster = Cluster::start(&env(1), Arc::new(fs.clone())).await.unwrap();
        prepare(&cluster).await;
        cluster.stop().await;
        fs
    });
    let mut states = Vec::new();
    for calls in (0..).step_by(usize::try_from(step).unwrap()) {
        let random = SeededRandom::new(calls);
        let disk = prepared.crash(&mut || random.next());
        let state = run(power_loss_after(calls, &disk, &change));
        run(async {
            let image = disk.crash(&mut || random.next());
            let env = env(calls + 1000);
            env.clock.sleep(Duration::from_secs(3600)).await;
            let cluster = Cluster::start(&env, Arc::new(image)).await.unwrap_or_else(|error| {
                panic!("power loss after {calls} calls, {state:?}: does not start: {error}");
            });
            cluster.settle().await;
            eprintln!("power loss after {calls} calls: {state:?}");
            check(&cluster, state).await;
        });
        states.push(state);
        if state == ProcedureState::Ended {
            break;
        }
    }
    let count = |wanted| states.iter().filter(|state| **state == wanted).count();
    assert!(count(ProcedureState::Submitted) > 3 && count(ProcedureState::Unknown) > 0, "{states:?}");
}

async fn power_loss_after(
    calls: u64,
    disk: &MemoryFs,
    change: &impl AsyncFn(&Cluster) -> Answer<Option<u64>>,
) -> ProcedureState {
    let env = env(7);
    // Later than `prepare` and earlier than the next start, because names of servers and logs
    // contain the time.
    env.clock.sleep(Duration::from_secs(60)).await;
    let faulty = Faulty::new(Arc::new(disk.clone()), Plan::new(env.clock.clone()));
    let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
    faulty.add(Rule::new(Fault::Fail).after(calls));
    let submitted = env.timeout(OBSERVED_FOR, change(&cluster)).await;
    let Some(Ok(proc_id)) = submitted else { return ProcedureState::Unknown };
    match env.timeout(OBSERVED_FOR, cluster.wait(proc_id)).await {
        Some(Ok(())) if faulty.faults() == 0 => ProcedureState::Ended,
        _ => ProcedureState::Submitted,
    }
}

/// A source of random numbers.
pub trait Next {
    /// The next random number.
    fn next(&self) -> u64;
}

impl Next for SeededRandom {
    fn next(&self) -> u64 {
        base::env::Random::next_u64(self)
    }
}
