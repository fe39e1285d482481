//! Periodic work of the master: cleanup after splits and merges ([`janitor`]), removal of unneeded
//! files ([`cleaner`], `mob`), balancing of regions (`balance`), and removal of expired snapshots
//! ([`snapshots`]). An administrator can disable each of them, and run all but the last
//! immediately. `offload` moves regions away from decommissioned servers.

pub(crate) mod balance;
pub mod cleaner;
pub mod janitor;
mod mob;
pub(crate) mod offload;
pub mod snapshots;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::BoxFuture;
use base::env::TaskClass;
use cell::schema::TableName;
use fs::space::{Level, Space};
use wire::meta::TableState;

use crate::master::Master;

/// The shortest period of a chore. Shorter periods would keep the master busy.
const PERIOD_MIN: Duration = Duration::from_secs(1);

/// The period of the cleaner while the disk is full.
const FULL_DISK_PERIOD: Duration = Duration::from_secs(2);

/// The settings of chores, with HBase's configuration keys.
#[derive(Clone, Debug)]
pub struct ChoreOptions {
    /// The period of the search for unneeded parents of splits and merges
    /// (`hbase.catalogjanitor.interval`).
    pub janitor_period: Duration,
    /// The period of the balancer (`hbase.balancer.period`).
    pub balancer_period: Duration,
    /// The period of the search for unneeded files (`hbase.master.cleaner.interval`).
    pub cleaner_period: Duration,
    /// The period of the search for expired snapshots (`hbase.master.cleaner.snapshot.interval`).
    pub snapshot_period: Duration,
    /// The period of the search for unneeded MOB files (`hbase.master.mob.cleaner.period`).
    pub mob_period: Duration,
    /// Minimum age of an unneeded MOB file that is archived (`hbase.mob.min.age.archive`).
    pub mob_min_age: Duration,
    /// Minimum time for which archived store files are retained (`hbase.master.hfilecleaner.ttl`).
    pub file_ttl: Duration,
    /// Minimum time for which unneeded logs are retained (`hbase.master.logcleaner.ttl`).
    pub log_ttl: Duration,
    /// The state of the disk. While it is full, unneeded files are removed immediately.
    pub space: Arc<Space>,
    /// The consumers that still need archived logs, such as replication. Their logs are not
    /// removed.
    pub log_holders: Arc<wal::LogHolders>,
}

impl Default for ChoreOptions {
    fn default() -> ChoreOptions {
        ChoreOptions {
            janitor_period: Duration::from_secs(300),
            balancer_period: Duration::from_secs(300),
            cleaner_period: Duration::from_secs(600),
            snapshot_period: Duration::from_secs(1800),
            mob_period: Duration::from_secs(86_400),
            mob_min_age: Duration::from_secs(3600),
            file_ttl: Duration::from_secs(300),
            log_ttl: Duration::from_secs(600),
            space: Arc::default(),
            log_holders: Arc::default(),
        }
    }
}

impl ChoreOptions {
    /// Whether unneeded files must be removed immediately.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.space.level() == Level::Refusing
    }
}

/// The switch of a chore, and whether it is running.
#[derive(Debug)]
pub struct ChoreSwitch {
    enabled: AtomicBool,
    running: AtomicBool,
}

impl Default for ChoreSwitch {
    fn default() -> ChoreSwitch {
        ChoreSwitch { enabled: AtomicBool::new(true), running: AtomicBool::new(false) }
    }
}

/// Marks a chore as running until dropped.
struct RunningGuard<'a>(&'a AtomicBool);

impl RunningGuard<'_> {
    /// `None` if it is running already.
    fn begin(running: &AtomicBool) -> Option<RunningGuard<'_>> {
        (!running.swap(true, Ordering::AcqRel)).then(|| RunningGuard(running))
    }
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        debug_assert!(self.0.load(Ordering::Relaxed), "a chore is marked as running while it runs");
        self.0.store(false, Ordering::Release);
    }
}

impl ChoreSwitch {
    /// Whether it may run periodically.
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    /// Enables or disables periodic runs. Returns the previous setting.
    pub fn enable(&self, on: bool) -> bool {
        self.enabled.swap(on, Ordering::AcqRel)
    }

    /// Whether it is running.
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    fn begin(&self) -> Option<RunningGuard<'_>> {
        RunningGuard::begin(&self.running)
    }
}

/// Starts the retries of `hbase:meta` if it cannot be opened. They are separate from those of other
/// regions: the retry of another region writes to `hbase:meta`, so it waits while `hbase:meta` is
/// offline.
pub(crate) fn start_meta_retries(master: &Arc<Master>) {
    every(master, PERIOD_MIN, |master| {
        Box::pin(async move { master.context().assignment.retry_failed(TableName::is_meta).await })
    });
}

/// Starts all chores and the retries of regions that cannot be opened, except `hbase:meta`. They
/// run periodically as long as the master lives.
pub(crate) fn start(master: &Arc<Master>) {
    let ChoreOptions { janitor_period, cleaner_period, snapshot_period, mob_period, .. } = *master.chores();
    every(master, janitor_period, |master| {
        Box::pin(async move {
            if master.janitor().switch.is_enabled() {
                janitor::run(&master).await;
            }
        })
    });
    every(master, PERIOD_MIN, |master| {
        Box::pin(async move {
            let context = master.context();
            let is_enabled = |table: &TableName| {
                !table.is_meta()
                    && matches!(context.tables.state(table), Some(TableState::Enabled | TableState::Enabling))
            };
            context.assignment.retry_failed(is_enabled).await;
        })
    });
    if master.known_servers().is_some() {
        balance::start(master);
        every(master, PERIOD_MIN, |master| Box::pin(async move { offload::run(&master).await }));
    }
    every(master, cleaner_period, |master| {
        Box::pin(async move {
            if master.cleaner().switch.is_enabled() {
                cleaner::run(&master).await;
            }
        })
    });
    every(master, FULL_DISK_PERIOD, |master| {
        Box::pin(async move {
            if master.chores().is_disk_full() && master.cleaner().switch.is_enabled() {
                cleaner::run(&master).await;
            }
        })
    });
    every(master, mob_period, |master| Box::pin(async move { mob::run(&master).await }));
    every(master, snapshot_period, |master| {
        Box::pin(async move {
            if master.context().switches.is_snapshot_cleanup_on() {
                snapshots::run(&master).await;
            }
        })
    });
}

fn every(master: &Arc<Master>, period: Duration, chore: fn(Arc<Master>) -> BoxFuture<'static, ()>) {
    let env = &master.context().env;
    let (weak, clock) = (Arc::downgrade(master), env.clock.clone());
    env.spawn(TaskClass::Service, async move {
        loop {
            clock.sleep(period.max(PERIOD_MIN)).await;
            let Some(master) = weak.upgrade() else { return };
            chore(master).await;
        }
    });
}
