//! Consecutive cells with complete keys: blocks without encoding, and those of ROW_INDEX_V1.
//!
//! ```text
//! cell: key length 4 | value length 4 | key | value | [tags length 2 | tags]
//!       | [sequence id, vlong]
//! ROW_INDEX_V1 adds: row count 4 | offset of each row's first cell 4 * | bytes of all cells 4
//! ```
//!
//! Loading a block walks all cells once. It checks lengths, keys and order, and collects the
//! *anchors* that seeks search: the first cells of rows, and every [`ANCHOR_EVERY`]th cell of wide
//! rows. Afterwards a cell is a [`CellSpan`] of offsets; nothing is copied.
//!
//! A seek into a block that is not in the CPU caches mostly waits for memory. So each anchor
//! contains the [head](crate::heads) of its row, and most seeks read only a few adjacent anchors
//! and one cell.

use std::cmp::Ordering;
use std::ops::Range;

use base::prefetch::prefetch;
use cell::cell::LENGTHS_LEN;
use cell::order::compare_within_row;
use cell::{Cell, CellOrder, key};

use crate::error::{Fault, Parsed};
use crate::heads::HeadSearch;
use crate::input::Input;

/// Cells of one row between two anchors. Walking sixteen keys takes less time than the row search
/// of a block.
const ANCHOR_EVERY: usize = 16;
/// Minimum distance of anchors in bytes. An anchor per row of small cells would take memory
/// comparable to the cells, so a seek walks a few cells instead.
const ANCHOR_BYTES_MIN: usize = 96;

/// Maximum bytes of anchors to prefetch for a row: the anchors of one part of a block of small
/// cells.
const ANCHORS_BYTES_FETCHED_MAX: usize = 512;
/// Bytes of a cell to prefetch: enough for a small one.
const CELL_BYTES_FETCHED: usize = 192;

/// Number of cells that a forward seek compares before it searches.
const CELLS_BEFORE_SEARCH: usize = 4;

/// The optional fields of each cell of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellFields {
    pub(crate) tags: bool,
    pub(crate) mvcc: bool,
}

/// Positions of a cell's parts as offsets into the block's payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CellSpan {
    pub(crate) key_at: u32,
    pub(crate) key_len: u32,
    pub(crate) value_len: u32,
    pub(crate) tags_at: u32,
    pub(crate) tags_len: u32,
    /// Offset of the next cell.
    pub(crate) end: u32,
    pub(crate) seq_id: u64,
}

/// The search structure of a block.
#[derive(Debug)]
pub(crate) struct PlainCells {
    fields: CellFields,
    start: u32,
    end: u32,
    /// Offset of the last cell.
    last: u32,
    head_search: HeadSearch<u32>,
    /// In ascending order. The first anchor is at the first cell.
    anchors: Box<[Anchor]>,
}

/// A cell at which a search may begin.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// The head of the cell's row.
    head: u32,
    /// Offset of the cell in the payload, and a flag if it is the first cell of its row in the
    /// block.
    at: u32,
}

impl Anchor {
    // Payloads are much smaller than 2 GiB, so this bit is free.
    const FIRST_OF_ROW: u32 = 1 << 31;

    fn new(at: usize, first_of_row: bool) -> Anchor {
        Anchor { head: 0, at: at as u32 | if first_of_row { Anchor::FIRST_OF_ROW } else { 0 } }
    }

    #[inline]
    fn at(self) -> u32 {
        self.at & !Anchor::FIRST_OF_ROW
    }

    #[inline]
    fn is_first_of_row(self) -> bool {
        self.at & Anchor::FIRST_OF_ROW != 0
    }
}

impl PlainCells {
    /// Checks a payload that has only cells from `start` on.
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
        let end = cells_len.and_then(|len| start.checked_add(len)).ok_or(Fault::Damaged("no row index"))?;
        let mut index = Input::starting(payload, end);
        let count = index.u32("row index truncated")?;
        let rows = index.take((count as usize).saturating_mul(4), "row index truncated")?;
        index.u32("row index truncated")?;
        index.end("row index has trailing bytes")?;
        PlainCells::walked(payload, start, end, fields, order, Some(rows))
    }

    /// Checks the cells in `start..end`. If `rows` is given, it must be exactly the row starts.
    fn walked(
        payload: &[u8],
        start: usize,
        end: usize,
        fields: CellFields,
        order: CellOrder,
        rows: Option<&[u8]>,
    ) -> Parsed<PlainCells> {
        let (anchors, last) = walk(payload, start, end, fields, order, rows)?;
        let mut cells = PlainCells {
            fields,
            start: start as u32,
            end: end as u32,
            last,
            head_search: HeadSearch::none(),
            anchors: anchors.into_boxed_slice(),
        };
        let row_at = |at| key::row(key_at(payload, at));
        cells.head_search = HeadSearch::of_rows(order, row_at(cells.start), row_at(last));
        for anchor in &mut cells.anchors {
            anchor.head = cells.head_search.head(row_at(anchor.at()));
        }
        cells.head_search.set_samples(cells.anchors.len(), |at| cells.anchors[at].head);
        Ok(cells)
    }

    /// Heap bytes, without the payload.
    pub(crate) fn heap_len(&self) -> usize {
        size_of_val(&*self.anchors)
    }

    /// The cell at offset `at`, which must be the start of a cell.
    #[inline]
    pub(crate) fn span(&self, payload: &[u8], at: u32) -> Parsed<CellSpan> {
        span_at(&payload[..self.end as usize], at as usize, self.fields)
    }

    /// The first cell.
    pub(crate) fn first(&self, payload: &[u8]) -> Parsed<CellSpan> {
        self.span(payload, self.start)
    }

    /// The last cell.
    pub(crate) fn last(&self, payload: &[u8]) -> Parsed<CellSpan> {
        self.span(payload, self.last)
    }

    /// The cell after `span`; `None` after the last.
    #[inline]
    pub(crate) fn after(&self, payload: &[u8], span: &CellSpan) -> Parsed<Option<CellSpan>> {
        if span.end >= self.end { Ok(None) } else { self.span(payload, span.end).map(Some) }
    }

    /// Offset of the last anchor at the start of a row, or 0. All rows before it end in this block.
    pub(crate) fn last_row_start(&self) -> u32 {
        self.anchors.iter().rev().find(|anchor| anchor.is_first_of_row()).map_or(0, |anchor| anchor.at())
    }

    /// Offset of the first cell at or after `target`; the end of the cells if there is none.
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

    /// Prefetches the anchors that a seek to `row` reads first. Returns their indexes.
    pub(crate) fn prefetch_anchors(&self, row: &[u8]) -> Range<usize> {
        let range = self.head_search.search_range(row, self.anchors.len());
        prefetch(&self.anchors[range.clone()], ANCHORS_BYTES_FETCHED_MAX);
        range
    }

    /// The index of the anchor at the cell that a seek to `row` most likely finds. `anchors` is the
    /// result of [`prefetch_anchors`](Self::prefetch_anchors).
    pub(crate) fn likely_anchor(&self, row: &[u8], anchors: Range<usize>) -> usize {
        self.head_search.first_equal_in(row, anchors, |at| self.anchors[at].head)
    }

    /// Prefetches the cell at an anchor, if there is an anchor with this index.
    pub(crate) fn prefetch_cell(&self, payload: &[u8], anchor: usize) {
        if let Some(anchor) = self.anchors.get(anchor) {
            prefetch(&payload[anchor.at() as usize..], CELL_BYTES_FETCHED);
        }
    }

    /// The first cell at or after `target`; `None` if all cells are before it. `likely` is the
    /// index of the anchor of the target's row, if known.
    pub(crate) fn seek(
        &self,
        payload: &[u8],
        likely: Option<usize>,
        order: CellOrder,
        target: &[u8],
    ) -> Parsed<Option<CellSpan>> {
        let first_of_row = |anchor| match key::is_first_on_row(target) {
            true => self.first_of_row(payload, anchor, key::row(target)),
            false => Ok(None),
        };
        if let Some(likely) = likely
            && let Some(span) = first_of_row(likely)?
        {
            return Ok(Some(span));
        }
        let equal = self.equal_anchors(key::row(target));
        if likely != Some(equal.start)
            && let Some(span) = first_of_row(equal.start)?
        {
            return Ok(Some(span));
        }
        let before = self.anchors_before_in(payload, order, target, equal);
        match self.seek_between(payload, order, target, before)? {
            SeekResult::At(span) => Ok(Some(span)),
            SeekResult::AfterLast => Ok(None),
            // Heads prove nothing for rows without the common prefix of this block's rows.
            SeekResult::NotBetween => {
                let before = self.anchors_before(payload, order, target);
                match self.seek_between(payload, order, target, before)? {
                    SeekResult::At(span) => Ok(Some(span)),
                    SeekResult::AfterLast => Ok(None),
                    SeekResult::NotBetween => Err(Fault::Damaged("cells out of order")),
                }
            }
        }
    }

    /// The first cell of `row`, and the offset of the next anchor. `None` unless `row` starts at an
    /// anchor and the next anchor is the start of a row too. Rows without an anchor may be between
    /// them. `likely` is as for [`seek`](Self::seek).
    pub(crate) fn row_between_anchors(
        &self,
        payload: &[u8],
        likely: Option<usize>,
        row: &[u8],
    ) -> Parsed<Option<(CellSpan, u32)>> {
        let anchor = likely.unwrap_or_else(|| self.equal_anchors(row).start);
        let Some(end) = self.anchors.get(anchor + 1).filter(|next| next.is_first_of_row()) else {
            return Ok(None);
        };
        Ok(self.first_of_row(payload, anchor, row)?.map(|span| (span, end.at())))
    }

    /// The cell of an anchor, if it is the first cell of `row`.
    #[inline]
    fn first_of_row(&self, payload: &[u8], anchor: usize, row: &[u8]) -> Parsed<Option<CellSpan>> {
        let Some(anchor) = self.anchors.get(anchor).filter(|anchor| anchor.is_first_of_row()) else {
            return Ok(None);
        };
        let is_it = key::is_same_row(key::row(key_at(payload, anchor.at())), row);
        if is_it { self.span(payload, anchor.at()).map(Some) } else { Ok(None) }
    }

    /// Searches between anchor `before - 1` and anchor `before`. Returns
    /// [`SeekResult::NotBetween`] if the target is not between them.
    #[inline]
    fn seek_between(
        &self,
        payload: &[u8],
        order: CellOrder,
        target: &[u8],
        before: usize,
    ) -> Parsed<SeekResult> {
        let is_before = |key| order.compare_keys(key, target) == Ordering::Less;
        if let Some(anchor) = self.anchors.get(before) {
            let key = key_at(payload, anchor.at());
            let of_target = || anchor.is_first_of_row() && key::row(key) == key::row(target);
            if before == 0 || of_target() {
                return match is_before(key) {
                    true => Ok(SeekResult::NotBetween),
                    // All cells before this one belong to lesser rows.
                    false => self.span(payload, anchor.at()).map(SeekResult::At),
                };
            }
        }
        let start = self.anchors[before - 1].at();
        let end = self.anchors.get(before).map(|anchor| anchor.at());
        let mut span = self.span(payload, start)?;
        if !is_before(span.key(payload)) {
            return Ok(SeekResult::NotBetween);
        }
        loop {
            let at = span.end;
            let Some(next) = self.after(payload, &span)? else { return Ok(SeekResult::AfterLast) };
            if !is_before(next.key(payload)) {
                return Ok(SeekResult::At(next));
            }
            if end == Some(at) {
                return Ok(SeekResult::NotBetween);
            }
            span = next;
        }
    }

    /// The first cell at or after `target`, which must exist. `from` must be before `target`.
    /// Compares the next few cells before it searches: most forward seeks are to the next column or
    /// the next row.
    pub(crate) fn seek_forward(
        &self,
        payload: &[u8],
        order: CellOrder,
        target: &[u8],
        mut from: CellSpan,
    ) -> Parsed<CellSpan> {
        for _ in 0..CELLS_BEFORE_SEARCH {
            from = self.after(payload, &from)?.ok_or(Fault::Damaged("block ends before the sought key"))?;
            if order.compare_keys(from.key(payload), target) != Ordering::Less {
                return Ok(from);
            }
        }
        self.seek(payload, None, order, target)?.ok_or(Fault::Damaged("block ends before the sought key"))
    }

    /// The last cell before `target`. The first cell must be before it.
    pub(crate) fn seek_before(&self, payload: &[u8], order: CellOrder, target: &[u8]) -> Parsed<CellSpan> {
        let before = self.anchors_before(payload, order, target);
        let mut span = self.span(payload, self.anchors[before.saturating_sub(1)].at())?;
        while let Some(next) = self.after(payload, &span)? {
            if order.compare_keys(next.key(payload), target) != Ordering::Less {
                break;
            }
            span = next;
        }
        Ok(span)
    }

    /// Number of anchors at cells before `target`.
    fn anchors_before(&self, payload: &[u8], order: CellOrder, target: &[u8]) -> usize {
        let is_before =
            |anchor: &Anchor| order.compare_keys(key_at(payload, anchor.at()), target) == Ordering::Less;
        self.anchors.partition_point(is_before)
    }

    /// Like `anchors_before`, but searches only `equal`, the anchors with the head of the target's
    /// row. The result is meaningless if that row lacks the common prefix of this block's rows.
    fn anchors_before_in(
        &self,
        payload: &[u8],
        order: CellOrder,
        target: &[u8],
        equal: Range<usize>,
    ) -> usize {
        let is_before =
            |anchor: &Anchor| order.compare_keys(key_at(payload, anchor.at()), target) == Ordering::Less;
        equal.start + self.anchors[equal].partition_point(is_before)
    }

    /// The anchors whose head equals that of `row`.
    #[inline]
    fn equal_anchors(&self, row: &[u8]) -> Range<usize> {
        self.head_search.equal_range(row, self.anchors.len(), |at| self.anchors[at].head)
    }
}

/// The result of a seek between two anchors.
enum SeekResult {
    At(CellSpan),
    AfterLast,
    /// The target is not between the anchors.
    NotBetween,
}

impl CellSpan {
    /// Offset of the cell: its lengths precede its key.
    #[inline]
    pub(crate) fn start(&self) -> u32 {
        self.key_at - LENGTHS_LEN as u32
    }

    /// The cell in `payload`.
    #[inline]
    pub(crate) fn cell<'a>(&self, payload: &'a [u8]) -> Cell<'a> {
        Cell {
            key: self.key(payload),
            value: &payload[self.value_range()],
            tags: self.tags(payload),
            seq_id: self.seq_id,
        }
    }

    /// The key in `payload`.
    #[inline]
    pub(crate) fn key<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.key_at as usize..][..self.key_len as usize]
    }

    /// Position of the value in the payload.
    #[inline]
    pub(crate) fn value_range(&self) -> Range<usize> {
        let at = (self.key_at + self.key_len) as usize;
        at..at + self.value_len as usize
    }

    /// The tags in `payload`.
    #[inline]
    pub(crate) fn tags<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.tags_at as usize..][..self.tags_len as usize]
    }
}

#[inline]
fn be_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(*bytes[at..].first_chunk().expect("these bytes were checked on load"))
}

/// The key of a cell that was checked on load.
#[inline]
fn key_at(payload: &[u8], cell_at: u32) -> &[u8] {
    let at = cell_at as usize;
    &payload[at + 8..][..be_u32(payload, at) as usize]
}

/// Locates the parts of the cell at `at`. This is the inner loop of every scan: it checks key and
/// value together, and tries the short forms of the other fields first.
#[inline]
fn span_at(cells: &[u8], at: usize, fields: CellFields) -> Parsed<CellSpan> {
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
    let mut span = CellSpan { key_at: key_at as u32, key_len, value_len, ..CellSpan::default() };
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

/// Checks the cells in `start..end`. Returns their anchors, without heads, and the offset of the
/// last cell. If `rows` is given, it must be exactly the row starts.
fn walk(
    payload: &[u8],
    start: usize,
    end: usize,
    fields: CellFields,
    order: CellOrder,
    rows: Option<&[u8]>,
) -> Parsed<(Vec<Anchor>, u32)> {
    let cells = payload.get(..end).ok_or(Fault::Damaged("cells longer than their block"))?;
    if start >= end {
        return Err(Fault::Damaged("data block without cells"));
    }
    let mut stored_rows = rows.map(|rows| rows.chunks_exact(4));
    let mut anchors: Vec<Anchor> = Vec::new();
    let mut previous: Option<&[u8]> = None;
    let (mut at, mut last, mut since_anchor) = (start, start, 0);
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
        let is_distant = anchors.last().is_none_or(|anchor| at - anchor.at() as usize >= ANCHOR_BYTES_MIN);
        if (first_of_row && is_distant) || since_anchor == ANCHOR_EVERY {
            anchors.push(Anchor::new(at, first_of_row));
            since_anchor = 0;
        }
        since_anchor += 1;
        previous = Some(key);
        last = at;
        at = span.end as usize;
    }
    if stored_rows.is_some_and(|mut stored| stored.next().is_some()) {
        return Err(Fault::Damaged("row index does not match the rows"));
    }
    anchors.shrink_to_fit();
    Ok((anchors, last as u32))
}

/// Whether `key` belongs to another row than the previous key. Fails if the keys are out of order.
pub(crate) fn starts_row(order: CellOrder, previous: Option<&[u8]>, key: &[u8]) -> Parsed<bool> {
    let Some(previous) = previous else { return Ok(true) };
    match order.compare_rows(key::row(previous), key::row(key)) {
        Ordering::Less => Ok(true),
        Ordering::Equal if compare_within_row(previous, key) != Ordering::Greater => Ok(false),
        _ => Err(Fault::Damaged("cells out of order")),
    }
}
