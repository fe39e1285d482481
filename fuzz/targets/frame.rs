//! A frame taken as a request, as the server does, and as a response, as the client does.
#![no_main]

use bytes::Bytes;
use rpc::frame;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let frame = Bytes::copy_from_slice(data);
    _ = frame::peek_header(&frame);
    if let Ok(request) = frame::parse_request(&frame) {
        assert!(request.param.len() + request.cells.len() <= frame.len(), "parts fit the frame");
    }
    if let Ok(response) = frame::parse_response(&frame) {
        _ = format!("{response:?}");
    }
});
