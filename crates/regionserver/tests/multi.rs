//! Batches of actions: valid ones in an encoding that HBase's clients do not use, and long ones.

use std::time::Duration;

use crate::world::{World, run};
use bytes::{BufMut, Bytes, BytesMut};
use cell::region::RegionInfo;
use cell::schema::TableName;
use cell::{CellType, KeyValue};
use fs::faulty::Operation;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use proto::mutation_proto::MutationType;

/// Encodes a length-delimited field.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut out);
    encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

/// A Get of one column, or of all columns.
fn get(row: &'static str, qualifier: Option<&'static str>) -> proto::Get {
    let column =
        |qualifier: &'static str| proto::Column { family: "f".into(), qualifier: vec![qualifier.into()] };
    proto::Get { row: row.into(), column: qualifier.map(column).into_iter().collect(), ..Default::default() }
}

/// Encodes an action with its index before the Get, as HBase's clients do, or after it.
fn action(index: u32, get: &proto::Get, is_usual: bool) -> Vec<u8> {
    let index = proto::Action { index: Some(index), ..Default::default() }.encode_to_vec();
    let get = proto::Action { get: Some(get.clone()), ..Default::default() }.encode_to_vec();
    if is_usual { [index, get].concat() } else { [get, index].concat() }
}

/// The number of cells that each action returns.
async fn cell_counts(world: &World, actions: &[Vec<u8>]) -> Vec<i32> {
    let mut region_action = field(1, &world.region.encode_to_vec());
    actions.iter().for_each(|action| region_action.extend(field(3, action)));
    let request = Bytes::from(field(1, &region_action));
    let answer = world.call_raw("Multi", request, BytesMut::new()).await;
    let response = proto::MultiResponse::decode(answer.message).unwrap();
    let mut entries = response.region_action_result[0].result_or_exception.clone();
    entries.sort_by_key(|entry| entry.index);
    entries.iter().map(|entry| entry.result.as_ref().unwrap().associated_cell_count()).collect()
}

#[test]
fn each_get_of_a_batch_reads_its_own_columns() {
    run(async {
        let world = World::begin().await;
        for row in ["a", "b", "c"] {
            world.put(row).await;
        }
        let (all, none) = (None, Some("none"));
        // The outer Gets differ only in the row. The inner one may also differ in its column, in
        // its encoding, or in both.
        for (outer, inner, expected) in
            [(all, none, [1, 0, 1]), (none, all, [0, 1, 0]), (all, all, [1, 1, 1])]
        {
            for is_usual in [true, false] {
                let actions = [
                    action(0, &get("a", outer), true),
                    action(1, &get("b", inner), is_usual),
                    action(2, &get("c", outer), true),
                ];
                assert_eq!(cell_counts(&world, &actions).await, expected, "{outer:?} {inner:?} {is_usual}");
            }
        }
        // More Gets than a batch holds, of existing and of missing rows.
        let rows = ["a", "none", "b", "c", "zero"];
        let actions: Vec<_> =
            (0..1000).map(|at| action(at, &get(rows[at as usize % 5], all), at % 7 > 0)).collect();
        let expected: Vec<_> =
            (0..1000).map(|at| i32::from([true, false, true, true, false][at % 5])).collect();
        assert_eq!(cell_counts(&world, &actions).await, expected);
    });
}

/// A Multi with one region action per group of mutations, and its cell block. Each mutation has one
/// cell, and is a put of `value` or a delete of the row.
pub fn mutations(world: &World, groups: &[(MutationType, &[String])], value: &[u8]) -> (Bytes, BytesMut) {
    let (mut region_action, mut cells) = (Vec::new(), BytesMut::new());
    for &(mutate_type, rows) in groups {
        let is_put = mutate_type == MutationType::Put;
        let cell_type = if is_put { CellType::Put } else { CellType::DeleteColumn };
        let value = if is_put { value } else { &[] };
        let action = rows.iter().zip(0..).map(|(row, index)| {
            let cell = KeyValue::new(row.as_bytes(), b"f", b"q", cell::LATEST_TIMESTAMP, cell_type, value);
            cells.put_u32(cell.bytes().len() as u32);
            cells.put_slice(cell.bytes());
            let mutation = proto::MutationProto {
                row: Some(row.clone().into()),
                mutate_type: Some(mutate_type.into()),
                associated_cell_count: Some(1),
                ..Default::default()
            };
            proto::Action { index: Some(index), mutation: Some(mutation), ..Default::default() }
        });
        region_action.push(proto::RegionAction {
            region: world.region.clone(),
            action: action.collect(),
            ..Default::default()
        });
    }
    let request = proto::MultiRequest { region_action, ..Default::default() };
    (request.encode_to_vec().into(), cells)
}

#[test]
fn a_long_batch_is_published_in_chunks_or_refused_as_a_whole() {
    run(async {
        let world = World::begin().await;
        let rows: Vec<String> = (0..2500).map(|at| format!("r{at:04}")).collect();
        let (request, cells) = mutations(&world, &[(MutationType::Put, &rows)], &[7; 100]);
        let answer = world.call_raw("Multi", request.clone(), cells.clone()).await;
        let response = proto::MultiResponse::decode(answer.message).unwrap();
        let entries = &response.region_action_result[0].result_or_exception;
        let indexes: Vec<u32> = entries.iter().map(|entry| entry.index()).collect();
        assert_eq!(indexes, (0..2500).collect::<Vec<_>>());
        assert!(entries.iter().all(|entry| entry.exception.is_none()));
        assert_eq!(cell_counts(&world, &[action(0, &get("r2499", None), true)]).await, [1]);
        // A full disk: puts are refused, and deletes are accepted.
        world.faulty.set_capacity(Some(world.faulty.used() + 2_000));
        world.env.clock.sleep(Duration::from_secs(3)).await;
        let groups = [(MutationType::Put, &rows[..]), (MutationType::Delete, &rows[2499..])];
        let (request, cells) = mutations(&world, &groups, &[7; 100]);
        let answer = world.call_raw("Multi", request, cells).await;
        assert!(answer.message.len() < 2000, "one exception for all puts: {} bytes", answer.message.len());
        let response = proto::MultiResponse::decode(answer.message).unwrap();
        let [puts, deletes] = &response.region_action_result[..] else { panic!("two regions") };
        let exception = puts.exception.as_ref().unwrap();
        assert_eq!(exception.name, "org.apache.hadoop.hbase.RegionTooBusyException");
        assert_eq!(puts.result_or_exception, []);
        assert!(deletes.result_or_exception[0].exception.is_none(), "the cells of the puts are skipped");
        assert_eq!(cell_counts(&world, &[action(0, &get("r2499", None), true)]).await, [0]);
    });
}

#[test]
fn a_batch_of_puts_needs_no_free_memory_for_its_small_response() {
    run(async {
        let world = World::begin().await;
        let rows: Vec<String> = (0..100).map(|at| format!("r{at:04}")).collect();
        let (request, cells) = mutations(&world, &[(MutationType::Put, &rows)], &[7; 100]);
        let budget = world.server.response_budget();
        let held: Vec<_> = std::iter::from_fn(|| budget.hold(60_000)).collect();
        assert!(budget.available() < 60_000, "{}", held.len());
        let answer = world.call_raw("Multi", request, cells).await;
        let response = proto::MultiResponse::decode(answer.message).unwrap();
        let entries = &response.region_action_result[0].result_or_exception;
        assert!(entries.len() == 100 && entries.iter().all(|entry| entry.exception.is_none()));
        drop(held);
    });
}

/// An action that puts the row.
fn put(row: &str, index: u32) -> proto::Action {
    let value = proto::mutation_proto::column_value::QualifierValue {
        qualifier: Some("q".into()),
        value: Some("v".into()),
        ..Default::default()
    };
    let column = proto::mutation_proto::ColumnValue { family: "f".into(), qualifier_value: vec![value] };
    let mutation = proto::MutationProto {
        row: Some(row.to_owned().into()),
        mutate_type: Some(MutationType::Put.into()),
        column_value: vec![column],
        ..Default::default()
    };
    proto::Action { index: Some(index), mutation: Some(mutation), ..Default::default() }
}

/// The number of cells that a read of the row returns.
fn row_get(row: &'static str, index: u32) -> proto::Action {
    proto::Action { index: Some(index), get: Some(get(row, None)), ..Default::default() }
}

#[test]
fn a_call_waits_once_for_the_puts_of_all_its_regions() {
    const SYNC: Duration = Duration::from_millis(200);
    run(async {
        let world = World::begin().await;
        let mut regions = vec![world.region.clone()];
        for region_id in 2..8 {
            let info = RegionInfo::new(TableName::parse("t").unwrap(), "".into(), "".into(), region_id);
            regions.push(world.open(&info).await);
        }
        world.delay(Operation::Sync, SYNC);
        // The fourth region reads in between, and the first one is named twice: its second action
        // sees the put of its first one.
        let mut region_action: Vec<_> =
            regions.iter().map(|region| (region, vec![put("a", 0), put("b", 1)])).collect();
        region_action[3].1 = vec![row_get("a", 0)];
        region_action.push((&regions[0], vec![row_get("b", 0), put("c", 1)]));
        let region_action = region_action
            .into_iter()
            .map(|(region, action)| proto::RegionAction {
                region: region.clone(),
                action,
                ..Default::default()
            })
            .collect();
        let request = proto::MultiRequest { region_action, ..Default::default() };
        let begin = world.env.clock.monotonic();
        let answer = world.call_raw("Multi", request.encode_to_vec().into(), BytesMut::new()).await;
        let took = world.env.clock.monotonic() - begin;
        let response = proto::MultiResponse::decode(answer.message).unwrap();
        let cells: Vec<Vec<i32>> = response
            .region_action_result
            .iter()
            .map(|region| {
                let results = region.result_or_exception.iter().map(|entry| entry.result.as_ref().unwrap());
                results.map(|result| result.associated_cell_count()).collect()
            })
            .collect();
        assert_eq!(
            cells,
            [vec![0, 0], vec![0, 0], vec![0, 0], vec![0], vec![0, 0], vec![0, 0], vec![0, 0], vec![1, 0]]
        );
        // One wait for all regions, and one for the region that is named twice. A running sync is
        // waited for first.
        assert!(took >= SYNC * 2 && took <= SYNC * 4, "{took:?}");
    });
}
