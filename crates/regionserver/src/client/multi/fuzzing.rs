//! A door for the fuzzer to the parts of a multi: they are what prost reads.

use bytes::Bytes;
use cell::codec::{CellBlockReader, Codec};
use cell::{CellType, KeyValue};
use prost::Message;
use wire::convert::mutations::Mutations;
use wire::exception::Answer;

use super::parts::{MultiParts, Part, RegionParts};

/// A `MultiRequest`: any bytes.
pub fn multi(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let whole = proto::MultiRequest::decode(bytes.clone());
    let parts = MultiParts::of(bytes).and_then(|parts| {
        let regions = parts.regions().map(|region| region.and_then(|region| joined(&region)));
        Ok(proto::MultiRequest { region_action: regions.collect::<Result<_, _>>()?, ..parts.rest })
    });
    // The other way round it need not be: prost's limit for messages within messages is counted from each part on.
    if let Ok(whole) = whole {
        let parts = parts.expect("parts of a message");
        // As text: a filter may hold a number that is not equal to itself.
        assert_eq!(format!("{parts:?}"), format!("{whole:?}"));
    }
}

/// A region's part with all its actions, which are the same by their places.
fn joined(region: &RegionParts) -> Answer<proto::RegionAction> {
    let actions: Vec<proto::Action> = region.actions().collect::<Result<_, _>>()?;
    assert_eq!(actions.len(), region.actions, "as many as were counted");
    let mut mutations = Mutations::default();
    let (mut parts, mut gets) = (region.parts(), region.parts());
    for action in &actions {
        let Some(part) = parts.next() else { panic!("a part for each action") };
        let (position, part) = part?;
        let get = gets.next_get(|_, at| Some(at));
        match &part {
            Part::Get(index, at) => assert_eq!(get, Some((index.unwrap_or(position), at.clone()))),
            _ => assert!(get.is_none() && gets.next().is_some(), "no Get, and still to come"),
        }
        let again = match part {
            Part::Get(index, at) => {
                let get = proto::Get::decode(region.bytes().slice(at)).expect("a Get within an action");
                proto::Action { index, get: Some(get), ..proto::Action::default() }
            }
            Part::Mutation(index, at) => {
                // What is known of those before it changes nothing.
                let read = |mutations: &mut Mutations| {
                    let read = mutations.read(region.bytes(), at.clone(), &mut some_cells(), 7);
                    format!("{read:?}")
                };
                assert_eq!(read(&mut mutations), read(&mut Mutations::default()));
                let mutation = region.bytes().slice(at);
                let mutation = proto::MutationProto::decode(mutation).expect("a mutation within an action");
                proto::Action { index, mutation: Some(mutation), ..proto::Action::default() }
            }
            Part::Other(at) => region.action(at)?,
        };
        assert_eq!(format!("{again:?}"), format!("{action:?}"));
    }
    Ok(proto::RegionAction { action: actions, ..region.rest.clone() })
}

/// Those of a mutation that says it has one or two, of this row.
fn some_cells() -> CellBlockReader {
    let mut block = Vec::new();
    for qualifier in [b"p", b"q"] {
        let cell = KeyValue::new(b"row", b"f", qualifier, 5, CellType::Put, b"value");
        Codec::KeyValue.write(&cell.view(0), &mut block);
    }
    Codec::KeyValue.read(block.into())
}
