//! Entry point for the fuzzer: the in-place decoder of a Get must agree with prost.

use bytes::Bytes;
use prost::Message;
use wire::convert::from_proto;

use super::GetRequest;

/// Decodes arbitrary bytes as a `GetRequest`.
pub fn get(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let Ok(whole) = proto::GetRequest::decode(bytes.clone()) else { return };
    let decoded = GetRequest::decode(bytes).expect("a valid message");
    assert_eq!(decoded.region, whole.region.value);
    match (decoded.get(), from_proto::get(&whole.get)) {
        (Ok(decoded), Ok(whole)) => assert_eq!(format!("{decoded:?}"), format!("{whole:?}")),
        (decoded, whole) => assert_eq!(decoded.is_err(), whole.is_err()),
    }
}
