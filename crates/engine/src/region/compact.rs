//! Compaction: some files of a store become one, or one for each window of time.
//!
//! A compaction is selected, waits for its turn, and is run. From its selection to its end no other takes its files, so
//! that several of a store may wait and run at once. Which files, `engine::compaction` says. Only one of all files of the
//! store takes delete markers away; a file that is flushed meanwhile is newer than all of them and stays. Invariants:
//!
//! * The last output to be moved in lists the inputs, so that whoever opens the store after a crash knows that they are
//!   replaced, and before that nothing is: outputs without the list stand for no file, they only repeat its cells.
//! * Inputs leave for the archive when no view holds them. Until they have, every output of the store lists them: the one
//!   that did so first may be gone sooner.
//! * A region does not close while one runs; one that runs gives up when its region closes.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use bytes::Bytes;
use tracing::{info, warn};
use wal::marker::Compaction;

use crate::compaction::{self, Ask, Choice, FileFacts, Moment, Settings};
use crate::error::Result;
use crate::instruments::CompactionWork;
use crate::region::output::{Merge, Output};
use crate::region::{Region, RegionState};
use crate::store::StoreFile;

/// What is wanted of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    /// Merge some files, if there are enough.
    Minor,
    /// Rewrite everything, also a single file, without what is deleted or over.
    Major,
}

/// How fast compactions may go, and whether at all.
pub trait Pace: Send + Sync {
    /// So many bytes were read since the last call. Waits until more may be; `false` to give up.
    fn go_on(&self, bytes: u64) -> BoxFuture<'_, bool>;
}

/// As fast as it goes.
pub struct Unhurried;

impl Pace for Unhurried {
    fn go_on(&self, _: u64) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }
}

/// What a store knows of its compactions.
#[derive(Default)]
pub(super) struct InProgress {
    // Files of compactions that are selected or run.
    files: Vec<Arc<StoreFile>>,
    // A major compaction was asked for, and none was selected since.
    wants_major: bool,
}

/// Files of a store that were selected: no other compaction takes them as long as this lives.
pub struct Selected {
    region: Arc<Region>,
    store: usize,
    files: Vec<Arc<StoreFile>>,
    choice: Choice,
}

impl Selected {
    /// The family of the store.
    pub fn family(&self) -> &Bytes {
        &self.region.families()[self.store].name
    }

    /// What was chosen.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Bytes of the files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len()).sum()
    }

    /// Whether it is so large that it should not keep others waiting.
    pub fn is_long(&self) -> bool {
        self.bytes() > self.region.compaction_settings[self.store].long_bytes
    }
}

impl Drop for Selected {
    fn drop(&mut self) {
        self.region.in_progress(self.store).release(&self.files);
    }
}

impl InProgress {
    fn release(&mut self, files: &[Arc<StoreFile>]) {
        self.files.retain(|file| !files.iter().any(|released| Arc::ptr_eq(file, released)));
    }

    /// The places of files that are taken.
    fn places(&self, files: &[Arc<StoreFile>]) -> Vec<usize> {
        let is_taken = |file: &Arc<StoreFile>| self.files.iter().any(|taken| Arc::ptr_eq(taken, file));
        (0..files.len()).filter(|at| is_taken(&files[*at])).collect()
    }
}

impl Region {
    /// Compacts the store of `family`, or every store, as a person asks for it; returns how many files went into others.
    ///
    /// # Errors
    /// What kept the first store that failed from being compacted; it is as it was before.
    pub async fn compact(self: &Arc<Self>, family: Option<&[u8]>, kind: CompactionKind) -> Result<usize> {
        self.check_serving()?;
        let families = match family {
            Some(family) => vec![self.families()[self.store_of(family)?].name.clone()],
            None => self.families().iter().map(|family| family.name.clone()).collect(),
        };
        let ask = Ask { by_user: true, major: kind == CompactionKind::Major, off_peak: false };
        let mut merged = 0;
        for family in families {
            if let Some(selected) = self.select_compaction(&family, ask).await? {
                merged += self.run_compaction(selected, &Unhurried).await?;
            }
        }
        self.archive_retired().await;
        Ok(merged)
    }

    /// Chooses files of the store of `family`; before, drops those that are over as a whole. A major compaction that
    /// cannot be now, because some files are being compacted, is tried again with every later choice.
    ///
    /// # Errors
    /// [`NotServing`](crate::Error::NotServing), [`NoSuchFamily`](crate::Error::NoSuchFamily), the log's.
    pub async fn select_compaction(self: &Arc<Self>, family: &[u8], ask: Ask) -> Result<Option<Selected>> {
        self.check_serving()?;
        let store = self.store_of(family)?;
        self.drop_expired(store).await?;
        let mut in_progress = self.in_progress(store);
        in_progress.wants_major |= ask.major;
        let view = self.view.load_full();
        let files = &view.stores[store].files;
        let (facts, mut taken) = (facts_of(files), in_progress.places(files));
        let mut may_take_all = in_progress.files.is_empty();
        if !ask.by_user {
            // It would fail again.
            let damaged = self.damaged(files);
            may_take_all &= damaged.is_empty();
            taken.extend(damaged);
            taken.sort_unstable();
            taken.dedup();
        }
        let ask = Ask { major: in_progress.wants_major && may_take_all, ..ask };
        let settings = &self.compaction_settings[store];
        let choice = compaction::select(settings, &facts, &taken, ask, self.moment(store));
        if choice.files.is_empty() {
            return Ok(None);
        }
        let chosen: Vec<Arc<StoreFile>> = choice.files.iter().map(|at| files[*at].clone()).collect();
        in_progress.files.extend(chosen.iter().cloned());
        in_progress.wants_major &= !choice.is_major;
        Ok(Some(Selected { region: self.clone(), store, files: chosen, choice }))
    }

    /// Carries out a compaction; returns how many files went into others, 0 if `pace` gave up.
    ///
    /// # Errors
    /// What kept it from being done; the store is as it was before.
    pub async fn run_compaction(&self, selected: Selected, pace: &dyn Pace) -> Result<usize> {
        let done = self.compact_files(selected, pace).await;
        if done.is_err() {
            self.instruments.note_compaction_failed();
        }
        done
    }

    async fn compact_files(&self, selected: Selected, pace: &dyn Pace) -> Result<usize> {
        let _open = self.compactions_run.read().await;
        self.check_serving()?;
        let (at, inputs) = (selected.store, &selected.files);
        // Begun without room for all of its output, a compaction would take what logs and flushes need, and then fail.
        if !self.services.budget.space().has(selected.bytes()) {
            let path = self.services.root.family_dir(&self.info, selected.family());
            return Err(fs::Error::NoSpace { path }.into());
        }
        let _counted = Counted::begin(self, inputs.iter().map(|file| file.cell_count()).sum());
        let started = self.services.env.clock.monotonic();
        let mut replaced: Vec<String> = inputs.iter().map(|file| file.name().to_string()).collect();
        replaced.extend(self.retired_names(at).into_iter().chain(self.stray_names(at)));
        let written = {
            let merge = Merge::files(inputs, selected.choice.is_all, &selected.choice.boundaries, replaced);
            self.write_outputs(at, &merge, pace).await?
        };
        let Some(mut outputs) = written else { return Ok(0) };
        let left_out: Vec<_> = outputs.iter_mut().map(Output::take_left_out).collect();
        let cell_bytes = outputs.iter().map(|output| output.cell_bytes).sum();
        let outputs = self.move_outputs_in(at, outputs).await?;
        self.log_compaction(at, inputs, &outputs).await?;
        self.publish_compaction(at, inputs, &outputs)?;
        self.record_new_files().await;
        self.counters.compactions.fetch_add(1, Relaxed);
        let work = CompactionWork {
            is_major: selected.choice.is_major,
            took: self.services.env.clock.monotonic() - started,
            input_files: inputs.len() as u64,
            input_bytes: selected.bytes(),
            output_files: outputs.len() as u64,
            output_cells: outputs.iter().map(|file| file.cell_count()).sum(),
            output_cell_bytes: cell_bytes,
            output_bytes: outputs.iter().map(|file| file.len()).sum(),
        };
        self.instruments.note_compaction(&work);
        info!(
            region = %self.name, family = %selected.family().escape_ascii(), inputs = work.input_files,
            all = selected.choice.is_all, bytes_before = work.input_bytes, outputs = work.output_files,
            bytes = work.output_bytes, took = ?work.took, "compacted"
        );
        let merged = inputs.len();
        drop(selected);
        self.archive_retired().await;
        // Now that what they take the place of has left the cache.
        self.warm_up(at, outputs.into_iter().zip(left_out).collect());
        Ok(merged)
    }

    /// Moves the outputs of a compaction into the store, all or none; the last one says what they replace.
    async fn move_outputs_in(&self, at: usize, outputs: Vec<Output>) -> Result<Vec<Arc<StoreFile>>> {
        let mut files: Vec<Arc<StoreFile>> = Vec::new();
        let mut outputs = outputs.into_iter();
        while let Some(output) = outputs.next() {
            match self.move_in(output).await {
                Ok(file) => files.push(file),
                Err(error) => {
                    for file in files {
                        self.take_out(at, file.name()).await;
                    }
                    for output in outputs {
                        self.discard(output).await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(files)
    }

    /// Drops files whose cells are all over, but never the newest: it says up to which edit the store is in files.
    async fn drop_expired(&self, at: usize) -> Result<()> {
        if !self.compaction_settings[at].drops_expired {
            return Ok(());
        }
        let _open = self.compactions_run.read().await;
        self.check_serving()?;
        let expired = {
            let mut in_progress = self.in_progress(at);
            let view = self.view.load_full();
            let files = &view.stores[at].files;
            let (moment, taken) = (self.moment(at), in_progress.places(files));
            let but_newest = 0..files.len().saturating_sub(1);
            let is_expired =
                |place: &usize| !taken.contains(place) && moment.is_over(&FileFacts::of(&files[*place]));
            let expired: Vec<_> = but_newest.filter(is_expired).map(|place| files[place].clone()).collect();
            in_progress.files.extend(expired.iter().cloned());
            expired
        };
        if expired.is_empty() {
            return Ok(());
        }
        let outcome = match self.log_compaction(at, &expired, &[]).await {
            Ok(()) => self.publish_compaction(at, &expired, &[]),
            Err(error) => Err(error),
        };
        self.in_progress(at).release(&expired);
        info!(region = %self.name, family = %self.families()[at].name.escape_ascii(), files = expired.len(),
              "files dropped whose cells are over");
        outcome
    }

    /// Families whose stores have enough files to be compacted, or references.
    pub fn stores_to_compact(&self) -> Vec<Bytes> {
        let needed = |at: &usize| self.is_compaction_needed(*at);
        (0..self.families().len()).filter(needed).map(|at| self.families()[at].name.clone()).collect()
    }

    /// Places of the files in which reads met damage.
    fn damaged(&self, files: &[Arc<StoreFile>]) -> Vec<usize> {
        let is_damaged = |at: &usize| self.services.loader.is_damaged(files[*at].reader());
        (0..files.len()).filter(is_damaged).collect()
    }

    fn is_compaction_needed(&self, at: usize) -> bool {
        let view = self.view.load();
        let files = &view.stores[at].files;
        let taken = self.in_progress(at).files.len() + self.damaged(files).len();
        let facts = facts_of(files);
        // References are written anew, so that the region they lead to can go.
        if taken == 0 && facts.iter().any(|file| file.is_reference) {
            return true;
        }
        compaction::is_needed(&self.compaction_settings[at], &facts, taken, self.moment(at))
    }

    /// Families with stores to be looked at in this round of looks, one every ten seconds: those that have enough
    /// files, and those of which all files are due.
    pub fn stores_due(&self, round: u64) -> Vec<(Bytes, CompactionKind)> {
        let looked_at = |at: &usize| round.is_multiple_of(self.compaction_settings[*at].check_multiplier);
        let due = |at: usize| {
            let family = self.families()[at].name.clone();
            if self.is_compaction_needed(at) {
                return Some((family, CompactionKind::Minor));
            }
            let view = self.view.load();
            let files = &view.stores[at].files;
            if !self.damaged(files).is_empty() {
                return None;
            }
            let facts = facts_of(files);
            compaction::is_major_due(&self.compaction_settings[at], &facts, self.moment(at))
                .then_some((family, CompactionKind::Major))
        };
        (0..self.families().len()).filter(looked_at).filter_map(due).collect()
    }

    /// Files that the store of `family` may still get before flushes wait; the smaller, the more urgent a compaction is.
    ///
    /// # Errors
    /// [`NoSuchFamily`](crate::Error::NoSuchFamily).
    pub fn compaction_priority(&self, family: &[u8]) -> Result<i64> {
        let at = self.store_of(family)?;
        let files = self.view.load().stores[at].files.len();
        Ok(self.compaction_settings[at].blocking_files as i64 - files as i64)
    }

    /// The next compaction of the store of `family` that can take all files takes them.
    ///
    /// # Errors
    /// [`NoSuchFamily`](crate::Error::NoSuchFamily).
    pub fn want_major_compaction(&self, family: &[u8]) -> Result<()> {
        self.in_progress(self.store_of(family)?).wants_major = true;
        Ok(())
    }

    /// How near the fullest store is to the number of files at which flushes wait: 0 if it has no more than a compaction
    /// takes, above 1 where they wait.
    pub fn compaction_pressure(&self) -> f64 {
        let view = self.view.load();
        let stores = view.stores.iter().zip(&self.compaction_settings);
        let pressures = stores.map(|(store, settings)| {
            let above = |files: usize| files.saturating_sub(settings.files_min) as f64;
            if above(store.files.len()) > 0.0 {
                above(store.files.len()) / above(settings.blocking_files)
            } else {
                0.0
            }
        });
        pressures.fold(0.0, f64::max)
    }

    /// The settings of the compactions of the store of `family`.
    ///
    /// # Errors
    /// [`NoSuchFamily`](crate::Error::NoSuchFamily).
    pub fn compaction_settings(&self, family: &[u8]) -> Result<&Settings> {
        Ok(&self.compaction_settings[self.store_of(family)?])
    }

    /// Whether the table lets its regions be compacted (`COMPACTION_ENABLED`).
    pub fn is_compaction_enabled(&self) -> bool {
        self.table.attribute("COMPACTION_ENABLED").is_none_or(|text| !text.eq_ignore_ascii_case("false"))
    }

    /// Whether a store has so many files that a flush should wait for a compaction.
    pub fn has_too_many_files(&self) -> bool {
        let view = self.view.load();
        let mut stores = view.stores.iter().zip(&self.compaction_settings);
        self.is_compaction_enabled()
            && stores.any(|(store, settings)| store.files.len() > settings.blocking_files)
    }

    /// Waits, as long as a store has too many files, for compactions, but not longer than the options say: a flush would
    /// add one more to each.
    pub async fn wait_for_fewer_files(&self) {
        const LOOK_AGAIN: Duration = Duration::from_millis(900);
        let clock = &self.services.env.clock;
        let until = clock.monotonic() + self.options().blocking_wait;
        while self.has_too_many_files() && !self.info.table.is_meta() && clock.monotonic() < until {
            self.want_compactions();
            clock.sleep(LOOK_AGAIN).await;
        }
    }

    /// Utters the wish to be compacted for each store that has enough files.
    pub fn want_compactions(&self) {
        let Some(this) = self.this.upgrade() else { return };
        for family in self.stores_to_compact() {
            self.services.maintenance.compaction_wanted(&this, &family);
        }
    }

    /// Whether a compaction that runs should go on.
    pub(super) fn lets_compactions_run(&self) -> bool {
        self.state() == RegionState::Serving
    }

    fn moment(&self, at: usize) -> Moment {
        let rules = &self.rules[at];
        Moment {
            now_ms: self.services.env.clock.now_ms() as i64,
            ttl_ms: rules.ttl_ms.filter(|_| rules.min_versions == 0),
        }
    }

    fn in_progress(&self, at: usize) -> MutexGuard<'_, InProgress> {
        // A list of files: whole after any panic.
        self.compacting[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the log before the view: who replays it finishes the swap.
    async fn log_compaction(
        &self,
        at: usize,
        inputs: &[Arc<StoreFile>],
        outputs: &[Arc<StoreFile>],
    ) -> Result<()> {
        let names = |files: &[Arc<StoreFile>]| files.iter().map(|file| file.name().to_string()).collect();
        let compaction = Compaction {
            region: self.marked.encoded.clone(),
            family: self.families()[at].name.clone(),
            inputs: names(inputs),
            outputs: names(outputs),
        };
        self.log_marker(|_, now_ms| self.marked.compaction(&compaction, now_ms)).await.map(|_| ())
    }

    pub(super) fn publish_compaction(
        &self,
        at: usize,
        inputs: &[Arc<StoreFile>],
        outputs: &[Arc<StoreFile>],
    ) -> Result<()> {
        let mut publish = self.publish_lock()?;
        let view = self.view.load_full();
        let store = view.stores[at].compacted(inputs, outputs);
        self.set_view(&mut publish, view.with_store(at, store));
        self.retired().extend(inputs.iter().map(|file| (at, file.clone())));
        Ok(())
    }

    fn retired(&self) -> MutexGuard<'_, Vec<(usize, Arc<StoreFile>)>> {
        // A list of files: whole after any panic.
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names of files of a store that are compacted away but still in its directory.
    fn retired_names(&self, at: usize) -> Vec<String> {
        self.retired()
            .iter()
            .filter(|(store, _)| *store == at)
            .map(|(_, file)| file.name().to_string())
            .collect()
    }

    /// Files that were compacted away, and that no view and no compaction holds any more.
    fn unheld(&self) -> Vec<(usize, Arc<StoreFile>)> {
        let retired = self.retired();
        retired.iter().filter(|(_, file)| Arc::strong_count(file) == 1).cloned().collect()
    }

    /// Whether there are files to be archived.
    pub fn has_unheld_files(&self) -> bool {
        !self.unheld().is_empty()
    }

    /// Moves files that were compacted away, and that no view holds any more, to the archive. Called after every
    /// compaction, and from time to time: a scanner may have kept some.
    pub async fn archive_retired(&self) {
        // One at a time; a file counts as retired until it is gone, so that every output made meanwhile lists it.
        let _one = self.archiving.lock().await;
        let unheld = self.unheld();
        if unheld.is_empty() {
            return;
        }
        if let Err(error) = self.record_files().await {
            warn!(region = %self.name, %error, "the inventory could not be written; compacted files are archived later");
            return;
        }
        for (at, file) in unheld {
            let family = &self.families()[at].name;
            let services = &self.services;
            match services.root.archive_store_files(&*services.fs, &self.info, family, &[file.name()]).await {
                Ok(()) => {
                    self.retired().retain(|(_, retired)| !Arc::ptr_eq(retired, &file));
                    self.services.loader.evict(file.reader());
                }
                Err(error) => {
                    warn!(file = %file.path(), %error, "a compacted file could not be archived; tried again later");
                }
            }
        }
    }
}

impl FileFacts {
    fn of(file: &StoreFile) -> FileFacts {
        let info = file.reader().info();
        let is_empty = info.time_range.min > info.time_range.max;
        FileFacts {
            name: file.name().to_string(),
            bytes: file.len(),
            entries: file.cell_count(),
            min_timestamp: if is_empty { 0 } else { info.time_range.min },
            max_timestamp: if is_empty { i64::MAX } else { info.time_range.max },
            modified_ms: file.modified_ms(),
            is_reference: file.is_reference(),
            is_major: info.is_major,
            is_bulk_loaded: info.bulk_load_time_ms.is_some(),
            exclude_from_minor: info.exclude_from_minor,
        }
    }
}

fn facts_of(files: &[Arc<StoreFile>]) -> Vec<FileFacts> {
    files.iter().map(|file| FileFacts::of(file)).collect()
}

/// Progress of compactions of the stores, for a region that begins.
pub(super) fn none_in_progress(stores: usize) -> Vec<Mutex<InProgress>> {
    (0..stores).map(|_| Mutex::default()).collect()
}

/// Counts a store's cells in the figures: as to be compacted at once, as compacted when it goes.
struct Counted<'a> {
    region: &'a Region,
    cells: u64,
}

impl Counted<'_> {
    fn begin(region: &Region, cells: u64) -> Counted<'_> {
        region.counters.compacting_cells.fetch_add(cells, Relaxed);
        Counted { region, cells }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.region.counters.compacted_cells.fetch_add(self.cells, Relaxed);
    }
}
