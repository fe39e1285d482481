//! Single values of the endpoint: built from literals, converted to scalars, and formatted.

use bytes::Bytes;
use columnar::Kind;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::scalar::ScalarValue;
use proto::grampus::Value;
use wire::convert::columns::{self, value_message};

use crate::declaration::DeclaredColumn;

/// The message of a whole number.
pub fn whole(whole: i64) -> Value {
    value_message(&columnar::Value::Whole(whole))
}

/// The message of a floating-point number.
pub fn real(real: f64) -> Value {
    value_message(&columnar::Value::Real(real))
}

/// The message of a decimal's unscaled number.
pub fn decimal(unscaled: i128) -> Value {
    value_message(&columnar::Value::Decimal(unscaled))
}

/// The message of bytes.
pub fn raw(bytes: &[u8]) -> Value {
    value_message(&columnar::Value::Raw(Bytes::copy_from_slice(bytes)))
}

/// Converts a column's value to a SQL scalar.
///
/// # Errors
/// A message: the value does not fit the column's type.
pub fn scalar(value: &columnar::Value, column: &DeclaredColumn) -> Result<ScalarValue, String> {
    use columnar::Value as V;
    let data_type = column.sql_type.arrow();
    let invalid =
        || format!("column {} contains a value that is not a valid {}", column.name, column.sql_type);
    Ok(match (data_type, value) {
        (_, V::Null) => ScalarValue::try_from(data_type).map_err(|error| error.to_string())?,
        (DataType::Boolean, V::Whole(whole)) => ScalarValue::Boolean(Some(*whole != 0)),
        (DataType::Int8, V::Whole(whole)) => {
            ScalarValue::Int8(Some((*whole).try_into().map_err(|_| invalid())?))
        }
        (DataType::Int16, V::Whole(whole)) => {
            ScalarValue::Int16(Some((*whole).try_into().map_err(|_| invalid())?))
        }
        (DataType::Int32, V::Whole(whole)) => {
            ScalarValue::Int32(Some((*whole).try_into().map_err(|_| invalid())?))
        }
        (DataType::Int64, V::Whole(whole)) => ScalarValue::Int64(Some(*whole)),
        (DataType::Timestamp(unit, None), V::Whole(whole)) => timestamp(*unit, *whole),
        (DataType::Float32, V::Real(real)) => ScalarValue::Float32(Some(*real as f32)),
        (DataType::Float64, V::Real(real)) => ScalarValue::Float64(Some(*real)),
        (DataType::Decimal128(digits, scale), V::Decimal(unscaled)) => {
            if unscaled.unsigned_abs() >= 10_u128.pow((*digits).into()) {
                return Err(invalid());
            }
            ScalarValue::Decimal128(Some(*unscaled), *digits, *scale)
        }
        (DataType::Utf8, V::Raw(bytes)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| no_text(column))?;
            ScalarValue::Utf8(Some(text.to_string()))
        }
        (DataType::Binary, V::Raw(bytes)) => ScalarValue::Binary(Some(bytes.to_vec())),
        _ => return Err(invalid()),
    })
}

/// The error for a text column whose bytes are not UTF-8.
pub fn no_text(column: &DeclaredColumn) -> String {
    format!("column {} contains bytes that are not UTF-8; declare it BYTEA", column.name)
}

fn timestamp(unit: TimeUnit, count: i64) -> ScalarValue {
    match unit {
        TimeUnit::Second => ScalarValue::TimestampSecond(Some(count), None),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(Some(count), None),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(Some(count), None),
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(Some(count), None),
    }
}

/// Formats a column's value as a SQL literal.
pub fn format_value(value: &Value, column: &DeclaredColumn) -> String {
    let scalar =
        columns::value(value).map_err(|refused| refused.to_string()).and_then(|value| scalar(&value, column));
    match scalar {
        Ok(ScalarValue::Utf8(Some(text))) => format!("'{}'", text.replace('\'', "''")),
        Ok(ScalarValue::Binary(Some(bytes))) => format!("'{}'", bytes.escape_ascii()),
        Ok(ScalarValue::Decimal128(Some(unscaled), _, scale)) => decimal_text(unscaled, scale),
        Ok(ScalarValue::Boolean(Some(truth))) => truth.to_string(),
        Ok(scalar) => match column.kind() {
            Kind::Whole | Kind::Real => plain(&scalar),
            _ => scalar.to_string(),
        },
        // A bound outside the column's type.
        Err(_) => format!("{:?}", value.whole.unwrap_or_default()),
    }
}

fn plain(scalar: &ScalarValue) -> String {
    let text = datafusion::arrow::util::display::array_value_to_string;
    match (scalar.to_array(), scalar.data_type()) {
        (Ok(array), DataType::Timestamp(..)) => {
            text(&array, 0).map_or_else(|_| scalar.to_string(), |text| format!("'{text}'"))
        }
        (Ok(array), _) => text(&array, 0).unwrap_or_else(|_| scalar.to_string()),
        _ => scalar.to_string(),
    }
}

fn decimal_text(unscaled: i128, scale: i8) -> String {
    let scale = usize::from(scale.unsigned_abs());
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_shown_with_their_point() {
        assert_eq!(decimal_text(-5, 2), "-0.05");
        assert_eq!(decimal_text(1234, 2), "12.34");
        assert_eq!(decimal_text(7, 0), "7");
    }
}
