//! The fast path of a Get: one row, read without a scanner.
//!
//! A scanner handles rows of any size, blocks that must be loaded, filters and limits. Most Gets
//! need none of that: their row is small and cached. Such a row is read here, by the same
//! [rules](crate::scanner::matcher). All other rows are left to a scanner. Usually only one
//! memstore or file has the row, and it is read without a merge.

use std::sync::Arc;

use bytes::Bytes;
use cell::{Cell, CellOrder, CellType};
use hfile::{BlockSource, FilterCounts, LARGE_VALUE_LEN, LocatedRow, RowSlice, Stop};

use crate::instruments::Origin;
use crate::memstore::Memstore;
use crate::scanner::matcher::{Match, Matcher};
use crate::scanner::merge::{Merge, set_first_on_column, set_first_on_row, set_last_on_column};
use crate::scanner::row_locator::StoreRowLocator;
use crate::scanner::row_plan::{Qualifiers, RowPlan, StorePlan};
use crate::scanner::select::{BLOOM_COLUMNS_MAX, may_have_rows, may_have_time};
use crate::scanner::sink::{ResultEnd, ResultSink};
use crate::scanner::source::{Order, Source, all_visible, may_have};
use crate::store::{StoreFile, StoreView};

/// Bytes of a row that are read without yielding the thread.
const ROW_BYTES_MAX: usize = 64 << 10;
/// Cells of a memstore that a search for one column skips one by one.
const CELLS_SKIPPED_MAX: usize = 8;
/// Cost of a cell in addition to its bytes, in bytes.
const CELL_COST: usize = 32;

/// One read of the row of a Get.
pub(crate) struct RowRead<'a> {
    order: CellOrder,
    row: &'a [u8],
    // The key before all cells of the row. Empty until it is needed.
    start: Vec<u8>,
    read_point: u64,
    blocks: &'a dyn BlockSource,
    // May have located the row in a file.
    locator: &'a mut StoreRowLocator,
    // The file in which a locator cannot find the row.
    unlocatable_in: Option<u64>,
    // Bytes, by cost, that may still be read.
    cost_left: usize,
    // Whether a result was begun in the sink.
    begun: bool,
}

/// Why a row is not read here.
enum RowAbort {
    /// It needs a scanner: a block is not cached, or the row is large.
    NotSimple,
    Failed(hfile::Error),
}

impl From<Stop> for RowAbort {
    fn from(stop: Stop) -> RowAbort {
        match stop {
            Stop::Miss(_) => RowAbort::NotSimple,
            Stop::Failed(error) => RowAbort::Failed(error),
        }
    }
}

impl<'a> RowRead<'a> {
    /// A read of `row` at `read_point`. `locator` is one for this row, or empty.
    pub(crate) fn new(
        row: &'a [u8],
        locator: &'a mut StoreRowLocator,
        order: CellOrder,
        read_point: u64,
        blocks: &'a dyn BlockSource,
    ) -> RowRead<'a> {
        RowRead {
            order,
            row,
            start: Vec::new(),
            read_point,
            blocks,
            locator,
            unlocatable_in: None,
            cost_left: ROW_BYTES_MAX,
            begun: false,
        }
    }

    /// Leaves rows of more than `bytes` to a scanner, which rejects them.
    pub(crate) fn row_bytes_max(self, bytes: u64) -> RowRead<'a> {
        let cost_left = self.cost_left.min(usize::try_from(bytes).unwrap_or(usize::MAX));
        RowRead { cost_left, ..self }
    }

    /// Reads the row by `plan` from `views`, the views of all stores of the region in order of
    /// family names. Returns whether the sink received all cells that the row has. Otherwise the
    /// sink is unchanged, and the row needs a scanner.
    ///
    /// # Errors
    /// Damage of a file. The sink is unchanged.
    pub(crate) fn read(
        mut self,
        plan: &mut RowPlan,
        views: &[StoreView],
        sink: &mut dyn ResultSink,
    ) -> Result<bool, hfile::Error> {
        let (Some(stores), start) = plan.parts() else { return Ok(false) };
        debug_assert!(start.is_empty(), "the key before a row is not that of another row");
        self.start = std::mem::take(start);
        let outcome = self.read_stores(stores, views, sink);
        // The next row reuses the memory.
        *start = self.start;
        start.clear();
        outcome
    }

    fn read_stores(
        &mut self,
        stores: &mut [StorePlan],
        views: &[StoreView],
        sink: &mut dyn ResultSink,
    ) -> Result<bool, hfile::Error> {
        for at in 0..stores.len() {
            let plan = &mut stores[at];
            let Err(abort) = self.read_store(plan, &views[plan.store], sink) else { continue };
            if self.begun {
                sink.rollback_row();
            }
            // The scanner that reads the row counts it.
            stores[..at].iter_mut().for_each(|plan| plan.reads.uncount_row(plan.origin));
            return match abort {
                RowAbort::NotSimple => Ok(false),
                RowAbort::Failed(error) => Err(error),
            };
        }
        if self.begun {
            sink.end_result(ResultEnd { partial: false });
        }
        Ok(true)
    }

    fn read_store(
        &mut self,
        plan: &mut StorePlan,
        view: &StoreView,
        sink: &mut dyn ResultSink,
    ) -> Result<(), RowAbort> {
        let origin = match self.find_in_only_file(plan, view) {
            LocatedRow::Slice(slice) => self.write(self.slice_cells(slice), &mut plan.matcher, sink)?,
            LocatedRow::Absent => Origin::Nowhere,
            LocatedRow::Unknown => return self.read_all_sources(plan, view, sink),
        };
        plan.origin = origin;
        plan.reads.count_row(origin);
        Ok(())
    }

    /// Finds the row in the only file of a store, if the memstores cannot have a wanted cell.
    fn find_in_only_file(&mut self, plan: &StorePlan, view: &StoreView) -> LocatedRow {
        let may_have = |memstore: &Arc<Memstore>| memstore.may_have_time(plan.range, plan.oldest);
        let Some(file) = view.only_file() else { return LocatedRow::Unknown };
        if may_have(&view.active)
            || view.snapshot.as_ref().is_some_and(may_have)
            || !may_have_time(file.reader(), plan.range, plan.oldest)
        {
            return LocatedRow::Unknown;
        }
        self.row_in(file)
    }

    /// Reads the row from all memstores and files of a store.
    fn read_all_sources(
        &mut self,
        plan: &mut StorePlan,
        view: &StoreView,
        sink: &mut dyn ResultSink,
    ) -> Result<(), RowAbort> {
        let mut found = RowSources::default();
        self.find_in_memstores(plan, view, &mut found)?;
        if let Some(source) = self.take_newest(plan, view, &mut found)? {
            plan.origin = self.write(self.source_cells(source), &mut plan.matcher, sink)?;
            if plan.origin != Origin::Nowhere {
                plan.reads.count_row(plan.origin);
                return Ok(());
            }
            // The cell does not pass, for example because it expired.
            self.find_in_memstores(plan, view, &mut found)?;
        }
        self.find_in_files(plan, view, &mut found)?;
        let matcher = &mut plan.matcher;
        let (order, blocks) = (self.order, self.blocks);
        let lookups = found.lookups;
        let origin = match found.first {
            None => Origin::Nowhere,
            Some(RowSource::Slice(slice, _)) if found.others.is_empty() => {
                self.write(self.slice_cells(slice), matcher, sink)?
            }
            Some(RowSource::Cursor(source)) if found.others.is_empty() => {
                self.write(self.source_cells(source), matcher, sink)?
            }
            Some(first) => {
                let sources = std::iter::once(first).chain(found.others);
                let sources = sources.map(|source| self.cursor_at_row(source)).collect::<Result<_, _>>()?;
                let merge = Merge::of_settled(order, sources);
                self.write(MergedCells { merge, blocks }, matcher, sink)?
            }
        };
        plan.origin = origin;
        plan.reads.count_row(origin);
        plan.reads.count_filters(lookups);
        Ok(())
    }

    /// Finds which memstores have cells of the row.
    fn find_in_memstores<'v>(
        &mut self,
        plan: &StorePlan,
        view: &'v StoreView,
        found: &mut RowSources<'v>,
    ) -> Result<(), RowAbort> {
        for memstore in std::iter::once(&view.active).chain(&view.snapshot) {
            if memstore.may_have_time(plan.range, plan.oldest) {
                found.add(self.seek_to_row(Source::memstore(memstore.cursor(), self.read_point))?);
            }
        }
        Ok(())
    }

    /// Takes the only source found, if it has the one wanted cell, and that cell is newer than all
    /// cells in files. Then no file must be read: none has a newer version, or a marker that hides
    /// it.
    fn take_newest(
        &self,
        plan: &StorePlan,
        view: &StoreView,
        found: &mut RowSources<'_>,
    ) -> Result<Option<Source>, RowAbort> {
        let Some(wanted) = plan.matcher.one_cell().filter(|_| found.others.is_empty()) else {
            return Ok(None);
        };
        let Some(RowSource::Cursor(source)) = &mut found.first else { return Ok(None) };
        // Skips other columns.
        for _ in 0..CELLS_SKIPPED_MAX {
            let is_earlier_column = |cell: &Cell<'_>| {
                cell.row() == self.row && cell.kind() == CellType::Put && cell.qualifier() < &wanted[..]
            };
            if !source.cell().as_ref().is_some_and(is_earlier_column) {
                break;
            }
            source.order(Order::Next);
            source.settle(self.order, &[], self.blocks)?;
        }
        let is_newer_than_files =
            |timestamp: i64| view.files.iter().all(|file| file.reader().info().time_range.max < timestamp);
        let is_newest = source.cell().is_some_and(|cell| {
            let is_wanted = cell.row() == self.row && *cell.qualifier() == wanted[..];
            // If a cell with its own time to live has expired, an older version may be wanted.
            let is_put = cell.kind() == CellType::Put && cell.tags.is_empty();
            is_wanted
                && is_put
                && plan.range.contains(cell.timestamp())
                && is_newer_than_files(cell.timestamp())
        });
        match found.first.take_if(|_| is_newest) {
            Some(RowSource::Cursor(source)) => Ok(Some(source)),
            _ => Ok(None),
        }
    }

    /// Finds which files have cells of the row.
    fn find_in_files<'v>(
        &mut self,
        plan: &StorePlan,
        view: &'v StoreView,
        found: &mut RowSources<'v>,
    ) -> Result<(), RowAbort> {
        let StorePlan { range, oldest, ref matcher, .. } = *plan;
        let (order, row, located_in) = (self.order, self.row, self.locator.file_id());
        let wanted = |file: &&Arc<StoreFile>| {
            may_have_time(file.reader(), range, oldest)
                && (located_in == Some(file.reader().file_id()) || may_have_rows(file, order, row, row))
        };
        let mut files = view.files.iter().rev().filter(wanted).peekable();
        // The Bloom filter of a single file is not consulted: it only saves loading blocks.
        let mut consults_filter = false;
        while let Some(file) = files.next() {
            consults_filter |= files.peek().is_some();
            let few = || matcher.qualifiers().filter(|wanted| wanted.len() <= BLOOM_COLUMNS_MAX);
            if !consults_filter || may_have(file.reader(), row, few(), self.blocks, &mut found.lookups)? {
                found.add(self.source_in(file)?);
            }
        }
        Ok(())
    }

    /// The row in a file; `None` if the file does not have it.
    fn source_in<'v>(&mut self, file: &'v StoreFile) -> Result<Option<RowSource<'v>>, RowAbort> {
        match self.row_in(file) {
            LocatedRow::Slice(slice) => Ok(Some(RowSource::Slice(slice, file))),
            LocatedRow::Absent => Ok(None),
            LocatedRow::Unknown => self.seek_to_row(Source::file(file, self.read_point, None)),
        }
    }

    /// The row in a file, if it lies within one cached block.
    fn row_in(&mut self, file: &StoreFile) -> LocatedRow {
        let reader = file.reader();
        let file_id = reader.file_id();
        let is_locatable = file.half().is_none() && all_visible(reader, self.read_point);
        if !is_locatable || self.unlocatable_in == Some(file_id) {
            return LocatedRow::Unknown;
        }
        let row = self.locator.row(self.row, file, self.blocks);
        if matches!(row, LocatedRow::Unknown) {
            self.unlocatable_in = Some(file_id);
        }
        row
    }

    /// Moves a source to the row; `None` if it has no cell of the row.
    fn seek_to_row<'v>(&mut self, mut source: Source) -> Result<Option<RowSource<'v>>, RowAbort> {
        if self.start.is_empty() {
            set_first_on_row(&mut self.start, self.row);
        }
        source.order(Order::Seek);
        source.settle(self.order, &self.start, self.blocks)?;
        let is_there = source.cell().is_some_and(|cell| cell.row() == self.row);
        Ok(is_there.then_some(RowSource::Cursor(source)))
    }

    /// The source as a cursor, which a merge needs.
    fn cursor_at_row(&mut self, source: RowSource<'_>) -> Result<Source, RowAbort> {
        match source {
            RowSource::Cursor(source) => Ok(source),
            RowSource::Slice(_, file) => match self.seek_to_row(Source::file(file, self.read_point, None))? {
                Some(RowSource::Cursor(source)) => Ok(source),
                _ => Err(RowAbort::NotSimple),
            },
        }
    }

    fn slice_cells(&self, slice: RowSlice) -> SliceCells {
        SliceCells { slice, order: self.order, target: Vec::new() }
    }

    fn source_cells(&self, source: Source) -> SourceCells<'a> {
        SourceCells { source, order: self.order, target: Vec::new(), blocks: self.blocks }
    }

    /// Judges the cells of the row, and writes those that pass. Returns where these were stored.
    fn write(
        &mut self,
        mut cells: impl RowCells,
        matcher: &mut Matcher<Qualifiers>,
        sink: &mut dyn ResultSink,
    ) -> Result<Origin, RowAbort> {
        let mut origin = Origin::Nowhere;
        matcher.begin_row();
        while let Some(cell) = cells.cell().filter(|cell| cell.row() == self.row) {
            let cost = cell.len_without_tags() + CELL_COST;
            self.cost_left = self.cost_left.checked_sub(cost).ok_or(RowAbort::NotSimple)?;
            let verdict = matcher.check(&cell);
            if verdict.includes() {
                if !std::mem::replace(&mut self.begun, true) {
                    sink.begin_result(false);
                }
                match if cell.value.len() >= LARGE_VALUE_LEN { cells.large_value() } else { None } {
                    Some(value) => sink.large_cell(&cell, value),
                    None => sink.cell(&cell),
                }
                origin.add(|| cells.is_in_memstore());
            }
            match verdict {
                Match::IncludeAndNextRow | Match::NextRow => break,
                Match::Include | Match::Skip => cells.next()?,
                Match::IncludeAndNextColumn | Match::NextColumn => {
                    cells.pass_column(matcher.hint())?;
                }
            }
        }
        Ok(origin)
    }
}

/// The memstores and files that have cells of the row, the newest first.
#[derive(Default)]
struct RowSources<'v> {
    // Separate, so that the common case of one source needs no allocation.
    first: Option<RowSource<'v>>,
    others: Vec<RowSource<'v>>,
    // Bloom filters consulted so far.
    lookups: FilterCounts,
}

/// The row in one memstore or file.
enum RowSource<'v> {
    /// A cursor at the first cell of the row.
    Cursor(Source),
    /// The whole row, in one block of the file.
    Slice(RowSlice, &'v StoreFile),
}

impl<'v> RowSources<'v> {
    fn add(&mut self, source: Option<RowSource<'v>>) {
        match &self.first {
            None => self.first = source,
            Some(_) => self.others.extend(source),
        }
    }
}

/// The cells of a row in order, and then any cells that follow them.
trait RowCells {
    fn cell(&self) -> Option<Cell<'_>>;
    /// The value of the current cell, sharing the memory of its block, if it fills enough of the
    /// block.
    fn large_value(&self) -> Option<Bytes>;
    /// Whether the current cell is in a memstore.
    fn is_in_memstore(&self) -> bool;
    fn next(&mut self) -> Result<(), Stop>;
    /// Moves past the current column, or to the later column `hint`.
    fn pass_column(&mut self, hint: Option<&[u8]>) -> Result<(), Stop>;
}

struct SliceCells {
    slice: RowSlice,
    order: CellOrder,
    // The key that the slice moves to.
    target: Vec<u8>,
}

impl RowCells for SliceCells {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        self.slice.cell()
    }

    fn large_value(&self) -> Option<Bytes> {
        self.slice.large_value()
    }

    #[inline]
    fn is_in_memstore(&self) -> bool {
        false
    }

    #[inline]
    fn next(&mut self) -> Result<(), Stop> {
        self.slice.next();
        Ok(())
    }

    fn pass_column(&mut self, hint: Option<&[u8]>) -> Result<(), Stop> {
        let Some(cell) = self.slice.cell() else { return Ok(()) };
        match set_after_column(&mut self.target, &cell, hint) {
            true => self.slice.seek_forward(self.order, &self.target),
            false => self.slice.next(),
        }
        Ok(())
    }
}

struct SourceCells<'a> {
    source: Source,
    order: CellOrder,
    // The key that the source moves to. Empty while the source moves cell by cell.
    target: Vec<u8>,
    blocks: &'a dyn BlockSource,
}

impl RowCells for SourceCells<'_> {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        self.source.cell()
    }

    fn large_value(&self) -> Option<Bytes> {
        self.source.large_value()
    }

    #[inline]
    fn is_in_memstore(&self) -> bool {
        self.source.is_memstore()
    }

    #[inline]
    fn next(&mut self) -> Result<(), Stop> {
        self.source.order(Order::Next);
        self.source.settle(self.order, &self.target, self.blocks)
    }

    fn pass_column(&mut self, hint: Option<&[u8]>) -> Result<(), Stop> {
        let Some(cell) = self.source.cell() else { return Ok(()) };
        if !set_after_column(&mut self.target, &cell, hint) {
            return self.next();
        }
        self.source.order(Order::SeekForward);
        self.source.settle(self.order, &self.target, self.blocks)
    }
}

/// Sets `target` to the key after the column of `cell`, or to that of the later column `hint`.
///
/// Returns `false` for the empty qualifier. The reader must then move cell by cell, because markers
/// of the whole family may be among its versions.
fn set_after_column(target: &mut Vec<u8>, cell: &Cell<'_>, hint: Option<&[u8]>) -> bool {
    if cell.qualifier().is_empty() {
        return false;
    }
    match hint {
        Some(hint) => set_first_on_column(target, cell, hint),
        None => set_last_on_column(target, cell),
    }
    true
}

struct MergedCells<'a> {
    merge: Merge,
    blocks: &'a dyn BlockSource,
}

impl RowCells for MergedCells<'_> {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        self.merge.cell()
    }

    fn large_value(&self) -> Option<Bytes> {
        self.merge.large_value()
    }

    #[inline]
    fn is_in_memstore(&self) -> bool {
        self.merge.is_in_memstore()
    }

    #[inline]
    fn next(&mut self) -> Result<(), Stop> {
        self.merge.next();
        self.merge.settle(self.blocks)
    }

    fn pass_column(&mut self, hint: Option<&[u8]>) -> Result<(), Stop> {
        self.merge.pass_column(hint);
        self.merge.settle(self.blocks)
    }
}
