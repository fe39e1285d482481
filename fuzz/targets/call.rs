//! Hand-written parsing of calls, compared with prost. Byte 0 selects the message; the rest is the
//! message.
#![no_main]

use regionserver::client::fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&selector, message)) = data.split_first() else { return };
    match selector % 2 {
        0 => fuzzing::get(message),
        _ => fuzzing::multi(message),
    }
});
