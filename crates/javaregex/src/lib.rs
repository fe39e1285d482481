//! Regular expressions as `java.util.regex` of Java 17 has them, searched in bounded time.
//!
//! HBase's clients send expressions of Java's grammar, so what matches must be what Java matches,
//! accidents included. An expression is parsed as Java parses it (`parse`) and then searched for by one
//! of two engines:
//!
//! * `linear`: the `regex` crate, for expressions without look-around, back references and the like;
//! * `matcher`: a backtracking matcher that follows Java's, in a limited number of steps.
//!
//! Canonical equivalence (`CANON_EQ`) is not supported. Nothing here knows what is searched for.

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

/// Steps of one search, in addition to one for each byte: about 10 ms.
pub const STEPS_MAX: u64 = 1_000_000;
/// Bytes of the longest text that is searched by backtracking.
const TEXT_MAX: usize = i32::MAX as usize / 2;

/// A compiled expression.
#[derive(Debug)]
pub struct Regex {
    program: Program,
    linear: Option<Linear>,
}

/// What a search found and cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Whether the expression matches, or why that is not known.
    pub found: Result<bool, TooManySteps>,
    /// Steps of backtracking that it took; zero if it took none.
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
/// Code units of the decoded text that are kept in memory between two searches.
const UNITS_KEPT: usize = 32 * 1024;

impl Regex {
    /// Compiles an expression with flags of `java.util.regex.Pattern`.
    ///
    /// # Errors
    /// [`Error`]: what is wrong with it.
    pub fn new(source: &str, flags: i32) -> Result<Regex, Error> {
        let flags = Flags::from_java(flags).ok_or(Error::Unsupported("one of the flags"))?;
        if flags.has(Flags::CANON_EQ) && !flags.has(Flags::LITERAL) {
            return Err(Error::Unsupported("canonical equivalence"));
        }
        let parse = parse::parse(source, flags)?;
        Ok(Regex { program: program::compile(&parse), linear: Linear::new(&parse) })
    }

    /// Whether searches backtrack, so that one may take as many steps as its limit allows.
    pub fn backtracks(&self) -> bool {
        self.linear.is_none()
    }

    /// Searches for the expression in the string that `bytes` are in `charset`, as `Matcher.find` does.
    ///
    /// Takes at most `limit` steps and one for each byte; only backtracking counts.
    pub fn find(&self, bytes: &[u8], charset: Charset, limit: u64) -> Search {
        self.search(bytes, charset, Mode::Find, limit)
    }

    /// Whether all of `text` matches, as `Matcher.matches` has it. Takes at most `limit` steps and one
    /// for each byte.
    pub fn matches(&self, text: &str, limit: u64) -> Search {
        self.search(text.as_bytes(), Charset::Utf8, Mode::Whole, limit)
    }

    /// Searches by backtracking alone, however the expression could be searched for otherwise.
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

/// `None` if the string has characters beyond the first 65,536: there Java's results depend on how it
/// takes surrogates apart.
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

/// Calls `search` with the decoded string.
fn decoded<T>(bytes: &[u8], charset: Charset, search: impl FnOnce(&[u16]) -> T) -> T {
    UNITS.with_borrow_mut(|units| {
        charset.decode(bytes, units);
        let found = search(units);
        units.clear();
        units.shrink_to(UNITS_KEPT);
        found
    })
}

#[cfg(test)]
mod tests;
