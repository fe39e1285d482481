//! A scan of columns at work: unit by unit, by as many tasks as like to.

use std::sync::Arc;

use bytes::Bytes;
use cell::CellOrder;
use cell::query::{CellSelection, FamilyColumns, Scan};
use columnar::{Batch, Bits, Column, Encoding, Place, Vector};
use hfile::{BlockSource, Miss};

use crate::columns::kept::Facts;
use crate::columns::merged::Merged;
use crate::columns::others;
use crate::columns::plan::{self, RowRange, Stretch, Unit, Wanted, Way};
use crate::columns::stretch::{self, Shelf};
use crate::error::Result;
use crate::mvcc::ReadGuard;
use crate::region::Region;
use crate::scanner::{
    BlockLoader, Blocks, FamilyRules, Keep, Limits, RegionScanner, Runs, Stopped, drive, may_have_rows,
};
use crate::store::{RegionView, StoreFile};

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
    // The families whose cells make rows.
    stores: Vec<usize>,
    // The only one, if its stretches can be of use.
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
            stores,
            store,
            now_ms,
        })
    }

    /// What is asked.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The rows in order, cut into units of work: stretches of the largest file first.
    ///
    /// # Errors
    /// What reading the indexes of files can fail with.
    pub async fn units(&self) -> Result<Vec<Unit>> {
        let mut units = Vec::new();
        if self.range.is_empty() {
            return Ok(units);
        }
        let (start, stop) = (&self.range.start, &self.range.stop);
        let files = self.stores.iter().flat_map(|at| self.view.stores[*at].files.iter());
        let mut files: Vec<&Arc<StoreFile>> =
            files.filter(|file| may_have_rows(file, CellOrder::Plain, start, stop)).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.len()));
        if self.region.order() != CellOrder::Plain {
            files.clear();
        } else if self.store.is_none() {
            // All is merged; the largest file says where to cut.
            files.truncate(1);
        }
        let mut of_files = Vec::with_capacity(files.len());
        let mut reading = Reading::new(self.region.loader());
        for file in files {
            of_files.push(match self.counted(file, &mut reading).await? {
                Some(counted) => vec![counted],
                None => plan::stretches(file, &mut reading).await?,
            });
        }
        if self.store.is_none() {
            of_files.iter_mut().flatten().for_each(|unit| unit.way = Way::Merged);
        }
        plan::fill(self.range.clone(), &of_files, &mut units);
        Ok(units)
    }

    /// All rows of a file, where nothing is asked of them and it says how many there are.
    async fn counted(&self, file: &Arc<StoreFile>, reading: &mut Reading) -> Result<Option<Unit>> {
        let (Some(store), Some(rows), Some(range)) =
            (self.store, file.reader().info().plain_rows, plan::rows_of(file))
        else {
            return Ok(None);
        };
        let info = file.reader().info();
        let is_whole = self.wanted.columns.is_empty() && !file.is_reference() && self.range.contains(&range);
        let facts = Facts {
            rows: rows as usize,
            is_plain: info.bulk_load_time_ms.is_none(),
            seq_id_max: info.max_memstore_ts,
            timestamps: (info.time_range.min, info.time_range.max),
        };
        if !is_whole || !self.may_take(&facts, &self.region.rules()[store]) {
            return Ok(None);
        }
        let (view, read_point) = (&self.view.stores[store], self.guard.read_point());
        let others = others::rows_of_others(&range, file, view, read_point, reading).await?;
        let is_alone = others.is_some_and(|others| others.is_empty());
        Ok(is_alone.then_some(Unit { rows: range, way: Way::Counted(rows) }))
    }

    /// Reads a unit.
    ///
    /// # Errors
    /// What reading files can fail with; [`Error::BadRequest`](crate::Error::BadRequest) for values that are not as their column
    /// says; the sink's.
    pub async fn read(&self, unit: &Unit, sink: &mut dyn BatchSink) -> Result<ReadUnit> {
        let (stretch, store) = match (&unit.way, self.store) {
            (Way::Stretch(stretch), Some(store)) => (stretch, store),
            (Way::Counted(rows), _) => {
                sink.rows(*rows);
                let looked = Looked { skipped: *rows, ..Looked::default() };
                return Ok(ReadUnit { looked, next_row: None });
            }
            _ => return self.read_merged(&unit.rows, sink).await,
        };
        let mut reading = Reading::new(self.region.loader());
        let (view, read_point) = (&self.view.stores[store], self.guard.read_point());
        let others =
            others::rows_of_others(&unit.rows, &stretch.file, view, read_point, &mut reading).await?;
        let Some(others) = others else {
            return self.read_merged(&unit.rows, sink).await;
        };
        let Some(mut looked) = self.read_stretch(unit, stretch, store, &others, &mut reading, sink).await?
        else {
            return self.read_merged(&unit.rows, sink).await;
        };
        looked.merged += self.read_rows(&others, sink).await?;
        Ok(ReadUnit { looked, next_row: None })
    }

    /// Reads the rows of a stretch, but for those that others have cells of; `None` if its cells need the scanner's judgement.
    async fn read_stretch(
        &self,
        unit: &Unit,
        stretch: &Stretch,
        store: usize,
        others: &[Bytes],
        reading: &mut Reading,
        sink: &mut dyn BatchSink,
    ) -> Result<Option<Looked>> {
        let mut columns = self.wanted.columns.clone();
        let wanted = columns.len();
        if !others.is_empty() {
            columns.push(row_key());
        }
        let shelf = Shelf::of(self.region.loader(), stretch);
        let known = shelf.known(&columns);
        let rules = &self.region.rules()[store];
        let mut looked = Looked::default();
        if let Some(facts) = known.facts {
            if !self.may_take(&facts, rules) {
                return Ok(None);
            }
            let is_of_use = wanted == 0 || sink.may_use(&known.vectors[..wanted]);
            if !is_of_use || columns.is_empty() {
                looked.skipped = facts.rows as u64;
                if is_of_use {
                    sink.rows(facts.rows as u64);
                }
                return Ok(Some(looked));
            }
        }
        let is_missing = |(_, vector): &(_, &Option<Arc<Vector>>)| vector.is_none();
        let missing: Vec<Column> =
            columns.iter().zip(&known.vectors).filter(is_missing).map(|(column, _)| column.clone()).collect();
        let (mut facts, mut built) = (known.facts, Vec::new().into_iter());
        if facts.is_none() || !missing.is_empty() {
            let Some((seen, vectors)) = stretch::build(&shelf, &unit.rows, &missing, reading).await? else {
                return Ok(None);
            };
            if !self.may_take(&seen, rules) {
                return Ok(None);
            }
            looked.built = 1;
            (facts, built) = (Some(seen), vectors.into_iter());
        }
        let len = facts.map_or(0, |facts| facts.rows);
        let kept = known.vectors.into_iter();
        let vectors: Vec<Arc<Vector>> =
            kept.map(|kept| kept.or_else(|| built.next()).expect("built what was missing")).collect();
        let rows = vectors.get(wanted).map(|keys| others::all_but(others, keys));
        let count = rows.as_ref().map_or(len, Bits::count);
        looked.in_vectors = count as u64;
        match wanted {
            0 => sink.rows(count as u64),
            _ => {
                sink.batch(&Batch { len, columns: &vectors[..wanted], rows: rows.as_ref() })?;
            }
        }
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

    /// Reads single rows, merged from all that has cells of them; tells how many are there.
    async fn read_rows(&self, rows: &[Bytes], sink: &mut dyn BatchSink) -> Result<u64> {
        if rows.is_empty() {
            return Ok(0);
        }
        let mut merged = Merged::new(&self.wanted.columns);
        let mut count = 0;
        for row in rows {
            let scan = Scan {
                start_row: row.clone(),
                stop_row: row.clone(),
                include_stop_row: true,
                selection: self.selection(),
                ..Scan::default()
            };
            let mut scanner = self.scanner(&scan)?;
            while drive(&mut scanner, &mut Limits::default(), &mut merged).await?.stopped
                != Stopped::Exhausted
            {}
            if merged.is_large() {
                count += self.give(&mut merged, sink)?.0;
            }
        }
        Ok(count + self.give(&mut merged, sink)?.0)
    }

    /// Reads rows as a scan does.
    async fn read_merged(&self, rows: &RowRange, sink: &mut dyn BatchSink) -> Result<ReadUnit> {
        let mut scanner = self.scanner(&Scan {
            start_row: rows.start.clone(),
            stop_row: rows.stop.clone(),
            selection: self.selection(),
            ..Scan::default()
        })?;
        let mut merged = Merged::new(&self.wanted.columns);
        let mut looked = Looked::default();
        loop {
            let mut limits = merged.limits();
            let progress = drive(&mut scanner, &mut limits, &mut merged).await?;
            let (count, goes_on) = self.give(&mut merged, sink)?;
            looked.merged += count;
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

    /// Gives what was merged to the sink: how many rows, and whether it wants more.
    fn give(&self, merged: &mut Merged, sink: &mut dyn BatchSink) -> Result<(u64, bool)> {
        let count = merged.len();
        let (_, vectors) = merged.take()?;
        if vectors.is_empty() {
            sink.rows(count as u64);
            return Ok((count as u64, true));
        }
        let goes_on = count == 0 || sink.batch(&Batch { len: count, columns: &vectors, rows: None })?;
        Ok((count as u64, goes_on))
    }

    /// A scanner at the scan's moment.
    fn scanner(&self, scan: &Scan) -> Result<RegionScanner> {
        let guard = self.region.mvcc().register_reader(Some(self.guard.read_point()));
        let stores = self.region.rules().iter().zip(&self.view.stores);
        let loader = self.region.loader().clone();
        let mut scanner = RegionScanner::new(stores, self.region.order(), scan, guard, self.now_ms, loader)?;
        scanner.limit_rows(self.region.options().row_bytes_max);
        Ok(scanner)
    }

    fn selection(&self) -> CellSelection {
        let whole = |family: &Bytes| FamilyColumns { family: family.clone(), qualifiers: None };
        let mut columns: Vec<FamilyColumns> = self.wanted.families.iter().map(whole).collect();
        columns.sort_by(|left, right| left.family.cmp(&right.family));
        CellSelection { columns, time_range: self.wanted.time_range, ..CellSelection::default() }
    }
}

/// The whole row key, as it is.
fn row_key() -> Column {
    Column { place: Place::RowBytes { offset: 0, length: None }, encoding: Encoding::Raw, scale: 0 }
}
