//! SQL types of cell values: the encodings that each type can be read from, and the defaults.

use std::fmt;

use columnar::{Encoding, Kind};
use datafusion::arrow::datatypes::{DataType, TimeUnit};

/// Maximum number of digits of a decimal.
const DECIMAL_DIGITS_MAX: u8 = columnar::column::DECIMAL_DIGITS_MAX;

/// The type of a declared column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlType(DataType);

/// The encoding family of columns that do not specify an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Family {
    /// `org.apache.hadoop.hbase.util.Bytes`.
    #[default]
    Bytes,
    /// Digits, as the shell's `put` writes them.
    Text,
    /// `OrderedBytes`.
    Ordered,
    /// Apache Phoenix.
    Phoenix,
}

impl SqlType {
    /// The SQL type of an Arrow type.
    ///
    /// # Errors
    /// A message, if no column can have the type.
    pub fn from_arrow(data_type: &DataType) -> Result<SqlType, String> {
        let own = match data_type {
            DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64 => data_type.clone(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
            DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Millisecond, None),
            DataType::Decimal128(digits, scale)
                if *digits <= DECIMAL_DIGITS_MAX && *scale >= 0 && *scale as u8 <= *digits =>
            {
                data_type.clone()
            }
            DataType::Date32 | DataType::Date64 => {
                return Err(
                    "DATE is not supported in cells: declare TIMESTAMP, and use column::date in queries"
                        .into(),
                );
            }
            other => {
                return Err(format!(
                    "columns cannot have type {other}; supported types are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, REAL, DOUBLE, \
                     DECIMAL(p,s) up to {DECIMAL_DIGITS_MAX} digits, TIMESTAMP, VARCHAR and BYTEA"
                ));
            }
        };
        Ok(SqlType(own))
    }

    /// The Arrow type.
    pub fn arrow(&self) -> &DataType {
        &self.0
    }

    /// The same type with the time unit `unit`; `None` if it is not TIMESTAMP.
    pub fn counted_in(&self, unit: TimeUnit) -> Option<SqlType> {
        matches!(self.0, DataType::Timestamp(..)).then_some(SqlType(DataType::Timestamp(unit, None)))
    }

    /// The number of decimal places; 0 for types other than DECIMAL.
    pub fn scale(&self) -> u8 {
        match self.0 {
            DataType::Decimal128(_, scale) => scale.unsigned_abs(),
            _ => 0,
        }
    }

    /// The default encoding of this type in `family`.
    pub fn default_encoding(&self, family: Family) -> Encoding {
        use Encoding as E;
        let [bytes, text, ordered, phoenix] = match &self.0 {
            DataType::Boolean => {
                // OrderedBytes has no boolean encoding.
                [E::BytesBoolean, E::TextBoolean, E::BytesBoolean, E::PhoenixBoolean]
            }
            DataType::Int8 => [E::BytesByte, E::TextLong, E::OrderedInt8, E::PhoenixTinyint],
            DataType::Int16 => [E::BytesShort, E::TextLong, E::OrderedInt16, E::PhoenixSmallint],
            DataType::Int32 => [E::BytesInt, E::TextLong, E::OrderedInt32, E::PhoenixInteger],
            DataType::Int64 => [E::BytesLong, E::TextLong, E::OrderedInt64, E::PhoenixBigint],
            DataType::Float32 => [E::BytesFloat, E::TextDouble, E::OrderedFloat32, E::PhoenixFloat],
            DataType::Float64 => [E::BytesDouble, E::TextDouble, E::OrderedFloat64, E::PhoenixDouble],
            DataType::Decimal128(..) => {
                [E::BytesDecimal, E::TextDecimal, E::OrderedDecimal, E::PhoenixDecimal]
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                [E::BytesLong, E::TextLong, E::OrderedInt64, E::PhoenixTimestamp]
            }
            DataType::Timestamp(..) => [E::BytesLong, E::TextLong, E::OrderedInt64, E::PhoenixDate],
            DataType::Binary => [E::Raw, E::Raw, E::OrderedBlob, E::Raw],
            _ => [E::Raw, E::Raw, E::OrderedString, E::Raw],
        };
        match family {
            Family::Bytes => bytes,
            Family::Text => text,
            Family::Ordered => ordered,
            Family::Phoenix => phoenix,
        }
    }

    /// Whether this type can represent values of `encoding`.
    pub fn reads(&self, encoding: Encoding) -> bool {
        let is_boolean =
            matches!(encoding, Encoding::BytesBoolean | Encoding::TextBoolean | Encoding::PhoenixBoolean);
        match (&self.0, encoding.kind(self.scale())) {
            (DataType::Boolean, Kind::Whole) => is_boolean,
            (DataType::Timestamp(..), Kind::Whole) => !is_boolean,
            (DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64, Kind::Whole) => true,
            (DataType::Float32 | DataType::Float64, Kind::Real) => true,
            (DataType::Decimal128(..), Kind::Decimal { .. }) => true,
            (DataType::Utf8 | DataType::Binary, Kind::Raw) => true,
            _ => false,
        }
    }
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.0 {
            DataType::Boolean => "BOOLEAN",
            DataType::Int8 => "TINYINT",
            DataType::Int16 => "SMALLINT",
            DataType::Int32 => "INT",
            DataType::Int64 => "BIGINT",
            DataType::Float32 => "REAL",
            DataType::Float64 => "DOUBLE",
            DataType::Decimal128(digits, scale) => return write!(f, "DECIMAL({digits},{scale})"),
            DataType::Timestamp(..) => "TIMESTAMP",
            DataType::Binary => "BYTEA",
            _ => "VARCHAR",
        };
        f.write_str(name)
    }
}

impl std::str::FromStr for SqlType {
    type Err = String;

    /// Parses the output of [`SqlType`]'s `Display`.
    fn from_str(text: &str) -> Result<SqlType, String> {
        let unknown = || format!("{text} is not a column type");
        let data_type = match text {
            "BOOLEAN" => DataType::Boolean,
            "TINYINT" => DataType::Int8,
            "SMALLINT" => DataType::Int16,
            "INT" => DataType::Int32,
            "BIGINT" => DataType::Int64,
            "REAL" => DataType::Float32,
            "DOUBLE" => DataType::Float64,
            "TIMESTAMP" => DataType::Timestamp(TimeUnit::Millisecond, None),
            "BYTEA" => DataType::Binary,
            "VARCHAR" => DataType::Utf8,
            _ => {
                let digits = text.strip_prefix("DECIMAL(").and_then(|rest| rest.strip_suffix(')'));
                let (digits, scale) = digits.and_then(|both| both.split_once(',')).ok_or_else(unknown)?;
                let number = |text: &str| text.parse::<u8>().map_err(|_| unknown());
                DataType::Decimal128(number(digits)?, number(scale)?.cast_signed())
            }
        };
        SqlType::from_arrow(&data_type)
    }
}

impl std::str::FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Family, String> {
        match text.to_ascii_lowercase().as_str() {
            "bytes" => Ok(Family::Bytes),
            "text" => Ok(Family::Text),
            "ordered" => Ok(Family::Ordered),
            "phoenix" => Ok(Family::Phoenix),
            _ => Err(format!("'table.encoding' '{text}': expected bytes, text, ordered or phoenix")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [&str; 11] = [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "REAL",
        "DOUBLE",
        "TIMESTAMP",
        "BYTEA",
        "VARCHAR",
        "DECIMAL(12,2)",
    ];

    #[test]
    fn types_are_written_as_they_are_read() {
        for text in TYPES {
            assert_eq!(text.parse::<SqlType>().unwrap().to_string(), text);
        }
        for text in ["DATE", "DECIMAL(39,2)", "DECIMAL(3,4)", "DECIMAL(3)", "decimal(3,1)", ""] {
            assert!(text.parse::<SqlType>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_type_can_read_its_own_encodings() {
        for text in TYPES {
            let sql_type: SqlType = text.parse().unwrap();
            for family in [Family::Bytes, Family::Text, Family::Ordered, Family::Phoenix] {
                let encoding = sql_type.default_encoding(family);
                assert!(sql_type.reads(encoding), "{text} from {}", encoding.name());
            }
        }
        let varchar: SqlType = "VARCHAR".parse().unwrap();
        assert!(!varchar.reads(Encoding::BytesLong));
    }
}
