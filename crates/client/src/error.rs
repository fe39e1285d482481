//! Errors, and the reaction to each.

use cell::region::ServerName;
use cell::schema::TableName;
use proto::exception::{JavaException, class};

/// Result of a client operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A server returned an exception.
    #[error("{0}")]
    Remote(Box<JavaException>),
    /// The server could not be reached, or its response did not arrive. It may have executed the
    /// call.
    #[error("{host}:{port}: {message}")]
    Connection {
        /// The server.
        host: String,
        /// Its port.
        port: u16,
        /// Description of the failure.
        message: String,
    },
    /// The table does not exist.
    #[error("table {0} does not exist")]
    TableNotFound(TableName),
    /// The table is disabled.
    #[error("table {0} is not enabled")]
    TableNotEnabled(TableName),
    /// The row's region is currently not served.
    #[error("no region of {table} serves row {}: {reason}", .row.escape_ascii())]
    NoRegion {
        /// The table.
        table: TableName,
        /// The row.
        row: bytes::Bytes,
        /// The reason according to `hbase:meta`.
        reason: String,
    },
    /// The registry does not respond, or lacks the required data.
    #[error("the cluster is not found: {0}")]
    Registry(String),
    /// A response cannot be decoded.
    #[error("invalid response: {0}")]
    Malformed(String),
    /// The retries are exhausted.
    #[error("failed after {attempts} attempts: {last}")]
    Exhausted {
        /// Number of attempts.
        attempts: u32,
        /// Error of the last attempt.
        last: Box<Error>,
    },
    /// The procedure did not end in time. It continues in the cluster.
    #[error("procedure {0} has not ended in time")]
    ProcedureTimedOut(u64),
    /// The results of several servers cannot be merged.
    #[error(transparent)]
    Overflow(#[from] columnar::aggregate::Overflow),
    /// The snapshot was not completed in time. The cluster may still be working on it.
    #[error("snapshot {0} has not completed in time")]
    SnapshotTimedOut(String),
}

impl From<JavaException> for Error {
    fn from(exception: JavaException) -> Error {
        Error::Remote(Box::new(exception))
    }
}

/// Reaction to a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Do not retry.
    Fail,
    /// Retry at the same location.
    Retry,
    /// Like `Retry`, with a longer pause for the overloaded server.
    RetryOverloaded,
    /// Retry without a pause.
    RetryImmediately,
    /// The region may have moved: forget its location and retry.
    Relocate,
    /// Retry at the server to which the region has moved.
    Moved(ServerName, i64),
    /// The server is gone: forget all its regions and retry.
    ServerGone,
    /// The scanner is lost, the region is not: open a new scanner.
    Reopen,
}

impl Error {
    pub(crate) fn reaction(&self) -> Reaction {
        match self {
            Error::Remote(exception) => reaction_to(exception),
            Error::Connection { .. } => Reaction::ServerGone,
            Error::NoRegion { .. } | Error::Registry(_) => Reaction::Relocate,
            _ => Reaction::Fail,
        }
    }

    /// Whether a lookup failed for a reason that is not of its table. Other lookups would fail too.
    pub(crate) fn stops_lookups(&self) -> bool {
        matches!(self, Error::Registry(_) | Error::Connection { .. } | Error::Exhausted { .. })
    }

    /// The Java class of the exception that HBase's client throws for this error.
    pub fn java_class(&self) -> &str {
        match self {
            Error::Remote(exception) => &exception.class,
            Error::TableNotFound(_) => class::TABLE_NOT_FOUND.name,
            Error::TableNotEnabled(_) => class::TABLE_NOT_ENABLED.name,
            Error::NoRegion { .. } => class::NOT_SERVING_REGION.name,
            Error::Exhausted { .. } => class::RETRIES_EXHAUSTED.name,
            Error::Connection { .. } => class::CONNECT_EXCEPTION.name,
            _ => class::IO_EXCEPTION.name,
        }
    }

    /// The message of that exception.
    pub fn java_message(&self) -> String {
        match self {
            Error::Remote(exception) => exception.message.clone(),
            Error::TableNotFound(table) => table.to_string(),
            Error::TableNotEnabled(table) => format!("{table} is disabled."),
            other => other.to_string(),
        }
    }

    /// Whether the cluster refused the call for a reason that a retry does not change.
    pub fn is_final(&self) -> bool {
        match self {
            Error::Exhausted { last, .. } => last.is_final(),
            Error::TableNotFound(_) | Error::TableNotEnabled(_) => true,
            Error::Remote(exception) => exception.do_not_retry,
            _ => false,
        }
    }

    /// Whether the server returned an exception of this class.
    pub fn is_class(&self, java_class: proto::exception::JavaClass) -> bool {
        match self {
            Error::Remote(exception) => exception.is(java_class),
            Error::Exhausted { last, .. } => last.is_class(java_class),
            _ => false,
        }
    }
}

fn reaction_to(exception: &JavaException) -> Reaction {
    let is = |known: &[proto::exception::JavaClass]| known.iter().any(|class| exception.is(*class));
    if is(&[class::UNKNOWN_SCANNER, class::SCANNER_RESET, class::OUT_OF_ORDER_SCANNER_NEXT]) {
        return Reaction::Reopen;
    }
    if exception.is(class::REGION_MOVED) {
        return moved_to(&exception.message)
            .map_or(Reaction::Relocate, |(server, seq)| Reaction::Moved(server, seq));
    }
    if is(&[class::MULTI_ACTION_RESULT_TOO_LARGE]) {
        return Reaction::RetryImmediately;
    }
    if exception.server_overloaded || is(&[class::CALL_QUEUE_TOO_BIG, class::CALL_DROPPED]) {
        return Reaction::RetryOverloaded;
    }
    if is(&[class::REGION_TOO_BUSY, class::RPC_THROTTLING]) {
        return Reaction::Retry;
    }
    if is(&[class::REGION_SERVER_STOPPED, class::REGION_SERVER_ABORTED]) {
        return Reaction::ServerGone;
    }
    // A known class decides; the flag decides for unknown classes.
    match class::by_name(&exception.class).map_or(exception.do_not_retry, |known| known.do_not_retry) {
        true => Reaction::Fail,
        false => Reaction::Relocate,
    }
}

/// Parses `Region moved to: hostname=H port=P startCode=S. As of locationSeqNum=N.`
fn moved_to(message: &str) -> Option<(ServerName, i64)> {
    let rest = message.split_once("hostname=")?.1;
    let (host, rest) = rest.split_once(" port=")?;
    let (port, rest) = rest.split_once(" startCode=")?;
    let (start_code, rest) = rest.split_once(". As of locationSeqNum=")?;
    let seq_num = rest.split('.').next()?;
    let server =
        ServerName { host: host.to_string(), port: port.parse().ok()?, start_code: start_code.parse().ok()? };
    Some((server, seq_num.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(exception: JavaException, expected: Reaction) {
        assert_eq!(Error::from(exception.clone()).reaction(), expected, "{exception}");
    }

    #[test]
    fn reactions_are_those_of_hbases_client() {
        let of = |class| JavaException::new(class, "m");
        check(of(class::NOT_SERVING_REGION), Reaction::Relocate);
        check(of(class::REGION_TOO_BUSY), Reaction::Retry);
        check(of(class::CALL_QUEUE_TOO_BIG), Reaction::RetryOverloaded);
        check(of(class::REGION_SERVER_STOPPED), Reaction::ServerGone);
        check(of(class::UNKNOWN_SCANNER), Reaction::Reopen);
        check(of(class::NO_SUCH_COLUMN_FAMILY), Reaction::Fail);
        check(JavaException::io("disk"), Reaction::Relocate);
        check(
            JavaException { class: "org.example.New".into(), ..JavaException::do_not_retry("m") },
            Reaction::Fail,
        );
        check(
            JavaException { class: "org.example.New".into(), ..JavaException::io("m") },
            Reaction::Relocate,
        );
    }

    #[test]
    fn the_new_location_of_a_moved_region_is_parsed_from_the_message() {
        let server = ServerName { host: "h1".into(), port: 16020, start_code: 1_700_000_000_000 };
        check(JavaException::region_moved(&server, 42), Reaction::Moved(server, 42));
        check(JavaException::new(class::REGION_MOVED, "elsewhere"), Reaction::Relocate);
    }
}
