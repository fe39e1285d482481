//! Batches of actions that are valid, but encoded in a way that HBase's clients do not use.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use world::{World, run};

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
