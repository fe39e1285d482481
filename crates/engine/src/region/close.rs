//! Close: writes everything to files, records the close in the log and the directory, and stops
//! serving.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::env::Clock;
use cell::region::RegionInfo;
use tracing::info;
use wal::Log;

use crate::error::Result;
use crate::mvcc::Mvcc;
use crate::region::{Flushed, NewEdit, Region, RegionState, marked};

/// Bytes in memstores above which a close flushes before it refuses writes, to keep the time
/// without service short (`hbase.hregion.preclose.flush.size`).
const PRE_CLOSE_FLUSH_BYTES: u64 = 5 << 20;

/// Whether failed flushes are retried.
#[derive(Clone, Copy)]
enum FlushAttempts {
    One,
    Many,
}

impl Region {
    /// Flushes, closes, and records the close in the log. Does nothing if the region is already
    /// closed.
    ///
    /// # Errors
    /// Errors of the flush, the log, and the file system. The region then serves again, unless the
    /// log has failed.
    pub async fn close(&self) -> Result<()> {
        self.close_with(FlushAttempts::Many).await
    }

    /// Closes without retrying a failed flush, for a process that is stopping.
    ///
    /// # Errors
    /// As [`Region::close`].
    pub async fn close_once(&self) -> Result<()> {
        self.close_with(FlushAttempts::One).await
    }

    async fn close_with(&self, attempts: FlushAttempts) -> Result<()> {
        if self.state() == RegionState::Closed {
            return Ok(());
        }
        self.flush_before_close(attempts).await?;
        self.set_state(RegionState::Closing)?;
        if let Err(error) = self.finish(attempts).await {
            self.set_state(RegionState::Serving)?;
            return Err(error);
        }
        self.set_state(RegionState::Closed)?;
        // All edits are in files, so the log can forget the region. Recording a flush instead would
        // be wrong: a cloned snapshot can bring the region back with smaller sequence ids, whose
        // edits would count as flushed. From here on, a late flush records nothing.
        self.services.log.forget_region(&self.encoded);
        info!(region = %self.name, "closed");
        Ok(())
    }

    /// Flushes while the region still accepts writes, so that the last flush is short. Stops when a
    /// flush does not halve the bytes in memory.
    async fn flush_before_close(&self, attempts: FlushAttempts) -> Result<()> {
        let (mut bytes, mut before) = (self.memstore_bytes(), u64::MAX);
        while bytes > PRE_CLOSE_FLUSH_BYTES && bytes <= before / 2 {
            self.flush_with(attempts).await?;
            (before, bytes) = (bytes, self.memstore_bytes());
        }
        Ok(())
    }

    async fn flush_with(&self, attempts: FlushAttempts) -> Result<Flushed> {
        match attempts {
            FlushAttempts::Many => self.flush().await,
            FlushAttempts::One => self.flush_without_retries().await,
        }
    }

    /// Stops serving immediately, without writing anything. Edits that are not in files are still
    /// in the log.
    pub fn abandon(&self) {
        self.state.store(RegionState::Closed as u8, Ordering::Release);
    }

    /// Whether edits are only in memory, because they skip the log (`SKIP_WAL`).
    pub fn has_unlogged(&self) -> bool {
        // A flush of some families only does not change the second one.
        self.newest_unlogged.load(Ordering::Relaxed) > self.counters.flushed_seq_id.load(Ordering::Relaxed)
    }

    /// As [`Region::abandon`], unless edits are only in memory. Returns whether the region was
    /// abandoned.
    pub fn abandon_if_logged(&self) -> bool {
        // Under the publish lock, so that no edit is published after the check.
        let Ok(_publish) = self.publish_lock() else { return false };
        let is_logged = !self.has_unlogged();
        if is_logged {
            self.abandon();
        }
        is_logged
    }

    /// The last steps of a close. There are no more writes.
    async fn finish(&self, attempts: FlushAttempts) -> Result<()> {
        // Running compactions notice the close and stop. After this the files do not change.
        let _none = self.compactions_run.write().await;
        self.flush_with(attempts).await?;
        assert!(
            self.view.load().stores.iter().all(|store| store.snapshot.is_none() && store.active.is_empty()),
            "a region closes with all edits in files"
        );
        let files = self.family_files();
        let server = self.services.server.as_ref();
        let seq_id =
            self.log_marker(|seq_id, now_ms| self.markers.close(seq_id, &files, server, now_ms)).await?;
        self.record_seq_id(seq_id).await?;
        self.archive_retired().await;
        self.evict_at_close();
        Ok(())
    }

    pub(super) fn set_state(&self, state: RegionState) -> Result<()> {
        // Under the publish lock, so writers that saw the old state have published when this
        // returns.
        let _publish = self.publish_lock()?;
        self.state.store(state as u8, Ordering::Release);
        Ok(())
    }
}

/// Logs that a region which is not open was closed after its edit `newest`, so that no edit of it
/// up to that one is ever replayed. Returns when this is durable.
///
/// # Errors
/// The error of the log.
pub(crate) async fn log_close_of_unopened(
    log: &Log,
    info: &RegionInfo,
    newest: u64,
    clock: &dyn Clock,
) -> Result<()> {
    let (markers, mvcc) = (marked(info), Mvcc::new(newest));
    let (seq_id, now_ms) = (mvcc.next_seq_id(), clock.now_ms());
    let edit = NewEdit::marker(seq_id, now_ms, &markers.close(seq_id, &[], None, now_ms));
    log.append(edit.into_log(&markers, info.encoded_name().into(), Arc::default(), mvcc.clone()));
    mvcc.wait_visible(seq_id).await
}
