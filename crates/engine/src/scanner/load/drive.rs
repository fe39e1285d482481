//! Drives a scanner: loads the blocks that it misses, with pauses in which other calls run.

use base::spent::{self, Use};
use base::turns;
use hfile::Stop;

use crate::error::{Error, Result};
use crate::scanner::region::RegionScanner;
use crate::scanner::sink::{Limits, Progress, ResultSink, SinkMemory, Stopped};

/// Calls `scanner` until a limit is reached. Loads blocks that it misses, and pauses regularly so
/// that other calls can run.
///
/// A scanner can be driven again and then resumes where it stopped. If the sink is out of memory,
/// the scanner stops as if the limit of bytes were reached.
///
/// # Errors
/// * [`Error::Abandoned`] if the client of the call has disconnected.
/// * [`Error::OutOfMemory`] if the sink is out of memory and its results cannot be cut.
/// * [`Error::RowTooBig`].
/// * [`Error::Corrupt`], [`Error::Fs`], [`Error::Unsupported`]: the scanner cannot continue. The
///   sink may hold half a result.
/// * [`Error::BadRequest`]: the filter met a cell that it cannot judge. The sink may hold half a
///   result.
pub async fn drive(
    scanner: &mut RegionScanner,
    limits: &mut Limits,
    sink: &mut dyn ResultSink,
) -> Result<Progress> {
    let (read_before, _) = scanner.rows_read_and_returned();
    if scanner.is_slow() {
        turns::leave_thread().await;
    }
    let driven = drive_until_stopped(scanner, limits, sink).await;
    spent::used(Use::Rows, scanner.rows_read_and_returned().0 - read_before);
    driven
}

async fn drive_until_stopped(
    scanner: &mut RegionScanner,
    limits: &mut Limits,
    sink: &mut dyn ResultSink,
) -> Result<Progress> {
    let mut left_thread = scanner.is_slow();
    let mut delivery = scanner.delivery();
    loop {
        let next = match &mut delivery {
            None => scanner.next(limits, sink),
            Some(delivery) => {
                let next = scanner.next(limits, &mut delivery.holding(sink));
                if next.is_ok() {
                    // Boxed, so that the futures of other reads stay small.
                    Box::pin(delivery.deliver(sink)).await?;
                }
                next
            }
        };
        match next {
            Ok(Progress { stopped: Stopped::Slice, .. }) => {
                scanner.count_slice();
                let may_continue = match sink.memory() {
                    SinkMemory::Enough => true,
                    SinkMemory::Full => scanner.stop_early(limits),
                    SinkMemory::Exceeded => false,
                };
                if !may_continue {
                    return Err(Error::OutOfMemory { bytes: sink.bytes() });
                }
                match scanner.is_slow() && !left_thread {
                    true => turns::leave_thread().await,
                    false => turns::pause().await,
                }
                left_thread |= scanner.is_slow();
                if turns::is_abandoned() {
                    return Err(Error::Abandoned);
                }
            }
            Ok(progress) => return scanner.failure().map_or(Ok(progress), Err),
            Err(Stop::Failed(error)) => {
                scanner.record_damage(&error);
                return Err(error.into());
            }
            Err(Stop::Miss(miss)) => scanner.load(&miss).await?,
        }
    }
}
