//! `FuzzyRowFilter`: rows that match one of several templates, in which some bytes are fixed and
//! others are wildcards.
//!
//! Rows that match none are skipped by hints: for each template the next row that can match is
//! stored, and the nearest of them is the hint. As in HBase, a row that is shorter than a template
//! is compared up to its own length.

use cell::Cell;
use cell::filter::FuzzyKey;

use super::{Evaluate, FilterResult, Hint, ReturnCode};

pub(super) struct FuzzyRow {
    keys: Vec<FuzzyKey>,
    reversed: bool,
    // The template that matched last is tried first.
    last_matched: usize,
    // For each template that can match later, the next row; the nearest is last.
    next_rows: Vec<(Vec<u8>, usize)>,
    tracking: bool,
    filter_row: bool,
    done: bool,
}

impl FuzzyRow {
    pub(super) fn new(keys: Vec<FuzzyKey>, reversed: bool) -> FuzzyRow {
        FuzzyRow {
            keys,
            reversed,
            last_matched: 0,
            next_rows: Vec::new(),
            tracking: false,
            filter_row: false,
            done: false,
        }
    }

    /// Replaces the next rows that are not after `row`. Returns whether any are left.
    fn track(&mut self, row: &[u8]) -> bool {
        if !std::mem::replace(&mut self.tracking, true) {
            (0..self.keys.len()).for_each(|at| self.track_key(row, at));
        } else {
            while let Some((_, at)) = self
                .next_rows
                .pop_if(|(next, _)| if self.reversed { row <= &next[..] } else { row >= &next[..] })
            {
                self.track_key(row, at);
            }
        }
        !self.next_rows.is_empty()
    }

    fn track_key(&mut self, row: &[u8], at: usize) {
        if let Some(next) = next_matching(&self.keys[at], row, self.reversed) {
            let reversed = self.reversed;
            let index = self.next_rows.partition_point(|(other, _)| {
                if reversed { other[..] < next[..] } else { other[..] > next[..] }
            });
            self.next_rows.insert(index, (next, at));
        }
    }
}

impl Evaluate for FuzzyRow {
    fn reset(&mut self) {
        self.filter_row = false;
    }
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        let row = cell.row();
        for step in 0..self.keys.len() {
            let at = (self.last_matched + step) % self.keys.len();
            if matches(&self.keys[at], row) {
                self.last_matched = at;
                return Ok(ReturnCode::Include);
            }
        }
        self.last_matched = 0;
        self.filter_row = true;
        Ok(ReturnCode::SeekNextUsingHint)
    }
    fn filter_row(&mut self) -> bool {
        self.filter_row
    }
    fn filter_all_remaining(&self) -> bool {
        self.done
    }
    fn next_hint<'a>(&'a mut self, cell: &Cell<'_>) -> Option<Hint<'a>> {
        if !self.track(cell.row()) {
            self.done = true;
            return None;
        }
        self.next_rows.last().map(|(row, _)| Hint::Row(row))
    }
    fn is_hinting(&self) -> bool {
        true
    }
    fn may_end(&self) -> bool {
        true
    }
    fn sees_skipped_rows(&self) -> bool {
        true
    }
}

fn matches(key: &FuzzyKey, row: &[u8]) -> bool {
    let parts = key.key.iter().zip(&key.fixed).zip(row);
    parts.into_iter().all(|((byte, fixed), theirs)| !fixed || byte == theirs)
}

/// The next row after `row` (before it if reversed) that matches the template; `None` if there is
/// none. `row` itself does not match.
///
/// The row's own bytes are used up to where a fixed byte decides. If the row's byte is on the wrong
/// side there, an earlier wildcard must advance by one. After that byte come the smallest bytes
/// (the greatest if reversed).
fn next_matching(key: &FuzzyKey, row: &[u8], reversed: bool) -> Option<Vec<u8>> {
    let (last_byte, first_byte) = if reversed { (0, u8::MAX) } else { (u8::MAX, 0) };
    let is_fixed = |at: usize| key.fixed.get(at).copied().unwrap_or(false);
    let mut next = key.key.to_vec();
    if row.len() > next.len() {
        next.resize(row.len(), if reversed { u8::MAX } else { 0 });
    }
    let mut move_on = None;
    let mut fits_already = false;
    for (at, byte) in next.iter_mut().enumerate() {
        let theirs = row.get(at).copied().unwrap_or(0);
        if !is_fixed(at) {
            *byte = theirs;
            if theirs != last_byte {
                move_on = Some(at);
            }
        } else if theirs != *byte {
            fits_already = (theirs < *byte) != reversed;
            break;
        }
    }
    if !fits_already {
        let at = move_on?;
        next[at] = if reversed { next[at] - 1 } else { next[at] + 1 };
        for (later, byte) in next.iter_mut().enumerate().skip(at + 1) {
            if !is_fixed(later) {
                *byte = first_byte;
            }
        }
    }
    if !reversed {
        trim(&mut next, key, move_on);
    }
    Some(next)
}

/// Truncates `next` after the last fixed byte and the advanced byte: shorter rows come first.
fn trim(next: &mut Vec<u8>, key: &FuzzyKey, move_on: Option<usize>) {
    let known = next.len().min(key.fixed.len());
    let fixed_len = key.fixed[..known].iter().rposition(|fixed| *fixed).map_or(0, |at| at + 1);
    let moved_len = move_on.map_or(0, |at| at + 1);
    next.truncate(fixed_len.max(moved_len));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(template: &str) -> FuzzyKey {
        let fixed = template.bytes().map(|byte| byte != b'?').collect();
        FuzzyKey { key: template.replace('?', "\0").into_bytes().into(), fixed }
    }

    fn next(template: &str, row: &str, reversed: bool) -> Option<String> {
        next_matching(&key(template), row.as_bytes(), reversed).map(|row| row.escape_ascii().to_string())
    }

    #[test]
    fn short_rows_match_up_to_their_length() {
        assert!(matches(&key("a?c"), b"abc") && matches(&key("a?c"), b"abcd") && matches(&key("a?c"), b"ab"));
        assert!(!matches(&key("a?c"), b"abd") && !matches(&key("a?c"), b"b"));
    }

    #[test]
    fn the_next_row_matches_and_is_after() {
        assert_eq!(next("a?c", "abb", false).as_deref(), Some("abc"));
        assert_eq!(next("a?c", "abd", false).as_deref(), Some("acc"));
        assert_eq!(next("b?", "a", false).as_deref(), Some("b"));
        assert_eq!(next("a", "b", false), None);
        assert_eq!(next("?a", "xb", false).as_deref(), Some("ya"));
    }

    #[test]
    fn reversed_the_next_row_is_before() {
        assert_eq!(next("a?c", "abd", true).as_deref(), Some("abc"));
        assert_eq!(next("?a", "x0", true).as_deref(), Some("wa"));
        assert_eq!(next("b", "a", true), None);
    }
}
