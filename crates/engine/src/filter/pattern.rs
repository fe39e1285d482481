//! Java regular expressions, searched for in the bytes of cells.
//!
//! The crate `javaregex` defines what they mean; this module has the limits. Searching by
//! backtracking can take any time, so a search has a limit of steps, and a call has one for all its
//! searches together. A scan over many cells that are each below the limit can therefore be refused
//! too. Steps are added to the account of the current call ([`Use::FilterSteps`]), whose owner may
//! charge for them.

use std::sync::Arc;

use base::spent::{self, Use};
use cell::filter::Pattern;
use javaregex::{Charset, Regex, STEPS_MAX};

use super::{FilterError, FilterResult};
use crate::error::{Error, Result};

/// Steps that all searches of a call may take beyond the [free](free_steps) ones: about 40 ms.
const CALL_STEPS_MAX: u64 = 4_000_000;

/// Steps of one search that are not counted: what a harmless expression takes for this many bytes.
fn free_steps(bytes: usize) -> u64 {
    1_000 + 8 * bytes as u64
}

/// A compiled expression.
pub(super) struct JavaPattern {
    regex: Regex,
    charset: Charset,
    source: Arc<str>,
}

impl JavaPattern {
    /// # Errors
    /// [`Error::BadRequest`] that states what is invalid or unsupported in the expression.
    pub(super) fn new(pattern: &Pattern) -> Result<JavaPattern> {
        let source = &pattern.source;
        let refused = |what: String| Error::bad_request(format!("regular expression '{source}': {what}"));
        if !matches!(&pattern.engine[..], "" | "JAVA") {
            return Err(refused(format!("the engine {} is not supported", pattern.engine)));
        }
        let charset = Charset::named(&pattern.charset)
            .ok_or_else(|| refused(format!("the charset {} is not supported", pattern.charset)))?;
        let regex = Regex::new(source, pattern.flags).map_err(|error| refused(error.to_string()))?;
        Ok(JavaPattern { regex, charset, source: source.as_str().into() })
    }

    /// Whether searches backtrack.
    pub(super) fn backtracks(&self) -> bool {
        self.regex.backtracks()
    }

    /// Whether the expression is found anywhere in the decoded bytes.
    pub(super) fn is_found(&self, bytes: &[u8]) -> FilterResult<bool> {
        let free = free_steps(bytes.len());
        let left = CALL_STEPS_MAX.saturating_sub(spent::used_so_far(Use::FilterSteps));
        let search = self.regex.find(bytes, self.charset, STEPS_MAX.min(free + left));
        if search.steps > free {
            spent::used(Use::FilterSteps, search.steps - free);
        }
        search.found.map_err(|_| self.exceeded(left))
    }

    #[cold]
    fn exceeded(&self, left: u64) -> FilterError {
        FilterError::Steps(match left < STEPS_MAX {
            true => format!(
                "regular expression '{}': matching exceeds the limit of {CALL_STEPS_MAX} steps for a call",
                self.source
            )
            .into(),
            false => format!(
                "regular expression '{}': matching exceeds the limit of {STEPS_MAX} steps for a cell",
                self.source
            )
            .into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DOTALL: i32 = 0x20;
    const CATASTROPHIC: &str = "(?=(a+))(?:a+)+\\1$";

    fn compiled(source: &str, charset: &str, engine: &str) -> Result<JavaPattern> {
        JavaPattern::new(&Pattern {
            source: source.into(),
            flags: DOTALL,
            charset: charset.into(),
            engine: engine.into(),
        })
    }

    fn text(len: usize) -> Vec<u8> {
        let mut text = vec![b'a'; len];
        text.push(b'!');
        text
    }

    #[test]
    fn expressions_are_found_in_bytes_of_their_charset() {
        let found = |source: &str, charset: &str, bytes: &[u8]| {
            compiled(source, charset, "JAVA").unwrap().is_found(bytes).unwrap()
        };
        assert!(found("^(?!tmp)", "UTF-8", b"row") && !found("^(?!tmp)", "UTF-8", b"tmp1"));
        assert!(found("^.$", "UTF-8", "é".as_bytes()) && found("é", "latin1", b"\xe9"));
        assert!(!found("^.$", "ISO-8859-1", "é".as_bytes()) && found("^.$", "UTF-8", b"\xff"));
    }

    #[test]
    fn unsupported_features_are_named() {
        let refused = |source: &str, charset: &str, engine: &str| {
            compiled(source, charset, engine).err().map(|error| error.to_string()).unwrap()
        };
        assert!(refused("a", "UTF-16", "").contains("the charset UTF-16 is not supported"));
        assert!(refused("a", "UTF-8", "JONI").contains("the engine JONI is not supported"));
        assert!(refused("a(", "UTF-8", "").contains("'a(': Unclosed group near index"));
    }

    #[test]
    fn step_limits_apply_to_each_search_and_to_a_call() {
        spent::begin(Duration::ZERO);
        let pattern = compiled(CATASTROPHIC, "UTF-8", "").unwrap();
        let error = pattern.is_found(&text(5000)).unwrap_err().to_string();
        assert!(error.contains(CATASTROPHIC) && error.contains("1000000 steps for a cell"), "{error}");

        spent::begin(Duration::ZERO);
        let (mut cells, cell) = (0, text(12));
        let error = loop {
            match pattern.is_found(&cell) {
                Ok(found) => assert!(!found),
                Err(error) => break error.to_string(),
            }
            cells += 1;
        };
        assert!((4..10_000).contains(&cells), "{cells}");
        assert!(error.contains("4000000 steps for a call"), "{error}");
        let steps = spent::close().used(Use::FilterSteps);
        assert!((CALL_STEPS_MAX..CALL_STEPS_MAX + 100_000).contains(&steps), "{steps}");

        spent::begin(Duration::ZERO);
        assert_eq!(pattern.is_found(&cell), Ok(false), "another call has its own limit");
    }

    #[test]
    fn harmless_expressions_use_no_steps_of_a_call() {
        spent::begin(Duration::ZERO);
        let pattern = compiled("^(?!tmp).*(?<!x)$", "UTF-8", "").unwrap();
        assert!((0..20_000).all(|_| pattern.is_found(b"row-0123456789").unwrap()));
        assert_eq!(spent::close().used(Use::FilterSteps), 0);
    }
}
