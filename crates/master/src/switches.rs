//! Whether regions may be split and merged, as an administrator has set it.
//!
//! Kept in `master:store`, family `state`, a row each, as HBase 2.6 keeps them; on unless a row says otherwise.
//!
//! Source: HBase `SplitOrMergeStateStore`, `BooleanStateStore`.

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

/// The switches.
pub struct Switches {
    region: Arc<Region>,
    split: AtomicBool,
    merge: AtomicBool,
}

impl Switches {
    /// Switches in the region of `master:store`, all on until [`Switches::load`].
    pub fn new(region: Arc<Region>) -> Switches {
        Switches { region, split: AtomicBool::new(true), merge: AtomicBool::new(true) }
    }

    /// Takes over what is stored.
    ///
    /// # Errors
    /// What the region said.
    pub async fn load(&self) -> Result<(), engine::Error> {
        for kind in [MasterSwitchType::Split, MasterSwitchType::Merge] {
            let list = self
                .region
                .get(&Get {
                    row: Bytes::from_static(row(kind)),
                    selection: CellSelection::default().into(),
                    existence_only: false,
                })
                .await?;
            let Some((cell, _)) = list.cells.first() else { continue };
            match without_magic::<proto::SwitchState>(&Bytes::copy_from_slice(cell.view(0).value)) {
                Ok(state) => self.flag(kind).store(state.enabled(), Ordering::Release),
                Err(error) => warn!(?kind, %error, "an unreadable switch counts as on"),
            }
        }
        Ok(())
    }

    /// Whether a switch is on.
    pub fn is_on(&self, kind: MasterSwitchType) -> bool {
        self.flag(kind).load(Ordering::Acquire)
    }

    /// Sets a switch, durably; returns what it was.
    ///
    /// # Errors
    /// What the region said; the switch is as it was, or not after a restart.
    pub async fn set(&self, kind: MasterSwitchType, on: bool) -> Result<bool, engine::Error> {
        let value = with_magic(&proto::SwitchState { enabled: Some(on) });
        let cell = KeyValue::new(row(kind), STATE, MESSAGE, LATEST_TIMESTAMP, CellType::Put, &value);
        self.region.batch_atomic(vec![Mutation::put(row(kind), vec![cell])]).await?;
        Ok(self.flag(kind).swap(on, Ordering::AcqRel))
    }

    fn flag(&self, kind: MasterSwitchType) -> &AtomicBool {
        match kind {
            MasterSwitchType::Split => &self.split,
            MasterSwitchType::Merge => &self.merge,
        }
    }
}

fn row(kind: MasterSwitchType) -> &'static [u8] {
    match kind {
        MasterSwitchType::Split => b"split",
        MasterSwitchType::Merge => b"merge",
    }
}
