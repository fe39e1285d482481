//! The model of a device.

use std::time::Duration;

/// Bytes of the random access whose latency the presets state.
const ACCESS_BYTES: u64 = 4096;

/// Speed and delays of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Bytes per second of reads, all requests together.
    pub read_bytes_per_s: u64,
    /// Bytes per second of writes, all requests together.
    pub write_bytes_per_s: u64,
    /// Time to move the heads, for each access that does not continue the previous one of the
    /// device. Zero for a device without moving parts.
    pub seek: Duration,
    /// Latency of each call, in addition to seek and transfer. The latencies of concurrent calls
    /// overlap.
    pub call: Duration,
    /// Latency of a sync, in addition to `call`. A device with `seek` serves nothing else
    /// meanwhile.
    pub sync: Duration,
    /// Number of requests that are in service at a time; further requests wait.
    pub queue_depth: usize,
    /// Whether waiting requests are served by [class](crate::IoClass) rather than in the order of
    /// arrival. Common devices do not know the class.
    pub by_class: bool,
    /// Times at which the device serves nothing.
    pub stalls: Option<Stalls>,
}

/// Random pauses of a device, such as error recovery or garbage collection.
#[derive(Clone, Debug, PartialEq)]
pub struct Stalls {
    /// Average time from the end of a pause to the next one; exponentially distributed.
    pub every: Duration,
    /// Length of a pause.
    pub lasting: Duration,
    /// Seed of the random times: equal seeds give equal times.
    pub seed: u64,
}

impl Device {
    /// A disk of 7200 rpm: 140 MB/s read, 127 MB/s written, 6.7 ms for a random access of 4 KiB.
    /// From the study "HDFS HSM and HBase" (Intel, 2016). It does not state the latency of a sync;
    /// the model assumes that of a random access.
    pub fn hdd() -> Device {
        let access = Duration::from_micros(6700);
        let seek = access.saturating_sub(transfer_time(ACCESS_BYTES, 140_000_000));
        Device {
            read_bytes_per_s: 140_000_000,
            write_bytes_per_s: 127_000_000,
            seek,
            call: Duration::ZERO,
            sync: access,
            queue_depth: 1,
            by_class: false,
            stalls: None,
        }
    }

    /// A SATA SSD: 481 MB/s read, 447 MB/s written, 80 µs for an access of 4 KiB (same study), 32
    /// commands in the queue (SATA's NCQ). The assumed latency of a sync is that of an access: the
    /// drive of the study (S3500) has a cache that survives power loss.
    pub fn ssd() -> Device {
        let access = Duration::from_micros(80);
        Device {
            read_bytes_per_s: 481_000_000,
            write_bytes_per_s: 447_000_000,
            seek: Duration::ZERO,
            call: access.saturating_sub(transfer_time(ACCESS_BYTES, 481_000_000)),
            sync: access,
            queue_depth: 32,
            by_class: false,
            stalls: None,
        }
    }

    /// A RAM disk: 12,059 MB/s read, 11,194 MB/s written (same study; it states more than these).
    /// No latency is added: the study's 89 ns are less than the transfer of 4 KiB takes.
    pub fn ram() -> Device {
        Device {
            read_bytes_per_s: 12_059_000_000,
            write_bytes_per_s: 11_194_000_000,
            seek: Duration::ZERO,
            call: Duration::ZERO,
            sync: Duration::ZERO,
            queue_depth: 128,
            by_class: false,
            stalls: None,
        }
    }

    /// The device, slower by `factor`: all times are multiplied, all rates divided. With the same
    /// factor for all devices, a disk can carry the model of faster ones.
    ///
    /// # Panics
    /// If the factor is not positive and finite.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Device {
        assert!(factor > 0.0 && factor.is_finite(), "a device cannot be slower by {factor}");
        let rate = |bytes_per_s: u64| ((bytes_per_s as f64 / factor) as u64).max(1);
        let time = |time: Duration| time.mul_f64(factor);
        let stalls = |stalls: Stalls| Stalls {
            every: time(stalls.every),
            lasting: time(stalls.lasting),
            seed: stalls.seed,
        };
        Device {
            read_bytes_per_s: rate(self.read_bytes_per_s),
            write_bytes_per_s: rate(self.write_bytes_per_s),
            seek: time(self.seek),
            call: time(self.call),
            sync: time(self.sync),
            stalls: self.stalls.map(stalls),
            ..self
        }
    }

    /// The device with random pauses.
    #[must_use]
    pub fn with_stalls(self, stalls: Stalls) -> Device {
        Device { stalls: Some(stalls), ..self }
    }

    /// Whether an access to another position moves heads.
    pub fn is_spindle(&self) -> bool {
        !self.seek.is_zero()
    }
}

/// How long a transfer of `bytes` takes.
pub(super) fn transfer_time(bytes: u64, bytes_per_s: u64) -> Duration {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_access_of_4_kib_takes_the_published_time() {
        for (device, micros) in [(Device::hdd(), 6700), (Device::ssd(), 80)] {
            let transfer = transfer_time(4096, device.read_bytes_per_s);
            assert_eq!((device.seek + device.call + transfer).as_micros(), micros);
        }
    }

    #[test]
    fn all_times_are_scaled() {
        let stalls = Stalls { every: Duration::from_secs(9), lasting: Duration::from_secs(1), seed: 5 };
        let device = Device::hdd().with_stalls(stalls).scaled(10.0);
        assert_eq!((device.read_bytes_per_s, device.write_bytes_per_s), (14_000_000, 12_700_000));
        assert_eq!(device.sync, Duration::from_millis(67));
        assert_eq!((device.seek, device.queue_depth), (Device::hdd().seek * 10, 1));
        let stalls = device.stalls.unwrap();
        assert_eq!((stalls.every.as_secs(), stalls.lasting.as_secs(), stalls.seed), (90, 10, 5));
    }
}
