//! The message that introduces a client. What is accepted survives being written and read again.
#![no_main]

use rpc::header::ConnectionHeader;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(header) = ConnectionHeader::decode(data) {
        let again = ConnectionHeader::decode(&header.encode()).expect("what we write is read");
        assert_eq!(again, header);
    }
});
