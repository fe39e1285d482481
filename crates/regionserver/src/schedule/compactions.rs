//! Whose turn it is to be compacted.
//!
//! Two pools, each with a queue by priority: how many files the store may still get before flushes wait. What a person
//! asks for is selected at once, so that its call shows in the region's state when it is answered, and goes to the pool
//! of its size. What the server wishes is selected when its turn comes; if that turns out long, it goes on in the other
//! pool. Invariants:
//!
//! * A wish of the server for a store waits only once.
//! * A region is compacting from the selection to the end, whatever the end is: so who waits for it waits rightly.
//! * While compactions are switched off none begins, and those that run give up.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use base::BoxFuture;
use base::env::{Env, TaskClass};
use bytes::Bytes;
use engine::compaction::Ask;
use engine::region::{CompactionKind, Selected};
use engine::{Error, Region};
use proto::get_region_info_response::CompactionState;
use tracing::{debug, info, warn};

use crate::schedule::throughput::{Throughput, ThroughputOptions};

/// What a person asks for goes before every wish of the server, but for those of stores at which flushes wait.
const PRIORITY_OF_USERS: i64 = 1;

/// Settings of the pools.
#[derive(Clone, Debug)]
pub struct CompactionOptions {
    /// Long compactions that run at once (`hbase.regionserver.thread.compaction.large`).
    pub long_at_once: usize,
    /// Others that run at once (`hbase.regionserver.thread.compaction.small`).
    pub short_at_once: usize,
    /// Whether there are any (`hbase.regionserver.compaction.enabled`), until somebody switches.
    pub enabled: bool,
    /// How fast they go.
    pub throughput: ThroughputOptions,
}

impl Default for CompactionOptions {
    fn default() -> CompactionOptions {
        let throughput = ThroughputOptions::default();
        CompactionOptions { long_at_once: 1, short_at_once: 1, enabled: true, throughput }
    }
}

/// A queue of compactions, by HBase's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Those that take long.
    Long,
    /// All others, and those of which nobody knows yet.
    Short,
}

impl Pool {
    /// The pool of this name.
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
    // A compaction by the rules of hours of little load runs: only one at a time.
    off_peak_taken: AtomicBool,
    arrivals: AtomicU64,
    queues: Mutex<[Queue; 2]>,
    states: Mutex<HashMap<Arc<str>, Counts>>,
    // Told of regions that have other files than before.
    on_new_files: OnceLock<OnNewFiles>,
}

/// What is done with a region that was flushed or compacted.
type OnNewFiles = Box<dyn Fn(&Arc<Region>) + Send + Sync>;

/// The smaller goes first: priority, then the order of arrival.
type Place = (i64, u64);

#[derive(Default)]
struct Queue {
    waiting: BTreeMap<Place, Waiting>,
    // Stores with a wish of the server that waits: encoded name of the region, and family.
    wished: HashSet<(Arc<str>, Bytes)>,
    running: usize,
}

struct Waiting {
    region: Arc<Region>,
    family: Bytes,
    // None for a wish of the server.
    turn: Option<Turn>,
}

/// A selected compaction, counted in its region's state as long as it lives.
struct Turn {
    selected: Selected,
    counted: Counted,
}

struct Counted {
    compactions: Arc<Compactions>,
    encoded: Arc<str>,
    kind: CompactionKind,
    is_off_peak: bool,
}

/// A region's compactions of each kind that are selected or run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    minor: usize,
    major: usize,
}

impl Counts {
    fn of_kind(&mut self, kind: CompactionKind) -> &mut usize {
        match kind {
            CompactionKind::Minor => &mut self.minor,
            CompactionKind::Major => &mut self.major,
        }
    }
}

impl Compactions {
    /// The compactions of a server that begins.
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

    /// Has `told` called with every region that the server itself has flushed or compacted; may be set once.
    pub fn on_new_files(&self, told: impl Fn(&Arc<Region>) + Send + Sync + 'static) {
        assert!(self.on_new_files.set(Box::new(told)).is_ok(), "set once");
    }

    pub(super) fn tell_of_new_files(&self, region: &Arc<Region>) {
        if let Some(told) = self.on_new_files.get() {
            told(region);
        }
    }

    /// Compactions that wait.
    pub fn waiting(&self) -> usize {
        self.queues().iter().map(|queue| queue.waiting.len()).sum()
    }

    /// Those that wait in `pool`.
    pub fn waiting_in(&self, pool: Pool) -> usize {
        self.queues()[pool as usize].waiting.len()
    }

    /// Compactions that run.
    pub fn running(&self) -> usize {
        self.queues().iter().map(|queue| queue.running).sum()
    }

    /// What is being compacted of a region, or selected to be.
    pub fn state(&self, region: &Region) -> CompactionState {
        let counts = lock(&self.states).get(region.encoded_name()).copied().unwrap_or_default();
        match (counts.minor > 0, counts.major > 0) {
            (false, false) => CompactionState::None,
            (true, false) => CompactionState::Minor,
            (false, true) => CompactionState::Major,
            (true, true) => CompactionState::MajorAndMinor,
        }
    }

    /// Selects what a person wants compacted of a region, or of one family of it, and notes it. Nothing may be found,
    /// and compactions may be off; then a wish for a major compaction is kept for the next one of the store.
    ///
    /// # Errors
    /// The region's.
    pub async fn ask(
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
                region.want_major_compaction(family)?;
            }
        }
        for family in families {
            if !self.may_compact(region) {
                debug!(region = %region.name(), "compactions are off; passed over");
                return Ok(());
            }
            if let Some(turn) = self.select(region, &family, true).await? {
                let pool = if turn.selected.is_long() { Pool::Long } else { Pool::Short };
                let waiting = Waiting { region: region.clone(), family, turn: Some(turn) };
                self.enqueue(pool, PRIORITY_OF_USERS, waiting);
            }
        }
        Ok(())
    }

    /// Notes the server's wish to compact the store of `family` if it needs it.
    pub fn wish(&self, region: &Arc<Region>, family: &[u8]) {
        if !self.may_compact(region) {
            return;
        }
        let Ok(priority) = priority_of(region, family) else { return };
        let family = Bytes::copy_from_slice(family);
        self.enqueue(Pool::Short, priority, Waiting { region: region.clone(), family, turn: None });
    }

    /// Switches compactions on or off; returns whether they were on.
    pub fn switch(&self, enabled: bool) -> bool {
        let before = self.enabled.swap(enabled, Relaxed);
        if before && !enabled {
            info!("compactions are switched off; those that run give up");
            self.clear(Pool::Long);
            self.clear(Pool::Short);
        }
        before
    }

    /// Forgets those that wait in a pool.
    pub fn clear(&self, pool: Pool) {
        let forgotten = {
            let queue = &mut self.queues()[pool as usize];
            queue.wished.clear();
            std::mem::take(&mut queue.waiting)
        };
        // Behind the lock: what was selected is released.
        drop(forgotten);
    }

    /// Goes as fast as the fullest store of the server needs it.
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
    ) -> Result<Option<Turn>, Error> {
        let Some(compactions) = self.this.upgrade() else { return Ok(None) };
        let off_peak = region.compaction_settings(family)?.is_off_peak(self.env.clock.now_ms())
            && !self.off_peak_taken.swap(true, Relaxed);
        let outcome = region.select_compaction(family, Ask { by_user, major: false, off_peak }).await;
        let is_off_peak = matches!(&outcome, Ok(Some(selected)) if selected.choice().is_off_peak);
        if off_peak && !is_off_peak {
            self.off_peak_taken.store(false, Relaxed);
        }
        Ok(outcome?.map(|selected| {
            let kind = if selected.choice().is_major { CompactionKind::Major } else { CompactionKind::Minor };
            let encoded = region.encoded_name().clone();
            *lock(&self.states).entry(encoded.clone()).or_default().of_kind(kind) += 1;
            Turn { selected, counted: Counted { compactions, encoded, kind, is_off_peak } }
        }))
    }

    fn enqueue(&self, pool: Pool, priority: i64, waiting: Waiting) {
        {
            let queue = &mut self.queues()[pool as usize];
            let store = (waiting.region.encoded_name().clone(), waiting.family.clone());
            if waiting.turn.is_none() && !queue.wished.insert(store) {
                return;
            }
            queue.waiting.insert((priority, self.arrivals.fetch_add(1, Relaxed)), waiting);
        }
        self.go_on(pool);
    }

    /// Begins what waits first, as many as may run at once.
    fn go_on(&self, pool: Pool) {
        let at_once = match pool {
            Pool::Long => self.options.long_at_once,
            Pool::Short => self.options.short_at_once,
        };
        while let Some((place, waiting)) = self.next(pool, at_once) {
            let Some(this) = self.this.upgrade() else { return };
            self.env.spawn(TaskClass::Background, async move {
                this.carry_out(pool, place, waiting).await;
                this.queues()[pool as usize].running -= 1;
                this.go_on(pool);
            });
        }
    }

    fn next(&self, pool: Pool, at_once: usize) -> Option<(Place, Waiting)> {
        let queue = &mut self.queues()[pool as usize];
        if queue.running >= at_once.max(1) {
            return None;
        }
        let (place, waiting) = queue.waiting.pop_first()?;
        queue.wished.remove(&(waiting.region.encoded_name().clone(), waiting.family.clone()));
        queue.running += 1;
        Some((place, waiting))
    }

    async fn carry_out(&self, pool: Pool, (priority, _): Place, waiting: Waiting) {
        let Waiting { region, family, turn } = waiting;
        let turn = match turn {
            Some(turn) => turn,
            None => match self.select_now(pool, priority, &region, &family).await {
                Some(turn) => turn,
                None => return,
            },
        };
        let Turn { selected, counted } = turn;
        match region.run_compaction(selected, self).await {
            // A store at which flushes wait is not left alone before it has fewer files.
            Ok(files) if files > 0 && priority_of(&region, &family).is_ok_and(|left| left <= 0) => {
                self.wish(&region, &family);
            }
            Ok(_) => self.tell_of_new_files(&region),
            Err(Error::NotServing { .. }) => {
                debug!(region = %region.name(), "closed before it was compacted")
            }
            Err(error) => {
                warn!(region = %region.name(), %error, "compaction failed; the files stay as they are")
            }
        }
        drop(counted);
    }

    /// Selects for a wish of the server whose turn has come. `None` if there is nothing to do, or not here and now.
    async fn select_now(
        &self,
        pool: Pool,
        priority: i64,
        region: &Arc<Region>,
        family: &Bytes,
    ) -> Option<Turn> {
        let now = priority_of(region, family).ok()?;
        let again = || Waiting { region: region.clone(), family: family.clone(), turn: None };
        if now > priority {
            // It has fewer files than when it was noted: others may be more urgent.
            self.enqueue(pool, now, again());
            return None;
        }
        if !self.may_compact(region) {
            return None;
        }
        match self.select(region, family, false).await {
            Ok(Some(turn)) if pool == Pool::Short && turn.selected.is_long() => {
                drop(turn);
                self.enqueue(Pool::Long, now, again());
                None
            }
            Ok(turn) => turn,
            Err(error) => {
                debug!(region = %region.name(), %error, "not compacted");
                None
            }
        }
    }

    fn queues(&self) -> MutexGuard<'_, [Queue; 2]> {
        lock(&self.queues)
    }
}

impl engine::region::Pace for Compactions {
    fn go_on(&self, bytes: u64) -> BoxFuture<'_, bool> {
        let is_on = || self.enabled.load(Relaxed);
        Box::pin(async move {
            if is_on() {
                self.throughput.pause_after(bytes).await;
            }
            is_on()
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut states = lock(&self.compactions.states);
        if let Some(counts) = states.get_mut(&self.encoded) {
            *counts.of_kind(self.kind) -= 1;
            if *counts == Counts::default() {
                states.remove(&self.encoded);
            }
        }
        if self.is_off_peak {
            self.compactions.off_peak_taken.store(false, Relaxed);
        }
    }
}

/// How many files the store may still get before flushes wait; never that of a person's wish.
fn priority_of(region: &Region, family: &[u8]) -> Result<i64, Error> {
    let priority = region.compaction_priority(family)?;
    Ok(if priority == PRIORITY_OF_USERS { priority + 1 } else { priority })
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    // Queues and counts: whole after any panic.
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
