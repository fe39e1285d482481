//! A block of an HFile, in every encoding; byte 0 sets the properties of the file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hfile::fuzzing::block(data));
