//! Actions of a batch, as no client of HBase's writes them, but as one may.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use world::{World, run};

/// A field of bytes.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut out);
    encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

/// A Get of a column, or of all.
fn get(row: &'static str, qualifier: Option<&'static str>) -> proto::Get {
    let column =
        |qualifier: &'static str| proto::Column { family: "f".into(), qualifier: vec![qualifier.into()] };
    proto::Get { row: row.into(), column: qualifier.map(column).into_iter().collect(), ..Default::default() }
}

/// An action, which has its index in front of its Get as HBase's clients write it, or behind.
fn action(index: u32, get: &proto::Get, is_usual: bool) -> Vec<u8> {
    let index = proto::Action { index: Some(index), ..Default::default() }.encode_to_vec();
    let get = proto::Action { get: Some(get.clone()), ..Default::default() }.encode_to_vec();
    if is_usual { [index, get].concat() } else { [get, index].concat() }
}

/// How many cells each of the actions found.
async fn found(world: &World, actions: &[Vec<u8>]) -> Vec<i32> {
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
fn each_get_of_a_batch_asks_for_what_it_says() {
    run(async {
        let world = World::begin().await;
        for row in ["a", "b", "c"] {
            world.put(row).await;
        }
        let (all, none) = (None, Some("none"));
        // Alike are the first and the last; what is between them comes by another way, or by the same.
        for (outer, inner, expected) in
            [(all, none, [1, 0, 1]), (none, all, [0, 1, 0]), (all, all, [1, 1, 1])]
        {
            for is_usual in [true, false] {
                let actions = [
                    action(0, &get("a", outer), true),
                    action(1, &get("b", inner), is_usual),
                    action(2, &get("c", outer), true),
                ];
                assert_eq!(found(&world, &actions).await, expected, "{outer:?} {inner:?} {is_usual}");
            }
        }
        // More than are read together, of rows that are there and rows that are not.
        let rows = ["a", "none", "b", "c", "zero"];
        let actions: Vec<_> =
            (0..1000).map(|at| action(at, &get(rows[at as usize % 5], all), at % 7 > 0)).collect();
        let expected: Vec<_> =
            (0..1000).map(|at| i32::from([true, false, true, true, false][at % 5])).collect();
        assert_eq!(found(&world, &actions).await, expected);
    });
}
