//! A scan of columns at work: unit by unit, by as many tasks as like to.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cell::CellOrder;
use cell::query::{CellSelection, FamilyColumns, Scan};
use columnar::{Batch, Bounds, Place, slices};

use crate::columns::kept::Facts;
use crate::columns::merged::{Merged, MergedRows};
use crate::columns::plan::{RowRange, Unit, Wanted, Way};
use crate::error::Result;
use crate::mvcc::ReadGuard;
use crate::region::Region;
use crate::scanner::{Deadline, Limits, RegionScanner, Stopped, drive};
use crate::store::RegionView;

/// How often a scan of rows that are merged looks whether more are wanted.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Takes what a scan of columns finds.
pub trait BatchSink: Send {
    /// Whether rows of a stretch can be of use, as far as is known of each column.
    fn may_use(&self, bounds: &[Bounds]) -> bool;
    /// Rows, of which one vector of each wanted column tells. Of those that are there the first is taken always, unless no row
    /// is wanted at all any more.
    ///
    /// # Errors
    /// What the sink fails with; the scan ends with it.
    fn batch(&mut self, batch: &Batch<'_>) -> Result<Taken>;
    /// So many rows, of which nothing was asked.
    fn rows(&mut self, rows: u64);
    /// Whether it may be that not all of a batch is taken.
    fn may_stop(&self) -> bool {
        false
    }
    /// Whether more rows are wanted, asked when none were found for some time.
    ///
    /// # Errors
    /// As [`batch`](BatchSink::batch).
    fn goes_on(&mut self) -> Result<bool> {
        Ok(true)
    }
}

/// What a sink took of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All rows.
    All,
    /// The rows in front of this one; then it wants no more.
    Until(usize),
}

impl Taken {
    /// The first row that was not taken of a batch that begins at `rows`, if it is one of those.
    pub(super) fn until(self, rows: std::ops::Range<usize>) -> Option<usize> {
        match self {
            Taken::All => None,
            Taken::Until(row) => Some(rows.start + row).filter(|row| *row < rows.end),
        }
    }
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
    pub(super) range: RowRange,
    // The families whose cells make rows.
    pub(super) stores: Vec<usize>,
    // The only one, if its stretches can be of use.
    pub(super) store: Option<usize>,
    now_ms: i64,
}

impl ColumnScan {
    /// Begins a scan of the part of `wanted` that lies in `region`, at the newest read point.
    ///
    /// # Errors
    /// [`Error::NotServing`](crate::error::Error::NotServing), [`Error::NoSuchFamily`](crate::error::Error::NoSuchFamily).
    pub fn new(region: &Arc<Region>, wanted: Wanted) -> Result<ColumnScan> {
        let (view, guard, stores) = region.view_to_scan(&wanted.families)?;
        let has_cells = wanted.columns.iter().any(|column| matches!(column.place, Place::Cell { .. }));
        let versions = if has_cells { wanted.versions.max(1) } else { 1 };
        let wanted = Wanted { versions, ..wanted };
        let info = region.info();
        let start = wanted.start_row.clone().max(info.start_key.clone());
        let stop = cell::range::min_end(&wanted.stop_row, &info.end_key).clone();
        let store = match stores[..] {
            [at] => Some(at),
            _ => None,
        };
        let store = store
            .filter(|at| region.order() == CellOrder::Plain && !region.rules()[*at].new_version_behavior)
            // Stretches know the newest versions only.
            .filter(|_| versions == 1);
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

    pub(super) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    pub(super) fn view(&self) -> &RegionView {
        &self.view
    }

    pub(super) fn read_point(&self) -> u64 {
        self.guard.read_point()
    }

    /// What is asked.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
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
        match self.read_part(&unit.rows, stretch, store, sink).await? {
            Some(read) => Ok(read),
            None => self.read_merged(&unit.rows, sink).await,
        }
    }

    /// Whether the first cell of each column is the one wanted, in a stretch of which this is known.
    pub(super) fn may_take(&self, facts: &Facts, store: usize) -> bool {
        let (least, greatest) = facts.timestamps;
        let range = self.wanted.time_range;
        facts.is_plain
            && facts.seq_id_max <= self.guard.read_point()
            // A cell that reads pass over is not the one wanted.
            && (facts.rows == 0 || (least >= 0 && range.contains(least) && range.contains(greatest)))
            && least >= self.region.rules()[store].oldest_unexpired(self.now_ms)
    }

    /// Reads single rows, merged from all that has cells of them; `None` where their cells are very many bytes.
    pub(super) async fn merge_rows(&self, rows: &[Bytes]) -> Result<Option<MergedRows>> {
        let mut merged = Merged::new(&self.wanted.columns, self.wanted.versions);
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
                return Ok(None);
            }
        }
        merged.take().map(Some)
    }

    /// Reads rows as a scan does.
    async fn read_merged(&self, rows: &RowRange, sink: &mut dyn BatchSink) -> Result<ReadUnit> {
        let mut scanner = self.scanner(&Scan {
            start_row: rows.start.clone(),
            stop_row: rows.stop.clone(),
            selection: self.selection(),
            ..Scan::default()
        })?;
        let mut merged = Merged::new(&self.wanted.columns, self.wanted.versions);
        let mut looked = Looked::default();
        loop {
            let stopped = self.fill(&mut scanner, &mut merged).await?;
            let found = merged.take()?;
            let (count, next_row) = self.give(&found, sink).await?;
            looked.merged += count;
            if next_row.is_some() {
                return Ok(ReadUnit { looked, next_row });
            }
            if stopped == Stopped::Exhausted {
                return Ok(ReadUnit { looked, next_row: None });
            }
            if !sink.goes_on()? {
                return Ok(ReadUnit { looked, next_row: Some(scanner.next_row().into()) });
            }
        }
    }

    /// Reads whole rows until there are enough for a batch, time to look around, or no more; which of them.
    async fn fill(&self, scanner: &mut RegionScanner, merged: &mut Merged) -> Result<Stopped> {
        let clock = &self.region.env().clock;
        let look = Deadline { clock: clock.clone(), at: clock.monotonic() + LOOK_PERIOD };
        loop {
            let mut limits = Limits { deadline: Some(look.clone()), ..merged.limits() };
            let progress = drive(scanner, &mut limits, merged).await?;
            let has_room = matches!(progress.stopped, Stopped::Rows | Stopped::Bytes) && !merged.is_full();
            if !progress.mid_row && !has_room {
                return Ok(progress.stopped);
            }
        }
    }

    /// Gives merged rows to the sink, until it wants no more: how many, and the row to go on at then.
    async fn give(&self, merged: &MergedRows, sink: &mut dyn BatchSink) -> Result<(u64, Option<Bytes>)> {
        let (len, keys) = (merged.keys.len(), &merged.keys);
        if merged.vectors.is_empty() {
            sink.rows(len as u64);
            return Ok((len as u64, None));
        }
        for range in slices::cut(&merged.vectors, 0..len) {
            let Taken::Until(row) = merged.give(range.clone(), sink)? else {
                tokio::task::yield_now().await;
                continue;
            };
            let mut until = range.start + row;
            if until > 0 && until < len && keys.get(until - 1) == keys.get(until) {
                // Of a row of several versions all are given or none: who goes on does so at a row.
                let end = (until..len).find(|at| keys.get(*at) != keys.get(until)).unwrap_or(len);
                self.give_whole(merged, until..end, sink)?;
                until = end;
            }
            if until < len {
                return Ok((until as u64, Some(Bytes::copy_from_slice(keys.get(until)))));
            }
        }
        Ok((len as u64, None))
    }

    /// Gives merged rows to a sink that may not want all of them, but takes them.
    pub(super) fn give_whole(
        &self,
        merged: &MergedRows,
        rows: std::ops::Range<usize>,
        sink: &mut dyn BatchSink,
    ) -> Result<()> {
        if merged.vectors.is_empty() {
            sink.rows(rows.len() as u64);
            return Ok(());
        }
        let mut rows = rows;
        while !rows.is_empty() {
            match merged.give(rows.clone(), sink)? {
                Taken::Until(taken) if taken > 0 => rows.start += taken,
                _ => break,
            }
        }
        Ok(())
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
        let (time_range, max_versions) = (self.wanted.time_range, self.wanted.versions);
        CellSelection { columns, time_range, max_versions, ..CellSelection::default() }
    }
}
