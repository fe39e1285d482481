//! Procedures of the master, and the removal of expired snapshots.

use super::Admin;
use crate::Result;

impl Admin {
    /// All procedures that the master knows: those that run, and those that ended lately.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn procedures(&self) -> Result<Vec<proto::Procedure>> {
        let request = proto::GetProceduresRequest {};
        let answer: proto::GetProceduresResponse = self.call_master("GetProcedures", &request).await?;
        Ok(answer.procedure)
    }

    /// Requests that a procedure ends without success; returns whether the master accepts that.
    /// One that has begun is left alone unless `may_interrupt`.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn abort_procedure(&self, proc_id: u64, may_interrupt: bool) -> Result<bool> {
        let request = proto::AbortProcedureRequest { proc_id, may_interrupt_if_running: Some(may_interrupt) };
        let answer: proto::AbortProcedureResponse = self.call_master("AbortProcedure", &request).await?;
        Ok(answer.is_procedure_aborted)
    }

    /// Whether expired snapshots are removed.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn is_snapshot_cleanup_enabled(&self) -> Result<bool> {
        let request = proto::IsSnapshotCleanupEnabledRequest {};
        let answer: proto::IsSnapshotCleanupEnabledResponse =
            self.call_master("IsSnapshotCleanupEnabled", &request).await?;
        Ok(answer.enabled)
    }

    /// Has expired snapshots removed or not; returns what was.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn enable_snapshot_cleanup(&self, enabled: bool) -> Result<bool> {
        let request = proto::SetSnapshotCleanupRequest { enabled, synchronous: Some(false) };
        let answer: proto::SetSnapshotCleanupResponse =
            self.call_master("SwitchSnapshotCleanup", &request).await?;
        Ok(answer.prev_snapshot_cleanup)
    }
}
