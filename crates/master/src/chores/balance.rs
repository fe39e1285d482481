//! Balances the regions over the servers, periodically and soon after servers come or go.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::TaskClass;
use cell::region::{RegionInfo, ServerName};
use proto::exception::JavaException;
use tracing::{info, warn};

use super::RunningGuard;
use crate::assignment::RegionState;
use crate::balancer::{Move, plan};
use crate::master::Master;
use crate::procedure::Work;
use crate::procedure::executor::Progress;

/// The pause between two checks whether servers came or went.
const CHECK_PERIOD: Duration = Duration::from_secs(5);
/// Moves that run at the same time, and one after the other on each table.
const CONCURRENT_MOVES: usize = 8;

/// The state of the balancer.
#[derive(Debug, Default)]
pub(crate) struct Balancer {
    // Two runs at the same time would plan the same moves.
    running: AtomicBool,
    // Why the last run moved nothing; `None` if it could move regions, or had none to move.
    obstacle: Mutex<Option<String>>,
}

impl Balancer {
    /// Records the obstacle of a run, and logs it unless the run before had the same one: while
    /// servers have no regions, a run begins every few seconds.
    fn report(&self, obstacle: Option<&str>) {
        if self.is_new(obstacle)
            && let Some(obstacle) = obstacle
        {
            info!(obstacle, "regions are not balanced now");
        }
    }

    /// Records the obstacle of a run. Returns whether it differs from that of the run before.
    fn is_new(&self, obstacle: Option<&str>) -> bool {
        let mut last = self.obstacle.lock().expect("no holder of this lock panics");
        let is_new = last.as_deref() != obstacle;
        *last = obstacle.map(str::to_string);
        is_new
    }
}

/// Starts the periodic runs.
pub(super) fn start(master: &Arc<Master>) {
    let env = &master.context().env;
    let (weak, clock, period) = (Arc::downgrade(master), env.clock.clone(), master.chores().balancer_period);
    env.spawn(TaskClass::Service, async move {
        let (mut seen, mut ran_at, mut has_failed) = (Vec::new(), clock.monotonic(), false);
        loop {
            clock.sleep(CHECK_PERIOD).await;
            let Some(master) = weak.upgrade() else { return };
            let available = master.context().servers.available();
            // Servers that come or go together are balanced together.
            let is_steady = seen == available;
            // A server that cannot open regions stays empty. Each attempt interrupts the regions.
            has_failed &= is_steady;
            let is_due = clock.monotonic().saturating_sub(ran_at) >= period
                || !has_failed && is_uneven(&master, &available);
            seen = available;
            if is_steady && is_due && master.context().switches.is_balancer_on() {
                if let Some(balanced) = run(&master, false).await {
                    has_failed = balanced.has_failed;
                }
                ran_at = clock.monotonic();
            }
        }
    });
}

/// Whether a server has no region although others have several: it has just started.
fn is_uneven(master: &Master, servers: &[ServerName]) -> bool {
    let assignment = &master.context().assignment;
    let counts = servers.iter().map(|server| assignment.regions_on(server).len());
    servers.len() > 1 && counts.clone().any(|count| count == 0) && counts.sum::<usize>() > servers.len()
}

/// Why the balancer does nothing now.
fn obstacle(master: &Master) -> Option<String> {
    let context = master.context();
    if let Some((server, _)) = context.recoveries.list().first() {
        return Some(format!("{server} is being recovered"));
    }
    let is_moving = !context.assignment.regions_in_transition().is_empty();
    is_moving.then(|| "regions are in transition".to_string())
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balanced {
    /// Number of planned moves.
    pub(crate) planned: usize,
    /// Number of moves after which the region was on its new server.
    pub(crate) successful: usize,
    /// Whether the run has ended early, because a region was not open on its new server.
    pub(crate) has_failed: bool,
}

/// Balances once. Returns `None` if the balancer cannot run now, or is running. A dry run only
/// plans.
pub(crate) async fn run(master: &Master, is_dry: bool) -> Option<Balanced> {
    let _running = RunningGuard::begin(&master.balancer().running)?;
    if let Some(obstacle) = obstacle(master) {
        master.balancer().report(Some(&obstacle));
        return None;
    }
    let context = master.context();
    let open = context.assignment.all().into_iter().filter_map(|(region, state)| match state {
        RegionState::Open(server) => Some((region, server)),
        _ => None,
    });
    let local_shares = local_shares(&context.servers.live());
    let local_share = |region: &RegionInfo| local_shares.get(&region.encoded_name()).copied().unwrap_or(0.0);
    let mut moves = plan(open.collect(), &context.servers.available(), local_share);
    let mut balanced = Balanced { planned: moves.len(), ..Balanced::default() };
    if is_dry {
        return Some(balanced);
    }
    let busy = master.procedures().busy_tables();
    moves.retain(|one| !busy.contains(&one.region.table));
    let is_blocked = moves.is_empty() && balanced.planned > 0;
    master.balancer().report(is_blocked.then_some("procedures change the tables whose regions would move"));
    if moves.is_empty() {
        return Some(balanced);
    }
    info!(moves = moves.len(), "balancing regions");
    for moves in moves.chunks(CONCURRENT_MOVES) {
        // A server that died meanwhile comes first.
        if balanced.has_failed || !context.recoveries.list().is_empty() {
            break;
        }
        move_regions(master, moves, &mut balanced).await;
    }
    Some(balanced)
}

/// Makes some of the moves of a run.
async fn move_regions(master: &Master, moves: &[Move], balanced: &mut Balanced) {
    let mut submitted = Vec::with_capacity(moves.len());
    // A server may have been decommissioned since the moves were planned. A move of a busy table
    // would wait for the table's procedure, and the run for the move.
    let (available, busy) = (master.context().servers.available(), master.procedures().busy_tables());
    let is_possible = |one: &&Move| available.contains(&one.to) && !busy.contains(&one.region.table);
    for one in moves.iter().filter(is_possible) {
        match submit(master, one).await {
            Ok(id) => submitted.push((one, id)),
            Err(error) => warn!(region = %one.region.encoded_name(), %error, "cannot move region"),
        }
    }
    for (one, id) in submitted {
        let status = master.procedures().wait(id).await;
        if status.is_none_or(|status| status.progress != Progress::Finished(None)) {
            continue;
        }
        // The move has also ended if its target could not open the region.
        let state = master.context().assignment.state(&one.region);
        if state.is_some_and(|state| state.server() == Some(&one.to)) {
            balanced.successful += 1;
        } else {
            warn!(region = %one.region.encoded_name(), server = %one.to, "region was not opened on its new server");
            balanced.has_failed = true;
        }
    }
}

/// For each region, by encoded name, the share of its bytes on the host of the server that reported
/// it.
fn local_shares(servers: &[(ServerName, proto::ServerLoad)]) -> HashMap<String, f32> {
    let loads = servers.iter().flat_map(|(_, load)| &load.region_loads);
    let share = |load: &proto::RegionLoad| {
        let encoded = wire::convert::specified_region(&load.region_specifier)?;
        Some((encoded.to_string(), load.data_locality()))
    };
    loads.filter_map(share).collect()
}

async fn submit(master: &Master, one: &Move) -> Result<u64, JavaException> {
    let (region, target) = (one.region.clone(), one.to.clone());
    let work = Work::MoveRegion { region, source: Some(one.from.clone()), target };
    master.submit_checked(work, (0, 0)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_obstacle_is_logged_when_it_changes() {
        let balancer = Balancer::default();
        let obstacles = [None, Some("a"), Some("a"), Some("b"), Some("b"), None, None, Some("b")];
        let logged = obstacles.map(|obstacle| balancer.is_new(obstacle) && obstacle.is_some());
        assert_eq!(logged, [false, true, false, true, false, false, false, true]);
    }
}
