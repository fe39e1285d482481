//! Scheduling of flushes and compactions: turns requests of regions into background tasks and
//! limits their number.
//!
//! * [`compactions`]: the queues of compactions;
//! * [`throughput`]: limits the speed of compactions;
//! * [`probes`]: measures how much compactions delay client requests.
//!
//! A region that repeats a request which is queued or running is not queued again. While all
//! memstores together exceed the low mark, the largest one is flushed first, whichever region made
//! the request; one whose flush would wait for compactions comes later. A failed flush is retried
//! until it succeeds or the region is offline. Without the retry, a full memstore would stay full:
//! writes to it are refused, and only writes request flushes.

pub mod compactions;
mod probes;
pub mod throughput;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use base::env::{Env, TaskClass};
use engine::Region;
use engine::budget::MemstoreBudget;
use engine::region::{CompactionKind, FlushReason, Maintenance};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use crate::regions::OnlineRegions;
use crate::schedule::compactions::{CompactionOptions, Compactions};

/// Maximum number of concurrent flushes (`hbase.hstore.flusher.count`).
const CONCURRENT_FLUSHES_MAX: usize = 2;
/// While memory is short and flushes wait for compactions, a region is flushed if it has this share
/// of the bytes of one that waits. Smaller flushes would only add files.
const WORTHWHILE_SHARE: u64 = 8;
/// The pause before the next search for a region to flush, after one that found none.
const SEARCH_PAUSE_MS: u64 = 100;
/// The shortest and longest pause before a failed flush is retried. It doubles after each failure.
/// The first ones are short, because writers may wait for the flush, and a full disk may soon have
/// free space.
const FLUSH_RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Runs the flushes and compactions that regions request.
pub struct Schedule {
    env: Env,
    regions: Arc<OnlineRegions>,
    budget: Arc<MemstoreBudget>,
    this: Weak<Schedule>,
    flush_slots: Semaphore,
    // Encoded names of regions with a queued or running flush, or a pause before its retry.
    flushing: Mutex<HashSet<Arc<str>>>,
    // The same without those that pause or wait for compactions: they empty no memstore meanwhile.
    active_flushes: AtomicUsize,
    waiting_flushes: AtomicUsize,
    // Until this time in milliseconds, no region is searched that could be flushed: the last search
    // found none, and each write would repeat it.
    no_search_until_ms: AtomicU64,
    compactions: Arc<Compactions>,
    // Number of store checks so far.
    rounds: AtomicU64,
}

impl Schedule {
    /// A scheduler for the regions of a server.
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
            flush_slots: Semaphore::new(CONCURRENT_FLUSHES_MAX),
            flushing: Mutex::default(),
            active_flushes: AtomicUsize::new(0),
            waiting_flushes: AtomicUsize::new(0),
            no_search_until_ms: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
        })
    }

    /// The compaction queues.
    pub fn compactions(&self) -> &Compactions {
        &self.compactions
    }

    /// Number of flushes that are queued or running.
    pub fn flushes(&self) -> usize {
        lock(&self.flushing).len()
    }

    /// Flushes the regions with these encoded names, because the oldest log cannot be removed
    /// before that.
    pub fn flush_all(&self, encoded_names: &[Arc<str>]) {
        for region in encoded_names.iter().filter_map(|encoded| self.regions.get(encoded)) {
            self.request_flush(&region, FlushReason::Age);
        }
    }

    /// Flushes all regions that have edits in memory, so that their logs can be removed.
    pub fn flush_for_space(&self) {
        for region in self.regions.all().iter().filter(|region| region.memstore_bytes() > 0) {
            self.request_flush(region, FlushReason::Space);
        }
    }

    /// Flushes regions that have edits in memory and were last flushed more than `period` ago.
    pub fn flush_old(&self, now_ms: u64, period: Duration) {
        for region in self.regions.all() {
            let metrics = region.metrics();
            let is_old = now_ms.saturating_sub(metrics.last_flush_ms) > period.as_millis() as u64;
            if is_old && metrics.memstore_data_bytes > 0 && !period.is_zero() {
                self.request_flush(&region, FlushReason::Age);
            }
        }
    }

    /// Checks all stores and requests compactions for those that have enough files, or whose files
    /// are all due for a major compaction. Called every ten seconds; the settings of a store may
    /// make it check less often.
    pub fn check_stores(&self) {
        let (round, regions) = (self.rounds.fetch_add(1, Relaxed), self.regions.all());
        for region in &regions {
            for (family, kind) in region.stores_due(round) {
                let wanted = match kind {
                    CompactionKind::Major => region.request_major_compaction(&family),
                    CompactionKind::Minor => Ok(()),
                };
                if wanted.is_ok() {
                    self.compactions.request(region, &family);
                }
            }
        }
        let pressures = regions.iter().map(|region| region.compaction_pressure());
        self.compactions.tune(pressures.fold(0.0, f64::max));
    }

    /// Archives compacted files that readers still used when the compaction ended.
    pub async fn archive_compacted_files(&self) {
        for region in self.regions.all().iter().filter(|region| region.has_archivable_files()) {
            region.archive_retired().await;
        }
    }

    /// Flushes a region, and measures the speed. Returns whether it succeeded.
    async fn flush_one(&self, region: &Arc<Region>, reason: FlushReason) -> bool {
        let (pace, clock, name) = (self.budget.pace(), &self.env.clock, region.encoded_name());
        let bytes = region.memstore_bytes();
        pace.flush_begun(name, bytes, clock.monotonic());
        let outcome = region.flush().await;
        pace.flush_ended(name, if outcome.is_ok() { bytes } else { 0 }, clock.monotonic());
        // Only scheduled flushes request compactions; a flush by an RPC does not, as in HBase.
        region.request_compactions();
        match outcome {
            Ok(flushed) => {
                info!(region = %region.name(), ?reason, ?flushed, "flushed");
                self.compactions.notify_of_new_files(region);
                true
            }
            Err(error) => {
                warn!(region = %region.name(), %error, "flush failed; will retry");
                false
            }
        }
    }

    fn is_online(&self, region: &Arc<Region>) -> bool {
        self.regions.get(region.encoded_name()).is_some_and(|online| Arc::ptr_eq(&online, region))
    }

    /// The region to flush while memory is short: the largest one whose flush need not wait for
    /// compactions. If this frees little compared with those that wait, the largest of the others,
    /// unless enough flushes wait already.
    fn largest(&self) -> Option<Arc<Region>> {
        let flushing = lock(&self.flushing);
        let is_idle = |region: &Arc<Region>| !flushing.contains(region.encoded_name());
        let mut by_size: Vec<(u64, Arc<Region>)> =
            self.regions.all().into_iter().map(|region| (region.memstore_bytes(), region)).collect();
        by_size.retain(|(bytes, _)| *bytes > 0);
        by_size.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let (mut waiting_bytes, mut waiting) = (0, None);
        for (bytes, region) in by_size {
            if bytes < waiting_bytes / WORTHWHILE_SHARE {
                break;
            }
            if region.flush_would_wait() {
                waiting_bytes = waiting_bytes.max(bytes);
                waiting = waiting.or(Some(region).filter(is_idle));
            } else if is_idle(&region) {
                return Some(region);
            }
        }
        waiting.filter(|_| self.waiting_flushes.load(Relaxed) < CONCURRENT_FLUSHES_MAX)
    }
}

impl Maintenance for Schedule {
    fn request_flush(&self, region: &Arc<Region>, reason: FlushReason) {
        match reason {
            // Every write makes this request while memory is short.
            FlushReason::Pressure if self.now_ms() < self.no_search_until_ms.load(Relaxed) => {}
            FlushReason::Pressure => self.flush_largest(),
            _ => self.begin_flush(region, reason),
        }
    }

    fn request_compaction(&self, region: &Arc<Region>, family: &[u8]) {
        self.compactions.request(region, family);
    }
}

impl Schedule {
    fn now_ms(&self) -> u64 {
        self.env.clock.monotonic().as_millis() as u64
    }

    /// Flushes the largest region, unless enough flushes are active.
    fn flush_largest(&self) {
        if self.active_flushes.load(Relaxed) >= CONCURRENT_FLUSHES_MAX {
            return;
        }
        match self.largest() {
            Some(largest) => self.begin_flush(&largest, FlushReason::Pressure),
            None => self.no_search_until_ms.store(self.now_ms() + SEARCH_PAUSE_MS, Relaxed),
        }
    }

    /// Flushes the region in a task, unless it is being flushed.
    fn begin_flush(&self, region: &Arc<Region>, reason: FlushReason) {
        if !lock(&self.flushing).insert(region.encoded_name().clone()) {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        let region = region.clone();
        self.active_flushes.fetch_add(1, Relaxed);
        self.env.spawn(TaskClass::Background, async move {
            let (mut pause, pause_max) = FLUSH_RETRY_PAUSES;
            let mut flushed = this.flush_in_slot(&region, reason).await;
            while !flushed {
                this.flush_largest_under_pressure();
                this.env.clock.sleep(pause).await;
                pause = (pause * 2).min(pause_max);
                if !this.is_online(&region) {
                    break;
                }
                this.active_flushes.fetch_add(1, Relaxed);
                flushed = this.flush_in_slot(&region, FlushReason::Retry).await;
            }
            this.end_flush(&region);
            this.flush_largest_under_pressure();
        });
    }

    /// Flushes a region once its stores have fewer files than the maximum, and fewer than the
    /// maximum number of flushes run. Returns whether it succeeded. The flush counts as active from
    /// the request to the end of this call, except while it waits for compactions.
    async fn flush_in_slot(&self, region: &Arc<Region>, reason: FlushReason) -> bool {
        // On a full disk compactions cannot reduce the number of files, so this flush does not wait
        // for them. One that waits takes no slot from regions that have room for more files.
        if reason != FlushReason::Space && region.flush_would_wait() {
            self.active_flushes.fetch_sub(1, Relaxed);
            self.waiting_flushes.fetch_add(1, Relaxed);
            self.flush_largest_under_pressure();
            region.wait_for_fewer_files().await;
            self.waiting_flushes.fetch_sub(1, Relaxed);
            self.active_flushes.fetch_add(1, Relaxed);
        }
        let slot = self.flush_slots.acquire().await;
        let flushed = self.flush_one(region, reason).await;
        drop(slot);
        self.active_flushes.fetch_sub(1, Relaxed);
        flushed
    }

    fn flush_largest_under_pressure(&self) {
        if self.budget.is_above_low_mark() {
            self.flush_largest();
        }
    }

    /// Forgets a flush, so that the region can be flushed again.
    fn end_flush(&self, region: &Region) {
        let was_recorded = lock(&self.flushing).remove(region.encoded_name());
        debug_assert!(was_recorded, "a region is recorded from the request to the end of its flush");
    }
}

fn lock<T>(guarded: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    guarded.lock().expect("no holder of this lock panics")
}
