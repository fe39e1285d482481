//! Why an expression cannot be used.

use std::borrow::Cow;

/// An expression that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not an expression of Java's grammar.
    #[error("{what} near index {at}")]
    Syntax {
        /// Java's description.
        what: Cow<'static, str>,
        /// The character before which the parser stopped.
        at: usize,
    },
    /// Larger than a client may make it.
    #[error("the {0} of the expression exceeds the limit")]
    TooLarge(&'static str),
    /// In Java's grammar, but not implemented.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
}

/// A search that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matching exceeds the limit of {limit} steps")]
pub struct TooManySteps {
    /// Steps that the search could take.
    pub limit: u64,
}
