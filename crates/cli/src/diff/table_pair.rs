//! Compares the cells of two tables, range by range.

use bytes::Bytes;
use cell::query::{CellSelection, Scan, TimeRange};
use cell::schema::TableName;
use client::Client;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::comparison::{self, Comparison, Retained, TableCells};
use super::progress::Progress;
use super::range::{self, RowRange};

/// Number of ranges that are compared at the same time.
const RANGES_AT_ONCE: usize = 8;

/// Two tables, which may be in different clusters.
pub(crate) struct TablePair(pub(crate) [Side; 2]);

/// One of the two tables.
pub(crate) struct Side {
    pub(crate) client: Client,
    pub(crate) table: TableName,
    /// The name in messages, which differs from that of the other side.
    pub(crate) name: String,
}

impl Side {
    pub(crate) fn failed(&self, error: &client::Error) -> String {
        format!("{}: {error}", self.name)
    }
}

/// A scan of all versions of all cells. Blocks that it reads are not cached.
pub(crate) fn scan_of_all(time_range: TimeRange, raw: bool) -> Scan {
    Scan {
        raw,
        selection: CellSelection {
            time_range,
            max_versions: i32::MAX.cast_unsigned(),
            cache_blocks: false,
            ..CellSelection::default()
        },
        ..Scan::default()
    }
}

impl TablePair {
    /// Compares the cells that `scan` selects, several ranges at the same time. Shows a progress
    /// bar.
    ///
    /// # Errors
    /// The failure of a side, with its name.
    pub(crate) async fn compare(&self, scan: &Scan, retained: Retained) -> Result<Comparison, String> {
        let ranges = self.ranges(scan).await?;
        let progress = Progress::new(ranges.len() as u64);
        let compared = stream::iter(ranges)
            .map(|range| self.compare_range(range, scan, retained, &progress))
            .buffered(RANGES_AT_ONCE)
            .try_fold(Comparison::new(retained), async |all, one| Ok(all.followed_by(one)))
            .await;
        progress.clear();
        compared
    }

    async fn ranges(&self, scan: &Scan) -> Result<Vec<RowRange>, String> {
        let mut starts = Vec::new();
        for side in &self.0 {
            let regions = side.client.admin().regions(&side.table).await;
            let regions = regions.map_err(|error| side.failed(&error))?;
            starts.extend(regions.into_iter().map(|region| region.start_key));
        }
        Ok(range::ranges(starts, &scan.start_row, &scan.stop_row))
    }

    async fn compare_range(
        &self,
        range: RowRange,
        scan: &Scan,
        retained: Retained,
        progress: &Progress,
    ) -> Result<Comparison, String> {
        let scan = Scan { start_row: range.start, stop_row: range.stop, ..scan.clone() };
        let compared = self.compare_once(&scan, retained, |rows| progress.add_rows(rows)).await;
        progress.end_range();
        compared
    }

    /// Those of the rows that differ. Several are compared at the same time.
    ///
    /// # Errors
    /// The failure of a side, with its name.
    pub(crate) async fn differing(&self, rows: Vec<Bytes>, scan: &Scan) -> Result<Vec<Bytes>, String> {
        let differs = |row: Bytes| async move {
            let (start_row, stop_row) = (row.clone(), row.clone());
            let scan = Scan { start_row, stop_row, include_stop_row: true, ..scan.clone() };
            let compared = self.compare_once(&scan, Retained::NOTHING, |_| {}).await?;
            Ok::<_, String>((!compared.is_equal()).then_some(row))
        };
        let compared: Vec<Option<Bytes>> =
            stream::iter(rows).map(differs).buffered(RANGES_AT_ONCE).try_collect().await?;
        Ok(compared.into_iter().flatten().collect())
    }

    async fn compare_once(
        &self,
        scan: &Scan,
        retained: Retained,
        on_rows: impl Fn(u64),
    ) -> Result<Comparison, String> {
        let [first, second] = self.0.each_ref().map(|side| {
            let table = side.client.table(side.table.clone());
            TableCells::new(table.scan(scan.clone()).in_parts())
        });
        let compared = comparison::compare(first, second, retained, on_rows).await;
        compared.map_err(|(at, error)| self.0[at].failed(&error))
    }
}
