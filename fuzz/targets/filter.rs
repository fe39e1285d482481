//! A filter as clients send it: rejected, or equal after encoding and decoding.
#![no_main]

use prost::Message;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(message) = proto::Filter::decode(data) else { return };
    let Ok(filter) = wire::filter::from_proto(&message) else { return };
    let again = wire::filter::from_proto(&wire::filter::to_proto(&filter))
        .expect("our own encoding must be readable");
    // The probability of a random filter may be NaN, which does not equal itself; its text does.
    assert_eq!(format!("{again:?}"), format!("{filter:?}"));
});
