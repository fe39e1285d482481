//! A filter as clients send it: refused, or data that is sent and read again as the same.
#![no_main]

use prost::Message;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(message) = proto::Filter::decode(data) else { return };
    let Ok(filter) = wire::filter::from_proto(&message) else { return };
    let again = wire::filter::from_proto(&wire::filter::to_proto(&filter)).expect("what we write is read");
    // A chance that is no number is not even equal to itself; its text is.
    assert_eq!(format!("{again:?}"), format!("{filter:?}"));
});
