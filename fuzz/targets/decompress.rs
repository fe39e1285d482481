//! A compressed stream. Byte 0: which algorithm (modulo their number), and whether its length is told (128); bytes 1 and 2:
//! that length.
#![no_main]

use base::compression::Algorithm;

/// What a stream may hold here.
const LIMIT: usize = 1 << 18;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&[which, high, low], stream)) = data.split_first_chunk() else { return };
    let algorithm = Algorithm::ALL[usize::from(which & 127) % Algorithm::ALL.len()];
    let told = (which & 128 != 0).then(|| usize::from(high) << 8 | usize::from(low));
    let Ok(plain) = algorithm.decompress(stream, told, LIMIT) else { return };
    assert!(plain.len() <= LIMIT && told.is_none_or(|len| len == plain.len()), "within its bounds");
    let again = algorithm.compress(&plain);
    assert_eq!(algorithm.decompress(&again, Some(plain.len()), LIMIT).expect("what we write is read"), plain);
});
