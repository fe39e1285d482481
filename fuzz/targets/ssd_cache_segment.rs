//! A segment of the second-level block cache: its chunks, their tables, and the records.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ssdcache::fuzzing::segment(0, data);
    ssdcache::fuzzing::build(data);
});
