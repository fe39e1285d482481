//! What holds of all encodings, over random values and random bytes.

use columnar::{Encoding, Kind, Value};
use proptest::prelude::*;

const DECIMAL_BOUND: i128 = 10i128.pow(38);

fn any_encoding() -> impl Strategy<Value = Encoding> {
    prop::sample::select(Encoding::ALL)
}

fn ordered_encoding() -> impl Strategy<Value = Encoding> {
    prop::sample::select(
        Encoding::ALL.iter().copied().filter(|encoding| encoding.keeps_order()).collect::<Vec<_>>(),
    )
}

/// Values of a kind, of all sizes; those that an encoding has no bytes for are among them.
fn values(kind: Kind) -> BoxedStrategy<Value> {
    match kind {
        Kind::Whole => prop_oneof![
            any::<i64>(),
            -2..3i64,
            (any::<i64>(), 0..64u32).prop_map(|(bits, less)| bits >> less)
        ]
        .prop_map(Value::Whole)
        .boxed(),
        Kind::Real => prop_oneof![
            any::<f64>(),
            any::<u64>().prop_map(f64::from_bits),
            any::<f32>().prop_map(f64::from),
            (-1000..1000).prop_map(|hundredths| f64::from(hundredths) / 100.0),
        ]
        .prop_map(Value::Real)
        .boxed(),
        Kind::Decimal { .. } => (any::<i128>(), 0..128u32, 0..20u32)
            .prop_map(|(bits, less, zeros)| {
                ((bits >> less) / 10i128.pow(zeros) * 10i128.pow(zeros)) % DECIMAL_BOUND
            })
            .prop_map(Value::Decimal)
            .boxed(),
        Kind::Raw => prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(b' ')], 0..40)
            .prop_map(|bytes| Value::Raw(bytes.into()))
            .boxed(),
    }
}

/// An encoding, a scale, and as many values as are asked for.
fn some(
    encoding: impl Strategy<Value = Encoding>,
    count: usize,
) -> impl Strategy<Value = (Encoding, u8, Vec<Value>)> {
    (encoding, 0..=38u8).prop_flat_map(move |(encoding, scale)| {
        (Just(encoding), Just(scale), prop::collection::vec(values(encoding.kind(scale)), count))
    })
}

/// Bytes that are nearly values: as written, shortened, with a byte changed; and such as are no value.
fn bytes() -> impl Strategy<Value = (Encoding, u8, Vec<u8>)> {
    let near = (some(any_encoding(), 1), any::<(bool, bool)>(), any::<prop::sample::Index>(), any::<u8>())
        .prop_map(|((encoding, scale, values), (shorten, turn), at, byte)| {
            let mut bytes = encoding.write(&values[0], scale).unwrap_or_default();
            if turn {
                bytes.iter_mut().for_each(|byte| *byte = !*byte);
            }
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                if shorten { bytes.truncate(at) } else { bytes[at] = byte }
            }
            (encoding, scale, bytes)
        });
    let far = (any_encoding(), 0..=38u8, prop::collection::vec(any::<u8>(), 0..40));
    prop_oneof![near, far]
}

fn order(left: &Value, right: &Value) -> std::cmp::Ordering {
    match (left, right) {
        (Value::Whole(left), Value::Whole(right)) => left.cmp(right),
        (Value::Decimal(left), Value::Decimal(right)) => left.cmp(right),
        (Value::Raw(left), Value::Raw(right)) => left.cmp(right),
        other => panic!("{other:?} keep no order"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_is_written_is_read((encoding, scale, values) in some(any_encoding(), 1)) {
        if let Some(bytes) = encoding.write(&values[0], scale) {
            match (encoding.read(&bytes, scale), &values[0]) {
                (Ok(Value::Real(read)), Value::Real(real)) if real.is_nan() => prop_assert!(read.is_nan()),
                (read, value) => prop_assert_eq!(read, Ok(value.clone())),
            }
            prop_assert!(encoding.width().is_none_or(|width| width == bytes.len()));
        }
    }

    #[test]
    fn all_values_of_full_width_are_written((encoding, scale, values) in some(any_encoding(), 1)) {
        use Encoding::*;
        if matches!(encoding, Raw | BytesLong | BytesDouble | BytesDecimal | TextLong | TextDouble | TextDecimal | OrderedInt64
            | OrderedFloat64 | OrderedDouble | OrderedBlob | OrderedBlobCopy | PhoenixBigint | PhoenixDouble | PhoenixDecimal
            | PhoenixDate | PhoenixTimestamp)
        {
            prop_assert!(encoding.write(&values[0], scale).is_some());
        }
    }

    #[test]
    fn bytes_are_ordered_as_values_are((encoding, scale, values) in some(ordered_encoding(), 2)) {
        if let [Some(left), Some(right)] = [&values[0], &values[1]].map(|value| encoding.write(value, scale)) {
            prop_assert_eq!(left.cmp(&right), order(&values[0], &values[1]), "{:x?} {:x?}", left, right);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_shortly((encoding, scale, bytes) in bytes()) {
        match encoding.read(&bytes, scale) {
            // A range of row keys is made of what is written, so no other bytes may mean the same.
            Ok(value) if encoding.keeps_order() => prop_assert_eq!(encoding.write(&value, scale), Some(bytes)),
            Ok(_) => {}
            Err(error) => {
                let text = error.to_string();
                prop_assert!(text.len() < 300 && text.starts_with(&format!("no {}: ", encoding.name())), "{}", text);
                prop_assert!(text.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{}", text);
            }
        }
    }

    #[test]
    fn readers_of_another_kind_refuse((encoding, scale, bytes) in bytes()) {
        let kind = encoding.kind(scale);
        prop_assert!(kind == Kind::Whole || encoding.read_whole(&bytes).is_err());
        prop_assert!(kind == Kind::Real || encoding.read_real(&bytes).is_err());
        let decimal = matches!(kind, Kind::Decimal { .. });
        prop_assert!(decimal || encoding.read_decimal(&bytes, scale).is_err());
        prop_assert!(kind == Kind::Raw || encoding.read_raw(&bytes).is_err());
    }
}

#[test]
fn nulls() {
    for encoding in Encoding::ALL {
        let empty = encoding.read(b"", 2);
        match encoding.name().split('_').next() {
            Some("raw") => assert_eq!(empty, Ok(Value::Raw(Default::default()))),
            Some("text" | "phoenix") => assert_eq!(empty, Ok(Value::Null), "{encoding:?}"),
            Some("ordered") => {
                assert!(empty.is_err(), "{encoding:?}");
                assert_eq!(encoding.read(&[0x05], 2), Ok(Value::Null), "{encoding:?}");
                assert_eq!(encoding.read(&[0xfa], 2), Ok(Value::Null), "{encoding:?}");
            }
            _ => assert!(empty.is_err(), "{encoding:?}"),
        }
        if let Some(null) = encoding.write(&Value::Null, 2) {
            assert_eq!(encoding.read(&null, 2), Ok(Value::Null), "{encoding:?}");
        }
    }
}

#[test]
fn errors_say_what_was_found() {
    let error = |encoding: Encoding, bytes: &[u8]| encoding.read(bytes, 2).expect_err("no value").to_string();
    assert_eq!(error(Encoding::BytesLong, b"12\x00"), r"no bytes_long: 12\x00, it has 3 bytes, not 8");
    assert_eq!(error(Encoding::TextLong, b"12\\a"), r"no text_long: 12\x5Ca");
    assert_eq!(error(Encoding::BytesInt, b""), "no bytes_int: nothing, it has 0 bytes, not 4");
    assert_eq!(
        error(Encoding::TextDouble, &[b'x'; 50]),
        format!("no text_double: {}... (50 bytes)", "x".repeat(32))
    );
    let fault = "no text_decimal: 1.234, it has more digits behind the point than the column: declare it with a larger scale";
    assert_eq!(error(Encoding::TextDecimal, b"1.234"), fault);
    assert_eq!(error(Encoding::TextDecimal, b"1e99"), "no text_decimal: 1e99, it has more than 38 digits");
}
