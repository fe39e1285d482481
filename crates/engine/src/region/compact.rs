//! Compaction: merges some files of a store into one, or into one for each time window.
//!
//! A compaction is selected, waits in a queue, and runs. From its selection to its end, no other
//! compaction uses its files. So several compactions of one store can be queued or running at the
//! same time. `engine::compaction` selects the files. Only a compaction of all files of the store
//! drops delete markers. Files that are flushed in the meantime are not affected. Invariants:
//!
//! * The last output file that is moved into the store lists all inputs. When the store is opened
//!   after a crash, it drops the files that another file lists. Without the last output file, the
//!   other output files only duplicate cells.
//! * Inputs are archived when no view holds them. Until then, later compactions of the store list
//!   them too, because the output file that lists them may be archived first.
//! * A region does not close while a compaction runs. The compaction stops early when its region is
//!   closing.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::BoxFuture;
use bytes::Bytes;
use tracing::{info, warn};
use wal::marker::Compaction;

use crate::compaction::{self, FileFacts, Selection, SelectionRequest, SelectionTime, Settings};
use crate::error::Result;
use crate::instruments::CompactionWork;
use crate::region::compaction_progress::CompactionProgress;
use crate::region::output::{OutputFile, OutputSource};
use crate::region::strays::{Removal, Stray};
use crate::region::{Region, RegionState};
use crate::store::StoreFile;

/// The requested kind of compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    /// Merges some files, if there are enough.
    Minor,
    /// Rewrites all files, even a single one, without deleted and expired cells.
    Major,
}

/// Limits the speed of compactions, and can stop them.
pub trait CompactionThrottle: Send + Sync {
    /// Called after `bytes` more bytes were read. Waits until reading may continue; `false` stops
    /// the compaction.
    fn throttle(&self, bytes: u64) -> BoxFuture<'_, bool>;
}

/// No speed limit.
pub struct Unthrottled;

impl CompactionThrottle for Unthrottled {
    fn throttle(&self, _: u64) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }
}

/// The files of a store that are being replaced: by compactions, or because their bytes moved.
#[derive(Default)]
pub(super) struct InProgress {
    // The files of compactions that are selected or running.
    files: Vec<Arc<StoreFile>>,
    // A major compaction was requested, and none has been selected since.
    major_requested: bool,
}

/// The selected files of a store. No other compaction uses them while this exists.
pub struct SelectedCompaction {
    region: Arc<Region>,
    store: usize,
    files: Vec<Arc<StoreFile>>,
    selection: Selection,
    by_user: bool,
}

impl SelectedCompaction {
    /// The family of the store.
    pub fn family(&self) -> &Bytes {
        &self.region.families()[self.store].name
    }

    /// The selection.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Total bytes of the files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len()).sum()
    }

    /// Whether values in MOB files are written again. As in HBase, only a user's compaction of all
    /// files does that.
    fn rewrites_mob(&self) -> bool {
        self.by_user && self.selection.is_all && self.selection.is_major
    }

    /// Whether the compaction is so large that it belongs in the queue of long ones (`long_bytes`).
    pub fn is_long(&self) -> bool {
        self.bytes() > self.region.compaction_settings[self.store].long_bytes
    }
}

impl Drop for SelectedCompaction {
    fn drop(&mut self) {
        self.region.in_progress(self.store).release(&self.files);
    }
}

impl InProgress {
    pub(super) fn release(&mut self, files: &[Arc<StoreFile>]) {
        self.files.retain(|file| !files.iter().any(|released| Arc::ptr_eq(file, released)));
    }

    /// Whether a file is in use.
    pub(super) fn has(&self, file: &Arc<StoreFile>) -> bool {
        self.files.iter().any(|taken| Arc::ptr_eq(taken, file))
    }

    /// Marks a file as in use.
    pub(super) fn take(&mut self, file: &Arc<StoreFile>) {
        assert!(!self.has(file), "a file has one use at a time");
        self.files.push(file.clone());
    }

    /// Indexes of the files that are in use by compactions.
    fn indexes_of(&self, files: &[Arc<StoreFile>]) -> Vec<usize> {
        (0..files.len()).filter(|at| self.has(&files[*at])).collect()
    }
}

impl Region {
    /// Compacts the store of `family`, or every store, at the request of a user. Returns the number
    /// of files that were merged.
    ///
    /// # Errors
    /// The first error that a store failed with. That store is then unchanged.
    pub async fn compact(self: &Arc<Self>, family: Option<&[u8]>, kind: CompactionKind) -> Result<usize> {
        self.check_serving()?;
        let families = match family {
            Some(family) => vec![self.families()[self.store_of(family)?].name.clone()],
            None => self.families().iter().map(|family| family.name.clone()).collect(),
        };
        let request =
            SelectionRequest { by_user: true, major: kind == CompactionKind::Major, off_peak: false };
        let mut merged = 0;
        for family in families {
            if let Some(selected) = self.select_compaction(&family, request).await? {
                merged += self.run_compaction(selected, &Unthrottled).await?;
            }
        }
        self.archive_retired().await;
        Ok(merged)
    }

    /// Drops files of the store of `family` that have only expired cells, then selects files to
    /// compact. A requested major compaction is impossible while some files are being compacted;
    /// later selections then retry it.
    ///
    /// # Errors
    /// [`NotServing`](crate::Error::NotServing), [`NoSuchFamily`](crate::Error::NoSuchFamily), and
    /// log errors.
    pub async fn select_compaction(
        self: &Arc<Self>,
        family: &[u8],
        request: SelectionRequest,
    ) -> Result<Option<SelectedCompaction>> {
        self.check_serving()?;
        let store = self.store_of(family)?;
        self.drop_expired(store).await?;
        let mut in_progress = self.in_progress(store);
        in_progress.major_requested |= request.major;
        let view = self.view.load_full();
        let files = &view.stores[store].files;
        let (facts, mut taken) = (facts_of(files), in_progress.indexes_of(files));
        let mut may_take_all = in_progress.files.is_empty();
        if !request.by_user {
            // Without a user's request, damaged files are not compacted: that would fail again.
            let damaged = self.damaged(files);
            may_take_all &= damaged.is_empty();
            taken.extend(damaged);
            taken.sort_unstable();
            taken.dedup();
        }
        let request = SelectionRequest { major: in_progress.major_requested && may_take_all, ..request };
        let settings = &self.compaction_settings[store];
        let selection = compaction::select(settings, &facts, &taken, request, self.selection_time(store));
        if selection.files.is_empty() {
            return Ok(None);
        }
        let chosen: Vec<Arc<StoreFile>> = selection.files.iter().map(|at| files[*at].clone()).collect();
        debug_assert!(
            in_progress.indexes_of(&chosen).is_empty(),
            "no file is in two compactions at the same time"
        );
        in_progress.files.extend(chosen.iter().cloned());
        in_progress.major_requested &= !selection.is_major;
        let by_user = request.by_user;
        Ok(Some(SelectedCompaction { region: self.clone(), store, files: chosen, selection, by_user }))
    }

    /// Runs a compaction. Returns the number of files that were merged, or 0 if `throttle` stopped
    /// it.
    ///
    /// # Errors
    /// If it fails, the store is unchanged.
    pub async fn run_compaction(
        &self,
        selected: SelectedCompaction,
        throttle: &dyn CompactionThrottle,
    ) -> Result<usize> {
        let done = self.compact_files(selected, throttle).await;
        if done.is_err() {
            self.instruments.count_failed_compaction();
        }
        done
    }

    async fn compact_files(
        &self,
        selected: SelectedCompaction,
        throttle: &dyn CompactionThrottle,
    ) -> Result<usize> {
        let _open = self.compactions_run.read().await;
        self.check_serving()?;
        let (at, inputs) = (selected.store, &selected.files);
        assert!(!inputs.is_empty(), "a compaction has files to merge");
        // Without enough space for all of its output, a compaction would use up the space that logs
        // and flushes need, and then fail.
        if !self.services.budget.space().has(selected.bytes()) {
            let path = self.services.root.family_dir(&self.info, selected.family());
            return Err(fs::Error::NoSpace { path }.into());
        }
        let outputs_max = selected.selection.boundaries.len().max(1);
        let progress = CompactionProgress::begin(self, (at, inputs), outputs_max, throttle);
        let started = self.services.env.clock.monotonic();
        let mut replaced: Vec<String> = inputs.iter().map(|file| file.name().to_string()).collect();
        replaced.extend(self.retired_names(at).into_iter().chain(self.stray_names(at)));
        let written = {
            let source = OutputSource::files(
                inputs,
                selected.selection.is_all,
                &selected.selection.boundaries,
                replaced,
            )
            .rewriting_mob(selected.rewrites_mob());
            self.write_outputs(at, &source, &progress).await?
        };
        let Some(mut outputs) = written else { return Ok(0) };
        progress.complete();
        let uncached: Vec<_> = outputs.iter_mut().map(OutputFile::take_uncached).collect();
        let cell_bytes = outputs.iter().map(|output| output.cell_bytes).sum();
        let _mob_files: Vec<_> = outputs.iter_mut().flat_map(OutputFile::take_mob_files).collect();
        let outputs = self.move_outputs_in(at, outputs).await?;
        self.log_compaction(at, inputs, &outputs).await?;
        self.install_compaction(at, inputs, &outputs)?;
        self.record_new_files().await;
        self.counters.compactions.fetch_add(1, Relaxed);
        let work = CompactionWork {
            is_major: selected.selection.is_major,
            took: self.services.env.clock.monotonic() - started,
            input_files: inputs.len() as u64,
            input_bytes: selected.bytes(),
            output_files: outputs.len() as u64,
            output_cells: outputs.iter().map(|file| file.cell_count()).sum(),
            output_cell_bytes: cell_bytes,
            output_bytes: outputs.iter().map(|file| file.len()).sum(),
        };
        self.instruments.record_compaction(&work);
        info!(
            region = %self.name, family = %selected.family().escape_ascii(), inputs = work.input_files,
            all = selected.selection.is_all, bytes_before = work.input_bytes, outputs = work.output_files,
            bytes = work.output_bytes, took = ?work.took, "compacted"
        );
        let merged = inputs.len();
        drop(selected);
        self.archive_retired().await;
        // After archiving, because only then do the replaced blocks leave the cache.
        self.warm_cache(at, outputs.into_iter().zip(uncached).collect());
        Ok(merged)
    }

    /// Moves all outputs of a compaction into the store, or none.
    async fn move_outputs_in(&self, at: usize, outputs: Vec<OutputFile>) -> Result<Vec<Arc<StoreFile>>> {
        let mut files: Vec<Arc<StoreFile>> = Vec::new();
        let mut outputs = outputs.into_iter();
        while let Some(output) = outputs.next() {
            let name = output.name.clone();
            match self.move_in(output).await {
                Ok(file) => files.push(file),
                Err(error) => {
                    self.remove_outputs(at, &name, &files).await;
                    for output in outputs {
                        self.discard(output).await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(files)
    }

    /// Removes the outputs that were moved in before the output `failed`. If that one may still be
    /// in the store, they stay, too: the last output lists the inputs as replaced, and the next
    /// open then needs all outputs.
    async fn remove_outputs(&self, at: usize, failed: &str, moved_in: &[Arc<StoreFile>]) {
        let stays = self.stray_names(at).iter().any(|name| name == failed);
        for file in moved_in {
            match stays {
                true => self.strays().push(Stray {
                    store: at,
                    name: file.name().to_string(),
                    removal: Some(Removal::Delete),
                }),
                false => self.remove_from_store(at, file.name()).await,
            }
        }
    }

    /// Drops files whose cells are all expired. Keeps the newest file, because it records the last
    /// edit of the store that was flushed.
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
            let (time, taken) = (self.selection_time(at), in_progress.indexes_of(files));
            let but_newest = 0..files.len().saturating_sub(1);
            let is_expired =
                |index: &usize| !taken.contains(index) && time.is_expired(&FileFacts::of(&files[*index]));
            let expired: Vec<_> = but_newest.filter(is_expired).map(|index| files[index].clone()).collect();
            in_progress.files.extend(expired.iter().cloned());
            expired
        };
        if expired.is_empty() {
            return Ok(());
        }
        let outcome = match self.log_compaction(at, &expired, &[]).await {
            Ok(()) => self.install_compaction(at, &expired, &[]),
            Err(error) => Err(error),
        };
        self.in_progress(at).release(&expired);
        info!(region = %self.name, family = %self.families()[at].name.escape_ascii(), files = expired.len(),
              "dropped files with only expired cells");
        outcome
    }

    /// Families whose stores have references or enough files to compact.
    pub fn stores_to_compact(&self) -> Vec<Bytes> {
        let needed = |at: &usize| self.is_compaction_needed(*at);
        (0..self.families().len()).filter(needed).map(|at| self.families()[at].name.clone()).collect()
    }

    /// Indexes of the files in which reads found damage.
    fn damaged(&self, files: &[Arc<StoreFile>]) -> Vec<usize> {
        let is_damaged = |at: &usize| self.services.loader.is_damaged(files[*at].reader());
        (0..files.len()).filter(is_damaged).collect()
    }

    fn is_compaction_needed(&self, at: usize) -> bool {
        let view = self.view.load();
        let files = &view.stores[at].files;
        let taken = self.in_progress(at).files.len() + self.damaged(files).len();
        let facts = facts_of(files);
        // References are rewritten, so that the region they refer to can be deleted.
        if taken == 0 && facts.iter().any(|file| file.is_reference) {
            return true;
        }
        compaction::is_needed(&self.compaction_settings[at], &facts, taken, self.selection_time(at))
    }

    /// The families whose stores should be compacted, because they have enough files or a major
    /// compaction is due. Called every ten seconds with the next `round`. Each store is checked in
    /// every `check_multiplier`-th round.
    pub fn stores_due(&self, round: u64) -> Vec<(Bytes, CompactionKind)> {
        let is_checked = |at: &usize| round.is_multiple_of(self.compaction_settings[*at].check_multiplier);
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
            compaction::is_major_due(&self.compaction_settings[at], &facts, self.selection_time(at))
                .then_some((family, CompactionKind::Major))
        };
        (0..self.families().len()).filter(is_checked).filter_map(due).collect()
    }

    /// How many more files the store of `family` may get before flushes wait. The lowest value is
    /// the most urgent.
    ///
    /// # Errors
    /// [`NoSuchFamily`](crate::Error::NoSuchFamily).
    pub fn compaction_priority(&self, family: &[u8]) -> Result<i64> {
        let at = self.store_of(family)?;
        let files = self.view.load().stores[at].files.len();
        Ok(self.compaction_settings[at].blocking_files as i64 - files as i64)
    }

    /// Requests that the next possible compaction of the store of `family` takes all files.
    ///
    /// # Errors
    /// [`NoSuchFamily`](crate::Error::NoSuchFamily).
    pub fn request_major_compaction(&self, family: &[u8]) -> Result<()> {
        self.in_progress(self.store_of(family)?).major_requested = true;
        Ok(())
    }

    /// How close the fullest store is to the number of files at which flushes wait. 0: no store has
    /// more files than the minimum for a compaction. Above 1: flushes wait.
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

    /// How many more files the stores have than the minimum for a compaction.
    pub fn files_to_merge(&self) -> usize {
        let view = self.view.load();
        let stores = view.stores.iter().zip(&self.compaction_settings);
        stores.map(|(store, settings)| store.files.len().saturating_sub(settings.files_min)).sum()
    }

    /// The compaction settings of the store of `family`.
    ///
    /// # Errors
    /// [`NoSuchFamily`](crate::Error::NoSuchFamily).
    pub fn compaction_settings(&self, family: &[u8]) -> Result<&Settings> {
        Ok(&self.compaction_settings[self.store_of(family)?])
    }

    /// Whether the table allows compactions (`COMPACTION_ENABLED`).
    pub fn is_compaction_enabled(&self) -> bool {
        self.table.attribute("COMPACTION_ENABLED").is_none_or(|text| !text.eq_ignore_ascii_case("false"))
    }

    /// Requests a compaction of each store that has enough files.
    pub fn request_compactions(&self) {
        let Some(this) = self.this.upgrade() else { return };
        for family in self.stores_to_compact() {
            self.services.maintenance.request_compaction(&this, &family);
        }
    }

    /// Whether a running compaction should continue.
    pub(super) fn allows_compactions(&self) -> bool {
        self.state() == RegionState::Serving
    }

    fn selection_time(&self, at: usize) -> SelectionTime {
        let rules = &self.rules[at];
        SelectionTime {
            now_ms: self.services.env.clock.now_ms() as i64,
            ttl_ms: rules.ttl_ms.filter(|_| rules.min_versions == 0),
        }
    }

    pub(super) fn in_progress(&self, at: usize) -> MutexGuard<'_, InProgress> {
        // Safe after a panic: the list of files is always consistent.
        self.compacting[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a compaction. Called before the outputs replace the inputs in the view, so that a
    /// replay can finish the replacement.
    async fn log_compaction(
        &self,
        at: usize,
        inputs: &[Arc<StoreFile>],
        outputs: &[Arc<StoreFile>],
    ) -> Result<()> {
        let names = |files: &[Arc<StoreFile>]| files.iter().map(|file| file.name().to_string()).collect();
        let compaction = Compaction {
            region: self.markers.encoded.clone(),
            family: self.families()[at].name.clone(),
            inputs: names(inputs),
            outputs: names(outputs),
        };
        self.log_marker(|_, now_ms| self.markers.compaction(&compaction, now_ms)).await.map(|_| ())
    }

    pub(super) fn install_compaction(
        &self,
        at: usize,
        inputs: &[Arc<StoreFile>],
        outputs: &[Arc<StoreFile>],
    ) -> Result<()> {
        let mut publish = self.publish_lock()?;
        let view = self.view.load_full();
        let store = view.stores[at].compacted(inputs, outputs);
        self.set_view(&mut publish, view.with_store(at, store));
        let mut retired = self.retired();
        debug_assert!(
            !retired.iter().any(|(_, gone)| inputs.iter().any(|file| Arc::ptr_eq(gone, file))),
            "a file is compacted away once"
        );
        retired.extend(inputs.iter().map(|file| (at, file.clone())));
        Ok(())
    }

    pub(super) fn retired(&self) -> MutexGuard<'_, Vec<(usize, Arc<StoreFile>)>> {
        // Safe after a panic: the list of files is always consistent.
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names of the store's files that are compacted away but still in its directory.
    fn retired_names(&self, at: usize) -> Vec<String> {
        self.retired()
            .iter()
            .filter(|(store, _)| *store == at)
            .map(|(_, file)| file.name().to_string())
            .collect()
    }

    /// Files that were compacted away and that no view or compaction holds any more.
    fn archivable(&self) -> Vec<(usize, Arc<StoreFile>)> {
        let retired = self.retired();
        retired.iter().filter(|(_, file)| Arc::strong_count(file) == 1).cloned().collect()
    }

    /// Whether there are files to archive.
    pub fn has_archivable_files(&self) -> bool {
        !self.archivable().is_empty() || self.has_removable_strays()
    }

    /// Archives the files that were compacted away and that no view holds any more. Retries the
    /// removal of other unneeded files. Called after every compaction, and periodically, because
    /// scanners may hold files longer.
    pub async fn archive_retired(&self) {
        // One call at a time. A file stays in `retired` until it is archived, because compactions
        // list the retired files as replaced.
        let _one = self.archiving.lock().await;
        let archivable = self.archivable();
        if archivable.is_empty() && !self.has_removable_strays() {
            return;
        }
        if let Err(error) = self.record_files().await {
            warn!(region = %self.name, %error, "cannot write inventory; compacted files will be archived later");
            return;
        }
        self.remove_strays().await;
        for (at, file) in archivable {
            let family = &self.families()[at].name;
            let services = &self.services;
            match services.root.archive_store_files(&*services.fs, &self.info, family, &[file.name()]).await {
                Ok(()) => {
                    self.retired().retain(|(_, retired)| !Arc::ptr_eq(retired, &file));
                    self.services.loader.evict(file.reader());
                }
                Err(error) => {
                    warn!(file = %file.path(), %error, "cannot archive compacted file; will retry");
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
            is_bulk_loaded: file.is_bulk_loaded(),
            exclude_from_minor: info.exclude_from_minor,
        }
    }
}

fn facts_of(files: &[Arc<StoreFile>]) -> Vec<FileFacts> {
    files.iter().map(|file| FileFacts::of(file)).collect()
}

/// The state of the stores' compactions when a region opens.
pub(super) fn none_in_progress(stores: usize) -> Vec<Mutex<InProgress>> {
    (0..stores).map(|_| Mutex::default()).collect()
}
