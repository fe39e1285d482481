//! Errors of commands.

/// A position in the source, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    /// In characters.
    pub(crate) column: usize,
}

impl Position {
    pub(crate) const START: Position = Position { line: 1, column: 1 };

    /// The position after the character `passed`.
    pub(crate) fn after(self, passed: char) -> Position {
        match passed {
            '\n' => Position { line: self.line + 1, column: 1 },
            _ => Position { line: self.line, column: self.column + 1 },
        }
    }
}

/// The source is not valid in the shell's language.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("line {}, column {}: {message}", .at.line, .at.column)]
pub(crate) struct SyntaxError {
    pub(crate) at: Position,
    pub(crate) message: String,
    /// More source may complete it: a quote or bracket is still open at the end.
    pub(crate) incomplete: bool,
}

/// A command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShellError {
    /// The arguments are invalid. Nothing was done.
    #[error("{0}")]
    Usage(String),
    /// HBase's shell supports it, this shell does not yet. Nothing was done.
    #[error("{0} is not supported yet")]
    Unsupported(String),
    /// The state of the cluster forbids it. The message is that of HBase's shell.
    #[error("{0}")]
    Refused(String),
    /// The cluster returned an error or did not respond.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The output is closed, so the shell ends.
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
}

pub(crate) type Result<T> = std::result::Result<T, ShellError>;

/// A [`ShellError::Usage`] with this message.
pub(crate) fn usage<T>(message: impl Into<String>) -> Result<T> {
    Err(ShellError::Usage(message.into()))
}
