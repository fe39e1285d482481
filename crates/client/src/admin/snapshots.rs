//! Administration of snapshots.

use cell::schema::TableName;
use proto::SnapshotDescription;
use proto::snapshot_description::Type;

use super::{Admin, malformed};
use crate::error::{Error, Result};
use crate::retry::backoff;

impl Admin {
    /// Takes a snapshot of a table: records its current files. Flushes the memstores first, unless
    /// `skip_flush`. `ttl_s` is the snapshot's time to live in seconds, 0 for no limit.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn snapshot(&self, name: &str, table: &TableName, skip_flush: bool, ttl_s: i64) -> Result<()> {
        let kind = if skip_flush { Type::Skipflush } else { Type::Flush };
        let snapshot = SnapshotDescription {
            r#type: Some(kind as i32),
            ttl: Some(ttl_s),
            ..described(name, Some(table))
        };
        let (nonce_group, nonce) = self.nonce();
        let request = proto::SnapshotRequest { snapshot: snapshot.clone(), nonce_group, nonce };
        let answer: proto::SnapshotResponse = self.call_master("Snapshot", &request).await?;
        match answer.proc_id {
            Some(proc_id) => self.wait_for(Some(u64::try_from(proc_id).map_err(malformed)?)).await,
            None => self.wait_for_snapshot(snapshot).await,
        }
    }

    /// Polls a master that does not use procedures for snapshots.
    async fn wait_for_snapshot(&self, snapshot: SnapshotDescription) -> Result<()> {
        let (env, options) = (self.client.env(), self.client.options());
        let deadline = env.clock.monotonic() + options.procedure_timeout;
        let name = snapshot.name.clone();
        let request = proto::IsSnapshotDoneRequest { snapshot: Some(snapshot) };
        for asked in 0.. {
            let answer: proto::IsSnapshotDoneResponse = self.call_master("IsSnapshotDone", &request).await?;
            if answer.done() {
                return Ok(());
            }
            if env.clock.monotonic() >= deadline {
                break;
            }
            env.clock.sleep((options.pause * backoff(asked)).min(options.procedure_poll_max)).await;
        }
        Err(Error::SnapshotTimedOut(name))
    }

    /// All snapshots.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_snapshots(&self) -> Result<Vec<SnapshotDescription>> {
        let request = proto::GetCompletedSnapshotsRequest {};
        let answer: proto::GetCompletedSnapshotsResponse =
            self.call_master("GetCompletedSnapshots", &request).await?;
        Ok(answer.snapshots)
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_snapshot(&self, name: &str) -> Result<()> {
        let request = proto::DeleteSnapshotRequest { snapshot: described(name, None) };
        let _: proto::DeleteSnapshotResponse = self.call_master("DeleteSnapshot", &request).await?;
        Ok(())
    }

    /// Restores a disabled table to a snapshot, or creates a table of that name from it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn restore_snapshot(&self, name: &str, table: &TableName) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let snapshot = described(name, Some(table));
        let request = proto::RestoreSnapshotRequest { snapshot, nonce_group, nonce, ..Default::default() };
        let answer: proto::RestoreSnapshotResponse = self.call_master("RestoreSnapshot", &request).await?;
        self.wait_for(Some(answer.proc_id)).await
    }
}

fn described(name: &str, table: Option<&TableName>) -> SnapshotDescription {
    SnapshotDescription {
        name: name.to_string(),
        table: table.map(ToString::to_string),
        ..SnapshotDescription::default()
    }
}
