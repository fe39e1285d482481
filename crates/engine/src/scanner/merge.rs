//! The cells of several sources as one sorted run.
//!
//! Of equal keys the greater sequence id comes first, then the newer source. Moves are ordered first and carried out by
//! [`Merge::settle`], for all sources that have to move: each that misses a block is named in one miss, each that does
//! not has moved for good. Between a settle that succeeded and the next order the merge stands on a cell.
//!
//! Sources that stand on a cell are kept sorted, the next one last; a source that moves and is still the next costs one
//! comparison, however many there are.

use std::cmp::Ordering;

use bytes::Bytes;
use cell::{Cell, CellOrder, CellType, LATEST_TIMESTAMP, OLDEST_TIMESTAMP, key};
use hfile::{BlockSource, FiltersAsked, Miss, Run, Stop};

use crate::filter::Hint;
use crate::scanner::source::{Order, Source};

/// Sources of one store and where they stand.
pub(crate) struct Merge {
    order: CellOrder,
    // Newest first: the index decides between equal cells.
    sources: Vec<Source>,
    // Sources on a cell, the one with the smallest last.
    ready: Vec<u16>,
    // Sources that were ordered to move.
    moving: Vec<u16>,
    // The key that moving sources go to.
    target: Vec<u8>,
    // Reversed scans: sources that stand on the last cell before a bound, or on none, and take no part in the row.
    parked: Vec<u16>,
    // Whether moving sources go to the last cell before the target.
    backward: bool,
}

impl Merge {
    /// Merges `sources`, the newest first. It stands nowhere yet.
    pub(crate) fn new(order: CellOrder, sources: Vec<Source>) -> Merge {
        assert!(sources.len() <= usize::from(u16::MAX), "files of a store are bounded far below");
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

    /// Merges `sources`, the newest first, each of which has settled. It stands on the first of their cells.
    pub(crate) fn of_settled(order: CellOrder, sources: Vec<Source>) -> Merge {
        let mut merge = Merge::new(order, sources);
        for at in 0..merge.sources.len() as u16 {
            merge.line_up(at);
        }
        merge
    }

    /// The current cell, once it has settled; `None` at the end.
    #[inline]
    pub(crate) fn cell(&self) -> Option<Cell<'_>> {
        debug_assert!(self.moving.is_empty(), "settle first");
        self.ready.last().and_then(|at| self.sources[usize::from(*at)].cell())
    }

    /// The value of the current cell with the memory that it is part of, if it is worth keeping that for it.
    pub(crate) fn large_value(&self) -> Option<Bytes> {
        self.ready.last().and_then(|at| self.sources[usize::from(*at)].large_value())
    }

    /// What filters were asked and nobody was told yet.
    pub(crate) fn take_asked(&mut self) -> FiltersAsked {
        let mut asked = FiltersAsked::default();
        self.sources.iter_mut().for_each(|source| asked += source.take_asked());
        asked
    }

    /// Whether the source that it stands on, or that moves now, is a memstore.
    pub(crate) fn is_in_memstore(&self) -> bool {
        let current = self.moving.last().or(self.ready.last());
        current.is_some_and(|at| self.sources[usize::from(*at)].is_memstore())
    }

    /// The rows from the current cell on and before the row `stop` (empty for all) that one source alone has, if they can
    /// be walked through. The merge stays.
    pub(crate) fn run(&self, stop: &[u8]) -> Option<Run> {
        debug_assert!(self.moving.is_empty(), "settle first");
        let (current, others) = self.ready.split_last()?;
        let others_row =
            others.last().and_then(|at| self.sources[usize::from(*at)].cell()).map(|cell| cell.row());
        let stop = match others_row {
            Some(row) if stop.is_empty() || self.order.compare_rows(row, stop).is_lt() => row,
            _ => stop,
        };
        self.sources[usize::from(*current)].run(stop)
    }

    /// Goes to where a run came that began at the current cell.
    pub(crate) fn resume(&mut self, run: &Run) {
        if let Some(at) = self.ready.pop() {
            self.sources[usize::from(at)].resume(run);
            self.line_up(at);
        }
    }

    /// Orders: to the next cell.
    #[inline]
    pub(crate) fn next(&mut self) {
        debug_assert!(self.moving.is_empty(), "settle first");
        if let Some(at) = self.ready.pop() {
            self.sources[usize::from(at)].order(Order::Next);
            self.moving.push(at);
        }
    }

    /// Orders: to the first cell of `row` or behind it, wherever it stands now.
    pub(crate) fn seek_row(&mut self, row: &[u8]) {
        set_first_on_row(&mut self.target, row);
        self.move_all(Order::Seek);
    }

    /// Orders: to the first cell behind `row`, wherever it stands now.
    pub(crate) fn seek_behind_row(&mut self, row: &[u8]) {
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

    /// Orders, for a reversed scan's start: to the last cell not behind `bound`.
    pub(crate) fn seek_before(&mut self, bound: Before<'_>) {
        match bound {
            Before::End => set_last_on_row(&mut self.target, &[u8::MAX; cell::cell::ROW_LEN_MAX]),
            Before::EndOf(row) => set_last_on_row(&mut self.target, row),
            Before::StartOf(row) => set_first_on_row(&mut self.target, row),
        }
        self.move_all(Order::SeekBefore);
    }

    /// Orders, when the current row is done in a reversed scan: before `row`. Sources that took no part in it stand
    /// there already.
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

    /// The greatest row before the bound, once it has settled there.
    pub(crate) fn row_before(&self) -> Option<&[u8]> {
        debug_assert!(self.backward && self.moving.is_empty(), "settle first");
        self.greatest_parked()
    }

    fn greatest_parked(&self) -> Option<&[u8]> {
        let cells = self.parked.iter().filter_map(|at| self.sources[usize::from(*at)].cell());
        cells.map(|cell| cell.row()).max_by(|left, right| self.order.compare_rows(left, right))
    }

    /// Orders: to the first cell of `row`, those sources that stand in it.
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

    /// Orders: behind the current row.
    pub(crate) fn pass_row(&mut self) {
        let Some(current) = self.ready.last().and_then(|at| self.sources[usize::from(*at)].cell()) else {
            return;
        };
        set_last_on_row(&mut self.target, current.row());
        self.move_forward();
    }

    /// Orders: behind the current column, or to the column `hint` of the same row behind it.
    ///
    /// At the empty qualifier only to the next cell: markers of the whole family may follow among its versions.
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

    /// Orders: to a place behind the current cell, as a filter hints.
    pub(crate) fn follow(&mut self, hint: Hint<'_>) {
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

    /// Gives up all sources: there are no more cells.
    pub(crate) fn close(&mut self) {
        self.sources.clear();
        self.ready.clear();
        self.moving.clear();
        self.parked.clear();
    }

    /// Where it goes on. Cells up to the end of the row `passed` do not come again; without one it has settled.
    pub(crate) fn place(&self, passed: Option<&[u8]>) -> Place {
        if self.sources.is_empty() {
            return Place::End { backward: self.backward };
        }
        if self.backward {
            return Place::Before(self.target.clone());
        }
        let key = match self.moving.first() {
            None => match self.cell() {
                Some(cell) => cell.key,
                None => return Place::End { backward: false },
            },
            // From within the row that is passed.
            Some(at) if self.sources[usize::from(*at)].is_ordered(Order::Next) => &[],
            Some(_) => &self.target[..],
        };
        let mut behind = Vec::new();
        if let Some(row) = passed {
            set_last_on_row(&mut behind, row);
            if key.is_empty() || self.order.compare_keys(key, &behind).is_lt() {
                return Place::From(behind);
            }
        }
        Place::From(key.to_vec())
    }

    /// Reversed, where the row `found` was entered: where it goes on so that it finds this row again, if it is in it, and
    /// the row before which it stands if not.
    pub(crate) fn place_before_row(&self, found: &[u8]) -> Place {
        // Those that entered it are not parked any more, whether they may see a cell of it or not.
        let is_in = self.parked.len() < self.sources.len();
        match if is_in { Some(found) } else { self.greatest_parked() } {
            Some(row) => {
                let mut key = Vec::new();
                set_last_on_row(&mut key, row);
                Place::Before(key)
            }
            None => Place::End { backward: true },
        }
    }

    /// Orders, wherever it stands now: to where another merge of the same cells was.
    pub(crate) fn go_to(&mut self, place: Place) {
        match place {
            Place::From(key) => {
                self.target = key;
                self.move_all(Order::Seek);
            }
            Place::Before(key) => {
                self.target = key;
                self.move_all(Order::SeekBefore);
            }
            Place::End { backward } => {
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

    /// Carries out what was ordered.
    ///
    /// # Errors
    /// [`Stop::Miss`] with the blocks of all sources that miss one; call again when they are supplied.
    #[inline]
    pub(crate) fn settle(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        match self.moving[..] {
            [] => Ok(()),
            [at] => {
                self.sources[usize::from(at)].settle(self.order, &self.target, blocks)?;
                self.moving.pop();
                self.arrive(at);
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
                self.arrive(*at);
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

    /// A source has moved: it waits for the row before the last one, or lines up with its cell.
    #[inline]
    fn arrive(&mut self, at: u16) {
        if self.backward {
            self.parked.push(at);
        } else {
            self.line_up(at);
        }
    }

    /// Puts a source in its place among those on a cell.
    #[inline]
    fn line_up(&mut self, at: u16) {
        let Some(cell) = self.sources[usize::from(at)].cell() else {
            return;
        };
        let mut place = self.ready.len();
        while place > 0 {
            let other = self.ready[place - 1];
            let ahead = self.sources[usize::from(other)].cell().is_some_and(|theirs| {
                self.order.compare(&theirs, &cell).then_with(|| other.cmp(&at)) == Ordering::Less
            });
            if !ahead {
                break;
            }
            place -= 1;
        }
        self.ready.insert(place, at);
    }
}

/// Where a merge goes on, whatever its sources are then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the first cell whose key is not before this one.
    From(Vec<u8>),
    /// Reversed: with the last row before this key.
    Before(Vec<u8>),
    /// There are no more cells.
    End { backward: bool },
}

/// Where a reversed scan begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before<'a> {
    /// Behind the last row.
    End,
    /// With this row.
    EndOf(&'a [u8]),
    /// With the row before this one.
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
