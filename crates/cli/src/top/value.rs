//! The value of a field: formatting, parsing, comparison, addition.

use std::cmp::Ordering;

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Count,
    Rate,
    Megabytes,
    Share,
    Percent,
}

impl Kind {
    /// Whether columns of this kind are aligned right.
    pub(super) fn is_number(self) -> bool {
        self != Kind::Text
    }

    /// Parses a value of a filter. Sizes may have a unit; the default is MB.
    pub(super) fn read(self, text: &str) -> Option<Value> {
        let text = text.trim();
        Some(match self {
            Kind::Text => Value::Text(text.to_string()),
            Kind::Count => Value::Count(text.parse().ok()?),
            Kind::Rate => Value::Rate(number(text)?),
            Kind::Megabytes => Value::Megabytes(megabytes(text)?),
            Kind::Share => Value::Share(number(text)?),
            Kind::Percent => Value::Percent(number(text.trim_end_matches('%'))?),
        })
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Units of sizes, in megabytes.
const UNITS: [(&str, f64); 5] =
    [("MB", 1.0), ("GB", 1024.0), ("TB", 1048576.0), ("PB", 1073741824.0), ("KB", 1.0 / 1024.0)];

fn megabytes(text: &str) -> Option<f64> {
    let upper = text.to_ascii_uppercase();
    let unit = UNITS.iter().find_map(|(unit, factor)| Some((upper.strip_suffix(unit)?, factor)));
    let (digits, factor) = unit.unwrap_or((&upper, &1.0));
    Some(number(digits.trim())? * factor)
}

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Count(u64),
    /// Per second.
    Rate(f64),
    Megabytes(f64),
    /// From 0 to 1.
    Share(f64),
    Percent(f64),
}

impl Value {
    /// The value as shown in the table.
    pub(super) fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Count(count) => count.to_string(),
            Value::Rate(rate) => format!("{rate:.0}"),
            Value::Megabytes(size) => format_size(*size),
            Value::Share(share) => format!("{share:.2}"),
            Value::Percent(percent) => format!("{percent:.2}%"),
        }
    }

    /// Adds a value of the same field. Text has no sum: the first one remains.
    pub(super) fn add(&mut self, other: &Value) {
        match (self, other) {
            (Value::Count(sum), Value::Count(more)) => *sum = sum.saturating_add(*more),
            (Value::Rate(sum), Value::Rate(more))
            | (Value::Megabytes(sum), Value::Megabytes(more))
            | (Value::Share(sum), Value::Share(more))
            | (Value::Percent(sum), Value::Percent(more)) => *sum += more,
            _ => {}
        }
    }

    /// Orders smaller values first. Rates are compared as displayed, so rates that look equal are
    /// equal.
    pub(super) fn compare(&self, other: &Value, case: Case) -> Ordering {
        match (self, other) {
            (Value::Text(one), Value::Text(two)) => match case {
                Case::Matters => one.cmp(two),
                Case::Ignored => one.to_lowercase().cmp(&two.to_lowercase()),
            },
            (Value::Count(one), Value::Count(two)) => one.cmp(two),
            (Value::Rate(one), Value::Rate(two)) => one.round().total_cmp(&two.round()),
            (Value::Megabytes(one), Value::Megabytes(two))
            | (Value::Share(one), Value::Share(two))
            | (Value::Percent(one), Value::Percent(two)) => one.total_cmp(two),
            // All values of a field have the same kind.
            _ => Ordering::Equal,
        }
    }
}

/// Whether comparisons are case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Matters,
    Ignored,
}

/// Formats a size with one decimal, in the largest unit in which it is at least 1.
fn format_size(megabytes: f64) -> String {
    let fits = UNITS[..4].iter().rev().find(|(_, factor)| megabytes >= *factor);
    let (unit, factor) = fits.unwrap_or(&UNITS[0]);
    format!("{:.1}{unit}", megabytes / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_their_units() {
        let shown = [
            (Value::Megabytes(0.0), "0.0MB"),
            (Value::Megabytes(20.0), "20.0MB"),
            (Value::Megabytes(1536.0), "1.5GB"),
            (Value::Megabytes(3.0 * 1024.0 * 1024.0), "3.0TB"),
            (Value::Rate(12.4), "12"),
            (Value::Share(1.0), "1.00"),
            (Value::Percent(33.333), "33.33%"),
        ];
        for (value, expected) in shown {
            assert_eq!(value.text(), expected);
        }
    }

    #[test]
    fn input_is_parsed_by_kind() {
        assert_eq!(Kind::Megabytes.read("1.5GB"), Some(Value::Megabytes(1536.0)));
        assert_eq!(Kind::Megabytes.read("512 kb"), Some(Value::Megabytes(0.5)));
        assert_eq!(Kind::Megabytes.read("7"), Some(Value::Megabytes(7.0)));
        assert_eq!(Kind::Percent.read("50%"), Some(Value::Percent(50.0)));
        for (kind, text) in [(Kind::Count, "x"), (Kind::Rate, "NaN"), (Kind::Megabytes, "MB")] {
            assert_eq!(kind.read(text), None, "{text}");
        }
    }

    #[test]
    fn rates_that_look_equal_are_equal() {
        let rate = |rate| Value::Rate(rate);
        assert_eq!(rate(1.6).compare(&rate(2.2), Case::Matters), Ordering::Equal);
        assert_eq!(rate(1.2).compare(&rate(2.2), Case::Matters), Ordering::Less);
    }
}
