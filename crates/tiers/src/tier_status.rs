//! The state of a tier at one moment.

use std::sync::Arc;

use crate::tier::Tier;
use crate::volume_status::VolumeStatus;

/// The state of a tier at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct TierStatus {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// The name of the class of its disks.
    pub class: Arc<str>,
    /// Its volumes, in the order of the configuration; those whose disk was missing at the start
    /// follow.
    pub volumes: Vec<VolumeStatus>,
}

impl TierStatus {
    pub(crate) fn of(tier: &Tier) -> TierStatus {
        let present = tier.volumes.iter().map(|volume| volume.status());
        let missing =
            tier.missing.iter().map(|volume| VolumeStatus::missing(&volume.directory, &volume.reason));
        TierStatus {
            name: tier.name.clone(),
            class: tier.class.name.clone(),
            volumes: present.chain(missing).collect(),
        }
    }
}
