//! Merges the cells of several sources into one sorted sequence.
//!
//! Among equal keys, the greater sequence id comes first, then the newer source. Moves are ordered
//! first, and [`Merge::settle`] performs them for all sources that have to move. One miss names the
//! blocks of all sources that miss one; all other sources have completed their move. After a
//! successful settle and until the next order, the merge is at a cell.
//!
//! Sources that are at a cell are kept sorted, the next one last. If a source moves and is still
//! the next one, this costs one comparison, however many sources there are.

use std::cmp::Ordering;

use bytes::Bytes;
use cell::{Cell, CellOrder, CellType, LATEST_TIMESTAMP, OLDEST_TIMESTAMP, key};
use hfile::{BlockSource, FilterCounts, Miss, RowSlice, Stop};

use crate::filter::Hint;
use crate::scanner::source::{Order, Source};

/// The sources of one store, and their positions.
pub(crate) struct Merge {
    order: CellOrder,
    // Newest first: among equal cells, the smaller index is first.
    sources: Vec<Source>,
    // Sources at a cell; the one with the smallest cell is last.
    ready: Vec<u16>,
    // Sources with an ordered move.
    moving: Vec<u16>,
    // The key to which the moving sources go.
    target: Vec<u8>,
    // Reversed scans: sources that are at the last cell before a bound, or at no cell. They take no
    // part in the current row.
    parked: Vec<u16>,
    // Whether the moving sources go to the last cell before the target.
    backward: bool,
}

impl Merge {
    /// Merges `sources`, newest first. The merge has no position yet.
    pub(crate) fn new(order: CellOrder, sources: Vec<Source>) -> Merge {
        assert!(sources.len() <= usize::from(u16::MAX), "a store has far fewer files");
        let count = sources.len();
        Merge {
            order,
            sources,
            ready: Vec::with_capacity(count),
            moving: Vec::with_capacity(count),
            target: Vec::new(),
            parked: Vec::new(),
            backward: false,
        }
    }

    /// Merges `sources`, newest first, all of them settled. The merge starts at the first of their
    /// cells.
    pub(crate) fn of_settled(order: CellOrder, sources: Vec<Source>) -> Merge {
        let mut merge = Merge::new(order, sources);
        debug_assert!(
            merge.sources.iter().all(|source| source.is_ordered(Order::Stay)),
            "the sources have settled"
        );
        for at in 0..merge.sources.len() as u16 {
            merge.insert_ready(at);
        }
        merge
    }

    /// The current cell, `None` at the end. Valid once the merge has settled.
    #[inline]
    pub(crate) fn cell(&self) -> Option<Cell<'_>> {
        debug_assert!(self.moving.is_empty(), "settle first");
        self.ready.last().and_then(|at| self.sources[usize::from(*at)].cell())
    }

    /// The value of the current cell, sharing the memory of its block, if it fills enough of the
    /// block.
    pub(crate) fn large_value(&self) -> Option<Bytes> {
        self.ready.last().and_then(|at| self.sources[usize::from(*at)].large_value())
    }

    /// Takes the counts of Bloom filter checks that were not reported yet.
    pub(crate) fn take_filter_lookups(&mut self) -> FilterCounts {
        let mut lookups = FilterCounts::default();
        self.sources.iter_mut().for_each(|source| lookups += source.take_filter_lookups());
        lookups
    }

    /// Whether the current or moving source is a memstore.
    pub(crate) fn is_in_memstore(&self) -> bool {
        let current = self.moving.last().or(self.ready.last());
        current.is_some_and(|at| self.sources[usize::from(*at)].is_memstore())
    }

    /// The whole rows from the current cell up to the row `stop` (exclusive; empty: no bound) that
    /// only one source has, if they lie in one block. The merge does not move.
    pub(crate) fn row_slice(&self, stop: &[u8]) -> Option<RowSlice> {
        debug_assert!(self.moving.is_empty(), "settle first");
        let (current, others) = self.ready.split_last()?;
        let others_row =
            others.last().and_then(|at| self.sources[usize::from(*at)].cell()).map(|cell| cell.row());
        let stop = match others_row {
            Some(row) if stop.is_empty() || self.order.compare_rows(row, stop).is_lt() => row,
            _ => stop,
        };
        self.sources[usize::from(*current)].row_slice(stop)
    }

    /// Moves to where the reading of `slice` has stopped. The slice must have begun at the current
    /// cell.
    pub(crate) fn resume(&mut self, slice: &RowSlice) {
        if let Some(at) = self.ready.pop() {
            self.sources[usize::from(at)].resume(slice);
            self.insert_ready(at);
        }
    }

    /// Orders a move to the next cell.
    #[inline]
    pub(crate) fn next(&mut self) {
        debug_assert!(self.moving.is_empty(), "settle first");
        if let Some(at) = self.ready.pop() {
            self.sources[usize::from(at)].order(Order::Next);
            self.moving.push(at);
        }
    }

    /// Orders a move to the first cell of `row` or after it, from any position.
    pub(crate) fn seek_row(&mut self, row: &[u8]) {
        set_first_on_row(&mut self.target, row);
        self.move_all(Order::Seek);
    }

    /// Orders a move to the first cell after `row`, from any position.
    pub(crate) fn seek_after_row(&mut self, row: &[u8]) {
        set_last_on_row(&mut self.target, row);
        self.move_all(Order::Seek);
    }

    fn move_all(&mut self, order: Order) {
        debug_assert!(self.moving.is_empty(), "settle first");
        self.ready.clear();
        self.parked.clear();
        self.backward = order == Order::SeekBefore;
        for (at, source) in self.sources.iter_mut().enumerate() {
            source.order(order);
            self.moving.push(at as u16);
        }
    }

    /// Orders a move to the last cell not after `bound`, for the start of a reversed scan.
    pub(crate) fn seek_before(&mut self, bound: ReverseStart<'_>) {
        match bound {
            ReverseStart::End => set_last_on_row(&mut self.target, &[u8::MAX; cell::cell::ROW_LEN_MAX]),
            ReverseStart::EndOf(row) => set_last_on_row(&mut self.target, row),
            ReverseStart::StartOf(row) => set_first_on_row(&mut self.target, row),
        }
        self.move_all(Order::SeekBefore);
    }

    /// Orders a move to before `row`, when a reversed scan has read that row. Sources without a
    /// cell of the row are there already.
    pub(crate) fn leave_row_backward(&mut self, row: &[u8]) {
        debug_assert!(self.moving.is_empty(), "settle first");
        set_first_on_row(&mut self.target, row);
        self.ready.clear();
        self.backward = true;
        for at in 0..self.sources.len() as u16 {
            if !self.parked.contains(&at) {
                self.sources[usize::from(at)].order(Order::SeekBefore);
                self.moving.push(at);
            }
        }
    }

    /// The greatest row before the bound. Valid once the merge has settled there.
    pub(crate) fn row_before(&self) -> Option<&[u8]> {
        debug_assert!(self.backward && self.moving.is_empty(), "settle first");
        self.greatest_parked()
    }

    fn greatest_parked(&self) -> Option<&[u8]> {
        let cells = self.parked.iter().filter_map(|at| self.sources[usize::from(*at)].cell());
        cells.map(|cell| cell.row()).max_by(|left, right| self.order.compare_rows(left, right))
    }

    /// Orders a move to the first cell of `row`, for those sources that have a cell of it.
    pub(crate) fn enter_row(&mut self, row: &[u8]) {
        debug_assert!(self.backward && self.moving.is_empty(), "settle first");
        set_first_on_row(&mut self.target, row);
        self.backward = false;
        let (sources, moving) = (&mut self.sources, &mut self.moving);
        self.parked.retain(|at| {
            let source = &mut sources[usize::from(*at)];
            let stays = source.cell().is_none_or(|cell| cell.row() != row);
            if !stays {
                source.order(Order::Seek);
                moving.push(*at);
            }
            stays
        });
    }

    /// Orders a move past the current row.
    pub(crate) fn pass_row(&mut self) {
        let Some(current) = self.ready.last().and_then(|at| self.sources[usize::from(*at)].cell()) else {
            return;
        };
        set_last_on_row(&mut self.target, current.row());
        self.move_forward();
    }

    /// Orders a move past the current column, or to the later column `hint` of the same row.
    ///
    /// At the empty qualifier it moves only to the next cell: markers of the whole family, which
    /// must be judged, may be among its versions.
    pub(crate) fn pass_column(&mut self, hint: Option<&[u8]>) {
        let Some(current) = self.ready.last().and_then(|at| self.sources[usize::from(*at)].cell()) else {
            return;
        };
        if current.qualifier().is_empty() {
            return self.next();
        }
        match hint {
            Some(hint) => set_first_on_column(&mut self.target, &current, hint),
            None => set_last_on_column(&mut self.target, &current),
        }
        self.move_forward();
    }

    /// Orders a move to a position after the current cell, given by a filter's hint.
    pub(crate) fn seek_hint(&mut self, hint: Hint<'_>) {
        let Some(current) = self.ready.last().and_then(|at| self.sources[usize::from(*at)].cell()) else {
            return;
        };
        match hint {
            Hint::Row(row) => set_first_on_row(&mut self.target, row),
            Hint::Column(qualifier) => set_first_on_column(&mut self.target, &current, qualifier),
            Hint::Version(timestamp) => set_version(&mut self.target, &current, timestamp),
            Hint::ColumnEnd => set_last_on_column(&mut self.target, &current),
        }
        self.move_forward();
    }

    /// Releases all sources. The merge has no more cells.
    pub(crate) fn close(&mut self) {
        self.sources.clear();
        self.ready.clear();
        self.moving.clear();
        self.parked.clear();
    }

    /// The position at which another merge can resume. Cells up to the end of the row `passed` are
    /// skipped; without it, the merge must have settled.
    pub(crate) fn position(&self, passed: Option<&[u8]>) -> MergePosition {
        debug_assert!(passed.is_some() || self.moving.is_empty(), "settle first");
        if self.sources.is_empty() {
            return MergePosition::End { backward: self.backward };
        }
        if self.backward {
            return MergePosition::Before(self.target.clone());
        }
        let key = match self.moving.first() {
            None => match self.cell() {
                Some(cell) => cell.key,
                None => return MergePosition::End { backward: false },
            },
            // The move starts within the row that is passed.
            Some(at) if self.sources[usize::from(*at)].is_ordered(Order::Next) => &[],
            Some(_) => &self.target[..],
        };
        let mut after = Vec::new();
        if let Some(row) = passed {
            set_last_on_row(&mut after, row);
            if key.is_empty() || self.order.compare_keys(key, &after).is_lt() {
                return MergePosition::From(after);
            }
        }
        MergePosition::From(key.to_vec())
    }

    /// The position of a reversed scan in which the row `found` was entered. If this merge has
    /// cells of the row, a merge that resumes there finds the row again; otherwise it finds the row
    /// before.
    pub(crate) fn position_before_row(&self, found: &[u8]) -> MergePosition {
        // Sources that entered the row are not parked, even if none of their cells in it is
        // visible.
        let is_in = self.parked.len() < self.sources.len();
        match if is_in { Some(found) } else { self.greatest_parked() } {
            Some(row) => {
                let mut key = Vec::new();
                set_last_on_row(&mut key, row);
                MergePosition::Before(key)
            }
            None => MergePosition::End { backward: true },
        }
    }

    /// Orders a move to the position of another merge of the same cells.
    pub(crate) fn resume_at(&mut self, position: MergePosition) {
        match position {
            MergePosition::From(key) => {
                self.target = key;
                self.move_all(Order::Seek);
            }
            MergePosition::Before(key) => {
                self.target = key;
                self.move_all(Order::SeekBefore);
            }
            MergePosition::End { backward } => {
                self.close();
                self.backward = backward;
            }
        }
    }

    fn move_forward(&mut self) {
        while let Some(at) = self.ready.last().copied() {
            let source = &mut self.sources[usize::from(at)];
            let before = source
                .cell()
                .is_some_and(|cell| self.order.compare_keys(cell.key, &self.target) == Ordering::Less);
            if !before {
                break;
            }
            source.order(Order::SeekForward);
            self.ready.pop();
            self.moving.push(at);
        }
    }

    /// Performs the ordered moves.
    ///
    /// # Errors
    /// [`Stop::Miss`] with the blocks of all sources that miss one. Supply them and call again.
    #[inline]
    pub(crate) fn settle(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        match self.moving[..] {
            [] => Ok(()),
            [at] => {
                self.sources[usize::from(at)].settle(self.order, &self.target, blocks)?;
                self.moving.pop();
                self.finish_move(at);
                Ok(())
            }
            _ => self.settle_all(blocks),
        }
    }

    fn settle_all(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        let mut moving = std::mem::take(&mut self.moving);
        let mut missed: Option<Miss> = None;
        let mut failed = None;
        moving.retain(|at| match self.sources[usize::from(*at)].settle(self.order, &self.target, blocks) {
            Ok(()) => {
                self.finish_move(*at);
                false
            }
            Err(Stop::Miss(miss)) => {
                match &mut missed {
                    Some(missed) => missed.merge(miss),
                    None => missed = Some(miss),
                }
                true
            }
            Err(stop) => {
                failed.get_or_insert(stop);
                true
            }
        });
        self.moving = moving;
        match failed.or(missed.map(Stop::Miss)) {
            Some(stop) => Err(stop),
            None => Ok(()),
        }
    }

    /// A source has moved. Backward, it is parked; otherwise it is sorted into `ready`.
    #[inline]
    fn finish_move(&mut self, at: u16) {
        if self.backward {
            self.parked.push(at);
        } else {
            self.insert_ready(at);
        }
        debug_assert!(
            self.ready.len() + self.moving.len() + self.parked.len() <= self.sources.len(),
            "no source is in two lists"
        );
    }

    /// Inserts a source into `ready`, if it is at a cell.
    #[inline]
    fn insert_ready(&mut self, at: u16) {
        let Some(cell) = self.sources[usize::from(at)].cell() else {
            return;
        };
        let mut index = self.ready.len();
        while index > 0 {
            let other = self.ready[index - 1];
            let sorts_before = self.sources[usize::from(other)].cell().is_some_and(|theirs| {
                self.order.compare(&theirs, &cell).then_with(|| other.cmp(&at)) == Ordering::Less
            });
            if !sorts_before {
                break;
            }
            index -= 1;
        }
        self.ready.insert(index, at);
        debug_assert!(self.is_ready_sorted(), "the ready sources are in the order of their cells");
    }

    /// Whether the source with the smallest cell is the last one of `ready`, and so on.
    fn is_ready_sorted(&self) -> bool {
        let cell = |at: u16| self.sources[usize::from(at)].cell();
        self.ready.is_sorted_by(|later, earlier| match (cell(*earlier), cell(*later)) {
            (Some(left), Some(right)) => {
                self.order.compare(&left, &right).then_with(|| earlier.cmp(later)) == Ordering::Less
            }
            _ => false,
        })
    }
}

/// A position of a merge that is valid for any sources of the same cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MergePosition {
    /// The first cell whose key is not before this one.
    From(Vec<u8>),
    /// Reversed scans: the last row before this key.
    Before(Vec<u8>),
    /// The end: there are no more cells.
    End { backward: bool },
}

/// Where a reversed scan starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReverseStart<'a> {
    /// At the last row.
    End,
    /// At this row, or the row before it.
    EndOf(&'a [u8]),
    /// At the row before this one.
    StartOf(&'a [u8]),
}

pub(crate) fn set_first_on_row(target: &mut Vec<u8>, row: &[u8]) {
    target.clear();
    key::write(target, row, &[], &[], LATEST_TIMESTAMP, CellType::Maximum as u8);
}

fn set_last_on_row(target: &mut Vec<u8>, row: &[u8]) {
    target.clear();
    key::write(target, row, &[], &[], OLDEST_TIMESTAMP, CellType::Minimum as u8);
}

pub(crate) fn set_first_on_column(target: &mut Vec<u8>, current: &Cell<'_>, qualifier: &[u8]) {
    target.clear();
    key::write(target, current.row(), current.family(), qualifier, LATEST_TIMESTAMP, CellType::Maximum as u8);
}

fn set_version(target: &mut Vec<u8>, current: &Cell<'_>, timestamp: i64) {
    target.clear();
    target.extend_from_slice(key::column_part(current.key));
    target.extend_from_slice(&timestamp.to_be_bytes());
    target.push(CellType::Maximum as u8);
}

pub(crate) fn set_last_on_column(target: &mut Vec<u8>, current: &Cell<'_>) {
    target.clear();
    target.extend_from_slice(key::column_part(current.key));
    target.extend_from_slice(&OLDEST_TIMESTAMP.to_be_bytes());
    target.push(CellType::Minimum as u8);
}
