//! A complete scan of a region for an endpoint, in one call of any duration.

use std::sync::Arc;
use std::time::Duration;

use base::env::Clock;
use cell::query::Scan;
use engine::Region;
use engine::region::RegionState;
use engine::scanner::{Deadline, Limits, RegionScanner, ResultSink, Stopped, drive};
use proto::exception::JavaException;

use crate::call::Call;
use crate::error::{Error, Result};

/// Interval at which a scan checks whether it is still needed, and releases memstores and files
/// that its region no longer uses.
const CHECK_PERIOD: Duration = Duration::from_millis(100);

/// A scan of a region at one read point.
pub(crate) struct EndpointScan {
    region: Arc<Region>,
    scanner: RegionScanner,
    clock: Arc<dyn Clock>,
    deadline: Option<Duration>,
}

impl EndpointScan {
    /// Opens a scan for `call` without reading.
    ///
    /// # Errors
    /// As for [`Region::scanner`].
    pub(crate) fn open(region: &Arc<Region>, scan: &Scan, call: Call<'_>) -> Result<EndpointScan> {
        let scanner = region.scanner(scan)?;
        let clock = call.background.clock().clone();
        Ok(EndpointScan { region: region.clone(), scanner, clock, deadline: call.deadline })
    }

    /// The scanner.
    pub(crate) fn scanner(&self) -> &RegionScanner {
        &self.scanner
    }

    /// Writes all results to `sink`, yielding regularly.
    ///
    /// # Errors
    /// As for [`drive`]. `NotServing` if the region closes in the meantime. An exception, which no
    /// client receives, after the call's deadline.
    pub(crate) async fn drive(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        loop {
            let (_, before) = self.scanner.rows_read_and_returned();
            let at = self.clock.monotonic() + CHECK_PERIOD;
            let deadline = Some(Deadline { clock: self.clock.clone(), at });
            let mut limits = Limits { deadline, ..Limits::default() };
            let driven = drive(&mut self.scanner, &mut limits, sink).await;
            let (_, after) = self.scanner.rows_read_and_returned();
            self.region.instruments().count_rows_scanned(after - before);
            if driven?.stopped == Stopped::Exhausted {
                return Ok(());
            }
            self.check()?;
        }
    }

    fn check(&mut self) -> Result<()> {
        if self.region.state() != RegionState::Serving {
            return Err(Error::Region(engine::Error::NotServing { region: self.region.name().clone() }));
        }
        if self.deadline.is_some_and(|deadline| deadline <= self.clock.monotonic()) {
            return Err(Error::Refused(JavaException::io("the client no longer waits")));
        }
        if self.region.should_rest(&self.scanner) {
            drop(self.scanner.rest());
            self.region.wake(&mut self.scanner);
        }
        Ok(())
    }
}
