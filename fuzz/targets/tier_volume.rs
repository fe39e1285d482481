//! The small files of the storage tiers: `grampus.volumes` in the root directory, `grampus.volume`
//! on each disk, and the text of a link.
#![no_main]

use futures_util::FutureExt;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    tiers::fuzzing::known_volumes(data).now_or_never().expect("in-memory files never wait");
    tiers::fuzzing::volume_identity(data).now_or_never().expect("in-memory files never wait");
    if let Ok(text) = std::str::from_utf8(data) {
        tiers::fuzzing::link_target(text);
    }
});
