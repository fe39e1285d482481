//! Java regular expressions: two bytes of flags, the expression, a zero byte, the text to search.
#![no_main]

use javaregex::{Charset, Regex};

/// Maximum number of steps of a search: few, so that the fuzzer runs many inputs.
const STEPS_MAX: u64 = 20_000;
/// The flags of `java.util.regex.Pattern`.
const FLAGS: i32 = 0x1ff;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((flags, rest)) = input.split_first_chunk::<2>() else { return };
    let (source, text) = match rest.iter().position(|byte| *byte == 0) {
        Some(end) => (&rest[..end], &rest[end + 1..]),
        None => (rest, &[][..]),
    };
    let flags = i32::from(u16::from_be_bytes(*flags)) & FLAGS;
    let Ok(regex) = Regex::new(&String::from_utf8_lossy(source), flags) else { return };
    let either = regex.find(text, Charset::Utf8, STEPS_MAX);
    let backtracking = regex.find_backtracking(text, Charset::Utf8, STEPS_MAX);
    assert!(backtracking.steps <= STEPS_MAX + 2 * text.len() as u64 + 1);
    if let (Ok(either), Ok(backtracking)) = (either.found, backtracking.found) {
        assert_eq!(either, backtracking, "both engines must find the same match");
    }
});
