//! Why a page is not shown.

/// What is wrong with what was asked for; shown as a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// A sentence for a person.
    pub what: String,
}

impl Refusal {
    /// It cannot be meant so.
    pub fn bad(what: impl Into<String>) -> Refusal {
        Refusal { status: 400, what: what.into() }
    }

    /// There is no such thing, or no more.
    pub fn missing(what: impl Into<String>) -> Refusal {
        Refusal { status: 404, what: what.into() }
    }

    /// The heading of the page.
    pub(crate) fn heading(&self) -> &'static str {
        if self.status == 404 { "Not found" } else { "This cannot be shown" }
    }
}
