//! A compressed stream. Byte 0: the algorithm (modulo their number), and whether the length is
//! passed (128); bytes 1 and 2: that length.
#![no_main]

use base::compression::Algorithm;

/// Maximum decompressed size in bytes.
const LIMIT: usize = 1 << 18;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&[which, high, low], stream)) = data.split_first_chunk() else { return };
    let algorithm = Algorithm::ALL[usize::from(which & 127) % Algorithm::ALL.len()];
    let expected_len = (which & 128 != 0).then(|| usize::from(high) << 8 | usize::from(low));
    let Ok(plain) = algorithm.decompress(stream, expected_len, LIMIT) else { return };
    assert!(
        plain.len() <= LIMIT && expected_len.is_none_or(|len| len == plain.len()),
        "the output must respect the limits"
    );
    let again = algorithm.compress(&plain);
    assert_eq!(
        algorithm.decompress(&again, Some(plain.len()), LIMIT).expect("our own output must be readable"),
        plain
    );
});
