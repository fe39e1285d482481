//! Accepted value formats.

use std::fmt;

/// Which values an attribute accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// `true` or `false`, ignoring case.
    Boolean,
    /// An integer within bounds, inclusive.
    Integer(i64, i64),
    /// An integer within bounds, inclusive, or this word.
    IntegerOr(i64, i64, &'static str),
    /// A decimal number within bounds, inclusive.
    Decimal(f64, f64),
    /// One of these names, ignoring case.
    OneOf(&'static [&'static str]),
    /// One of these names, case-sensitive.
    Exactly(&'static [&'static str]),
    /// Any text.
    Text,
}

impl Form {
    /// Whether the attribute accepts `text`.
    pub fn accepts(&self, text: &str) -> bool {
        let is_within = |min: i64, max: i64| text.parse().is_ok_and(|number| (min..=max).contains(&number));
        match *self {
            Form::Boolean => ["true", "false"].iter().any(|name| name.eq_ignore_ascii_case(text)),
            Form::Integer(min, max) => is_within(min, max),
            Form::IntegerOr(min, max, word) => word == text || is_within(min, max),
            Form::Decimal(min, max) => text.parse().is_ok_and(|number| (min..=max).contains(&number)),
            Form::OneOf(names) => names.iter().any(|name| name.eq_ignore_ascii_case(text)),
            Form::Exactly(names) => names.contains(&text),
            Form::Text => true,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Form::Boolean => f.write_str("true or false"),
            Form::Integer(min, i64::MAX) => write!(f, "an integer of at least {min}"),
            Form::Integer(min, max) => write!(f, "an integer from {min} to {max}"),
            Form::IntegerOr(min, max, word) => write!(f, "an integer from {min} to {max}, or {word}"),
            Form::Decimal(min, f64::INFINITY) => write!(f, "a number of at least {min}"),
            Form::Decimal(min, max) => write!(f, "a number from {min} to {max}"),
            Form::OneOf(names) | Form::Exactly(names) => f.write_str(&listed(names)),
            Form::Text => f.write_str("text"),
        }
    }
}

/// Joins names to a list for a sentence: `a, b or c`.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => "nothing".into(),
        [""] => "the empty text".into(),
        [name] => (*name).into(),
        [names @ .., last] => format!("{} or {last}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_accepted() {
        let version = Form::Integer(1, 5);
        assert!(version.accepts("1") && version.accepts("5"));
        for text in ["0", "6", "", " 1", "1.0", "99999999999999999999"] {
            assert!(!version.accepts(text), "{text}");
        }
        let ratio = Form::Decimal(0.0, f64::INFINITY);
        assert!(ratio.accepts("1.2") && ratio.accepts("0") && !ratio.accepts("-1") && !ratio.accepts("NaN"));
        assert!(Form::Boolean.accepts("True") && !Form::Boolean.accepts("yes"));
        assert!(Form::OneOf(&["A"]).accepts("a") && !Form::Exactly(&["A"]).accepts("a"));
    }
}
