//! Why a call of an endpoint failed.

use wire::exception::JavaException;

/// What a call of an endpoint gives.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call of an endpoint failed.
#[derive(Debug)]
pub enum Error {
    /// The region says so: the server answers as to a read or a write that fails in this way.
    Region(engine::Error),
    /// The endpoint says so, by the exception that HBase's throws.
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
