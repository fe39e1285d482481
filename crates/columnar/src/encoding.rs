//! Encodings of values in cells and row keys.
//!
//! A column's encoding is declared, never guessed. Bytes that the encoding cannot have written are
//! reported as [`Unreadable`], because a sum over wrongly decoded numbers looks like any other sum.
//! Each file in this directory implements one family of encodings. This file has the common parts:
//! names, nulls, errors.
//!
//! Nulls: Phoenix and text encodings write no bytes, OrderedBytes writes a special byte.
//! [`Encoding::Raw`] and the `Bytes` encodings have no null except a missing cell.

mod bytes;
mod decimal;
mod order;
mod ordered;
mod phoenix;
mod text;
mod unreadable;

use std::borrow::Cow;

use crate::value::{Kind, Value};
use decimal::Fault;
pub use order::Span;
pub use unreadable::Unreadable;

/// Declares the encodings once: variant, number in `Columns.proto`, name in SQL.
macro_rules! encodings {
    ($($(#[$doc:meta])+ $variant:ident = $number:literal $name:literal,)+) => {
        /// Encoding of the bytes of a value; the numbers are those of `Columns.proto`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Encoding {
            $($(#[$doc])+ $variant = $number,)+
        }

        impl Encoding {
            /// All encodings, ordered by number.
            pub const ALL: &[Encoding] = &[$(Encoding::$variant,)+];

            /// Name in column declarations: the protocol's name in lower case.
            pub fn name(self) -> &'static str {
                match self { $(Encoding::$variant => $name,)+ }
            }
        }
    };
}

encodings! {
    /// Unencoded bytes.
    Raw = 0 "raw",
    /// One byte: 0 is false, all other values are true.
    BytesBoolean = 1 "bytes_boolean",
    /// One byte, signed.
    BytesByte = 2 "bytes_byte",
    /// 2 bytes, big endian.
    BytesShort = 3 "bytes_short",
    /// 4 bytes, big endian.
    BytesInt = 4 "bytes_int",
    /// 8 bytes, big endian.
    BytesLong = 5 "bytes_long",
    /// IEEE 754, 4 bytes, big endian.
    BytesFloat = 6 "bytes_float",
    /// IEEE 754, 8 bytes, big endian.
    BytesDouble = 7 "bytes_double",
    /// A 4-byte scale, then the unscaled number.
    BytesDecimal = 8 "bytes_decimal",
    /// Decimal digits.
    TextLong = 16 "text_long",
    /// Decimal digits with a decimal point and an exponent.
    TextDouble = 17 "text_double",
    /// Like `TextDouble`, read exactly.
    TextDecimal = 18 "text_decimal",
    /// `true` or `false`.
    TextBoolean = 19 "text_boolean",
    /// A header and 1 byte.
    OrderedInt8 = 32 "ordered_int8",
    /// A header and 2 bytes.
    OrderedInt16 = 33 "ordered_int16",
    /// A header and 4 bytes.
    OrderedInt32 = 34 "ordered_int32",
    /// A header and 8 bytes.
    OrderedInt64 = 35 "ordered_int64",
    /// A header and 4 bytes.
    OrderedFloat32 = 36 "ordered_float32",
    /// A header and 8 bytes.
    OrderedFloat64 = 37 "ordered_float64",
    /// `encodeNumeric`, read exactly.
    OrderedDecimal = 38 "ordered_decimal",
    /// `encodeNumeric`, read as the nearest double.
    OrderedDouble = 39 "ordered_double",
    /// A header, text without zero bytes, and a terminating zero byte.
    OrderedString = 40 "ordered_string",
    /// A header, then bytes with 7 bits of data each.
    OrderedBlob = 41 "ordered_blob",
    /// A header, then the bytes unencoded.
    OrderedBlobCopy = 42 "ordered_blob_copy",
    /// One byte, 0 or 1.
    PhoenixBoolean = 64 "phoenix_boolean",
    /// One byte with its sign bit inverted.
    PhoenixTinyint = 65 "phoenix_tinyint",
    /// 2 bytes.
    PhoenixSmallint = 66 "phoenix_smallint",
    /// 4 bytes.
    PhoenixInteger = 67 "phoenix_integer",
    /// 8 bytes.
    PhoenixBigint = 68 "phoenix_bigint",
    /// 4 bytes.
    PhoenixFloat = 69 "phoenix_float",
    /// 8 bytes.
    PhoenixDouble = 70 "phoenix_double",
    /// Sign, exponent and base-100 digits.
    PhoenixDecimal = 71 "phoenix_decimal",
    /// Milliseconds since the epoch: `DATE` and `TIME`.
    PhoenixDate = 72 "phoenix_date",
    /// Milliseconds since the epoch, then nanoseconds; read as nanoseconds since the epoch.
    PhoenixTimestamp = 73 "phoenix_timestamp",
    /// Text, padded with spaces that are not part of the value.
    PhoenixChar = 74 "phoenix_char",
}

impl Encoding {
    /// The number in `Columns.proto`.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The encoding with this number.
    pub fn from_number(number: i32) -> Option<Encoding> {
        Self::ALL.iter().copied().find(|encoding| encoding.number() == number)
    }

    /// The encoding with this name, in lower case.
    pub fn from_name(name: &str) -> Option<Encoding> {
        Self::ALL.iter().copied().find(|encoding| encoding.name() == name)
    }

    /// The kind of its values; decimals have `scale` digits after the decimal point.
    pub fn kind(self, scale: u8) -> Kind {
        use Encoding::*;
        match self {
            Raw | OrderedString | OrderedBlob | OrderedBlobCopy | PhoenixChar => Kind::Raw,
            BytesBoolean | BytesByte | BytesShort | BytesInt | BytesLong => Kind::Whole,
            TextLong | TextBoolean => Kind::Whole,
            OrderedInt8 | OrderedInt16 | OrderedInt32 | OrderedInt64 => Kind::Whole,
            PhoenixBoolean | PhoenixTinyint | PhoenixSmallint | PhoenixInteger | PhoenixBigint => Kind::Whole,
            PhoenixDate | PhoenixTimestamp => Kind::Whole,
            BytesFloat | BytesDouble | TextDouble | PhoenixFloat | PhoenixDouble => Kind::Real,
            OrderedFloat32 | OrderedFloat64 | OrderedDouble => Kind::Real,
            BytesDecimal | TextDecimal | OrderedDecimal | PhoenixDecimal => Kind::Decimal { scale },
        }
    }

    /// Number of bytes of a non-null value, if all have the same length.
    pub fn width(self) -> Option<usize> {
        use Encoding::*;
        match self {
            BytesBoolean | BytesByte | PhoenixBoolean | PhoenixTinyint => Some(1),
            BytesShort | PhoenixSmallint | OrderedInt8 => Some(2),
            OrderedInt16 => Some(3),
            BytesInt | BytesFloat | PhoenixInteger | PhoenixFloat => Some(4),
            OrderedInt32 | OrderedFloat32 => Some(5),
            BytesLong | BytesDouble | PhoenixBigint | PhoenixDouble | PhoenixDate => Some(8),
            OrderedInt64 | OrderedFloat64 => Some(9),
            PhoenixTimestamp => Some(12),
            _ => None,
        }
    }

    /// Whether byte order equals value order and each value has exactly one encoded form. A
    /// comparison with a literal is then a range of bytes, and [`Encoding::write`] of the literal
    /// is one of its ends.
    ///
    /// The other encodings do not have this property. In two's complement negative numbers sort
    /// last. `Bytes` has many bytes for true. OrderedBytes values may be ascending or descending.
    /// Phoenix sorts -0 before 0, which are equal, and pads a `CHAR` with spaces, which sort after
    /// some characters.
    pub fn keeps_order(self) -> bool {
        use Encoding::*;
        let phoenix_whole = matches!(
            self,
            PhoenixBoolean | PhoenixTinyint | PhoenixSmallint | PhoenixInteger | PhoenixBigint
        );
        phoenix_whole || matches!(self, Raw | PhoenixDecimal | PhoenixDate | PhoenixTimestamp)
    }

    /// Decodes a value.
    ///
    /// # Errors
    /// [`Unreadable`]; the message is one line of at most a few hundred bytes.
    pub fn read(self, bytes: &[u8], scale: u8) -> Result<Value, Unreadable> {
        Ok(match self.kind(scale) {
            Kind::Whole => self.read_whole(bytes)?.map(Value::Whole),
            Kind::Real => self.read_real(bytes)?.map(Value::Real),
            Kind::Decimal { scale } => self.read_decimal(bytes, scale)?.map(Value::Decimal),
            Kind::Raw => self.read_raw(bytes)?.map(|raw| Value::Raw(raw.into_owned().into())),
        }
        .unwrap_or(Value::Null))
    }

    /// Decodes a value of an encoding with [`Kind::Whole`]; `None` is null.
    ///
    /// For loops over many values: fixed-width decoders are inlined, and if the encoding is a
    /// compile-time constant, the `match` is removed.
    ///
    /// # Errors
    /// [`Unreadable`]; always for an encoding of another kind.
    #[inline]
    pub fn read_whole(self, bytes: &[u8]) -> Result<Option<i64>, Unreadable> {
        let value = match self {
            Encoding::BytesBoolean => bytes::boolean(bytes),
            Encoding::BytesByte => bytes::byte(bytes),
            Encoding::BytesShort => bytes::short(bytes),
            Encoding::BytesInt => bytes::int(bytes),
            Encoding::BytesLong => bytes::long(bytes),
            Encoding::TextLong => text::long(bytes),
            Encoding::TextBoolean => text::boolean(bytes),
            Encoding::OrderedInt8 => ordered::int8(bytes),
            Encoding::OrderedInt16 => ordered::int16(bytes),
            Encoding::OrderedInt32 => ordered::int32(bytes),
            Encoding::OrderedInt64 => ordered::int64(bytes),
            Encoding::PhoenixBoolean => phoenix::boolean(bytes),
            Encoding::PhoenixTinyint => phoenix::tinyint(bytes),
            Encoding::PhoenixSmallint => phoenix::smallint(bytes),
            Encoding::PhoenixInteger => phoenix::integer(bytes),
            Encoding::PhoenixBigint | Encoding::PhoenixDate => phoenix::bigint(bytes),
            Encoding::PhoenixTimestamp => phoenix::timestamp(bytes),
            _ => return Err(self.other_kind("whole numbers")),
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => self.null(bytes, Fault::Form),
        }
    }

    /// Decodes a value of an encoding with [`Kind::Real`], like [`Encoding::read_whole`].
    ///
    /// # Errors
    /// [`Unreadable`]; always for an encoding of another kind.
    #[inline]
    pub fn read_real(self, bytes: &[u8]) -> Result<Option<f64>, Unreadable> {
        let value = match self {
            Encoding::BytesFloat => bytes::float(bytes),
            Encoding::BytesDouble => bytes::double(bytes),
            Encoding::TextDouble => text::double(bytes),
            Encoding::OrderedFloat32 => ordered::float32(bytes),
            Encoding::OrderedFloat64 => ordered::float64(bytes),
            Encoding::OrderedDouble => ordered::double(bytes),
            Encoding::PhoenixFloat => phoenix::float(bytes),
            Encoding::PhoenixDouble => phoenix::double(bytes),
            _ => return Err(self.other_kind("real numbers")),
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => self.null(bytes, Fault::Form),
        }
    }

    /// Decodes a value of an encoding with [`Kind::Decimal`]. Returns the unscaled number of at
    /// most 38 digits for `scale` digits after the decimal point. The result is exact; nothing is
    /// rounded.
    ///
    /// # Errors
    /// [`Unreadable`], also if the value has more non-zero digits after the decimal point, or more
    /// than 38 digits in total; always for an encoding of another kind.
    #[inline]
    pub fn read_decimal(self, bytes: &[u8], scale: u8) -> Result<Option<i128>, Unreadable> {
        let value = match self {
            Encoding::BytesDecimal => bytes::decimal(bytes, scale),
            Encoding::TextDecimal => text::decimal(bytes, scale),
            Encoding::OrderedDecimal => ordered::decimal(bytes, scale),
            Encoding::PhoenixDecimal => phoenix::decimal(bytes, scale),
            _ => return Err(self.other_kind("decimals")),
        };
        match value {
            Ok(value) => Ok(Some(value)),
            Err(fault) => self.null(bytes, fault),
        }
    }

    /// Decodes a value of an encoding with [`Kind::Raw`]; `None` is null. The value usually borrows
    /// from `bytes`.
    ///
    /// # Errors
    /// [`Unreadable`]; always for an encoding of another kind.
    #[inline]
    pub fn read_raw(self, bytes: &[u8]) -> Result<Option<Cow<'_, [u8]>>, Unreadable> {
        let value = match self {
            Encoding::Raw => Some(Cow::Borrowed(bytes)),
            Encoding::OrderedString => ordered::string(bytes),
            Encoding::OrderedBlob => ordered::blob(bytes).map(Cow::Owned),
            Encoding::OrderedBlobCopy => ordered::blob_copy(bytes),
            Encoding::PhoenixChar => phoenix::char(bytes).map(Cow::Borrowed),
            _ => return Err(self.other_kind("bytes")),
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => self.null(bytes, Fault::Form),
        }
    }

    /// Encodes a value as HBase's or Phoenix's own class does, OrderedBytes in ascending order.
    /// `None` if the encoding cannot represent the value or has another kind. Decimals are unscaled
    /// numbers with `scale` digits after the decimal point.
    ///
    /// [`Encoding::read`] decodes the result to an equal value; only a zero of
    /// [`Encoding::OrderedDouble`] loses its sign.
    pub fn write(self, value: &Value, scale: u8) -> Option<Vec<u8>> {
        match value {
            Value::Null => self.family().null(),
            Value::Whole(value) => match self.family() {
                Family::Raw => None,
                Family::Bytes => bytes::write_whole(self, *value),
                Family::Text => text::write_whole(self, *value),
                Family::Ordered => ordered::write_whole(self, *value),
                Family::Phoenix => phoenix::write_whole(self, *value),
            },
            Value::Real(value) => match self.family() {
                Family::Raw => None,
                Family::Bytes => bytes::write_real(self, *value),
                Family::Text => text::write_real(self, *value),
                Family::Ordered => ordered::write_real(self, *value),
                Family::Phoenix => phoenix::write_real(self, *value),
            },
            Value::Decimal(value) => {
                let value = decimal::fits(*value).then_some(*value)?;
                match self {
                    Encoding::BytesDecimal => Some(bytes::write_decimal(value, scale)),
                    Encoding::TextDecimal => Some(text::write_decimal(value, scale)),
                    Encoding::OrderedDecimal => ordered::write_decimal(value, scale),
                    Encoding::PhoenixDecimal => phoenix::write_decimal(value, scale),
                    _ => None,
                }
            }
            Value::Raw(value) => match self {
                Encoding::Raw => Some(value.to_vec()),
                Encoding::OrderedString => ordered::write_string(value),
                Encoding::OrderedBlob => Some(ordered::write_blob(value)),
                Encoding::OrderedBlobCopy => Some(ordered::write_blob_copy(value)),
                Encoding::PhoenixChar => phoenix::write_char(value),
                _ => None,
            },
        }
    }

    fn family(self) -> Family {
        match self.number() {
            0 => Family::Raw,
            1..16 => Family::Bytes,
            16..32 => Family::Text,
            32..64 => Family::Ordered,
            _ => Family::Phoenix,
        }
    }

    /// Classifies bytes that were not decoded as a value: null, or an error.
    #[inline(never)]
    fn null<T>(self, bytes: &[u8], fault: Fault) -> Result<Option<T>, Unreadable> {
        let null = match self.family() {
            Family::Raw | Family::Bytes => false,
            Family::Text | Family::Phoenix => bytes.is_empty(),
            Family::Ordered => ordered::is_null(bytes),
        };
        if null { Ok(None) } else { Err(self.unreadable(bytes, fault)) }
    }
}

/// Encodings with a common origin.
#[derive(Clone, Copy)]
enum Family {
    Raw,
    Bytes,
    Text,
    Ordered,
    Phoenix,
}

impl Family {
    fn null(self) -> Option<Vec<u8>> {
        match self {
            Family::Raw | Family::Bytes => None,
            Family::Text | Family::Phoenix => Some(Vec::new()),
            Family::Ordered => Some(ordered::write_null()),
        }
    }
}
