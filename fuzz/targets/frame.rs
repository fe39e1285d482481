//! A frame, parsed as a request like the server does, and as a response like the client does.
#![no_main]

use bytes::Bytes;
use rpc::frame;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let frame = Bytes::copy_from_slice(data);
    _ = frame::peek_header(&frame);
    _ = frame::peek_response_call(&frame);
    if let Ok(request) = frame::parse_request(&frame) {
        assert!(request.param.len() + request.cells.len() <= frame.len(), "the parts are within the frame");
    }
    if let Ok(response) = frame::parse_response(&frame) {
        _ = format!("{response:?}");
    }
});
