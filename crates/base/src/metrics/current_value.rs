//! Current values as attributes.

use crate::metrics::{Declared, Kind, Number, Scope};

/// A field of [`current_values`](crate::current_values).
pub trait CurrentValue {
    /// The kind it is declared as.
    const KIND: Kind;
    /// Shows the value.
    fn show(&self, declared: &Declared, scope: &mut Scope<'_>);
}

/// A current value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauge<N>(pub N);

/// A number that only grows and is counted elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted(pub u64);

/// A text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tag(pub String);

impl<N: Copy + Into<Number>> CurrentValue for Gauge<N> {
    const KIND: Kind = Kind::Gauge;

    fn show(&self, declared: &Declared, scope: &mut Scope<'_>) {
        scope.gauge(declared, "", self.0);
    }
}

impl CurrentValue for Counted {
    const KIND: Kind = Kind::Counter;

    fn show(&self, declared: &Declared, scope: &mut Scope<'_>) {
        scope.counter(declared, "", self.0);
    }
}

impl CurrentValue for Tag {
    const KIND: Kind = Kind::Tag;

    fn show(&self, declared: &Declared, scope: &mut Scope<'_>) {
        scope.tag(declared, &self.0);
    }
}

impl<N> From<N> for Gauge<N> {
    fn from(value: N) -> Gauge<N> {
        Gauge(value)
    }
}

impl From<usize> for Gauge<u64> {
    fn from(value: usize) -> Gauge<u64> {
        Gauge(value as u64)
    }
}

impl From<u64> for Counted {
    fn from(value: u64) -> Counted {
        Counted(value)
    }
}

impl From<&str> for Tag {
    fn from(text: &str) -> Tag {
        Tag(text.to_owned())
    }
}

impl From<String> for Tag {
    fn from(text: String) -> Tag {
        Tag(text)
    }
}
