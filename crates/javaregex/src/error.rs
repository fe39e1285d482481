//! Errors of compiling and searching.

use std::borrow::Cow;

/// An expression that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not valid in Java's grammar.
    #[error("{what} near index {at}")]
    Syntax {
        /// Java's error description.
        what: Cow<'static, str>,
        /// Index of the last character that the parser consumed.
        at: usize,
    },
    /// Exceeds a limit on the expression.
    #[error("the {0} of the expression exceeds the limit")]
    TooLarge(&'static str),
    /// Valid in Java's grammar, but not implemented.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
}

/// The search was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matching exceeds the limit of {limit} steps")]
pub struct TooManySteps {
    /// Step limit of the search.
    pub limit: u64,
}
