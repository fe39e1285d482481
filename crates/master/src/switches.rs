//! Switches of an administrator: whether regions may be split and merged, whether they are
//! balanced, and whether expired snapshots are removed.
//!
//! Each switch is a row of `master:store`, family `state`, as in HBase 2.6. Switches are on by
//! default.
//!
//! Source: HBase `SplitOrMergeStateStore`, `SnapshotCleanupStateStore`, `BooleanStateStore`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::{CellSelection, Get};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::Region;
use proto::MasterSwitchType;
use proto::magic::{with_magic, without_magic};
use tracing::warn;

use crate::store::STATE;

/// The qualifier of a switch's message.
const MESSAGE: &[u8] = b"d";

/// The row of the switch for the removal of expired snapshots.
const SNAPSHOT_CLEANUP: &[u8] = b"snapshot-cleanup";

/// The row of the balancer's switch.
const BALANCER: &[u8] = b"load_balancer_on";

/// The switches, in memory and in `master:store`.
pub struct Switches {
    region: Arc<Region>,
    split: AtomicBool,
    merge: AtomicBool,
    balancer: AtomicBool,
    snapshot_cleanup: AtomicBool,
}

impl Switches {
    /// Creates switches that are stored in the region of `master:store`. All are on until
    /// [`Switches::load`].
    pub fn new(region: Arc<Region>) -> Switches {
        let on = || AtomicBool::new(true);
        Switches { region, split: on(), merge: on(), balancer: on(), snapshot_cleanup: on() }
    }

    /// Loads the stored switches.
    ///
    /// # Errors
    /// The region's error.
    pub async fn load(&self) -> Result<(), engine::Error> {
        for row in [row(MasterSwitchType::Split), row(MasterSwitchType::Merge), BALANCER, SNAPSHOT_CLEANUP] {
            let list = self
                .region
                .get(&Get {
                    row: Bytes::from_static(row),
                    selection: CellSelection::default().into(),
                    existence_only: false,
                })
                .await?;
            let Some((cell, _)) = list.cells.first() else { continue };
            // The messages of all switches consist of one flag in field 1.
            match without_magic::<proto::SwitchState>(&Bytes::copy_from_slice(cell.view(0).value)) {
                Ok(state) => self.flag(row).store(state.enabled(), Ordering::Release),
                Err(error) => {
                    warn!(row = %row.escape_ascii(), %error, "cannot decode switch; treating it as on");
                }
            }
        }
        Ok(())
    }

    /// Whether a switch is on.
    pub fn is_on(&self, kind: MasterSwitchType) -> bool {
        self.flag(row(kind)).load(Ordering::Acquire)
    }

    /// Sets a switch durably. Returns its previous value.
    ///
    /// # Errors
    /// The region's error. The switch is unchanged then, but may have the new value after a
    /// restart.
    pub async fn set(&self, kind: MasterSwitchType, on: bool) -> Result<bool, engine::Error> {
        self.set_row(row(kind), on).await
    }

    /// Whether expired snapshots are removed.
    pub fn is_snapshot_cleanup_on(&self) -> bool {
        self.snapshot_cleanup.load(Ordering::Acquire)
    }

    /// Sets durably whether expired snapshots are removed. Returns the previous value.
    ///
    /// # Errors
    /// As for [`Switches::set`].
    pub async fn set_snapshot_cleanup(&self, on: bool) -> Result<bool, engine::Error> {
        self.set_row(SNAPSHOT_CLEANUP, on).await
    }

    /// Whether regions are balanced.
    pub fn is_balancer_on(&self) -> bool {
        self.balancer.load(Ordering::Acquire)
    }

    /// Sets durably whether regions are balanced. Returns the previous value.
    ///
    /// # Errors
    /// As for [`Switches::set`].
    pub async fn set_balancer(&self, on: bool) -> Result<bool, engine::Error> {
        self.set_row(BALANCER, on).await
    }

    async fn set_row(&self, row: &'static [u8], on: bool) -> Result<bool, engine::Error> {
        let value = with_magic(&proto::SwitchState { enabled: Some(on) });
        let cell = KeyValue::new(row, STATE, MESSAGE, LATEST_TIMESTAMP, CellType::Put, &value);
        self.region.batch_atomic(vec![Mutation::put(row, vec![cell])]).await?;
        Ok(self.flag(row).swap(on, Ordering::AcqRel))
    }

    fn flag(&self, row: &[u8]) -> &AtomicBool {
        match row {
            b"split" => &self.split,
            b"merge" => &self.merge,
            BALANCER => &self.balancer,
            other => {
                debug_assert_eq!(other, SNAPSHOT_CLEANUP, "there are four switches");
                &self.snapshot_cleanup
            }
        }
    }
}

fn row(kind: MasterSwitchType) -> &'static [u8] {
    match kind {
        MasterSwitchType::Split => b"split",
        MasterSwitchType::Merge => b"merge",
    }
}
