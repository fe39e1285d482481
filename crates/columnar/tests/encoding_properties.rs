//! Properties of all encodings, for random values and random bytes.

use std::ops::Bound;

use columnar::{Encoding, Kind, Span, Value};
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

/// Values of a kind, of all magnitudes, including values that an encoding cannot represent.
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

/// An encoding, a scale, and `count` values.
fn some(
    encoding: impl Strategy<Value = Encoding>,
    count: usize,
) -> impl Strategy<Value = (Encoding, u8, Vec<Value>)> {
    (encoding, 0..=38u8).prop_flat_map(move |(encoding, scale)| {
        (Just(encoding), Just(scale), prop::collection::vec(values(encoding.kind(scale)), count))
    })
}

/// Bytes that are almost values (as written, truncated, or with one byte changed), and arbitrary
/// bytes.
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

/// Values, and bytes of one of them, possibly descending, padded, or with one byte changed.
fn values_and_bytes() -> impl Strategy<Value = (Encoding, u8, Vec<Value>, Vec<u8>)> {
    let change = (0..3usize, 0..6u32, any::<prop::sample::Index>(), any::<u8>());
    (some(any_encoding(), 3), change).prop_map(|((encoding, scale, values), (which, what, at, byte))| {
        let mut bytes = encoding.write(&values[which], scale).unwrap_or_default();
        if what >= 3 && encoding.name().starts_with("ordered") {
            if encoding == Encoding::OrderedBlobCopy {
                bytes.push(0);
            }
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        match what {
            1 if encoding == Encoding::PhoenixChar => bytes.extend([b' '; 3]),
            2 | 5 if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            _ => {}
        }
        (encoding, scale, values, bytes)
    })
}

/// The bound that `which` selects.
fn bound(value: &Value, which: u8) -> Bound<&Value> {
    [Bound::Unbounded, Bound::Included(value), Bound::Excluded(value)][usize::from(which)]
}

fn is_within(value: &Value, lower: Bound<&Value>, upper: Bound<&Value>) -> bool {
    let order = |bound: &Value| value.compare(bound).expect("of one kind");
    let begins = match lower {
        Bound::Unbounded => true,
        Bound::Included(bound) => order(bound).is_ge(),
        Bound::Excluded(bound) => order(bound).is_gt(),
    };
    begins
        && match upper {
            Bound::Unbounded => true,
            Bound::Included(bound) => order(bound).is_le(),
            Bound::Excluded(bound) => order(bound).is_lt(),
        }
}

/// Whether HBase could have written these bytes for a variable-length number, judged by decimals.
fn is_numeric_of_hbase(bytes: &[u8]) -> bool {
    let turned: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    (0..=38).any(|scale| {
        let read = Encoding::OrderedDecimal.read(bytes, scale).ok();
        let written = read.and_then(|value| Encoding::OrderedDecimal.write(&value, scale));
        written.is_some_and(|written| written == bytes || written == turned)
    })
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
    fn written_values_are_parsed((encoding, scale, values) in some(any_encoding(), 1)) {
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
    fn what_is_between_two_values_is_in_a_span(
        (encoding, scale, values, bytes) in values_and_bytes(),
        (lower, upper) in (0..3u8, 0..3u8),
    ) {
        use Encoding::*;
        let (lower, upper) = (bound(&values[0], lower), bound(&values[1], upper));
        let Some(spans) = encoding.spans(lower, upper, scale) else {
            let has_no_order = matches!(encoding, BytesDecimal | TextLong | TextDouble | TextDecimal | TextBoolean | OrderedBlob);
            prop_assert!(has_no_order, "{encoding:?}");
            return Ok(());
        };
        let value = match encoding.read(&bytes, scale) {
            Ok(Value::Null) | Err(_) => return Ok(()),
            Ok(value) => value,
        };
        if matches!(encoding, OrderedDecimal | OrderedDouble) && !is_numeric_of_hbase(&bytes) {
            return Ok(());
        }
        let is_in = spans.iter().any(|span| span.contains(&bytes));
        let is_within = is_within(&value, lower, upper);
        prop_assert!(is_in || !is_within, "{bytes:x?} is {value:?}, outside of {spans:x?}");
        // Bounds that cannot be encoded are ignored.
        let is_written = |bound| match bound {
            Bound::Unbounded => true,
            Bound::Included(value) | Bound::Excluded(value) => encoding.write(value, scale).is_some(),
        };
        let is_exact = match encoding {
            OrderedDouble | PhoenixChar => false,
            // Descending values contain no zero byte, so bounds with one are ignored.
            OrderedBlobCopy => false,
            OrderedDecimal | PhoenixDecimal => is_written(lower) && is_written(upper),
            _ => true,
        };
        prop_assert!(is_within || !is_in || !is_exact, "{bytes:x?} is {value:?}, inside of {spans:x?}");
    }

    #[test]
    fn any_bytes_are_read_or_refused_shortly((encoding, scale, bytes) in bytes()) {
        match encoding.read(&bytes, scale) {
            // A range of row keys is built from encoded values, so no other bytes may have the same
            // meaning.
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
fn a_single_value_is_at_most_two_points() {
    let check = |encoding: Encoding, value: Value, points: &[&[u8]]| {
        let spans = encoding.spans(Bound::Included(&value), Bound::Included(&value), 2).expect("an order");
        let found: Vec<Option<&[u8]>> = spans.iter().map(Span::point).collect();
        assert_eq!(
            found,
            points.iter().map(|point| Some(*point)).collect::<Vec<_>>(),
            "{encoding:?} {value:?}"
        );
    };
    check(Encoding::BytesShort, Value::Whole(-2), &[&[0xff, 0xfe]]);
    check(Encoding::BytesShort, Value::Whole(70_000), &[]);
    check(Encoding::PhoenixBoolean, Value::Whole(1), &[&[1]]);
    check(Encoding::OrderedInt8, Value::Whole(0), &[&[0x29, 0x80], &[0xd6, 0x7f]]);
    check(Encoding::OrderedString, Value::Raw("a".into()), &[&[0x34, b'a', 0], &[0xcb, !b'a', 0xff]]);
    check(Encoding::OrderedBlobCopy, Value::Raw("a".into()), &[&[0x38, b'a'], &[0xc7, !b'a', 0xff]]);
    check(Encoding::OrderedDecimal, Value::Decimal(100), &[&[0x18, 2], &[0xe7, 0xfd]]);
    check(Encoding::BytesFloat, Value::Real(1.0), &[&[0x3f, 0x80, 0, 0]]);
    // Not a single-precision number.
    check(Encoding::BytesFloat, Value::Real(0.1), &[]);
    check(Encoding::PhoenixDouble, Value::Real(-1.5), &[&[0x40, 0x08, 0, 0, 0, 0, 0, 0]]);
}

#[test]
fn ranges_across_zero_are_two_spans() {
    let between = |encoding: Encoding, first: Value, last: Value| {
        encoding.spans(Bound::Included(&first), Bound::Included(&last), 0).expect("an order")
    };
    assert_eq!(
        between(Encoding::BytesByte, Value::Whole(-3), Value::Whole(5)),
        [Span::including(vec![0], vec![5]), Span::including(vec![0xfd], vec![0xff])]
    );
    assert_eq!(
        between(Encoding::BytesFloat, Value::Real(-1.0), Value::Real(0.0)),
        [
            Span::including(vec![0; 4], vec![0; 4]),
            Span::including(vec![0x80, 0, 0, 0], vec![0xbf, 0x80, 0, 0])
        ]
    );
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
fn errors_show_the_invalid_bytes() {
    let error = |encoding: Encoding, bytes: &[u8]| encoding.read(bytes, 2).expect_err("no value").to_string();
    assert_eq!(error(Encoding::BytesLong, b"12\x00"), r"no bytes_long: 12\x00, it has 3 bytes, not 8");
    assert_eq!(error(Encoding::TextLong, b"12\\a"), r"no text_long: 12\x5Ca");
    assert_eq!(error(Encoding::BytesInt, b""), "no bytes_int: nothing, it has 0 bytes, not 4");
    assert_eq!(
        error(Encoding::TextDouble, &[b'x'; 50]),
        format!("no text_double: {}... (50 bytes)", "x".repeat(32))
    );
    let fault = "no text_decimal: 1.234, it has more digits after the decimal point than the column: declare it with a larger scale";
    assert_eq!(error(Encoding::TextDecimal, b"1.234"), fault);
    assert_eq!(error(Encoding::TextDecimal, b"1e99"), "no text_decimal: 1e99, it has more than 38 digits");
}
