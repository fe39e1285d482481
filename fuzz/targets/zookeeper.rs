//! Messages that the ZooKeeper endpoint receives from clients, and those that our client receives.
#![no_main]

use bytes::Bytes;
use zk::protocol::{ConnectRequest, ConnectResponse, Reply, Request};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let body = Bytes::copy_from_slice(data);
    if let Ok(request) = ConnectRequest::parse(&body) {
        _ = request.encode();
    }
    _ = ConnectResponse::parse(&body);
    _ = Request::parse(&body);
    if let Ok(reply) = Reply::parse(&body) {
        _ = reply.data();
        _ = reply.children();
    }
});
