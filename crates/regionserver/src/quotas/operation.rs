//! The quota usage of one call: estimated before it, settled after it.
//!
//! Source: HBase `DefaultOperationQuota`, `ExceedOperationQuota`.

use std::sync::Arc;

use proto::exception::Answer;

use crate::quotas::QuotaOptions;
use crate::quotas::throttle::{Throttle, Usage};

/// Estimated bytes of a read or write of a row.
const ROW_BYTES: i64 = 100;
/// Estimated bytes of a scan call.
const SCAN_BYTES: i64 = 1000;

/// The work of a call, as known before it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlannedWork {
    /// Number of row mutations.
    pub writes: usize,
    /// Number of row reads.
    pub gets: usize,
    /// Number of scan calls.
    pub scans: usize,
}

/// An admitted call. Dropping it settles its actual usage.
pub struct Operation {
    bytes_read: usize,
    bytes_written: usize,
    limited: Option<Box<LimitedOperation>>,
}

struct LimitedOperation {
    limits: Vec<Arc<Throttle>>,
    options: QuotaOptions,
    // Charged before the call.
    write: Usage,
    read: Usage,
    bytes_written: i64,
    bytes_read: i64,
    read_available: i64,
}

/// Admits a call to which the limits `bound` and the server's own limit apply. With `exceed`, only
/// the server's limit must allow the call. In that case it is charged to `bound` only if these
/// limits allow it, too.
pub(super) fn admit(
    options: &QuotaOptions,
    bound: Vec<Arc<Throttle>>,
    of_server: Option<Arc<Throttle>>,
    exceed: bool,
    planned: impl FnOnce() -> PlannedWork,
    now_ms: i64,
) -> Answer<Operation> {
    if bound.is_empty() && of_server.is_none() {
        return Ok(Operation::unlimited());
    }
    let PlannedWork { writes, gets, scans } = planned();
    let (writes, gets, scans) = (writes as i64, gets as i64, scans as i64);
    let write = usage(writes, writes.saturating_mul(ROW_BYTES), options.write_unit_bytes);
    let read_bytes = gets.saturating_mul(ROW_BYTES).saturating_add(scans.saturating_mul(SCAN_BYTES));
    let read = usage(gets + scans, read_bytes, options.read_unit_bytes);
    let check =
        |limits: &[Arc<Throttle>]| limits.iter().try_for_each(|limit| limit.check(write, read, now_ms));
    let of_server = Vec::from_iter(of_server);
    let limits = if exceed && !of_server.is_empty() {
        check(&of_server)?;
        match check(&bound) {
            Ok(()) => [bound, of_server].concat(),
            Err(_) => of_server,
        }
    } else {
        let all = [bound, of_server].concat();
        check(&all)?;
        all
    };
    let read_available = limits.iter().map(|limit| limit.read_available()).min().unwrap_or(i64::MAX);
    limits.iter().for_each(|limit| limit.consume(write, read));
    let options = *options;
    let limited =
        LimitedOperation { limits, options, write, read, bytes_written: 0, bytes_read: 0, read_available };
    Ok(Operation { bytes_read: 0, bytes_written: 0, limited: Some(Box::new(limited)) })
}

impl Operation {
    /// An operation without limits.
    pub fn unlimited() -> Operation {
        Operation { bytes_read: 0, bytes_written: 0, limited: None }
    }

    /// Records that `bytes` bytes of cells were read.
    pub fn record_read(&mut self, bytes: usize) {
        self.bytes_read += bytes;
        if let Some(limited) = &mut self.limited {
            limited.bytes_read = limited.bytes_read.saturating_add(bytes as i64);
        }
    }

    /// Records that `bytes` bytes of cells were requested to be written.
    pub fn record_write(&mut self, bytes: usize) {
        self.bytes_written += bytes;
        if let Some(limited) = &mut self.limited {
            limited.bytes_written = limited.bytes_written.saturating_add(bytes as i64);
        }
    }

    /// Bytes of cells read so far.
    pub fn bytes_read(&self) -> usize {
        self.bytes_read
    }

    /// Bytes of cells requested to be written so far.
    pub fn bytes_written(&self) -> usize {
        self.bytes_written
    }

    /// Bytes that may be read, as of before the call.
    pub fn read_available(&self) -> u64 {
        self.limited.as_ref().map_or(u64::MAX, |limited| limited.read_available.max(0) as u64)
    }
}

impl Drop for Operation {
    #[inline]
    fn drop(&mut self) {
        if let Some(limited) = self.limited.take() {
            limited.settle();
        }
    }
}

impl LimitedOperation {
    /// Charges the usage beyond the estimate to the limits, or returns the unused part. A separate
    /// function, so that calls without quotas do not pay for it.
    #[cold]
    fn settle(&self) {
        let difference = |bytes, taken: Usage, unit_bytes| Usage {
            requests: 0,
            bytes: bytes - taken.bytes,
            units: units(bytes, unit_bytes) - taken.units,
        };
        let write = difference(self.bytes_written, self.write, self.options.write_unit_bytes);
        let read = difference(self.bytes_read, self.read, self.options.read_unit_bytes);
        self.limits.iter().for_each(|limit| limit.consume(write, read));
    }
}

fn usage(requests: i64, bytes: i64, unit_bytes: i64) -> Usage {
    Usage { requests, bytes, units: units(bytes, unit_bytes) }
}

fn units(bytes: i64, unit_bytes: i64) -> i64 {
    bytes.div_euclid(unit_bytes.max(1)) + i64::from(bytes % unit_bytes.max(1) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quotas::limiter::Refill;

    const OPTIONS: QuotaOptions = QuotaOptions {
        refresh_ms: 1,
        refill: Refill::Average,
        read_unit_bytes: 1024,
        write_unit_bytes: 1024,
    };

    #[test]
    fn settling_returns_unused_and_charges_excess_usage() {
        let bytes = proto::TimedQuota {
            time_unit: proto::TimeUnit::Hours.into(),
            soft_limit: Some(1000),
            ..Default::default()
        };
        let message = proto::Throttle { read_size: Some(bytes), ..Default::default() };
        let limit = Arc::new(Throttle::new(&message, Refill::Average).unwrap());
        let get = || {
            let planned = || PlannedWork { gets: 1, ..PlannedWork::default() };
            admit(&OPTIONS, vec![limit.clone()], None, false, planned, 0)
        };
        let mut operation = get().unwrap();
        assert_eq!(limit.read_available(), 900);
        operation.record_read(30);
        drop(operation);
        assert_eq!(limit.read_available(), 970);
        let mut operation = get().unwrap();
        assert_eq!(operation.read_available(), 970);
        operation.record_read(3000);
        drop(operation);
        assert_eq!(limit.read_available(), -2030);
        assert!(get().is_err());
    }

    #[test]
    fn a_started_unit_counts() {
        assert_eq!([0, 1, 1024, 1025].map(|bytes| units(bytes, 1024)), [0, 1, 1, 2]);
    }
}
