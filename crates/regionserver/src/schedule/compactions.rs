//! The queues of compactions.
//!
//! There are two pools, one for long and one for short compactions. Each has a queue, ordered by
//! priority: the number of files that the store may still add before flushes must wait. A user's
//! request is selected immediately, so that the region's state shows it when the call returns, and
//! is queued in the pool that fits its size. A request of the server is selected when it leaves the
//! queue of short compactions; if it turns out to be long, it moves to the other pool. Invariants:
//!
//! * At most one server request per store is queued in a pool. It moves forward when the store
//!   becomes more urgent.
//! * A region's state shows a compaction from its selection to its end, even if it fails, so that
//!   callers can poll the state.
//! * While compactions are switched off none starts, and running ones abort.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use base::BoxFuture;
use base::env::{Env, TaskClass};
use bytes::Bytes;
use engine::compaction::SelectionRequest;
use engine::region::{CompactionKind, SelectedCompaction};
use engine::{Error, Region};
use proto::get_region_info_response::CompactionState;
use tracing::{debug, info, warn};

use crate::schedule::throughput::{Throughput, ThroughputOptions};

/// Priority of user requests: before all server requests, except those for stores at which flushes
/// wait.
const USER_PRIORITY: i64 = 1;

/// Settings of the pools.
#[derive(Clone, Debug)]
pub struct CompactionOptions {
    /// Maximum number of concurrent long compactions
    /// (`hbase.regionserver.thread.compaction.large`).
    pub long_concurrency: usize,
    /// Maximum number of concurrent short compactions
    /// (`hbase.regionserver.thread.compaction.small`).
    pub short_concurrency: usize,
    /// Whether compactions are enabled at start (`hbase.regionserver.compaction.enabled`); can be
    /// switched later.
    pub enabled: bool,
    /// Speed limits.
    pub throughput: ThroughputOptions,
}

impl Default for CompactionOptions {
    fn default() -> CompactionOptions {
        let throughput = ThroughputOptions::default();
        CompactionOptions { long_concurrency: 1, short_concurrency: 1, enabled: true, throughput }
    }
}

/// A pool of compactions, with HBase's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Long compactions.
    Long,
    /// Short compactions, and server requests before their selection.
    Short,
}

impl Pool {
    /// Looks up a pool by name.
    pub fn of_name(name: &str) -> Option<Pool> {
        match name {
            "long" => Some(Pool::Long),
            "short" => Some(Pool::Short),
            _ => None,
        }
    }
}

/// The compactions of a server.
pub struct Compactions {
    env: Env,
    options: CompactionOptions,
    this: Weak<Compactions>,
    enabled: AtomicBool,
    throughput: Throughput,
    // Whether a compaction with off-peak settings is running; at most one may.
    off_peak_taken: AtomicBool,
    arrivals: AtomicU64,
    queues: Mutex<[Queue; 2]>,
    states: Mutex<HashMap<Arc<str>, CompactionCounts>>,
    // Called with regions whose set of files has changed.
    on_new_files: OnceLock<OnNewFiles>,
}

/// Callback for a region that was flushed or compacted.
type OnNewFiles = Box<dyn Fn(&Arc<Region>) + Send + Sync>;

/// Position in a queue, smallest first: priority, then arrival number.
type QueuePosition = (i64, u64);

#[derive(Default)]
struct Queue {
    waiting: BTreeMap<QueuePosition, QueueEntry>,
    // The positions of the server requests.
    requested: HashMap<StoreName, QueuePosition>,
    running: usize,
}

/// Encoded name of a region, and a family.
type StoreName = (Arc<str>, Bytes);

struct QueueEntry {
    region: Arc<Region>,
    family: Bytes,
    // None for a server request, which is not selected yet.
    compaction: Option<QueuedCompaction>,
}

impl Queue {
    /// Adds an entry. A repeated server request only moves the entry that is queued already, if it
    /// is more urgent than before.
    fn insert(&mut self, position: QueuePosition, entry: QueueEntry) {
        if entry.compaction.is_none() {
            match self.requested.entry(entry.store()) {
                Entry::Occupied(queued) if queued.get().0 <= position.0 => return,
                Entry::Occupied(mut queued) => {
                    let before = queued.insert(position);
                    self.waiting.remove(&before);
                }
                Entry::Vacant(requested) => {
                    requested.insert(position);
                }
            }
        }
        self.waiting.insert(position, entry);
    }

    /// Removes the most urgent entry.
    fn pop(&mut self) -> Option<(QueuePosition, QueueEntry)> {
        let (position, entry) = self.waiting.pop_first()?;
        if entry.compaction.is_none() {
            let requested = self.requested.remove(&entry.store());
            debug_assert_eq!(requested, Some(position), "a server request has one position");
        }
        Some((position, entry))
    }
}

impl QueueEntry {
    fn store(&self) -> StoreName {
        (self.region.encoded_name().clone(), self.family.clone())
    }
}

/// A selected compaction. It is counted in its region's state until dropped.
struct QueuedCompaction {
    selected: SelectedCompaction,
    state: StateGuard,
}

struct StateGuard {
    compactions: Arc<Compactions>,
    encoded: Arc<str>,
    kind: CompactionKind,
    is_off_peak: bool,
}

/// Number of a region's selected or running compactions, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CompactionCounts {
    minor: usize,
    major: usize,
}

impl CompactionCounts {
    fn of_kind(&mut self, kind: CompactionKind) -> &mut usize {
        match kind {
            CompactionKind::Minor => &mut self.minor,
            CompactionKind::Major => &mut self.major,
        }
    }
}

impl Compactions {
    /// Creates empty queues.
    pub fn new(env: Env, options: CompactionOptions) -> Arc<Compactions> {
        Arc::new_cyclic(|this| Compactions {
            throughput: Throughput::new(env.clone(), options.throughput.clone()),
            env,
            enabled: AtomicBool::new(options.enabled),
            options,
            this: this.clone(),
            off_peak_taken: AtomicBool::new(false),
            arrivals: AtomicU64::new(0),
            queues: Mutex::default(),
            states: Mutex::default(),
            on_new_files: OnceLock::new(),
        })
    }

    /// Sets the callback for each region that the server itself has flushed or compacted. Call it
    /// at most once.
    pub fn on_new_files(&self, callback: impl Fn(&Arc<Region>) + Send + Sync + 'static) {
        assert!(self.on_new_files.set(Box::new(callback)).is_ok(), "set once");
    }

    pub(super) fn notify_of_new_files(&self, region: &Arc<Region>) {
        if let Some(callback) = self.on_new_files.get() {
            callback(region);
        }
    }

    /// Number of queued compactions.
    pub fn waiting(&self) -> usize {
        self.queues().iter().map(|queue| queue.waiting.len()).sum()
    }

    /// Number of queued compactions in `pool`.
    pub fn waiting_in(&self, pool: Pool) -> usize {
        self.queues()[pool as usize].waiting.len()
    }

    /// Number of running compactions.
    pub fn running(&self) -> usize {
        self.queues().iter().map(|queue| queue.running).sum()
    }

    /// The kinds of compaction that are selected or running in a region.
    pub fn state(&self, region: &Region) -> CompactionState {
        let counts = lock(&self.states).get(region.encoded_name()).copied().unwrap_or_default();
        match (counts.minor > 0, counts.major > 0) {
            (false, false) => CompactionState::None,
            (true, false) => CompactionState::Minor,
            (false, true) => CompactionState::Major,
            (true, true) => CompactionState::MajorAndMinor,
        }
    }

    /// Selects and queues the compaction that a user requested for a region, or for one of its
    /// families. There may be nothing to select, or compactions may be off. In both cases a request
    /// for a major compaction remains pending for the store's next compaction.
    ///
    /// # Errors
    /// The region's error.
    pub async fn request_by_user(
        &self,
        region: &Arc<Region>,
        family: Option<&[u8]>,
        kind: CompactionKind,
    ) -> Result<(), Error> {
        let families = match family {
            Some(family) => vec![Bytes::copy_from_slice(family)],
            None => region.table().families.keys().cloned().collect(),
        };
        for family in &families {
            if kind == CompactionKind::Major {
                region.request_major_compaction(family)?;
            }
        }
        for family in families {
            if !self.may_compact(region) {
                debug!(region = %region.name(), "compactions are off; request skipped");
                return Ok(());
            }
            if let Some(compaction) = self.select(region, &family, true).await? {
                let pool = if compaction.selected.is_long() { Pool::Long } else { Pool::Short };
                let entry = QueueEntry { region: region.clone(), family, compaction: Some(compaction) };
                self.enqueue(pool, USER_PRIORITY, entry);
            }
        }
        Ok(())
    }

    /// Queues a server request to compact the store of `family`, if it then still needs it.
    pub fn request(&self, region: &Arc<Region>, family: &[u8]) {
        if !self.may_compact(region) {
            return;
        }
        let Ok(priority) = priority_of(region, family) else { return };
        let family = Bytes::copy_from_slice(family);
        self.enqueue(Pool::Short, priority, QueueEntry { region: region.clone(), family, compaction: None });
    }

    /// Switches compactions on or off. Returns whether they were on.
    pub fn switch(&self, enabled: bool) -> bool {
        let before = self.enabled.swap(enabled, Relaxed);
        if before && !enabled {
            info!("compactions switched off; aborting running ones");
            self.clear(Pool::Long);
            self.clear(Pool::Short);
        }
        before
    }

    /// Clears the queue of a pool.
    pub fn clear(&self, pool: Pool) {
        let forgotten = {
            let queue = &mut self.queues()[pool as usize];
            queue.requested.clear();
            std::mem::take(&mut queue.waiting)
        };
        // Release the selected files outside the lock.
        drop(forgotten);
    }

    /// Adapts the speed limit to the highest compaction pressure among the server's stores.
    pub fn tune(&self, pressure: f64) {
        self.throughput.tune(pressure);
    }

    fn may_compact(&self, region: &Region) -> bool {
        self.enabled.load(Relaxed) && region.is_compaction_enabled()
    }

    async fn select(
        &self,
        region: &Arc<Region>,
        family: &[u8],
        by_user: bool,
    ) -> Result<Option<QueuedCompaction>, Error> {
        let Some(compactions) = self.this.upgrade() else { return Ok(None) };
        let off_peak = region.compaction_settings(family)?.is_off_peak(self.env.clock.now_ms())
            && !self.off_peak_taken.swap(true, Relaxed);
        let outcome =
            region.select_compaction(family, SelectionRequest { by_user, major: false, off_peak }).await;
        let is_off_peak = matches!(&outcome, Ok(Some(selected)) if selected.selection().is_off_peak);
        debug_assert!(off_peak || !is_off_peak, "only the holder of the off-peak slot compacts off-peak");
        if off_peak && !is_off_peak {
            self.off_peak_taken.store(false, Relaxed);
        }
        Ok(outcome?.map(|selected| {
            let kind =
                if selected.selection().is_major { CompactionKind::Major } else { CompactionKind::Minor };
            let encoded = region.encoded_name().clone();
            *lock(&self.states).entry(encoded.clone()).or_default().of_kind(kind) += 1;
            QueuedCompaction { selected, state: StateGuard { compactions, encoded, kind, is_off_peak } }
        }))
    }

    fn enqueue(&self, pool: Pool, priority: i64, entry: QueueEntry) {
        let position = (priority, self.arrivals.fetch_add(1, Relaxed));
        self.queues()[pool as usize].insert(position, entry);
        self.start_queued(pool);
    }

    /// Starts queued compactions, up to the pool's limit of concurrent ones.
    fn start_queued(&self, pool: Pool) {
        let concurrency = match pool {
            Pool::Long => self.options.long_concurrency,
            Pool::Short => self.options.short_concurrency,
        };
        while let Some((position, entry)) = self.next(pool, concurrency) {
            let Some(this) = self.this.upgrade() else { return };
            self.env.spawn(TaskClass::Background, async move {
                this.run(pool, position, entry).await;
                {
                    let running = &mut this.queues()[pool as usize].running;
                    debug_assert!(*running > 0, "a compaction counts as running until it ends");
                    *running -= 1;
                }
                this.start_queued(pool);
            });
        }
    }

    fn next(&self, pool: Pool, concurrency: usize) -> Option<(QueuePosition, QueueEntry)> {
        let queue = &mut self.queues()[pool as usize];
        if queue.running >= concurrency.max(1) {
            return None;
        }
        let next = queue.pop()?;
        queue.running += 1;
        Some(next)
    }

    async fn run(&self, pool: Pool, (priority, _): QueuePosition, entry: QueueEntry) {
        let QueueEntry { region, family, compaction } = entry;
        let compaction = match compaction {
            Some(compaction) => compaction,
            None => match self.select_now(pool, priority, &region, &family).await {
                Some(compaction) => compaction,
                None => return,
            },
        };
        let QueuedCompaction { selected, state } = compaction;
        match region.run_compaction(selected, self).await {
            // Compact again while flushes wait for this store to have fewer files.
            Ok(files) if files > 0 && priority_of(&region, &family).is_ok_and(|left| left <= 0) => {
                self.request(&region, &family);
            }
            Ok(_) => self.notify_of_new_files(&region),
            Err(Error::NotServing { .. }) => {
                debug!(region = %region.name(), "region closed before its compaction")
            }
            Err(error) => {
                warn!(region = %region.name(), %error, "compaction failed; its input files stay in use")
            }
        }
        drop(state);
    }

    /// Selects files for a server request that has left the queue. `None` if there is nothing to
    /// do, or if it was queued again.
    async fn select_now(
        &self,
        pool: Pool,
        priority: i64,
        region: &Arc<Region>,
        family: &Bytes,
    ) -> Option<QueuedCompaction> {
        let now = priority_of(region, family).ok()?;
        let again = || QueueEntry { region: region.clone(), family: family.clone(), compaction: None };
        if now > priority {
            // It has fewer files than when it was queued, so other stores may be more urgent.
            self.enqueue(pool, now, again());
            return None;
        }
        if !self.may_compact(region) {
            return None;
        }
        match self.select(region, family, false).await {
            Ok(Some(compaction)) if pool == Pool::Short && compaction.selected.is_long() => {
                drop(compaction);
                self.enqueue(Pool::Long, now, again());
                None
            }
            Ok(compaction) => compaction,
            Err(error) => {
                debug!(region = %region.name(), %error, "cannot select files to compact");
                None
            }
        }
    }

    fn queues(&self) -> MutexGuard<'_, [Queue; 2]> {
        lock(&self.queues)
    }
}

impl engine::region::CompactionThrottle for Compactions {
    fn throttle(&self, bytes: u64) -> BoxFuture<'_, bool> {
        let is_on = || self.enabled.load(Relaxed);
        Box::pin(async move {
            if is_on() {
                self.throughput.pause_after(bytes).await;
            }
            is_on()
        })
    }
}

impl Drop for StateGuard {
    fn drop(&mut self) {
        let mut states = lock(&self.compactions.states);
        debug_assert!(states.contains_key(&self.encoded), "a region's state shows a compaction to its end");
        if let Some(counts) = states.get_mut(&self.encoded) {
            *counts.of_kind(self.kind) -= 1;
            if *counts == CompactionCounts::default() {
                states.remove(&self.encoded);
            }
        }
        if self.is_off_peak {
            let was_taken = self.compactions.off_peak_taken.swap(false, Relaxed);
            debug_assert!(was_taken, "an off-peak compaction holds the only slot to its end");
        }
    }
}

/// The number of files that the store may still add before flushes wait. Never returns the priority
/// of user requests.
fn priority_of(region: &Region, family: &[u8]) -> Result<i64, Error> {
    let priority = region.compaction_priority(family)?;
    Ok(if priority == USER_PRIORITY { priority + 1 } else { priority })
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    // Queues and counts are valid after any panic.
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
