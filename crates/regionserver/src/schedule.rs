//! When regions are flushed and compacted: wishes of the write path become background tasks, a few at a time.
//!
//! A region that utters the same wish again while it waits or is carried out is not noted twice. When all memstores
//! together are over the low mark, the largest are flushed first, whoever uttered the wish. A flush that failed is tried
//! again until it succeeds or the region is gone: nobody may write to a region whose memstore is full, so nobody would
//! utter the wish.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use base::env::{Env, TaskClass};
use engine::Region;
use engine::budget::{FlushReason, Maintenance, MemstoreBudget};
use engine::region::CompactionKind;
use proto::get_region_info_response::CompactionState;
use tokio::sync::Semaphore;
use tracing::{info, warn};

use crate::regions::OnlineRegions;

/// Flushes that run at once (`hbase.hstore.flusher.count`).
const FLUSHES_AT_ONCE: usize = 2;
/// Between a flush that failed and the next try (a disk that was full may have room again).
const FLUSH_RETRY_PERIOD: Duration = Duration::from_secs(5);
/// Compactions that run at once.
const COMPACTIONS_AT_ONCE: usize = 1;

/// Carries out the wishes of regions.
pub struct Schedule {
    env: Env,
    regions: Arc<OnlineRegions>,
    budget: Arc<MemstoreBudget>,
    this: Weak<Schedule>,
    flush_slots: Semaphore,
    compaction_slots: Semaphore,
    // Encoded names of regions whose wish is noted or being carried out.
    flushing: Mutex<HashSet<Arc<str>>>,
    compacting: Mutex<HashMap<Arc<str>, Compactions>>,
}

/// A region's compactions of each kind that are noted or being carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Compactions {
    minor: usize,
    major: usize,
}

impl Compactions {
    fn of_kind(&mut self, kind: CompactionKind) -> &mut usize {
        match kind {
            CompactionKind::Minor => &mut self.minor,
            CompactionKind::Major => &mut self.major,
        }
    }
}

impl Schedule {
    /// A schedule for the regions of a server.
    pub fn new(env: Env, regions: Arc<OnlineRegions>, budget: Arc<MemstoreBudget>) -> Arc<Schedule> {
        Arc::new_cyclic(|this| Schedule {
            env,
            regions,
            budget,
            this: this.clone(),
            flush_slots: Semaphore::new(FLUSHES_AT_ONCE),
            compaction_slots: Semaphore::new(COMPACTIONS_AT_ONCE),
            flushing: Mutex::default(),
            compacting: Mutex::default(),
        })
    }

    /// Regions with compactions noted or running.
    pub fn compactions(&self) -> usize {
        lock(&self.compacting).len()
    }

    /// What is to be compacted of a region, or being compacted. From the wish until all its stores are done, so that who
    /// waits for the end of a compaction sees neither the time before its turn nor that between two stores as the end.
    pub fn compaction_state(&self, region: &Region) -> CompactionState {
        let compactions = lock(&self.compacting).get(region.encoded_name()).copied().unwrap_or_default();
        match (compactions.minor > 0, compactions.major > 0) {
            (false, false) => CompactionState::None,
            (true, false) => CompactionState::Minor,
            (false, true) => CompactionState::Major,
            (true, true) => CompactionState::MajorAndMinor,
        }
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

    /// Compacts every store that has enough files, whatever made them, and archives files that were compacted away but
    /// still read then.
    pub async fn look_after_files(&self) {
        for region in self.regions.all() {
            region.archive_retired().await;
            region.want_compactions();
        }
    }

    /// Compacts a region (or one family of it) when its turn comes.
    pub fn compact(&self, region: &Arc<Region>, family: Option<&[u8]>, kind: CompactionKind) {
        let Some(this) = self.this.upgrade() else { return };
        if !self.note(region, kind) {
            return;
        }
        let (region, family) = (region.clone(), family.map(<[u8]>::to_vec));
        self.env.spawn(TaskClass::Background, async move {
            let slot = this.compaction_slots.acquire().await;
            let outcome = region.compact(family.as_deref(), kind).await;
            drop(slot);
            this.forget(&region, kind);
            match outcome {
                Ok(_) => {}
                Err(error) => {
                    warn!(region = %region.name(), %error, "compaction failed; the files stay as they are")
                }
            }
        });
    }

    /// Notes a compaction; false for a minor one of a region that waits for its turn already.
    fn note(&self, region: &Region, kind: CompactionKind) -> bool {
        let mut compacting = lock(&self.compacting);
        let noted = compacting.entry(region.encoded_name().clone()).or_default();
        if kind == CompactionKind::Minor && *noted != Compactions::default() {
            return false;
        }
        *noted.of_kind(kind) += 1;
        true
    }

    /// A compaction has ended.
    fn forget(&self, region: &Region, kind: CompactionKind) {
        let mut compacting = lock(&self.compacting);
        if let Entry::Occupied(mut noted) = compacting.entry(region.encoded_name().clone()) {
            *noted.get_mut().of_kind(kind) -= 1;
            if *noted.get() == Compactions::default() {
                noted.remove();
            }
        }
    }

    /// Whether that succeeded.
    async fn flush_one(&self, region: &Region, reason: FlushReason) -> bool {
        region.wait_for_fewer_files().await;
        let outcome = region.flush().await;
        // Only here: a flush by call asks for no compaction, as in HBase.
        region.want_compactions();
        match outcome {
            Ok(flushed) => {
                info!(region = %region.name(), ?reason, ?flushed, "flushed");
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
        self.compact(region, Some(family), CompactionKind::Minor);
    }
}

fn lock<T>(noted: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    noted.lock().expect("no holder of this lock panics")
}
