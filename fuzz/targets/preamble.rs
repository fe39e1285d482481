//! The first bytes of a connection: a preamble, or one of the requests that need none.
#![no_main]

use std::net::{Ipv4Addr, SocketAddr};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let parsed = rpc::preamble::parse(data);
    if let Some(preamble) = parsed {
        let longer = [data, &[0; 64]].concat();
        assert_eq!(rpc::preamble::parse(&longer), Some(preamble), "more bytes must not change the result");
        _ = rpc::preamble::refusal(preamble, peer);
    }
});
