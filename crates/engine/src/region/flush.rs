//! Flush: what is in memory goes to files.
//!
//! Under the publish lock the active memstores become snapshots and the flush takes its sequence id; all writes before
//! it are in the snapshots, all later ones are not. Once the log has the writes too, each snapshot is written to a file
//! outside the store, then the files are moved in, made durable under their names, and published. Invariants:
//!
//! * A failed flush keeps its snapshots in the view and is begun again where nothing of it was published; the next call
//!   finishes it before it freezes anything new.
//! * The log forgets the edits of a region only after the files with them are durable and published.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use tracing::{debug, warn};
use wal::marker::{FamilyFiles, FlushStep};

use crate::error::Result;
use crate::instruments::FlushWork;
use crate::memstore::Memstore;
use crate::region::output::{Merge, Output};
use crate::region::{Publish, Region};
use crate::store::{RegionView, StoreFile, StoreView};

/// A flush that has frozen its memstores.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    seq_id: u64,
    // Nothing was left in any memstore: with this flush all edits before it are in files.
    is_whole: bool,
}

/// What a flush did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// There was nothing in memory.
    Nothing,
    /// All edits up to `seq_id` are in files.
    Files {
        /// The flush's sequence id.
        seq_id: u64,
        /// Files made; fewer than families with edits if all cells of one were dropped.
        files: usize,
    },
}

impl Region {
    /// Writes what is in memory to files; returns when they are durable and hold all writes that were visible at the
    /// call. Tried again with growing waits as often as the options say.
    ///
    /// # Errors
    /// That of the last try; the snapshot stays readable and the next call goes on with it. [`Error::Log`] at once.
    ///
    /// [`Error::Log`]: crate::Error::Log
    pub async fn flush(&self) -> Result<Flushed> {
        self.flush_stores(&self.all_families(), self.options().flush_retries).await
    }

    /// The same for some families only; the log keeps the edits of the others.
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

    /// [`Region::flush`], tried once only.
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
                // A full disk, or a process without descriptors, is not better in a second: the caller learns it now,
                // and the schedule tries again later.
                Err(error) if left == 0 || self.mvcc.check().is_err() || error.is_exhaustion() => {
                    return Err(error);
                }
                Err(error) => {
                    warn!(region = %self.name, %error, ?wait, "flush failed; the memstore is kept and the flush retried");
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
        let _running = Running(self);
        if let Some(earlier) = *pending {
            // What was written since the earlier freeze is flushed too: the caller asked for all of it.
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

    /// Freezes the wanted memstores that hold cells; `None` if none does.
    fn freeze(&self, wanted: &[bool]) -> Result<Option<Pending>> {
        let mut publish = self.publish_lock()?;
        self.mvcc.check()?;
        let view = self.view.load_full();
        let holds = |at: usize| !view.stores[at].active.is_empty();
        let is_left_out = (0..wanted.len()).any(|at| !wanted[at] && holds(at));
        if !(0..wanted.len()).any(|at| wanted[at] && holds(at)) {
            // Every edit so far is in files, dropped with its kind, or a marker.
            let written = self.mvcc.write_point();
            drop(publish);
            if !is_left_out {
                self.note_flushed(written);
            }
            return Ok(None);
        }
        let families: Vec<FamilyFiles> = self.frozen_families(&view, wanted).collect();
        let seq_id = self.append_marker(&mut publish, |seq_id, now_ms| {
            self.marked.flush(FlushStep::Start, seq_id, &families, now_ms)
        });
        self.freeze_view(&mut publish, &view, wanted);
        Ok(Some(Pending { seq_id, is_whole: !is_left_out }))
    }

    /// Makes the wanted memstores with cells snapshots, and puts empty ones in their places.
    fn freeze_view(&self, publish: &mut Publish, view: &RegionView, wanted: &[bool]) {
        let stores =
            view.stores.iter().zip(wanted).map(|(store, wanted)| match store.active.is_empty() || !wanted {
                true => store.clone(),
                false => {
                    let active = Memstore::new(self.table.order());
                    if let Some(common) = store.active.common_of_rows() {
                        active.expect_common(&common);
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

    /// Writes the snapshots to files, and tells the log when these are published.
    async fn write_snapshots(&self, pending: Pending) -> Result<Flushed> {
        // Not before the log has them: a file must not hold an edit that could yet be lost, and that nobody was
        // promised.
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
                // No file says that these ids were used, and the log that does may go now.
                self.record_seq_id(pending.seq_id).await?;
            }
            self.note_flushed(pending.seq_id);
        }
        self.counters.flushes.fetch_add(1, Relaxed);
        self.instruments.note_flush(&FlushWork {
            took: clock.monotonic() - begun,
            memstore_bytes,
            output_bytes: files.iter().flatten().map(|file| file.len()).sum(),
            memstore_cells,
        });
        debug!(region = %self.name, seq_id = pending.seq_id, files = made, "flushed");
        Ok(Flushed::Files { seq_id: pending.seq_id, files: made })
    }

    /// The cells in all snapshots, and their bytes.
    fn snapshot_size(&self) -> (u64, u64) {
        let view = self.view.load();
        let snapshots = view.stores.iter().filter_map(|store| store.snapshot.as_ref());
        snapshots.fold((0, 0), |(cells, bytes), of| (cells + of.cell_count(), bytes + of.data_bytes()))
    }

    /// Flushes what a replay put into memory, all edits up to `seq_id`. The log is not told: its region is not open.
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

    /// Makes all snapshots of the view files, which hold the edits up to `seq_id`, and publishes these: per store the
    /// file, if there was a snapshot with cells that live.
    async fn snapshots_to_files(&self, seq_id: u64) -> Result<Vec<Option<Arc<StoreFile>>>> {
        let view = self.view.load_full();
        let mut outputs = Vec::new();
        for (at, store) in view.stores.iter().enumerate().filter(|(_, store)| store.snapshot.is_some()) {
            match self.write_output(at, &Merge::snapshot(store, seq_id)).await {
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
            self.warm_up(at, file.iter().map(|file| (file.clone(), Vec::new())).collect());
        }
        Ok(files)
    }

    /// Moves files into their stores, all or none; per store the file, if it has one.
    async fn move_all_in(&self, stores: usize, outputs: Vec<Output>) -> Result<Vec<Option<Arc<StoreFile>>>> {
        let mut files = vec![None; stores];
        let mut outputs = outputs.into_iter();
        while let Some(output) = outputs.next() {
            let store = output.store;
            match self.move_in(output).await {
                Ok(file) => files[store] = Some(file),
                Err(error) => {
                    for (store, file) in files.iter().enumerate() {
                        if let Some(file) = file {
                            self.take_out(store, file.name()).await;
                        }
                    }
                    self.discard_all(outputs.collect()).await;
                    return Err(error);
                }
            }
        }
        Ok(files)
    }

    async fn discard_all(&self, outputs: Vec<Output>) {
        for output in outputs {
            self.discard(output).await;
        }
    }

    /// Puts files in the place of the snapshots.
    fn publish_flush(&self, files: &[Option<Arc<StoreFile>>]) -> Result<()> {
        let mut publish = self.publish_lock()?;
        let view = self.view.load_full();
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

    pub(super) fn note_flushed(&self, seq_id: u64) {
        self.services.log.flushed(&self.encoded, seq_id);
        self.counters.flushed_seq_id.fetch_max(seq_id, Relaxed);
        self.counters.last_flush_ms.store(self.services.env.clock.now_ms(), Relaxed);
    }
}

/// Says in the figures that a flush is running, as long as it lives.
struct Running<'a>(&'a Region);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.counters.flushing.store(false, Relaxed);
    }
}
