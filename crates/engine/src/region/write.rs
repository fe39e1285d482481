//! Writes: check, encode, lock the rows, publish, wait for the log.
//!
//! Mutations are written in batches. A batch is one edit of the log with one sequence id, so all of
//! its mutations become visible together. To publish a batch means to add it to the memstores and
//! to the queue of the log.
//!
//! A write never waits for a disk while its rows are locked. If it has to read a block that is not
//! cached, it releases the locks, loads the block, and starts again with this block in memory.
//!
//! Not here: changes that depend on the content of rows (`region::change`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::spent::{self, Phase};
use cell::KeyValue;
use cell::mutation::{Durability, Mutation};
use hfile::{Block, Miss, Stop};

use crate::error::{Error, Result};
use crate::mob::MobValue;
use crate::region::batch::Batch;
use crate::region::encode::{Cells, TimestampRule};
use crate::region::{FlushReason, NewEdit, Region};

/// The result of publishing a batch.
pub(super) struct Published {
    pub(super) seq_id: u64,
    /// The cells to return, each with the index of its mutation.
    pub(super) returned: Vec<(usize, KeyValue)>,
}

/// Mutations that were published but may not be durable yet.
#[must_use = "the outcome is unknown until `end_batch`"]
pub struct PendingBatch {
    // The number of mutations.
    len: usize,
    // The mutations that failed their checks, by index. Most batches have none.
    failed: BTreeMap<usize, Error>,
    // The sequence id of the mutations that passed their checks; `None` if there are none.
    published: Result<Option<u64>>,
}

impl PendingBatch {
    /// The error with which the whole batch failed.
    pub fn refusal(&self) -> Option<&Error> {
        self.published.as_ref().err()
    }

    /// The result of each mutation. `published` is the result of all mutations that passed their
    /// checks.
    fn into_results(mut self, published: &Result<()>) -> Vec<Result<()>> {
        debug_assert!(self.failed.keys().all(|index| *index < self.len), "failed mutations are in the batch");
        let result = |index| self.failed.remove(&index).map_or_else(|| published.clone(), Err);
        (0..self.len).map(result).collect()
    }
}

/// Why nothing was published.
pub(super) enum WriteAbort {
    /// Something must be loaded first.
    Cold(Cold),
    /// The write failed.
    Failed(Error),
}

/// What a write must load before it is repeated.
pub(super) enum Cold {
    /// Blocks of store files.
    Blocks(Miss),
    /// The values of these references to MOB files, each with its sequence id.
    Values(Vec<(KeyValue, u64)>),
}

/// What was loaded for a write that is repeated.
#[derive(Default)]
pub(super) struct Warm {
    pub(super) blocks: Vec<Arc<Block>>,
    // References to MOB files, and their values.
    pub(super) values: Vec<(KeyValue, MobValue)>,
}

impl From<Stop> for WriteAbort {
    fn from(stop: Stop) -> WriteAbort {
        match stop {
            Stop::Miss(miss) => WriteAbort::Cold(Cold::Blocks(miss)),
            Stop::Failed(error) => WriteAbort::Failed(error.into()),
        }
    }
}

impl From<Error> for WriteAbort {
    fn from(error: Error) -> WriteAbort {
        WriteAbort::Failed(error)
    }
}

impl Region {
    /// Applies mutations, each completely or not at all. Returns when they are durable.
    ///
    /// The mutations that pass their checks become visible together.
    ///
    /// # Errors
    /// A mutation fails alone with [`Error::WrongRegion`], [`Error::NoSuchFamily`] or
    /// [`Error::BadRequest`]. All mutations fail together with [`Error::NotServing`],
    /// [`Error::ReadOnly`], [`Error::TooBusy`] or [`Error::Log`] (the outcome is unknown).
    pub async fn batch(&self, mutations: Vec<Mutation>) -> Vec<Result<()>> {
        let pending = self.begin_batch(mutations).await;
        self.end_batch(pending).await
    }

    /// Publishes mutations like [`Region::batch`], but does not wait until they are durable. A
    /// caller with many mutations publishes them in several parts, then waits for all parts.
    pub async fn begin_batch(&self, mutations: Vec<Mutation>) -> PendingBatch {
        self.instruments.count_writes(mutations.len() as u64);
        let mut pending = PendingBatch { len: mutations.len(), failed: BTreeMap::new(), published: Ok(None) };
        if let Err(error) = self.admit() {
            pending.published = Err(error);
            return pending;
        }
        let mut batch = Batch::with_capacity_for(&mutations);
        for (index, mutation) in mutations.iter().enumerate() {
            if let Err(error) = batch.add(self, mutation) {
                pending.failed.insert(index, error);
            }
        }
        drop(mutations);
        pending.published = self.load_and_publish(batch).await;
        pending
    }

    /// Waits until the mutations are durable and visible. Returns the result of each.
    pub async fn end_batch(&self, pending: PendingBatch) -> Vec<Result<()>> {
        let published = match &pending.published {
            Ok(Some(seq_id)) => self.wait_visible(*seq_id).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error.clone()),
        };
        pending.into_results(&published)
    }

    /// Applies all mutations or none.
    ///
    /// # Errors
    /// As [`Region::batch`]. The first failed check rejects all mutations.
    pub async fn batch_atomic(&self, mutations: Vec<Mutation>) -> Result<()> {
        self.instruments.count_writes(mutations.len() as u64);
        self.admit()?;
        let mut batch = Batch::with_capacity_for(&mutations);
        mutations.iter().try_for_each(|mutation| batch.add(self, mutation))?;
        self.commit(batch).await
    }

    /// Checks that the region accepts writes, and that neither its memstores nor the queue of the
    /// log are full.
    pub(super) fn admit(&self) -> Result<()> {
        self.check_serving()?;
        if self.read_only {
            return Err(Error::ReadOnly { region: self.name.clone() });
        }
        // The limits below do not apply to `hbase:meta`: without writes to it, no region can be
        // assigned.
        if self.info.table.is_meta() {
            return Ok(());
        }
        let memstore_bytes = self.memstore_bytes();
        if memstore_bytes > self.blocking_bytes {
            self.request_flush(FlushReason::Size);
            return Err(self.too_busy("memstore", memstore_bytes, self.blocking_bytes));
        }
        let budget = &self.services.budget;
        if budget.is_exhausted() {
            self.request_flush(FlushReason::Pressure);
            return Err(self.too_busy("memstores of all regions", budget.used_bytes(), budget.limit_bytes()));
        }
        let queued = self.services.log.queued_bytes();
        if queued > self.options().log_queue_bytes_max {
            return Err(self.too_busy("log queue", queued, self.options().log_queue_bytes_max));
        }
        Ok(())
    }

    fn too_busy(&self, what: &str, bytes: u64, limit: u64) -> Error {
        self.busy(format!("{what} takes {bytes} bytes, limit {limit}"))
    }

    fn busy(&self, what: String) -> Error {
        self.instruments.server().blocked_requests.increment();
        Error::TooBusy { region: self.name.clone(), what }
    }

    /// Publishes a batch, and waits until it is durable and visible.
    async fn commit(&self, batch: Batch) -> Result<()> {
        match self.load_and_publish(batch).await? {
            Some(seq_id) => self.wait_visible(seq_id).await,
            None => Ok(()),
        }
    }

    /// Loads the blocks that a batch depends on, then publishes the batch. Returns its sequence id;
    /// `None` for an empty batch, which is not published.
    async fn load_and_publish(&self, mut batch: Batch) -> Result<Option<u64>> {
        if batch.is_empty() {
            return Ok(None);
        }
        let mut warm = Warm::default();
        loop {
            match self.try_publish(&mut batch, &warm) {
                Ok(published) => return Ok(Some(published.seq_id)),
                Err(WriteAbort::Cold(cold)) => self.load(cold, &mut warm).await?,
                Err(WriteAbort::Failed(error)) => return Err(error),
            }
        }
    }

    /// Waits until a published edit is durable and visible.
    pub(super) async fn wait_visible(&self, seq_id: u64) -> Result<()> {
        spent::timed_wait(Phase::Log, &*self.services.env.clock, self.mvcc.wait_visible(seq_id)).await
    }

    /// Locks the rows, reads what the batch depends on, and publishes it. On success the batch is
    /// empty.
    fn try_publish(&self, batch: &mut Batch, warm: &Warm) -> std::result::Result<Published, WriteAbort> {
        let _locked = self.rows.lock(batch.rows);
        self.publish_locked(batch, warm)
    }

    /// As [`Region::try_publish`]. The caller must hold the row locks.
    pub(super) fn publish_locked(
        &self,
        batch: &mut Batch,
        warm: &Warm,
    ) -> std::result::Result<Published, WriteAbort> {
        let bytes = batch.cells.logged_len();
        if bytes > wal::CELLS_LEN_MAX {
            let what = format!("a batch of {bytes} bytes exceeds the maximum size of a log edit");
            return Err(Error::bad_request(what).into());
        }
        check_cluster_ids(batch.cluster_ids.as_ref().map_or(0, |ids| ids.len()))?;
        self.admit_to_disk(batch, bytes as u64)?;
        self.resolve_newest(&mut batch.cells, warm)?;
        Ok(self.publish(std::mem::take(batch))?)
    }

    /// Checks that the disk has space for a batch: in the log, and later in a flushed file. Called
    /// before the batch is published, because cells cannot be removed from a memstore.
    fn admit_to_disk(&self, batch: &Batch, bytes: u64) -> Result<()> {
        if self.info.table.is_meta() {
            return Ok(());
        }
        let budget = &self.services.budget;
        let unwritten_bytes = || budget.used_bytes().saturating_add(self.services.log.queued_bytes());
        let admitted = budget.space().admit(batch.adds_data, bytes, unwritten_bytes);
        admitted.map_err(|refused| self.busy(refused.to_string()))
    }

    /// Sets the timestamps of the delete markers that delete the newest version of a column. Each
    /// gets the timestamp of that version.
    ///
    /// The newest version may come from a write that is not durable yet. The log preserves the
    /// order of writes, so that write cannot be lost if this batch survives. The caller must hold
    /// the row locks.
    fn resolve_newest(&self, cells: &mut Cells, warm: &Warm) -> std::result::Result<(), WriteAbort> {
        if !cells.needs_newest() {
            return Ok(());
        }
        for index in 0..cells.len() {
            let (cell, _, rule) = cells.cell(index);
            if let TimestampRule::Newest(nth) = rule {
                let timestamp = self.newest_timestamp(&cell, nth, warm)?;
                cells.resolve(index, timestamp);
            }
        }
        Ok(())
    }

    /// Gives the batch its sequence id, and adds it to the memstores and the log's queue. The
    /// caller must hold the row locks.
    fn publish(&self, mut batch: Batch) -> Result<Published> {
        let mut publish = self.publish_lock()?;
        self.check_serving()?;
        let now = publish.clock.timestamp(self.services.env.clock.now_ms());
        batch.cells.set_timestamps(now);
        let seq_id = self.mvcc.next_seq_id();
        debug_assert!(batch.cells.len() > 0, "a published batch has cells");
        debug_assert!(seq_id > self.mvcc.read_point(), "a new edit is not visible yet");
        let view = self.view.load();
        if batch.cells.has_tags() {
            self.has_tags.store(true, Ordering::Relaxed);
        }
        // Memstores first: as soon as the log has the edit, the read point may pass it.
        batch.cells.insert_into(&view, seq_id);
        let returned = batch.take_returned();
        if batch.unlogged_count_and_bytes != (0, 0) {
            self.instruments
                .count_unlogged(batch.unlogged_count_and_bytes.0, batch.unlogged_count_and_bytes.1);
        }
        let cell_count = batch.cells.len();
        let (bytes, count) = batch.cells.into_logged();
        if (count as usize) < cell_count {
            self.newest_unlogged.store(seq_id, Ordering::Relaxed);
        }
        let durability = match (count, batch.is_forced) {
            (0, _) => Durability::SkipWal,
            (_, true) => Durability::FsyncWal,
            (_, false) => Durability::SyncWal,
        };
        self.append_edit(NewEdit {
            seq_id,
            write_time_ms: now as u64,
            cells: bytes,
            cell_count: count,
            nonce: batch.nonce,
            is_replicated: true,
            cluster_ids: batch.cluster_ids,
            durability,
        });
        let memstore_bytes = self.report_memstore_bytes(&mut publish);
        drop(publish);
        if memstore_bytes > self.flush_bytes {
            self.request_flush(FlushReason::Size);
        } else if self.services.budget.is_above_low_mark() {
            self.request_flush(FlushReason::Pressure);
        }
        Ok(Published { seq_id, returned })
    }
}

/// Refuses a change that names too many clusters which already have it.
pub(super) fn check_cluster_ids(count: usize) -> Result<()> {
    if count > wal::CLUSTER_IDS_MAX {
        let what = format!("{count} ids of clusters; at most {} are supported", wal::CLUSTER_IDS_MAX);
        return Err(Error::bad_request(what));
    }
    Ok(())
}
