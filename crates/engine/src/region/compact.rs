//! Compaction: the files of a store become one.
//!
//! All files of a store are merged, so what they hide from each other goes too; a file that is flushed meanwhile is
//! newer than all of them and stays. The output lists its inputs, so that whoever opens the store after a crash knows
//! that they are replaced, whatever was renamed by then. Inputs leave for the archive when no view holds them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use tracing::{info, warn};
use wal::marker::Compaction;

use crate::error::Result;
use crate::region::Region;
use crate::region::output::Merge;
use crate::store::{StoreFile, StoreView};

/// What is wanted of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    /// Merge if there are several files.
    Minor,
    /// Rewrite, also a single file, without what is deleted or over.
    Major,
}

impl Region {
    /// Merges the files of the store of `family`, or of every store; returns how many files went into others.
    ///
    /// # Errors
    /// What kept the first store that failed from being merged; it is as it was before.
    pub async fn compact(&self, family: Option<&[u8]>, kind: CompactionKind) -> Result<usize> {
        self.check_serving()?;
        let stores = match family {
            Some(family) => {
                let at = self.store_of(family)?;
                at..at + 1
            }
            None => 0..self.families().len(),
        };
        let mut merged = 0;
        for at in stores {
            merged += self.compact_store(at, kind).await?;
        }
        self.archive_retired().await;
        Ok(merged)
    }

    /// Families whose stores have enough files to be compacted, or references.
    pub fn stores_to_compact(&self) -> Vec<Bytes> {
        let view = self.view.load();
        let enough = self.options().compaction_files_min.max(2);
        let wants = |store: &StoreView| store.files.len() >= enough || store.has_references();
        let many = self.families().iter().zip(&view.stores).filter(|(_, store)| wants(store));
        many.map(|(family, _)| family.name.clone()).collect()
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

    async fn compact_store(&self, at: usize, kind: CompactionKind) -> Result<usize> {
        let _one = self.compacting[at].lock().await;
        let inputs = self.view.load().stores[at].files.clone();
        let enough = if kind == CompactionKind::Major { 1 } else { 2 };
        // References are written anew, so that the region they lead to can go.
        if inputs.len() < enough && !inputs.iter().any(|file| file.is_reference()) {
            return Ok(0);
        }
        let _running = Running::begin(self, inputs.iter().map(|file| file.cell_count()).sum());
        let started = self.services.env.clock.monotonic();
        let mut replaced: Vec<String> = inputs.iter().map(|file| file.name().to_string()).collect();
        replaced.extend(self.retired_names(at).into_iter().chain(self.stray_names(at)));
        let output = match self.write_output(at, &Merge::files(&inputs, replaced)).await? {
            Some(output) => Some(self.move_in(output).await?),
            None => None,
        };
        self.log_compaction(at, &inputs, output.as_deref()).await?;
        self.publish_compaction(at, &inputs, output.clone())?;
        self.counters.compactions.fetch_add(1, Relaxed);
        info!(
            region = %self.name, family = %self.families()[at].name.escape_ascii(), inputs = inputs.len(),
            bytes_before = inputs.iter().map(|file| file.len()).sum::<u64>(),
            bytes = output.as_ref().map_or(0, |file| file.len()),
            took = ?(self.services.env.clock.monotonic() - started), "compacted"
        );
        Ok(inputs.len())
    }

    /// Tells the log before the view: who replays it finishes the swap.
    async fn log_compaction(
        &self,
        at: usize,
        inputs: &[Arc<StoreFile>],
        output: Option<&StoreFile>,
    ) -> Result<()> {
        let compaction = Compaction {
            region: self.marked.encoded.clone(),
            family: self.families()[at].name.clone(),
            inputs: inputs.iter().map(|file| file.name().to_string()).collect(),
            outputs: output.iter().map(|file| file.name().to_string()).collect(),
        };
        self.log_marker(|_, now_ms| self.marked.compaction(&compaction, now_ms)).await.map(|_| ())
    }

    pub(super) fn publish_compaction(
        &self,
        at: usize,
        inputs: &[Arc<StoreFile>],
        output: Option<Arc<StoreFile>>,
    ) -> Result<()> {
        let mut publish = self.publish_lock()?;
        let view = self.view.load_full();
        let store = view.stores[at].compacted(inputs, output);
        self.set_view(&mut publish, view.with_store(at, store));
        self.retired().extend(inputs.iter().map(|file| (at, file.clone())));
        Ok(())
    }

    fn retired(&self) -> std::sync::MutexGuard<'_, Vec<(usize, Arc<StoreFile>)>> {
        // A list of files: whole after any panic.
        self.retired.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Names of files of a store that are compacted away but still in its directory.
    fn retired_names(&self, at: usize) -> Vec<String> {
        self.retired()
            .iter()
            .filter(|(store, _)| *store == at)
            .map(|(_, file)| file.name().to_string())
            .collect()
    }

    /// Moves files that were compacted away, and that no view holds any more, to the archive. Called after every
    /// compaction, and from time to time: a scanner may have kept some.
    pub async fn archive_retired(&self) {
        let unheld: Vec<(usize, Arc<StoreFile>)> = {
            let mut retired = self.retired();
            let (held, unheld) = retired.drain(..).partition(|(_, file)| Arc::strong_count(file) > 1);
            *retired = held;
            unheld
        };
        for (at, file) in unheld {
            let family = &self.families()[at].name;
            let services = &self.services;
            match services.root.archive_store_files(&*services.fs, &self.info, family, &[file.name()]).await {
                Ok(()) => self.services.loader.evict(file.reader()),
                Err(error) => {
                    warn!(file = %file.path(), %error, "a compacted file could not be archived; tried again later");
                    self.retired().push((at, file));
                }
            }
        }
    }
}

/// Counts a store's cells in the figures: as to be compacted at once, as compacted when it goes.
struct Running<'a> {
    region: &'a Region,
    cells: u64,
}

impl Running<'_> {
    fn begin(region: &Region, cells: u64) -> Running<'_> {
        region.counters.compacting_cells.fetch_add(cells, Relaxed);
        Running { region, cells }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.region.counters.compacted_cells.fetch_add(self.cells, Relaxed);
    }
}
