//! What a part of a call used, charged to its region and to its user when it ends.

use std::time::Duration;

use base::metrics::COUNTING;
use base::spent;
use engine::Region;
use engine::instruments::Usage;

use super::CallContext;
use crate::quotas::Operation;
use crate::server::RegionServer;

/// A part of a call that is under way in one region.
pub(super) struct Charge {
    // Nanoseconds that the call had worked before.
    work_before: u64,
}

impl Charge {
    /// For a call that is one part.
    pub(super) fn for_call() -> Charge {
        Charge { work_before: 0 }
    }

    /// For a part that begins now, at `now`.
    pub(super) fn from(now: Duration) -> Charge {
        Charge { work_before: spent::work_nanos_until(now) }
    }

    /// The part ends at `now`, having read and written what `operation` was told. Callers in the same process are charged
    /// with nothing: nobody looks at their work.
    pub(super) fn end(
        self,
        (server, region): (&RegionServer, &Region),
        context: &CallContext,
        operation: &Operation,
        now: Duration,
    ) {
        let Some(caller) = &context.caller else { return };
        if COUNTING {
            let usage = self.usage(server, operation, now);
            region.instruments().note_usage(&usage);
            caller.note_usage(&usage);
        }
    }

    /// Of a part that only read and ends at `now`, for who charges it himself: units read, and nanoseconds worked.
    #[inline]
    pub(super) fn of_reads(self, server: &RegionServer, operation: &Operation, now: Duration) -> (u64, u64) {
        let (read_unit_bytes, _) = server.options().unit_bytes;
        let work_nanos = spent::work_nanos_until(now).saturating_sub(self.work_before);
        (units(operation.bytes_read(), read_unit_bytes), work_nanos)
    }

    /// What the part used that ends at `now`.
    fn usage(self, server: &RegionServer, operation: &Operation, now: Duration) -> Usage {
        let (read_unit_bytes, write_unit_bytes) = server.options().unit_bytes;
        Usage {
            read_units: units(operation.bytes_read(), read_unit_bytes),
            write_units: units(operation.bytes_written(), write_unit_bytes),
            work_nanos: spent::work_nanos_until(now).saturating_sub(self.work_before),
        }
    }
}

/// A unit that is begun counts. (Small answers are spared the division.)
fn units(bytes: usize, unit_bytes: u64) -> u64 {
    let bytes = bytes as u64;
    if bytes <= unit_bytes { u64::from(bytes > 0) } else { bytes.div_ceil(unit_bytes) }
}

#[cfg(test)]
mod tests {
    use super::units;

    #[test]
    fn a_unit_that_is_begun_counts() {
        assert_eq!([0, 1, 1024, 1025, 10_240].map(|bytes| units(bytes, 1024)), [0, 1, 1, 2, 10]);
    }
}
