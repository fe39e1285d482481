//! Runs a scan of columns unit by unit, by any number of tasks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cell::CellOrder;
use cell::query::{CellSelection, FamilyColumns, Scan};
use columnar::{Batch, Bounds, ColumnLocation, slices};
use engine::error::Result;
use engine::region::{Region, RegionReader};
use engine::scanner::{Deadline, Limits, RegionScanner, Stopped, drive};

use crate::entry::StretchFacts;
use crate::merged::{MergedRows, RowCollector};
use crate::plan::{ColumnQuery, ReadMethod, RowRange, Unit};

/// How often a scan of merged rows checks whether more rows are wanted.
const CHECK_PERIOD: Duration = Duration::from_millis(100);

/// Receives the rows of a scan of columns.
pub trait BatchSink: Send {
    /// Whether any row of a stretch can be useful, given the known bounds of each column.
    fn may_use(&self, bounds: &[Bounds]) -> bool;
    /// Receives rows, with one vector for each wanted column. The sink takes at least the first row
    /// that is present, unless it wants no more rows at all.
    ///
    /// # Errors
    /// Those of the sink; they end the scan.
    fn batch(&mut self, batch: &Batch<'_>) -> Result<TakenRows>;
    /// Receives a number of rows, if no columns are wanted.
    fn rows(&mut self, rows: u64);
    /// Whether the sink may take only a part of a batch.
    fn may_stop(&self) -> bool {
        false
    }
    /// Whether more rows are wanted. Called when no rows were found for some time.
    ///
    /// # Errors
    /// As [`batch`](BatchSink::batch).
    fn wants_more(&mut self) -> Result<bool> {
        Ok(true)
    }
}

/// The part of a batch that a sink took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenRows {
    /// All rows.
    All,
    /// The rows before this one. The sink wants no more rows.
    Until(usize),
}

impl TakenRows {
    /// The first row that was not taken, of a batch that begins at `rows`. `None` if it is not in
    /// `rows`.
    pub(crate) fn until(self, rows: std::ops::Range<usize>) -> Option<usize> {
        match self {
            TakenRows::All => None,
            TakenRows::Until(row) => Some(rows.start + row).filter(|row| *row < rows.end),
        }
    }
}

/// Statistics on how rows were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Rows read from the vectors of stretches.
    pub in_vectors: u64,
    /// Rows merged from all memstores and files.
    pub merged: u64,
    /// Rows that were not read, because facts about their stretch were enough.
    pub skipped: u64,
    /// Stretches whose vectors were built.
    pub built: u64,
}

impl ReadStats {
    /// Adds `other`.
    pub fn add(&mut self, other: &ReadStats) {
        self.in_vectors += other.in_vectors;
        self.merged += other.merged;
        self.skipped += other.skipped;
        self.built += other.built;
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.in_vectors + self.merged + self.skipped
    }
}

/// What was read of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadUnit {
    /// How its rows were read.
    pub stats: ReadStats,
    /// The row at which to resume, if the sink wanted no more before the end of the unit.
    pub next_row: Option<Bytes>,
}

/// A scan of columns of a region, at one read point. Several tasks may share it.
pub struct ColumnScan {
    pub(crate) reader: RegionReader,
    query: ColumnQuery,
    pub(crate) range: RowRange,
    // Indexes of the families whose cells make rows.
    pub(crate) stores: Vec<usize>,
    // Index of the only family, if its stretches can be used.
    pub(crate) store: Option<usize>,
}

impl ColumnScan {
    /// Begins a scan of the part of `query` that is in `region`, at the newest read point.
    ///
    /// # Errors
    /// [`Error::NotServing`](engine::error::Error::NotServing),
    /// [`Error::NoSuchFamily`](engine::error::Error::NoSuchFamily).
    pub fn new(region: &Arc<Region>, query: ColumnQuery) -> Result<ColumnScan> {
        let reader = region.reader()?;
        let stores = reader.stores_of(&query.families)?;
        let has_cells =
            query.columns.iter().any(|column| matches!(column.location, ColumnLocation::Cell { .. }));
        let versions = if has_cells { query.versions.max(1) } else { 1 };
        let query = ColumnQuery { versions, ..query };
        let info = region.info();
        let start = query.start_row.clone().max(info.start_key.clone());
        let stop = cell::range::min_end(&query.stop_row, &info.end_key).clone();
        let store = match stores[..] {
            [at] => Some(at),
            _ => None,
        };
        let store = store
            .filter(|at| {
                let rules = reader.rules(*at);
                // Store files of a MOB family have references in place of large values.
                region.table().order() == CellOrder::Plain && !rules.new_version_behavior && !rules.is_mob
            })
            // Stretches contain only the newest versions.
            .filter(|_| versions == 1);
        Ok(ColumnScan { reader, query, range: RowRange { start, stop }, stores, store })
    }

    pub(crate) fn region(&self) -> &Arc<Region> {
        self.reader.region()
    }

    /// The wanted rows and columns.
    pub fn query(&self) -> &ColumnQuery {
        &self.query
    }

    /// Reads a unit.
    ///
    /// # Errors
    /// Those of reading files and of the sink. [`Error::BadRequest`](engine::Error::BadRequest) for
    /// a value that does not fit the type of its column.
    pub async fn read(&self, unit: &Unit, sink: &mut dyn BatchSink) -> Result<ReadUnit> {
        let (stretch, store) = match (&unit.method, self.store) {
            (ReadMethod::Stretch(stretch), Some(store)) => (stretch, store),
            (ReadMethod::Counted(rows), _) => {
                sink.rows(*rows);
                let stats = ReadStats { skipped: *rows, ..ReadStats::default() };
                return Ok(ReadUnit { stats, next_row: None });
            }
            _ => return self.read_merged(&unit.rows, sink).await,
        };
        match self.read_part(&unit.rows, stretch, store, sink).await? {
            Some(read) => Ok(read),
            None => self.read_merged(&unit.rows, sink).await,
        }
    }

    /// Whether the first cell of each column is the wanted one, in a stretch with these facts.
    pub(crate) fn may_use_stretch(&self, facts: &StretchFacts, store: usize) -> bool {
        let (least, greatest) = facts.timestamps;
        let range = self.query.time_range;
        facts.is_plain
            && facts.seq_id_max <= self.reader.read_point()
            // Reads skip cells with negative timestamps, so such a cell is not the wanted one.
            && (facts.rows == 0 || (least >= 0 && range.contains(least) && range.contains(greatest)))
            && least >= self.reader.oldest_unexpired(store)
    }

    /// Reads single rows by scans. Returns `None` if their cells have very many bytes.
    pub(crate) async fn merge_rows(&self, rows: &[Bytes]) -> Result<Option<MergedRows>> {
        let mut merged = RowCollector::new(&self.query.columns, self.query.versions);
        for row in rows {
            let scan = Scan {
                start_row: row.clone(),
                stop_row: row.clone(),
                include_stop_row: true,
                selection: self.selection(),
                ..Scan::default()
            };
            let mut scanner = self.reader.scanner(&scan)?;
            while drive(&mut scanner, &mut Limits::default(), &mut merged).await?.stopped
                != Stopped::Exhausted
            {}
            if merged.is_large() {
                return Ok(None);
            }
        }
        merged.take().map(Some)
    }

    /// Reads rows by a scan.
    async fn read_merged(&self, rows: &RowRange, sink: &mut dyn BatchSink) -> Result<ReadUnit> {
        let mut scanner = self.reader.scanner(&Scan {
            start_row: rows.start.clone(),
            stop_row: rows.stop.clone(),
            selection: self.selection(),
            ..Scan::default()
        })?;
        let mut merged = RowCollector::new(&self.query.columns, self.query.versions);
        let mut stats = ReadStats::default();
        loop {
            let deadline = self.check_deadline();
            let stopped = fill(&mut scanner, &mut merged, Some(&deadline)).await?;
            let found = merged.take()?;
            let (count, next_row) = self.pass_rows(&found, sink).await?;
            stats.merged += count;
            if next_row.is_some() {
                return Ok(ReadUnit { stats, next_row });
            }
            if stopped == Stopped::Exhausted {
                return Ok(ReadUnit { stats, next_row: None });
            }
            if !sink.wants_more()? {
                return Ok(ReadUnit { stats, next_row: Some(scanner.next_row().into()) });
            }
        }
    }

    fn check_deadline(&self) -> Deadline {
        let clock = &self.region().env().clock;
        Deadline { clock: clock.clone(), at: clock.monotonic() + CHECK_PERIOD }
    }

    /// Passes merged rows to the sink until it wants no more. Returns how many, and the row at
    /// which to resume then.
    async fn pass_rows(&self, merged: &MergedRows, sink: &mut dyn BatchSink) -> Result<(u64, Option<Bytes>)> {
        let (len, keys) = (merged.keys.len(), &merged.keys);
        if merged.vectors.is_empty() {
            sink.rows(len as u64);
            return Ok((len as u64, None));
        }
        for range in slices::slice_ranges(&merged.vectors, 0..len) {
            let TakenRows::Until(row) = merged.pass_to(range.clone(), sink)? else {
                tokio::task::yield_now().await;
                continue;
            };
            let mut until = range.start + row;
            if until > 0 && until < len && keys.get(until - 1) == keys.get(until) {
                // The versions of a row are passed completely or not at all, because a scan resumes
                // at a row.
                let end = (until..len).find(|at| keys.get(*at) != keys.get(until)).unwrap_or(len);
                self.pass_all(merged, until..end, sink)?;
                until = end;
            }
            if until < len {
                return Ok((until as u64, Some(Bytes::copy_from_slice(keys.get(until)))));
            }
        }
        Ok((len as u64, None))
    }

    /// Passes merged rows to a sink that takes them, even if it wants no more.
    pub(crate) fn pass_all(
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
            match merged.pass_to(rows.clone(), sink)? {
                TakenRows::Until(taken) if taken > 0 => rows.start += taken,
                _ => break,
            }
        }
        Ok(())
    }

    fn selection(&self) -> CellSelection {
        let whole = |family: &Bytes| FamilyColumns { family: family.clone(), qualifiers: None };
        let mut columns: Vec<FamilyColumns> = self.query.families.iter().map(whole).collect();
        columns.sort_by(|left, right| left.family.cmp(&right.family));
        let (time_range, max_versions) = (self.query.time_range, self.query.versions);
        CellSelection { columns, time_range, max_versions, ..CellSelection::default() }
    }
}

/// Reads whole rows until a batch is full, the deadline has passed, or the rows end. Returns which
/// of these happened.
pub(crate) async fn fill(
    scanner: &mut RegionScanner,
    merged: &mut RowCollector,
    deadline: Option<&Deadline>,
) -> Result<Stopped> {
    loop {
        let mut limits = Limits { deadline: deadline.cloned(), ..merged.limits() };
        let progress = drive(scanner, &mut limits, merged).await?;
        let has_room = matches!(progress.stopped, Stopped::Rows | Stopped::Bytes) && !merged.is_full();
        if !progress.mid_row && !has_room {
            return Ok(progress.stopped);
        }
    }
}
