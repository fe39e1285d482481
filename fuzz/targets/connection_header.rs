//! The connection header of a client. An accepted header survives encoding and decoding.
#![no_main]

use rpc::header::ConnectionHeader;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(header) = ConnectionHeader::decode(data) {
        let again = ConnectionHeader::decode(&header.encode()).expect("our own encoding must be readable");
        assert_eq!(again, header);
    }
});
