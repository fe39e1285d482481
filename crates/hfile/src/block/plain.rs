//! Cells one after the other: blocks without encoding, and those of ROW_INDEX_V1.
//!
//! ```text
//! cell: key length 4 | value length 4 | key | value | [tags length 2 | tags] | [sequence id, vlong]
//! ROW_INDEX_V1 adds: row count 4 | offset of each row's first cell 4 * | bytes of all cells 4
//! ```
//!
//! All cells are walked once, when the block is loaded: lengths, keys and order are checked then, and the marks are
//! found by which a seek later searches: first cells of rows, and of wide rows every [`MARK_EVERY`]th cell. After that a
//! cell is a [`Span`] of offsets; nothing is copied.
//!
//! A seek into a block that the processor has not in its own caches costs what it waits for memory. So each mark has the
//! [head](crate::heads) of its row beside it, and a seek mostly looks at some marks, which lie side by side, and one cell.

use std::cmp::Ordering;
use std::ops::Range;

use base::prefetch::prefetch;
use cell::cell::LENGTHS_LEN;
use cell::order::compare_within_row;
use cell::{Cell, CellOrder, key};

use crate::error::{Fault, Parsed};
use crate::heads::Heads;
use crate::input::Input;

/// Cells of one row between two marks. Sixteen keys are walked in less time than a block's row search takes.
const MARK_EVERY: usize = 16;
/// Bytes between two marks at least: rows of small cells are walked, a few at a time, for a mark would cost as much
/// memory as one of them.
const MARK_BYTES_MIN: usize = 96;

/// Bytes of the marks among which a row is that are fetched ahead: those of a block of small cells.
const MARKS_BYTES_FETCHED_MAX: usize = 512;
/// Bytes of a cell that are fetched ahead: a small one.
const CELL_BYTES_FETCHED: usize = 192;

/// Cells that a forward seek looks at before it searches.
const NEAR: usize = 4;

/// Which optional fields follow each cell of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellFields {
    pub(crate) tags: bool,
    pub(crate) mvcc: bool,
}

/// Where the parts of a cell are; offsets into the block's payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) key_at: u32,
    pub(crate) key_len: u32,
    pub(crate) value_len: u32,
    pub(crate) tags_at: u32,
    pub(crate) tags_len: u32,
    /// Where the next cell starts.
    pub(crate) end: u32,
    pub(crate) seq_id: u64,
}

/// What is known of the cells of a block.
#[derive(Debug)]
pub(crate) struct PlainCells {
    fields: CellFields,
    start: u32,
    end: u32,
    /// Where the last cell starts.
    last: u32,
    heads: Heads<u32>,
    /// Ascending; the first is at the first cell.
    marks: Box<[Mark]>,
}

/// A cell at which a search may begin.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Of the cell's row.
    head: u32,
    /// Where in the payload the cell starts, and whether it is the first of its row.
    at: u32,
}

impl Mark {
    // Payloads are bounded far below.
    const FIRST_OF_ROW: u32 = 1 << 31;

    fn new(at: usize, first_of_row: bool) -> Mark {
        Mark { head: 0, at: at as u32 | if first_of_row { Mark::FIRST_OF_ROW } else { 0 } }
    }

    #[inline]
    fn at(self) -> u32 {
        self.at & !Mark::FIRST_OF_ROW
    }

    #[inline]
    fn is_first_of_row(self) -> bool {
        self.at & Mark::FIRST_OF_ROW != 0
    }
}

impl PlainCells {
    /// Checks a payload of cells and nothing else, from `start` on.
    pub(crate) fn load(
        payload: &[u8],
        start: usize,
        fields: CellFields,
        order: CellOrder,
    ) -> Parsed<PlainCells> {
        PlainCells::walked(payload, start, payload.len(), fields, order, None)
    }

    /// Checks a ROW_INDEX_V1 payload, whose cells start at `start`.
    pub(crate) fn load_with_row_index(
        payload: &[u8],
        start: usize,
        fields: CellFields,
        order: CellOrder,
    ) -> Parsed<PlainCells> {
        let cells_len = payload.last_chunk::<4>().map(|len| u32::from_be_bytes(*len) as usize);
        let end = cells_len.and_then(|len| start.checked_add(len)).ok_or(Fault::Damaged("row index cut"))?;
        let mut index = Input::starting(payload, end);
        let count = index.u32("row index cut")?;
        let rows = index.take((count as usize).saturating_mul(4), "row index cut")?;
        index.u32("row index cut")?;
        index.end("row index does not add up")?;
        PlainCells::walked(payload, start, end, fields, order, Some(rows))
    }

    /// Checks the cells in `start..end`; if `rows` are given, the row starts must be exactly those.
    fn walked(
        payload: &[u8],
        start: usize,
        end: usize,
        fields: CellFields,
        order: CellOrder,
        rows: Option<&[u8]>,
    ) -> Parsed<PlainCells> {
        let (marks, last) = walk(payload, start, end, fields, order, rows)?;
        let mut cells = PlainCells {
            fields,
            start: start as u32,
            end: end as u32,
            last,
            heads: Heads::none(),
            marks: marks.into_boxed_slice(),
        };
        let row_at = |at| key::row(key_at(payload, at));
        cells.heads = Heads::of_rows(order, row_at(cells.start), row_at(last));
        for mark in &mut cells.marks {
            mark.head = cells.heads.head(row_at(mark.at()));
        }
        cells.heads.set_posts(cells.marks.len(), |at| cells.marks[at].head);
        Ok(cells)
    }

    /// Heap taken besides the payload.
    pub(crate) fn heap_len(&self) -> usize {
        size_of_val(&*self.marks)
    }

    /// The cell that starts at `at`, which is where a cell starts.
    #[inline]
    pub(crate) fn span(&self, payload: &[u8], at: u32) -> Parsed<Span> {
        span_at(&payload[..self.end as usize], at as usize, self.fields)
    }

    /// The first cell.
    pub(crate) fn first(&self, payload: &[u8]) -> Parsed<Span> {
        self.span(payload, self.start)
    }

    /// The last cell.
    pub(crate) fn last(&self, payload: &[u8]) -> Parsed<Span> {
        self.span(payload, self.last)
    }

    /// The cell behind `span`, or `None` behind the last.
    #[inline]
    pub(crate) fn after(&self, payload: &[u8], span: &Span) -> Parsed<Option<Span>> {
        if span.end >= self.end { Ok(None) } else { self.span(payload, span.end).map(Some) }
    }

    /// Where a row begins near the end of the block: all rows in front of it are whole. 0 if none is known of.
    pub(crate) fn last_row_start(&self) -> u32 {
        self.marks.iter().rev().find(|mark| mark.is_first_of_row()).map_or(0, |mark| mark.at())
    }

    /// Where the first cell starts that is at or behind `target`; the end if there is none.
    pub(crate) fn seek_start(&self, payload: &[u8], order: CellOrder, target: &[u8]) -> Parsed<u32> {
        let found = self.seek(payload, None, order, target)?;
        Ok(found.map_or(self.end, |span| span.start()))
    }

    /// The key of the first cell.
    pub(crate) fn first_key<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        key_at(payload, self.start)
    }

    /// The key of the last cell.
    pub(crate) fn last_key<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        key_at(payload, self.last)
    }

    /// Asks the processor for what a seek to `row` looks at first. Gives the indexes of these marks.
    pub(crate) fn prefetch_marks(&self, row: &[u8]) -> Range<usize> {
        let part = self.heads.part(row, self.marks.len());
        prefetch(&self.marks[part.clone()], MARKS_BYTES_FETCHED_MAX);
        part
    }

    /// The index of the mark at the cell that a seek to `row` finds, most likely; `marks` are those that
    /// [`prefetch_marks`](Self::prefetch_marks) asked for.
    pub(crate) fn likely_mark(&self, row: &[u8], marks: Range<usize>) -> usize {
        self.heads.first_alike(row, marks, |at| self.marks[at].head)
    }

    /// Asks the processor for the cell at a mark, if there is one of this index.
    pub(crate) fn prefetch_cell(&self, payload: &[u8], mark: usize) {
        if let Some(mark) = self.marks.get(mark) {
            prefetch(&payload[mark.at() as usize..], CELL_BYTES_FETCHED);
        }
    }

    /// The first cell at or behind `target`; `None` if all are before it. `likely` is the index of the mark of the row of
    /// `target`, if it is known.
    pub(crate) fn seek(
        &self,
        payload: &[u8],
        likely: Option<usize>,
        order: CellOrder,
        target: &[u8],
    ) -> Parsed<Option<Span>> {
        let first_of_row = |mark| match key::is_first_on_row(target) {
            true => self.first_of_row(payload, mark, key::row(target)),
            false => Ok(None),
        };
        if let Some(likely) = likely
            && let Some(span) = first_of_row(likely)?
        {
            return Ok(Some(span));
        }
        let alike = self.marks_alike(key::row(target));
        if likely != Some(alike.start)
            && let Some(span) = first_of_row(alike.start)?
        {
            return Ok(Some(span));
        }
        let before = self.marks_before_in(payload, order, target, alike);
        match self.seek_between(payload, order, target, before)? {
            Sought::At(span) => Ok(Some(span)),
            Sought::BehindLast => Ok(None),
            // Heads say nothing of rows that do not begin as those of the block do.
            Sought::Elsewhere => {
                let before = self.marks_before(payload, order, target);
                match self.seek_between(payload, order, target, before)? {
                    Sought::At(span) => Ok(Some(span)),
                    Sought::BehindLast => Ok(None),
                    Sought::Elsewhere => Err(Fault::Damaged("cells out of order")),
                }
            }
        }
    }

    /// The first cell of `row`, and where the next row with a mark begins, if the row has a mark and nothing but this row and
    /// small ones are up to there. `likely` as for [`seek`](Self::seek).
    pub(crate) fn row_between_marks(
        &self,
        payload: &[u8],
        likely: Option<usize>,
        row: &[u8],
    ) -> Parsed<Option<(Span, u32)>> {
        let mark = likely.unwrap_or_else(|| self.marks_alike(row).start);
        let Some(end) = self.marks.get(mark + 1).filter(|next| next.is_first_of_row()) else {
            return Ok(None);
        };
        Ok(self.first_of_row(payload, mark, row)?.map(|span| (span, end.at())))
    }

    /// The cell of a mark, if it is the first of `row`.
    #[inline]
    fn first_of_row(&self, payload: &[u8], mark: usize, row: &[u8]) -> Parsed<Option<Span>> {
        let Some(mark) = self.marks.get(mark).filter(|mark| mark.is_first_of_row()) else { return Ok(None) };
        let is_it = key::is_same_row(key::row(key_at(payload, mark.at())), row);
        if is_it { self.span(payload, mark.at()).map(Some) } else { Ok(None) }
    }

    /// Searches from the mark in front of index `before` to the one at it; tells if the target is not between them.
    #[inline]
    fn seek_between(&self, payload: &[u8], order: CellOrder, target: &[u8], before: usize) -> Parsed<Sought> {
        let is_before = |key| order.compare_keys(key, target) == Ordering::Less;
        if let Some(mark) = self.marks.get(before) {
            let key = key_at(payload, mark.at());
            let of_target = || mark.is_first_of_row() && key::row(key) == key::row(target);
            if before == 0 || of_target() {
                return match is_before(key) {
                    true => Ok(Sought::Elsewhere),
                    // All in front of it are of lesser rows.
                    false => self.span(payload, mark.at()).map(Sought::At),
                };
            }
        }
        let start = self.marks[before - 1].at();
        let end = self.marks.get(before).map(|mark| mark.at());
        let mut span = self.span(payload, start)?;
        if !is_before(span.key(payload)) {
            return Ok(Sought::Elsewhere);
        }
        loop {
            let at = span.end;
            let Some(next) = self.after(payload, &span)? else { return Ok(Sought::BehindLast) };
            if !is_before(next.key(payload)) {
                return Ok(Sought::At(next));
            }
            if end == Some(at) {
                return Ok(Sought::Elsewhere);
            }
            span = next;
        }
    }

    /// The first cell at or behind `target`, behind `from`, which is before it; there must be one. The next few cells
    /// are tried before the search: most forward seeks are to the next column or the next row.
    pub(crate) fn seek_forward(
        &self,
        payload: &[u8],
        order: CellOrder,
        target: &[u8],
        mut from: Span,
    ) -> Parsed<Span> {
        for _ in 0..NEAR {
            from = self.after(payload, &from)?.ok_or(Fault::Damaged("block ends before the sought key"))?;
            if order.compare_keys(from.key(payload), target) != Ordering::Less {
                return Ok(from);
            }
        }
        self.seek(payload, None, order, target)?.ok_or(Fault::Damaged("block ends before the sought key"))
    }

    /// The last cell before `target`, which the first cell must be.
    pub(crate) fn seek_before(&self, payload: &[u8], order: CellOrder, target: &[u8]) -> Parsed<Span> {
        let before = self.marks_before(payload, order, target);
        let mut span = self.span(payload, self.marks[before.saturating_sub(1)].at())?;
        while let Some(next) = self.after(payload, &span)? {
            if order.compare_keys(next.key(payload), target) != Ordering::Less {
                break;
            }
            span = next;
        }
        Ok(span)
    }

    /// How many marks are at cells before `target`.
    fn marks_before(&self, payload: &[u8], order: CellOrder, target: &[u8]) -> usize {
        let is_before =
            |mark: &Mark| order.compare_keys(key_at(payload, mark.at()), target) == Ordering::Less;
        self.marks.partition_point(is_before)
    }

    /// The same if the row of `target` begins as those of the block do, else any number. `alike` are the marks of its head.
    fn marks_before_in(&self, payload: &[u8], order: CellOrder, target: &[u8], alike: Range<usize>) -> usize {
        let is_before =
            |mark: &Mark| order.compare_keys(key_at(payload, mark.at()), target) == Ordering::Less;
        alike.start + self.marks[alike].partition_point(is_before)
    }

    /// The marks of rows with the head of `row`.
    #[inline]
    fn marks_alike(&self, row: &[u8]) -> Range<usize> {
        self.heads.alike(row, self.marks.len(), |at| self.marks[at].head)
    }
}

/// Where a seek between two marks came.
enum Sought {
    At(Span),
    BehindLast,
    /// The target is not between them.
    Elsewhere,
}

impl Span {
    /// Where the cell starts: its lengths are in front of its key.
    #[inline]
    pub(crate) fn start(&self) -> u32 {
        self.key_at - LENGTHS_LEN as u32
    }

    /// The cell within its payload.
    #[inline]
    pub(crate) fn cell<'a>(&self, payload: &'a [u8]) -> Cell<'a> {
        Cell {
            key: self.key(payload),
            value: &payload[self.value_range()],
            tags: self.tags(payload),
            seq_id: self.seq_id,
        }
    }

    /// The key within its payload.
    #[inline]
    pub(crate) fn key<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.key_at as usize..][..self.key_len as usize]
    }

    /// Where the value is within its payload.
    #[inline]
    pub(crate) fn value_range(&self) -> Range<usize> {
        let at = (self.key_at + self.key_len) as usize;
        at..at + self.value_len as usize
    }

    /// The tags within their payload.
    #[inline]
    pub(crate) fn tags<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.tags_at as usize..][..self.tags_len as usize]
    }
}

#[inline]
fn be_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(*bytes[at..].first_chunk().expect("the walk at load saw these bytes"))
}

/// The key of a cell that the walk at load has checked.
#[inline]
fn key_at(payload: &[u8], cell_at: u32) -> &[u8] {
    let at = cell_at as usize;
    &payload[at + 8..][..be_u32(payload, at) as usize]
}

/// Finds the parts of the cell at `at` by its lengths. This is the inner loop of every scan: one check for key and value
/// together, and the short forms of the rest first.
#[inline]
fn span_at(cells: &[u8], at: usize, fields: CellFields) -> Parsed<Span> {
    const CUT: &str = "cell longer than its block";
    let Some([k0, k1, k2, k3, v0, v1, v2, v3]) = cells.get(at..).and_then(<[u8]>::first_chunk) else {
        return Err(Fault::Damaged(CUT));
    };
    let (key_len, value_len) =
        (u32::from_be_bytes([*k0, *k1, *k2, *k3]), u32::from_be_bytes([*v0, *v1, *v2, *v3]));
    let key_at = at + 8;
    let mut end = key_at + key_len as usize + value_len as usize;
    if end > cells.len() {
        return Err(Fault::Damaged(CUT));
    }
    let mut span = Span { key_at: key_at as u32, key_len, value_len, ..Span::default() };
    if fields.tags {
        let len = *cells[end..].first_chunk().ok_or(Fault::Damaged(CUT))?;
        (span.tags_at, span.tags_len) = (end as u32 + 2, u32::from(u16::from_be_bytes(len)));
        end += 2 + span.tags_len as usize;
        if end > cells.len() {
            return Err(Fault::Damaged(CUT));
        }
    }
    if fields.mvcc {
        let mut input = Input::starting(cells, end);
        span.seq_id = input.seq_id()?;
        end = input.position();
    }
    span.end = end as u32;
    Ok(span)
}

/// Checks the cells in `start..end`; gives their marks, without heads, and where the last one starts. If `rows` are
/// given, the row starts must be exactly those.
fn walk(
    payload: &[u8],
    start: usize,
    end: usize,
    fields: CellFields,
    order: CellOrder,
    rows: Option<&[u8]>,
) -> Parsed<(Vec<Mark>, u32)> {
    let cells = payload.get(..end).ok_or(Fault::Damaged("cells longer than their block"))?;
    if start >= end {
        return Err(Fault::Damaged("data block without cells"));
    }
    let mut stored_rows = rows.map(|rows| rows.chunks_exact(4));
    let mut marks: Vec<Mark> = Vec::new();
    let mut previous: Option<&[u8]> = None;
    let (mut at, mut last, mut since_mark) = (start, start, 0);
    while at < end {
        let span = span_at(cells, at, fields)?;
        let key = span.key(cells);
        key::check(key)?;
        let first_of_row = starts_row(order, previous, key)?;
        if first_of_row
            && let Some(stored) = &mut stored_rows
            && stored.next() != Some(&((at - start) as u32).to_be_bytes()[..])
        {
            return Err(Fault::Damaged("row index does not match the rows"));
        }
        let is_apart = marks.last().is_none_or(|mark| at - mark.at() as usize >= MARK_BYTES_MIN);
        if (first_of_row && is_apart) || since_mark == MARK_EVERY {
            marks.push(Mark::new(at, first_of_row));
            since_mark = 0;
        }
        since_mark += 1;
        previous = Some(key);
        last = at;
        at = span.end as usize;
    }
    if stored_rows.is_some_and(|mut stored| stored.next().is_some()) {
        return Err(Fault::Damaged("row index does not match the rows"));
    }
    marks.shrink_to_fit();
    Ok((marks, last as u32))
}

/// Whether `key` is of another row than the key before it; refuses keys out of order.
pub(crate) fn starts_row(order: CellOrder, previous: Option<&[u8]>, key: &[u8]) -> Parsed<bool> {
    let Some(previous) = previous else { return Ok(true) };
    match order.compare_rows(key::row(previous), key::row(key)) {
        Ordering::Less => Ok(true),
        Ordering::Equal if compare_within_row(previous, key) != Ordering::Greater => Ok(false),
        _ => Err(Fault::Damaged("cells out of order")),
    }
}
