//! Why a command did not do what it was asked.

/// A place in the source, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    /// In characters.
    pub(crate) column: usize,
}

impl Position {
    pub(crate) const START: Position = Position { line: 1, column: 1 };

    /// The place behind `passed`.
    pub(crate) fn after(self, passed: char) -> Position {
        match passed {
            '\n' => Position { line: self.line + 1, column: 1 },
            _ => Position { line: self.line, column: self.column + 1 },
        }
    }
}

/// The source is not in the shell's language.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("line {}, column {}: {message}", .at.line, .at.column)]
pub(crate) struct SyntaxError {
    pub(crate) at: Position,
    pub(crate) message: String,
    /// More source may make it right: something is still open at the end.
    pub(crate) incomplete: bool,
}

/// A command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShellError {
    /// It was asked wrongly; nothing was done.
    #[error("{0}")]
    Usage(String),
    /// It is known, and not there yet; nothing was done.
    #[error("{0} is not supported yet")]
    Unsupported(String),
    /// The state of the cluster forbids it, told in the shell's words.
    #[error("{0}")]
    Refused(String),
    /// The cluster said no, or nothing.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// Nobody reads what is printed: it is of no use to go on.
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
}

pub(crate) type Result<T> = std::result::Result<T, ShellError>;

/// Asked wrongly.
pub(crate) fn usage<T>(message: impl Into<String>) -> Result<T> {
    Err(ShellError::Usage(message.into()))
}
