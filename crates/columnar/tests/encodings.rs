//! Compares decoding and encoding with the bytes that HBase's and Phoenix's own classes write.
//!
//! `compat/vectors/run` generates the vectors. Each line has an encoding, an order, a value and
//! bytes in hex. The order is `asc`, `desc`, or `other` for bytes that are read but not written.

use std::collections::BTreeMap;

use columnar::{Encoding, Kind, Value};

struct Vector<'a> {
    line: &'a str,
    encoding: Encoding,
    order: &'a str,
    value: &'a str,
    bytes: Vec<u8>,
}

fn vectors(text: &str) -> Vec<Vector<'_>> {
    let vector = |line| {
        let [encoding, order, value, bytes] = Vec::from_iter(str::split(line, ' '))[..] else {
            panic!("{line}")
        };
        let encoding = Encoding::from_name(encoding).unwrap_or_else(|| panic!("{line}"));
        Vector { line, encoding, order, value, bytes: hex(bytes) }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(vector).collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits = if text == "-" { "" } else { text };
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

/// A vector's value and its scale; no value if it is too large.
fn value(vector: &Vector<'_>) -> (Option<Value>, u8) {
    if vector.value == "null" {
        return (Some(Value::Null), 0);
    }
    let value = match vector.encoding.kind(0) {
        Kind::Whole => Value::Whole(vector.value.parse().expect("a whole number")),
        Kind::Real => Value::Real(f64::from_bits(u64::from_str_radix(vector.value, 16).expect("bits"))),
        Kind::Raw => Value::Raw(hex(vector.value).into()),
        Kind::Decimal { .. } => return decimal(vector.value),
    };
    (Some(value), 0)
}

fn decimal(text: &str) -> (Option<Value>, u8) {
    let (unscaled, scale) = text.split_once('/').expect("a scale");
    let (unscaled, scale): (i128, i64) = (unscaled.parse().expect("digits"), scale.parse().expect("a scale"));
    let Ok(kept) = u8::try_from(scale.max(0)) else { return (None, 38) };
    let power = u32::try_from(scale.min(0).unsigned_abs()).expect("not so large");
    (10i128.checked_pow(power).and_then(|power| unscaled.checked_mul(power)).map(Value::Decimal), kept)
}

/// Formats reals by their bits, so that signed zeros and NaNs are compared.
fn bits(value: &Value) -> String {
    match value {
        Value::Real(real) => format!("Real({:016x})", real.to_bits()),
        other => format!("{other:?}"),
    }
}

fn check(text: &str, least: usize) {
    let vectors = vectors(text);
    assert!(vectors.len() >= least, "{} vectors", vectors.len());
    for vector in &vectors {
        let (wanted, scale) = value(vector);
        let read = vector.encoding.read(&vector.bytes, scale);
        let Some(wanted) = wanted else {
            let error = read.expect_err(vector.line).to_string();
            assert!(error.contains("digits"), "{}: {error}", vector.line);
            continue;
        };
        let read = read.unwrap_or_else(|error| panic!("{}: {error}", vector.line));
        assert_eq!(bits(&read), bits(&wanted), "{}", vector.line);
        if vector.order == "asc" {
            assert_eq!(
                vector.encoding.write(&wanted, scale).as_ref(),
                Some(&vector.bytes),
                "{}",
                vector.line
            );
        }
    }
}

#[test]
fn bytes_of_hbase() {
    check(include_str!("vectors/bytes.txt"), 600);
}

#[test]
fn ordered_bytes_of_hbase() {
    check(include_str!("vectors/ordered.txt"), 1800);
}

#[test]
fn types_of_phoenix() {
    check(include_str!("vectors/phoenix.txt"), 900);
}

#[test]
fn a_numeric_is_read_as_a_double_too() {
    let mut found = 0;
    for vector in vectors(include_str!("vectors/ordered.txt")) {
        let Some((unscaled, scale)) = vector.value.split_once('/') else { continue };
        let scale: i64 = scale.parse().expect("a scale");
        let nearest: f64 = format!("{unscaled}e{}", -scale).parse().expect("a number");
        let read = Encoding::OrderedDouble.read_real(&vector.bytes);
        assert_eq!(read, Ok(Some(nearest)), "{}", vector.line);
        found += 1;
    }
    assert!(found > 100, "{found} numerics");
}

#[test]
fn every_encoding_but_texts_has_vectors() {
    let mut counts = BTreeMap::new();
    for text in [
        include_str!("vectors/bytes.txt"),
        include_str!("vectors/ordered.txt"),
        include_str!("vectors/phoenix.txt"),
    ] {
        vectors(text).iter().for_each(|vector| *counts.entry(vector.encoding.name()).or_insert(0) += 1);
    }
    for encoding in Encoding::ALL {
        let own = matches!(encoding.name().split_once('_'), None | Some(("text", _)));
        assert_eq!(counts.contains_key(encoding.name()), !own, "{}: {counts:?}", encoding.name());
    }
}

#[test]
fn names_and_numbers_are_those_of_the_protocol() {
    let protocol = include_str!("../../proto/proto/Columns.proto");
    let (_, list) = protocol.split_once("enum Encoding {").expect("the list");
    let (list, _) = list.split_once("\n}").expect("its end");
    let declared: Vec<(String, i32)> = list
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';')?.split_once(" = "))
        .map(|(name, number)| (name.to_lowercase(), number.parse().expect("a number")))
        .collect();
    let known: Vec<(String, i32)> =
        Encoding::ALL.iter().map(|encoding| (encoding.name().to_string(), encoding.number())).collect();
    assert_eq!(known, declared);
    for (name, number) in declared {
        assert_eq!(Encoding::from_number(number), Encoding::from_name(&name));
    }
    assert_eq!(Encoding::from_number(9), None);
    assert_eq!(Encoding::from_name("RAW"), None);
}
