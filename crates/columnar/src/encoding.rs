//! How values are written in cells and row keys.
//!
//! A column's encoding is declared, never guessed: bytes that it would not have written are [`Unreadable`], and are told as such,
//! because a sum over numbers read by the wrong encoding looks like any other sum. What a file of this folder knows is one family
//! of encodings; what is here is what they have in common: names, nulls, errors.
//!
//! Nulls: Phoenix and texts write nothing at all, OrderedBytes writes a byte of its own. [`Encoding::Raw`] and those of `Bytes`
//! have no null but the absent cell.

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
        /// How the bytes of a value are read; the numbers are those of `Columns.proto`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Encoding {
            $($(#[$doc])+ $variant = $number,)+
        }

        impl Encoding {
            /// All of them, by their numbers.
            pub const ALL: &[Encoding] = &[$(Encoding::$variant,)+];

            /// Its name as declarations of columns write it: that of the protocol, in lower case.
            pub fn name(self) -> &'static str {
                match self { $(Encoding::$variant => $name,)+ }
            }
        }
    };
}

encodings! {
    /// Bytes as they are.
    Raw = 0 "raw",
    /// One byte: 0 is false, all others true.
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
    /// A scale of 4 bytes, and the unscaled number.
    BytesDecimal = 8 "bytes_decimal",
    /// Digits.
    TextLong = 16 "text_long",
    /// Digits with a point and an exponent.
    TextDouble = 17 "text_double",
    /// The same, kept exactly.
    TextDecimal = 18 "text_decimal",
    /// `true` or `false`.
    TextBoolean = 19 "text_boolean",
    /// A header, and a byte.
    OrderedInt8 = 32 "ordered_int8",
    /// A header, and 2 bytes.
    OrderedInt16 = 33 "ordered_int16",
    /// A header, and 4 bytes.
    OrderedInt32 = 34 "ordered_int32",
    /// A header, and 8 bytes.
    OrderedInt64 = 35 "ordered_int64",
    /// A header, and 4 bytes.
    OrderedFloat32 = 36 "ordered_float32",
    /// A header, and 8 bytes.
    OrderedFloat64 = 37 "ordered_float64",
    /// `encodeNumeric`, kept exactly.
    OrderedDecimal = 38 "ordered_decimal",
    /// `encodeNumeric`, as the nearest number of double precision.
    OrderedDouble = 39 "ordered_double",
    /// A header, text without a byte 0, and that byte.
    OrderedString = 40 "ordered_string",
    /// A header, and 7 bits in each byte.
    OrderedBlob = 41 "ordered_blob",
    /// A header, and the bytes as they are.
    OrderedBlobCopy = 42 "ordered_blob_copy",
    /// One byte, 0 or 1.
    PhoenixBoolean = 64 "phoenix_boolean",
    /// One byte with its sign bit turned.
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
    /// Sign, exponent and digits to the base 100.
    PhoenixDecimal = 71 "phoenix_decimal",
    /// Milliseconds since the epoch: `DATE` and `TIME`.
    PhoenixDate = 72 "phoenix_date",
    /// Milliseconds since the epoch and nanoseconds behind them, read as nanoseconds since the epoch.
    PhoenixTimestamp = 73 "phoenix_timestamp",
    /// Text, filled up with spaces that are no part of it.
    PhoenixChar = 74 "phoenix_char",
}

impl Encoding {
    /// Its number in `Columns.proto`.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The encoding of a number.
    pub fn from_number(number: i32) -> Option<Encoding> {
        Self::ALL.iter().copied().find(|encoding| encoding.number() == number)
    }

    /// The encoding of a name in lower case.
    pub fn from_name(name: &str) -> Option<Encoding> {
        Self::ALL.iter().copied().find(|encoding| encoding.name() == name)
    }

    /// The kind of its values, if decimals are kept with `scale` digits.
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

    /// The bytes of every value that is not null, where all have as many.
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

    /// Whether bytes are ordered as values are and each value is written in one way only, so that a comparison with a literal is a
    /// range of bytes: what [`Encoding::write`] makes of the literal is where it begins or ends.
    ///
    /// Not of the others: two's complement has the negative numbers last; `Bytes` has many bytes for true; of OrderedBytes some
    /// values may be ascending and some descending; Phoenix has -0 before 0, which are equal, and pads a `CHAR` with spaces that
    /// are greater than some characters.
    pub fn keeps_order(self) -> bool {
        use Encoding::*;
        let phoenix_whole = matches!(
            self,
            PhoenixBoolean | PhoenixTinyint | PhoenixSmallint | PhoenixInteger | PhoenixBigint
        );
        phoenix_whole || matches!(self, Raw | PhoenixDecimal | PhoenixDate | PhoenixTimestamp)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Unreadable`], told in one line and never longer than some hundred bytes.
    pub fn read(self, bytes: &[u8], scale: u8) -> Result<Value, Unreadable> {
        Ok(match self.kind(scale) {
            Kind::Whole => self.read_whole(bytes)?.map(Value::Whole),
            Kind::Real => self.read_real(bytes)?.map(Value::Real),
            Kind::Decimal { scale } => self.read_decimal(bytes, scale)?.map(Value::Decimal),
            Kind::Raw => self.read_raw(bytes)?.map(|raw| Value::Raw(raw.into_owned().into())),
        }
        .unwrap_or(Value::Null))
    }

    /// Reads a value of an encoding whose kind is [`Kind::Whole`]; `None` is null.
    ///
    /// For loops over many values: the ways of fixed width are inlined, and where the encoding is a constant to the compiler, no
    /// choice is left of them.
    ///
    /// # Errors
    /// [`Unreadable`]; of an encoding of another kind, always.
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

    /// Reads a value of an encoding whose kind is [`Kind::Real`], as [`Encoding::read_whole`] does.
    ///
    /// # Errors
    /// [`Unreadable`]; of an encoding of another kind, always.
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

    /// Reads a value of an encoding whose kind is [`Kind::Decimal`]: the unscaled number, of at most 38 digits, of the value with
    /// `scale` digits behind the point. It is exact; nothing is rounded.
    ///
    /// # Errors
    /// [`Unreadable`], also if the value has more digits behind the point that are not 0, or more than 38 in all; of an encoding
    /// of another kind, always.
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

    /// Reads a value of an encoding whose kind is [`Kind::Raw`]; `None` is null. Mostly it is a part of the bytes.
    ///
    /// # Errors
    /// [`Unreadable`]; of an encoding of another kind, always.
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

    /// Writes a value as HBase's or Phoenix' own class would, OrderedBytes ascending; `None` if the encoding has no bytes for it,
    /// or it is of another kind. Decimals are unscaled numbers with `scale` digits behind the point.
    ///
    /// What it wrote, [`Encoding::read`] reads as an equal value; a zero of [`Encoding::OrderedDouble`] loses its sign.
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

    /// What bytes are that were not read as a value: null, or an error.
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

/// Encodings that come from one place.
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
