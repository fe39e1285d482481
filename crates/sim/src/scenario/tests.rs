use super::*;

/// Faults of each run: enough for several crashes, few enough for a short test.
const STEPS: usize = 6;

fn correct(seed: u64) -> Run<Result<Summary, String>> {
    let run = run(WorldOptions::new(seed), STEPS);
    match &run.result {
        Ok(Ok(_)) => run,
        other => panic!("seed {seed}: {other:?}\n{}", run.last.join("\n")),
    }
}

#[test]
fn a_server_keeps_its_promises_under_faults() {
    for seed in 0..4 {
        let summary = correct(seed).result.unwrap().unwrap();
        assert!(summary.writes > 50 && summary.reads > 50, "seed {seed}: {summary:?}");
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    let (first, other, again) = (correct(101), correct(102), correct(101));
    assert_eq!((first.digest, first.events, first.took), (again.digest, again.events, again.took));
    assert_eq!(first.last, again.last);
    assert_ne!(first.digest, other.digest);
}

/// A run on a disk that loses synced bytes with its power. The checks must find that.
async fn lose_synced_writes(world: Arc<World>) -> Result<(), String> {
    let mut scenario = Scenario::new(world);
    scenario.start().await?;
    scenario.world.sleep(Duration::from_secs(1)).await;
    scenario.set_disk(DiskFaults { ignores_syncs: true, ..DiskFaults::default() });
    scenario.world.sleep(Duration::from_secs(2)).await;
    scenario.server.crash(Crash::Host);
    scenario.world.disk().lose_power();
    scenario.restart();
    scenario.world.sleep(Duration::from_secs(20)).await;
    scenario.finish().await
}

#[test]
fn a_disk_that_ignores_syncs_is_found() {
    let found = (0..2).map(|seed| World::run(WorldOptions::new(seed), lose_synced_writes));
    let found: Vec<_> = found.map(|run| run.result).collect();
    // Either writes are missing, or the server detects damaged files and does not open a region.
    let is_violated = |result: &Result<Result<(), String>, String>| matches!(result, Ok(Err(violation)) if violation.starts_with("violated: "));
    assert!(found.iter().any(is_violated), "{found:?}");
}
