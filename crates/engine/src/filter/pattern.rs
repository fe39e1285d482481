//! Regular expressions of Java, found in the bytes of cells in time linear to their length.
//!
//! The expression is [translated](translate) to the syntax of the `regex` crate. What that crate has not (look-around, back
//! references, possessive quantifiers) or means differently is refused when the scan opens: never answered wrongly.

mod class;
mod translate;

use std::borrow::Cow;

use cell::filter::Pattern;
use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};
use translate::Flags;

/// Bytes of a compiled expression: bounds what repetitions of repetitions cost.
const SIZE_MAX: usize = 1 << 20;
/// Groups within groups.
const NEST_MAX: u32 = 50;

/// A compiled expression.
pub(super) struct JavaPattern {
    regex: Regex,
    charset: Charset,
}

#[derive(Clone, Copy)]
enum Charset {
    Utf8,
    Latin1,
    Ascii,
}

impl JavaPattern {
    /// # Errors
    /// [`Error::BadRequest`] naming what cannot be answered as Java does.
    pub(super) fn new(pattern: &Pattern) -> Result<JavaPattern> {
        let refused = |what: String| {
            let source = &pattern.source;
            Error::bad_request(format!("regular expression '{source}': {what} not supported by this server"))
        };
        if !matches!(&pattern.engine[..], "" | "JAVA") {
            return Err(refused(format!("the engine {} is", pattern.engine)));
        }
        let charset = Charset::named(&pattern.charset)
            .ok_or_else(|| refused(format!("the charset {} is", pattern.charset)))?;
        let flags = Flags::from_java(pattern.flags).map_err(|what| refused(what.to_string()))?;
        let translated =
            translate::translate(&pattern.source, flags).map_err(|what| refused(what.to_string()))?;
        let regex = RegexBuilder::new(&translated)
            .size_limit(SIZE_MAX)
            .nest_limit(NEST_MAX)
            .build()
            .map_err(|_| refused("its size or structure is".into()))?;
        Ok(JavaPattern { regex, charset })
    }

    /// Whether the expression is found anywhere in the bytes, decoded.
    pub(super) fn is_found(&self, bytes: &[u8]) -> bool {
        let text = match self.charset {
            _ if bytes.is_ascii() => String::from_utf8_lossy(bytes),
            Charset::Utf8 => String::from_utf8_lossy(bytes),
            Charset::Latin1 => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
            Charset::Ascii => Cow::Owned(bytes.iter().map(|byte| ascii(*byte)).collect()),
        };
        self.regex.is_match(&text)
    }
}

fn ascii(byte: u8) -> char {
    if byte.is_ascii() { char::from(byte) } else { char::REPLACEMENT_CHARACTER }
}

impl Charset {
    fn named(name: &str) -> Option<Charset> {
        match name.to_ascii_uppercase().as_str() {
            "UTF-8" | "UTF8" => Some(Charset::Utf8),
            "ISO-8859-1" | "ISO8859-1" | "ISO8859_1" | "LATIN1" => Some(Charset::Latin1),
            "US-ASCII" | "ASCII" => Some(Charset::Ascii),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOTALL: i32 = 0x20;

    fn compiled(source: &str, flags: i32) -> Result<JavaPattern> {
        JavaPattern::new(&Pattern {
            source: source.into(),
            flags,
            charset: "UTF-8".into(),
            engine: String::new(),
        })
    }

    fn found(source: &str, flags: i32, text: &str) -> bool {
        compiled(source, flags).unwrap().is_found(text.as_bytes())
    }

    /// Each line was asked of `java.util.regex` 17 too.
    #[test]
    fn expressions_mean_what_they_mean_in_java() {
        for (source, flags, text, expected) in [
            ("r[13]$", DOTALL, "r1", true),
            ("r[13]$", DOTALL, "r1\n", true),
            ("r[13]$", DOTALL, "r1\n\n", false),
            ("r[13]\\z", DOTALL, "r1\n", false),
            ("^v[02]$", DOTALL, "v2", true),
            ("^v[02]$", DOTALL, "xv2", false),
            ("a.c", 0, "a\nc", false),
            ("a.c", 0, "a\u{85}c", false),
            ("a.c", DOTALL, "a\nc", true),
            ("\\d+", DOTALL, "\u{663}", false),
            ("\\w", DOTALL, "é", false),
            ("[\\W]", DOTALL, "é", true),
            ("K", 0x02, "k", true),
            ("k", 0x02, "\u{212a}", false),
            ("k", 0x42, "\u{212a}", true),
            ("[a-c]", 0x02, "B", true),
            ("[^a-c]", 0x02, "B", false),
            ("\\Qa.b\\E.", DOTALL, "a.bc", true),
            ("\\Qa.b\\E.", DOTALL, "axbc", false),
            ("a.b", 0x10, "a.b", true),
            ("a.b", 0x10, "axb", false),
            ("a b # two", 0x04, "ab", true),
            ("(?i)ab(?-i)c", DOTALL, "ABc", true),
            ("(?i:ab)c", DOTALL, "ABC", false),
            ("(?<name>x)y", DOTALL, "xy", true),
            ("x{2,3}y", DOTALL, "xxy", true),
            ("[]a]", DOTALL, "]", true),
            ("[a\\]-]", DOTALL, "-", true),
            ("\\x41\\u0042\\t", DOTALL, "AB\t", true),
            ("\\p{Lu}", DOTALL, "É", true),
            ("\\p{Upper}", DOTALL, "É", false),
            ("}", DOTALL, "}", true),
            ("a|b", DOTALL, "xb", true),
            ("[0-9&]", DOTALL, "&", true),
            ("~[--~]", DOTALL, "~~", true),
        ] {
            assert_eq!(found(source, flags, text), expected, "{source} {flags} {text:?}");
        }
    }

    #[test]
    fn what_would_be_answered_wrongly_is_refused() {
        for source in [
            "a(?=b)",
            "a(?!b)",
            "(?<=a)b",
            "(?<!a)b",
            "(?>a)",
            "(a)\\1",
            "\\k<a>",
            "a*+",
            "a++",
            "a?+",
            "\\G",
            "\\X",
            "\\R",
            "[a&&b]",
            "[a[b]]",
            "(?m)^a",
            "(?m)a$",
            "a$b",
            "(a$)b",
            "\\y",
            "*a",
            "a**",
            "a{,3}",
            "(",
            ")",
            "[a",
            "\\",
            "(?U)a",
            "\\p{IsLatin}",
            "((((a{100}){100}){100}){100})",
        ] {
            assert!(compiled(source, DOTALL).is_err(), "{source}");
        }
        assert!(compiled("a", 0x80).is_err() && compiled("a", 0x100).is_err());
        let with = |charset: &str, engine: &str| {
            JavaPattern::new(&Pattern {
                source: "a".into(),
                flags: 0,
                charset: charset.into(),
                engine: engine.into(),
            })
        };
        assert!(with("UTF-16", "").is_err() && with("UTF-8", "JONI").is_err());
        assert!(with("latin1", "JAVA").is_ok_and(|pattern| pattern.is_found(b"\xe9a")));
    }

    #[test]
    fn bytes_that_are_no_text_can_be_searched() {
        assert!(compiled("a.b", DOTALL).unwrap().is_found(b"a\xffb"));
        assert!(compiled("^.$", DOTALL).unwrap().is_found(b"\xff"));
    }
}
