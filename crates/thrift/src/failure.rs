//! Why a call has no result.

use client::Error;
use proto::exception::{JavaClass, class};

use crate::message::ApplicationException;
use crate::protocol::Fault;
use crate::value::{Field, records};
use crate::writer::Writer;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Maximum bytes of a client's name or row key that an error message repeats.
const EXCERPT_BYTES_MAX: usize = 100;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// An `IOException`.
    Io { class: String, message: String, can_retry: bool },
    /// An `IllegalArgumentException`, if the method declares it.
    Argument(String),
    /// The table exists.
    Exists(String),
    /// Another Java exception, whose class and message clients do not see.
    Internal,
    /// The arguments are not in the protocol.
    Protocol(Fault),
    /// The service has no such method.
    UnknownMethod,
}

/// The exceptions that a method declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    Nothing,
    Io,
    IoAndArgument,
    IoArgumentAndExists,
}

records! {
    /// `IOError` and `TIOError`.
    IoError { 1 message: String, 2 can_retry: bool }
    /// `IllegalArgument`, `TIllegalArgument` and `AlreadyExists`.
    MessageError { 1 message: String }
}

/// How the messages of exceptions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageStyle {
    /// With the class of the exception.
    Class,
    /// With the exception's message.
    Plain,
}

impl Failure {
    pub(crate) fn io(message: impl Into<String>, can_retry: bool) -> Failure {
        Failure::Io { class: class::IO_EXCEPTION.name.into(), message: message.into(), can_retry }
    }

    /// An exception as servers send it: with its class in its message, too.
    pub(crate) fn of_class(class: JavaClass, message: &str) -> Failure {
        Failure::Io {
            class: class.name.into(),
            message: format!("{}: {message}", class.name),
            can_retry: !class.do_not_retry,
        }
    }

    /// An `IllegalArgumentException` of HBase's client.
    pub(crate) fn illegal(message: impl AsRef<str>) -> Failure {
        Failure::Argument(format!("java.lang.IllegalArgumentException: {}", message.as_ref()))
    }

    /// Writes the field of a declared exception; returns an undeclared one.
    pub(crate) fn encode(
        self,
        declared: Declared,
        style: MessageStyle,
        writer: &mut Writer,
    ) -> std::result::Result<(), Failure> {
        match (self, declared) {
            (Failure::Protocol(fault @ Fault::NoMemory), declared) if declared != Declared::Nothing => {
                Failure::io(fault.text(), true).encode(declared, style, writer)
            }
            (failure, Declared::Nothing) => Err(failure),
            (Failure::Io { class, message, can_retry }, _) => {
                let message = match style {
                    MessageStyle::Class => format!("{class}: {message}"),
                    MessageStyle::Plain => message,
                };
                IoError { message, can_retry }.write(1, writer);
                Ok(())
            }
            (Failure::Argument(message), Declared::IoAndArgument | Declared::IoArgumentAndExists) => {
                MessageError { message }.write(2, writer);
                Ok(())
            }
            (Failure::Exists(message), Declared::IoArgumentAndExists) => {
                MessageError { message }.write(3, writer);
                Ok(())
            }
            (failure, _) => Err(failure),
        }
    }

    /// The exception that clients see if the method does not declare one.
    pub(crate) fn exception(&self, method: &[u8]) -> ApplicationException {
        let method = excerpt(method);
        let (kind, message) = match self {
            Failure::UnknownMethod => {
                (ApplicationException::UNKNOWN_METHOD, format!("Invalid method name: '{method}'"))
            }
            Failure::Protocol(fault) => (ApplicationException::PROTOCOL_ERROR, fault.text().to_owned()),
            _ => (ApplicationException::INTERNAL_ERROR, format!("Internal error processing {method}")),
        };
        ApplicationException::new(kind, message)
    }
}

/// The start of a client's name or row key, for an error message.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    match bytes.get(..EXCERPT_BYTES_MAX) {
        Some(start) if bytes.len() > EXCERPT_BYTES_MAX => format!("{}...", start.escape_ascii()),
        _ => bytes.escape_ascii().to_string(),
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Protocol(fault)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let (class, message) = (error.java_class().to_owned(), error.java_message());
        // Exceptions of servers have their class in their message, too, and a stack trace, which is
        // omitted here.
        let message = match &error {
            Error::Remote(_) => format!("{class}: {}", message.lines().next().unwrap_or("")),
            _ => message,
        };
        Failure::Io { class, message, can_retry: !error.is_final() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_repeat_only_the_start_of_long_names() {
        assert_eq!(excerpt(b"row\xff"), "row\\xff");
        assert_eq!(excerpt(&[b'a'; 100]), "a".repeat(100));
        let exception = Failure::UnknownMethod.exception(&[b'a'; 1 << 20]);
        let message = format!("Invalid method name: '{}...'", "a".repeat(100));
        assert_eq!(exception.message, Some(message));
    }
}
