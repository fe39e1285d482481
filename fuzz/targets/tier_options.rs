//! The options `grampus.tier.classes` (before the first line break) and `grampus.tiers`, with their
//! words such as `model=`, `bus=` and `fill.max=`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| tiers::fuzzing::options(text));
