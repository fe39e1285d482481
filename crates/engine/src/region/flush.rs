//! Flush: writes memstores to files.
//!
//! Under the publish lock the active memstores become snapshots, and the flush gets its sequence
//! id. All earlier writes are in the snapshots, all later ones are not. When the log has these
//! writes too, each snapshot is written to a file outside the store. Then the files are moved in,
//! made durable under their names, and published. Invariants:
//!
//! * A failed flush keeps its snapshots in the view. The next attempt finishes that flush before it
//!   freezes new memstores. It rewrites the files, unless they were published already.
//! * The log forgets a region's edits only after the files with them are durable and published.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use tracing::{debug, warn};
use wal::marker::{FamilyFiles, FlushStep};

use crate::error::Result;
use crate::instruments::FlushWork;
use crate::memstore::Memstore;
use crate::region::output::{OutputFile, OutputSource};
use crate::region::{PublishState, Region};
use crate::store::{RegionView, StoreFile, StoreView};

/// A flush whose memstores are frozen.
#[derive(Clone, Copy)]
pub(super) struct FrozenFlush {
    seq_id: u64,
    // All memstores with cells were frozen, so this flush writes all earlier edits to files.
    is_whole: bool,
}

/// The result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// There were no cells in memory.
    Nothing,
    /// All edits up to `seq_id` are in files.
    Files {
        /// The flush's sequence id.
        seq_id: u64,
        /// Number of files written. A family gets none if all its cells were dropped.
        files: usize,
    },
}

impl Region {
    /// Writes all memstores to files. When it returns, the files are durable and hold all writes
    /// that were visible at the call. A failed flush is retried with increasing waits
    /// ([`flush_retries`](crate::region::RegionOptions::flush_retries)).
    ///
    /// # Errors
    /// The error of the last attempt. The snapshot stays readable, and the next call resumes the
    /// flush. [`Error::Log`] and a lack of disk space or file descriptors are not retried.
    ///
    /// [`Error::Log`]: crate::Error::Log
    pub async fn flush(&self) -> Result<Flushed> {
        self.flush_stores(&self.all_families(), self.options().flush_retries).await
    }

    /// Flushes some families only. The log keeps the edits of the others.
    ///
    /// # Errors
    /// As [`Region::flush`], and [`Error::NoSuchFamily`](crate::Error::NoSuchFamily).
    pub async fn flush_families(&self, families: &[Bytes]) -> Result<Flushed> {
        let mut wanted = vec![false; self.families().len()];
        for family in families {
            wanted[self.store_of(family)?] = true;
        }
        self.flush_stores(&wanted, self.options().flush_retries).await
    }

    /// [`Region::flush`] with a single attempt.
    pub(super) async fn flush_without_retries(&self) -> Result<Flushed> {
        self.flush_stores(&self.all_families(), 0).await
    }

    fn all_families(&self) -> Vec<bool> {
        vec![true; self.families().len()]
    }

    async fn flush_stores(&self, wanted: &[bool], retries: u32) -> Result<Flushed> {
        let mut wait = self.options().flush_retry_wait;
        for left in (0..retries).rev() {
            match self.flush_once(wanted).await {
                Ok(flushed) => {
                    // Compacted files that scanners held when they were replaced.
                    self.archive_retired().await;
                    return Ok(flushed);
                }
                // A short wait does not help against a full disk or a lack of descriptors. The
                // caller gets the error now, and the scheduler retries later.
                Err(error) if left == 0 || self.mvcc.check().is_err() || error.is_exhaustion() => {
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

    async fn flush_once(&self, wanted: &[bool]) -> Result<Flushed> {
        let mut pending = self.flushing.lock().await;
        self.counters.flushing.store(true, Relaxed);
        let _running = FlushingGuard(self);
        if let Some(earlier) = *pending {
            // The caller wants later writes in files too, so a new flush follows.
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

    /// Freezes the memstores of `wanted` families that have cells; `None` if none has.
    fn freeze(&self, wanted: &[bool]) -> Result<Option<FrozenFlush>> {
        let mut publish = self.publish_lock()?;
        self.mvcc.check()?;
        let view = self.view.load_full();
        debug_assert!(
            view.stores.iter().all(|store| store.snapshot.is_none()),
            "a flush begins when the previous one is in files"
        );
        let holds = |at: usize| !view.stores[at].active.is_empty();
        let is_partial = (0..wanted.len()).any(|at| !wanted[at] && holds(at));
        if !(0..wanted.len()).any(|at| wanted[at] && holds(at)) {
            // Every edit so far is in files, was dropped, or is a marker.
            let written = self.mvcc.write_point();
            drop(publish);
            if !is_partial {
                self.record_flushed(written);
            }
            return Ok(None);
        }
        let families: Vec<FamilyFiles> = self.frozen_families(&view, wanted).collect();
        let seq_id = self.append_marker(&mut publish, |seq_id, now_ms| {
            self.marked.flush(FlushStep::Start, seq_id, &families, now_ms)
        });
        debug_assert!(
            view.stores.iter().all(|store| store.max_file_seq_id() < seq_id),
            "a flush is newer than all files"
        );
        self.freeze_view(&mut publish, &view, wanted);
        Ok(Some(FrozenFlush { seq_id, is_whole: !is_partial }))
    }

    /// Replaces the memstores of `wanted` families that have cells by empty ones, and keeps the old
    /// ones as snapshots.
    fn freeze_view(&self, publish: &mut PublishState, view: &RegionView, wanted: &[bool]) {
        assert!(wanted.len() == view.stores.len(), "each store is wanted or not");
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

    /// Writes the snapshots to files, publishes these, and records the flush in the log.
    async fn write_snapshots(&self, pending: FrozenFlush) -> Result<Flushed> {
        // A file must not hold edits that were never acknowledged and that the log may still lose.
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
        self.log_marker(|_, now_ms| self.marked.flush(FlushStep::Commit, pending.seq_id, &families, now_ms))
            .await?;
        if pending.is_whole {
            if made == 0 {
                // No file records that these ids were used, and the log that does may now be
                // archived.
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
        snapshots.fold((0, 0), |(cells, bytes), of| (cells + of.cell_count(), bytes + of.data_bytes()))
    }

    /// Flushes the edits that a replay put into memory, all up to `seq_id`. The log gets no
    /// markers, because the region is not open yet.
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

    /// Writes all snapshots of the view, with edits up to `seq_id`, to files and publishes these.
    /// Returns the new file of each store, if its snapshot had cells to keep.
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
        let files = self.move_all_in(view.stores.len(), outputs).await?;
        self.publish_flush(&files)?;
        for (at, file) in files.iter().enumerate() {
            self.warm_cache(at, file.iter().map(|file| (file.clone(), Vec::new())).collect());
        }
        Ok(files)
    }

    /// Moves all files into their stores, or none. Returns the file of each store, if it has one.
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
    fn publish_flush(&self, files: &[Option<Arc<StoreFile>>]) -> Result<()> {
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

/// Marks a flush as running in the metrics while it exists.
struct FlushingGuard<'a>(&'a Region);

impl Drop for FlushingGuard<'_> {
    fn drop(&mut self) {
        self.0.counters.flushing.store(false, Relaxed);
    }
}
