//! Patterns of SQL's LIKE, over bytes that are UTF-8 mostly.

/// A pattern, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    /// One character.
    One,
    /// Any bytes.
    Any,
}

impl Pattern {
    /// Takes a pattern apart: `%` for any bytes, `_` for one character, what follows `escape` for itself.
    pub fn new(pattern: &[u8], escape: Option<u8>) -> Pattern {
        let mut parts: Vec<Part> = Vec::new();
        let mut bytes = pattern.iter();
        while let Some(byte) = bytes.next() {
            let literal = match byte {
                byte if Some(*byte) == escape => *bytes.next().unwrap_or(byte),
                b'%' => {
                    // Several are as one, and cost no more.
                    if parts.last() != Some(&Part::Any) {
                        parts.push(Part::Any);
                    }
                    continue;
                }
                b'_' => {
                    parts.push(Part::One);
                    continue;
                }
                byte => *byte,
            };
            match parts.last_mut() {
                Some(Part::Literal(part)) => part.push(literal),
                _ => parts.push(Part::Literal(vec![literal])),
            }
        }
        Pattern { parts }
    }

    /// What stands before a byte that means itself in [`to_bytes`](Pattern::to_bytes).
    pub const ESCAPE: u8 = b'\\';

    /// The pattern as it is written.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in &self.parts {
            match part {
                Part::Any => bytes.push(b'%'),
                Part::One => bytes.push(b'_'),
                Part::Literal(literal) => {
                    literal.iter().for_each(|byte| bytes.extend_from_slice(&[Pattern::ESCAPE, *byte]));
                }
            }
        }
        bytes
    }

    /// Whether all of `text` is like it. Takes no more than the product of both lengths.
    pub fn matches(&self, text: &[u8]) -> bool {
        // Where to go on after the last `%`, which takes one byte more each time.
        let mut again: Option<(usize, usize)> = None;
        let (mut part, mut at) = (0, 0);
        loop {
            let step = match self.parts.get(part) {
                None if at == text.len() => return true,
                None => None,
                Some(Part::Any) => {
                    if part + 1 == self.parts.len() {
                        return true;
                    }
                    again = Some((part + 1, at));
                    part += 1;
                    continue;
                }
                Some(Part::Literal(literal)) => text[at..].starts_with(literal).then_some(literal.len()),
                Some(Part::One) => character_len(&text[at..]),
            };
            match (step, &mut again) {
                (Some(len), _) => {
                    part += 1;
                    at += len;
                }
                (None, Some((from, start))) if *start < text.len() => {
                    *start += 1;
                    (part, at) = (*from, *start);
                }
                (None, _) => return false,
            }
        }
    }
}

/// Bytes of the first character; of what is no UTF-8, one.
fn character_len(text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let len = match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let is_whole = text.get(1..len).is_some_and(|rest| rest.iter().all(|byte| byte & 0xc0 == 0x80));
    Some(if is_whole { len } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern.as_bytes(), Some(b'\\')).matches(text.as_bytes())
    }

    #[test]
    fn patterns() {
        for (pattern, text, is_like) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("%%", "abc", true),
            ("a%c", "abc", true),
            ("a%c", "ac", true),
            ("a%c", "abcd", false),
            ("%bc%", "abcd", true),
            ("_b_", "abc", true),
            ("_b_", "ab", false),
            ("_", "ü", true),
            ("%ab%ab", "abab", true),
            ("%aab", "aaaab", true),
            (r"10\%", "10%", true),
            (r"10\%", "100", false),
            ("a%_", "a", false),
            ("a%_", "ab", true),
        ] {
            assert_eq!(like(pattern, text), is_like, "{pattern} {text}");
        }
    }

    #[test]
    fn long_texts_take_bounded_time() {
        let text = "a".repeat(20_000);
        assert!(!like(&"%a".repeat(50).add_b(), &text));
    }

    trait AddB {
        fn add_b(self) -> String;
    }

    impl AddB for String {
        fn add_b(mut self) -> String {
            self.push('b');
            self
        }
    }
}
