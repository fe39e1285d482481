//! The trailer of an HFile.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hfile::fuzzing::trailer(data));
