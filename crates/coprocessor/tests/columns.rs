//! ColumnService: limits of its responses, and completeness if they end early.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::budget::BudgetShare;
use bytes::Bytes;
use cell::cell::{CellType, KeyValue};
use cell::mutation::Mutation;
use common::{RESPONSE_BUDGET_BYTES, World, run, world};
use fs::memory::MemoryFs;
use prost::Message;
use proto::exception::{Answer, class};
use proto::grampus::aggregate::Function;
use proto::grampus::{
    Aggregate, AggregateRequest, AggregateResponse, Column, Encoding, Rows, SelectRequest, SelectResponse,
};

const SERVICE: &str = "grampus.pb.ColumnService";
const ROWS: usize = 12_000;

async fn begin() -> World {
    world(Arc::new(MemoryFs::new()), base::testing::env(3)).await
}

fn key(number: usize) -> Bytes {
    format!("r{number:06}").into()
}

async fn put(world: &World, qualifier: &str, rows: impl Iterator<Item = (usize, Bytes)>) {
    let put = |(number, value): (usize, Bytes)| {
        let cell = KeyValue::new(&key(number), b"f", qualifier.as_bytes(), 5, CellType::Put, &value);
        Mutation::put(key(number), vec![cell])
    };
    for result in world.region.batch(rows.map(put).collect()).await {
        result.unwrap();
    }
}

/// A 100-byte text that is unique for `number`.
fn text(number: usize) -> Bytes {
    format!("{number:0100}").into()
}

fn column(qualifier: &'static str, encoding: Encoding) -> Column {
    Column {
        family: Some("f".into()),
        qualifier: Some(qualifier.into()),
        encoding: Some(encoding as i32),
        ..Column::default()
    }
}

fn rows_of(column: Vec<Column>) -> Rows {
    Rows { column, ..Rows::default() }
}

fn count() -> Aggregate {
    Aggregate { function: Some(Function::Count as i32), column: None }
}

fn sum(column: u32) -> Aggregate {
    Aggregate { function: Some(Function::Sum as i32), column: Some(column) }
}

async fn aggregate(world: &World, request: &AggregateRequest) -> Answer<AggregateResponse> {
    let answer = world.call(SERVICE, "Aggregate", &request.encode_to_vec()).await?;
    assert_eq!(world.response_budget.used(), 0, "the response's memory is released");
    Ok(AggregateResponse::decode(&answer[..]).unwrap())
}

/// Counts by group over all responses, and the number of calls.
async fn counts(world: &World, request: &AggregateRequest) -> (BTreeMap<Bytes, u64>, usize) {
    let (mut request, mut counts, mut calls) = (request.clone(), BTreeMap::new(), 0);
    loop {
        let answer = aggregate(world, &request).await.unwrap();
        calls += 1;
        for group in answer.group {
            *counts.entry(group.key[0].raw.clone().unwrap()).or_default() += group.state[0].count();
        }
        let Some(row) = answer.resume_row else { return (counts, calls) };
        let rows = request.rows.as_mut().unwrap();
        assert!(rows.start_row() < row, "every call makes progress");
        rows.start_row = Some(row);
    }
}

#[test]
fn groups_are_limited_by_the_memory_for_responses() {
    run(async {
        let world = begin().await;
        put(&world, "t", (0..ROWS).map(|number| (number, text(number)))).await;
        world.region.flush().await.unwrap();
        let request = AggregateRequest {
            rows: Some(rows_of(vec![column("t", Encoding::Raw)])),
            group_by: vec![0],
            aggregate: vec![count()],
            ..AggregateRequest::default()
        };
        let expected: BTreeMap<Bytes, u64> = (0..ROWS).map(|number| (text(number), 1)).collect();
        let small = AggregateRequest { groups_bytes_max: Some(200_000), ..request.clone() };
        let (found, calls) = counts(&world, &small).await;
        assert!(found == expected && calls > 5, "{calls}");
        assert_eq!(counts(&world, &request).await, (expected.clone(), 1));
        // If other calls use most of the memory, a call answers early.
        let mut others = BudgetShare::of(&world.response_budget);
        others.force(RESPONSE_BUDGET_BYTES / 3 * 2);
        let mut request = request;
        let (mut found, mut calls) = (0, 0);
        loop {
            let answer = world.call(SERVICE, "Aggregate", &request.encode_to_vec()).await.unwrap();
            let answer = AggregateResponse::decode(&answer[..]).unwrap();
            (found, calls) = (found + answer.group.len(), calls + 1);
            let Some(row) = answer.resume_row else { break };
            request.rows.as_mut().unwrap().start_row = Some(row);
        }
        assert!(found == ROWS && calls > 1, "{found} {calls}");
        // If they use all of it, the call is rejected as retryable.
        others.set(RESPONSE_BUDGET_BYTES);
        request.rows.as_mut().unwrap().start_row = None;
        let refused = world.call(SERVICE, "Aggregate", &request.encode_to_vec()).await.unwrap_err();
        assert!(refused.is(class::REGION_TOO_BUSY), "{refused:?}");
        drop(others);
        assert_eq!(counts(&world, &request).await, (expected, 1));
    });
}

#[test]
fn a_call_ends_within_rows_that_are_merged() {
    run(async {
        let world = begin().await;
        // All in memory, so there is only one unit.
        put(&world, "t", (0..ROWS).map(|number| (number, text(number % 3)))).await;
        let request = AggregateRequest {
            rows: Some(rows_of(vec![column("t", Encoding::Raw)])),
            group_by: vec![0],
            aggregate: vec![count()],
            time_ms_max: Some(0),
            ..AggregateRequest::default()
        };
        let (found, calls) = counts(&world, &request).await;
        assert_eq!(found.into_values().collect::<Vec<_>>(), [ROWS as u64 / 3; 3]);
        assert!(calls > 1, "{calls}");
    });
}

#[test]
fn only_used_columns_are_read() {
    run(async {
        let world = begin().await;
        put(&world, "n", (0..100).map(|number| (number, number.to_string().into()))).await;
        put(&world, "t", (0..100).map(|number| (number, text(number)))).await;
        world.region.flush().await.unwrap();
        let mut request = AggregateRequest {
            // Reading the first column would fail the call.
            rows: Some(rows_of(vec![column("t", Encoding::BytesLong), column("n", Encoding::TextLong)])),
            aggregate: vec![sum(1)],
            ..AggregateRequest::default()
        };
        let answer = aggregate(&world, &request).await.unwrap();
        assert_eq!(answer.group[0].state[0].count(), 100);
        assert_eq!(answer.group[0].state[0].value.as_ref().unwrap().decimal(), 4950_i16.to_be_bytes());
        let rows = request.rows.clone();
        let select = SelectRequest { rows, give: vec![1, 1], ..SelectRequest::default() };
        let answer = world.call(SERVICE, "Select", &select.encode_to_vec()).await.unwrap();
        let answer = SelectResponse::decode(&answer[..]).unwrap();
        assert_eq!(answer.vector[1].whole, (0..100).collect::<Vec<i64>>());
        request.aggregate.push(sum(0));
        let call = common::call(SERVICE, "Aggregate", &request.encode_to_vec());
        assert!(world.endpoints.call(&world.region, &call, None).await.is_err(), "no value is a bytes_long");
    });
}

#[test]
fn sums_have_38_digits() {
    run(async {
        let world = begin().await;
        let digits = |first: char| Bytes::from(format!("{first}{}", "0".repeat(37)));
        put(&world, "d", [(0, digits('6')), (1, digits('3')), (2, digits('2'))].into_iter()).await;
        let request = |stop: usize| AggregateRequest {
            rows: Some(Rows {
                stop_row: Some(key(stop)),
                ..rows_of(vec![column("d", Encoding::TextDecimal)])
            }),
            aggregate: vec![sum(0)],
            ..AggregateRequest::default()
        };
        aggregate(&world, &request(2)).await.unwrap();
        // 128 bits could hold it.
        let refused = aggregate(&world, &request(3)).await.unwrap_err();
        assert!(refused.message.contains("38"), "{refused:?}");
    });
}

#[test]
fn versions_are_all_added_up() {
    run(async {
        let world = begin().await;
        for (row, at, value) in [("a", 1, 1_i64), ("a", 2, 20), ("b", 1, 300), ("c", 3, 4000)] {
            world.put(row, &[("l", at, &value.to_be_bytes())]).await;
        }
        world.put("c", &[("other", 9, b"x")]).await;
        let request = |versions| AggregateRequest {
            rows: Some(Rows { versions, ..rows_of(vec![column("l", Encoding::BytesLong)]) }),
            aggregate: vec![sum(0), count()],
            ..AggregateRequest::default()
        };
        for (versions, count, total) in [(None, 3, 4320_i16), (Some(1), 3, 4320), (Some(2), 4, 4321)] {
            let answer = aggregate(&world, &request(versions)).await.unwrap();
            let states = &answer.group[0].state;
            assert_eq!(states[0].value.as_ref().unwrap().decimal(), total.to_be_bytes());
            assert_eq!((states[0].count(), states[1].count()), (count, count), "{versions:?}");
        }
        // HBase's service also adds all versions.
        let all = cell::query::Scan {
            selection: cell::query::CellSelection { max_versions: 3, ..common::column("l").selection },
            ..common::column("l")
        };
        let answer = world.query("GetSum", "Long", &all).await.unwrap();
        assert_eq!(proto::LongMsg::decode(answer.first_part[0].clone()).unwrap().long_msg, 4321);
    });
}

#[test]
fn a_column_may_be_named_often() {
    run(async {
        let world = begin().await;
        put(&world, "n", (0..100).map(|number| (number, number.to_string().into()))).await;
        let column = |at| column("n", if at == 500 { Encoding::Raw } else { Encoding::TextLong });
        for versions in [1, 2] {
            let rows = Rows { versions: Some(versions), ..rows_of((0..1024).map(column).collect()) };
            let request = AggregateRequest {
                rows: Some(rows.clone()),
                group_by: vec![500],
                aggregate: vec![sum(3), count(), sum(1023)],
                ..AggregateRequest::default()
            };
            let answer = aggregate(&world, &request).await.unwrap();
            assert_eq!(answer.group.len(), 100);
            for group in answer.group {
                let number: i64 = str::from_utf8(group.key[0].raw()).unwrap().parse().unwrap();
                let total = |at: usize| group.state[at].value.as_ref().unwrap().decimal().to_vec();
                assert_eq!((total(0), total(2)), (total(2), vec![number as u8]));
            }
            let give = vec![900, 500, 0];
            let select = SelectRequest { rows: Some(rows), give, ..SelectRequest::default() };
            let answer = world.call(SERVICE, "Select", &select.encode_to_vec()).await.unwrap();
            let vectors = SelectResponse::decode(&answer[..]).unwrap().vector;
            assert_eq!(vectors[0].whole, (0..100).collect::<Vec<i64>>());
            assert_eq!((&vectors[0], vectors[1].raw.len()), (&vectors[2], 100));
        }
    });
}

/// Rows of all responses, and the size of the largest response.
async fn selected(world: &World, bytes_max: u64) -> (Vec<(Bytes, Bytes)>, usize) {
    let mut rows = rows_of(vec![Column { encoding: Some(Encoding::Raw as i32), ..Column::default() }]);
    rows.column.push(column("t", Encoding::Raw));
    let (mut found, mut largest): (Vec<(Bytes, Bytes)>, usize) = Default::default();
    loop {
        let request = SelectRequest {
            rows: Some(rows.clone()),
            give: vec![0, 1],
            bytes_max: Some(bytes_max),
            ..SelectRequest::default()
        };
        let answer = world.call(SERVICE, "Select", &request.encode_to_vec()).await.unwrap();
        assert_eq!(world.response_budget.used(), 0);
        largest = largest.max(answer.len());
        let mut answer = SelectResponse::decode(&answer[..]).unwrap();
        let values = answer.vector.pop().unwrap().raw;
        let mut part: Vec<_> = answer.vector.pop().unwrap().raw.into_iter().zip(values).collect();
        part.sort();
        assert!(found.last().is_none_or(|last| part.first().is_none_or(|first| last.0 < first.0)));
        found.append(&mut part);
        let Some(row) = answer.resume_row else { return (found, largest) };
        rows.start_row = Some(row);
    }
}

#[test]
fn a_selection_is_no_larger_than_it_may_be() {
    run(async {
        let world = begin().await;
        // A vector stores each distinct value once, but a response stores every occurrence.
        put(&world, "t", (0..ROWS).map(|number| (number, text(number % 5)))).await;
        world.region.flush().await.unwrap();
        let mut expected: BTreeMap<Bytes, Bytes> =
            (0..ROWS).map(|number| (key(number), text(number % 5))).collect();
        for _ in 0..2 {
            let (found, largest) = selected(&world, 50_000).await;
            assert!(found.into_iter().eq(expected.clone()));
            assert!(largest < 60_000, "{largest}");
        }
        // With rows in memory between those in the file.
        let fresh = || (17..ROWS).step_by(700).map(|number| (number, text(9)));
        put(&world, "t", fresh()).await;
        expected.extend(fresh().map(|(number, text)| (key(number), text)));
        let (found, largest) = selected(&world, 50_000).await;
        assert!(found.into_iter().eq(expected.clone()));
        assert!(largest < 70_000, "{largest}");
        let (found, _) = selected(&world, u64::MAX).await;
        assert!(found.into_iter().eq(expected));
    });
}
