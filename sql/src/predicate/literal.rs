//! Converts SQL literals to values of a column.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use proto::grampus::Value;

use crate::declaration::DeclaredColumn;
use crate::value;

/// Below this limit, every whole number has its own floating-point representation. The limit and
/// the next whole number share one.
const REAL_WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The position of a literal among the values that a column can have.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// It equals this value.
    Exact(Value),
    /// It lies between this value and the next one.
    Below(Value),
}

impl Bound {
    /// The value, if it equals the literal.
    pub fn exact(self) -> Option<Value> {
        match self {
            Bound::Exact(value) => Some(value),
            Bound::Below(_) => None,
        }
    }
}

/// Whether a cast changes no value and preserves their order.
pub fn is_widening(from: &DataType, to: &DataType) -> bool {
    let size = |data_type: &DataType| data_type.primitive_width().unwrap_or(0);
    match (from, to) {
        (one, other) if one == other => true,
        (
            DataType::Int8 | DataType::Int16 | DataType::Int32,
            DataType::Int16 | DataType::Int32 | DataType::Int64,
        ) => size(from) < size(to),
        // Beyond 2^53 not every whole number has a floating-point representation, but the order is
        // preserved. `bound` rejects such literals.
        (DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64, DataType::Float64) => true,
        (
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64,
            DataType::Decimal128(digits, scale),
        ) => {
            // 19 digits hold every BIGINT.
            *scale >= 0 && i16::from(*digits) - i16::from(*scale) >= if size(from) == 8 { 19 } else { 10 }
        }
        (DataType::Float32, DataType::Float64) => true,
        (DataType::Decimal128(digits, scale), DataType::Decimal128(more_digits, more_scale)) => {
            let whole = |digits: u8, scale: i8| i16::from(digits) - i16::from(scale);
            more_scale >= scale && whole(*more_digits, *more_scale) >= whole(*digits, *scale)
        }
        (DataType::Timestamp(one, None), DataType::Timestamp(other, None)) => digits(*one) <= digits(*other),
        (DataType::Utf8, DataType::LargeUtf8 | DataType::Utf8View) => true,
        (DataType::Binary, DataType::LargeBinary | DataType::BinaryView) => true,
        _ => false,
    }
}

/// The literal in an expression.
pub fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

/// The position of a literal among the values of a column; `None` if they are not comparable.
pub fn bound(column: &DeclaredColumn, literal: &ScalarValue) -> Option<Bound> {
    match column.sql_type.arrow() {
        DataType::Boolean => match literal {
            ScalarValue::Boolean(Some(truth)) => Some(Bound::Exact(value::whole(i64::from(*truth)))),
            _ => None,
        },
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => whole(literal),
        DataType::Float32 | DataType::Float64 => match literal {
            ScalarValue::Float64(Some(real)) => Some(Bound::Exact(value::real(*real))),
            ScalarValue::Float32(Some(real)) => Some(Bound::Exact(value::real((*real).into()))),
            _ => None,
        },
        DataType::Decimal128(_, scale) => match literal {
            ScalarValue::Decimal128(Some(unscaled), _, literal_scale) => {
                scaled(*unscaled, i32::from(*literal_scale), i32::from(*scale), value::decimal)
            }
            _ => None,
        },
        DataType::Timestamp(unit, None) => {
            let (count, literal_unit) = time(literal)?;
            let as_whole = |count: i128| i64::try_from(count).ok().map(value::whole);
            let (from, to) = (digits(literal_unit), digits(*unit));
            scaled_option(count.into(), from, to, as_whole)
        }
        DataType::Utf8 => {
            literal.try_as_str().flatten().map(|text| Bound::Exact(value::raw(text.as_bytes())))
        }
        DataType::Binary => match literal {
            ScalarValue::Binary(Some(bytes))
            | ScalarValue::LargeBinary(Some(bytes))
            | ScalarValue::BinaryView(Some(bytes)) => Some(Bound::Exact(value::raw(bytes))),
            _ => None,
        },
        _ => None,
    }
}

/// The position of a number among whole numbers.
fn whole(literal: &ScalarValue) -> Option<Bound> {
    let exact = |whole: i64| Some(Bound::Exact(value::whole(whole)));
    match literal {
        ScalarValue::Int8(Some(whole)) => exact((*whole).into()),
        ScalarValue::Int16(Some(whole)) => exact((*whole).into()),
        ScalarValue::Int32(Some(whole)) => exact((*whole).into()),
        ScalarValue::Int64(Some(whole)) => exact(*whole),
        ScalarValue::Float64(Some(real)) if real.abs() < REAL_WHOLE_MAX => {
            let below = value::whole(real.floor() as i64);
            Some(if real.fract() == 0.0 { Bound::Exact(below) } else { Bound::Below(below) })
        }
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            let as_whole = |count: i128| i64::try_from(count).ok().map(value::whole);
            scaled_option(*unscaled, i32::from(*scale), 0, as_whole)
        }
        _ => None,
    }
}

fn time(literal: &ScalarValue) -> Option<(i64, TimeUnit)> {
    match literal {
        ScalarValue::TimestampSecond(Some(count), None) => Some((*count, TimeUnit::Second)),
        ScalarValue::TimestampMillisecond(Some(count), None) => Some((*count, TimeUnit::Millisecond)),
        ScalarValue::TimestampMicrosecond(Some(count), None) => Some((*count, TimeUnit::Microsecond)),
        ScalarValue::TimestampNanosecond(Some(count), None) => Some((*count, TimeUnit::Nanosecond)),
        _ => None,
    }
}

/// The number of decimal places of seconds in this unit.
fn digits(unit: TimeUnit) -> i32 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn scaled(unscaled: i128, from: i32, to: i32, value: impl Fn(i128) -> Value) -> Option<Bound> {
    scaled_option(unscaled, from, to, |unscaled| Some(value(unscaled)))
}

/// The position of a number with `from` decimal places among numbers with `to` decimal places.
fn scaled_option(unscaled: i128, from: i32, to: i32, value: impl Fn(i128) -> Option<Value>) -> Option<Bound> {
    let factor = 10_i128.checked_pow(from.abs_diff(to))?;
    if from <= to {
        return Some(Bound::Exact(value(unscaled.checked_mul(factor)?)?));
    }
    let below = value(unscaled.div_euclid(factor))?;
    Some(if unscaled.rem_euclid(factor) == 0 { Bound::Exact(below) } else { Bound::Below(below) })
}
