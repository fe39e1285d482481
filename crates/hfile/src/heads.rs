//! Heads: some bytes of a row that tell it from most other rows of a sorted run.
//!
//! A binary search over rows waits for memory at each row that it looks at. Heads are kept side by side; a search in them
//! looks at few places, which are near each other, and leaves those rows to be compared whose heads are alike: one mostly.
//! Some of them, at even distances, are kept once more at hand: one look at these says in which part of the run to search.
//! (To guess the place from the number that a head is was worse: digits and letters are not spread evenly over all bytes.)
//! The head is what follows the bytes that all rows of the run have in common. Rows that are not of the run may begin
//! otherwise; of them a search by heads says nothing.

use std::hint::select_unpredictable;
use std::ops::Range;

use cell::CellOrder;
use cell::key::common_len;

/// Parts of a run, between which heads are at hand: as many of these as fit a line of the processor's cache or two.
const PARTS: usize = 16;

/// A head as a number: the longer it is, the more rows it tells apart, and the more memory it takes.
pub(crate) trait Head: Copy + Default + Ord {
    /// The first bytes of `rest`, and zeros for those that it has not.
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

/// Which bytes of the rows of a run are their heads, and the heads at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads<H> {
    // Where the head is; nowhere if rows are not ordered as bytes are.
    at: Option<usize>,
    // Heads of the first rows of all parts but the first.
    posts: [H; PARTS - 1],
}

impl<H: Head> Heads<H> {
    /// All heads are the same, and say nothing.
    pub(crate) fn none() -> Heads<H> {
        Heads { at: None, posts: [H::default(); PARTS - 1] }
    }

    /// Those of a run from row `first` to row `last`. None are at hand before [`set_posts`](Self::set_posts).
    pub(crate) fn of_rows(order: CellOrder, first: &[u8], last: &[u8]) -> Heads<H> {
        match order {
            CellOrder::Plain => Heads { at: Some(common_len(first, last)), ..Heads::none() },
            _ => Heads::none(),
        }
    }

    /// Takes heads at hand, of `len` rows; `head_at` gives them, in order.
    pub(crate) fn set_posts(&mut self, len: usize, head_at: impl Fn(usize) -> H) {
        for (part, post) in (1..).zip(&mut self.posts) {
            *post = if len == 0 { H::default() } else { head_at(start_of(part, len)) };
        }
    }

    /// The head of a row. Of two rows of the run the lesser one has not the greater head.
    #[inline]
    pub(crate) fn head(&self, row: &[u8]) -> H {
        H::of(self.at.and_then(|at| row.get(at..)).unwrap_or_default())
    }

    /// Whether `row` begins with what all rows of the run have in common, of which `of_run` is one. Of such a row heads say
    /// all, but for rows whose heads are alike.
    #[inline]
    pub(crate) fn tell_of(&self, row: &[u8], of_run: &[u8]) -> bool {
        self.at.is_some_and(|at| row.get(..at).is_some_and(|common| of_run.get(..at) == Some(common)))
    }

    /// Which of the `len` rows have the head that `row` has; `head_at` gives theirs, in order. Those in front are
    /// lesser rows, those behind are greater ones, if `row` begins as they do.
    #[inline]
    pub(crate) fn alike(&self, row: &[u8], len: usize, head_at: impl Fn(usize) -> H) -> Range<usize> {
        let head = self.head(row);
        let part = self.part_of(head, len);
        let start = first_in(part, |at| head_at(at) >= head);
        start..first_from(start, len, |at| head_at(at) > head)
    }

    /// The first of the rows that [`alike`](Self::alike) gives, searched for in the [part](Self::part) where it is.
    #[inline]
    pub(crate) fn first_alike(&self, row: &[u8], part: Range<usize>, head_at: impl Fn(usize) -> H) -> usize {
        let head = self.head(row);
        first_in(part, |at| head_at(at) >= head)
    }

    /// Among which of `len` rows the first is whose head is not less than that of `row`; if among none, it is the one behind.
    #[inline]
    pub(crate) fn part(&self, row: &[u8], len: usize) -> Range<usize> {
        self.part_of(self.head(row), len)
    }

    #[inline]
    fn part_of(&self, head: H, len: usize) -> Range<usize> {
        let lesser = self.posts.iter().filter(|post| **post < head).count();
        let start = if lesser == 0 { 0 } else { start_of(lesser, len) + 1 };
        let end = if lesser == PARTS - 1 { len } else { start_of(lesser + 1, len) };
        start.min(end)..end
    }
}

/// Where a part of `len` rows starts.
#[inline]
fn start_of(part: usize, len: usize) -> usize {
    part * len / PARTS
}

/// The first index in `range` for which `holds`, its end if there is none; it holds for all behind.
#[inline]
fn first_in(range: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut len) = (range.start, range.len());
    while len > 0 {
        let half = len / 2;
        // Nothing tells the processor which half it is; a wrong guess costs it more than looking.
        let is_behind = !holds(low + half);
        low = select_unpredictable(is_behind, low + half + 1, low);
        len = select_unpredictable(is_behind, len - half - 1, half);
    }
    low
}

/// The same from `start` on, near which it is.
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
    fn the_first_is_found_from_anywhere_before_it() {
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
    fn parts_hold_the_first_however_many_rows_there_are() {
        for len in 0..70_u32 {
            for alike in 1..5 {
                // Runs of the same head, at the ends and in the middle.
                let of: Vec<u32> = (0..len).map(|at| 10 * (at / alike)).collect();
                let mut heads: Heads<u32> = Heads { at: Some(0), ..Heads::none() };
                heads.set_posts(of.len(), |at| of[at]);
                for head in 0..10 * len + 10 {
                    let (start, end) =
                        (of.partition_point(|it| *it < head), of.partition_point(|it| *it <= head));
                    let found = heads.alike(&head.to_be_bytes(), of.len(), |at| of[at]);
                    assert_eq!(found, start..end, "{head} of {of:?}");
                    let part = heads.part(&head.to_be_bytes(), of.len());
                    assert!(part.start <= start && start <= part.end && part.end <= of.len());
                    assert_eq!(heads.first_alike(&head.to_be_bytes(), part, |at| of[at]), start);
                }
            }
        }
    }

    #[test]
    fn rows_with_like_heads_are_what_is_left() {
        let rows: Vec<Vec<u8>> =
            (0..500_u32).map(|number| format!("user{:06}", number * number).into_bytes()).collect();
        let mut heads: Heads<u32> = Heads::of_rows(CellOrder::Plain, &rows[0], &rows[499]);
        let of: Vec<u32> = rows.iter().map(|row| heads.head(row)).collect();
        assert!(of.is_sorted());
        assert!(rows.iter().all(|row| heads.tell_of(row, &rows[7])));
        for other in ["use", "usez12", "vser123456", ""] {
            assert!(!heads.tell_of(other.as_bytes(), &rows[7]), "{other}");
        }
        heads.set_posts(of.len(), |at| of[at]);
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
        let heads: Heads<u32> = Heads::of_rows(CellOrder::Plain, b"a", b"ab\0\0\0z");
        assert_eq!((heads.head(b"a"), heads.head(b"ab")), (0, 0x6200_0000));
        let longer: Heads<u64> = Heads::of_rows(CellOrder::Plain, b"a", b"ab\0\0\0z");
        assert_eq!(longer.head(b"ab\0\0\0z"), 0x6200_0000_7a00_0000);
        let none: Heads<u32> = Heads::of_rows(CellOrder::Meta, b"a,,1", b"b,,1");
        assert!(!none.tell_of(b"a,,1", b"a,,1"));
        assert_eq!(none.alike(b"b,,1", 2, |_| none.head(b"a,,1")), 0..2);
    }
}
