//! Messages of the data path, followed by a cell block, converted to the engine's requests.
//!
//! Byte 0 selects the message, the next two bytes are its length, and the rest is the cell block.
#![no_main]

use bytes::Bytes;
use cell::codec::Codec;
use prost::Message;
use wire::convert::from_proto;
use wire::convert::gets::Gets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&[selector, high, low], rest)) = data.split_first_chunk() else { return };
    let len = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
    let message = Bytes::copy_from_slice(&rest[..len]);
    let mut block = Codec::KeyValueWithTags.read(Bytes::copy_from_slice(&rest[len..]));
    match selector % 5 {
        0 => get(&message),
        1 => _ = proto::Scan::decode(message).map(|scan| from_proto::scan(&scan).map(drop)),
        2 => {
            _ = proto::MutationProto::decode(message)
                .map(|mutation| from_proto::mutation(&mutation, &mut block, 0).map(drop));
        }
        3 => {
            _ = proto::Result::decode(message).map(|result| from_proto::result(&result, &mut block).map(drop))
        }
        _ => {
            if let Ok(multi) = proto::MultiRequest::decode(message) {
                let actions = multi.region_action.iter().flat_map(|region| &region.action);
                actions.for_each(|action| from_proto::skip_action(action, &mut block));
            }
        }
    }
});

/// A Get is decoded to the same result whether it is the first of its kind or like the remembered
/// one.
fn get(message: &Bytes) {
    let alone = proto::Get::decode(message.clone()).map(|get| from_proto::get(&get));
    let mut gets = Gets::default();
    for _ in 0..2 {
        match (&alone, gets.read(message, 0..message.len())) {
            // Compared as text: a filter may contain NaN, which does not equal itself.
            (Ok(alone), Ok(read)) => assert_eq!(format!("{alone:?}"), format!("{read:?}")),
            (alone, read) => assert_eq!(alone.is_err(), read.is_err()),
        }
    }
}
