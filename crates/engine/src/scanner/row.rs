//! One row, read without a scanner: what most Gets are.
//!
//! A scanner is made for rows without end, for blocks that have to be loaded, for filters and limits. Most Gets need
//! nothing of it: their row is small, and in memory. Those are read here, by the same [rules](crate::scanner::matcher),
//! and whatever is not so simple is left to the scanner. Mostly one of all memstores and files has the row; it is read
//! without a merge.

use std::sync::Arc;

use bytes::Bytes;
use cell::{Cell, CellOrder, CellType};
use hfile::{BlockSource, FiltersAsked, LARGE_VALUE_LEN, Miss, Row, Run, Stop};

use crate::instruments::Origin;
use crate::memstore::Memstore;
use crate::scanner::matcher::{Match, Matcher};
use crate::scanner::merge::{Merge, set_first_on_column, set_first_on_row, set_last_on_column};
use crate::scanner::row_plan::{Qualifiers, RowPlan, StorePlan};
use crate::scanner::select::{BLOOM_COLUMNS_MAX, may_have_rows, may_have_time};
use crate::scanner::sink::{ResultEnd, ResultSink};
use crate::scanner::source::{Order, Source, all_visible, may_have};
use crate::store::{StoreFile, StoreView};

/// Bytes of a row that are read without letting others have their turn.
const ROW_BYTES_MAX: usize = 64 << 10;
/// Cells in a memstore that are passed over one by one in search of the column that is wanted.
const CELLS_PASSED_MAX: usize = 8;
/// What a cell costs besides its bytes, in bytes.
const CELL_COST: usize = 32;

/// How to read the row of a Get.
pub(crate) struct RowRead<'a> {
    order: CellOrder,
    row: &'a [u8],
    // The key in front of all that the row has, once it was asked for.
    start: Vec<u8>,
    read_point: u64,
    blocks: &'a dyn BlockSource,
    // Where the row is in a file, and the file in which it was sought so in vain.
    aim: &'a mut Aim,
    unknown_in: Option<u64>,
    // What may still be looked at.
    room: usize,
    // Whether blocks that are not in memory will be loaded.
    is_loading: bool,
    begun: bool,
}

/// What came of it. But for the first the sink is as it was.
#[derive(Debug)]
pub(crate) enum Read {
    /// The sink has what there is of the row.
    Whole,
    /// These blocks are not in memory.
    Missed(Miss),
    /// The row is for a scanner.
    Left,
}

/// Why a row is not read here.
enum Halt {
    NotSimple,
    Missed(Miss),
    Failed(hfile::Error),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Halt {
        match stop {
            Stop::Miss(miss) => Halt::Missed(miss),
            Stop::Failed(error) => Halt::Failed(error),
        }
    }
}

impl<'a> RowRead<'a> {
    /// Reads the row as it is at `read_point`; `aim` was aimed at it, or at nothing.
    pub(crate) fn new(
        row: &'a [u8],
        aim: &'a mut Aim,
        order: CellOrder,
        read_point: u64,
        blocks: &'a dyn BlockSource,
    ) -> RowRead<'a> {
        let (start, room) = (Vec::new(), ROW_BYTES_MAX);
        let (unknown_in, is_loading, begun) = (None, false, false);
        RowRead { order, row, start, read_point, blocks, aim, unknown_in, room, is_loading, begun }
    }

    /// For one who loads what is missed: it is told of the blocks of all files at once, and of those only that may have the row.
    pub(crate) fn loading(self) -> RowRead<'a> {
        RowRead { is_loading: true, ..self }
    }

    /// Leaves rows that give more than `bytes` to a scanner, which refuses them.
    pub(crate) fn row_bytes_max(self, bytes: u64) -> RowRead<'a> {
        RowRead { room: self.room.min(usize::try_from(bytes).unwrap_or(usize::MAX)), ..self }
    }

    /// Reads the row by `plan` from `views`, of all stores of the region in order of names.
    ///
    /// # Errors
    /// What reading files can fail with; the sink is as it was.
    pub(crate) fn read(
        mut self,
        plan: &mut RowPlan,
        views: &[StoreView],
        sink: &mut dyn ResultSink,
    ) -> Result<Read, hfile::Error> {
        let (Some(stores), start) = plan.parts() else { return Ok(Read::Left) };
        self.start = std::mem::take(start);
        let read = self.read_stores(stores, views, sink);
        // Its memory is used again.
        *start = self.start;
        start.clear();
        read
    }

    fn read_stores(
        &mut self,
        stores: &mut [StorePlan],
        views: &[StoreView],
        sink: &mut dyn ResultSink,
    ) -> Result<Read, hfile::Error> {
        for at in 0..stores.len() {
            let plan = &mut stores[at];
            let Err(halt) = self.read_store(plan, &views[plan.store], sink) else { continue };
            if self.begun {
                sink.rollback_row();
            }
            // Who reads the row now tells of it.
            stores[..at].iter_mut().for_each(|plan| plan.reads.forget_row(plan.origin));
            return match halt {
                // Those of the other stores are not known yet: a scanner loads all at once.
                Halt::Missed(_) if stores.len() > 1 => Ok(Read::Left),
                Halt::Missed(miss) => Ok(Read::Missed(miss)),
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
        plan: &mut StorePlan,
        view: &StoreView,
        sink: &mut dyn ResultSink,
    ) -> Result<(), Halt> {
        let origin = match self.find_alone(plan, view) {
            Row::Run(run) => self.write(self.cells_of_run(run), &mut plan.matcher, sink)?,
            Row::Absent => Origin::Nowhere,
            Row::Unknown => return self.read_places(plan, view, sink),
        };
        plan.origin = origin;
        plan.reads.note_row(origin);
        Ok(())
    }

    /// What the only file of a store has of the row, where the memstores have nothing that is wanted: the quick way.
    fn find_alone(&mut self, plan: &StorePlan, view: &StoreView) -> Row {
        let may_have = |memstore: &Arc<Memstore>| memstore.may_have_time(plan.range, plan.oldest);
        let Some(file) = view.only_file().filter(|_| !self.is_loading) else { return Row::Unknown };
        if may_have(&view.active)
            || view.snapshot.as_ref().is_some_and(may_have)
            || !may_have_time(file.reader(), plan.range, plan.oldest)
        {
            return Row::Unknown;
        }
        self.row_in(file)
    }

    /// The same with a look at all that the store has.
    fn read_places(
        &mut self,
        plan: &mut StorePlan,
        view: &StoreView,
        sink: &mut dyn ResultSink,
    ) -> Result<(), Halt> {
        let mut found = Found::default();
        self.find_in_memstores(plan, view, &mut found)?;
        if let Some(source) = self.take_newest(plan, view, &mut found)? {
            plan.origin = self.write(self.cells_of(source), &mut plan.matcher, sink)?;
            if plan.origin != Origin::Nowhere {
                plan.reads.note_row(plan.origin);
                return Ok(());
            }
            // It does not count: the family's time to live is over, say.
            self.find_in_memstores(plan, view, &mut found)?;
        }
        self.find_in_files(plan, view, &mut found)?;
        let matcher = &mut plan.matcher;
        let (order, blocks) = (self.order, self.blocks);
        let asked = found.asked;
        let origin = match found.first {
            None => Origin::Nowhere,
            Some(Place::Run(run, _)) if found.others.is_empty() => {
                self.write(self.cells_of_run(run), matcher, sink)?
            }
            Some(Place::Source(source)) if found.others.is_empty() => {
                self.write(self.cells_of(source), matcher, sink)?
            }
            Some(first) => {
                let places = std::iter::once(first).chain(found.others);
                let sources = places.map(|place| self.source_of(place)).collect::<Result<_, _>>()?;
                let merge = Merge::of_settled(order, sources);
                self.write(MergedCells { merge, blocks }, matcher, sink)?
            }
        };
        plan.origin = origin;
        plan.reads.note_row(origin);
        plan.reads.note_filters(asked);
        Ok(())
    }

    /// Finds which memstores have cells of the row.
    fn find_in_memstores<'v>(
        &mut self,
        plan: &StorePlan,
        view: &'v StoreView,
        found: &mut Found<'v>,
    ) -> Result<(), Halt> {
        for memstore in std::iter::once(&view.active).chain(&view.snapshot) {
            if memstore.may_have_time(plan.range, plan.oldest) {
                found.add(self.settled(Source::memstore(memstore.cursor(), self.read_point))?);
            }
        }
        Ok(())
    }

    /// What was found, if nothing else is to be looked at: the one cell that is wanted is there, and newer than all in files.
    /// No version in them takes its place, and no marker in them hides it.
    fn take_newest(
        &self,
        plan: &StorePlan,
        view: &StoreView,
        found: &mut Found<'_>,
    ) -> Result<Option<Source>, Halt> {
        let Some(wanted) = plan.matcher.one_cell().filter(|_| found.others.is_empty()) else {
            return Ok(None);
        };
        let Some(Place::Source(source)) = &mut found.first else { return Ok(None) };
        // Other columns need not be passed over again.
        for _ in 0..CELLS_PASSED_MAX {
            let passes = |cell: &Cell<'_>| {
                cell.row() == self.row && cell.kind() == CellType::Put && cell.qualifier() < &wanted[..]
            };
            if !source.cell().as_ref().is_some_and(passes) {
                break;
            }
            source.order(Order::Next);
            source.settle(self.order, &[], self.blocks)?;
        }
        let is_newer_than_files =
            |timestamp: i64| view.files.iter().all(|file| file.reader().info().time_range.max < timestamp);
        let is_newest = source.cell().is_some_and(|cell| {
            let is_wanted = cell.row() == self.row && *cell.qualifier() == wanted[..];
            // Behind one with a time to live of its own, which may be over, an older one may be next.
            let is_put = cell.kind() == CellType::Put && cell.tags.is_empty();
            is_wanted
                && is_put
                && plan.range.contains(cell.timestamp())
                && is_newer_than_files(cell.timestamp())
        });
        match found.first.take_if(|_| is_newest) {
            Some(Place::Source(source)) => Ok(Some(source)),
            _ => Ok(None),
        }
    }

    /// Finds which files have cells of the row.
    fn find_in_files<'v>(
        &mut self,
        plan: &StorePlan,
        view: &'v StoreView,
        found: &mut Found<'v>,
    ) -> Result<(), Halt> {
        let StorePlan { range, oldest, ref matcher, .. } = *plan;
        let (order, row, aimed_at) = (self.order, self.row, self.aim.file_id());
        let wanted = |file: &&Arc<StoreFile>| {
            may_have_time(file.reader(), range, oldest)
                && (aimed_at == Some(file.reader().file_id()) || may_have_rows(file, order, row, row))
        };
        let mut files = view.files.iter().rev().filter(wanted).peekable();
        let (mut asks, mut missed) = (self.is_loading, Miss::default());
        while let Some(file) = files.next() {
            asks |= files.peek().is_some();
            // The only file is searched at once: its Bloom filter is of use only where blocks have to be loaded.
            let few = || matcher.qualifiers().filter(|wanted| wanted.len() <= BLOOM_COLUMNS_MAX);
            let may_have = match asks {
                true => {
                    may_have(file.reader(), row, few(), self.blocks, &mut found.asked).map_err(Halt::from)
                }
                false => Ok(true),
            };
            match may_have.and_then(|may_have| if may_have { self.place_in(file) } else { Ok(None) }) {
                Ok(place) => found.add(place),
                Err(Halt::Missed(miss)) if self.is_loading => missed.merge(miss),
                Err(halt) => return Err(halt),
            }
        }
        if missed.blocks.is_empty() { Ok(()) } else { Err(Halt::Missed(missed)) }
    }

    /// Where the row is in a file; `None` if it is not there.
    fn place_in<'v>(&mut self, file: &'v StoreFile) -> Result<Option<Place<'v>>, Halt> {
        match self.row_in(file) {
            Row::Run(run) => Ok(Some(Place::Run(run, file))),
            Row::Absent => Ok(None),
            Row::Unknown => self.settled(Source::file(file, self.read_point, None)),
        }
    }

    /// What a file has of the row, if that is in one block that is in memory.
    fn row_in(&mut self, file: &StoreFile) -> Row {
        let reader = file.reader();
        let file_id = reader.file_id();
        if file.half().is_some() || !all_visible(reader, self.read_point) || self.unknown_in == Some(file_id)
        {
            return Row::Unknown;
        }
        let aim = self.aim.take_if_at(file_id).or_else(|| {
            let mut aim = hfile::Aim::at(reader, self.row, self.blocks)?;
            aim.take_block(reader, self.blocks);
            Some(aim)
        });
        let row = aim.map_or(Row::Unknown, |aim| aim.row(self.row));
        if matches!(row, Row::Unknown) {
            self.unknown_in = Some(file_id);
        }
        row
    }

    /// Sends a source to the row; `None` if it has none of its cells.
    fn settled<'v>(&mut self, mut source: Source) -> Result<Option<Place<'v>>, Halt> {
        if self.start.is_empty() {
            set_first_on_row(&mut self.start, self.row);
        }
        source.order(Order::Seek);
        source.settle(self.order, &self.start, self.blocks)?;
        let is_there = source.cell().is_some_and(|cell| cell.row() == self.row);
        Ok(is_there.then_some(Place::Source(source)))
    }

    /// What a merge can read, where there are several.
    fn source_of(&mut self, place: Place<'_>) -> Result<Source, Halt> {
        match place {
            Place::Source(source) => Ok(source),
            Place::Run(_, file) => match self.settled(Source::file(file, self.read_point, None))? {
                Some(Place::Source(source)) => Ok(source),
                _ => Err(Halt::NotSimple),
            },
        }
    }

    fn cells_of_run(&self, run: Run) -> RunCells {
        RunCells { run, order: self.order, target: Vec::new() }
    }

    fn cells_of(&self, source: Source) -> SourceCells<'a> {
        SourceCells { source, order: self.order, target: Vec::new(), blocks: self.blocks }
    }

    /// Judges the cells of the row, and writes those that pass. Says where they were.
    fn write(
        &mut self,
        mut cells: impl RowCells,
        matcher: &mut Matcher<Qualifiers>,
        sink: &mut dyn ResultSink,
    ) -> Result<Origin, Halt> {
        let mut origin = Origin::Nowhere;
        matcher.begin_row();
        while let Some(cell) = cells.cell().filter(|cell| cell.row() == self.row) {
            let cost = cell.len_without_tags() + CELL_COST;
            self.room = self.room.checked_sub(cost).ok_or(Halt::NotSimple)?;
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

/// Where cells of the row are, the newest first.
#[derive(Default)]
struct Found<'v> {
    // Apart: mostly there is no other.
    first: Option<Place<'v>>,
    others: Vec<Place<'v>>,
    // What filters of files were asked on the way.
    asked: FiltersAsked,
}

/// Cells of the row in one memstore or file, from the first on.
enum Place<'v> {
    Source(Source),
    /// All of them, in one block of the file.
    Run(Run, &'v StoreFile),
}

impl<'v> Found<'v> {
    fn add(&mut self, place: Option<Place<'v>>) {
        match &self.first {
            None => self.first = place,
            Some(_) => self.others.extend(place),
        }
    }
}

/// The cells of a row and what follows them, in order.
trait RowCells {
    fn cell(&self) -> Option<Cell<'_>>;
    /// The value of the current cell with the memory that it is part of, if it is worth keeping that for it.
    fn large_value(&self) -> Option<Bytes>;
    /// Whether the current cell is in a memstore.
    fn is_in_memstore(&self) -> bool;
    fn next(&mut self) -> Result<(), Stop>;
    /// Goes behind the current column, or to the column `hint` behind it.
    fn pass_column(&mut self, hint: Option<&[u8]>) -> Result<(), Stop>;
}

struct RunCells {
    run: Run,
    order: CellOrder,
    // The key that the run is sent to.
    target: Vec<u8>,
}

impl RowCells for RunCells {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        self.run.cell()
    }

    fn large_value(&self) -> Option<Bytes> {
        self.run.large_value()
    }

    #[inline]
    fn is_in_memstore(&self) -> bool {
        false
    }

    #[inline]
    fn next(&mut self) -> Result<(), Stop> {
        self.run.next();
        Ok(())
    }

    fn pass_column(&mut self, hint: Option<&[u8]>) -> Result<(), Stop> {
        let Some(cell) = self.run.cell() else { return Ok(()) };
        match set_behind_column(&mut self.target, &cell, hint) {
            true => self.run.seek_forward(self.order, &self.target),
            false => self.run.next(),
        }
        Ok(())
    }
}

struct SourceCells<'a> {
    source: Source,
    order: CellOrder,
    // The key that the source is sent to; empty as long as it goes from cell to cell.
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
        if !set_behind_column(&mut self.target, &cell, hint) {
            return self.next();
        }
        self.source.order(Order::SeekForward);
        self.source.settle(self.order, &self.target, self.blocks)
    }
}

/// Sets the key behind the column of `cell`, or of the column `hint` behind it; `false` if only the next cell is behind it: markers of
/// the whole family may follow among the versions of the empty qualifier.
fn set_behind_column(target: &mut Vec<u8>, cell: &Cell<'_>, hint: Option<&[u8]>) -> bool {
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

/// Where a row is that is about to be read, most likely.
#[derive(Default)]
pub(crate) struct Aim {
    file: Option<hfile::Aim>,
}

impl Aim {
    /// Finds the block of `row` in the store that is read first, where that has one file only.
    pub(crate) fn at(row: &[u8], first: Option<&StoreView>, blocks: &dyn BlockSource) -> Aim {
        let file = first.and_then(StoreView::only_file).filter(|file| file.half().is_none());
        Aim { file: file.and_then(|file| hfile::Aim::at(file.reader(), row, blocks)) }
    }

    /// Asks the processor for the block.
    #[inline]
    pub(crate) fn prefetch_block(&self, blocks: &dyn BlockSource) {
        if let Some(file) = &self.file {
            file.prefetch_block(blocks);
        }
    }

    /// Takes the block, if it is in memory, and asks the processor for it.
    #[inline]
    pub(crate) fn take_block(&mut self, first: Option<&StoreView>, blocks: &dyn BlockSource) {
        if let Some(aim) = &mut self.file
            && let Some(file) = first.and_then(StoreView::only_file)
            && file.reader().file_id() == aim.file_id()
        {
            aim.take_block(file.reader(), blocks);
        }
    }

    /// Asks the processor for what a search of the block looks at.
    #[inline]
    pub(crate) fn prefetch_search(&mut self, row: &[u8]) {
        if let Some(file) = &mut self.file {
            file.prefetch_search(row);
        }
    }

    /// Finds the row's first cell in the block.
    #[inline]
    pub(crate) fn find_cell(&mut self, row: &[u8]) {
        if let Some(file) = &mut self.file {
            file.find_cell(row);
        }
    }

    /// Asks the processor for that cell.
    #[inline]
    pub(crate) fn prefetch_cell(&self) {
        if let Some(file) = &self.file {
            file.prefetch_cell();
        }
    }

    /// The file in which the block was found.
    fn file_id(&self) -> Option<u64> {
        self.file.as_ref().map(hfile::Aim::file_id)
    }

    /// The aim, if it is at `file`.
    #[inline]
    fn take_if_at(&mut self, file_id: u64) -> Option<hfile::Aim> {
        self.file.take_if(|aim| aim.file_id() == file_id)
    }
}
