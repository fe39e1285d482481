//! The state of the bus of a tier at one moment.

use std::time::Duration;

use fs::paced::Bus;

/// From this share of its time in use, the bus limits the tier: more volumes would not be faster.
const REACHED_SHARE: f64 = 0.9;

/// The bus of a tier, which the model of its disks has (`bus=`), at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusStatus {
    /// Bytes per second that all volumes of the tier transfer together at most.
    pub bytes_per_s: u64,
    /// The share of the last ten seconds or so in which the bus was in use, from 0 to 1.
    pub used_share: f64,
}

impl BusStatus {
    pub(crate) fn of(bus: &Bus, now: Duration) -> BusStatus {
        BusStatus { bytes_per_s: bus.bytes_per_s(), used_share: bus.used_share(now) }
    }

    /// Whether the bus, and not the disks, limits what the volumes of the tier transfer together.
    pub fn is_reached(&self) -> bool {
        self.used_share >= REACHED_SHARE
    }
}
