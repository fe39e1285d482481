//! When regions are flushed and compacted: wishes of the write path become background tasks, a few at a time.
//!
//! * [`compactions`]: whose turn it is to be compacted;
//! * [`throughput`]: how fast that goes;
//! * [`harm`]: what it does to those who wait for an answer.
//!
//! A region that utters the same wish again while it waits or is carried out is not noted twice. When all memstores
//! together are over the low mark, the largest are flushed first, whoever uttered the wish. A flush that failed is tried
//! again until it succeeds or the region is gone: nobody may write to a region whose memstore is full, so nobody would
//! utter the wish.

pub mod compactions;
mod harm;
pub mod throughput;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use base::env::{Env, TaskClass};
use engine::Region;
use engine::budget::{FlushReason, Maintenance, MemstoreBudget};
use engine::region::CompactionKind;
use tokio::sync::Semaphore;
use tracing::{info, warn};

use crate::regions::OnlineRegions;
use crate::schedule::compactions::{CompactionOptions, Compactions};

/// Flushes that run at once (`hbase.hstore.flusher.count`).
const FLUSHES_AT_ONCE: usize = 2;
/// Between a flush that failed and the next try (a disk that was full may have room again).
const FLUSH_RETRY_PERIOD: Duration = Duration::from_secs(5);

/// Carries out the wishes of regions.
pub struct Schedule {
    env: Env,
    regions: Arc<OnlineRegions>,
    budget: Arc<MemstoreBudget>,
    this: Weak<Schedule>,
    flush_slots: Semaphore,
    // Encoded names of regions whose wish is noted or being carried out.
    flushing: Mutex<HashSet<Arc<str>>>,
    compactions: Arc<Compactions>,
    // Looks at all stores so far.
    rounds: AtomicU64,
}

impl Schedule {
    /// A schedule for the regions of a server.
    pub fn new(
        env: Env,
        regions: Arc<OnlineRegions>,
        budget: Arc<MemstoreBudget>,
        compactions: CompactionOptions,
    ) -> Arc<Schedule> {
        Arc::new_cyclic(|this| Schedule {
            compactions: Compactions::new(env.clone(), compactions),
            env,
            regions,
            budget,
            this: this.clone(),
            flush_slots: Semaphore::new(FLUSHES_AT_ONCE),
            flushing: Mutex::default(),
            rounds: AtomicU64::new(0),
        })
    }

    /// Whose turn it is to be compacted.
    pub fn compactions(&self) -> &Compactions {
        &self.compactions
    }

    /// Flushes noted or running.
    pub fn flushes(&self) -> usize {
        lock(&self.flushing).len()
    }

    /// Flushes the regions with these encoded names, because the oldest log waits for them.
    pub fn flush_all(&self, encoded_names: &[Arc<str>]) {
        for region in encoded_names.iter().filter_map(|encoded| self.regions.get(encoded)) {
            self.flush_wanted(&region, FlushReason::Pressure);
        }
    }

    /// Flushes all regions with edits in memory, so that their logs can be removed.
    pub fn flush_for_space(&self) {
        for region in self.regions.all().iter().filter(|region| region.memstore_bytes() > 0) {
            self.flush_wanted(region, FlushReason::Space);
        }
    }

    /// Flushes regions whose memstores have had edits for longer than `period`.
    pub fn flush_old(&self, now_ms: u64, period: Duration) {
        for region in self.regions.all() {
            let figures = region.figures();
            let is_old = now_ms.saturating_sub(figures.last_flush_ms) > period.as_millis() as u64;
            if is_old && figures.memstore_data_bytes > 0 && !period.is_zero() {
                self.flush_wanted(&region, FlushReason::Pressure);
            }
        }
    }

    /// Looks at all stores: notes those that have enough files, whatever made them, and those of which all files are due.
    /// Called every ten seconds; settings of the stores say how often each is looked at.
    pub fn look_at_stores(&self) {
        let (round, regions) = (self.rounds.fetch_add(1, Relaxed), self.regions.all());
        for region in &regions {
            for (family, kind) in region.stores_due(round) {
                let wanted = match kind {
                    CompactionKind::Major => region.want_major_compaction(&family),
                    CompactionKind::Minor => Ok(()),
                };
                if wanted.is_ok() {
                    self.compactions.wish(region, &family);
                }
            }
        }
        let pressures = regions.iter().map(|region| region.compaction_pressure());
        self.compactions.tune(pressures.fold(0.0, f64::max));
    }

    /// Archives files that were compacted away but still read then.
    pub async fn archive_compacted_files(&self) {
        for region in self.regions.all().iter().filter(|region| region.has_unheld_files()) {
            region.archive_retired().await;
        }
    }

    /// Whether that succeeded.
    async fn flush_one(&self, region: &Arc<Region>, reason: FlushReason) -> bool {
        // A full disk keeps compactions from making fewer files of many.
        if reason != FlushReason::Space {
            region.wait_for_fewer_files().await;
        }
        let outcome = region.flush().await;
        // Only here: a flush by call asks for no compaction, as in HBase.
        region.want_compactions();
        match outcome {
            Ok(flushed) => {
                info!(region = %region.name(), ?reason, ?flushed, "flushed");
                self.compactions.tell_of_new_files(region);
                true
            }
            Err(error) => {
                warn!(region = %region.name(), %error, "flush failed; the memstore is kept");
                false
            }
        }
    }

    fn is_online(&self, region: &Arc<Region>) -> bool {
        self.regions.get(region.encoded_name()).is_some_and(|online| Arc::ptr_eq(&online, region))
    }

    /// The region with the largest memstore that is not being flushed.
    fn largest(&self) -> Option<Arc<Region>> {
        let flushing = lock(&self.flushing);
        self.regions
            .all()
            .into_iter()
            .filter(|region| !flushing.contains(region.encoded_name()))
            .max_by_key(|region| region.memstore_bytes())
            .filter(|region| region.memstore_bytes() > 0)
    }
}

impl Maintenance for Schedule {
    fn flush_wanted(&self, region: &Arc<Region>, reason: FlushReason) {
        if !lock(&self.flushing).insert(region.encoded_name().clone()) {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        let region = region.clone();
        self.env.spawn(TaskClass::Background, async move {
            let slot = this.flush_slots.acquire().await;
            let flushed = this.flush_one(&region, reason).await;
            drop(slot);
            if !flushed {
                this.env.clock.sleep(FLUSH_RETRY_PERIOD).await;
            }
            lock(&this.flushing).remove(region.encoded_name());
            if !flushed && this.is_online(&region) {
                this.flush_wanted(&region, FlushReason::Retry);
            }
            if this.budget.is_over_low_mark()
                && let Some(next) = this.largest()
            {
                this.flush_wanted(&next, FlushReason::Pressure);
            }
        });
    }

    fn compaction_wanted(&self, region: &Arc<Region>, family: &[u8]) {
        self.compactions.wish(region, family);
    }
}

fn lock<T>(noted: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    noted.lock().expect("no holder of this lock panics")
}
