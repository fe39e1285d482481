//! Writing: check, encode, lock the rows, publish, wait for the log.
//!
//! One batch is one edit of the log, one sequence id and one moment of visibility. Between the row locks and the answer
//! nothing waits for a disk: what a write must read first is loaded before its rows are locked, and looked up again
//! under the lock.
//!
//! Not here: changes of one row that depend on what it holds (`region::change`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::spent::{self, Phase};
use cell::KeyValue;
use cell::mutation::Mutation;
use hfile::{Block, Miss, Stop};

use crate::budget::FlushReason;
use crate::error::{Error, Result};
use crate::region::batch::Batch;
use crate::region::encode::{Cells, Stamp};
use crate::region::{Publish, Region};

/// A batch in the log's queue and in the memstores.
pub(super) struct Published {
    pub(super) seq_id: u64,
    /// The cells to be told, each with the index of its mutation.
    pub(super) answers: Vec<(usize, KeyValue)>,
}

/// Mutations that were published and may not be durable yet.
#[must_use = "nothing is known of the outcome before the end of the batch"]
pub struct BatchBegun {
    results: Vec<Result<()>>,
    // None if none of them was published.
    seq_id: Option<u64>,
}

impl BatchBegun {
    fn fail(&mut self, error: &Error) {
        let published = self.results.iter_mut().filter(|result| result.is_ok());
        published.for_each(|result| *result = Err(error.clone()));
    }
}

/// Why nothing was published.
pub(super) enum Halt {
    /// Blocks are to be loaded first.
    Cold(Miss),
    /// It cannot be.
    Failed(Error),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Halt {
        match stop {
            Stop::Miss(miss) => Halt::Cold(miss),
            Stop::Failed(error) => Halt::Failed(error.into()),
        }
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Failed(error)
    }
}

impl Region {
    /// Applies mutations; each is whole or not at all, and answered when it is durable.
    ///
    /// Those that pass their checks become visible at one moment, in one edit of the log.
    ///
    /// # Errors
    /// For each mutation on its own: [`Error::WrongRegion`], [`Error::NoSuchFamily`], [`Error::BadRequest`]; for all:
    /// [`Error::NotServing`], [`Error::ReadOnly`], [`Error::TooBusy`], [`Error::Log`] (the outcome is not known).
    pub async fn batch(&self, mutations: Vec<Mutation>) -> Vec<Result<()>> {
        let begun = self.begin_batch(mutations).await;
        self.end_batch(begun).await
    }

    /// Publishes mutations as [`Region::batch`] does, without waiting until they are durable: a caller with very many publishes
    /// them in parts, one after the other, and waits for all together.
    pub async fn begin_batch(&self, mutations: Vec<Mutation>) -> BatchBegun {
        self.instruments.note_writes(mutations.len() as u64);
        if let Err(error) = self.admit() {
            return BatchBegun { results: vec![Err(error); mutations.len()], seq_id: None };
        }
        let mut batch = Batch::for_all(&mutations);
        let results = mutations.iter().map(|mutation| batch.add(self, mutation)).collect();
        let mut begun = BatchBegun { results, seq_id: None };
        match self.publish_loading(batch).await {
            Ok(seq_id) => begun.seq_id = seq_id,
            Err(error) => begun.fail(&error),
        }
        begun
    }

    /// Waits until the mutations are durable and visible; the outcome of each.
    pub async fn end_batch(&self, mut begun: BatchBegun) -> Vec<Result<()>> {
        if let Some(seq_id) = begun.seq_id
            && let Err(error) = self.wait_visible(seq_id).await
        {
            begun.fail(&error);
        }
        begun.results
    }

    /// Applies mutations, all or none.
    ///
    /// # Errors
    /// As [`Region::batch`]; the first that fails its checks keeps all from being applied.
    pub async fn batch_atomic(&self, mutations: Vec<Mutation>) -> Result<()> {
        self.instruments.note_writes(mutations.len() as u64);
        self.admit()?;
        let mut batch = Batch::for_all(&mutations);
        mutations.iter().try_for_each(|mutation| batch.add(self, mutation))?;
        self.commit(batch).await
    }

    /// Whether there is room for a write.
    pub(super) fn admit(&self) -> Result<()> {
        self.check_serving()?;
        if self.read_only {
            return Err(Error::ReadOnly { region: self.name.clone() });
        }
        // Meta is never refused: without it no other region could be helped.
        if self.info.table.is_meta() {
            return Ok(());
        }
        let memstore_bytes = self.memstore_bytes();
        if memstore_bytes > self.blocking_bytes {
            self.want_flush(FlushReason::Size);
            return Err(self.too_busy("memstore", memstore_bytes, self.blocking_bytes));
        }
        let budget = &self.services.budget;
        if budget.is_exhausted() {
            self.want_flush(FlushReason::Pressure);
            return Err(self.too_busy("memstore of all regions", budget.used_bytes(), budget.limit_bytes()));
        }
        let queued = self.services.log.queued_bytes();
        if queued > self.options().log_queue_bytes_max {
            return Err(self.too_busy("queue of the log", queued, self.options().log_queue_bytes_max));
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

    /// Publishes a batch and waits until it is durable and visible.
    async fn commit(&self, batch: Batch) -> Result<()> {
        match self.publish_loading(batch).await? {
            Some(seq_id) => self.wait_visible(seq_id).await,
            None => Ok(()),
        }
    }

    /// Publishes a batch, unless it is empty, and loads the blocks that it depends on.
    async fn publish_loading(&self, mut batch: Batch) -> Result<Option<u64>> {
        if batch.is_empty() {
            return Ok(None);
        }
        let mut warm = Vec::new();
        loop {
            match self.try_publish(&mut batch, &warm) {
                Ok(published) => return Ok(Some(published.seq_id)),
                Err(Halt::Cold(miss)) => self.load(miss, &mut warm).await?,
                Err(Halt::Failed(error)) => return Err(error),
            }
        }
    }

    /// Waits until what was published is durable and visible.
    pub(super) async fn wait_visible(&self, seq_id: u64) -> Result<()> {
        spent::waited(Phase::Log, &*self.services.env.clock, self.mvcc.wait_visible(seq_id)).await
    }

    /// Locks the rows, reads what the batch depends on, and publishes it. The batch is left empty.
    fn try_publish(&self, batch: &mut Batch, warm: &[Arc<Block>]) -> std::result::Result<Published, Halt> {
        let _locked = self.rows.lock(batch.rows);
        self.publish_locked(batch, warm)
    }

    /// As [`Region::try_publish`], for those who hold the locks.
    pub(super) fn publish_locked(
        &self,
        batch: &mut Batch,
        warm: &[Arc<Block>],
    ) -> std::result::Result<Published, Halt> {
        let bytes = batch.cells.logged_len();
        if bytes > wal::CELLS_LEN_MAX {
            let what = format!("a batch of {bytes} bytes is larger than an edit of the log can be");
            return Err(Error::bad_request(what).into());
        }
        self.admit_to_disk(batch, bytes as u64)?;
        self.settle_newest(&mut batch.cells, warm)?;
        Ok(self.publish(std::mem::take(batch))?)
    }

    /// Whether the disk has room for a batch: in the log, and later in a flushed file. Asked before anything is
    /// published, since what is in a memstore cannot be taken back.
    fn admit_to_disk(&self, batch: &Batch, bytes: u64) -> Result<()> {
        if self.info.table.is_meta() {
            return Ok(());
        }
        let budget = &self.services.budget;
        let owed = || budget.used_bytes().saturating_add(self.services.log.queued_bytes());
        let admitted = budget.space().admit(batch.adds_data, bytes, owed);
        admitted.map_err(|refused| self.busy(refused.to_string()))
    }

    /// Gives markers of "the newest version" that version's timestamp.
    ///
    /// Reads up to the last published write, durable or not: the rows are locked, and the log keeps the order.
    fn settle_newest(&self, cells: &mut Cells, warm: &[Arc<Block>]) -> std::result::Result<(), Halt> {
        if !cells.wants_newest() {
            return Ok(());
        }
        for index in 0..cells.len() {
            let (cell, _, stamp) = cells.cell(index);
            if let Stamp::Newest(nth) = stamp {
                let timestamp = self.newest_timestamp(&cell, nth, warm)?;
                cells.settle(index, timestamp);
            }
        }
        Ok(())
    }

    /// Gives the batch its sequence id, and puts it into the memstores and the log's queue. The rows are locked.
    fn publish(&self, mut batch: Batch) -> Result<Published> {
        let mut publish = self.publish_lock()?;
        self.check_serving()?;
        let now = publish.timestamp(self.services.env.clock.now_ms());
        batch.cells.stamp_now(now);
        let seq_id = self.mvcc.next_seq_id();
        let view = self.view.load();
        if batch.cells.has_tags() {
            self.has_tags.store(true, Ordering::Relaxed);
        }
        // The memstores first: as soon as the log has the edit, the read point may pass it.
        batch.cells.insert_into(&view, seq_id);
        let answers = batch.take_answers();
        if batch.unlogged != (0, 0) {
            self.instruments.note_unlogged(batch.unlogged.0, batch.unlogged.1);
        }
        let (bytes, count) = batch.cells.into_logged();
        self.append_edit(seq_id, now as u64, bytes, count, batch.nonce, count > 0);
        let memstore_bytes = self.charge(&mut publish);
        drop(publish);
        if memstore_bytes > self.flush_bytes {
            self.want_flush(FlushReason::Size);
        }
        Ok(Published { seq_id, answers })
    }
}

/// A clock that goes back by no more than this is waited for: cells get the last timestamp until it
/// has caught up. Time services step a clock by less.
const BACKWARD_STEP_MS_MAX: i64 = 10_000;

impl Publish {
    /// The server's clock for a cell: not before what it was for an earlier one, unless the clock was
    /// set back by more than [`BACKWARD_STEP_MS_MAX`]. Then the earlier time was wrong, and cells that
    /// kept it would hide what is written after a restart.
    fn timestamp(&mut self, now_ms: u64) -> i64 {
        let now = now_ms.cast_signed();
        let back = self.last_timestamp.saturating_sub(now);
        if !(0..=BACKWARD_STEP_MS_MAX).contains(&back) {
            self.last_timestamp = now;
        }
        self.last_timestamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_bridge_small_backward_steps_and_follow_large_ones() {
        let mut publish = Publish::default();
        assert_eq!(publish.timestamp(1_000_000), 1_000_000);
        assert_eq!(publish.timestamp(1_000_001), 1_000_001);
        assert_eq!(publish.timestamp(999_000), 1_000_001);
        assert_eq!(publish.timestamp(990_001), 1_000_001);
        assert_eq!(publish.timestamp(1_000_002), 1_000_002, "the clock has caught up");
        assert_eq!(publish.timestamp(316_000_000_000), 316_000_000_000);
        assert_eq!(publish.timestamp(1_000_500), 1_000_500, "a wrong time is given up");
        assert_eq!(publish.timestamp(990_499), 990_499);
    }
}
