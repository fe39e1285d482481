//! A scan of columns at work: unit by unit, by as many tasks as like to.

use std::sync::Arc;

use bytes::Bytes;
use cell::CellOrder;
use cell::KeyBuf;
use cell::query::{CellSelection, FamilyColumns, Scan};
use columnar::{Batch, Vector};
use hfile::{BlockSource, Miss, Stop};

use crate::columns::kept::Facts;
use crate::columns::merged::{BATCH_BYTES, BATCH_ROWS, Merged};
use crate::columns::plan::{self, RowRange, Stretch, Unit, Wanted};
use crate::columns::stretch::{self, Shelf};
use crate::error::Result;
use crate::mvcc::ReadGuard;
use crate::region::Region;
use crate::scanner::{
    BlockLoader, Blocks, FamilyRules, Keep, Limits, Order, RegionScanner, Runs, Source, Stopped, drive,
};
use crate::store::{RegionView, StoreView};

/// Takes what a scan of columns finds.
pub trait BatchSink: Send {
    /// Whether rows of a stretch can be of use, as far as those of its vectors tell that are at hand.
    fn may_use(&self, vectors: &[Option<Arc<Vector>>]) -> bool;
    /// Rows, of which one vector of each wanted column tells. Whether more are wanted.
    ///
    /// # Errors
    /// What the sink fails with; the scan ends with it.
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool>;
    /// So many rows, of which nothing was asked.
    fn rows(&mut self, rows: u64);
}

/// How rows were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Rows in vectors of stretches.
    pub in_vectors: u64,
    /// Rows merged from all that holds cells of them.
    pub merged: u64,
    /// Rows of which the facts of their stretch told enough.
    pub skipped: u64,
    /// Stretches whose cells were walked over.
    pub built: u64,
}

impl Looked {
    /// Both together.
    pub fn add(&mut self, other: &Looked) {
        self.in_vectors += other.in_vectors;
        self.merged += other.merged;
        self.skipped += other.skipped;
        self.built += other.built;
    }

    /// All rows.
    pub fn rows(&self) -> u64 {
        self.in_vectors + self.merged + self.skipped
    }
}

/// What was read of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadUnit {
    /// How.
    pub looked: Looked,
    /// The row to go on at, where the sink wanted no more before the unit's end.
    pub next_row: Option<Bytes>,
}

/// A scan of columns of a region at one read point, which several tasks may share.
pub struct ColumnScan {
    region: Arc<Region>,
    view: Arc<RegionView>,
    guard: ReadGuard,
    wanted: Wanted,
    range: RowRange,
    // The only family, if its stretches can be of use.
    store: Option<usize>,
    now_ms: i64,
}

/// What one reader of files has at hand.
pub(super) struct Reading {
    blocks: Blocks,
    runs: Runs,
}

impl Reading {
    fn new(loader: &Arc<BlockLoader>) -> Reading {
        Reading { blocks: Blocks::new(loader.clone()), runs: Runs::default() }
    }

    pub(super) fn blocks(&self) -> &dyn BlockSource {
        &self.blocks
    }

    /// A step was made: blocks that it needed are held by who made it.
    #[inline]
    pub(super) fn step_succeeded(&mut self) {
        self.blocks.release_taken();
    }

    /// Loads what a step missed, and what is read next.
    pub(super) async fn load(&mut self, miss: &Miss) -> Result<()> {
        for missed in &miss.blocks {
            self.blocks.drop_before(missed.file.file_id(), missed.offset);
        }
        let loader = self.blocks.loader().clone();
        for block in loader.load_missed(miss, Some(&mut self.runs), Keep::All).await? {
            BlockLoader::note_read(&block);
            self.blocks.supply(block);
        }
        Ok(())
    }
}

impl ColumnScan {
    /// Begins a scan of the part of `wanted` that lies in `region`, at the newest read point.
    ///
    /// # Errors
    /// [`Error::NotServing`], [`Error::NoSuchFamily`].
    pub fn new(region: &Arc<Region>, wanted: Wanted) -> Result<ColumnScan> {
        let (view, guard, stores) = region.view_to_scan(&wanted.families)?;
        let info = region.info();
        let start = wanted.start_row.clone().max(info.start_key.clone());
        let stop = match (wanted.stop_row.is_empty(), info.end_key.is_empty()) {
            (true, _) => info.end_key.clone(),
            (false, true) => wanted.stop_row.clone(),
            (false, false) => wanted.stop_row.clone().min(info.end_key.clone()),
        };
        let store = match stores[..] {
            [at] => Some(at),
            _ => None,
        };
        let store = store
            .filter(|at| region.order() == CellOrder::Plain && !region.rules()[*at].new_version_behavior);
        let now_ms = region.now_ms();
        Ok(ColumnScan {
            region: region.clone(),
            view,
            guard,
            wanted,
            range: RowRange { start, stop },
            store,
            now_ms,
        })
    }

    /// What is asked.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The rows in order, cut into units of work.
    ///
    /// # Errors
    /// What reading the indexes of files can fail with.
    pub async fn units(&self) -> Result<Vec<Unit>> {
        if !self.range.stop.is_empty() && self.range.start >= self.range.stop {
            return Ok(Vec::new());
        }
        let files = self.store.map_or(&[][..], |at| &self.view.stores[at].files);
        plan::units(self.range.clone(), files, &mut Reading::new(self.region.loader())).await
    }

    /// Reads a unit.
    ///
    /// # Errors
    /// What reading files can fail with; [`Error::BadRequest`] for values that are not as their column says; the sink's.
    pub async fn read(&self, unit: &Unit, sink: &mut dyn BatchSink) -> Result<ReadUnit> {
        if let (Some(stretch), Some(store)) = (&unit.stretch, self.store) {
            let mut reading = Reading::new(self.region.loader());
            let view = &self.view.stores[store];
            if self.is_alone(&unit.rows, stretch, view, &mut reading).await?
                && let Some(looked) =
                    self.read_stretch(&unit.rows, stretch, store, &mut reading, sink).await?
            {
                return Ok(ReadUnit { looked, next_row: None });
            }
        }
        self.read_merged(&unit.rows, sink).await
    }

    /// Whether nothing but the file of `stretch` has cells of these rows.
    async fn is_alone(
        &self,
        rows: &RowRange,
        stretch: &Stretch,
        view: &StoreView,
        reading: &mut Reading,
    ) -> Result<bool> {
        let read_point = self.guard.read_point();
        let memstores = std::iter::once(&view.active).chain(&view.snapshot);
        let memstores = memstores.filter(|memstore| !memstore.is_empty());
        let mut others: Vec<Source> =
            memstores.map(|memstore| Source::memstore(memstore.cursor(), read_point)).collect();
        for file in view.files.iter().filter(|file| !Arc::ptr_eq(file, &stretch.file)) {
            if crate::scanner::may_have_rows(file, CellOrder::Plain, &rows.start, &rows.stop) {
                others.push(Source::file(file, read_point, None));
            }
        }
        let start = KeyBuf::first_on_row(&rows.start);
        for other in &mut others {
            other.order(Order::Seek);
            loop {
                match other.settle(CellOrder::Plain, start.as_slice(), reading.blocks()) {
                    Ok(()) => break,
                    Err(Stop::Failed(error)) => return Err(error.into()),
                    Err(Stop::Miss(miss)) => reading.load(&miss).await?,
                }
            }
            reading.step_succeeded();
            if other.cell().is_some_and(|cell| cell.row() < &rows.stop[..]) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the rows of a stretch that is alone; `None` if its cells need the scanner's judgement.
    async fn read_stretch(
        &self,
        rows: &RowRange,
        stretch: &Stretch,
        store: usize,
        reading: &mut Reading,
        sink: &mut dyn BatchSink,
    ) -> Result<Option<Looked>> {
        let columns = &self.wanted.columns;
        let shelf = Shelf::of(self.region.loader(), stretch);
        let known = shelf.known(columns);
        let rules = &self.region.rules()[store];
        if known.facts.is_some_and(|facts| !self.may_take(&facts, rules)) {
            return Ok(None);
        }
        if let Some(facts) = known.facts {
            let skipped = Looked { skipped: facts.rows as u64, ..Looked::default() };
            if columns.is_empty() {
                sink.rows(facts.rows as u64);
                return Ok(Some(skipped));
            }
            if !sink.may_use(&known.vectors) {
                return Ok(Some(skipped));
            }
        }
        let missing: Vec<_> = columns
            .iter()
            .zip(&known.vectors)
            .filter(|(_, vector)| vector.is_none())
            .map(|(column, _)| column.clone())
            .collect();
        let mut looked = Looked::default();
        let (mut facts, mut built) = (known.facts, Vec::new().into_iter());
        if facts.is_none() || !missing.is_empty() {
            let (seen, vectors) = stretch::build(&shelf, rows, &missing, reading).await?;
            if !self.may_take(&seen, rules) {
                return Ok(None);
            }
            looked.built = 1;
            (facts, built) = (Some(seen), vectors.into_iter());
        }
        let rows = facts.map_or(0, |facts| facts.rows);
        looked.in_vectors = rows as u64;
        if columns.is_empty() {
            sink.rows(rows as u64);
            return Ok(Some(looked));
        }
        let vectors: Vec<Arc<Vector>> = known
            .vectors
            .into_iter()
            .map(|kept| kept.or_else(|| built.next()).expect("built what was missing"))
            .collect();
        sink.batch(&Batch { len: rows, columns: &vectors, rows: None })?;
        Ok(Some(looked))
    }

    /// Whether the first cell of each column is the one wanted, in a stretch of which this is known.
    fn may_take(&self, facts: &Facts, rules: &FamilyRules) -> bool {
        let (least, greatest) = facts.timestamps;
        let range = self.wanted.time_range;
        facts.is_plain
            && facts.seq_id_max <= self.guard.read_point()
            && (facts.rows == 0 || (range.contains(least) && range.contains(greatest)))
            && least >= rules.oldest_unexpired(self.now_ms)
    }

    /// Reads rows as a scan does.
    async fn read_merged(&self, rows: &RowRange, sink: &mut dyn BatchSink) -> Result<ReadUnit> {
        let scan = Scan {
            start_row: rows.start.clone(),
            stop_row: rows.stop.clone(),
            selection: self.selection(),
            ..Scan::default()
        };
        let guard = self.region.mvcc().register_reader(Some(self.guard.read_point()));
        let stores = self.region.rules().iter().zip(&self.view.stores);
        let loader = self.region.loader().clone();
        let mut scanner = RegionScanner::new(stores, self.region.order(), &scan, guard, self.now_ms, loader)?;
        let mut merged = Merged::new(&self.wanted.columns);
        let mut looked = Looked::default();
        loop {
            let mut limits = Limits { rows: BATCH_ROWS, bytes: BATCH_BYTES, ..Limits::default() };
            let progress = drive(&mut scanner, &mut limits, &mut merged).await?;
            let count = merged.len() as u64;
            let (_, vectors) = merged.take()?;
            looked.merged += count;
            let goes_on = if self.wanted.columns.is_empty() {
                sink.rows(count);
                true
            } else {
                count == 0 || sink.batch(&Batch { len: count as usize, columns: &vectors, rows: None })?
            };
            if progress.stopped == Stopped::Exhausted {
                return Ok(ReadUnit { looked, next_row: None });
            }
            if !goes_on {
                let mut next_row = scanner.last_row().to_vec();
                next_row.push(0);
                return Ok(ReadUnit { looked, next_row: Some(next_row.into()) });
            }
        }
    }

    fn selection(&self) -> CellSelection {
        let whole = |family: &Bytes| FamilyColumns { family: family.clone(), qualifiers: None };
        let mut columns: Vec<FamilyColumns> = self.wanted.families.iter().map(whole).collect();
        columns.sort_by(|left, right| left.family.cmp(&right.family));
        CellSelection { columns, time_range: self.wanted.time_range, ..CellSelection::default() }
    }
}
