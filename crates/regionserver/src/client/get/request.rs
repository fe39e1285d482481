//! A `GetRequest`, decoded in place.

use std::cell::RefCell;
use std::ops::Range;

use bytes::{Buf, Bytes};
use cell::query::Get;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use proto::exception::Answer;
use wire::convert::field::field_range;
use wire::convert::gets::Gets;

use crate::client::malformed;

thread_local! {
    /// Recent Gets of this thread. Consecutive Gets mostly differ only in the row, so the rest is
    /// decoded once.
    static GETS: RefCell<Gets> = RefCell::default();
}

// Field numbers, of `GetRequest` and `RegionSpecifier`.
const REGION: u32 = 1;
const GET: u32 = 2;
const REGION_TYPE: u32 = 1;
const REGION_VALUE: u32 = 2;

/// The region's name, and the encoded Get.
pub(in crate::client) struct GetRequest {
    pub(in crate::client) region: Bytes,
    // The buffer that contains the encoded Get, and its range there.
    bytes: Bytes,
    get: Range<usize>,
}

impl GetRequest {
    /// # Errors
    /// `DoNotRetryIOException` if the message cannot be decoded, as for every other message.
    pub(in crate::client) fn decode(message: Bytes) -> Answer<GetRequest> {
        if let Some((region, get)) = field_ranges(&message) {
            return Ok(GetRequest { region: message.slice(region), bytes: message, get });
        }
        Ok(GetRequest::from(&proto::GetRequest::decode(message).map_err(malformed)?))
    }

    /// # Errors
    /// If the Get cannot be decoded, or requests something unsupported.
    pub(in crate::client) fn get(&self) -> Answer<Get> {
        let get = GETS.with_borrow_mut(|gets| gets.read(&self.bytes, self.get.clone()));
        Ok(get.map_err(malformed)??)
    }
}

impl From<&proto::GetRequest> for GetRequest {
    fn from(request: &proto::GetRequest) -> GetRequest {
        let bytes = Bytes::from(request.get.encode_to_vec());
        GetRequest { region: request.region.value.clone(), get: 0..bytes.len(), bytes }
    }
}

/// The ranges of the region's name and of the Get, if the message has each once and nothing else.
fn field_ranges(message: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let region = field_range(message, 0, REGION)?;
    let get = field_range(message, region.end, GET)?;
    let mut specifier = &message[region.clone()];
    if decode_key(&mut specifier).ok()? != (REGION_TYPE, WireType::Varint) {
        return None;
    }
    decode_varint(&mut specifier).ok()?;
    let name = field_range(message, region.end - specifier.remaining(), REGION_VALUE)?;
    (name.end == region.end && get.end == message.len()).then_some((name, get))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> proto::GetRequest {
        proto::GetRequest {
            region: proto::RegionSpecifier { r#type: 1, value: "t,,1.0123.".into() },
            get: proto::Get { row: "r".into(), max_versions: Some(3), ..proto::Get::default() },
        }
    }

    #[test]
    fn in_place_decoding_equals_full_decoding() {
        let bytes = Bytes::from(request().encode_to_vec());
        assert!(field_ranges(&bytes).is_some());
        let decoded = GetRequest::decode(bytes).unwrap();
        assert_eq!(decoded.region, request().region.value);
        let get = decoded.get().unwrap();
        assert_eq!(get, wire::convert::from_proto::get(&request().get).unwrap());
    }

    #[test]
    fn unusual_messages_are_decoded() {
        let (region, get) = (request().region.encode_to_vec(), request().get.encode_to_vec());
        let field = |number: u8, value: &[u8]| [&[number << 3 | 2, value.len() as u8], value].concat();
        let value_first = [field(2, b"t,,1.0123."), vec![0x08, 1]].concat();
        for bytes in [
            [field(2, &get), field(1, &region)].concat(),
            [field(1, &value_first), field(2, &get)].concat(),
            [field(1, &region), field(2, &get), vec![0x18, 0]].concat(),
            [field(1, b"\x08\x01\x12\x01x"), field(2, &get), field(1, &region)].concat(),
        ] {
            assert!(field_ranges(&bytes).is_none(), "{bytes:?}");
            let decoded = GetRequest::decode(bytes.into()).unwrap();
            assert_eq!(
                (decoded.region.clone(), decoded.get().unwrap().selection.max_versions),
                (request().region.value, 3)
            );
        }
    }

    #[test]
    fn truncated_messages_are_refused() {
        let whole = request().encode_to_vec();
        for len in 0..whole.len() {
            let cut = GetRequest::decode(whole[..len].to_vec().into());
            assert!(cut.and_then(|request| request.get()).is_err(), "{len}");
        }
    }
}
