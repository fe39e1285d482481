//! Bytes as printable text.

use std::fmt::Write;

/// Formats bytes like HBase's `Bytes.toStringBinary`: printable ASCII except the backslash as is,
/// other bytes as `\xHH`.
pub fn to_string_binary(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'~' if *byte != b'\\' => text.push(char::from(*byte)),
            _ => write!(text, "\\x{byte:02X}").expect("writing to a String cannot fail"),
        }
    }
    text
}

/// Parses the format of [`to_string_binary`]: `\xHH` is a byte, as in HBase's
/// `Bytes.toBytesBinary`. Anything else stands for itself.
pub fn from_string_binary(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        rest = match tail {
            [b'x', high, low, tail @ ..] if *first == b'\\' => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = tail;
                    continue;
                }
                _ => &rest[1..],
            },
            _ => tail,
        };
        bytes.push(*first);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{from_string_binary, to_string_binary};

    #[test]
    fn bytes_are_shown_as_hbase_shows_them() {
        assert_eq!(to_string_binary(b"row 1~"), "row 1~");
        assert_eq!(to_string_binary(b"a\\b\x00\x7f\xff\n"), r"a\x5Cb\x00\x7F\xFF\x0A");
        assert_eq!(to_string_binary("\u{e9}".as_bytes()), r"\xC3\xA9");
    }

    #[test]
    fn shown_bytes_can_be_parsed() {
        assert_eq!(from_string_binary(br"a\x00\xfF\xg0\x0"), b"a\x00\xff\\xg0\\x0");
    }
}
