//! Filters of lines: `FIELD=part`, `==`, `>`, `>=`, `<`, `<=`, negated by a leading `!`.

use std::cmp::Ordering;
use std::fmt;

use super::field::Field;
use super::record::Record;
use super::value::{Case, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// The displayed value contains the text.
    Contains,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Operator {
    /// Longer signs come first, because the first match wins.
    const ALL: [(&str, Operator); 6] = [
        ("==", Operator::Equal),
        (">=", Operator::GreaterOrEqual),
        ("<=", Operator::LessOrEqual),
        ("=", Operator::Contains),
        (">", Operator::Greater),
        ("<", Operator::Less),
    ];

    fn sign(self) -> &'static str {
        let found = Operator::ALL.iter().find(|(_, operator)| *operator == self);
        found.map_or("", |(sign, _)| sign)
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Operator::Contains | Operator::Equal => order.is_eq(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
        }
    }
}

/// A condition on one field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    pub(super) field: Field,
    operator: Operator,
    value: Value,
    /// The value as written, for [`Operator::Contains`] and for display.
    text: String,
    case: Case,
    is_negated: bool,
}

impl Filter {
    /// A filter that passes records whose field equals `value`.
    pub(super) fn equal(field: Field, value: Value) -> Filter {
        let text = value.text();
        Filter { field, operator: Operator::Equal, value, text, case: Case::Matters, is_negated: false }
    }

    /// Parses a filter on one of `fields`. Names of fields are case-insensitive.
    ///
    /// # Errors
    /// A message for the user, if the filter is invalid.
    pub(super) fn parse(text: &str, fields: &[Field], case: Case) -> Result<Filter, String> {
        let text = text.trim();
        let (is_negated, rest) = match text.strip_prefix('!') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let at = rest.find(['=', '<', '>']);
        let at =
            at.ok_or_else(|| format!("invalid filter '{text}': expected FIELD=VALUE, or ==, <, <=, >, >="))?;
        let (name, rest) = rest.split_at(at);
        let field = named(name, fields)?;
        let operator =
            Operator::ALL.iter().find_map(|(sign, operator)| Some((operator, rest.strip_prefix(sign)?)));
        let (operator, written) = operator.ok_or_else(|| format!("no operator before '{rest}'"))?;
        let written = written.trim();
        let value = match operator {
            Operator::Contains => Value::Text(written.to_string()),
            _ => {
                field.kind().read(written).ok_or_else(|| format!("{} cannot be '{written}'", field.head()))?
            }
        };
        let text = written.to_string();
        Ok(Filter { field, operator: *operator, value, text, case, is_negated })
    }

    /// Whether the filter passes a record. A record without the field does not pass.
    pub(super) fn passes(&self, record: &Record) -> bool {
        let Some(value) = record.get(self.field) else { return false };
        let holds = match (self.operator, self.case) {
            (Operator::Contains, Case::Matters) => value.text().contains(&self.text),
            (Operator::Contains, Case::Ignored) => {
                value.text().to_lowercase().contains(&self.text.to_lowercase())
            }
            _ => self.operator.holds(value.compare(&self.value, self.case)),
        };
        holds != self.is_negated
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.is_negated { "!" } else { "" };
        write!(f, "{not}{}{}{}", self.field.head(), self.operator.sign(), self.text)
    }
}

/// The field with this column header.
///
/// # Errors
/// A message that lists the valid names, if there is no such field.
pub(super) fn named(name: &str, fields: &[Field]) -> Result<Field, String> {
    let name = name.trim();
    let found = fields.iter().find(|field| field.head().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        let heads: Vec<&str> = fields.iter().map(|field| field.head()).collect();
        format!("unknown field '{name}'; expected one of {}", heads.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [Field; 4] = [Field::Table, Field::Requests, Field::StoreFileSize, Field::RegionCount];

    fn passes(filter: &str, case: Case) -> bool {
        let record = Record::of([
            (Field::Table, Value::Text("Users".into())),
            (Field::Requests, Value::Rate(99.6)),
            (Field::StoreFileSize, Value::Megabytes(2048.0)),
        ]);
        Filter::parse(filter, &FIELDS, case).unwrap().passes(&record)
    }

    #[test]
    fn filters_compare_by_the_kind_of_their_field() {
        for filter in
            ["TABLE=ser", "!TABLE==User", "#REQ/S==100", "#REQ/S>=100", "SF>1.5GB", "SF<2049", "SF<=2GB"]
        {
            assert!(passes(filter, Case::Matters), "{filter}");
        }
        for filter in ["TABLE=users", "TABLE==users", "!TABLE=Us", "#REQ/S>100", "SF<2GB", "#REGION>0"] {
            assert!(!passes(filter, Case::Matters), "{filter}");
        }
        assert!(passes("TABLE=USERS", Case::Ignored) && passes("table==users", Case::Ignored));
    }

    #[test]
    fn invalid_filters_are_reported() {
        let refused = |text: &str, result: &str| {
            let error = Filter::parse(text, &FIELDS, Case::Matters).unwrap_err();
            assert!(error.contains(result), "{text}: {error}");
        };
        refused("TABLE", "invalid filter");
        refused("", "invalid filter");
        refused("X=1", "unknown field 'X'; expected one of TABLE, #REQ/S");
        refused("#REQ/S>fast", "#REQ/S cannot be 'fast'");
    }

    #[test]
    fn a_filter_is_shown_as_it_was_written() {
        for text in ["!TABLE==x", "#REQ/S>=5", "SF<1GB", "TABLE="] {
            assert_eq!(Filter::parse(text, &FIELDS, Case::Matters).unwrap().to_string(), text);
        }
    }
}
