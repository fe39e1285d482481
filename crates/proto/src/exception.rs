//! Java exceptions as clients understand them: by class name.
//!
//! The protocol carries exceptions in three forms, all built here: for a whole call
//! ([`ExceptionResponse`]), for one action of a multi ([`NameBytesPair`]), and for a procedure's
//! result ([`ForeignExceptionMessage`]). Services map their own errors to a [`JavaException`].

pub mod class;

use std::borrow::Cow;
use std::fmt;

use crate::{ExceptionResponse, ForeignExceptionMessage, GenericExceptionMessage, NameBytesPair};
use bytes::Bytes;
use cell::region::ServerName;
use cell::schema::TableName;

pub use class::JavaClass;

/// A Java exception: its class by name, and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaException {
    /// The full class name.
    pub class: Cow<'static, str>,
    /// The message, without the class; empty for none.
    pub message: String,
    /// Whether a retry cannot succeed.
    pub do_not_retry: bool,
    /// Where the region is now, if it moved.
    pub location: Option<(String, u16)>,
    /// Whether the client should wait longer before it retries.
    pub server_overloaded: bool,
}

/// The result of a service method: a message, or an exception for the client.
pub type Answer<T> = Result<T, JavaException>;

impl JavaException {
    /// An exception of one of the known classes.
    pub fn new(class: JavaClass, message: impl Into<String>) -> JavaException {
        JavaException {
            class: Cow::Borrowed(class.name),
            message: message.into(),
            do_not_retry: class.do_not_retry,
            location: None,
            server_overloaded: class.server_overloaded,
        }
    }

    /// A plain `DoNotRetryIOException`.
    pub fn do_not_retry(message: impl Into<String>) -> JavaException {
        JavaException::new(class::DO_NOT_RETRY_IO, message)
    }

    /// A plain `IOException`, which makes clients retry.
    pub fn io(message: impl Into<String>) -> JavaException {
        JavaException::new(class::IO_EXCEPTION, message)
    }

    /// `server` serves the region since it opened it at `sequence_id`. Clients parse this text.
    pub fn region_moved(server: &ServerName, sequence_id: i64) -> JavaException {
        let ServerName { host, port, start_code } = server;
        let message = format!(
            "Region moved to: hostname={host} port={port} startCode={start_code}. As of locationSeqNum={sequence_id}."
        );
        JavaException {
            location: Some((host.clone(), *port)),
            ..JavaException::new(class::REGION_MOVED, message)
        }
    }

    /// HBase 2.5's response to an unknown method.
    pub fn unknown_method(method: &str) -> JavaException {
        JavaException::do_not_retry(format!(
            "unable to read call parameter; java.lang.UnsupportedOperationException: {method}"
        ))
    }

    /// A method or feature that HBase has but this server lacks.
    pub fn unsupported(what: impl fmt::Display) -> JavaException {
        JavaException::do_not_retry(format!("java.lang.UnsupportedOperationException: {what}"))
    }

    /// The table does not exist.
    pub fn table_not_found(table: &TableName) -> JavaException {
        JavaException::new(class::TABLE_NOT_FOUND, table.to_string())
    }

    /// The table exists already.
    pub fn table_exists(table: &TableName) -> JavaException {
        JavaException::new(class::TABLE_EXISTS, table.to_string())
    }

    /// The table is not enabled.
    pub fn table_not_enabled(table: &TableName) -> JavaException {
        JavaException::new(class::TABLE_NOT_ENABLED, table.to_string())
    }

    /// The table is not enabled; it is in `state`.
    pub fn table_not_enabled_but(table: &TableName, state: impl fmt::Display) -> JavaException {
        JavaException::new(class::TABLE_NOT_ENABLED, format!("tableName={table}, state={state}"))
    }

    /// The table is not disabled.
    pub fn table_not_disabled(table: &TableName) -> JavaException {
        JavaException::new(class::TABLE_NOT_DISABLED, table.to_string())
    }

    /// The table is not disabled; it is in `state`.
    pub fn table_not_disabled_but(table: &TableName, state: impl fmt::Display) -> JavaException {
        JavaException::new(class::TABLE_NOT_DISABLED, format!("tableName={table}, state={state}"))
    }

    /// The table has no such family.
    pub fn no_such_column_family(message: impl Into<String>) -> JavaException {
        JavaException::new(class::NO_SUCH_COLUMN_FAMILY, message)
    }

    /// A rule of the server forbids the operation.
    pub fn constraint(message: impl Into<String>) -> JavaException {
        JavaException::new(class::CONSTRAINT, message)
    }

    /// Whether the exception is of this class.
    pub fn is(&self, class: JavaClass) -> bool {
        self.class == class.name
    }

    /// Decodes the exception of a whole call.
    pub fn from_response(response: &ExceptionResponse) -> JavaException {
        let class = response.exception_class_name().to_string();
        let message = message_of(&class, response.stack_trace()).to_string();
        let port = u16::try_from(response.port()).ok().filter(|port| *port > 0);
        JavaException {
            message,
            do_not_retry: response.do_not_retry(),
            location: port
                .filter(|_| response.hostname.is_some())
                .map(|port| (response.hostname().into(), port)),
            server_overloaded: response.server_overloaded(),
            class: class.into(),
        }
    }

    /// Decodes the exception of one action. Unknown classes count as retryable.
    pub fn from_pair(pair: &NameBytesPair) -> JavaException {
        let text = String::from_utf8_lossy(pair.value());
        let known = class::by_name(&pair.name);
        JavaException {
            class: pair.name.clone().into(),
            message: message_of(&pair.name, &text).to_string(),
            do_not_retry: known.is_some_and(|class| class.do_not_retry),
            location: None,
            server_overloaded: known.is_some_and(|class| class.server_overloaded),
        }
    }

    /// Decodes the exception of a procedure.
    pub fn from_foreign(foreign: &ForeignExceptionMessage) -> JavaException {
        let generic = foreign.generic_exception.clone().unwrap_or_default();
        let known = class::by_name(generic.class_name());
        JavaException {
            message: generic.message().to_string(),
            class: generic.class_name.unwrap_or_default().into(),
            do_not_retry: known.is_some_and(|class| class.do_not_retry),
            location: None,
            server_overloaded: known.is_some_and(|class| class.server_overloaded),
        }
    }
}

/// The message within a stack trace's text: everything after the class name up to the first stack
/// frame.
fn message_of<'a>(class: &str, text: &'a str) -> &'a str {
    let message = text.strip_prefix(class).map_or(text, |rest| rest.strip_prefix(": ").unwrap_or(rest));
    message.split("\n\tat ").next().unwrap_or(message).trim_end_matches('\n')
}

impl fmt::Display for JavaException {
    /// Prints `class: message`, as Java does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.class)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for JavaException {}

/// The text from which the client builds the exception's message: a stack trace without frames.
fn stack_trace(exception: &JavaException) -> String {
    format!("{exception}\n")
}

impl From<&JavaException> for ExceptionResponse {
    fn from(exception: &JavaException) -> ExceptionResponse {
        let (hostname, port) = match &exception.location {
            Some((host, port)) => (Some(host.clone()), Some(i32::from(*port))),
            None => (None, None),
        };
        ExceptionResponse {
            exception_class_name: Some(exception.class.to_string()),
            stack_trace: Some(stack_trace(exception)),
            hostname,
            port,
            do_not_retry: Some(exception.do_not_retry),
            server_overloaded: exception.server_overloaded.then_some(true),
        }
    }
}

impl From<&JavaException> for NameBytesPair {
    fn from(exception: &JavaException) -> NameBytesPair {
        NameBytesPair {
            name: exception.class.to_string(),
            value: Some(Bytes::from(stack_trace(exception).into_bytes())),
        }
    }
}

impl From<&JavaException> for ForeignExceptionMessage {
    fn from(exception: &JavaException) -> ForeignExceptionMessage {
        let generic = GenericExceptionMessage {
            class_name: Some(exception.class.to_string()),
            message: Some(exception.message.clone()),
            error_info: None,
            trace: Vec::new(),
        };
        ForeignExceptionMessage { source: None, generic_exception: Some(generic) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    /// HBase 2.5.10's exception in its response header (the delimited exception of a captured
    /// frame).
    #[test]
    fn response_is_hbases() {
        let text = "tbl,,1 is not online on h,1,2";
        let exception = JavaException::new(class::NOT_SERVING_REGION, text);
        let bytes = ExceptionResponse::from(&exception).encode_to_vec();
        let mut expected = vec![0x0a, 0x31];
        expected.extend_from_slice(b"org.apache.hadoop.hbase.NotServingRegionException");
        expected.extend_from_slice(&[0x12, 0x51]);
        expected.extend_from_slice(b"org.apache.hadoop.hbase.NotServingRegionException: ");
        expected.extend_from_slice(text.as_bytes());
        expected.extend_from_slice(b"\n\x28\x00");
        assert_eq!(bytes, expected);
    }

    #[test]
    fn moved_regions_are_told_as_clients_parse_them() {
        let server = ServerName { host: "h1".into(), port: 16020, start_code: 1_700_000_000_000 };
        let exception = JavaException::region_moved(&server, 42);
        assert_eq!(
            exception.message,
            "Region moved to: hostname=h1 port=16020 startCode=1700000000000. As of locationSeqNum=42."
        );
        let response = ExceptionResponse::from(&exception);
        assert_eq!((response.hostname(), response.port()), ("h1", 16020));
    }

    #[test]
    fn every_form_can_be_taken_back() {
        for class in class::ALL {
            let exception = JavaException::new(*class, "a message: with a colon");
            assert_eq!(JavaException::from_response(&(&exception).into()), exception);
            assert_eq!(JavaException::from_pair(&(&exception).into()), exception);
            assert_eq!(JavaException::from_foreign(&(&exception).into()), exception);
        }
    }

    #[test]
    fn stacks_of_real_servers_are_left_out() {
        let response = ExceptionResponse {
            exception_class_name: Some("a.B".into()),
            stack_trace: Some("a.B: line one\nline two\n\tat c.D.e(D.java:1)\n\tat c.D.f(D.java:2)\n".into()),
            ..Default::default()
        };
        assert_eq!(JavaException::from_response(&response).message, "line one\nline two");
    }
}
