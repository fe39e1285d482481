//! One call's part of the quotas: estimated before, settled behind.
//!
//! Source: HBase `DefaultOperationQuota`, `ExceedOperationQuota`.

use std::sync::Arc;

use wire::exception::Answer;

use crate::quotas::QuotaOptions;
use crate::quotas::throttle::{Throttle, Usage};

/// Bytes that a read or write of a row is thought to have.
const ROW_BYTES: i64 = 100;
/// Bytes that a call of a scan is thought to have.
const SCAN_BYTES: i64 = 1000;

/// What a call is about to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planned {
    /// Changes of rows.
    pub writes: usize,
    /// Reads of rows.
    pub gets: usize,
    /// Calls of scans.
    pub scans: usize,
}

/// A call that was admitted. What it used is settled when this is dropped.
pub struct Operation {
    bytes_read: usize,
    bytes_written: usize,
    bounded: Option<Box<Bounded>>,
}

struct Bounded {
    limits: Vec<Arc<Throttle>>,
    options: QuotaOptions,
    // Taken before the call.
    write: Usage,
    read: Usage,
    bytes_written: i64,
    bytes_read: i64,
    read_available: i64,
}

/// Admits a call that `bound` and the server's own limit bound. If those of the others may be exceeded, only the
/// server's counts, but what is used is taken from all that have it.
pub(super) fn admit(
    options: &QuotaOptions,
    bound: Vec<Arc<Throttle>>,
    of_server: Option<Arc<Throttle>>,
    exceed: bool,
    planned: impl FnOnce() -> Planned,
    now_ms: i64,
) -> Answer<Operation> {
    if bound.is_empty() && of_server.is_none() {
        return Ok(Operation::unbounded());
    }
    let Planned { writes, gets, scans } = planned();
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
    let bounded = Bounded { limits, options, write, read, bytes_written: 0, bytes_read: 0, read_available };
    Ok(Operation { bytes_read: 0, bytes_written: 0, bounded: Some(Box::new(bounded)) })
}

impl Operation {
    /// One that nothing bounds.
    pub fn unbounded() -> Operation {
        Operation { bytes_read: 0, bytes_written: 0, bounded: None }
    }

    /// So many bytes of cells were read.
    pub fn has_read(&mut self, bytes: usize) {
        self.bytes_read += bytes;
        if let Some(bounded) = &mut self.bounded {
            bounded.bytes_read = bounded.bytes_read.saturating_add(bytes as i64);
        }
    }

    /// So many bytes of cells were to be written.
    pub fn has_written(&mut self, bytes: usize) {
        self.bytes_written += bytes;
        if let Some(bounded) = &mut self.bounded {
            bounded.bytes_written = bounded.bytes_written.saturating_add(bytes as i64);
        }
    }

    /// Bytes of cells that were read so far.
    pub fn bytes_read(&self) -> usize {
        self.bytes_read
    }

    /// Bytes of cells that were to be written.
    pub fn bytes_written(&self) -> usize {
        self.bytes_written
    }

    /// Bytes that may be read, as it was before the call.
    pub fn read_available(&self) -> u64 {
        self.bounded.as_ref().map_or(u64::MAX, |bounded| bounded.read_available.max(0) as u64)
    }
}

impl Drop for Operation {
    #[inline]
    fn drop(&mut self) {
        if let Some(bounded) = self.bounded.take() {
            bounded.settle();
        }
    }
}

impl Bounded {
    /// Takes from the limits what was used beyond what was taken before, or gives back what was not used. Apart, so that a call
    /// that nothing bounds does not pay for it.
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
    fn what_was_not_used_comes_back_and_what_was_used_beyond_is_owed() {
        let bytes = proto::TimedQuota {
            time_unit: proto::TimeUnit::Hours.into(),
            soft_limit: Some(1000),
            ..Default::default()
        };
        let message = proto::Throttle { read_size: Some(bytes), ..Default::default() };
        let limit = Arc::new(Throttle::new(&message, Refill::Average).unwrap());
        let get = || {
            let planned = || Planned { gets: 1, ..Planned::default() };
            admit(&OPTIONS, vec![limit.clone()], None, false, planned, 0)
        };
        let mut operation = get().unwrap();
        assert_eq!(limit.read_available(), 900);
        operation.has_read(30);
        drop(operation);
        assert_eq!(limit.read_available(), 970);
        let mut operation = get().unwrap();
        assert_eq!(operation.read_available(), 970);
        operation.has_read(3000);
        drop(operation);
        assert_eq!(limit.read_available(), -2030);
        assert!(get().is_err());
    }

    #[test]
    fn a_unit_that_is_begun_counts() {
        assert_eq!([0, 1, 1024, 1025].map(|bytes| units(bytes, 1024)), [0, 1, 1, 2]);
    }
}
