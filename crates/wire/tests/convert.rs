//! Requests survive encoding and decoding, are rejected where HBase rejects them, and never cause a
//! panic.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use std::sync::Arc;

use base::env::Random;
use base::testing::SeededRandom;
use bytes::{Bytes, BytesMut};
use cell::codec::{CellBlockReader, Codec};
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::{CompareOp, Filter};
use cell::mutation::{Durability, Mutation};
use cell::query::{CellSelection, FamilyColumns, Get, MobReads, Scan, TimeRange};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use prost::Message;
use proto::exception::{JavaException, class};
use proto::mutation_proto::column_value::QualifierValue;
use proto::mutation_proto::{ColumnValue, MutationType};
use wire::convert::{Refused, from_proto, to_proto};

fn block(cells: &[KeyValue]) -> CellBlockReader {
    let mut out = BytesMut::new();
    for cell in cells {
        Codec::KeyValue.write(&cell.view(0), &mut out);
    }
    Codec::KeyValue.read(out.freeze())
}

fn selection() -> CellSelection {
    CellSelection {
        columns: vec![
            FamilyColumns { family: "a".into(), qualifiers: None },
            FamilyColumns { family: "b".into(), qualifiers: Some(vec!["".into(), "q".into()]) },
        ],
        time_range: TimeRange { from: 5, to: 500 },
        family_time_ranges: vec![("a".into(), TimeRange { from: 0, to: 7 })],
        max_versions: 3,
        store_limit: Some(0),
        store_offset: 2,
        cache_blocks: false,
        filter: Some(Arc::new(Filter::Page { page_size: 7 })),
        load_families_on_demand: Some(false),
        mob: MobReads::default(),
    }
}

fn cell(row: &[u8], timestamp: i64, kind: CellType, value: &[u8]) -> KeyValue {
    KeyValue::new(row, b"cf", b"q", timestamp, kind, value)
}

#[test]
fn reads_round_trip() {
    for selection in [selection(), CellSelection::default()] {
        for existence_only in [false, true] {
            let get = Get { row: "r".into(), selection: selection.clone().into(), existence_only };
            assert_eq!(from_proto::get(&to_proto::get(&get)), Ok(get));
        }
        let scan = Scan {
            start_row: "s".into(),
            include_start_row: false,
            stop_row: "t".into(),
            include_stop_row: true,
            reversed: true,
            batch: 9,
            read_point: Some(77),
            selection,
            raw: false,
        };
        assert_eq!(from_proto::scan(&to_proto::scan(&scan)), Ok(scan));
    }
    let raw = Scan { raw: true, ..Scan::default() };
    assert_eq!(from_proto::scan(&to_proto::scan(&raw)), Ok(raw));
    // A range of exactly one row, and an empty range.
    for include_stop_row in [true, false] {
        let scan = Scan { start_row: "r".into(), stop_row: "r".into(), include_stop_row, ..Scan::default() };
        assert_eq!(from_proto::scan(&to_proto::scan(&scan)), Ok(scan));
    }
}

#[test]
fn mutations_round_trip() {
    let put = Mutation {
        durability: Durability::SkipWal,
        nonce: (0, 12),
        ..Mutation::put(
            "r",
            vec![
                cell(b"r", LATEST_TIMESTAMP, CellType::Put, b"v"),
                cell(b"r", 5, CellType::Put, b""),
                KeyValue::new(b"r", b"other", b"", 3, CellType::Put, &[0xff; 1000]),
                cell(b"r", 6, CellType::DeleteColumn, b""),
            ],
        )
    };
    let markers =
        [CellType::Delete, CellType::DeleteColumn, CellType::DeleteFamily, CellType::DeleteFamilyVersion];
    let delete = Mutation::delete("r", markers.map(|kind| cell(b"r", 9, kind, b"")).to_vec());
    let row = Mutation { timestamp: 17, ..Mutation::delete("r", Vec::new()) };
    let increment = Mutation {
        nonce: (0, 13),
        ttl_ms: Some(60_000),
        time_range: TimeRange { from: 3, to: 9 },
        return_results: false,
        ..Mutation::increment("r", vec![cell(b"r", LATEST_TIMESTAMP, CellType::Put, &7i64.to_be_bytes())])
    };
    let append = Mutation::append("r", vec![cell(b"r", LATEST_TIMESTAMP, CellType::Put, b"more")]);
    for mutation in [put, delete, row, increment, append] {
        let message = to_proto::mutation(&mutation);
        assert_eq!(from_proto::mutation(&message, &mut block(&[]), 0), Ok(mutation.clone()));
        let mut cells = BytesMut::new();
        let message = to_proto::mutation_in_block(&mutation, &mut cells);
        let mut reader = Codec::KeyValue.read(cells.freeze());
        assert_eq!(from_proto::mutation(&message, &mut reader, 0), Ok(mutation));
        assert_eq!(reader.remaining(), 0);
    }
}

#[test]
fn columns_are_sorted_and_merged() {
    let column = |family: &'static str, qualifiers: &[&'static str]| proto::Column {
        family: family.into(),
        qualifier: qualifiers.iter().map(|qualifier| Bytes::from_static(qualifier.as_bytes())).collect(),
    };
    let get = proto::Get {
        row: "r".into(),
        column: vec![
            column("z", &["b", "a", "b"]),
            column("a", &["x"]),
            column("z", &["0"]),
            column("a", &[]),
        ],
        ..Default::default()
    };
    let expected = vec![
        FamilyColumns { family: "a".into(), qualifiers: None },
        FamilyColumns { family: "z".into(), qualifiers: Some(vec!["0".into(), "a".into(), "b".into()]) },
    ];
    assert_eq!(from_proto::get(&get).unwrap().selection.columns, expected);
}

#[test]
fn equal_bounds_of_old_clients_select_one_row() {
    let scan = |start: &'static str, include_stop_row| proto::Scan {
        start_row: Some(start.into()),
        stop_row: Some(start.into()),
        include_stop_row,
        ..Default::default()
    };
    assert!(from_proto::scan(&scan("r", None)).unwrap().is_single_row());
    assert!(!from_proto::scan(&scan("r", Some(false))).unwrap().is_single_row());
    assert!(!from_proto::scan(&scan("", None)).unwrap().include_stop_row);
}

#[test]
fn impossible_and_unknown_reads_are_refused() {
    let get = || proto::Get { row: "r".into(), ..Default::default() };
    let range = |from: i64, to: i64| proto::TimeRange {
        from: Some(from.cast_unsigned()),
        to: Some(to.cast_unsigned()),
    };
    let filter = proto::Filter { name: "com.example.OwnFilter".into(), ..Default::default() };
    let cases = [
        (proto::Get { row: Bytes::new(), ..get() }, class::DO_NOT_RETRY_IO, "Row length is 0"),
        (
            proto::Get { row: vec![1; 32768].into(), ..get() },
            class::DO_NOT_RETRY_IO,
            "Row length 32768 is > 32767",
        ),
        (
            proto::Get { closest_row_before: Some(true), ..get() },
            class::UNKNOWN_PROTOCOL,
            "closest_row_before",
        ),
        (proto::Get { max_versions: Some(0), ..get() }, class::DO_NOT_RETRY_IO, "versions must be positive"),
        (
            proto::Get { time_range: Some(range(-1, 5)), ..get() },
            class::DO_NOT_RETRY_IO,
            "cannot be negative",
        ),
        (
            proto::Get { time_range: Some(range(6, 5)), ..get() },
            class::DO_NOT_RETRY_IO,
            "smaller than minStamp",
        ),
        (
            proto::Get { filter: Some(filter.clone()), ..get() },
            class::DO_NOT_RETRY_IO,
            "ClassNotFoundException: com.example.OwnFilter",
        ),
    ];
    for (get, class, words) in cases {
        let exception = JavaException::from(from_proto::get(&get).unwrap_err());
        assert!(exception.is(class) && exception.message.contains(words), "{exception}");
    }
    let scan = proto::Scan { filter: Some(filter), ..Default::default() };
    assert!(matches!(from_proto::scan(&scan), Err(Refused::Malformed(_))));
    let columns = to_proto::scan(&Scan { raw: true, selection: selection(), ..Scan::default() });
    let refused = from_proto::scan(&columns).unwrap_err();
    assert_eq!(refused, Refused::Malformed("Cannot specify any column for a raw scan".into()));
}

fn message(kind: MutationType, value: QualifierValue) -> proto::MutationProto {
    proto::MutationProto {
        row: Some("r".into()),
        mutate_type: Some(kind.into()),
        column_value: vec![ColumnValue { family: "cf".into(), qualifier_value: vec![value] }],
        timestamp: Some(40),
        ..Default::default()
    }
}

#[test]
fn timestamps_come_from_the_cell_or_the_put_but_not_from_the_delete() {
    let value = |timestamp| QualifierValue { value: Some("v".into()), timestamp, ..Default::default() };
    let timestamp = |kind, own| {
        let mutation = from_proto::mutation(&message(kind, value(own)), &mut block(&[]), 0).unwrap();
        mutation.cells[0].view(0).timestamp()
    };
    assert_eq!(timestamp(MutationType::Put, Some(7)), 7);
    assert_eq!(timestamp(MutationType::Put, None), 40);
    assert_eq!(timestamp(MutationType::Delete, Some(7)), 7);
    assert_eq!(timestamp(MutationType::Delete, None), LATEST_TIMESTAMP);
}

#[test]
fn impossible_and_unknown_mutations_are_refused() {
    let put = || message(MutationType::Put, QualifierValue { value: Some("v".into()), ..Default::default() });
    let with_tags = |tags: &'static [u8]| {
        let tags = Some(Bytes::from_static(tags));
        message(MutationType::Put, QualifierValue { value: Some("v".into()), tags, ..Default::default() })
    };
    let attribute =
        |name: &str| proto::NameBytesPair { name: name.into(), value: Some(Bytes::from_static(&[0; 7])) };
    let long_family = ColumnValue { family: vec![b'f'; 128].into(), qualifier_value: Vec::new() };
    let cases = [
        (message(MutationType::Put, QualifierValue::default()), "Missing required field: qualifier value"),
        (proto::MutationProto { row: Some(Bytes::new()), ..put() }, "Row length is 0"),
        (proto::MutationProto { row: None, ..put() }, "Row length is 0"),
        (proto::MutationProto { row: Some(vec![1; 32768].into()), ..put() }, "Row length 32768"),
        (proto::MutationProto { mutate_type: None, ..put() }, "mutate_type"),
        (proto::MutationProto { mutate_type: Some(9), ..put() }, "mutate_type"),
        (
            message(MutationType::Increment, QualifierValue::default()),
            "Missing required field: qualifier value",
        ),
        (proto::MutationProto { attribute: vec![attribute("_ttl")], ..put() }, "7 bytes instead of 8"),
        (proto::MutationProto { attribute: vec![attribute("_rr_")], ..put() }, "Array has wrong size: 7"),
        (proto::MutationProto { column_value: vec![long_family], ..put() }, "Family length 128"),
        (proto::MutationProto { column_value: Vec::new(), ..put() }, "No columns to insert"),
        (proto::MutationProto { associated_cell_count: Some(1), ..put() }, "no more cells"),
        (proto::MutationProto { associated_cell_count: Some(i32::MAX), ..put() }, "no more cells"),
        (with_tags(&[0]), "tags: a length does not add up"),
        (with_tags(&[0, 9, 8, 1]), "tags: a length does not add up"),
        (with_tags(&[0, 0]), "tags: a length does not add up"),
    ];
    for (mutation, words) in cases {
        let exception = JavaException::from(from_proto::mutation(&mutation, &mut block(&[]), 0).unwrap_err());
        assert!(exception.do_not_retry && exception.message.contains(words), "{exception}");
    }
}

fn comparator(class: &str, message: &impl Message) -> proto::Comparator {
    proto::Comparator {
        name: format!("org.apache.hadoop.hbase.filter.{class}"),
        serialized_comparator: Some(message.encode_to_vec().into()),
    }
}

#[test]
fn conditions_round_trip() {
    use CompareOp::*;
    for operator in [Less, LessOrEqual, Equal, NotEqual, GreaterOrEqual, Greater] {
        let test = ColumnTest { family: "f".into(), qualifier: "q".into(), operator, value: "v".into() };
        let time_range = TimeRange { from: 1, to: 2 };
        let condition = Condition { row: "r".into(), time_range, test: Test::Column(test) };
        assert_eq!(from_proto::condition(&to_proto::condition(&condition)), Ok(condition));
    }
}

/// As in HBase, only the comparator's value matters, not its class.
#[test]
fn conditions_compare_with_the_value_of_their_comparator() {
    let comparable = proto::ByteArrayComparable { value: Some("V".into()) };
    let regex = proto::RegexStringComparator { pattern: "V".into(), pattern_flags: 32, ..Default::default() };
    let cases = [
        (comparator("BinaryComparator", &proto::BinaryComparator { comparable: comparable.clone() }), "V"),
        (
            comparator(
                "BinaryPrefixComparator",
                &proto::BinaryPrefixComparator { comparable: comparable.clone() },
            ),
            "V",
        ),
        (comparator("LongComparator", &proto::LongComparator { comparable }), "V"),
        (comparator("RegexStringComparator", &regex), "V"),
        (comparator("SubstringComparator", &proto::SubstringComparator { substr: "V".into() }), "v"),
        (comparator("NullComparator", &proto::NullComparator {}), ""),
        (comparator("BinaryComparator", &proto::BinaryComparator::default()), ""),
    ];
    for (comparator, value) in cases {
        let message = proto::Condition {
            row: "r".into(),
            family: Some("f".into()),
            compare_type: Some(proto::CompareType::Equal.into()),
            comparator: Some(comparator.clone()),
            ..Default::default()
        };
        let Test::Column(test) = from_proto::condition(&message).unwrap().test else {
            panic!("expected a test of the requested column");
        };
        assert_eq!(test.value, value, "{comparator:?}");
    }
}

#[test]
fn impossible_and_unknown_conditions_are_refused() {
    let binary = || comparator("BinaryComparator", &proto::BinaryComparator::default());
    let condition = || proto::Condition {
        row: "r".into(),
        family: Some("f".into()),
        compare_type: Some(proto::CompareType::Equal.into()),
        comparator: Some(binary()),
        ..Default::default()
    };
    let damaged = proto::Comparator { serialized_comparator: Some("\u{7}".into()), ..binary() };
    let filter = proto::Filter { name: "a.Filter".into(), ..Default::default() };
    let cases = [
        (proto::Condition { row: Bytes::new(), ..condition() }, "Row length is 0"),
        (proto::Condition { comparator: None, ..condition() }, "neither a filter nor a comparator"),
        (proto::Condition { comparator: Some(damaged), ..condition() }, "not a comparator"),
        (
            proto::Condition {
                comparator: Some(comparator("Custom", &proto::NullComparator {})),
                ..condition()
            },
            "filter.Custom",
        ),
        (proto::Condition { compare_type: None, ..condition() }, "compare_type"),
        (proto::Condition { filter: Some(filter), ..condition() }, "ClassNotFoundException: a.Filter"),
        (proto::Condition { family: Some(vec![b'f'; 128].into()), ..condition() }, "Family length 128"),
    ];
    for (condition, words) in cases {
        let exception = JavaException::from(from_proto::condition(&condition).unwrap_err());
        assert!(exception.do_not_retry && exception.message.contains(words), "{exception}");
    }
}

#[test]
fn cells_of_another_row_or_kind_are_refused() {
    let from_block = |kind: MutationType, cell: KeyValue| {
        let message = proto::MutationProto {
            row: Some("r".into()),
            mutate_type: Some(kind.into()),
            associated_cell_count: Some(1),
            ..Default::default()
        };
        from_proto::mutation(&message, &mut block(&[cell]), 0)
    };
    let put_of = |row: &[u8]| cell(row, 1, CellType::Put, b"v");
    assert!(from_block(MutationType::Put, put_of(b"r")).is_ok());
    assert!(matches!(from_block(MutationType::Put, put_of(b"s")), Err(Refused::WrongRow(_))));
    assert!(matches!(from_block(MutationType::Delete, put_of(b"r")), Err(Refused::Malformed(_))));
    let marker = cell(b"r", 1, CellType::Delete, b"");
    assert!(from_block(MutationType::Put, marker.clone()).is_ok());
    assert!(matches!(from_block(MutationType::Append, marker), Err(Refused::Malformed(_))));
    let negative = cell(b"r", -1, CellType::Put, b"v");
    assert!(matches!(from_block(MutationType::Put, negative), Err(Refused::Malformed(_))));
}

#[test]
fn a_refused_mutation_leaves_the_next_one_its_cells() {
    let cells = [cell(b"r", 1, CellType::Put, b"1"), cell(b"s", 2, CellType::Put, b"2")];
    let mut reader = block(&cells);
    let next = |kind: MutationType, reader: &mut CellBlockReader| {
        let message = proto::MutationProto {
            mutate_type: Some(kind.into()),
            associated_cell_count: Some(1),
            ..Default::default()
        };
        from_proto::mutation(&message, reader, 0)
    };
    assert!(matches!(next(MutationType::Delete, &mut reader), Err(Refused::Malformed(_))));
    let second = next(MutationType::Put, &mut reader).unwrap();
    assert_eq!(second, Mutation::put("s", vec![cells[1].clone()]), "the row is that of the first cell");
}

/// Any input yields a result or an error, and uses memory in proportion to its size.
#[test]
fn damaged_requests_never_panic() {
    let put = Mutation::put("r", vec![cell(b"r", 5, CellType::Put, b"value"); 3]);
    let mut cells = BytesMut::new();
    let messages = [
        to_proto::mutation(&put).encode_to_vec(),
        to_proto::mutation_in_block(&put, &mut cells).encode_to_vec(),
        to_proto::get(&Get { row: "r".into(), selection: selection().into(), existence_only: true })
            .encode_to_vec(),
        to_proto::scan(&Scan { selection: selection(), ..Scan::default() }).encode_to_vec(),
        to_proto::condition(&Condition {
            row: "r".into(),
            time_range: TimeRange { from: 1, to: 2 },
            test: Test::Column(ColumnTest {
                family: "f".into(),
                qualifier: "q".into(),
                operator: CompareOp::Less,
                value: "v".into(),
            }),
        })
        .encode_to_vec(),
    ];
    let random = SeededRandom::new(11);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut message = messages[(random.next_u64() % messages.len() as u64) as usize].clone();
        let mut block = cells.to_vec();
        for bytes in [&mut message, &mut block] {
            let at = (random.next_u64() % bytes.len() as u64) as usize;
            match random.next_u64() % 3 {
                0 => bytes[at] = random.next_u64() as u8,
                1 => bytes.truncate(at),
                _ => bytes.insert(at, random.next_u64() as u8),
            }
        }
        let (message, mut block) = (Bytes::from(message), Codec::KeyValue.read(block.into()));
        if let Ok(message) = proto::MutationProto::decode(message.clone()) {
            read += usize::from(from_proto::mutation(&message, &mut block, 1).is_ok());
        }
        if let Ok(message) = proto::Get::decode(message.clone()) {
            read += usize::from(from_proto::get(&message).is_ok());
        }
        if let Ok(message) = proto::Scan::decode(message.clone()) {
            read += usize::from(from_proto::scan(&message).is_ok());
        }
        if let Ok(message) = proto::Condition::decode(message.clone()) {
            read += usize::from(from_proto::condition(&message).is_ok());
        }
        if let Ok(message) = proto::Result::decode(message) {
            read += usize::from(from_proto::result(&message, &mut block).is_ok());
        }
    }
    assert!(read > 1000, "enough damaged messages must still decode: {read}");
}
