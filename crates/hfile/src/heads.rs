//! Row heads: a few bytes that distinguish most rows of a sorted list.
//!
//! A binary search over full rows misses the CPU cache at every row it compares. Heads are stored
//! contiguously, so a search over them touches few cache lines. Only rows with equal heads, usually
//! one, remain to be compared in full. A second level samples the heads at equal distances; one
//! scan of these samples selects the part of the list to search. (Interpolating the position from
//! the numeric value of a head was slower: digits and letters are not spread evenly over all byte
//! values.)
//!
//! A head is the bytes after the prefix that all rows of the list share. For a row without that
//! prefix, a search by heads proves nothing.

use std::hint::select_unpredictable;
use std::ops::Range;

use cell::CellOrder;
use cell::key::common_len;

/// Number of parts of a list. The sampled heads that separate the parts fill one or two cache
/// lines.
const PARTS: usize = 16;

/// A head as a number. A longer one distinguishes more rows and takes more memory.
pub(crate) trait Head: Copy + Default + Ord {
    /// The first bytes of `rest`, padded with zeros.
    fn of(rest: &[u8]) -> Self;
}

macro_rules! impl_head {
    ($number:ty) => {
        impl Head for $number {
            #[inline]
            fn of(rest: &[u8]) -> $number {
                const LEN: usize = size_of::<$number>();
                if let Some(head) = rest.first_chunk::<LEN>() {
                    return <$number>::from_be_bytes(*head);
                }
                let mut head = [0; LEN];
                head[..rest.len()].copy_from_slice(rest);
                <$number>::from_be_bytes(head)
            }
        }
    };
}
impl_head!(u32);
impl_head!(u64);

/// The position of the head in each row of a list, and the sampled heads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads<H> {
    // Offset of the head in a row. `None` if rows are not ordered bytewise.
    at: Option<usize>,
    // The head of the first row of each part except the first.
    samples: [H; PARTS - 1],
}

impl<H: Head> Heads<H> {
    /// All heads are equal and distinguish no rows.
    pub(crate) fn none() -> Heads<H> {
        Heads { at: None, samples: [H::default(); PARTS - 1] }
    }

    /// Heads for a list from row `first` to row `last`. Without samples until
    /// [`set_samples`](Self::set_samples) is called.
    pub(crate) fn of_rows(order: CellOrder, first: &[u8], last: &[u8]) -> Heads<H> {
        match order {
            CellOrder::Plain => Heads { at: Some(common_len(first, last)), ..Heads::none() },
            _ => Heads::none(),
        }
    }

    /// Samples the heads of `len` rows; `head_at` returns the head of each row, in row order.
    pub(crate) fn set_samples(&mut self, len: usize, head_at: impl Fn(usize) -> H) {
        for (part, sample) in (1..).zip(&mut self.samples) {
            *sample = if len == 0 { H::default() } else { head_at(start_of(part, len)) };
        }
    }

    /// The head of a row. Heads never decrease in the order of the list's rows.
    #[inline]
    pub(crate) fn head(&self, row: &[u8]) -> H {
        H::of(self.at.and_then(|at| row.get(at..)).unwrap_or_default())
    }

    /// Whether `row` starts with the prefix that all rows of the list share; `listed` is any row of
    /// the list. For such a row, unequal heads decide the order of rows.
    #[inline]
    pub(crate) fn has_common_prefix(&self, row: &[u8], listed: &[u8]) -> bool {
        self.at.is_some_and(|at| row.get(..at).is_some_and(|common| listed.get(..at) == Some(common)))
    }

    /// The range of rows, out of `len`, whose head equals that of `row`. `head_at` returns the
    /// heads in row order. If `row` has the shared prefix, the rows before the range are less and
    /// the rows after it are greater.
    #[inline]
    pub(crate) fn equal_range(&self, row: &[u8], len: usize, head_at: impl Fn(usize) -> H) -> Range<usize> {
        let head = self.head(row);
        let range = self.search_range_of(head, len);
        let start = first_in(range, |at| head_at(at) >= head);
        start..first_from(start, len, |at| head_at(at) > head)
    }

    /// The start of the range that [`equal_range`](Self::equal_range) returns, searched only in the
    /// range that [`search_range`](Self::search_range) returned.
    #[inline]
    pub(crate) fn first_equal_in(
        &self,
        row: &[u8],
        range: Range<usize>,
        head_at: impl Fn(usize) -> H,
    ) -> usize {
        let head = self.head(row);
        first_in(range, |at| head_at(at) >= head)
    }

    /// A range of the `len` rows to search for the first row whose head is not less than the head
    /// of `row`. If no row in the range qualifies, the first one is at the end of the range, or
    /// absent if that is `len`.
    #[inline]
    pub(crate) fn search_range(&self, row: &[u8], len: usize) -> Range<usize> {
        self.search_range_of(self.head(row), len)
    }

    #[inline]
    fn search_range_of(&self, head: H, len: usize) -> Range<usize> {
        let lesser = self.samples.iter().filter(|sample| **sample < head).count();
        let start = if lesser == 0 { 0 } else { start_of(lesser, len) + 1 };
        let end = if lesser == PARTS - 1 { len } else { start_of(lesser + 1, len) };
        start.min(end)..end
    }
}

/// Index of the first row of a part of `len` rows.
#[inline]
fn start_of(part: usize, len: usize) -> usize {
    part * len / PARTS
}

/// The first index in `range` for which `holds`, or the end of the range. If `holds` for an index,
/// it must hold for all later ones.
#[inline]
fn first_in(range: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut len) = (range.start, range.len());
    while len > 0 {
        let half = len / 2;
        // The CPU cannot predict which half is next, and a mispredicted branch costs more than
        // waiting for the comparison.
        let is_after = !holds(low + half);
        low = select_unpredictable(is_after, low + half + 1, low);
        len = select_unpredictable(is_after, len - half - 1, half);
    }
    low
}

/// The first index in `start..len` for which `holds`, or `len`. Fast if it is near `start`.
#[inline]
fn first_from(start: usize, len: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (start, 1);
    loop {
        let probe = low + step - 1;
        if probe >= len {
            return first_in(low..len, holds);
        }
        if holds(probe) {
            return first_in(low..probe, holds);
        }
        low = probe + 1;
        step *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_found_from_any_earlier_index() {
        for len in 0..40 {
            for first in 0..=len {
                assert_eq!(first_in(0..len, |at| at >= first), first, "{len}");
                for start in 0..=first {
                    assert_eq!(first_from(start, len, |at| at >= first), first, "{len} {start}");
                }
            }
        }
    }

    #[test]
    fn the_search_range_holds_the_first_row_for_any_length() {
        for len in 0..70_u32 {
            for repeats in 1..5 {
                // Groups of equal heads, at the ends and in the middle.
                let of: Vec<u32> = (0..len).map(|at| 10 * (at / repeats)).collect();
                let mut heads: Heads<u32> = Heads { at: Some(0), ..Heads::none() };
                heads.set_samples(of.len(), |at| of[at]);
                for head in 0..10 * len + 10 {
                    let (start, end) =
                        (of.partition_point(|it| *it < head), of.partition_point(|it| *it <= head));
                    let found = heads.equal_range(&head.to_be_bytes(), of.len(), |at| of[at]);
                    assert_eq!(found, start..end, "{head} of {of:?}");
                    let range = heads.search_range(&head.to_be_bytes(), of.len());
                    assert!(range.start <= start && start <= range.end && range.end <= of.len());
                    assert_eq!(heads.first_equal_in(&head.to_be_bytes(), range, |at| of[at]), start);
                }
            }
        }
    }

    #[test]
    fn only_rows_with_equal_heads_remain() {
        let rows: Vec<Vec<u8>> =
            (0..500_u32).map(|number| format!("user{:06}", number * number).into_bytes()).collect();
        let mut heads: Heads<u32> = Heads::of_rows(CellOrder::Plain, &rows[0], &rows[499]);
        let of: Vec<u32> = rows.iter().map(|row| heads.head(row)).collect();
        assert!(of.is_sorted());
        assert!(rows.iter().all(|row| heads.has_common_prefix(row, &rows[7])));
        for other in ["use", "usez12", "vser123456", ""] {
            assert!(!heads.has_common_prefix(other.as_bytes(), &rows[7]), "{other}");
        }
        heads.set_samples(of.len(), |at| of[at]);
        for (at, row) in rows.iter().enumerate() {
            let equal = heads.equal_range(row, of.len(), |at| of[at]);
            assert!(equal.contains(&at) && equal.len() < 12, "{at} {equal:?}");
        }
        // Rows between, before and after those in the list.
        for number in 0..250_000_u32 {
            let row = format!("user{number:06}").into_bytes();
            let equal = heads.equal_range(&row, of.len(), |at| of[at]);
            assert!(rows[..equal.start].iter().all(|lesser| *lesser < row), "{number}");
            assert!(rows.get(equal.end).is_none_or(|greater| *greater > row), "{number}");
        }
    }

    #[test]
    fn short_rows_and_other_orders() {
        let heads: Heads<u32> = Heads::of_rows(CellOrder::Plain, b"a", b"ab\0\0\0z");
        assert_eq!((heads.head(b"a"), heads.head(b"ab")), (0, 0x6200_0000));
        let longer: Heads<u64> = Heads::of_rows(CellOrder::Plain, b"a", b"ab\0\0\0z");
        assert_eq!(longer.head(b"ab\0\0\0z"), 0x6200_0000_7a00_0000);
        let none: Heads<u32> = Heads::of_rows(CellOrder::Meta, b"a,,1", b"b,,1");
        assert!(!none.has_common_prefix(b"a,,1", b"a,,1"));
        assert_eq!(none.equal_range(b"b,,1", 2, |_| none.head(b"a,,1")), 0..2);
    }
}
