//! The searched text: Java strings, and decoding bytes to them.

/// Replacement for malformed bytes.
const REPLACEMENT: u16 = 0xfffd;

/// UTF-16 code units with random access.
pub(crate) trait Text: Copy {
    /// Number of code units.
    fn len(self) -> usize;
    /// The code unit at `at`, which is before the end.
    fn unit(self, at: usize) -> u32;

    /// The code point at `at`, which is before the end, and its number of code units.
    fn point(self, at: usize) -> (u32, usize) {
        let high = self.unit(at);
        if is_high(high) && at + 1 < self.len() {
            let low = self.unit(at + 1);
            if is_low(low) {
                return (combined(high, low), 2);
            }
        }
        (high, 1)
    }

    /// The code point that ends at `at`, which is after the start, and its number of code units.
    fn point_before(self, at: usize) -> (u32, usize) {
        let low = self.unit(at - 1);
        if is_low(low) && at >= 2 {
            let high = self.unit(at - 2);
            if is_high(high) {
                return (combined(high, low), 2);
            }
        }
        (low, 1)
    }
}

pub(crate) fn is_high(unit: u32) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

pub(crate) fn is_low(unit: u32) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

fn combined(high: u32, low: u32) -> u32 {
    0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
}

/// ASCII or ISO 8859-1 bytes, each of which is a code unit.
#[derive(Clone, Copy)]
pub(crate) struct Latin<'a>(pub(crate) &'a [u8]);

impl Text for Latin<'_> {
    #[inline]
    fn len(self) -> usize {
        self.0.len()
    }
    #[inline]
    fn unit(self, at: usize) -> u32 {
        u32::from(self.0[at])
    }
    #[inline]
    fn point(self, at: usize) -> (u32, usize) {
        (self.unit(at), 1)
    }
    #[inline]
    fn point_before(self, at: usize) -> (u32, usize) {
        (self.unit(at - 1), 1)
    }
}

/// Decoded code units of any string.
#[derive(Clone, Copy)]
pub(crate) struct Wide<'a>(pub(crate) &'a [u16]);

impl Text for Wide<'_> {
    #[inline]
    fn len(self) -> usize {
        self.0.len()
    }
    #[inline]
    fn unit(self, at: usize) -> u32 {
        u32::from(self.0[at])
    }
}

/// Character encoding of searched bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8.
    Utf8,
    /// ISO 8859-1.
    Latin1,
    /// ASCII.
    Ascii,
}

impl Charset {
    /// The charset with a name that `Charset.forName` accepts; `None` if it is not one of these.
    pub fn named(name: &str) -> Option<Charset> {
        match name.to_ascii_uppercase().as_str() {
            "UTF-8" | "UTF8" | "UNICODE-1-1-UTF-8" => Some(Charset::Utf8),
            "ISO-8859-1" | "ISO8859-1" | "ISO8859_1" | "ISO_8859_1" | "ISO_8859-1" | "ISO_8859-1:1987"
            | "LATIN1" | "L1" | "IBM819" | "IBM-819" | "CP819" | "819" | "8859_1" | "ISO-IR-100"
            | "CSISOLATIN1" => Some(Charset::Latin1),
            "US-ASCII" | "ASCII" | "ASCII7" | "ISO646-US" | "ISO-IR-6" | "ANSI_X3.4-1968"
            | "ANSI_X3.4-1986" | "ISO_646.IRV:1991" | "ISO_646.IRV:1983" | "US" | "IBM367" | "CP367"
            | "CSASCII" | "646" | "DEFAULT" => Some(Charset::Ascii),
            _ => None,
        }
    }

    /// Replaces `units` by the result of Java's `new String(bytes, charset)`. ASCII-only bytes need
    /// no decoding.
    pub(crate) fn decode(self, bytes: &[u8], units: &mut Vec<u16>) {
        units.clear();
        match self {
            Charset::Utf8 => decode_utf8(bytes, units),
            Charset::Latin1 => units.extend(bytes.iter().map(|byte| u16::from(*byte))),
            Charset::Ascii => units.extend(bytes.iter().map(|byte| match byte {
                0..0x80 => u16::from(*byte),
                _ => REPLACEMENT,
            })),
        }
    }
}

/// Replaces each malformed sequence by one replacement character. As in Java, a 3-byte surrogate is
/// one sequence.
fn decode_utf8(bytes: &[u8], units: &mut Vec<u16>) {
    let mut rest = bytes;
    while let [first, ..] = rest {
        let (code, len) = match first {
            0..0x80 => (Some(u32::from(*first)), 1),
            0xc2..0xe0 => two_bytes(rest),
            0xe0..0xf0 => three_bytes(rest),
            0xf0..0xf8 => four_bytes(rest),
            _ => (None, 1),
        };
        match code.and_then(char::from_u32) {
            Some(code) => units.extend_from_slice(code.encode_utf16(&mut [0; 2])),
            None => units.push(REPLACEMENT),
        }
        rest = &rest[len..];
    }
}

fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn bits(byte: u8) -> u32 {
    u32::from(byte & 0x3f)
}

fn two_bytes(bytes: &[u8]) -> (Option<u32>, usize) {
    match bytes {
        [first, second, ..] if continues(*second) => (Some(u32::from(first & 0x1f) << 6 | bits(*second)), 2),
        _ => (None, 1),
    }
}

fn three_bytes(bytes: &[u8]) -> (Option<u32>, usize) {
    let is_second_valid = |first: u8, second: u8| continues(second) && !(first == 0xe0 && second < 0xa0);
    match bytes {
        [first, second, ..] if !is_second_valid(*first, *second) => (None, 1),
        [first, second, third, ..] if continues(*third) => {
            (Some(u32::from(first & 0xf) << 12 | bits(*second) << 6 | bits(*third)), 3)
        }
        [_, _, ..] => (None, 2),
        _ => (None, 1),
    }
}

fn four_bytes(bytes: &[u8]) -> (Option<u32>, usize) {
    let is_second_valid = |first: u8, second: u8| {
        continues(second) && !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second >= 0x90)
    };
    match bytes {
        [first, ..] if *first >= 0xf5 => (None, 1),
        [first, second, ..] if !is_second_valid(*first, *second) => (None, 1),
        [_, _, third, ..] if !continues(*third) => (None, 2),
        [first, second, third, fourth, ..] if continues(*fourth) => {
            let high = u32::from(first & 7) << 18 | bits(*second) << 12;
            (Some(high | bits(*third) << 6 | bits(*fourth)), 4)
        }
        // Truncated: the remaining bytes are one sequence.
        _ => (None, bytes.len().min(3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> String {
        let mut units = Vec::new();
        Charset::Utf8.decode(bytes, &mut units);
        String::from_utf16(&units).unwrap()
    }

    /// The expected texts are those of `new String(bytes, UTF_8)` in Java 17.
    #[test]
    fn malformed_bytes_are_replaced_as_in_java() {
        for (bytes, text) in [
            (&b"a\xffb"[..], "a\u{fffd}b"),
            (b"\xed\xa0\x80x", "\u{fffd}x"),
            (b"\xe0\x80\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xe2\x82x", "\u{fffd}x"),
            (b"\xf0\x9f\x98", "\u{fffd}"),
            (b"\xf0\x9f\x98x", "\u{fffd}x"),
            (b"\xf0\x9fx", "\u{fffd}x"),
            (b"\xf0\x80\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xf4\x90\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xf5\x80", "\u{fffd}\u{fffd}"),
            (b"\xc0\xaf", "\u{fffd}\u{fffd}"),
            (b"\xc3", "\u{fffd}"),
            ("é€😀".as_bytes(), "é€😀"),
        ] {
            assert_eq!(decoded(bytes), text, "{bytes:x?}");
        }
    }

    #[test]
    fn code_points_are_read_forward_and_backward() {
        let units: Vec<u16> = "a😀".encode_utf16().collect();
        let text = Wide(&units);
        assert_eq!(text.point(1), (0x1f600, 2));
        assert_eq!(text.point(2), (0xde00, 1));
        assert_eq!(text.point_before(3), (0x1f600, 2));
        assert_eq!(text.point_before(2), (0xd83d, 1));
    }
}
