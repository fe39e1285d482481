//! Row heads: fast binary search in a sorted list of rows.
//!
//! The *head* of a row is its first four or eight bytes after the common prefix of all rows of the
//! list. Heads are stored contiguously, so a search over them touches few cache lines. A search
//! over full rows would miss the CPU cache at every row that it compares. Only rows with equal
//! heads, usually one, have to be compared in full.
//!
//! The list is divided into parts of equal length. The heads of their first rows are also stored as
//! *samples*. A search first compares all samples, which selects the part to search.
//!
//! If the searched row does not have the common prefix, its head does not determine its position.

use std::hint::select_unpredictable;
use std::ops::Range;

use cell::CellOrder;
use cell::key::common_len;

/// Number of parts of a list. The samples fill one or two cache lines.
const PARTS: usize = 16;

/// A head as a number. A `u64` distinguishes more rows than a `u32`, and takes more memory.
pub(crate) trait Head: Copy + Default + Ord {
    /// The head of a row. `rest` is the row without the common prefix. If `rest` is shorter than a
    /// head, zeros follow it.
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

/// What a search in a list needs in addition to the heads, which the caller stores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadSearch<H> {
    // Offset of the head in a row. `None` if rows are not ordered bytewise.
    at: Option<usize>,
    // The head of the first row of each part except the first.
    samples: [H; PARTS - 1],
}

impl<H: Head> HeadSearch<H> {
    /// A search in which the heads of all rows are equal, so that they distinguish no rows.
    pub(crate) fn none() -> HeadSearch<H> {
        HeadSearch { at: None, samples: [H::default(); PARTS - 1] }
    }

    /// A search in a list from row `first` to row `last`. The samples are missing until
    /// [`set_samples`](Self::set_samples) is called.
    pub(crate) fn of_rows(order: CellOrder, first: &[u8], last: &[u8]) -> HeadSearch<H> {
        match order {
            CellOrder::Plain => HeadSearch { at: Some(common_len(first, last)), ..HeadSearch::none() },
            _ => HeadSearch::none(),
        }
    }

    /// Sets the samples for a list of `len` rows. `head_at` returns the head at a list index.
    pub(crate) fn set_samples(&mut self, len: usize, head_at: impl Fn(usize) -> H) {
        for (part, sample) in (1..).zip(&mut self.samples) {
            *sample = if len == 0 { H::default() } else { head_at(start_of(part, len)) };
        }
    }

    /// The head of a row. The heads of the list's rows are in ascending order.
    #[inline]
    pub(crate) fn head(&self, row: &[u8]) -> H {
        H::of(self.at.and_then(|at| row.get(at..)).unwrap_or_default())
    }

    /// Whether `row` starts with the common prefix of the list. Only then does its head determine
    /// its position. `listed` is any row of the list.
    #[inline]
    pub(crate) fn has_common_prefix(&self, row: &[u8], listed: &[u8]) -> bool {
        self.at.is_some_and(|at| row.get(..at).is_some_and(|common| listed.get(..at) == Some(common)))
    }

    /// The range of the rows whose head equals that of `row`, in a list of `len` rows. `head_at`
    /// returns the head at a list index. If `row` has the common prefix, the rows before the
    /// range are less than `row`, and the rows after it are greater.
    #[inline]
    pub(crate) fn equal_range(&self, row: &[u8], len: usize, head_at: impl Fn(usize) -> H) -> Range<usize> {
        let head = self.head(row);
        let range = self.search_range_of(head, len);
        let start = first_in(range, |at| head_at(at) >= head);
        start..first_from(start, len, |at| head_at(at) > head)
    }

    /// The start of the range that [`equal_range`](Self::equal_range) returns. `range` must be the
    /// result of [`search_range`](Self::search_range) for the same row.
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

    /// Narrows the search for the first row whose head is not less than the head of `row`, in a
    /// list of `len` rows. The index of that row, or `len` if there is none, is in the returned
    /// range or equals its end.
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

/// Index of the first row of a part, in a list of `len` rows.
#[inline]
fn start_of(part: usize, len: usize) -> usize {
    part * len / PARTS
}

/// The first index in `range` for which `holds` is true, or the end of the range. After this index,
/// `holds` must be true too.
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

/// Like [`first_in`] for the range `start..len`. Fast if the result is near `start`.
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
                let list: Vec<u32> = (0..len).map(|at| 10 * (at / repeats)).collect();
                let mut heads: HeadSearch<u32> = HeadSearch { at: Some(0), ..HeadSearch::none() };
                heads.set_samples(list.len(), |at| list[at]);
                for head in 0..10 * len + 10 {
                    let (start, end) =
                        (list.partition_point(|it| *it < head), list.partition_point(|it| *it <= head));
                    let found = heads.equal_range(&head.to_be_bytes(), list.len(), |at| list[at]);
                    assert_eq!(found, start..end, "{head} of {list:?}");
                    let range = heads.search_range(&head.to_be_bytes(), list.len());
                    assert!(range.start <= start && start <= range.end && range.end <= list.len());
                    assert_eq!(heads.first_equal_in(&head.to_be_bytes(), range, |at| list[at]), start);
                }
            }
        }
    }

    #[test]
    fn only_rows_with_equal_heads_remain() {
        let rows: Vec<Vec<u8>> =
            (0..500_u32).map(|number| format!("user{:06}", number * number).into_bytes()).collect();
        let mut heads: HeadSearch<u32> = HeadSearch::of_rows(CellOrder::Plain, &rows[0], &rows[499]);
        let list: Vec<u32> = rows.iter().map(|row| heads.head(row)).collect();
        assert!(list.is_sorted());
        assert!(rows.iter().all(|row| heads.has_common_prefix(row, &rows[7])));
        for other in ["use", "usez12", "vser123456", ""] {
            assert!(!heads.has_common_prefix(other.as_bytes(), &rows[7]), "{other}");
        }
        heads.set_samples(list.len(), |at| list[at]);
        for (at, row) in rows.iter().enumerate() {
            let equal = heads.equal_range(row, list.len(), |at| list[at]);
            assert!(equal.contains(&at) && equal.len() < 12, "{at} {equal:?}");
        }
        // Rows between, before and after those in the list.
        for number in 0..250_000_u32 {
            let row = format!("user{number:06}").into_bytes();
            let equal = heads.equal_range(&row, list.len(), |at| list[at]);
            assert!(rows[..equal.start].iter().all(|lesser| *lesser < row), "{number}");
            assert!(rows.get(equal.end).is_none_or(|greater| *greater > row), "{number}");
        }
    }

    #[test]
    fn short_rows_and_other_orders() {
        let heads: HeadSearch<u32> = HeadSearch::of_rows(CellOrder::Plain, b"a", b"ab\0\0\0z");
        assert_eq!((heads.head(b"a"), heads.head(b"ab")), (0, 0x6200_0000));
        let longer: HeadSearch<u64> = HeadSearch::of_rows(CellOrder::Plain, b"a", b"ab\0\0\0z");
        assert_eq!(longer.head(b"ab\0\0\0z"), 0x6200_0000_7a00_0000);
        let none: HeadSearch<u32> = HeadSearch::of_rows(CellOrder::Meta, b"a,,1", b"b,,1");
        assert!(!none.has_common_prefix(b"a,,1", b"a,,1"));
        assert_eq!(none.equal_range(b"b,,1", 2, |_| none.head(b"a,,1")), 0..2);
    }
}
