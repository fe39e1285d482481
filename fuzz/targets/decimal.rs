//! Two decimal numbers of cells, as AggregateService computes with them. Byte 0 is the first one's length.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [left_len, rest @ ..] = data else { return };
    let (left, right) = rest.split_at(rest.len().min(usize::from(*left_len)));
    coprocessor::fuzzing::decimals(left, right);
});
