//! Translates SQL conditions to the endpoint's predicates, if possible.
//!
//! A translation is exact, so the condition is not evaluated again. Columns are identified by their
//! indexes in the declaration; [`renumber`] converts these to the indexes of a request.

pub mod display;
mod literal;
pub mod range;

use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator};
use datafusion::scalar::ScalarValue;
use proto::grampus::Predicate;
use proto::grampus::predicate as message;
use wire::convert::columns::request::{CONDITIONS_MAX, PATTERN_BYTES_MAX};

use crate::declaration::Declaration;
pub use literal::is_widening;
use literal::{Bound, bound, literal};

/// Maximum nesting depth of conditions at the endpoint (`columnar::predicate::DEPTH_MAX`).
const DEPTH_MAX: usize = columnar::predicate::DEPTH_MAX;

/// Maximum number of parts and listed values that are pushed down: fewer than the endpoint accepts,
/// because some may be added.
const PARTS_MAX: usize = CONDITIONS_MAX - 1024;
/// Maximum size of one condition that only the servers evaluate. Of several larger ones, not all
/// may fit.
const PARTS_OF_SMALL_MAX: usize = PARTS_MAX / 4;

/// Translates a condition; `None` if it cannot be done exactly, or if the condition exceeds the
/// servers' limits.
pub fn translate(expr: &Expr, declaration: &Declaration) -> Option<Predicate> {
    let predicate = Translator { declaration }.translate(expr)?;
    (depth(&predicate) <= DEPTH_MAX / 2 && parts(&predicate) <= PARTS_MAX).then_some(predicate)
}

/// Whether the condition always fits.
pub fn is_small(predicate: &Predicate) -> bool {
    parts(predicate) <= PARTS_OF_SMALL_MAX
}

/// Selects the conditions to push down together: all small ones, and large ones while they fit.
pub fn select_fitting(mut predicates: Vec<Predicate>) -> Vec<Predicate> {
    predicates.sort_by_key(|predicate| !is_small(predicate));
    let mut left = PARTS_MAX;
    predicates.retain(|predicate| {
        let rest = left.checked_sub(parts(predicate));
        left = rest.unwrap_or(left);
        rest.is_some() || is_small(predicate)
    });
    predicates
}

/// The number of its parts; each listed value counts as one.
fn parts(predicate: &Predicate) -> usize {
    let lists = [&predicate.all, &predicate.any].into_iter().flatten();
    let inner = lists.flat_map(|list| &list.predicate).chain(predicate.not.as_deref());
    1 + predicate.r#in.as_ref().map_or(0, |list| list.value.len()) + inner.map(parts).sum::<usize>()
}

/// The conjunction of all conditions; `None` if there are none.
pub fn all(mut predicates: Vec<Predicate>) -> Option<Predicate> {
    match predicates.len() {
        0 | 1 => predicates.pop(),
        _ => Some(Predicate { all: Some(message::List { predicate: predicates }), ..Predicate::default() }),
    }
}

/// The parts of a conjunction.
pub fn conjuncts(predicate: &Predicate) -> &[Predicate] {
    match &predicate.all {
        Some(list) => &list.predicate,
        None => std::slice::from_ref(predicate),
    }
}

/// Replaces the indexes of columns.
pub fn renumber(predicate: &mut Predicate, map: &mut impl FnMut(u32) -> u32) {
    for list in [&mut predicate.all, &mut predicate.any].into_iter().flatten() {
        list.predicate.iter_mut().for_each(|part| renumber(part, map));
    }
    if let Some(part) = &mut predicate.not {
        renumber(part, map);
    }
    if let Some(comparison) = &mut predicate.comparison {
        comparison.column = comparison.column.map(&mut *map);
        comparison.other_column = comparison.other_column.map(&mut *map);
    }
    if let Some(list) = &mut predicate.r#in {
        list.column = list.column.map(&mut *map);
    }
    if let Some(like) = &mut predicate.like {
        like.column = like.column.map(&mut *map);
    }
    predicate.is_null = predicate.is_null.map(map);
}

fn depth(predicate: &Predicate) -> usize {
    let lists = [&predicate.all, &predicate.any].into_iter().flatten();
    let parts = lists.flat_map(|list| &list.predicate).chain(predicate.not.as_deref());
    1 + parts.map(depth).max().unwrap_or(0)
}

fn any(predicates: Vec<Predicate>) -> Predicate {
    Predicate { any: Some(message::List { predicate: predicates }), ..Predicate::default() }
}

fn not(predicate: Predicate) -> Predicate {
    Predicate { not: Some(Box::new(predicate)), ..Predicate::default() }
}

fn is_null(column: u32) -> Predicate {
    Predicate { is_null: Some(column), ..Predicate::default() }
}

fn comparison(comparison: message::Comparison) -> Predicate {
    Predicate { comparison: Some(comparison), ..Predicate::default() }
}

struct Translator<'a> {
    declaration: &'a Declaration,
}

impl Translator<'_> {
    fn translate(&self, expr: &Expr) -> Option<Predicate> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                self.and_or(left, *op, right)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                self.comparison_of(left, operator(*op)?, right)
            }
            Expr::Not(inner) => Some(not(self.translate(inner)?)),
            Expr::IsNull(inner) => Some(is_null(self.column(inner)?)),
            Expr::IsNotNull(inner) => Some(not(is_null(self.column(inner)?))),
            Expr::InList(list) => self.in_list(list),
            Expr::Between(between) => self.between(between),
            Expr::Like(like) => self.like(like),
            Expr::Column(_) => self.truth(expr, true),
            Expr::IsTrue(inner) => all(vec![not(is_null(self.column(inner)?)), self.truth(inner, true)?]),
            Expr::IsFalse(inner) => all(vec![not(is_null(self.column(inner)?)), self.truth(inner, false)?]),
            Expr::IsNotTrue(inner) => {
                Some(any(vec![is_null(self.column(inner)?), self.truth(inner, false)?]))
            }
            Expr::IsNotFalse(inner) => {
                Some(any(vec![is_null(self.column(inner)?), self.truth(inner, true)?]))
            }
            Expr::IsUnknown(inner) => Some(is_null(self.column(inner)?)),
            Expr::IsNotUnknown(inner) => Some(not(is_null(self.column(inner)?))),
            _ => None,
        }
    }

    /// AND and OR. Chains become one flat list to limit the nesting depth.
    fn and_or(&self, left: &Expr, op: Operator, right: &Expr) -> Option<Predicate> {
        let mut parts = Vec::new();
        for side in [left, right] {
            let part = self.translate(side)?;
            match (op, part) {
                (Operator::And, Predicate { all: Some(list), .. }) => parts.extend(list.predicate),
                (Operator::Or, Predicate { any: Some(list), .. }) => parts.extend(list.predicate),
                (_, part) => parts.push(part),
            }
        }
        match op {
            Operator::And => all(parts),
            _ => Some(listed_values(&parts).unwrap_or_else(|| any(parts))),
        }
    }

    fn comparison_of(&self, left: &Expr, op: message::Operator, right: &Expr) -> Option<Predicate> {
        match (self.column(left), self.column(right)) {
            (Some(left), Some(right)) => self.column_comparison(left, op, right),
            (Some(column), None) => self.value_comparison(column, op, literal(right)?),
            (None, Some(column)) => self.value_comparison(column, mirrored(op), literal(left)?),
            (None, None) => None,
        }
    }

    fn column_comparison(&self, left: u32, op: message::Operator, right: u32) -> Option<Predicate> {
        let column = |at: u32| &self.declaration.columns[at as usize];
        let (one, other) = (column(left), column(right));
        // Times may have different units, and strings are not bytes.
        let is_number = |kind| matches!(kind, columnar::Kind::Whole | columnar::Kind::Real);
        let comparable = one.sql_type == other.sql_type
            || (is_number(one.kind())
                && one.kind() == other.kind()
                && one.sql_type.arrow().is_numeric()
                && other.sql_type.arrow().is_numeric());
        comparable.then(|| {
            comparison(message::Comparison {
                column: Some(left),
                operator: Some(op.into()),
                value: None,
                other_column: Some(right),
            })
        })
    }

    fn value_comparison(&self, at: u32, op: message::Operator, value: &ScalarValue) -> Option<Predicate> {
        use message::Operator as Op;
        let (op, value) = match bound(&self.declaration.columns[at as usize], value)? {
            Bound::Exact(value) => (op, value),
            // No value of the column lies between the bound and the literal.
            Bound::Below(value) => match op {
                Op::Less | Op::LessOrEqual => (Op::LessOrEqual, value),
                Op::Greater | Op::GreaterOrEqual => (Op::Greater, value),
                Op::Equal | Op::NotEqual => return None,
            },
        };
        Some(comparison(message::Comparison {
            column: Some(at),
            operator: Some(op.into()),
            value: Some(value),
            other_column: None,
        }))
    }

    fn in_list(&self, InList { expr, list, negated }: &InList) -> Option<Predicate> {
        let column = self.column(expr)?;
        let value = |expr: &Expr| bound(&self.declaration.columns[column as usize], literal(expr)?)?.exact();
        let values = list.iter().map(value).collect::<Option<Vec<_>>>()?;
        let list = message::In { column: Some(column), value: values };
        let in_list = Predicate { r#in: Some(list), ..Predicate::default() };
        Some(if *negated { not(in_list) } else { in_list })
    }

    fn between(&self, Between { expr, negated, low, high }: &Between) -> Option<Predicate> {
        let low = self.comparison_of(expr, message::Operator::GreaterOrEqual, low)?;
        let high = self.comparison_of(expr, message::Operator::LessOrEqual, high)?;
        let within = all(vec![low, high])?;
        Some(if *negated { not(within) } else { within })
    }

    fn like(&self, like: &Like) -> Option<Predicate> {
        let column = self.column(&like.expr)?;
        let text = matches!(
            self.declaration.columns[column as usize].sql_type.arrow(),
            datafusion::arrow::datatypes::DataType::Utf8
        );
        let pattern =
            literal(&like.pattern)?.try_as_str().flatten().filter(|_| text && !like.case_insensitive)?;
        if pattern.len() > PATTERN_BYTES_MAX {
            return None;
        }
        let escape = like.escape_char.unwrap_or('\\');
        let found = Predicate {
            like: Some(message::Like {
                column: Some(column),
                pattern: Some(pattern.as_bytes().to_vec().into()),
                escape: Some(escape.to_string().into_bytes().into()),
            }),
            ..Predicate::default()
        };
        Some(if like.negated { not(found) } else { found })
    }

    /// A boolean column used as a condition.
    fn truth(&self, expr: &Expr, wanted: bool) -> Option<Predicate> {
        self.value_comparison(
            self.column(expr)?,
            message::Operator::Equal,
            &ScalarValue::Boolean(Some(wanted)),
        )
    }

    /// The index of the column that an expression refers to, through widening casts.
    fn column(&self, expr: &Expr) -> Option<u32> {
        match expr {
            Expr::Column(column) => {
                let at = self.declaration.columns.iter().position(|own| own.name == column.name)?;
                u32::try_from(at).ok()
            }
            Expr::Cast(cast) => {
                let at = self.column(&cast.expr)?;
                let from = self.declaration.columns[at as usize].sql_type.arrow();
                is_widening(from, cast.field.data_type()).then_some(at)
            }
            Expr::Alias(alias) => self.column(&alias.expr),
            _ => None,
        }
    }
}

/// Merges `a = 1 OR a IN (2, 3)` into one list, which yields narrower row ranges; `None` if a part
/// has another form.
fn listed_values(parts: &[Predicate]) -> Option<Predicate> {
    let (mut column, mut value) = (None, Vec::new());
    for part in parts {
        let own = match (&part.comparison, &part.r#in) {
            (Some(one), _) if one.operator() == message::Operator::Equal => {
                value.push(one.value.clone()?);
                one.column
            }
            (_, Some(list)) => {
                value.extend(list.value.iter().cloned());
                list.column
            }
            _ => return None,
        };
        if *column.get_or_insert(own) != own {
            return None;
        }
    }
    Some(Predicate { r#in: Some(message::In { column: column?, value }), ..Predicate::default() })
}

fn operator(op: Operator) -> Option<message::Operator> {
    Some(match op {
        Operator::Eq => message::Operator::Equal,
        Operator::NotEq => message::Operator::NotEqual,
        Operator::Lt => message::Operator::Less,
        Operator::LtEq => message::Operator::LessOrEqual,
        Operator::Gt => message::Operator::Greater,
        Operator::GtEq => message::Operator::GreaterOrEqual,
        _ => return None,
    })
}

/// The operator for swapped operands.
fn mirrored(op: message::Operator) -> message::Operator {
    use message::Operator as Op;
    match op {
        Op::Less => Op::Greater,
        Op::LessOrEqual => Op::GreaterOrEqual,
        Op::Greater => Op::Less,
        Op::GreaterOrEqual => Op::LessOrEqual,
        Op::Equal | Op::NotEqual => op,
    }
}
