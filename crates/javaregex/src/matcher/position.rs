//! Assertions at a position, and literal characters.

use crate::node::Fold;
use crate::program::Slice;
use crate::text::{Text, is_high, is_low};
use crate::unicode::{LETTER_OR_DIGIT, NONSPACING_MARK, WORD, case, grapheme};

fn ends_any_line(unit: u32) -> bool {
    matches!(unit, 0xa | 0xd | 0x85 | 0x2028 | 0x2029)
}

/// `^` with `MULTILINE`: never matches at the end of the text, which Java adopted from Perl.
pub(super) fn begins_line(text: impl Text, at: usize, unix_lines: bool) -> bool {
    if at == text.len() || at == 0 {
        return at != text.len();
    }
    let before = text.unit(at - 1);
    match unix_lines {
        true => before == 0xa,
        false => ends_any_line(before) && !(before == 0xd && text.unit(at) == 0xa),
    }
}

/// `$` and `\Z`.
pub(super) fn ends_line(text: impl Text, at: usize, multiline: bool, unix_lines: bool) -> bool {
    let rest = text.len() - at;
    if rest == 0 {
        return true;
    }
    let unit = text.unit(at);
    if unix_lines {
        return unit == 0xa && (multiline || rest == 1);
    }
    let last = rest == 1 || rest == 2 && unit == 0xd && text.unit(at + 1) == 0xa;
    let within = unit == 0xa && at > 0 && text.unit(at - 1) == 0xd;
    ends_any_line(unit) && !within && (multiline || last)
}

/// `\b`.
pub(super) fn is_bound(text: impl Text, at: usize, unicode: bool) -> bool {
    let left = at > 0 && is_word(text, text.point_before(at).0, at - 1, unicode);
    let right = at < text.len() && is_word(text, text.point(at).0, at, unicode);
    left != right
}

fn is_word(text: impl Text, code: u32, at: usize, unicode: bool) -> bool {
    if code < 0x80 {
        return code == u32::from('_') || char::from_u32(code).is_some_and(|c| c.is_ascii_alphanumeric());
    }
    let word = if unicode { &WORD } else { &LETTER_OR_DIGIT };
    word.contains(code) || NONSPACING_MARK.contains(code) && has_base(text, at)
}

/// Whether the mark at `at` follows a letter or digit, possibly with other marks between.
fn has_base(text: impl Text, at: usize) -> bool {
    for at in (0..=at).rev() {
        let code = text.point(at).0;
        if LETTER_OR_DIGIT.contains(code) {
            return true;
        }
        if !NONSPACING_MARK.contains(code) {
            return false;
        }
    }
    false
}

/// `\b{g}`: Java starts the search for clusters at `last`.
pub(super) fn is_grapheme_bound(text: impl Text, at: usize, last: usize) -> bool {
    if at == 0 || at >= text.len() {
        return true;
    }
    let splits_pair = is_high(text.unit(at - 1)) && is_low(text.unit(at));
    !splits_pair && (last >= text.len() || grapheme::next_boundary(text, last) <= at)
}

/// The end of the literal characters that begin at `at`; `None` if they do not match.
#[inline]
pub(super) fn slice_end(text: impl Text, slice: &Slice, at: usize) -> Option<usize> {
    let equals = |code: u32, wanted: u32| {
        code == wanted
            || match slice.fold {
                Fold::None => false,
                Fold::Ascii => case::ascii_lower(code) == wanted,
                Fold::Unicode => case::fold(code) == wanted,
            }
    };
    let mut at = at;
    for wanted in &slice.chars {
        if at >= text.len() {
            return None;
        }
        let (code, width) = if slice.points { text.point(at) } else { (text.unit(at), 1) };
        if !equals(code, *wanted) {
            return None;
        }
        at += width;
    }
    Some(at)
}
