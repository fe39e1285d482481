//! Errors of endpoint calls.

use proto::exception::JavaException;

/// Result of an endpoint call.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why an endpoint call failed.
#[derive(Debug)]
pub enum Error {
    /// Error of the region. The server reports it like that of a read or a write.
    Region(engine::Error),
    /// Error of the endpoint: the exception that HBase's endpoint throws.
    Refused(JavaException),
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Error {
        Error::Region(error)
    }
}

impl From<JavaException> for Error {
    fn from(exception: JavaException) -> Error {
        Error::Refused(exception)
    }
}
