//! A filter as text (`FILTER => "PrefixFilter('a') AND ..."`).
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    if let Ok(filter) = cell::filter::language::parse(text) {
        _ = wire::filter::to_proto(&filter);
    }
});
