//! The column sidecar of an HFile: catalog, directories, strips.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hfile::fuzzing::sidecar(data));
