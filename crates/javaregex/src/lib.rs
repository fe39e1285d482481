//! Regular expressions that match like `java.util.regex` of Java 17, in bounded time.
//!
//! HBase's clients send expressions in Java's grammar, so they must match what Java matches,
//! including Java's quirks. `parse` parses an expression as Java does. One of two engines then
//! searches for it:
//!
//! * `linear`: the `regex` crate, for expressions without look-around, back references and similar
//!   constructs;
//! * `matcher`: a backtracking matcher that follows Java's and limits the number of steps.
//!
//! Canonical equivalence (`CANON_EQ`) is not supported.

mod error;
mod extent;
mod flags;
mod linear;
mod matcher;
mod node;
mod parse;
mod program;
mod set;
mod text;
mod unicode;

use std::cell::RefCell;

pub use error::{Error, TooManySteps};
use flags::Flags;
use linear::Linear;
use matcher::Mode;
use program::Program;
pub use text::Charset;
use text::{Latin, Wide, is_high, is_low};

/// Step limit of one search, in addition to one step per byte: about 10 ms.
pub const STEPS_MAX: u64 = 1_000_000;
/// Maximum length in bytes of a text for the backtracking matcher.
const TEXT_MAX: usize = i32::MAX as usize / 2;

/// A compiled expression.
#[derive(Debug)]
pub struct Regex {
    program: Program,
    linear: Option<Linear>,
}

/// Result and cost of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Whether the expression matches, or an error if the search was aborted.
    pub found: Result<bool, TooManySteps>,
    /// Backtracking steps; 0 if the linear engine ran.
    pub steps: u64,
}

impl Search {
    fn linear(found: bool) -> Search {
        Search { found: Ok(found), steps: 0 }
    }
}

thread_local! {
    static UNITS: RefCell<Vec<u16>> = const { RefCell::new(Vec::new()) };
}
/// Code units of the decoding buffer that are retained between searches.
const UNITS_RETAINED: usize = 32 * 1024;

impl Regex {
    /// Compiles an expression with flags of `java.util.regex.Pattern`.
    ///
    /// # Errors
    /// [`Error`] if the expression or the flags are invalid or unsupported.
    pub fn new(source: &str, flags: i32) -> Result<Regex, Error> {
        let flags = Flags::from_java(flags).ok_or(Error::Unsupported("one of the flags"))?;
        if flags.has(Flags::CANON_EQ) && !flags.has(Flags::LITERAL) {
            return Err(Error::Unsupported("canonical equivalence"));
        }
        let parse = parse::parse(source, flags)?;
        Ok(Regex { program: program::compile(&parse), linear: Linear::new(&parse) })
    }

    /// Whether searches use the backtracking matcher, so that they may take up to the step limit.
    pub fn backtracks(&self) -> bool {
        self.linear.is_none()
    }

    /// Searches for the expression in `bytes`, decoded with `charset`, like `Matcher.find`.
    ///
    /// Takes at most `limit` steps plus one per byte. Only backtracking counts as steps.
    pub fn find(&self, bytes: &[u8], charset: Charset, limit: u64) -> Search {
        self.search(bytes, charset, Mode::Find, limit)
    }

    /// Whether all of `text` matches, like `Matcher.matches`. Takes at most `limit` steps plus one
    /// per byte.
    pub fn matches(&self, text: &str, limit: u64) -> Search {
        self.search(text.as_bytes(), Charset::Utf8, Mode::Whole, limit)
    }

    /// Searches with the backtracking matcher, even if the linear engine could be used.
    #[doc(hidden)]
    pub fn find_backtracking(&self, bytes: &[u8], charset: Charset, limit: u64) -> Search {
        self.backtrack(bytes, charset, Mode::Find, limit)
    }

    fn search(&self, bytes: &[u8], charset: Charset, mode: Mode, limit: u64) -> Search {
        let linear = self.linear.as_ref().filter(|_| mode == Mode::Find);
        if let Some(linear) = linear.filter(|linear| linear.accepts(bytes))
            && let Some(found) = find_linear(linear, bytes, charset)
        {
            return Search::linear(found);
        }
        self.backtrack(bytes, charset, mode, limit)
    }

    fn backtrack(&self, bytes: &[u8], charset: Charset, mode: Mode, limit: u64) -> Search {
        let limit = limit.saturating_add(bytes.len() as u64);
        if bytes.len() > TEXT_MAX {
            return Search { found: Err(TooManySteps { limit }), steps: 0 };
        }
        let (found, steps) = if charset == Charset::Latin1 || bytes.is_ascii() {
            matcher::search(&self.program, Latin(bytes), mode, limit)
        } else {
            decoded(bytes, charset, |units| matcher::search(&self.program, Wide(units), mode, limit))
        };
        Search { found, steps }
    }
}

/// Searches with the linear engine. `None` if the string has characters above U+FFFF, because
/// Java's result then depends on surrogates.
fn find_linear(linear: &Linear, bytes: &[u8], charset: Charset) -> Option<bool> {
    const FOUR_BYTES: u8 = 0xf0;
    let as_utf8 = || std::str::from_utf8(bytes).ok();
    if (bytes.is_ascii() || charset == Charset::Utf8)
        && let Some(text) = as_utf8()
    {
        let is_small = |byte: &u8| *byte < FOUR_BYTES;
        return bytes.iter().all(is_small).then(|| linear.is_found(text));
    }
    decoded(bytes, charset, |units| {
        let surrogate = |unit: &u16| is_high(u32::from(*unit)) || is_low(u32::from(*unit));
        if units.iter().any(surrogate) {
            return None;
        }
        String::from_utf16(units).ok().map(|text| linear.is_found(&text))
    })
}

/// Decodes `bytes` and calls `search` with the string.
fn decoded<T>(bytes: &[u8], charset: Charset, search: impl FnOnce(&[u16]) -> T) -> T {
    UNITS.with_borrow_mut(|units| {
        charset.decode(bytes, units);
        let found = search(units);
        units.clear();
        units.shrink_to(UNITS_RETAINED);
        found
    })
}

#[cfg(test)]
mod tests;
