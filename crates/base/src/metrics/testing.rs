//! Collects what is shown, for tests.

use crate::metrics::{Chunks, Name, Number, Reader};

/// The whole text that `write` writes.
pub(crate) fn text_of(write: impl FnOnce(Chunks)) -> String {
    String::from_utf8(Chunks::collected(write)).unwrap()
}

/// All beans shown, and the attributes of all beans together.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) beans: Vec<String>,
    attributes: Vec<(String, String)>,
}

impl Shown {
    /// The value of the attribute, as text.
    pub(crate) fn of(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// The names of all attributes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(|(name, _)| name.as_str())
    }
}

impl Reader for Shown {
    fn begin(&mut self, bean: &str, _: &str) {
        self.beans.push(bean.to_owned());
    }

    fn tag(&mut self, name: Name<'_>, text: &str) {
        self.attributes.push((format!("tag.{}", name.pieces().concat()), text.to_owned()));
    }

    fn counter(&mut self, name: Name<'_>, value: u64) {
        self.attributes.push((name.pieces().concat(), value.to_string()));
    }

    fn gauge(&mut self, name: Name<'_>, value: Number) {
        let text = match value {
            Number::Int(value) => value.to_string(),
            Number::Float(value) => format!("{value:?}"),
        };
        self.attributes.push((name.pieces().concat(), text));
    }

    fn end(&mut self) {}
}
