//! The state of a tier at one moment.

use std::sync::Arc;
use std::time::Duration;

use crate::bus_status::BusStatus;
use crate::tier::Tier;
use crate::volume_status::VolumeStatus;

/// The state of a tier at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct TierStatus {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// The name of the class of its disks.
    pub class: Arc<str>,
    /// Its bus, if its disks have a model with one.
    pub bus: Option<BusStatus>,
    /// Its volumes, in the order of the configuration; those whose disk was missing at the start
    /// follow.
    pub volumes: Vec<VolumeStatus>,
}

impl TierStatus {
    pub(crate) fn of(tier: &Tier, now: Duration) -> TierStatus {
        let present = tier.volumes.iter().map(|volume| volume.status());
        let missing =
            tier.missing.iter().map(|volume| VolumeStatus::missing(&volume.directory, &volume.reason));
        TierStatus {
            name: tier.name.clone(),
            class: tier.class.name.clone(),
            bus: tier.bus.as_ref().map(|bus| BusStatus::of(bus, now)),
            volumes: present.chain(missing).collect(),
        }
    }
}
