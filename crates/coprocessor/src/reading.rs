//! A scan of a region for an endpoint: from its begin to its end in one call, however long that takes.

use std::sync::Arc;
use std::time::Duration;

use base::env::Clock;
use cell::query::Scan;
use engine::Region;
use engine::region::RegionState;
use engine::scanner::{Deadline, Limits, RegionScanner, ResultSink, Stopped, drive};
use wire::exception::JavaException;

use crate::call::Call;
use crate::error::{Error, Result};

/// How often a scan looks whether it is still wanted, and lets go of memstores and files that its region has no more.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// A scan of a region at one read point.
pub(crate) struct Reading {
    region: Arc<Region>,
    scanner: RegionScanner,
    clock: Arc<dyn Clock>,
    deadline: Option<Duration>,
}

impl Reading {
    /// Begins for `call`; nothing is read yet.
    ///
    /// # Errors
    /// As [`Region::scanner`].
    pub(crate) fn begin(region: &Arc<Region>, scan: &Scan, call: Call<'_>) -> Result<Reading> {
        let scanner = region.scanner(scan)?;
        let clock = call.background.clock().clone();
        Ok(Reading { region: region.clone(), scanner, clock, deadline: call.deadline })
    }

    /// The scanner.
    pub(crate) fn scanner(&self) -> &RegionScanner {
        &self.scanner
    }

    /// Writes all results to `sink`, with breaks in which others have their turn.
    ///
    /// # Errors
    /// As [`drive`]. `NotServing` when the region closes meanwhile, and an exception that nobody hears once the call's time is over.
    pub(crate) async fn drive(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        loop {
            let (_, before) = self.scanner.rows_seen_and_returned();
            let at = self.clock.monotonic() + LOOK_PERIOD;
            let deadline = Some(Deadline { clock: self.clock.clone(), at });
            let mut limits = Limits { deadline, ..Limits::default() };
            let driven = drive(&mut self.scanner, &mut limits, sink).await;
            let (_, after) = self.scanner.rows_seen_and_returned();
            self.region.instruments().note_rows_scanned(after - before);
            if driven?.stopped == Stopped::Exhausted {
                return Ok(());
            }
            self.look()?;
        }
    }

    fn look(&mut self) -> Result<()> {
        if self.region.state() != RegionState::Serving {
            return Err(Error::Region(engine::Error::NotServing { region: self.region.name().clone() }));
        }
        if self.deadline.is_some_and(|deadline| deadline <= self.clock.monotonic()) {
            return Err(Error::Refused(JavaException::io("the client does not wait any more")));
        }
        if self.region.has_moved_on_from(&self.scanner) {
            drop(self.scanner.rest());
            self.region.wake(&mut self.scanner);
        }
        Ok(())
    }
}
