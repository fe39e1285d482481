//! A list of names and values.

use maud::{Markup, html};

use crate::Value;
use crate::section::headed;

/// A list of names and values.
pub struct Facts {
    /// Heading.
    pub heading: String,
    /// Names and values, in order.
    pub facts: Vec<(String, Value)>,
}

impl Facts {
    /// An empty list.
    pub fn new(heading: &str) -> Facts {
        Facts { heading: heading.to_owned(), facts: Vec::new() }
    }

    /// Appends a fact.
    pub fn and(mut self, name: &str, value: Value) -> Facts {
        self.facts.push((name.to_owned(), value));
        self
    }

    pub(super) fn render(&self) -> Markup {
        let list = html! {
            dl class="card facts" { @for (name, value) in &self.facts { div { dt { (name) } dd { (value.render()) } } } }
        };
        headed(&self.heading, None, &list)
    }
}
