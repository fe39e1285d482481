//! The master's procedures, and the cleanup of expired snapshots.

use super::Admin;
use crate::Result;

impl Admin {
    /// All procedures known to the master: running ones, and recently ended ones.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn procedures(&self) -> Result<Vec<proto::Procedure>> {
        let request = proto::GetProceduresRequest {};
        let answer: proto::GetProceduresResponse = self.call_master("GetProcedures", &request).await?;
        Ok(answer.procedure)
    }

    /// Requests the abort of a procedure; returns whether the master accepts that. A procedure that
    /// has started is not aborted unless `may_interrupt`.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn abort_procedure(&self, proc_id: u64, may_interrupt: bool) -> Result<bool> {
        let request = proto::AbortProcedureRequest { proc_id, may_interrupt_if_running: Some(may_interrupt) };
        let answer: proto::AbortProcedureResponse = self.call_master("AbortProcedure", &request).await?;
        Ok(answer.is_procedure_aborted)
    }

    /// Whether expired snapshots are deleted automatically.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn is_snapshot_cleanup_enabled(&self) -> Result<bool> {
        let request = proto::IsSnapshotCleanupEnabledRequest {};
        let answer: proto::IsSnapshotCleanupEnabledResponse =
            self.call_master("IsSnapshotCleanupEnabled", &request).await?;
        Ok(answer.enabled)
    }

    /// Enables or disables the deletion of expired snapshots; returns the previous setting.
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
