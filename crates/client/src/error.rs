//! What can go wrong, told apart by what to do about it.

use cell::region::ServerName;
use cell::schema::TableName;
use wire::exception::{JavaException, class};

/// The result of a client's operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A server refused.
    #[error("{0}")]
    Remote(Box<JavaException>),
    /// A server could not be reached, or its answer did not come; it may have done what it was asked.
    #[error("{host}:{port}: {message}")]
    Connection {
        /// The server.
        host: String,
        /// Its port.
        port: u16,
        /// What happened.
        message: String,
    },
    /// There is no such table.
    #[error("table {0} does not exist")]
    TableNotFound(TableName),
    /// The table is disabled.
    #[error("table {0} is not enabled")]
    TableNotEnabled(TableName),
    /// The row's region is not served at this moment.
    #[error("no region of {table} serves row {}: {reason}", .row.escape_ascii())]
    NoRegion {
        /// The table.
        table: TableName,
        /// The row.
        row: bytes::Bytes,
        /// What `hbase:meta` says.
        reason: String,
    },
    /// The registry does not answer, or not with what is needed.
    #[error("the cluster is not found: {0}")]
    Registry(String),
    /// An answer that cannot be understood.
    #[error("an answer cannot be understood: {0}")]
    Malformed(String),
    /// It was tried often enough.
    #[error("given up after {attempts} tries; the last one: {last}")]
    Exhausted {
        /// How often it was tried.
        attempts: u32,
        /// How the last try failed.
        last: Box<Error>,
    },
    /// The procedure did not end in time; it goes on in the cluster.
    #[error("procedure {0} has not ended in time")]
    ProcedureTimedOut(u64),
    /// What several servers found cannot be put together.
    #[error(transparent)]
    Overflow(#[from] columnar::aggregate::Overflow),
    /// The snapshot was not taken in time; the cluster may still be at it.
    #[error("snapshot {0} has not been taken in time")]
    SnapshotTimedOut(String),
}

impl From<JavaException> for Error {
    fn from(exception: JavaException) -> Error {
        Error::Remote(Box::new(exception))
    }
}

/// What to do after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Nothing helps.
    Fail,
    /// The region is where it was thought to be: try there again.
    Again,
    /// The same, but leave the server more time.
    AgainLater,
    /// At once.
    AgainNow,
    /// The region may be elsewhere: forget where it was.
    Relocate,
    /// The region is there now.
    Moved(ServerName, i64),
    /// All regions of that server may be elsewhere.
    ServerGone,
    /// The scanner is gone, the region is not.
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

    /// Whether the server said this class.
    pub fn is_class(&self, java_class: wire::exception::JavaClass) -> bool {
        match self {
            Error::Remote(exception) => exception.is(java_class),
            Error::Exhausted { last, .. } => last.is_class(java_class),
            _ => false,
        }
    }
}

fn reaction_to(exception: &JavaException) -> Reaction {
    let is = |known: &[wire::exception::JavaClass]| known.iter().any(|class| exception.is(*class));
    if is(&[class::UNKNOWN_SCANNER, class::SCANNER_RESET, class::OUT_OF_ORDER_SCANNER_NEXT]) {
        return Reaction::Reopen;
    }
    if exception.is(class::REGION_MOVED) {
        return moved_to(&exception.message)
            .map_or(Reaction::Relocate, |(server, seq)| Reaction::Moved(server, seq));
    }
    if is(&[class::MULTI_ACTION_RESULT_TOO_LARGE]) {
        return Reaction::AgainNow;
    }
    if exception.server_overloaded || is(&[class::CALL_QUEUE_TOO_BIG, class::CALL_DROPPED]) {
        return Reaction::AgainLater;
    }
    if is(&[class::REGION_TOO_BUSY, class::RPC_THROTTLING]) {
        return Reaction::Again;
    }
    if is(&[class::REGION_SERVER_STOPPED, class::REGION_SERVER_ABORTED]) {
        return Reaction::ServerGone;
    }
    // A class that is known here decides; the flag speaks for those that are not.
    match class::by_name(&exception.class).map_or(exception.do_not_retry, |known| known.do_not_retry) {
        true => Reaction::Fail,
        false => Reaction::Relocate,
    }
}

/// Takes apart `Region moved to: hostname=H port=P startCode=S. As of locationSeqNum=N.`
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
        check(of(class::REGION_TOO_BUSY), Reaction::Again);
        check(of(class::CALL_QUEUE_TOO_BIG), Reaction::AgainLater);
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
    fn a_moved_region_is_found_in_the_words() {
        let server = ServerName { host: "h1".into(), port: 16020, start_code: 1_700_000_000_000 };
        check(JavaException::region_moved(&server, 42), Reaction::Moved(server, 42));
        check(JavaException::new(class::REGION_MOVED, "elsewhere"), Reaction::Relocate);
    }
}
