//! Converts columns of files to the types of declared columns. No value is rounded, truncated or
//! replaced by NULL: one that does not fit is an error, except that REAL and DOUBLE take the
//! nearest number.

use std::sync::Arc;

use columnar::{Encoding, Value};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, Decimal128Array, StringArray, new_null_array,
};
use datafusion::arrow::compute::kernels::cmp::not_distinct;
use datafusion::arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use datafusion::arrow::util::display::array_value_to_string;

use crate::declaration::DeclaredColumn;

/// Maximum characters of a value in a message.
const SHOWN_MAX: usize = 60;
/// The position after the seconds in `2024-01-05 06:07:08.123`.
const SECONDS_END: usize = 19;
/// A cast of a value that does not fit gives NULL, so that the row can be found.
const CAST: CastOptions<'static> =
    CastOptions { safe: true, format_options: datafusion::arrow::util::display::FormatOptions::new() };

/// A value that the declared column cannot have.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// Its row in the array.
    pub row: usize,
    /// What is wrong with it.
    pub message: String,
}

/// Whether a column of a file can be converted to a declared one.
///
/// # Errors
/// A message, if no value could be.
pub fn check_types(source: &DataType, column: &DeclaredColumn) -> Result<(), String> {
    let target = column.sql_type.arrow();
    let source = plain_type(source);
    let fits = match (class(source), class(target)) {
        (Class::Null | Class::Text, _) => true,
        (from, to) if from == to => true,
        (Class::Whole | Class::Decimal | Class::Real, Class::Whole | Class::Decimal | Class::Real) => true,
        (Class::Binary, Class::Text) => true,
        (Class::Whole | Class::Decimal | Class::Real | Class::Truth | Class::Time, Class::Text) => true,
        _ => false,
    };
    match fits && (class(source) == Class::Null || can_cast_types(source, target)) {
        true => Ok(()),
        false => Err(format!("values of type {source} cannot become {}", column.sql_type)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Null,
    Truth,
    Whole,
    Real,
    Decimal,
    Time,
    Text,
    Binary,
    Other,
}

fn class(data_type: &DataType) -> Class {
    match data_type {
        DataType::Null => Class::Null,
        DataType::Boolean => Class::Truth,
        data_type if data_type.is_integer() => Class::Whole,
        data_type if data_type.is_floating() => Class::Real,
        data_type if data_type.is_decimal() => Class::Decimal,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Class::Time,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Class::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Class::Binary
        }
        _ => Class::Other,
    }
}

/// The type of values, without a dictionary.
fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// Converts an array to a declared column's type. In text files, BYTEA is written in hexadecimal.
///
/// # Errors
/// The first value that does not fit.
pub fn convert(array: &ArrayRef, column: &DeclaredColumn, is_text: bool) -> Result<ArrayRef, InvalidValue> {
    let target = column.sql_type.arrow();
    let array = plain_array(array)?;
    if array.data_type() == target {
        return Ok(array);
    }
    match (class(array.data_type()), target) {
        (Class::Null, _) => Ok(new_null_array(target, array.len())),
        (Class::Text, DataType::Decimal128(digits, scale)) => {
            decimals(&text(&array)?, column, *digits, *scale)
        }
        (Class::Text, DataType::Binary) if is_text => bytes_of_hex(&text(&array)?, column),
        (Class::Text, DataType::Timestamp(unit, _)) => times(&array, column, *unit),
        (from, _) => {
            let converted = checked_cast(&array, target, column)?;
            let may_lose = matches!(class(target), Class::Whole | Class::Decimal | Class::Time);
            match may_lose && from != Class::Text {
                true => check_equal(&array, &converted, column).map(|()| converted),
                false => Ok(converted),
            }
        }
    }
}

/// The array without a dictionary, and without a time zone: both are counts since the epoch in UTC.
fn plain_array(array: &ArrayRef) -> Result<ArrayRef, InvalidValue> {
    let in_general = |error: datafusion::arrow::error::ArrowError| invalid(0, error.to_string());
    let values = match array.data_type() {
        DataType::Dictionary(_, values) => cast_with_options(array, values, &CAST).map_err(in_general)?,
        _ => Arc::clone(array),
    };
    match values.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            let plain = values.to_data().into_builder().data_type(DataType::Timestamp(*unit, None));
            Ok(datafusion::arrow::array::make_array(plain.build().map_err(in_general)?))
        }
        _ => Ok(values),
    }
}

fn text(array: &ArrayRef) -> Result<StringArray, InvalidValue> {
    let text = cast_with_options(array, &DataType::Utf8, &CAST);
    text.map(|text| text.as_string::<i32>().clone()).map_err(|error| invalid(0, error.to_string()))
}

fn invalid(row: usize, message: String) -> InvalidValue {
    InvalidValue { row, message }
}

fn not_valid(array: &dyn Array, row: usize, column: &DeclaredColumn) -> InvalidValue {
    invalid(row, format!("{} is not a valid {}", shown(array, row), column.sql_type))
}

fn shown(array: &dyn Array, row: usize) -> String {
    let value = array_value_to_string(array, row).unwrap_or_default();
    match value.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("'{}..'", &value[..end]),
        None => format!("'{value}'"),
    }
}

/// A cast in which every value stays a value.
fn checked_cast(
    array: &ArrayRef,
    target: &DataType,
    column: &DeclaredColumn,
) -> Result<ArrayRef, InvalidValue> {
    let converted = cast_with_options(array, target, &CAST).map_err(|error| invalid(0, error.to_string()))?;
    if converted.null_count() == array.null_count() {
        return Ok(converted);
    }
    let lost = (0..array.len()).find(|row| array.is_valid(*row) && converted.is_null(*row));
    match lost {
        Some(row) => Err(not_valid(array, row, column)),
        None => Ok(converted),
    }
}

/// Compares values with their conversion, converted back.
fn check_equal(array: &ArrayRef, converted: &ArrayRef, column: &DeclaredColumn) -> Result<(), InvalidValue> {
    let equal =
        cast_with_options(converted, array.data_type(), &CAST).and_then(|back| not_distinct(&back, array));
    let equal = equal.map_err(|error| invalid(0, error.to_string()))?;
    match (0..equal.len()).find(|row| !equal.value(*row)) {
        Some(row) => Err(match column.sql_type.arrow() {
            DataType::Timestamp(unit, _) => too_precise(array, row, column, *unit),
            _ => not_valid(array, row, column),
        }),
        None => Ok(()),
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}

/// Decimals from text, exactly: Arrow's own cast would round.
fn decimals(
    text: &StringArray,
    column: &DeclaredColumn,
    digits: u8,
    scale: i8,
) -> Result<ArrayRef, InvalidValue> {
    let limit = 10_u128.pow(u32::from(digits));
    let parse = |(row, text_value): (usize, Option<&str>)| {
        let Some(value) = text_value else { return Ok(None) };
        match Encoding::TextDecimal.read_decimal(value.trim().as_bytes(), scale.unsigned_abs()) {
            Ok(Some(unscaled)) if unscaled.unsigned_abs() < limit => Ok(Some(unscaled)),
            _ => Err(not_valid(text, row, column)),
        }
    };
    let values = text.iter().enumerate().map(parse).collect::<Result<Decimal128Array, InvalidValue>>()?;
    let typed = values.with_precision_and_scale(digits, scale);
    Ok(Arc::new(typed.map_err(|error| invalid(0, error.to_string()))?))
}

fn bytes_of_hex(text: &StringArray, column: &DeclaredColumn) -> Result<ArrayRef, InvalidValue> {
    let mut builder = BinaryBuilder::new();
    for (row, value) in text.iter().enumerate() {
        match value {
            None => builder.append_null(),
            Some(value) => {
                let bytes = decode_hex(value).ok_or_else(|| {
                    invalid(row, not_valid(text, row, column).message + ": write hexadecimal")
                })?;
                builder.append_value(bytes);
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Bytes in hexadecimal; PostgreSQL's prefix `\x` is allowed.
fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x").unwrap_or(text).as_bytes();
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            Some((digit(*high)? * 16 + digit(*low)?) as u8)
        }
        _ => None,
    });
    pairs.collect()
}

/// Times from text. A text with more digits than the unit has is an error.
fn times(array: &ArrayRef, column: &DeclaredColumn, unit: TimeUnit) -> Result<ArrayRef, InvalidValue> {
    // This ignores digits after those of the unit.
    let converted = checked_cast(array, column.sql_type.arrow(), column)?;
    let texts = text(array)?;
    let is_lost = |row: &usize| texts.is_valid(*row) && decimal_places(texts.value(*row)) > digits(unit);
    match (0..texts.len()).find(is_lost) {
        Some(row) => Err(too_precise(array, row, column, unit)),
        None => Ok(converted),
    }
}

/// The decimal places of the seconds in a valid time, without zeros at the end.
fn decimal_places(time: &str) -> usize {
    let Some(fraction) = time.get(SECONDS_END..).and_then(|rest| rest.strip_prefix('.')) else { return 0 };
    // A time zone may follow.
    let end = fraction.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(fraction.len());
    fraction[..end].trim_end_matches('0').len()
}

/// The decimal places of seconds that a unit has.
fn digits(unit: TimeUnit) -> usize {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn too_precise(array: &dyn Array, row: usize, column: &DeclaredColumn, unit: TimeUnit) -> InvalidValue {
    let (message, unit_name) = (not_valid(array, row, column).message, unit_name(unit));
    let advice = match unit {
        TimeUnit::Nanosecond => "",
        _ => "; declare the column with a finer unit",
    };
    invalid(row, format!("{message}: it is more precise than {unit_name}{advice}"))
}

/// The value of a converted array in a row.
pub fn value(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    macro_rules! whole {
        ($type:ty) => {
            Value::Whole(array.as_primitive::<$type>().value(row).into())
        };
    }
    match array.data_type() {
        DataType::Boolean => Value::Whole(array.as_boolean().value(row).into()),
        DataType::Int8 => whole!(Int8Type),
        DataType::Int16 => whole!(Int16Type),
        DataType::Int32 => whole!(Int32Type),
        DataType::Int64 => whole!(Int64Type),
        DataType::Timestamp(TimeUnit::Second, _) => whole!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => whole!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => whole!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => whole!(TimestampNanosecondType),
        DataType::Float32 => Value::Real(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Value::Real(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => {
            Value::Decimal(array.as_primitive::<datafusion::arrow::datatypes::Decimal128Type>().value(row))
        }
        DataType::Binary => Value::Raw(array.as_binary::<i32>().value(row).to_vec().into()),
        _ => Value::Raw(array.as_string::<i32>().value(row).as_bytes().to_vec().into()),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        BinaryArray, DictionaryArray, Float64Array, Int64Array, TimestampMicrosecondArray, UInt64Array,
    };

    use super::*;

    fn column(declared: &str) -> DeclaredColumn {
        DeclaredColumn::from_text(&format!("c {declared}")).unwrap()
    }

    fn converted(array: impl Array + 'static, declared: &str) -> Result<Vec<Value>, InvalidValue> {
        let array: ArrayRef = Arc::new(array);
        check_types(array.data_type(), &column(declared)).map_err(|error| invalid(0, error))?;
        let array = convert(&array, &column(declared), true)?;
        Ok((0..array.len()).map(|row| value(&array, row)).collect())
    }

    fn texts(values: &[Option<&str>], declared: &str) -> Result<Vec<Value>, InvalidValue> {
        converted(StringArray::from(values.to_vec()), declared)
    }

    fn raw(bytes: &'static [u8]) -> Value {
        Value::Raw(bytes.into())
    }

    #[test]
    fn text_becomes_typed_values() {
        let null = Value::Null;
        assert_eq!(
            texts(&[Some("12"), None], "INT f:c bytes_int").unwrap(),
            [Value::Whole(12), null.clone()]
        );
        assert_eq!(texts(&[Some("true")], "BOOLEAN f:c bytes_boolean").unwrap(), [Value::Whole(1)]);
        assert_eq!(texts(&[Some("0.1")], "DOUBLE f:c bytes_double").unwrap(), [Value::Real(0.1)]);
        assert_eq!(
            texts(&[Some("-12.5"), None], "DECIMAL(10,2) f:c bytes_decimal").unwrap(),
            [Value::Decimal(-1250), null]
        );
        assert_eq!(
            texts(&[Some("00fF"), Some("\\x10")], "BYTEA f:c raw").unwrap(),
            [raw(&[0, 255]), raw(&[16])]
        );
        let time = "2024-01-05T06:07:08.123";
        assert_eq!(
            texts(&[Some(time), Some("0001-01-01")], "TIMESTAMP f:c bytes_long millis").unwrap(),
            [Value::Whole(1_704_434_828_123), Value::Whole(-62_135_596_800_000)]
        );
        assert_eq!(texts(&[Some("")], "VARCHAR f:c raw").unwrap(), [raw(b"")]);
    }

    /// Also outside of the years 1677 to 2262, which a count of nanoseconds can state.
    #[test]
    fn times_are_exact_or_an_error() {
        for (time, unit, expected) in [
            ("0001-01-01 00:00:00.25", "millis", Ok(-62_135_596_799_750)),
            ("0001-01-01 00:00:00.250000000000Z", "millis", Ok(-62_135_596_799_750)),
            ("9999-12-31 23:59:59.000001+00:00", "micros", Ok(253_402_300_799_000_001)),
            ("1970-01-01 00:00:00.000000001000", "nanos", Ok(1)),
            ("1970-01-01 00:00:01", "seconds", Ok(1)),
            ("0001-01-01 00:00:00.0005", "millis", Err("more precise than milliseconds")),
            ("9999-12-31 23:59:59.5", "seconds", Err("more precise than seconds")),
            ("9999-12-31T23:59:59.0000001+02:00", "micros", Err("more precise than microseconds")),
            ("1970-01-01 00:00:00.0000000001", "nanos", Err("more precise than nanoseconds")),
            ("9999-12-31", "nanos", Err("is not a valid TIMESTAMP")),
        ] {
            let converted = texts(&[None, Some(time)], &format!("TIMESTAMP f:c bytes_long {unit}"));
            match (converted, expected) {
                (Ok(values), Ok(count)) => assert_eq!(values[1], Value::Whole(count), "{time} {unit}"),
                (Err(error), Err(part)) => {
                    assert!(error.row == 1 && error.message.contains(part), "{time} {unit}: {error:?}");
                }
                (converted, _) => panic!("{time} {unit}: {converted:?}"),
            }
        }
    }

    #[test]
    fn invalid_text_is_reported_with_its_row() {
        for (values, declared, expected) in [
            (["1", "x"], "INT f:c bytes_int", "'x' is not a valid INT"),
            (["1", "300"], "TINYINT f:c bytes_byte", "'300' is not a valid TINYINT"),
            (["1.25", "1.255"], "DECIMAL(5,2) f:c bytes_decimal", "'1.255' is not a valid DECIMAL(5,2)"),
            (["1.25", "1000"], "DECIMAL(5,2) f:c bytes_decimal", "'1000' is not a valid"),
            (["2024-01-05", "yesterday"], "TIMESTAMP f:c bytes_long millis", "'yesterday' is not"),
            (["2024-01-05", "2024-01-05 00:00:00.0001"], "TIMESTAMP f:c bytes_long millis", "milliseconds"),
            (["00", "0"], "BYTEA f:c raw", "hexadecimal"),
            (["true", "maybe"], "BOOLEAN f:c bytes_boolean", "'maybe' is not"),
        ] {
            let error = texts(&[Some(values[0]), Some(values[1])], declared).unwrap_err();
            assert_eq!(error.row, 1, "{declared}");
            assert!(error.message.contains(expected), "{declared}: {}", error.message);
        }
    }

    #[test]
    fn typed_values_are_converted_only_without_loss() {
        let whole = "BIGINT f:c bytes_long";
        assert_eq!(converted(Float64Array::from(vec![3.0]), whole).unwrap(), [Value::Whole(3)]);
        assert!(converted(Float64Array::from(vec![3.5]), whole).is_err());
        assert!(converted(UInt64Array::from(vec![u64::MAX]), whole).is_err());
        let real = "REAL f:c bytes_float";
        assert_eq!(converted(Float64Array::from(vec![0.5]), real).unwrap(), [Value::Real(0.5)]);
        let time = |micros: i64| TimestampMicrosecondArray::from(vec![micros]).with_timezone("+02:00");
        let millis = "TIMESTAMP f:c bytes_long millis";
        assert_eq!(converted(time(5_000), millis).unwrap(), [Value::Whole(5)]);
        assert!(converted(time(5_001), millis).unwrap_err().message.contains("finer unit"));
        let dictionary: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
        assert_eq!(converted(dictionary, "VARCHAR f:c raw").unwrap(), [raw(b"a"), raw(b"b"), raw(b"a")]);
        let bytes = BinaryArray::from(vec![&b"ok"[..], &[0xff]]);
        assert_eq!(converted(bytes, "VARCHAR f:c raw").unwrap_err().row, 1);
        assert!(converted(Int64Array::from(vec![1]), millis).unwrap_err().message.contains("cannot become"));
        assert!(converted(Int64Array::from(vec![1]), "BOOLEAN f:c bytes_boolean").is_err());
    }
}
