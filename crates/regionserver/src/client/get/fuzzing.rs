//! A door for the fuzzer to a Get that is taken apart where it lies: it is what prost reads.

use bytes::Bytes;
use prost::Message;
use wire::convert::from_proto;

use super::GetRequest;

/// A `GetRequest`: any bytes.
pub fn get(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let Ok(whole) = proto::GetRequest::decode(bytes.clone()) else { return };
    let apart = GetRequest::of(bytes).expect("a message is taken apart");
    assert_eq!(apart.region, whole.region.value);
    match (apart.get(), from_proto::get(&whole.get)) {
        (Ok(apart), Ok(whole)) => assert_eq!(format!("{apart:?}"), format!("{whole:?}")),
        (apart, whole) => assert_eq!(apart.is_err(), whole.is_err()),
    }
}
