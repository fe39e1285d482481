//! What the master does from time to time: it tidies up behind splits and merges ([`janitor`]), and removes files that
//! nobody needs any more ([`cleaner`]). Both can be called, and forbidden, by an administrator.

pub mod cleaner;
pub mod janitor;
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

/// Chores that are asked for at shorter periods than this would do nothing else.
const PERIOD_MIN: Duration = Duration::from_secs(1);

/// The pause between two runs of the cleaner while the disk is full.
const FULL_DISK_PERIOD: Duration = Duration::from_secs(2);

/// When the chores run, in HBase's keys.
#[derive(Clone, Debug)]
pub struct ChoreOptions {
    /// The pause between looks for parents that can go (`hbase.catalogjanitor.interval`).
    pub janitor_period: Duration,
    /// The pause between looks for files that can go (`hbase.master.cleaner.interval`).
    pub cleaner_period: Duration,
    /// The pause between two searches for expired snapshots (`hbase.master.cleaner.snapshot.interval`).
    pub snapshot_period: Duration,
    /// How long archived store files are kept at least (`hbase.master.hfilecleaner.ttl`).
    pub file_ttl: Duration,
    /// How long logs are kept at least that nobody needs (`hbase.master.logcleaner.ttl`).
    pub log_ttl: Duration,
    /// The disk: while it is full, files that are only kept for a time are removed at once.
    pub space: Arc<Space>,
}

impl Default for ChoreOptions {
    fn default() -> ChoreOptions {
        ChoreOptions {
            janitor_period: Duration::from_secs(300),
            cleaner_period: Duration::from_secs(600),
            snapshot_period: Duration::from_secs(1800),
            file_ttl: Duration::from_secs(300),
            log_ttl: Duration::from_secs(600),
            space: Arc::default(),
        }
    }
}

impl ChoreOptions {
    /// Whether room is needed more than files that are only kept for a time.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.space.level() == Level::Refusing
    }
}

/// Whether a chore may run by itself, and whether it runs.
#[derive(Debug)]
pub struct Turn {
    enabled: AtomicBool,
    running: AtomicBool,
}

impl Default for Turn {
    fn default() -> Turn {
        Turn { enabled: AtomicBool::new(true), running: AtomicBool::new(false) }
    }
}

/// A chore that runs, until this is dropped.
struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Turn {
    /// Whether it may run by itself.
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    /// Sets whether it may run by itself; returns what was.
    pub fn enable(&self, on: bool) -> bool {
        self.enabled.swap(on, Ordering::AcqRel)
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    fn begin(&self) -> Option<Running<'_>> {
        (!self.running.swap(true, Ordering::AcqRel)).then(|| Running(&self.running))
    }
}

/// Starts to run all periodically, for as long as the master lives; and to retry regions that cannot be opened.
pub(crate) fn start(master: &Arc<Master>) {
    let ChoreOptions { janitor_period, cleaner_period, snapshot_period, .. } = *master.chores();
    every(master, janitor_period, |master| {
        Box::pin(async move {
            if master.janitor().turn.is_enabled() {
                janitor::run(&master).await;
            }
        })
    });
    every(master, PERIOD_MIN, |master| {
        Box::pin(async move {
            let context = master.context();
            let is_enabled = |table: &TableName| {
                matches!(context.tables.state(table), Some(TableState::Enabled | TableState::Enabling))
            };
            context.assignment.retry_failed(is_enabled).await;
        })
    });
    every(master, cleaner_period, |master| {
        Box::pin(async move {
            if master.cleaner().turn.is_enabled() {
                cleaner::run(&master).await;
            }
        })
    });
    every(master, FULL_DISK_PERIOD, |master| {
        Box::pin(async move {
            if master.chores().is_disk_full() && master.cleaner().turn.is_enabled() {
                cleaner::run(&master).await;
            }
        })
    });
    every(master, snapshot_period, |master| {
        Box::pin(async move {
            if master.context().switches.cleans_snapshots() {
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
