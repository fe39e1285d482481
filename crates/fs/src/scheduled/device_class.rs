//! Limits and expectations for the devices of a class.

use std::time::Duration;

use crate::IoClass;

/// How requests of a device are limited, and what is expected of it until it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceClass {
    /// Whether an access to another position moves heads.
    pub is_spindle: bool,
    /// Maximum number of requests in service. Requests of logs count, but do not wait.
    pub max_requests: usize,
    /// How many of these may be of [background](IoClass::is_background) classes, so that a more
    /// urgent request finds a free slot.
    pub max_background: usize,
    /// How many of these may write. Requests of logs do not count.
    pub max_writers: usize,
    /// The [`transfer_bytes`](crate::FileWriter::transfer_bytes) of its writers. The scheduler does
    /// not split or merge requests.
    pub transfer_bytes: usize,
    /// Cost of an access in addition to its bytes: the bytes that are transferred in the same time.
    /// On a spindle, for accesses that do not continue the previous one.
    pub access_bytes: u64,
    /// Expected bytes per second of a device that is not measured yet.
    pub bytes_per_s: u64,
    /// No device of this class transfers more bytes per second. A faster response is one of the
    /// page cache, and says nothing about the device.
    pub max_bytes_per_s: u64,
    /// The device is stuck when it has had requests for this time and completed none.
    pub stuck_after: Duration,
    /// Share of the device's time that each class gets at least while it has requests, by position
    /// in [`IoClass::ALL`]. That of logs is unused.
    pub min_shares: [f64; IoClass::ALL.len()],
}

/// Foreground classes share most of the device. The shares of the background classes keep their
/// backlog from growing for ever, and are small enough that calls hardly notice them.
const MIN_SHARES: [f64; IoClass::ALL.len()] = [0.0, 0.25, 0.2, 0.1, 0.05, 0.02];

impl DeviceClass {
    /// Memory as a disk. The expectations are the measurements of the study "HDFS HSM and HBase"
    /// (Intel, 2016): 11,194 MB/s, and 89 ns for an access.
    pub fn ram() -> DeviceClass {
        DeviceClass {
            is_spindle: false,
            max_requests: 128,
            max_background: 64,
            max_writers: 64,
            transfer_bytes: 256 << 10,
            access_bytes: 1000,
            bytes_per_s: 11_194_000_000,
            max_bytes_per_s: 100_000_000_000,
            stuck_after: Duration::from_secs(10),
            min_shares: MIN_SHARES,
        }
    }

    /// An SSD on PCI Express. Its queue is used best with 32 to 128 requests. The expectations are
    /// those of a device of the PCIe 3.0 generation: 2 GB/s written, 80 µs for an access.
    pub fn nvme() -> DeviceClass {
        DeviceClass {
            is_spindle: false,
            max_requests: 64,
            max_background: 32,
            max_writers: 32,
            transfer_bytes: 256 << 10,
            access_bytes: 160_000,
            bytes_per_s: 2_000_000_000,
            max_bytes_per_s: 14_000_000_000,
            stuck_after: Duration::from_secs(10),
            min_shares: MIN_SHARES,
        }
    }

    /// An SSD on SATA, which has a queue of 32 commands and transfers at most 600 MB/s. The
    /// expectations are from the study: 447 MB/s written, 80 µs for an access.
    pub fn ssd() -> DeviceClass {
        DeviceClass {
            is_spindle: false,
            max_requests: 32,
            max_background: 16,
            max_writers: 8,
            transfer_bytes: 512 << 10,
            access_bytes: 36_000,
            bytes_per_s: 447_000_000,
            max_bytes_per_s: 600_000_000,
            stuck_after: Duration::from_secs(10),
            min_shares: MIN_SHARES,
        }
    }

    /// A disk with moving heads. The expectations are from the study: 127 MB/s written, 6.7 ms for
    /// an access. With two requests the disk is never idle between them; more would only delay the
    /// log. It may spend 30 s on the repair of a sector, the timeout of Linux for SCSI commands.
    pub fn hdd() -> DeviceClass {
        DeviceClass {
            is_spindle: true,
            max_requests: 2,
            max_background: 1,
            max_writers: 1,
            transfer_bytes: 2 << 20,
            access_bytes: 850_000,
            bytes_per_s: 127_000_000,
            max_bytes_per_s: 300_000_000,
            stuck_after: Duration::from_secs(30),
            min_shares: MIN_SHARES,
        }
    }

    /// The class of a name as in a configuration: `ram`, `nvme`, `ssd` or `hdd`.
    pub fn named(name: &str) -> Option<DeviceClass> {
        match name {
            "ram" => Some(DeviceClass::ram()),
            "nvme" => Some(DeviceClass::nvme()),
            "ssd" => Some(DeviceClass::ssd()),
            "hdd" => Some(DeviceClass::hdd()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgent_requests_find_a_slot_and_shares_leave_room() {
        for name in ["ram", "nvme", "ssd", "hdd"] {
            let class = DeviceClass::named(name).unwrap();
            assert!((1..class.max_requests).contains(&class.max_background), "{name}");
            assert!((1..=class.max_requests).contains(&class.max_writers), "{name}");
            assert!(class.min_shares.iter().sum::<f64>() < 1.0, "{name}");
        }
        assert_eq!(DeviceClass::named("tape"), None);
    }
}
