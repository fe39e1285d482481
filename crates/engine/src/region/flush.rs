//! Flush: writes memstores to files.
//!
//! The view of a region lists the memstores and files of its stores ([`RegionView`]). A flush has
//! these steps:
//!
//! 1. Freeze: under the publish lock, the active memstores become snapshots, and the flush gets its
//!    sequence id. The snapshots contain all writes with smaller sequence ids that are in no file
//!    yet, and no other writes.
//! 2. Wait until the log has committed these writes.
//! 3. Write each snapshot to a file outside its store.
//! 4. Move the files into their stores and make their names durable.
//! 5. Install a view that has the files instead of the snapshots.
//!
//! Invariants:
//!
//! * A failed flush keeps its snapshots in the view. The next attempt finishes that flush before it
//!   freezes new memstores. It writes the files again, unless they are in the view already.
//! * The log forgets a region's edits only after the files with them are durable and in the view.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::env::TaskClass;
use bytes::Bytes;
use fs::FilePath;
use tracing::{debug, warn};
use wal::marker::{FamilyFiles, FlushStep};

use crate::error::{Error, Result};
use crate::instruments::FlushWork;
use crate::memstore::Memstore;
use crate::region::output::{OutputFile, OutputSource};
use crate::region::{PublishState, Region, RegionState};
use crate::store::{RegionView, StoreFile, StoreView};

/// A flush whose memstores are frozen.
#[derive(Clone, Copy)]
pub(super) struct FrozenFlush {
    seq_id: u64,
    // Whether all memstores with cells were frozen. This flush then writes all earlier edits to
    // files.
    is_whole: bool,
}

/// The result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// There were no cells in memory.
    Nothing,
    /// The edits of the flushed families up to `seq_id` are in files.
    Files {
        /// The flush's sequence id.
        seq_id: u64,
        /// Number of files written: one for each family that had cells in its memstore.
        files: usize,
    },
}

impl Region {
    /// Writes all memstores to files. When this returns, all writes that were visible at the call
    /// are in durable files. A failed flush is retried with increasing waits
    /// ([`flush_retries`](crate::region::RegionOptions::flush_retries)). Continues if the caller
    /// stops waiting: a file in the store's directory that no view has would be read after the next
    /// open.
    ///
    /// # Errors
    /// The error of the last attempt. The snapshot stays readable, and the next call resumes the
    /// flush. [`Error::Log`] and a lack of disk space or file descriptors are not retried.
    ///
    /// [`Error::Log`]: crate::Error::Log
    pub async fn flush(&self) -> Result<Flushed> {
        Ok(self.flush_and_list_files().await?.0)
    }

    /// As [`Region::flush`], and lists the files of all stores at the end of the flush. They have
    /// all edits up to one sequence id and no later ones: a later flush, of some families only, or
    /// a bulk load adds no file to the list.
    ///
    /// # Errors
    /// As [`Region::flush`].
    pub async fn flush_and_list_files(&self) -> Result<(Flushed, Vec<FilePath>)> {
        self.flush_to_end(self.all_families()).await
    }

    /// Flushes some families only. The log keeps the edits of the other families.
    ///
    /// # Errors
    /// As [`Region::flush`], and [`Error::NoSuchFamily`](crate::Error::NoSuchFamily).
    pub async fn flush_families(&self, families: &[Bytes]) -> Result<Flushed> {
        let mut wanted = vec![false; self.families().len()];
        for family in families {
            wanted[self.store_of(family)?] = true;
        }
        Ok(self.flush_to_end(wanted).await?.0)
    }

    async fn flush_to_end(&self, wanted: Vec<bool>) -> Result<(Flushed, Vec<FilePath>)> {
        let this = self.this.upgrade().ok_or_else(|| self.not_serving())?;
        let flushing = async move { this.flush_stores(&wanted, this.options().flush_retries).await };
        let flushed = self.services.env.run_to_end(TaskClass::Background, flushing).await;
        flushed.unwrap_or_else(|| Err(Error::log("a flush was interrupted by a panic")))
    }

    /// [`Region::flush`] with a single attempt.
    pub(super) async fn flush_without_retries(&self) -> Result<Flushed> {
        Ok(self.flush_stores(&self.all_families(), 0).await?.0)
    }

    pub(super) fn all_families(&self) -> Vec<bool> {
        vec![true; self.families().len()]
    }

    /// Flushes the `wanted` families, and lists the files of all families at the end of the flush.
    async fn flush_stores(&self, wanted: &[bool], retries: u32) -> Result<(Flushed, Vec<FilePath>)> {
        let mut wait = self.options().flush_retry_wait;
        for left in (0..retries).rev() {
            match self.flush_once(wanted).await {
                Ok(flushed) => {
                    // Archives files that compactions have replaced and that no scanner uses.
                    self.archive_retired().await;
                    return Ok(flushed);
                }
                // A short wait does not help against a full disk or a lack of descriptors. The
                // caller gets the error now, and the scheduler retries later.
                Err(error) if left == 0 || self.mvcc.check_log().is_err() || error.is_exhaustion() => {
                    return Err(error);
                }
                Err(error) => {
                    warn!(region = %self.name, %error, ?wait, "flush failed; keeping the memstore and retrying");
                }
            }
            self.services.env.clock.sleep(wait).await;
            wait = (wait * 2).min(self.options().flush_retry_wait * 100);
        }
        self.flush_once(wanted).await
    }

    async fn flush_once(&self, wanted: &[bool]) -> Result<(Flushed, Vec<FilePath>)> {
        let mut pending = self.flushing.lock().await;
        let flushed = self.flush_locked(&mut pending, wanted).await?;
        // Under the lock, because the next flush or bulk load adds files.
        Ok((flushed, self.all_store_files()))
    }

    /// A single attempt to flush. `pending` is the content of the flush lock.
    pub(super) async fn flush_locked(
        &self,
        pending: &mut Option<FrozenFlush>,
        wanted: &[bool],
    ) -> Result<Flushed> {
        self.counters.flushing.store(true, Relaxed);
        let _running = FlushingGuard(self);
        if let Some(earlier) = *pending {
            // Finish the earlier flush, then begin a new one for later writes.
            self.write_snapshots(earlier).await?;
            *pending = None;
        }
        let Some(frozen) = self.freeze(wanted)? else {
            return Ok(Flushed::Nothing);
        };
        *pending = Some(frozen);
        let flushed = self.write_snapshots(frozen).await?;
        *pending = None;
        Ok(flushed)
    }

    /// Freezes the memstores of `wanted` families that have cells. Returns `None` if there is no
    /// such memstore.
    fn freeze(&self, wanted: &[bool]) -> Result<Option<FrozenFlush>> {
        let mut publish = self.publish_lock()?;
        self.mvcc.check_log()?;
        let view = self.view.load_full();
        debug_assert!(
            view.stores.iter().all(|store| store.snapshot.is_none()),
            "a flush begins when the previous one is in files"
        );
        let has_cells = |at: usize| !view.stores[at].active.is_empty();
        let is_partial = (0..wanted.len()).any(|at| !wanted[at] && has_cells(at));
        if !(0..wanted.len()).any(|at| wanted[at] && has_cells(at)) {
            // If no family has cells in memory, all edits up to this sequence id are in files. Then
            // the log may forget them. After the close it has forgotten the region, whose sequence
            // ids may restart: see `close`.
            if !is_partial && self.state() != RegionState::Closed {
                self.record_flushed(self.mvcc.write_point());
            }
            return Ok(None);
        }
        let families: Vec<FamilyFiles> = self.frozen_families(&view, wanted).collect();
        let seq_id = self.append_marker(&mut publish, |seq_id, now_ms| {
            self.markers.flush(FlushStep::Start, seq_id, &families, now_ms)
        });
        debug_assert!(
            view.stores.iter().all(|store| store.max_file_seq_id() < seq_id),
            "a flush is newer than all files"
        );
        self.freeze_view(&mut publish, &view, wanted);
        Ok(Some(FrozenFlush { seq_id, is_whole: !is_partial }))
    }

    /// Replaces the memstores of `wanted` families that have cells by empty memstores, and keeps
    /// the old memstores as snapshots.
    fn freeze_view(&self, publish: &mut PublishState, view: &RegionView, wanted: &[bool]) {
        assert!(wanted.len() == view.stores.len(), "there is one `wanted` flag per store");
        let stores =
            view.stores.iter().zip(wanted).map(|(store, wanted)| match store.active.is_empty() || !wanted {
                true => store.clone(),
                false => {
                    let active = Memstore::new(self.table.order());
                    if let Some(common) = store.active.rows_common_prefix() {
                        active.set_common_prefix(&common);
                    }
                    store.frozen(Arc::new(active))
                }
            });
        self.set_view(publish, RegionView { stores: stores.collect() });
    }

    fn frozen_families<'a>(
        &'a self,
        view: &'a RegionView,
        wanted: &'a [bool],
    ) -> impl Iterator<Item = FamilyFiles> + 'a {
        let stores = self.families().iter().zip(&view.stores).zip(wanted);
        let with_cells = stores.filter(|((_, store), wanted)| **wanted && !store.active.is_empty());
        with_cells.map(|((family, _), _)| FamilyFiles {
            family: family.name.clone(),
            files: Vec::new(),
            bytes: 0,
        })
    }

    /// Writes the snapshots to files, and records the flush in the log.
    async fn write_snapshots(&self, pending: FrozenFlush) -> Result<Flushed> {
        // A file must not contain edits that the log may still lose.
        self.mvcc.wait_visible(pending.seq_id).await?;
        let clock = &self.services.env.clock;
        let begun = clock.monotonic();
        let (memstore_cells, memstore_bytes) = self.snapshot_size();
        let files = self.snapshots_to_files(pending.seq_id).await?;
        let made = files.iter().flatten().count();
        if made > 0 {
            self.record_new_files().await;
        }
        let families = self.families_of(&files);
        self.log_marker(|_, now_ms| self.markers.flush(FlushStep::Commit, pending.seq_id, &families, now_ms))
            .await?;
        if pending.is_whole {
            if made == 0 {
                // No new file shows that sequence ids up to `seq_id` were used, and after
                // `record_flushed` the log may not show it either. Without the record on disk they
                // could be assigned again.
                self.record_seq_id(pending.seq_id).await?;
            }
            self.record_flushed(pending.seq_id);
        }
        self.counters.flushes.fetch_add(1, Relaxed);
        self.instruments.record_flush(&FlushWork {
            took: clock.monotonic() - begun,
            memstore_bytes,
            output_bytes: files.iter().flatten().map(|file| file.len()).sum(),
            memstore_cells,
        });
        debug!(region = %self.name, seq_id = pending.seq_id, files = made, "flushed");
        Ok(Flushed::Files { seq_id: pending.seq_id, files: made })
    }

    /// Cells and bytes of all snapshots.
    fn snapshot_size(&self) -> (u64, u64) {
        let view = self.view.load();
        let snapshots = view.stores.iter().filter_map(|store| store.snapshot.as_ref());
        snapshots.fold((0, 0), |(cells, bytes), memstore| {
            (cells + memstore.cell_count(), bytes + memstore.data_bytes())
        })
    }

    /// Flushes the edits that a replay put into memory. Their sequence ids are at most `seq_id`.
    /// The log gets no markers, because the region is not open yet.
    pub(super) async fn flush_replayed(&self, seq_id: u64) -> Result<()> {
        let is_empty = {
            let mut publish = self.publish_lock()?;
            let view = self.view.load_full();
            self.freeze_view(&mut publish, &view, &vec![true; view.stores.len()]);
            view.stores.iter().all(|store| store.active.is_empty())
        };
        if !is_empty {
            self.snapshots_to_files(seq_id).await?;
        }
        Ok(())
    }

    /// Writes all snapshots of the view to files, and replaces them in the view by the files. The
    /// snapshots contain edits up to `seq_id`. Returns the new file of each store, `None` for a
    /// store that had no snapshot.
    async fn snapshots_to_files(&self, seq_id: u64) -> Result<Vec<Option<Arc<StoreFile>>>> {
        let view = self.view.load_full();
        let mut outputs = Vec::new();
        for (at, store) in view.stores.iter().enumerate().filter(|(_, store)| store.snapshot.is_some()) {
            match self.write_output(at, &OutputSource::snapshot(store, seq_id)).await {
                Ok(output) => outputs.push(output),
                Err(error) => {
                    self.discard_all(outputs).await;
                    return Err(error);
                }
            }
        }
        let _mob_files: Vec<_> = outputs.iter_mut().flat_map(OutputFile::take_mob_files).collect();
        let files = self.move_all_in(view.stores.len(), outputs).await?;
        self.install_flush(&files)?;
        for (at, file) in files.iter().enumerate() {
            self.warm_cache(at, file.iter().map(|file| (file.clone(), Vec::new())).collect());
        }
        Ok(files)
    }

    /// Moves all files into their stores, or none. Returns the new file of each store, `None` for a
    /// store without one.
    async fn move_all_in(
        &self,
        stores: usize,
        outputs: Vec<OutputFile>,
    ) -> Result<Vec<Option<Arc<StoreFile>>>> {
        let mut files = vec![None; stores];
        let mut outputs = outputs.into_iter();
        while let Some(output) = outputs.next() {
            let store = output.store;
            assert!(files[store].is_none(), "a flush writes at most one file for each store");
            match self.move_in(output).await {
                Ok(file) => files[store] = Some(file),
                Err(error) => {
                    for (store, file) in files.iter().enumerate() {
                        if let Some(file) = file {
                            self.remove_from_store(store, file.name()).await;
                        }
                    }
                    self.discard_all(outputs.collect()).await;
                    return Err(error);
                }
            }
        }
        Ok(files)
    }

    async fn discard_all(&self, outputs: Vec<OutputFile>) {
        for output in outputs {
            self.discard(output).await;
        }
    }

    /// Replaces the snapshots in the view by the files.
    fn install_flush(&self, files: &[Option<Arc<StoreFile>>]) -> Result<()> {
        let mut publish = self.publish_lock()?;
        let view = self.view.load_full();
        assert!(
            files.iter().zip(&view.stores).all(|(file, store)| file.is_none() || store.snapshot.is_some()),
            "a snapshot stays in the view until its file replaces it"
        );
        let stores =
            view.stores.iter().zip(files).map(|(store, file): (&StoreView, _)| match &store.snapshot {
                Some(_) => store.flushed(file.clone()),
                None => store.clone(),
            });
        self.set_view(&mut publish, RegionView { stores: stores.collect() });
        Ok(())
    }

    fn families_of(&self, files: &[Option<Arc<StoreFile>>]) -> Vec<FamilyFiles> {
        let made =
            self.families().iter().zip(files).filter_map(|(family, file)| Some((family, file.as_ref()?)));
        made.map(|(family, file)| FamilyFiles {
            family: family.name.clone(),
            files: vec![file.name().to_string()],
            bytes: file.len(),
        })
        .collect()
    }

    pub(super) fn record_flushed(&self, seq_id: u64) {
        assert!(
            seq_id >= self.counters.flushed_seq_id.load(Relaxed),
            "the sequence ids of flushes do not go back"
        );
        self.services.log.record_flush(&self.encoded, seq_id);
        self.counters.flushed_seq_id.fetch_max(seq_id, Relaxed);
        self.counters.last_flush_ms.store(self.services.env.clock.now_ms(), Relaxed);
    }
}

/// When dropped, records in the metrics that no flush is running.
struct FlushingGuard<'a>(&'a Region);

impl Drop for FlushingGuard<'_> {
    fn drop(&mut self) {
        self.0.counters.flushing.store(false, Relaxed);
    }
}
