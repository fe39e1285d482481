//! Percent-encoding of paths and query strings.

use std::borrow::Cow;

/// Decodes a part of a path or query as a form: `+` is a space, and `%XX` is a byte of UTF-8.
/// Bytes that are not UTF-8 become U+FFFD. `None` if an escape is not valid.
pub(crate) fn decode(text: &str) -> Option<String> {
    let bytes = decode_bytes(text)?;
    Some(match String::from_utf8_lossy(&bytes) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    })
}

fn decode_bytes(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            other => other,
        });
    }
    Some(decoded)
}

/// Whether a server may accept the path: all escapes are valid, and no byte is zero.
pub(crate) fn is_valid_path(path: &str) -> bool {
    decode_bytes(path).is_some_and(|bytes| !bytes.contains(&0))
}

/// Names and values of a query string, in order.
pub(crate) fn query(text: &str) -> Option<Vec<(String, String)>> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_decoded() {
        assert_eq!(decode("a+b%2Fc%C3%A4%FF").unwrap(), "a b/cä\u{fffd}");
        assert_eq!((decode("%"), decode("%4"), decode("%zz")), (None, None, None));
        let pairs = query("row=a%26b&&v=2&flag").unwrap();
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("row", "a&b"), ("v", "2"), ("flag", "")]);
        assert!(is_valid_path("/t/%FF") && !is_valid_path("/t/%00") && !is_valid_path("/t/%2"));
    }
}
