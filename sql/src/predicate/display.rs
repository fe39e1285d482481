//! Formats conditions for EXPLAIN.

use std::fmt;

use proto::grampus::Predicate;
use proto::grampus::predicate::Operator;

use crate::declaration::Declaration;
use crate::value::format_value;

/// A condition and the declaration with its column names.
pub struct PredicateDisplay<'a>(pub &'a Predicate, pub &'a Declaration);

impl fmt::Display for PredicateDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PredicateDisplay(predicate, declaration) = self;
        let name = |at: Option<u32>| &declaration.columns[at.unwrap_or_default() as usize].name;
        if let Some(list) = &predicate.all {
            return self.list(f, &list.predicate, " AND ", "true");
        }
        if let Some(list) = &predicate.any {
            return self.list(f, &list.predicate, " OR ", "false");
        }
        if let Some(part) = &predicate.not {
            return match part.is_null {
                Some(column) => write!(f, "{} IS NOT NULL", name(Some(column))),
                None => write!(f, "NOT ({})", PredicateDisplay(part, declaration)),
            };
        }
        if let Some(comparison) = &predicate.comparison {
            write!(f, "{} {} ", name(comparison.column), symbol(comparison.operator()))?;
            return match (&comparison.value, comparison.other_column) {
                (Some(value), _) => {
                    let column = &declaration.columns[comparison.column.unwrap_or_default() as usize];
                    f.write_str(&format_value(value, column))
                }
                (None, other) => f.write_str(name(other)),
            };
        }
        if let Some(list) = &predicate.r#in {
            let column = &declaration.columns[list.column.unwrap_or_default() as usize];
            let values: Vec<String> = list.value.iter().map(|value| format_value(value, column)).collect();
            return write!(f, "{} IN ({})", column.name, values.join(", "));
        }
        if let Some(like) = &predicate.like {
            let pattern = like.pattern.as_deref().unwrap_or_default();
            let pattern = String::from_utf8_lossy(pattern).replace('\'', "''");
            return write!(f, "{} LIKE '{pattern}'", name(like.column));
        }
        write!(f, "{} IS NULL", name(predicate.is_null))
    }
}

impl PredicateDisplay<'_> {
    fn list(
        &self,
        f: &mut fmt::Formatter<'_>,
        parts: &[Predicate],
        between: &str,
        without_any: &str,
    ) -> fmt::Result {
        if parts.is_empty() {
            return f.write_str(without_any);
        }
        for (at, part) in parts.iter().enumerate() {
            let separator = if at == 0 { "" } else { between };
            let shown = PredicateDisplay(part, self.1);
            match part.all.is_some() || part.any.is_some() {
                true => write!(f, "{separator}({shown})")?,
                false => write!(f, "{separator}{shown}")?,
            }
        }
        Ok(())
    }
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Equal => "=",
        Operator::NotEqual => "!=",
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
    }
}
