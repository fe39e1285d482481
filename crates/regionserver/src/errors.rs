//! What a region's error is to a client: the one place where the engine's errors become Java exceptions.

use engine::Error;
use wire::exception::{JavaException, class};

/// The exception for an error of a region.
pub fn java_exception(error: &Error) -> JavaException {
    let message = error.to_string();
    match error {
        Error::NotServing { .. } => JavaException::new(class::NOT_SERVING_REGION, message),
        Error::WrongRegion { .. } => JavaException::new(class::WRONG_REGION, message),
        Error::NoSuchFamily { .. } => JavaException::new(class::NO_SUCH_COLUMN_FAMILY, message),
        Error::TooBusy { .. } => JavaException::new(class::REGION_TOO_BUSY, message),
        Error::RowTooBig { .. } => JavaException::new(class::ROW_TOO_BIG, message),
        Error::NoRoom { .. } => JavaException::new(class::CALL_QUEUE_TOO_BIG, message),
        Error::Abandoned => JavaException::new(class::CALLER_DISCONNECTED, message),
        Error::ReadOnly { .. } => JavaException::do_not_retry("region is read only"),
        Error::BadRequest { .. } => JavaException::do_not_retry(message),
        Error::Corrupt { .. } => JavaException::new(class::CORRUPT_HFILE, message),
        Error::Unsupported { .. } => JavaException::unsupported(message),
        Error::Fs(_) | Error::Incompatible { .. } => JavaException::io(message),
        // The log is gone and this server with it: the client looks for the region elsewhere.
        Error::Log { .. } => JavaException::new(class::REGION_SERVER_ABORTED, message),
    }
}
