//! Removes snapshots whose time to live has expired.
//!
//! Source: HBase `SnapshotCleanerChore`, `SnapshotDescriptionUtils.isExpiredSnapshot`.

use proto::SnapshotDescription;
use tracing::{info, warn};

use super::ChoreSwitch;
use crate::master::Master;
use crate::tables::file_exception;

/// The state of the chore. A durable switch of the master determines whether it may run.
#[derive(Debug, Default)]
pub struct SnapshotCleaner {
    /// Whether it is running.
    pub switch: ChoreSwitch,
}

/// Whether a snapshot's time to live has expired at `now_ms`. A time of 0 or less, or one that
/// exceeds the range of milliseconds, never expires.
pub fn is_expired(snapshot: &SnapshotDescription, now_ms: u64) -> bool {
    let (created_ms, ttl_s) = (snapshot.creation_time(), snapshot.ttl());
    if created_ms <= 0 || ttl_s <= 0 || ttl_s >= i64::MAX / 1000 {
        return false;
    }
    let expires_ms = created_ms.saturating_add(ttl_s * 1000);
    i64::try_from(now_ms).is_ok_and(|now_ms| now_ms > expires_ms)
}

/// Removes expired snapshots, except those that a procedure uses.
pub(crate) async fn run(master: &Master) {
    let Some(_running) = master.snapshot_cleaner().switch.begin() else { return };
    let context = master.context();
    let (fs, root) = (context.tables.fs(), context.tables.root());
    let snapshots = match root.list_snapshots(fs).await.map_err(file_exception) {
        Ok(snapshots) => snapshots,
        Err(error) => return warn!(%error, "cannot list snapshots to find those that have expired"),
    };
    let now_ms = context.env.clock.now_ms();
    for snapshot in snapshots.iter().filter(|snapshot| is_expired(snapshot, now_ms)) {
        if !context.switches.is_snapshot_cleanup_on() {
            return;
        }
        let name = &snapshot.name;
        let _changing = context.snapshot_changes.lock().await;
        if is_used(master, name) {
            continue;
        }
        // After a takeover, this may be a newer snapshot of the same name.
        if let Err(error) = context.check_owned().await {
            return warn!(%error, "removing no expired snapshots");
        }
        match root.delete_snapshot(fs, name).await {
            Ok(()) => info!(snapshot = %name, ttl_s = snapshot.ttl(), "expired snapshot removed"),
            Err(error) => warn!(snapshot = %name, %error, "cannot remove an expired snapshot"),
        }
    }
}

fn is_used(master: &Master, name: &str) -> bool {
    master.procedures().is_running(|work| work.snapshot() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_expires_after_its_seconds() {
        let snapshot = |ttl| SnapshotDescription {
            creation_time: Some(1_000_000),
            ttl: Some(ttl),
            ..SnapshotDescription::default()
        };
        assert!(!is_expired(&snapshot(5), 1_005_000));
        assert!(is_expired(&snapshot(5), 1_005_001));
        for forever in [0, -1, i64::MAX, i64::MAX / 1000] {
            assert!(!is_expired(&snapshot(forever), u64::MAX >> 1), "{forever}");
        }
        assert!(!is_expired(
            &SnapshotDescription { ttl: Some(5), ..SnapshotDescription::default() },
            1 << 40
        ));
    }
}
