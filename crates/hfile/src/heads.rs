//! Heads: some bytes of a row that tell it from most other rows of a sorted run.
//!
//! A binary search over rows waits for memory at each row that it looks at. Heads are kept side by side; a search in them
//! looks at few places, which are near each other, and leaves those rows to be compared whose heads are alike: one mostly.
//! The head is what follows the bytes that all rows of the run have in common. Rows that are not of the run may begin
//! otherwise; of them a search by heads says nothing.

use std::ops::Range;

use cell::CellOrder;
use cell::key::common_len;

/// Bytes of a head.
const HEAD_LEN: usize = 4;

/// Which bytes of the rows of a run are their heads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    // Where the head is; nowhere if rows are not ordered as bytes are.
    at: Option<usize>,
    first: u32,
    last: u32,
}

impl Heads {
    /// All heads are the same, and say nothing.
    pub(crate) fn none() -> Heads {
        Heads { at: None, first: 0, last: 0 }
    }

    /// Those of a run from row `first` to row `last`.
    pub(crate) fn of_rows(order: CellOrder, first: &[u8], last: &[u8]) -> Heads {
        if order != CellOrder::Plain {
            return Heads::none();
        }
        let heads = Heads { at: Some(common_len(first, last)), ..Heads::none() };
        Heads { first: heads.head(first), last: heads.head(last), ..heads }
    }

    /// The head of a row. Of two rows of the run the lesser one has not the greater head.
    #[inline]
    pub(crate) fn head(&self, row: &[u8]) -> u32 {
        let rest = self.at.and_then(|at| row.get(at..)).unwrap_or_default();
        if let Some(head) = rest.first_chunk::<HEAD_LEN>() {
            return u32::from_be_bytes(*head);
        }
        let mut head = [0; HEAD_LEN];
        head[..rest.len()].copy_from_slice(rest);
        u32::from_be_bytes(head)
    }

    /// Which of the first `len` rows have the head that `row` has; `head_at` gives theirs, in order. Those in front are
    /// lesser rows, those behind are greater ones, if `row` begins as they do.
    #[inline]
    pub(crate) fn alike(&self, row: &[u8], len: usize, head_at: impl Fn(usize) -> u32) -> Range<usize> {
        let head = self.head(row);
        let guess = self.guess(head, len);
        let start = first_where(len, guess, |at| head_at(at) >= head);
        let end = first_where(len, start, |at| head_at(at) > head);
        start..end
    }

    /// About which of `len` rows `row` is, if they are evenly spread.
    #[inline]
    pub(crate) fn guess_of(&self, row: &[u8], len: usize) -> usize {
        self.guess(self.head(row), len)
    }

    #[inline]
    fn guess(&self, head: u32, len: usize) -> usize {
        let (above, all) = (head.saturating_sub(self.first), self.last.saturating_sub(self.first));
        if all == 0 || len == 0 {
            return 0;
        }
        (u64::from(above.min(all)) * (len as u64 - 1) / u64::from(all)) as usize
    }
}

/// The first index for which `holds`, `len` if there is none; it holds for all behind. Looks near `guess` first.
#[inline]
fn first_where(len: usize, guess: usize, holds: impl Fn(usize) -> bool) -> usize {
    // Between these: it does not hold in front of `low`, it holds at `high`.
    let (mut low, mut high) = (0, len);
    let mut step = 1;
    let mut at = guess;
    while low < high {
        let probe = at.clamp(low, high - 1);
        if holds(probe) {
            high = probe;
            at = probe.saturating_sub(step);
        } else {
            low = probe + 1;
            at = probe + step;
        }
        // Outwards as long as there is no bound on that side, then halves.
        match low > 0 && high < len {
            true => at = low + (high - low) / 2,
            false => step *= 2,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_anywhere_finds_the_first() {
        for len in 0..20 {
            for first in 0..=len {
                for guess in 0..25 {
                    assert_eq!(first_where(len, guess, |at| at >= first), first, "{len} {first} {guess}");
                }
            }
        }
    }

    #[test]
    fn rows_with_like_heads_are_what_is_left() {
        let rows: Vec<Vec<u8>> =
            (0..500_u32).map(|number| format!("user{:06}", number * number).into_bytes()).collect();
        let heads = Heads::of_rows(CellOrder::Plain, &rows[0], &rows[499]);
        let of: Vec<u32> = rows.iter().map(|row| heads.head(row)).collect();
        assert!(of.is_sorted());
        for (at, row) in rows.iter().enumerate() {
            let alike = heads.alike(row, of.len(), |at| of[at]);
            assert!(alike.contains(&at) && alike.len() < 12, "{at} {alike:?}");
        }
        // Rows between those that are there, in front of them and behind.
        for number in 0..250_000_u32 {
            let row = format!("user{number:06}").into_bytes();
            let alike = heads.alike(&row, of.len(), |at| of[at]);
            assert!(rows[..alike.start].iter().all(|lesser| *lesser < row), "{number}");
            assert!(rows.get(alike.end).is_none_or(|greater| *greater > row), "{number}");
        }
    }

    #[test]
    fn short_rows_and_other_orders() {
        let heads = Heads::of_rows(CellOrder::Plain, b"a", b"ab\0\0\0z");
        assert_eq!((heads.head(b"a"), heads.head(b"ab")), (0, 0x6200_0000));
        let none = Heads::of_rows(CellOrder::Meta, b"a,,1", b"b,,1");
        assert_eq!(none.alike(b"b,,1", 2, |_| none.head(b"a,,1")), 0..2);
    }
}
