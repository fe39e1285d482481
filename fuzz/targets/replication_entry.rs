//! A `ReplicateWALEntry` of another cluster: the first two bytes are the length of the request; the
//! rest is the block of its cells.
#![no_main]

use bytes::Bytes;
use cell::codec::Codec;
use prost::Message;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((len, rest)) = data.split_first_chunk::<2>() else { return };
    let Some((request, cells)) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len))) else { return };
    let Ok(request) = proto::ReplicateWalEntryRequest::decode(request) else { return };
    for codec in [Codec::KeyValue, Codec::KeyValueWithTags] {
        regionserver::replication_sink::read_entries(&request, Bytes::copy_from_slice(cells), codec);
    }
});
