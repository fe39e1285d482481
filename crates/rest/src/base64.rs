//! Base64: the standard alphabet of bodies, and the URL-safe alphabet of paths.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The alphabet of encoded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// `+` and `/`.
    Standard,
    /// `-` and `_`.
    Url,
}

/// Appends `data` in the standard alphabet, with padding.
pub(crate) fn encode_to(out: &mut Vec<u8>, data: &[u8]) {
    out.reserve(data.len().div_ceil(3) * 4);
    for group in data.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        let digit = |at: usize| STANDARD[(bits >> (18 - 6 * at) & 63) as usize];
        for at in 0..4 {
            out.push(if at <= group.len() { digit(at) } else { b'=' });
        }
    }
}

/// `data` in the standard alphabet, with padding.
pub(crate) fn encode(data: &[u8]) -> String {
    let mut out = Vec::new();
    encode_to(&mut out, data);
    String::from_utf8(out).expect("base64 is ASCII")
}

/// Decodes text; padding may be missing. `None` if it contains anything else.
pub(crate) fn decode(text: &[u8], alphabet: Alphabet) -> Option<Vec<u8>> {
    let text = match text {
        [rest @ .., b'=', b'='] | [rest @ .., b'='] => rest,
        whole => whole,
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        if group.len() == 1 {
            return None;
        }
        let mut bits = 0_u32;
        for byte in group {
            bits = bits << 6 | digit_of(*byte, alphabet)?;
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

/// Decodes text in the standard alphabet and skips all other characters, as JAXB does for XML.
pub(crate) fn decode_loosely(text: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> =
        text.iter().copied().filter(|byte| digit_of(*byte, Alphabet::Standard).is_some()).collect();
    // A single digit at the end has too few bits for a byte.
    let whole = digits.len() - usize::from(digits.len() % 4 == 1);
    decode(&digits[..whole], Alphabet::Standard).unwrap_or_default()
}

fn digit_of(byte: u8, alphabet: Alphabet) -> Option<u32> {
    let digit = match (byte, alphabet) {
        (b'A'..=b'Z', _) => byte - b'A',
        (b'a'..=b'z', _) => byte - b'a' + 26,
        (b'0'..=b'9', _) => byte - b'0' + 52,
        (b'+', Alphabet::Standard) | (b'-', Alphabet::Url) => 62,
        (b'/', Alphabet::Standard) | (b'_', Alphabet::Url) => 63,
        _ => return None,
    };
    Some(u32::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_are_encoded_and_decoded() {
        for (data, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(encode(data.as_bytes()), text);
            assert_eq!(decode(text.as_bytes(), Alphabet::Standard).unwrap(), data.as_bytes());
            assert_eq!(decode_loosely(format!("\n {text}\n").as_bytes()), data.as_bytes());
        }
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
        assert_eq!(decode(b"-_8", Alphabet::Url).unwrap(), [0xfb, 0xff]);
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["!", "a", "ab=c", "-_8", "abcde"] {
            assert_eq!(decode(text.as_bytes(), Alphabet::Standard), None, "{text}");
        }
    }
}
