//! Close: everything goes to files, the log and the directory say so, and then nothing is served.

use std::sync::atomic::Ordering;

use tracing::info;

use crate::error::Result;
use crate::region::{Flushed, Region, RegionState};

/// Bytes in memory above which a flush comes before writes are refused, to keep that time short
/// (`hbase.hregion.preclose.flush.size`).
const PRE_CLOSE_FLUSH_BYTES: u64 = 5 << 20;

/// How often a flush that fails is tried.
#[derive(Clone, Copy)]
enum Tries {
    One,
    Many,
}

impl Region {
    /// Flushes, closes and says so in the log. Closing what is closed does nothing.
    ///
    /// # Errors
    /// What kept the memstores from being written; the region then serves again, unless the log has failed.
    pub async fn close(&self) -> Result<()> {
        self.close_trying(Tries::Many).await
    }

    /// The same without a retry of a failed flush, for a process that is stopping.
    ///
    /// # Errors
    /// As [`Region::close`].
    pub async fn close_once(&self) -> Result<()> {
        self.close_trying(Tries::One).await
    }

    async fn close_trying(&self, tries: Tries) -> Result<()> {
        if self.state() == RegionState::Closed {
            return Ok(());
        }
        self.flush_before_close(tries).await?;
        self.set_state(RegionState::Closing)?;
        if let Err(error) = self.finish(tries).await {
            self.set_state(RegionState::Serving)?;
            return Err(error);
        }
        self.set_state(RegionState::Closed)?;
        info!(region = %self.name, "closed");
        Ok(())
    }

    /// Flushes while writes go on. What came meanwhile is flushed too: less each time, or it is left to the last flush.
    async fn flush_before_close(&self, tries: Tries) -> Result<()> {
        let (mut bytes, mut before) = (self.memstore_bytes(), u64::MAX);
        while bytes > PRE_CLOSE_FLUSH_BYTES && bytes <= before / 2 {
            self.flush_trying(tries).await?;
            (before, bytes) = (bytes, self.memstore_bytes());
        }
        Ok(())
    }

    async fn flush_trying(&self, tries: Tries) -> Result<Flushed> {
        match tries {
            Tries::Many => self.flush().await,
            Tries::One => self.flush_without_retries().await,
        }
    }

    /// Serves no more, at once and without writing anything: what is not in files is in the log.
    pub fn abandon(&self) {
        self.state.store(RegionState::Closed as u8, Ordering::Release);
    }

    /// The last steps of a close. No writes come any more.
    async fn finish(&self, tries: Tries) -> Result<()> {
        // Those that run see that the region closes, and give up. The files must not change any more.
        let _none = self.compactions_run.write().await;
        self.flush_trying(tries).await?;
        let files = self.family_files();
        let server = self.services.server.as_ref();
        let seq_id =
            self.log_marker(|seq_id, now_ms| self.marked.close(seq_id, &files, server, now_ms)).await?;
        // All of it is in files. Forgotten rather than noted as flushed: where a snapshot is restored, the region comes
        // back with lower sequence ids, and its new edits must not count as flushed.
        self.services.log.forget(&self.encoded);
        self.record_seq_id(seq_id).await?;
        self.archive_retired().await;
        self.evict_at_close();
        Ok(())
    }

    pub(super) fn set_state(&self, state: RegionState) -> Result<()> {
        // Under the publish lock: a writer that saw the old state has published before this returns.
        let _publish = self.publish_lock()?;
        self.state.store(state as u8, Ordering::Release);
        Ok(())
    }
}
