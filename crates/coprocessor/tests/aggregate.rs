//! AggregateService over a region: comparison with a simple implementation, and responses to
//! invalid requests.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use cell::cell::CellType;
use cell::filter::{Column, Comparator, Compare, CompareOp, Filter, SingleColumnValue};
use cell::query::Scan;
use common::{World, bytes, call, column, refused, request, run, world};
use fs::memory::MemoryFs;
use prost::Message;

async fn empty() -> World {
    world(Arc::new(MemoryFs::new()), base::testing::env(7)).await
}

/// Rows with and without numbers, in files and in memory, some deleted; random with a seed.
async fn filled(seed: u64) -> World {
    let world = world(Arc::new(MemoryFs::new()), base::testing::env(seed)).await;
    let random = world.env.random.clone();
    for timestamp in 1..=3 {
        for row in 0..60 {
            let row = format!("r{row:02}");
            match random.next_u64() % 8 {
                0..4 => {
                    let number = random.next_u64().cast_signed() >> (random.next_u64() % 60);
                    world.put(&row, &[("l", timestamp, &number.to_be_bytes())]).await;
                }
                4 => world.put(&row, &[("m", timestamp, &[1; 8]), ("l", timestamp, &[1; 5])]).await,
                5 => world.delete(&row, "l", timestamp, CellType::DeleteColumn).await,
                6 => world.delete(&row, "", timestamp, CellType::DeleteFamily).await,
                _ => {}
            }
        }
        if timestamp < 3 {
            world.region.flush().await.unwrap();
        }
    }
    world
}

/// The numbers that a scan of whole rows returns, by row.
async fn numbers(world: &World, scan: &Scan) -> Vec<Vec<i64>> {
    let list = world.region.scan_all(scan).await.unwrap();
    let mut cells = list.cells.iter();
    let mut rows = Vec::new();
    for (count, _) in &list.results {
        let values = cells.by_ref().take(*count).map(|(cell, _)| cell.view(0).value.to_vec());
        rows.push(values.filter_map(|value| value.try_into().ok()).map(i64::from_be_bytes).collect());
    }
    rows
}

fn long(number: i64) -> Vec<u8> {
    proto::LongMsg { long_msg: number }.encode_to_vec()
}

/// Number of HBase scanner calls that read all rows. It is the number of results, plus one if the
/// last stored row yields no result.
async fn calls(world: &World, scan: &Scan, results: usize) -> u64 {
    let raw = Scan { raw: true, ..Scan::default() };
    let last_row = |scan: Scan| async move {
        let list = world.region.scan_all(&scan).await.unwrap();
        list.cells.last().map(|(cell, _)| cell.view(0).row().to_vec())
    };
    results as u64 + u64::from(last_row(raw).await != last_row(scan.clone()).await)
}

#[test]
fn results_equal_those_computed_from_a_scan() {
    for seed in 1..=12 {
        run(async {
            let world = filled(seed).await;
            for versions in [1, 3] {
                let mut scan = column("l");
                scan.selection.max_versions = versions;
                check(&world, &scan).await;
            }
        });
    }
}

async fn check(world: &World, scan: &Scan) {
    let rows = numbers(world, scan).await;
    let calls = calls(world, scan, rows.len()).await;
    let all: Vec<i64> = rows.concat();
    assert!(all.len() > 5, "there must be numbers to add");
    let add = |numbers: &[i64]| numbers.iter().fold(0i64, |sum, number| sum.wrapping_add(*number));
    let sums = rows.iter().filter(|row| !row.is_empty()).map(|row| add(row));
    let squares: Vec<i64> = sums.map(|sum| sum.wrapping_mul(sum)).collect();
    let (sum, squares) = (long(add(&all)), long(add(&squares)));
    let smallest = long(i64::MIN);
    for (method, first_part, second_part) in [
        ("GetMax", vec![long(*all.iter().max().unwrap())], None),
        ("GetMin", vec![long(*all.iter().min().unwrap())], None),
        ("GetSum", vec![sum.clone()], None),
        ("GetAvg", vec![sum.clone()], Some(calls)),
        ("GetStd", vec![sum.clone(), squares], Some(calls)),
        ("GetMedian", vec![sum, smallest], None),
    ] {
        let answer = world.query(method, "Long", scan).await.unwrap();
        assert_eq!(answer.first_part, first_part, "{method}");
        let pieces = answer.second_part.map(|part| u64::from_be_bytes(part[..].try_into().unwrap()));
        assert_eq!(pieces, second_part, "{method}");
    }
}

#[test]
fn rows_are_counted_whatever_their_columns() {
    run(async {
        let world = empty().await;
        for row in ["a", "b", "c"] {
            world.put(row, &[("m", 1, b"x"), ("n", 1, b"y")]).await;
        }
        world.region.flush().await.unwrap();
        world.put("d", &[("l", 1, b"x")]).await;
        world.delete("b", "", 1, CellType::DeleteFamily).await;
        let count = async |scan: &Scan| {
            let answer = world.query("GetRowNum", "Long", scan).await.unwrap();
            u64::from_be_bytes(answer.first_part[0][..].try_into().unwrap())
        };
        assert_eq!(count(&Scan::default()).await, 3);
        assert_eq!(count(&column("l")).await, 3, "a single column selects its family, as in HBase");
        let mut two = column("l");
        two.selection.columns[0].qualifiers = Some(vec![bytes("a"), bytes("m")]);
        assert_eq!(count(&two).await, 2);
        let scan = Scan { batch: 1, ..column("l") };
        assert_eq!(count(&scan).await, 5, "a and c have two cells and are returned in two parts each");
        let count = async |method| {
            let answer = world.call("RowCountService", method, &[]).await.unwrap();
            proto::CountResponse::decode(&answer[..]).unwrap().count
        };
        assert_eq!((count("getRowCount").await, count("getKeyValueCount").await), (3, 5));
    });
}

#[test]
fn no_values_have_no_result() {
    run(async {
        let world = empty().await;
        world.put("a", &[("m", 1, b"no number")]).await;
        for interpreter in ["Long", "Double"] {
            for (method, column) in ["GetMax", "GetMin", "GetSum", "GetAvg", "GetStd"]
                .into_iter()
                .flat_map(|method| [(method, column("l")), (method, column("m"))])
            {
                let answer = world.query(method, interpreter, &column).await.unwrap();
                assert_eq!(answer, proto::AggregateResponse::default(), "{method}");
            }
        }
        for (interpreter, said) in [
            ("Long", r#"Cannot invoke "java.lang.Long.longValue()" because "s" is null"#),
            ("Double", r#"Cannot invoke "java.lang.Double.doubleValue()" because "s" is null"#),
            ("BigDecimal", r#"Cannot invoke "java.math.BigDecimal.unscaledValue()" because "val" is null"#),
        ] {
            let error = world.query("GetMedian", interpreter, &column("l")).await.unwrap_err();
            assert_eq!((&error.class[..], &error.message[..]), ("java.io.IOException", said));
        }
    });
}

#[test]
fn rows_that_a_filter_excludes_are_not_aggregated() {
    run(async {
        let world = empty().await;
        for (row, wanted, value) in
            [("a", b"y", &[0, 0, 0, 2, 7][..]), ("b", b"n", b"bad"), ("c", b"y", &[0, 0, 0, 2, 8])]
        {
            world.put(row, &[("d", 1, value), ("x", 1, wanted)]).await;
        }
        let mut scan = column("d");
        scan.selection.columns[0].qualifiers = Some(vec![bytes("d"), bytes("x")]);
        // The column of the condition is read, but not aggregated.
        scan.selection.filter = Some(Arc::new(Filter::SingleColumnValueExclude(SingleColumnValue {
            column: Column { family: bytes("f"), qualifier: bytes("x") },
            compare: Compare { op: CompareOp::Equal, comparator: Comparator::Binary(bytes("y")) },
            filter_if_missing: true,
            latest_version_only: true,
        })));
        for flushed in [false, true] {
            let answer = world.query("GetSum", "BigDecimal", &scan).await.unwrap();
            let sum = proto::BigDecimalMsg { bigdecimal_msg: vec![0, 0, 0, 2, 15].into() };
            assert_eq!(answer.first_part, [sum.encode_to_vec()], "flushed: {flushed}");
            world.region.flush().await.unwrap();
        }
        scan.selection.filter = None;
        let error = world.query("GetSum", "BigDecimal", &column("d")).await.unwrap_err();
        assert_eq!(error.class, "java.io.IOException");
        assert!(error.message.starts_with("Cannot invoke \"java.math.BigDecimal.setScale"), "{error}");
    });
}

#[test]
fn requests_that_make_no_sense_get_hbases_exceptions() {
    run(async {
        let world = empty().await;
        world.put("a", &[("l", 1, &[0; 8])]).await;
        let refusal = async |request: proto::AggregateRequest| {
            let error = world.query_with("GetSum", &request.encode_to_vec()).await.unwrap_err();
            (error.class.to_string(), error.message)
        };
        let io = |message: &str| ("java.io.IOException".to_string(), message.to_string());
        let good = request("Long", &column("l"));
        let unknown = proto::AggregateRequest { interpreter_class_name: "a.B".into(), ..good.clone() };
        assert_eq!(refusal(unknown).await, io("java.lang.ClassNotFoundException: a.B"));
        let other = proto::AggregateRequest {
            interpreter_class_name: format!("{}NoColumnInterpreter", common::INTERPRETERS),
            ..good.clone()
        };
        assert!(refusal(other).await.1.ends_with("NoColumnInterpreter"));
        for bad in [&b"\x80"[..], b"\x00", b"\x0a\x05x"] {
            let bytes = Some(bytes::Bytes::copy_from_slice(bad));
            let request = proto::AggregateRequest { interpreter_specific_bytes: bytes, ..good.clone() };
            assert_eq!(refusal(request).await, io("java.lang.reflect.InvocationTargetException"));
        }
        // Bytes of another message are unknown fields.
        let bytes = Some(long(5).into());
        let request = proto::AggregateRequest { interpreter_specific_bytes: bytes, ..good.clone() };
        assert!(world.query_with("GetSum", &request.encode_to_vec()).await.is_ok());
        assert!(world.query_with("GetSum", b"\xff\xff").await.unwrap_err().do_not_retry);
        let unknown = world.query_with("GetMode", &good.encode_to_vec()).await.unwrap_err();
        assert_eq!(unknown.message, "Unknown method GetMode called on service hbase.pb.AggregateService");
        let absent = world.call("ColumnAggregationService", "sum", b"").await.unwrap_err();
        assert_eq!(absent.class, unknown.class);
    });
}

#[test]
fn a_missing_family_is_reported_by_the_region() {
    run(async {
        let world = empty().await;
        let mut scan = column("l");
        scan.selection.columns[0].family = bytes("nosuch");
        let call = call("AggregateService", "GetMax", &request("Long", &scan).encode_to_vec());
        let error = world.endpoints.call(&world.region, &call, None).await.unwrap_err();
        assert!(matches!(error, coprocessor::Error::Region(engine::Error::NoSuchFamily { .. })));
        let several = world.call("MultiRowMutationService", "MutateRows", b"").await.unwrap_err();
        assert_eq!(several.class, refused(absent(&world).await).class, "only if a table names it");
    });
}

async fn absent(world: &World) -> coprocessor::Error {
    world.endpoints.call(&world.region, &call("no.Service", "", b""), None).await.unwrap_err()
}
