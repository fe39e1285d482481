//! Charges the resources that a part of a call used to its region and its user when the part ends.

use std::time::Duration;

use base::metrics::COUNTING;
use base::spent;
use engine::Region;
use engine::instruments::Usage;

use super::CallContext;
use crate::quotas::Operation;
use crate::server::RegionServer;

/// A running part of a call, in one region.
pub(super) struct Charge {
    // CPU time of the call before this part, in nanoseconds.
    work_before: u64,
}

impl Charge {
    /// Starts a charge for a call that consists of one part.
    pub(super) fn for_call() -> Charge {
        Charge { work_before: 0 }
    }

    /// Starts a charge for a part that begins at `now`.
    pub(super) fn from(now: Duration) -> Charge {
        Charge { work_before: spent::work_nanos_until(now) }
    }

    /// Ends the part at `now`. `operation` has counted the bytes read and written. Callers in the
    /// same process are not charged.
    pub(super) fn end(
        self,
        (server, region): (&RegionServer, &Region),
        context: &CallContext,
        operation: &Operation,
        now: Duration,
    ) {
        let Some(client) = &context.client else { return };
        if COUNTING {
            let usage = self.usage(server, operation, now);
            region.instruments().add_usage(&usage);
            client.add_usage(&usage);
        }
    }

    /// Ends a read-only part at `now`. Returns the read units and nanoseconds of work, which the
    /// caller must record.
    #[inline]
    pub(super) fn end_reads(self, server: &RegionServer, operation: &Operation, now: Duration) -> (u64, u64) {
        let (read_unit_bytes, _) = server.options().unit_bytes;
        let work_nanos = spent::work_nanos_until(now).saturating_sub(self.work_before);
        (units(operation.bytes_read(), read_unit_bytes), work_nanos)
    }

    /// The usage of a part that ends at `now`.
    fn usage(self, server: &RegionServer, operation: &Operation, now: Duration) -> Usage {
        let (read_unit_bytes, write_unit_bytes) = server.options().unit_bytes;
        Usage {
            read_units: units(operation.bytes_read(), read_unit_bytes),
            write_units: units(operation.bytes_written(), write_unit_bytes),
            work_nanos: spent::work_nanos_until(now).saturating_sub(self.work_before),
        }
    }
}

/// The number of units, rounded up. (Small sizes avoid the division.)
fn units(bytes: usize, unit_bytes: u64) -> u64 {
    let bytes = bytes as u64;
    if bytes <= unit_bytes { u64::from(bytes > 0) } else { bytes.div_ceil(unit_bytes) }
}

#[cfg(test)]
mod tests {
    use super::units;

    #[test]
    fn a_started_unit_counts() {
        assert_eq!([0, 1, 1024, 1025, 10_240].map(|bytes| units(bytes, 1024)), [0, 1, 1, 2, 10]);
    }
}
