//! Chooses the active NameNode, as a failover controller does.

use std::sync::Arc;
use std::time::Duration;

use super::SimHdfs;
use crate::process::Process;
use crate::scheduler::Owner;
use crate::world::World;

/// The pause between two checks of the NameNodes.
const PERIOD: Duration = Duration::from_millis(250);
/// Bounds of the time for which the active NameNode must be unhealthy before the other one replaces
/// it.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

/// Starts the controller. It ends with the world.
pub(super) fn start(world: &Arc<World>, hdfs: &Arc<SimHdfs>) {
    let (hdfs, scheduler) = (Arc::downgrade(hdfs), Arc::downgrade(world.scheduler()));
    world.scheduler().spawn(Owner::WORLD, async move {
        let (mut unhealthy_since, mut patience) = (Duration::ZERO, Duration::ZERO);
        let mut is_healthy = false;
        while let (Some(hdfs), Some(scheduler)) = (hdfs.upgrade(), scheduler.upgrade()) {
            let now = scheduler.now();
            let was_healthy = std::mem::replace(&mut is_healthy, hdfs.has_healthy_active());
            if was_healthy && !is_healthy {
                (unhealthy_since, patience) = (now, hdfs.random.between(PATIENCE.0, PATIENCE.1));
            }
            if !is_healthy && now >= unhealthy_since + patience {
                hdfs.fail_over();
            }
            drop(hdfs);
            scheduler.sleep(PERIOD).await;
        }
    });
}

impl SimHdfs {
    /// Whether a controller can reach the process of a NameNode.
    fn is_healthy(&self, process: &Arc<Process>) -> bool {
        process.is_running() && !process.is_paused()
    }

    fn has_healthy_active(&self) -> bool {
        self.active().is_some_and(|process| self.is_healthy(process) && !self.is_cut_off(process))
    }

    /// Whether most other hosts of HDFS do not receive what the process sends.
    fn is_cut_off(&self, process: &Arc<Process>) -> bool {
        let world = self.world();
        let is_blocked = |other: &&Arc<Process>| world.network().is_blocked(process.host(), other.host());
        self.processes().filter(is_blocked).count() * 2 > self.datanodes.len()
    }

    /// Activates the other NameNode, if it is healthy; else the same one.
    pub(super) fn fail_over(&self) {
        let active = self.active().map(|process| process.name().to_string());
        let mut candidates: Vec<&Arc<Process>> = self.namenodes.iter().collect();
        candidates.sort_by_key(|process| active.as_deref() == Some(process.name()));
        let chosen = candidates
            .into_iter()
            .find(|process| self.is_healthy(process) && active.as_deref() != Some(process.name()));
        if let Some(namenode) = chosen.and_then(|process| self.running.get(process.name())) {
            namenode.activate();
        }
    }
}
