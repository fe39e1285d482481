//! Converts engine errors to the Java exceptions that clients see. No other module does this.

use engine::Error;
use proto::exception::{JavaException, class};

/// The Java exception for an engine error.
pub fn java_exception(error: &Error) -> JavaException {
    let message = error.to_string();
    match error {
        Error::NotServing { .. } => JavaException::new(class::NOT_SERVING_REGION, message),
        Error::WrongRegion { .. } => JavaException::new(class::WRONG_REGION, message),
        Error::NoSuchFamily { .. } => JavaException::new(class::NO_SUCH_COLUMN_FAMILY, message),
        Error::TooBusy { .. } => JavaException::new(class::REGION_TOO_BUSY, message),
        Error::RowTooBig { .. } => JavaException::new(class::ROW_TOO_BIG, message),
        Error::OutOfMemory { .. } => JavaException::new(class::CALL_QUEUE_TOO_BIG, message),
        Error::Abandoned => JavaException::new(class::CALLER_DISCONNECTED, message),
        Error::ReadOnly { .. } => JavaException::do_not_retry("region is read only"),
        Error::BadRequest { .. } | Error::MobMissing { .. } => JavaException::do_not_retry(message),
        Error::Corrupt { .. } => JavaException::new(class::CORRUPT_HFILE, message),
        Error::Unsupported { .. } => JavaException::unsupported(message),
        Error::Fs(_) | Error::Incompatible { .. } => JavaException::io(message),
        // The log failed, so this server stops: the client must look up the region's new server.
        Error::Log { .. } => JavaException::new(class::REGION_SERVER_ABORTED, message),
    }
}
