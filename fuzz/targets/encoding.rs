//! Values of typed columns. Byte 0: the encoding; byte 1: the scale; the rest: the value of a cell.
#![no_main]

use columnar::{Encoding, Value};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [encoding, scale, bytes @ ..] = data else { return };
    let encoding = Encoding::ALL[usize::from(*encoding) % Encoding::ALL.len()];
    let scale = scale % 39;
    let value = match encoding.read(bytes, scale) {
        Ok(value) => value,
        Err(error) => return assert!(error.to_string().len() < 300),
    };
    match encoding.write(&value, scale) {
        Some(written) => {
            let again = encoding.read(&written, scale);
            assert!(again.as_ref() == Ok(&value) || is_nan(&value), "{encoding:?} {value:?} {again:?}");
            assert!(written == bytes || !encoding.keeps_order(), "{encoding:?} {value:?}");
        }
        None => assert!(!encoding.keeps_order(), "{encoding:?} {value:?}"),
    }
});

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Real(real) if real.is_nan())
}
