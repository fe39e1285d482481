//! Errors that are shown as a page.

/// An invalid request, or a missing page or object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The reason, as a sentence for the user.
    pub reason: String,
}

impl Refusal {
    /// The request is invalid.
    pub fn bad(reason: impl Into<String>) -> Refusal {
        Refusal { status: 400, reason: reason.into() }
    }

    /// The page or object does not exist, or no longer exists.
    pub fn missing(reason: impl Into<String>) -> Refusal {
        Refusal { status: 404, reason: reason.into() }
    }

    /// The heading of the error page.
    pub(crate) fn heading(&self) -> &'static str {
        if self.status == 404 { "Not found" } else { "Invalid request" }
    }
}
