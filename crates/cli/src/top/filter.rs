//! Which lines are shown: `FIELD=part`, `==`, `>`, `>=`, `<`, `<=`, with `!` before it for the opposite.

use std::cmp::Ordering;
use std::fmt;

use super::field::Field;
use super::record::Record;
use super::value::{Case, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// Has it in what is shown.
    Contains,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Operator {
    /// Longer ones first, as they are looked for.
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
    /// As it was written, for what is contained in what is shown.
    text: String,
    case: Case,
    is_negated: bool,
}

impl Filter {
    /// The field is just that.
    pub(super) fn equal(field: Field, value: Value) -> Filter {
        let text = value.shown();
        Filter { field, operator: Operator::Equal, value, text, case: Case::Matters, is_negated: false }
    }

    /// Reads a filter of one of `fields`; their names are not looked at by case.
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub(super) fn parse(text: &str, fields: &[Field], case: Case) -> Result<Filter, String> {
        let text = text.trim();
        let (is_negated, rest) = match text.strip_prefix('!') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let at = rest.find(['=', '<', '>']);
        let at = at.ok_or_else(|| format!("'{text}' is no filter: write FIELD=VALUE, ==, <, <=, > or >="))?;
        let (name, rest) = rest.split_at(at);
        let field = named(name, fields)?;
        let operator =
            Operator::ALL.iter().find_map(|(sign, operator)| Some((operator, rest.strip_prefix(sign)?)));
        let (operator, written) = operator.ok_or_else(|| format!("'{rest}' begins with no operator"))?;
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

    /// Whether the record is shown. One without the field is not.
    pub(super) fn passes(&self, record: &Record) -> bool {
        let Some(value) = record.get(self.field) else { return false };
        let holds = match (self.operator, self.case) {
            (Operator::Contains, Case::Matters) => value.shown().contains(&self.text),
            (Operator::Contains, Case::Ignored) => {
                value.shown().to_lowercase().contains(&self.text.to_lowercase())
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

/// The field of a head.
///
/// # Errors
/// If there is none, with those that there are.
pub(super) fn named(name: &str, fields: &[Field]) -> Result<Field, String> {
    let name = name.trim();
    let found = fields.iter().find(|field| field.head().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        let heads: Vec<&str> = fields.iter().map(|field| field.head()).collect();
        format!("there is no field '{name}'; there are {}", heads.join(", "))
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
    fn what_is_no_filter_is_told() {
        let refused = |text: &str, told: &str| {
            let error = Filter::parse(text, &FIELDS, Case::Matters).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        };
        refused("TABLE", "no filter");
        refused("", "no filter");
        refused("X=1", "no field 'X'; there are TABLE, #REQ/S");
        refused("#REQ/S>fast", "#REQ/S cannot be 'fast'");
    }

    #[test]
    fn a_filter_is_shown_as_it_was_written() {
        for text in ["!TABLE==x", "#REQ/S>=5", "SF<1GB", "TABLE="] {
            assert_eq!(Filter::parse(text, &FIELDS, Case::Matters).unwrap().to_string(), text);
        }
    }
}
