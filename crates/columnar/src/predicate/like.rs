//! Patterns of SQL's LIKE, over bytes that are usually UTF-8.

/// A pattern, split at `%`. The first segment matches at the start of the text, the last one at its
/// end, and the others in sequence between them. A single segment matches the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Segment {
    parts: Vec<Part>,
    // For a segment that is one literal: for each prefix, the length of its longest proper border.
    borders: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    /// One character.
    One,
}

/// Maximum number of bytes of a character.
const CHARACTER_BYTES_MAX: usize = 4;

impl Pattern {
    /// Parses a pattern: `%` matches any bytes, `_` one character, and a byte after `escape`
    /// itself.
    pub fn new(pattern: &[u8], escape: Option<u8>) -> Pattern {
        let mut segments = vec![Segment::default()];
        let mut bytes = pattern.iter();
        while let Some(byte) = bytes.next() {
            let is_first = segments.len() == 1;
            let parts = &mut segments.last_mut().expect("there is at least one segment").parts;
            match byte {
                byte if Some(*byte) == escape => push(parts, *bytes.next().unwrap_or(byte)),
                // Consecutive `%` are equivalent to one.
                b'%' if parts.is_empty() && !is_first => {}
                b'%' => segments.push(Segment::default()),
                b'_' => parts.push(Part::One),
                byte => push(parts, *byte),
            }
        }
        segments.iter_mut().for_each(Segment::find_borders);
        Pattern { segments }
    }

    /// Escape byte in the result of [`to_bytes`](Pattern::to_bytes).
    pub const ESCAPE: u8 = b'\\';

    /// The pattern in text form, with every literal byte escaped.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            if at > 0 {
                bytes.push(b'%');
            }
            for part in &segment.parts {
                match part {
                    Part::One => bytes.push(b'_'),
                    Part::Literal(literal) => {
                        literal.iter().for_each(|byte| bytes.extend_from_slice(&[Pattern::ESCAPE, *byte]));
                    }
                }
            }
        }
        bytes
    }

    /// Whether the pattern matches all of `text`. Takes time linear in the length of the text. A
    /// segment with `_` between two `%` takes at most the product of both lengths.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (first, rest) = self.segments.split_first().expect("there is at least one segment");
        let Some(mut at) = first.end_at(text, 0) else { return false };
        let Some((last, between)) = rest.split_last() else { return at == text.len() };
        for segment in between {
            // The leftmost match is sufficient: it leaves the most text for the rest.
            let Some(end) = segment.find(text, at) else { return false };
            at = end;
        }
        last.ends(text, at)
    }
}

fn push(parts: &mut Vec<Part>, byte: u8) {
    match parts.last_mut() {
        Some(Part::Literal(literal)) => literal.push(byte),
        _ => parts.push(Part::Literal(vec![byte])),
    }
}

impl Segment {
    /// Computes the failure function of Knuth, Morris, Pratt, "Fast pattern matching in strings"
    /// (1977).
    fn find_borders(&mut self) {
        let [Part::Literal(literal)] = &self.parts[..] else { return };
        let mut borders = vec![0];
        for at in 1..literal.len() {
            let mut border = borders[at - 1];
            while border > 0 && literal[border] != literal[at] {
                border = borders[border - 1];
            }
            borders.push(border + usize::from(literal[border] == literal[at]));
        }
        self.borders = borders;
    }

    /// End of the segment if it matches at `at`.
    fn end_at(&self, text: &[u8], at: usize) -> Option<usize> {
        self.parts.iter().try_fold(at, |at, part| match part {
            Part::Literal(literal) => text[at..].starts_with(literal).then_some(at + literal.len()),
            Part::One => character_len(&text[at..]).map(|len| at + len),
        })
    }

    /// End of the first match at or after `at`.
    fn find(&self, text: &[u8], at: usize) -> Option<usize> {
        let [Part::Literal(literal)] = &self.parts[..] else {
            return characters(text, at).find_map(|at| self.end_at(text, at));
        };
        let mut alike = 0;
        for (end, byte) in text.iter().enumerate().skip(at) {
            while alike > 0 && literal[alike] != *byte {
                alike = self.borders[alike - 1];
            }
            alike += usize::from(literal[alike] == *byte);
            if alike == literal.len() {
                return Some(end + 1);
            }
        }
        None
    }

    /// Whether the segment matches at the end of the text, starting at or after `at`.
    fn ends(&self, text: &[u8], at: usize) -> bool {
        let lens = self.parts.iter().map(|part| match part {
            Part::Literal(literal) => (literal.len(), literal.len()),
            Part::One => (1, CHARACTER_BYTES_MAX),
        });
        let (least, most) = lens.fold((0, 0), |sum, len| (sum.0 + len.0, sum.1 + len.1));
        let Some(last) = text.len().checked_sub(least) else { return false };
        let first = text.len().saturating_sub(most).max(at);
        if first == last {
            return last >= at && self.end_at(text, last) == Some(text.len());
        }
        let mut starts =
            characters(text, at).skip_while(|start| *start < first).take_while(|start| *start <= last);
        starts.any(|start| self.end_at(text, start) == Some(text.len()))
    }
}

/// Character starts from `at`, and the end of the text.
fn characters(text: &[u8], at: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(at), |at| character_len(&text[*at..]).map(|len| at + len))
}

/// Bytes of the first character; 1 for invalid UTF-8.
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
            ("%_", "ü", true),
            ("%ü_", "aüü", true),
            ("%_ü", "ü", false),
            ("%a_c%", "aabbc abc", true),
            ("%a_c%", "aabbc", false),
            ("%abab%c", "abaababc", true),
            ("ab%ab", "aba", false),
            ("%ab%", "", false),
            // Search must not start within a character.
            ("%__6%", "日6", false),
            ("%__6", "日6", false),
            ("%_6%", "日6", true),
            ("%_6", "日6", true),
            ("日%__", "日本", false),
        ] {
            assert_eq!(like(pattern, text), is_like, "{pattern} {text}");
        }
    }

    #[test]
    fn long_texts_take_bounded_time() {
        let text = "a".repeat(20_000);
        assert!(!like(&"%a".repeat(50).add_b(), &text));
        // Quadratic time would take minutes.
        let text = "a".repeat(16 << 20);
        assert!(!like(&format!("%{}b%", "a".repeat(4000)), &text));
        assert!(like(&format!("%{}%", "a".repeat(4000)), &text));
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
