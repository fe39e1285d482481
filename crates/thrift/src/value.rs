//! Values: their types, and how they are read and written. [`records!`] declares structs.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::protocol::{Fault, Kind};
use crate::reader::Reader;
use crate::writer::Writer;

/// A value that can be written.
pub trait Encode {
    /// Its type.
    const KIND: Kind;

    /// Writes it as an element or result.
    fn encode(&self, writer: &mut Writer);

    /// Writes it as a field.
    fn encode_field(&self, id: i16, writer: &mut Writer) {
        writer.field(Self::KIND, id);
        self.encode(writer);
    }
}

/// A value that can be read.
pub trait Decode: Sized {
    /// Its type.
    const KIND: Kind;

    /// Reads it.
    ///
    /// # Errors
    /// [`Fault`].
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Fault>;
}

/// A field of a struct.
pub(crate) trait Field: Sized {
    const KIND: Kind;
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault>;
    fn write(&self, id: i16, writer: &mut Writer);
}

impl<T: Encode + Decode> Field for T {
    const KIND: Kind = <T as Decode>::KIND;

    fn read(reader: &mut Reader<'_>) -> Result<T, Fault> {
        T::decode(reader)
    }

    fn write(&self, id: i16, writer: &mut Writer) {
        self.encode_field(id, writer);
    }
}

/// A field that may be absent.
impl<T: Encode + Decode> Field for Option<T> {
    const KIND: Kind = <T as Decode>::KIND;

    fn read(reader: &mut Reader<'_>) -> Result<Option<T>, Fault> {
        T::decode(reader).map(Some)
    }

    fn write(&self, id: i16, writer: &mut Writer) {
        if let Some(value) = self {
            value.encode_field(id, writer);
        }
    }
}

/// Declares structs. A field that is absent from a message has its default, which is that of its
/// type unless another is declared. Unknown fields, and those of another type, are skipped.
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($id:literal $field:ident : $kind:ty $(= $default:expr)?),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name {
            $(pub(crate) $field: $kind),*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $crate::value::records!(@default $($default)?)),* }
            }
        }

        impl $crate::value::Encode for $name {
            const KIND: $crate::protocol::Kind = $crate::protocol::Kind::Struct;

            fn encode(&self, writer: &mut $crate::writer::Writer) {
                let outer = writer.begin_struct();
                $($crate::value::Field::write(&self.$field, $id, writer);)*
                writer.end_struct(outer);
            }
        }

        impl $crate::value::Decode for $name {
            const KIND: $crate::protocol::Kind = $crate::protocol::Kind::Struct;

            fn decode(reader: &mut $crate::reader::Reader<'_>) -> std::result::Result<$name, $crate::protocol::Fault> {
                let mut record = $name::default();
                let outer = reader.begin_struct();
                while let Some((kind, id)) = reader.field()? {
                    match id {
                        $($id if kind == <$kind as $crate::value::Field>::KIND => {
                            record.$field = $crate::value::Field::read(reader)?;
                        })*
                        _ => reader.skip(kind)?,
                    }
                }
                reader.end_struct(outer);
                Ok(record)
            }
        }
    )*};
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
}
pub(crate) use records;

macro_rules! scalars {
    ($($type:ty, $kind:ident, $method:ident;)*) => {$(
        impl Encode for $type {
            const KIND: Kind = Kind::$kind;

            fn encode(&self, writer: &mut Writer) {
                writer.$method(*self);
            }
        }

        impl Decode for $type {
            const KIND: Kind = Kind::$kind;

            fn decode(reader: &mut Reader<'_>) -> Result<$type, Fault> {
                reader.$method()
            }
        }
    )*};
}

scalars! {
    i8, Byte, byte;
    i16, I16, i16;
    i32, I32, i32;
    i64, I64, i64;
}

impl Encode for bool {
    const KIND: Kind = Kind::Bool;

    fn encode(&self, writer: &mut Writer) {
        writer.truth(*self);
    }

    fn encode_field(&self, id: i16, writer: &mut Writer) {
        writer.truth_field(id, *self);
    }
}

impl Decode for bool {
    const KIND: Kind = Kind::Bool;

    fn decode(reader: &mut Reader<'_>) -> Result<bool, Fault> {
        reader.truth()
    }
}

impl Encode for Bytes {
    const KIND: Kind = Kind::Binary;

    fn encode(&self, writer: &mut Writer) {
        writer.binary(&[self]);
    }
}

impl Decode for Bytes {
    const KIND: Kind = Kind::Binary;

    fn decode(reader: &mut Reader<'_>) -> Result<Bytes, Fault> {
        reader.binary()
    }
}

impl Encode for String {
    const KIND: Kind = Kind::Binary;

    fn encode(&self, writer: &mut Writer) {
        writer.binary(&[self.as_bytes()]);
    }
}

/// As in Java, bytes that are not UTF-8 become replacement characters.
impl Decode for String {
    const KIND: Kind = Kind::Binary;

    fn decode(reader: &mut Reader<'_>) -> Result<String, Fault> {
        let bytes = reader.binary()?;
        reader.take_memory(3 * bytes.len())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl<T: Encode> Encode for Vec<T> {
    const KIND: Kind = Kind::List;

    fn encode(&self, writer: &mut Writer) {
        writer.elements(T::KIND, self.len());
        for element in self {
            element.encode(writer);
        }
    }
}

impl<T: Decode> Decode for Vec<T> {
    const KIND: Kind = Kind::List;

    fn decode(reader: &mut Reader<'_>) -> Result<Vec<T>, Fault> {
        let count = reader.elements(T::KIND)?;
        reader.take_memory(count.saturating_mul(size_of::<T>()))?;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(T::decode(reader)?);
        }
        Ok(elements)
    }
}

impl<T: Encode + Ord> Encode for BTreeSet<T> {
    const KIND: Kind = Kind::Set;

    fn encode(&self, writer: &mut Writer) {
        writer.elements(T::KIND, self.len());
        for element in self {
            element.encode(writer);
        }
    }
}

impl<T: Decode + Ord> Decode for BTreeSet<T> {
    const KIND: Kind = Kind::Set;

    fn decode(reader: &mut Reader<'_>) -> Result<BTreeSet<T>, Fault> {
        let count = reader.elements(T::KIND)?;
        reader.take_memory(count.saturating_mul(TREE_FACTOR * size_of::<T>()))?;
        (0..count).map(|_| T::decode(reader)).collect()
    }
}

/// Memory of a tree, as a multiple of that of its entries.
const TREE_FACTOR: usize = 2;

impl<K: Encode + Ord, V: Encode> Encode for BTreeMap<K, V> {
    const KIND: Kind = Kind::Map;

    fn encode(&self, writer: &mut Writer) {
        writer.pairs((K::KIND, V::KIND), self.len());
        for (key, value) in self {
            key.encode(writer);
            value.encode(writer);
        }
    }
}

impl<K: Decode + Ord, V: Decode> Decode for BTreeMap<K, V> {
    const KIND: Kind = Kind::Map;

    fn decode(reader: &mut Reader<'_>) -> Result<BTreeMap<K, V>, Fault> {
        let count = reader.pairs((K::KIND, V::KIND))?;
        reader.take_memory(count.saturating_mul(TREE_FACTOR * size_of::<(K, V)>()))?;
        (0..count).map(|_| Ok((K::decode(reader)?, V::decode(reader)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use base::budget::{Budget, BudgetShare};

    use super::*;
    use crate::bounds::Bounds;
    use crate::message::MessageHeader;
    use crate::protocol::Protocol;

    records! {
        /// A struct in a map.
        Inner { 1 text: Bytes }
        /// A struct with every type.
        Outer {
            1 text: Bytes,
            2 yes: bool,
            3 no: bool = true,
            4 byte: i8,
            5 short: i16,
            6 int: i32,
            7 long: i64,
            8 ints: Vec<i32>,
            9 map: BTreeMap<String, Inner>,
            10 none: Vec<String>,
            11 empty: BTreeMap<String, String>,
            12 absent: Option<i64>,
            200 far: Option<Bytes>,
            201 truths: Vec<bool>,
        }
        /// The same struct with fewer fields.
        Smaller { 1 text: Bytes, 7 long: i64, 6 other: Option<Bytes> }
    }

    const PROTOCOLS: [Protocol; 3] = [Protocol::Binary, Protocol::Compact, Protocol::OldBinary];

    /// Calls of method `m` with number 300, as Apache Thrift 0.25 for Python writes them.
    const CALLS: [&str; 3] = [
        "80010001000000016d0000012c0b000100000003726f770200020102000300030004fe060005fed40800060001\
         11700a0007fffffffed5fa0e000f000808000000030000000000000001000000020d00090b0c00000001000000\
         016b0b00010000000176000f000a0b000000000d000b0b0b000000000b00c8000000036661720f00c902000000\
         02010000",
        "8221ac02016d1803726f77111213fe14d70415e0c50816ffc7afa02519350002041b018c016b1801760019081b\
         00089003036661721921010200",
        "000000016d010000012c0b000100000003726f770200020102000300030004fe060005fed4080006000111700a\
         0007fffffffed5fa0e000f000808000000030000000000000001000000020d00090b0c00000001000000016b0b\
         00010000000176000f000a0b000000000d000b0b0b000000000b00c8000000036661720f00c90200000002010000",
    ];

    fn bytes_of(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.chars().filter_map(|digit| Some(digit.to_digit(16)? as u8)).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn outer() -> Outer {
        Outer {
            text: "row".into(),
            yes: true,
            no: false,
            byte: -2,
            short: -300,
            int: 70_000,
            long: -5_000_000_000,
            ints: vec![0, 1, 2],
            map: BTreeMap::from([("k".into(), Inner { text: "v".into() })]),
            far: Some("far".into()),
            truths: vec![true, false],
            ..Outer::default()
        }
    }

    fn memory() -> BudgetShare {
        BudgetShare::of(&Budget::new(1 << 20))
    }

    /// Decodes a call with these arguments.
    fn decode<T: Decode>(call: &[u8]) -> Result<(MessageHeader, T), Fault> {
        let mut memory = memory();
        let protocol = Protocol::of(*call.first().ok_or(Fault::Truncated)?)?;
        let mut reader = Reader::new(protocol, Bytes::copy_from_slice(call), &mut memory);
        let header = MessageHeader::decode(&mut reader)?;
        Ok((header, T::decode(&mut reader)?))
    }

    #[test]
    fn calls_of_apache_thrift_are_decoded() {
        for call in CALLS.map(bytes_of) {
            let (header, arguments): (_, Outer) = decode(&call).unwrap();
            assert_eq!((&header.name[..], header.sequence), (&b"m"[..], 300));
            assert_eq!(arguments, outer());
        }
    }

    #[test]
    fn structs_are_encoded_as_apache_thrift_does() {
        for (protocol, call) in PROTOCOLS.into_iter().zip(CALLS.map(bytes_of)) {
            let mut writer = Writer::new(protocol, 0);
            outer().encode(&mut writer);
            let encoded = writer.finish();
            assert!(call.ends_with(&encoded), "{protocol:?}: {encoded:x?}");
        }
    }

    #[test]
    fn long_lists_and_unusual_field_numbers_are_decoded() {
        for protocol in PROTOCOLS {
            let value = Outer { ints: (0..1000).collect(), truths: vec![true; 15], ..outer() };
            let mut writer = Writer::new(protocol, 4);
            let outer = writer.begin_struct();
            value.encode_field(-7, &mut writer);
            value.encode_field(300, &mut writer);
            writer.end_struct(outer);
            let bytes = Bytes::from(writer.finish()).slice(4..);
            let mut memory = memory();
            let mut reader = Reader::new(protocol, bytes, &mut memory);
            reader.begin_struct();
            for id in [-7, 300] {
                assert_eq!(reader.field(), Ok(Some((Kind::Struct, id))));
                assert_eq!(Outer::decode(&mut reader).as_ref(), Ok(&value));
            }
            assert_eq!(reader.field(), Ok(None));
        }
    }

    #[test]
    fn unknown_fields_and_fields_of_other_types_are_skipped() {
        for call in CALLS.map(bytes_of) {
            let (_, arguments): (_, Smaller) = decode(&call).unwrap();
            let expected = Smaller { text: "row".into(), long: -5_000_000_000, other: None };
            assert_eq!(arguments, expected);
        }
    }

    #[test]
    fn truncated_calls_are_refused() {
        for call in CALLS.map(bytes_of) {
            for len in 0..call.len() {
                assert_eq!(decode::<Outer>(&call[..len]).unwrap_err(), Fault::Truncated, "{len} bytes");
                assert_eq!(decode::<Smaller>(&call[..len]).unwrap_err(), Fault::Truncated, "{len} bytes");
            }
        }
    }

    #[test]
    fn changed_bytes_are_refused_or_read_within_bounds() {
        for call in CALLS.map(bytes_of) {
            for at in 0..call.len() {
                for byte in [0, 1, 2, 0x0c, 0x0f, 0x7f, 0x80, 0xff] {
                    let mut damaged = call.clone();
                    damaged[at] = byte;
                    let decoded = decode::<Outer>(&damaged).map(drop);
                    // `Bounds` finds the end of each message that the decoder accepts.
                    if decoded.is_ok() {
                        let protocol = Protocol::of(damaged[0]).unwrap();
                        let end = Bounds::of_message(protocol, 1 << 20).advance(&damaged);
                        assert!(matches!(end, Ok(Some(_))), "byte {byte} at {at}: {end:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn large_sizes_take_no_memory() {
        // A list of two billion structs, and one of as many structs as there are bytes.
        let huge = bytes_of("0f0001 0c 7fffffff");
        let mut share = memory();
        let mut reader = Reader::new(Protocol::Binary, huge.into(), &mut share);
        reader.field().unwrap();
        assert_eq!(Vec::<Outer>::decode(&mut reader), Err(Fault::Truncated));
        let many = [&bytes_of("0f0001 0c 00010000")[..], &[0; 1 << 16]].concat();
        let mut share = memory();
        let mut reader = Reader::new(Protocol::Binary, many.into(), &mut share);
        reader.field().unwrap();
        assert_eq!(Vec::<Outer>::decode(&mut reader), Err(Fault::NoMemory));
    }

    #[test]
    fn the_end_of_a_message_is_found_piece_by_piece() {
        for (protocol, call) in PROTOCOLS.into_iter().zip(CALLS.map(bytes_of)) {
            let longer = [&call[..], b"next"].concat();
            for step in [1, 2, 3, 7, 50] {
                let mut bounds = Bounds::of_message(protocol, call.len());
                let mut len = 0;
                let end = loop {
                    match bounds.advance(&longer[..len]).unwrap() {
                        Some(end) => break end,
                        None => len = (len + step).min(longer.len()),
                    }
                };
                assert_eq!(end, call.len(), "{protocol:?} in steps of {step}");
                assert!(len < call.len() + step, "no byte after the message is needed");
            }
            let mut bounds = Bounds::of_message(protocol, call.len() - 1);
            assert_eq!(bounds.advance(&call), Err(Fault::TooLong));
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let header = bytes_of("80010001 00000001 6d 00000001");
        let nested = |depth: usize| {
            [&header[..], &[0x0c, 0, 1].repeat(depth)[..], &[0].repeat(depth + 1)[..]].concat()
        };
        let end = |depth| Bounds::of_message(Protocol::Binary, 1 << 20).advance(&nested(depth));
        assert_eq!(end(50), Ok(Some(nested(50).len())));
        assert_eq!(end(100), Err(Fault::TooDeep));
        assert!(decode::<Smaller>(&nested(50)).is_ok());
        assert_eq!(decode::<Smaller>(&nested(100)).unwrap_err(), Fault::TooDeep);
    }
}
