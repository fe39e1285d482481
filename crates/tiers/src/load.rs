//! Measurements of a volume's device.

use std::time::Duration;

use fs::{IoClass, Traffic};

/// Measurements of a volume's device. All values are 0 if nothing measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VolumeLoad {
    /// Requests that wait for the device.
    pub waiting_requests: usize,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Requests in service.
    pub served_requests: usize,
    /// Their bytes.
    pub served_bytes: u64,
    /// Bytes per second while the device was busy; recent requests count most.
    pub bytes_per_s: f64,
    /// Average time from the arrival of a request to its completion; recent requests count most.
    pub latency: Duration,
    /// Requests that failed with an error of the device, since the start.
    pub errors: u64,
    /// Reads and writes of each class since the start, in the order of [`IoClass::ALL`].
    pub traffic: [Traffic; IoClass::ALL.len()],
}

impl VolumeLoad {
    /// The reads and writes of a class.
    pub fn of(&self, class: IoClass) -> Traffic {
        IoClass::ALL
            .iter()
            .zip(self.traffic)
            .find(|(of, _)| **of == class)
            .map_or_else(Traffic::default, |(_, of)| of)
    }

    /// The reads and writes of all classes.
    pub fn total(&self) -> Traffic {
        self.traffic.iter().copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traffic_of_each_class_is_found() {
        let mut load = VolumeLoad::default();
        (1..).zip(&mut load.traffic).for_each(|(reads, of)| of.reads = reads);
        assert_eq!(IoClass::ALL.map(|class| load.of(class).reads), [1, 2, 3, 4, 5, 6]);
        assert_eq!(load.total().reads, 21);
    }
}
