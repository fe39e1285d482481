//! Conditions of SQL in the endpoint's words, as far as it has words for them.
//!
//! What is translated is meant exactly so: the condition is then not looked at again. Columns are named by their places in
//! the declaration; [`renumber`] makes them those of a request.

mod literal;
pub mod range;
pub mod shown;

use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator};
use datafusion::scalar::ScalarValue;
use proto::grampus::Predicate;
use proto::grampus::predicate as message;
use wire::convert::columns::request::{CONDITIONS_MAX, PATTERN_BYTES_MAX};

use crate::declaration::Declaration;
pub use literal::is_widening;
use literal::{Bound, bound, literal};

/// How deep the endpoint lets conditions be nested (`columnar::predicate::DEPTH_MAX`).
const DEPTH_MAX: usize = columnar::predicate::DEPTH_MAX;

/// How many parts and listed values of conditions are pushed down at most: fewer than the endpoint takes, for some may be added.
const PARTS_MAX: usize = CONDITIONS_MAX - 1024;
/// Of one condition, for it to be left to servers alone: of several that are longer not all may find room.
const PARTS_OF_SMALL_MAX: usize = PARTS_MAX / 4;

/// Translates a condition; nothing if that cannot be done exactly, or it is more than servers look at.
pub fn translate(expr: &Expr, declaration: &Declaration) -> Option<Predicate> {
    let predicate = Translator { declaration }.translate(expr)?;
    (depth(&predicate) <= DEPTH_MAX / 2 && parts(&predicate) <= PARTS_MAX).then_some(predicate)
}

/// Whether there is always room for it.
pub fn is_small(predicate: &Predicate) -> bool {
    parts(predicate) <= PARTS_OF_SMALL_MAX
}

/// As many of some conditions as are pushed down together: all that are small, and of the others those that there is room for.
pub fn fitting(mut predicates: Vec<Predicate>) -> Vec<Predicate> {
    predicates.sort_by_key(|predicate| !is_small(predicate));
    let mut left = PARTS_MAX;
    predicates.retain(|predicate| {
        let rest = left.checked_sub(parts(predicate));
        left = rest.unwrap_or(left);
        rest.is_some() || is_small(predicate)
    });
    predicates
}

/// How many parts it has; values that are listed in it count each for one.
fn parts(predicate: &Predicate) -> usize {
    let lists = [&predicate.all, &predicate.any].into_iter().flatten();
    let inner = lists.flat_map(|list| &list.predicate).chain(predicate.not.as_deref());
    1 + predicate.r#in.as_ref().map_or(0, |list| list.value.len()) + inner.map(parts).sum::<usize>()
}

/// All of them together; nothing if there are none.
pub fn all(mut predicates: Vec<Predicate>) -> Option<Predicate> {
    match predicates.len() {
        0 | 1 => predicates.pop(),
        _ => Some(Predicate { all: Some(message::List { predicate: predicates }), ..Predicate::default() }),
    }
}

/// The parts that all must hold.
pub fn conjuncts(predicate: &Predicate) -> &[Predicate] {
    match &predicate.all {
        Some(list) => &list.predicate,
        None => std::slice::from_ref(predicate),
    }
}

/// Names columns by other places.
pub fn renumber(predicate: &mut Predicate, place: &mut impl FnMut(u32) -> u32) {
    for list in [&mut predicate.all, &mut predicate.any].into_iter().flatten() {
        list.predicate.iter_mut().for_each(|part| renumber(part, place));
    }
    if let Some(part) = &mut predicate.not {
        renumber(part, place);
    }
    if let Some(comparison) = &mut predicate.comparison {
        comparison.column = comparison.column.map(&mut *place);
        comparison.other_column = comparison.other_column.map(&mut *place);
    }
    if let Some(list) = &mut predicate.r#in {
        list.column = list.column.map(&mut *place);
    }
    if let Some(like) = &mut predicate.like {
        like.column = like.column.map(&mut *place);
    }
    predicate.is_null = predicate.is_null.map(place);
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
                self.connected(left, *op, right)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => self.compared(left, operator(*op)?, right),
            Expr::Not(inner) => Some(not(self.translate(inner)?)),
            Expr::IsNull(inner) => Some(is_null(self.column(inner)?)),
            Expr::IsNotNull(inner) => Some(not(is_null(self.column(inner)?))),
            Expr::InList(list) => self.listed(list),
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

    /// AND and OR: chains become one list, so that they are not deep.
    fn connected(&self, left: &Expr, op: Operator, right: &Expr) -> Option<Predicate> {
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

    fn compared(&self, left: &Expr, op: message::Operator, right: &Expr) -> Option<Predicate> {
        match (self.column(left), self.column(right)) {
            (Some(left), Some(right)) => self.columns_compared(left, op, right),
            (Some(column), None) => self.value_compared(column, op, literal(right)?),
            (None, Some(column)) => self.value_compared(column, mirrored(op), literal(left)?),
            (None, None) => None,
        }
    }

    fn columns_compared(&self, left: u32, op: message::Operator, right: u32) -> Option<Predicate> {
        let column = |at: u32| &self.declaration.columns[at as usize];
        let (one, other) = (column(left), column(right));
        // Times are counted in different units, strings are no bytes.
        let is_number = |kind| matches!(kind, columnar::Kind::Whole | columnar::Kind::Real);
        let same = one.sql_type == other.sql_type
            || (is_number(one.kind())
                && one.kind() == other.kind()
                && one.sql_type.arrow().is_numeric()
                && other.sql_type.arrow().is_numeric());
        same.then(|| {
            comparison(message::Comparison {
                column: Some(left),
                operator: Some(op.into()),
                value: None,
                other_column: Some(right),
            })
        })
    }

    fn value_compared(&self, at: u32, op: message::Operator, value: &ScalarValue) -> Option<Predicate> {
        use message::Operator as Op;
        let (op, value) = match bound(&self.declaration.columns[at as usize], value)? {
            Bound::Exact(value) => (op, value),
            // There is no value between the bound and the one that is meant.
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

    fn listed(&self, InList { expr, list, negated }: &InList) -> Option<Predicate> {
        let column = self.column(expr)?;
        let value = |expr: &Expr| bound(&self.declaration.columns[column as usize], literal(expr)?)?.exact();
        let values = list.iter().map(value).collect::<Option<Vec<_>>>()?;
        let list = message::In { column: Some(column), value: values };
        let listed = Predicate { r#in: Some(list), ..Predicate::default() };
        Some(if *negated { not(listed) } else { listed })
    }

    fn between(&self, Between { expr, negated, low, high }: &Between) -> Option<Predicate> {
        let low = self.compared(expr, message::Operator::GreaterOrEqual, low)?;
        let high = self.compared(expr, message::Operator::LessOrEqual, high)?;
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

    /// A boolean column by itself.
    fn truth(&self, expr: &Expr, wanted: bool) -> Option<Predicate> {
        self.value_compared(self.column(expr)?, message::Operator::Equal, &ScalarValue::Boolean(Some(wanted)))
    }

    /// The place of the column that an expression is, however widened.
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

/// `a = 1 OR a IN (2, 3)` as one list, which tells more of where rows can be; nothing if they are not all of this form.
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

/// The operator with its sides changed.
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
