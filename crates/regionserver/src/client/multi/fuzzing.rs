//! Entry point for the fuzzer: the partial decoder of a multi must agree with prost.

use bytes::Bytes;
use cell::codec::{CellBlockReader, Codec};
use cell::{CellType, KeyValue};
use prost::Message;
use proto::exception::Answer;
use wire::convert::mutations::Mutations;

use super::parts::{ActionRange, MultiParts, RegionParts};

/// Decodes arbitrary bytes as a `MultiRequest`.
pub fn multi(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let whole = proto::MultiRequest::decode(bytes.clone());
    let parts = MultiParts::split(bytes).and_then(|parts| {
        let regions = parts.regions().map(|region| region.and_then(|region| joined(&region)));
        Ok(proto::MultiRequest { region_action: regions.collect::<Result<_, _>>()?, ..parts.rest })
    });
    // The reverse need not hold: each part starts a new count for prost's recursion limit.
    if let Ok(whole) = whole {
        let parts = parts.expect("parts of a message");
        // Compared as text, because a filter may contain a NaN.
        assert_eq!(format!("{parts:?}"), format!("{whole:?}"));
    }
}

/// A region's part with all of its decoded actions. Checks that decoding them by their positions
/// has the same result.
fn joined(region: &RegionParts) -> Answer<proto::RegionAction> {
    let actions: Vec<proto::Action> = region.actions().collect::<Result<_, _>>()?;
    assert_eq!(actions.len(), region.actions, "number of actions");
    let mut mutations = Mutations::default();
    let (mut parts, mut gets) = (region.action_ranges(), region.action_ranges());
    for action in &actions {
        let Some(part) = parts.next() else { panic!("a part for each action") };
        let (position, part) = part?;
        let get = gets.next_get(|_, at| Some(at));
        match &part {
            ActionRange::Get(index, at) => assert_eq!(get, Some((index.unwrap_or(position), at.clone()))),
            _ => assert!(get.is_none() && gets.next().is_some(), "not a Get, and not consumed"),
        }
        let again = match part {
            ActionRange::Get(index, at) => {
                let get = proto::Get::decode(region.bytes().slice(at)).expect("a Get within an action");
                proto::Action { index, get: Some(get), ..proto::Action::default() }
            }
            ActionRange::Mutation(index, at) => {
                // The cached state of earlier mutations must not change the result.
                let read = |mutations: &mut Mutations| {
                    let read = mutations.read(region.bytes(), at.clone(), &mut sample_cells(), 7);
                    format!("{read:?}")
                };
                assert_eq!(read(&mut mutations), read(&mut Mutations::default()));
                let mutation = region.bytes().slice(at);
                let mutation = proto::MutationProto::decode(mutation).expect("a mutation within an action");
                proto::Action { index, mutation: Some(mutation), ..proto::Action::default() }
            }
            ActionRange::Other(at) => region.action(at)?,
        };
        assert_eq!(format!("{again:?}"), format!("{action:?}"));
    }
    Ok(proto::RegionAction { action: actions, ..region.rest.clone() })
}

/// Cells of one row, for a mutation that declares one or two cells.
fn sample_cells() -> CellBlockReader {
    let mut block = Vec::new();
    for qualifier in [b"p", b"q"] {
        let cell = KeyValue::new(b"row", b"f", qualifier, 5, CellType::Put, b"value");
        Codec::KeyValue.write(&cell.view(0), &mut block);
    }
    Codec::KeyValue.read(block.into())
}
