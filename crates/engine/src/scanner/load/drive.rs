//! Driving a scanner: loading what it misses, with breaks in which others have their turn.

use base::spent::{self, Use};
use base::turns;
use hfile::Stop;

use crate::error::{Error, Result};
use crate::scanner::region::RegionScanner;
use crate::scanner::sink::{Limits, Progress, ResultSink, Room, Stopped};

/// Calls `scanner` until a limit is reached: loads what it misses, and lets others run now and then.
///
/// A scanner that is driven again goes on where it stopped. Where the sink has no more room, it stops as if the limit of
/// bytes were reached.
///
/// # Errors
/// [`Error::Abandoned`] if the client of the call has gone. [`Error::NoRoom`] if the sink has no more room and what it has cannot be cut; [`Error::RowTooBig`].
/// [`Error::Corrupt`], [`Error::Fs`], [`Error::Unsupported`]: the scanner cannot go on. A result may be half written. The
/// same for [`Error::BadRequest`]: the filter met what it cannot judge.
pub async fn drive(
    scanner: &mut RegionScanner,
    limits: &mut Limits,
    sink: &mut dyn ResultSink,
) -> Result<Progress> {
    let (seen_before, _) = scanner.rows_seen_and_returned();
    if scanner.is_slow() {
        turns::leave_thread().await;
    }
    let driven = drive_on(scanner, limits, sink).await;
    spent::used(Use::Rows, scanner.rows_seen_and_returned().0 - seen_before);
    driven
}

async fn drive_on(
    scanner: &mut RegionScanner,
    limits: &mut Limits,
    sink: &mut dyn ResultSink,
) -> Result<Progress> {
    let mut is_away = scanner.is_slow();
    loop {
        match scanner.next(limits, sink) {
            Ok(Progress { stopped: Stopped::Slice, .. }) => {
                scanner.note_slice();
                let goes_on = match sink.room() {
                    Room::Enough => true,
                    Room::Full => scanner.stop_early(limits),
                    Room::Over => false,
                };
                if !goes_on {
                    return Err(Error::NoRoom { bytes: sink.bytes() });
                }
                match scanner.is_slow() && !is_away {
                    true => turns::leave_thread().await,
                    false => turns::pause().await,
                }
                is_away |= scanner.is_slow();
                if turns::is_abandoned() {
                    return Err(Error::Abandoned);
                }
            }
            Ok(progress) => return scanner.refused().map_or(Ok(progress), Err),
            Err(Stop::Failed(error)) => {
                scanner.note_damage(&error);
                return Err(error.into());
            }
            Err(Stop::Miss(miss)) => scanner.load(&miss).await?,
        }
    }
}
