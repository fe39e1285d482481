//! Converts columns of responses to Arrow arrays.

use std::sync::Arc;

use bytes::Bytes;
use columnar::Value;
use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringBuilder, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::scalar::ScalarValue;
use proto::grampus::Vector;
use wire::convert::columns;

use crate::declaration::DeclaredColumn;
use crate::value;

/// Converts a vector of `rows` rows.
///
/// # Errors
/// A message: a value does not fit the column's type, or the vector has another kind or length.
pub fn from_vector(vector: Vector, rows: usize, column: &DeclaredColumn) -> Result<ArrayRef, String> {
    let present = vector.present.as_ref().map(|bits| present(bits, rows)).transpose()?;
    let data_type = column.sql_type.arrow();
    Ok(match data_type {
        DataType::Float32 | DataType::Float64 => {
            let mut values = full(vector.real, rows, &present)?;
            values.iter_mut().for_each(|value| *value = normalize_real(*value));
            reals(values, present, data_type)
        }
        DataType::Decimal128(digits, scale) => {
            let unscaled = full(vector.decimal, rows, &present)?.into_iter().map(unscaled);
            let unscaled = unscaled.collect::<Result<Vec<i128>, String>>()?;
            let invalid = |number: &&i128| number.unsigned_abs() >= 10_u128.pow((*digits).into());
            if unscaled.iter().find(invalid).is_some() {
                return Err(no_value(column));
            }
            let array =
                Decimal128Array::new(unscaled.into(), present).with_precision_and_scale(*digits, *scale);
            Arc::new(array.map_err(|error| error.to_string())?)
        }
        DataType::Utf8 => {
            let raw = full(vector.raw, rows, &present)?;
            let mut text = StringBuilder::with_capacity(rows, raw.iter().map(|bytes| bytes.len()).sum());
            for (at, bytes) in raw.iter().enumerate() {
                match present.as_ref().is_none_or(|present| present.is_valid(at)) {
                    true => {
                        text.append_value(std::str::from_utf8(bytes).map_err(|_| value::no_text(column))?)
                    }
                    false => text.append_null(),
                }
            }
            Arc::new(text.finish())
        }
        DataType::Binary => {
            let raw = full(vector.raw, rows, &present)?;
            let mut binary = BinaryBuilder::with_capacity(rows, raw.iter().map(|bytes| bytes.len()).sum());
            for (at, bytes) in raw.iter().enumerate() {
                match present.as_ref().is_none_or(|present| present.is_valid(at)) {
                    true => binary.append_value(bytes),
                    false => binary.append_null(),
                }
            }
            Arc::new(binary.finish())
        }
        _ => wholes(full(vector.whole, rows, &present)?, present, column)?,
    })
}

/// Converts a column of single values.
///
/// # Errors
/// A message: a value does not fit the column's type.
pub fn from_values<'a>(
    values: impl Iterator<Item = &'a Value>,
    column: &DeclaredColumn,
) -> Result<ArrayRef, String> {
    let scalars = values.map(|value| value::scalar(value, column)).collect::<Result<Vec<_>, String>>()?;
    from_scalars(scalars, column.sql_type.arrow())
}

/// Converts scalars of one type to an array.
///
/// # Errors
/// A message: a scalar has another type.
pub fn from_scalars(scalars: Vec<ScalarValue>, data_type: &DataType) -> Result<ArrayRef, String> {
    match scalars.is_empty() {
        true => Ok(datafusion::arrow::array::new_empty_array(data_type)),
        false => ScalarValue::iter_to_array(scalars).map_err(|error| error.to_string()),
    }
}

/// Decodes which rows have a value: one bit per row, starting with the lowest bit of each byte.
fn present(bits: &[u8], rows: usize) -> Result<NullBuffer, String> {
    if bits.len() < rows.div_ceil(8) {
        return Err(format!("response has {} presence bits for {rows} rows", bits.len() * 8));
    }
    Ok(NullBuffer::new(BooleanBuffer::new(Buffer::from(bits), 0, rows)))
}

/// Returns one item per row. A vector may have no items if no row has a value.
fn full<T: Clone + Default>(
    items: Vec<T>,
    rows: usize,
    present: &Option<NullBuffer>,
) -> Result<Vec<T>, String> {
    if items.len() == rows {
        return Ok(items);
    }
    let mut all = vec![T::default(); rows];
    match present {
        Some(present) if items.is_empty() && present.null_count() == rows => Ok(all),
        // Items only for the rows that have a value.
        Some(present) if items.len() == rows - present.null_count() => {
            present.valid_indices().zip(items).for_each(|(at, item)| all[at] = item);
            Ok(all)
        }
        _ => Err(format!("response has {} values for {rows} rows", items.len())),
    }
}

fn unscaled(bytes: Bytes) -> Result<i128, String> {
    match columns::value(&proto::grampus::Value { decimal: Some(bytes), ..Default::default() }) {
        Ok(Value::Decimal(unscaled)) => Ok(unscaled),
        Ok(_) => Err("value is not a decimal".into()),
        Err(refused) => Err(refused.to_string()),
    }
}

/// Normalizes zeros and NaNs: DataFusion's groups and joins compare bits, while servers compare
/// numbers.
fn normalize_real(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

fn reals(values: Vec<f64>, present: Option<NullBuffer>, data_type: &DataType) -> ArrayRef {
    match data_type {
        DataType::Float32 => {
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            Arc::new(Float32Array::new(values.into(), present))
        }
        _ => Arc::new(Float64Array::new(values.into(), present)),
    }
}

fn wholes(
    values: Vec<i64>,
    present: Option<NullBuffer>,
    column: &DeclaredColumn,
) -> Result<ArrayRef, String> {
    fn narrow<T: TryFrom<i64>>(values: Vec<i64>, column: &DeclaredColumn) -> Result<Vec<T>, String> {
        values.into_iter().map(|value| T::try_from(value).map_err(|_| no_value(column))).collect()
    }
    Ok(match column.sql_type.arrow() {
        DataType::Boolean => {
            let truths: BooleanBuffer = values.iter().map(|value| *value != 0).collect();
            Arc::new(BooleanArray::new(truths, present))
        }
        DataType::Int8 => Arc::new(Int8Array::new(narrow(values, column)?.into(), present)),
        DataType::Int16 => Arc::new(Int16Array::new(narrow(values, column)?.into(), present)),
        DataType::Int32 => Arc::new(Int32Array::new(narrow(values, column)?.into(), present)),
        DataType::Timestamp(TimeUnit::Second, _) => {
            Arc::new(TimestampSecondArray::new(values.into(), present))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Arc::new(TimestampMillisecondArray::new(values.into(), present))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Arc::new(TimestampMicrosecondArray::new(values.into(), present))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Arc::new(TimestampNanosecondArray::new(values.into(), present))
        }
        _ => Arc::new(Int64Array::new(values.into(), present)),
    })
}

fn no_value(column: &DeclaredColumn) -> String {
    format!("column {} contains a value that is not a valid {}", column.name, column.sql_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// count(DISTINCT x) next to other aggregates, counted by DataFusion, returned one value too
    /// many if both 0 and -0 occurred.
    #[test]
    fn equal_reals_have_equal_bits() {
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 1);
        for (one, other) in [(0.0, -0.0), (f64::NAN, negative_nan)] {
            assert_eq!(normalize_real(one).to_bits(), normalize_real(other).to_bits(), "{one} {other}");
        }
        assert_eq!(normalize_real(-1.5).to_bits(), (-1.5_f64).to_bits());
    }
}
