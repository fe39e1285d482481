//! Index blocks of an HFile: roots, leaves, the index of a Bloom filter, the file info.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hfile::fuzzing::index(data));
