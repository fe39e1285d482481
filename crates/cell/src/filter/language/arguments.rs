//! The arguments of one filter: quoted text, and unquoted numbers, operators and booleans.

use bytes::Bytes;

use super::{NotAFilter, refused};
use crate::filter::{Comparator, Compare, CompareOp, Pattern};

/// `java.util.regex.Pattern.DOTALL`. HBase compiles every expression with it.
const DOTALL: i32 = 32;
/// `java.util.regex.Pattern.CASE_INSENSITIVE`.
const CASE_INSENSITIVE: i32 = 2;

/// Arguments as written. The position of an argument determines its type.
pub(super) struct Arguments(Vec<Bytes>);

impl Arguments {
    /// Parses `(a, 'b', ..)`.
    pub(super) fn of(text: &[u8]) -> Result<Arguments, NotAFilter> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let open = text.iter().position(|byte| !blank(byte));
        let inner = open.map(|at| &text[at..]).and_then(|text| text.strip_prefix(b"(")?.strip_suffix(b")"));
        let Some(inner) = inner else { return refused("Incorrect argument list") };
        if inner.iter().all(blank) {
            return Ok(Arguments(Vec::new()));
        }
        let mut arguments = Vec::new();
        let mut in_quotes = false;
        for part in inner.split(|byte| {
            in_quotes ^= *byte == b'\'';
            *byte == b',' && !in_quotes
        }) {
            arguments.push(Bytes::copy_from_slice(part.trim_ascii()));
        }
        Ok(Arguments(arguments))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn none(&self) -> Result<(), NotAFilter> {
        match self.len() {
            0 => Ok(()),
            count => refused(format!("Expected: 0 but got: {count}")),
        }
    }

    /// Requires exactly `count` arguments.
    pub(super) fn exactly(self, count: usize) -> Result<Arguments, NotAFilter> {
        match self.len() == count {
            true => Ok(self),
            false => refused(format!("Expected {count} but got: {}", self.len())),
        }
    }

    /// Text without its quotes.
    pub(super) fn text(&self, at: usize) -> Bytes {
        let written = &self.0[at];
        let Some(inner) = written.strip_prefix(b"'").and_then(|rest| rest.strip_suffix(b"'")) else {
            return written.clone();
        };
        let mut text = Vec::with_capacity(inner.len());
        let mut bytes = inner.iter();
        while let Some(byte) = bytes.next() {
            text.push(*byte);
            if *byte == b'\'' {
                // Skip the second quote of a pair.
                bytes.next();
            }
        }
        text.into()
    }

    pub(super) fn texts(&self) -> Vec<Bytes> {
        (0..self.len()).map(|at| self.text(at)).collect()
    }

    pub(super) fn long(&self, at: usize) -> Result<i64, NotAFilter> {
        self.number(at)
    }

    pub(super) fn int(&self, at: usize) -> Result<i32, NotAFilter> {
        self.number(at)
    }

    fn number<T: std::str::FromStr>(&self, at: usize) -> Result<T, NotAFilter> {
        let text = std::str::from_utf8(&self.0[at]).ok().and_then(|text| text.parse().ok());
        text.ok_or_else(|| NotAFilter("Byte Array should contain only digits".into()))
    }

    pub(super) fn boolean(&self, at: usize) -> Result<bool, NotAFilter> {
        match &self.0[at][..] {
            word if word.eq_ignore_ascii_case(b"true") => Ok(true),
            word if word.eq_ignore_ascii_case(b"false") => Ok(false),
            _ => refused("Incorrect Boolean Expression"),
        }
    }

    /// An operator and the comparator that follows it.
    pub(super) fn compare(&self, at: usize) -> Result<Compare, NotAFilter> {
        let op = match &self.0[at][..] {
            b"<" => CompareOp::Less,
            b"<=" => CompareOp::LessOrEqual,
            b"=" => CompareOp::Equal,
            b"!=" => CompareOp::NotEqual,
            b">" => CompareOp::Greater,
            b">=" => CompareOp::GreaterOrEqual,
            _ => return refused("Invalid compare operator"),
        };
        let comparator = comparator(&self.text(at + 1))?;
        let finds = matches!(comparator, Comparator::Regex(_) | Comparator::Substring(_));
        if finds && !matches!(op, CompareOp::Equal | CompareOp::NotEqual) {
            return refused(
                "A regexstring comparator and substring comparator can only be used with EQUAL and NOT_EQUAL",
            );
        }
        Ok(Compare { op, comparator })
    }
}

/// Parses a comparator `kind:value`.
fn comparator(text: &Bytes) -> Result<Comparator, NotAFilter> {
    let Some(colon) = text.iter().position(|byte| *byte == b':') else {
        return refused("Incorrect comparator");
    };
    let value = text.slice(colon + 1..);
    let string = || String::from_utf8_lossy(&value).into_owned();
    let regex = |flags| {
        Comparator::Regex(Pattern { source: string(), flags, charset: "UTF-8".into(), engine: "JAVA".into() })
    };
    match &text[..colon] {
        b"binary" => Ok(Comparator::Binary(value)),
        b"binaryprefix" => Ok(Comparator::BinaryPrefix(value)),
        b"substring" => Ok(Comparator::Substring(string().to_lowercase())),
        b"regexstring" => Ok(regex(DOTALL)),
        b"regexstringnocase" => Ok(regex(CASE_INSENSITIVE | DOTALL)),
        _ => refused("Incorrect comparator"),
    }
}
