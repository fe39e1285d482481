//! Evaluation of conditions over vectors: the rows for which they are true, and false.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use crate::bits::Bits;
use crate::predicate::{Operator, Pattern, Predicate};
use crate::strings::Raws;
use crate::value::{Value, compare_reals};
use crate::vector::{Bounds, Values, Vector};

/// Result of a condition for each row: true, false, or unknown because of null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Rows for which it is true.
    pub yes: Bits,
    /// Rows for which it is false.
    pub no: Bits,
}

impl Truth {
    fn all(len: usize, is_true: bool) -> Truth {
        let (some, none) = (Bits::ones(len), Bits::zeros(len));
        if is_true { Truth { yes: some, no: none } } else { Truth { yes: none, no: some } }
    }

    /// Unknown for all rows.
    fn unknown(len: usize) -> Truth {
        Truth { yes: Bits::zeros(len), no: Bits::zeros(len) }
    }

    /// Of the rows with a value: true if `yes` is set, else false.
    fn of(mut yes: Bits, present: Option<&Bits>) -> Truth {
        let mut no = match present {
            Some(present) => {
                yes.and(present);
                present.clone()
            }
            None => Bits::ones(yes.len()),
        };
        no.and_not(&yes);
        Truth { yes, no }
    }
}

impl Predicate {
    /// Evaluates the condition for `len` rows of `columns`, for which it passed
    /// [`Predicate::check`].
    pub fn evaluate(&self, len: usize, columns: &[Arc<Vector>]) -> Truth {
        match self {
            Predicate::All(parts) => {
                let mut all = Truth::all(len, true);
                for part in parts {
                    let truth = part.evaluate(len, columns);
                    all.yes.and(&truth.yes);
                    all.no.or(&truth.no);
                }
                all
            }
            Predicate::Any(parts) => {
                let mut any = Truth::all(len, false);
                for part in parts {
                    let truth = part.evaluate(len, columns);
                    any.yes.or(&truth.yes);
                    any.no.and(&truth.no);
                }
                any
            }
            Predicate::Not(part) => {
                let Truth { yes, no } = part.evaluate(len, columns);
                Truth { yes: no, no: yes }
            }
            Predicate::Compare(at, operator, value) => compare(&columns[*at], *operator, value),
            Predicate::CompareColumns(left, operator, right) => {
                compare_columns(&columns[*left], *operator, &columns[*right])
            }
            Predicate::In(at, values) => is_in(&columns[*at], values),
            Predicate::IsNull(at) => {
                let column = &columns[*at];
                let has = column.present().cloned().unwrap_or_else(|| Bits::ones(len));
                let mut has_not = Bits::ones(len);
                has_not.and_not(&has);
                Truth { yes: has_not, no: has }
            }
            Predicate::Like(at, pattern) => like(&columns[*at], pattern),
        }
    }

    /// Whether the condition holds if there are no columns.
    pub fn holds_without_columns(&self) -> bool {
        self.evaluate(1, &[]).yes.get(0)
    }

    /// Whether the condition can hold for a row, given the bounds of `columns`.
    pub fn may_hold(&self, columns: &[Bounds]) -> bool {
        match self {
            Predicate::All(parts) => parts.iter().all(|part| part.may_hold(columns)),
            Predicate::Any(parts) => parts.iter().any(|part| part.may_hold(columns)),
            Predicate::Compare(at, operator, value) => may_compare(&columns[*at], *operator, value),
            Predicate::In(at, values) => {
                values.iter().any(|value| may_compare(&columns[*at], Operator::Equal, value))
            }
            Predicate::Not(_)
            | Predicate::CompareColumns(..)
            | Predicate::IsNull(_)
            | Predicate::Like(..) => true,
        }
    }
}

fn may_compare(bounds: &Bounds, operator: Operator, value: &Value) -> bool {
    let (least, greatest) = match bounds {
        Bounds::Unknown => return true,
        Bounds::AllNull => return false,
        Bounds::Between(least, greatest) => (least, greatest),
    };
    let (Some(low), Some(high)) = (least.compare(value), greatest.compare(value)) else { return false };
    match operator {
        Operator::Equal => low.is_le() && high.is_ge(),
        Operator::NotEqual => low.is_ne() || high.is_ne(),
        Operator::Less | Operator::LessOrEqual => operator.holds(low),
        Operator::Greater | Operator::GreaterOrEqual => operator.holds(high),
    }
}

fn compare(column: &Vector, operator: Operator, value: &Value) -> Truth {
    let len = column.len();
    let yes = match (column.values(), value) {
        (Values::Whole(values), Value::Whole(value)) => compare_numbers(values, operator, *value),
        (Values::Decimal(values), Value::Decimal(value)) => compare_numbers(values, operator, *value),
        (Values::Real(values), Value::Real(value)) => {
            let value = *value;
            Bits::of(len, |row| operator.holds(compare_reals(values[row], value)))
        }
        (Values::Raw(raws), Value::Raw(value)) => {
            match_raws(raws, |raw| operator.holds(raw.cmp(value.as_ref())))
        }
        // A comparison with null, or one that `check` rejects.
        _ => return Truth::unknown(len),
    };
    Truth::of(yes, column.present())
}

/// A separate loop for each operator, so that the compiler vectorizes each.
fn compare_numbers<T: Ord + Copy>(values: &[T], operator: Operator, value: T) -> Bits {
    let len = values.len();
    match operator {
        Operator::Equal => Bits::of(len, |row| values[row] == value),
        Operator::NotEqual => Bits::of(len, |row| values[row] != value),
        Operator::Less => Bits::of(len, |row| values[row] < value),
        Operator::LessOrEqual => Bits::of(len, |row| values[row] <= value),
        Operator::Greater => Bits::of(len, |row| values[row] > value),
        Operator::GreaterOrEqual => Bits::of(len, |row| values[row] >= value),
    }
}

/// With a dictionary, tests each distinct string once.
fn match_raws(raws: &Raws, holds: impl Fn(&[u8]) -> bool) -> Bits {
    match raws {
        Raws::Coded { codes, dictionary } => {
            let matches: Vec<bool> = (0..dictionary.len()).map(|code| holds(dictionary.get(code))).collect();
            Bits::of(codes.len(), |row| matches[codes[row] as usize])
        }
        Raws::Plain(strings) => Bits::of(strings.len(), |row| holds(strings.get(row))),
    }
}

fn compare_columns(left: &Vector, operator: Operator, right: &Vector) -> Truth {
    let len = left.len();
    let holds = |ordering: Ordering| operator.holds(ordering);
    let yes = match (left.values(), right.values()) {
        (Values::Whole(left), Values::Whole(right)) => Bits::of(len, |row| holds(left[row].cmp(&right[row]))),
        (Values::Decimal(left), Values::Decimal(right)) => {
            Bits::of(len, |row| holds(left[row].cmp(&right[row])))
        }
        (Values::Real(left), Values::Real(right)) => {
            Bits::of(len, |row| holds(compare_reals(left[row], right[row])))
        }
        (Values::Raw(left), Values::Raw(right)) => {
            Bits::of(len, |row| holds(left.get(row).cmp(right.get(row))))
        }
        _ => return Truth::unknown(len),
    };
    let mut present = left.present().cloned().unwrap_or_else(|| Bits::ones(len));
    if let Some(other) = right.present() {
        present.and(other);
    }
    Truth::of(yes, Some(&present))
}

fn is_in(column: &Vector, values: &[Value]) -> Truth {
    let len = column.len();
    let yes = match column.values() {
        Values::Whole(of) => {
            let listed: HashSet<i64> = values.iter().filter_map(Value::whole).collect();
            Bits::of(len, |row| listed.contains(&of[row]))
        }
        Values::Raw(raws) => {
            let listed: HashSet<&[u8]> = values.iter().filter_map(Value::raw).collect();
            match_raws(raws, |raw| listed.contains(raw))
        }
        _ => {
            let mut yes = Bits::zeros(len);
            values.iter().for_each(|value| yes.or(&compare(column, Operator::Equal, value).yes));
            yes
        }
    };
    let mut truth = Truth::of(yes, column.present());
    // A value that is not in the list may still equal the unknown one.
    if values.contains(&Value::Null) {
        truth.no = Bits::zeros(len);
    }
    truth
}

fn like(column: &Vector, pattern: &Pattern) -> Truth {
    match column.values() {
        Values::Raw(raws) => Truth::of(match_raws(raws, |raw| pattern.matches(raw)), column.present()),
        _ => Truth::unknown(column.len()),
    }
}
