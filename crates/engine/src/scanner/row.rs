//! One row, read without a scanner: what most Gets are.
//!
//! A scanner is made for rows without end, for several sources that have cells of the same row, for blocks that have to be
//! loaded, for filters and limits. Most Gets need nothing of it: of all memstores and files one has the row, and it is in
//! the cache. Those are read here, by the same [rules](crate::scanner::matcher), and whatever is not so simple is left to
//! the scanner.

use std::sync::Arc;

use bytes::Bytes;
use cell::CellOrder;
use cell::query::{Get, TimeRange};
use hfile::Stop;

use crate::scanner::load::BlockLoader;
use crate::scanner::matcher::{Match, Matcher, Versions};
use crate::scanner::merge::{set_first_on_column, set_first_on_row, set_last_on_column};
use crate::scanner::rules::FamilyRules;
use crate::scanner::select::{BLOOM_COLUMNS_MAX, may_have_time};
use crate::scanner::sink::{ResultEnd, ResultSink};
use crate::scanner::source::{Order, Source, may_have};
use crate::store::{StoreFile, StoreView};

/// Bytes of a row that are read without letting others have their turn.
const ROW_BYTES_MAX: usize = 64 << 10;
/// What a cell costs besides its bytes, in bytes.
const CELL_COST: usize = 32;

/// How to read the row of a Get.
pub(crate) struct RowRead<'a> {
    order: CellOrder,
    get: &'a Get,
    read_point: u64,
    now_ms: i64,
    blocks: &'a BlockLoader,
    // The key that sources are sent to.
    target: Vec<u8>,
    // What may still be looked at.
    room: usize,
    begun: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The sink has what there is of the row.
    Whole,
    /// The sink is as it was; the row is for a scanner.
    Left,
}

/// Why a row is not read here.
enum Halt {
    NotSimple,
    Failed(hfile::Error),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Halt {
        match stop {
            Stop::Miss(_) => Halt::NotSimple,
            Stop::Failed(error) => Halt::Failed(error),
        }
    }
}

impl<'a> RowRead<'a> {
    /// Reads the row as it is at `read_point`. `now_ms` is the time by which cells expire.
    pub(crate) fn new(
        get: &'a Get,
        order: CellOrder,
        read_point: u64,
        now_ms: i64,
        blocks: &'a BlockLoader,
    ) -> RowRead<'a> {
        let mut target = Vec::with_capacity(64 + get.row.len());
        set_first_on_row(&mut target, &get.row);
        RowRead { order, get, read_point, now_ms, blocks, target, room: ROW_BYTES_MAX, begun: false }
    }

    /// Leaves rows that give more than `bytes` to a scanner, which refuses them.
    pub(crate) fn row_bytes_max(self, bytes: u64) -> RowRead<'a> {
        RowRead { room: self.room.min(usize::try_from(bytes).unwrap_or(usize::MAX)), ..self }
    }

    /// Reads the row from `stores`, all families of the region in order of names with their rules and views.
    ///
    /// # Errors
    /// What reading files can fail with; the sink is as it was.
    pub(crate) fn read<'s>(
        mut self,
        stores: impl IntoIterator<Item = (&'s FamilyRules, &'s StoreView)>,
        sink: &mut dyn ResultSink,
    ) -> Result<Read, hfile::Error> {
        let selection = &self.get.selection;
        if selection.filter.is_some() || selection.store_limit.is_some() || selection.store_offset > 0 {
            return Ok(Read::Left);
        }
        for (rules, view) in stores {
            let Some(qualifiers) = selection.wants(&rules.family) else { continue };
            let Err(halt) = self.read_store(rules, view, qualifiers, sink) else { continue };
            if self.begun {
                sink.rollback_row();
            }
            return match halt {
                Halt::NotSimple => Ok(Read::Left),
                Halt::Failed(error) => Err(error),
            };
        }
        if self.begun {
            sink.end_result(ResultEnd { partial: false });
        }
        Ok(Read::Whole)
    }

    fn read_store(
        &mut self,
        rules: &FamilyRules,
        view: &StoreView,
        qualifiers: Option<&[Bytes]>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), Halt> {
        if rules.new_version_behavior {
            return Err(Halt::NotSimple);
        }
        let range = self.get.selection.time_range_of(&rules.family);
        let Some(source) = self.find(rules, view, qualifiers, range)? else {
            return Ok(());
        };
        let versions = Versions { wanted: self.get.selection.max_versions, filtered: false };
        let matcher = Matcher::user(rules, qualifiers, range, versions, self.now_ms);
        self.write(source, matcher, sink)
    }

    /// The only source that has cells of the row, at the first of them; `None` if none has.
    fn find(
        &mut self,
        rules: &FamilyRules,
        view: &StoreView,
        qualifiers: Option<&[Bytes]>,
        range: TimeRange,
    ) -> Result<Option<Source>, Halt> {
        // Versions that are too old may have to be returned where some are kept for good.
        let oldest = if rules.min_versions == 0 { rules.oldest_unexpired(self.now_ms) } else { i64::MIN };
        let mut found = None;
        for memstore in std::iter::once(&view.active).chain(&view.snapshot) {
            if memstore.may_have_time(range, oldest) {
                self.find_in(Source::memstore(memstore.cursor(), self.read_point), &mut found)?;
            }
        }
        let (order, row) = (self.order, &self.get.row[..]);
        let wanted = |file: &&Arc<StoreFile>| {
            may_have_time(file.reader(), range, oldest) && may_have_row(file, order, row)
        };
        let mut files = view.files.iter().rev().filter(wanted).peekable();
        let mut several = false;
        while let Some(file) = files.next() {
            several |= files.peek().is_some();
            // The only file is searched at once: its Bloom filter is of use only where blocks have to be loaded.
            let few = qualifiers.filter(|wanted| wanted.len() <= BLOOM_COLUMNS_MAX);
            if several && !may_have(file.reader(), row, few, self.blocks)? {
                continue;
            }
            self.find_in(Source::file(file, self.read_point, None), &mut found)?;
        }
        Ok(found)
    }

    fn find_in(&mut self, mut source: Source, found: &mut Option<Source>) -> Result<(), Halt> {
        source.order(Order::Seek);
        source.settle(self.order, &self.target, self.blocks)?;
        if source.cell().is_none_or(|cell| cell.row() != self.get.row) {
            return Ok(());
        }
        match found.replace(source) {
            None => Ok(()),
            Some(_) => Err(Halt::NotSimple),
        }
    }

    /// Judges the cells of the row, and writes those that pass.
    fn write(
        &mut self,
        mut source: Source,
        mut matcher: Matcher<&[Bytes]>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), Halt> {
        matcher.begin_row();
        while let Some(cell) = source.cell().filter(|cell| cell.row() == self.get.row) {
            let cost = cell.len_without_tags() + CELL_COST;
            self.room = self.room.checked_sub(cost).ok_or(Halt::NotSimple)?;
            let verdict = matcher.check(&cell);
            if verdict.includes() {
                if !std::mem::replace(&mut self.begun, true) {
                    sink.begin_result();
                }
                sink.cell(&cell);
            }
            let order = match verdict {
                Match::IncludeAndNextRow | Match::NextRow => break,
                Match::Include | Match::Skip => Order::Next,
                // Markers of the whole family may follow among the versions of the empty qualifier.
                _ if cell.qualifier().is_empty() => Order::Next,
                Match::IncludeAndNextColumn | Match::NextColumn => {
                    match matcher.hint() {
                        Some(hint) => set_first_on_column(&mut self.target, &cell, hint),
                        None => set_last_on_column(&mut self.target, &cell),
                    }
                    Order::SeekForward
                }
            };
            source.order(order);
            source.settle(self.order, &self.target, self.blocks)?;
        }
        // For the next store.
        set_first_on_row(&mut self.target, &self.get.row);
        Ok(())
    }
}

/// Whether `row` is not outside of the file's first and last.
fn may_have_row(file: &StoreFile, order: CellOrder, row: &[u8]) -> bool {
    let (Some(first), Some(last)) = (file.reader().first_row(), file.reader().last_row()) else {
        return false;
    };
    let is_in_half = file.half().is_none_or(|half| half.may_have_rows(order, row, row));
    is_in_half && order.compare_rows(first, row).is_le() && order.compare_rows(row, last).is_le()
}
