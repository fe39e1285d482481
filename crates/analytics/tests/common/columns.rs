//! Compares column scans with cell scans.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use analytics::{BatchSink, ColumnQuery, ColumnScan, ReadStats, TakenRows};
use bytes::Bytes;
use cell::query::{CellSelection, FamilyColumns, Scan, TimeRange};
use columnar::{Batch, Bounds, Column, ColumnLocation, Encoding, Value};
use engine::Region;

/// The row key and these columns, as raw bytes.
pub fn raw_columns(columns: &[(&'static [u8], &'static [u8])]) -> Vec<Column> {
    let raw = |location| Column { location, encoding: Encoding::Raw, scale: 0 };
    let cells = columns.iter().map(|(family, qualifier)| ColumnLocation::Cell {
        family: Bytes::from_static(family),
        qualifier: Bytes::from_static(qualifier),
    });
    std::iter::once(ColumnLocation::RowBytes { offset: 0, length: None }).chain(cells).map(raw).collect()
}

/// A query for columns of some families.
pub fn wanted(families: &[&'static [u8]], columns: Vec<Column>) -> ColumnQuery {
    ColumnQuery {
        columns,
        versions: 1,
        families: families.iter().map(|family| Bytes::from_static(family)).collect(),
        start_row: Bytes::new(),
        stop_row: Bytes::new(),
        time_range: TimeRange::ALL,
    }
}

/// The rows that were found.
#[derive(Default)]
pub struct CollectedRows {
    pub rows: Vec<Vec<Value>>,
    pub count: u64,
    /// Maximum number of rows per scan; `None` for all.
    pub at_once: Option<usize>,
    taken: usize,
}

impl CollectedRows {
    /// Sorts by the first column, the row key: rows merged from several sources come after the
    /// other rows of their stretch.
    pub fn sort(&mut self) {
        let key = |row: &Vec<Value>| {
            if let Some(Value::Raw(key)) = row.first() { key.clone() } else { Bytes::new() }
        };
        self.rows.sort_by_key(key);
    }
}

impl BatchSink for CollectedRows {
    fn may_use(&self, _bounds: &[Bounds]) -> bool {
        true
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<TakenRows, engine::Error> {
        let mut selected = Vec::new();
        batch.select(None, &mut selected);
        for (at, row) in selected.into_iter().enumerate() {
            if at > 0 && self.at_once.is_some_and(|max| self.taken >= max) {
                return Ok(TakenRows::Until(row as usize));
            }
            self.taken += 1;
            self.rows.push(batch.columns.iter().map(|column| column.get(row as usize)).collect());
        }
        Ok(TakenRows::All)
    }

    fn rows(&mut self, rows: u64) {
        self.count += rows;
    }

    fn may_stop(&self) -> bool {
        self.at_once.is_some()
    }
}

/// Reads all rows of the query.
pub async fn read(region: &Arc<Region>, wanted: &ColumnQuery) -> (CollectedRows, ReadStats) {
    let scan = ColumnScan::new(region, wanted.clone()).unwrap();
    let (mut found, mut stats) = (CollectedRows::default(), ReadStats::default());
    for unit in scan.plan().await.unwrap().units {
        stats.add(&scan.read(&unit, &mut found).await.unwrap().stats);
    }
    found.sort();
    (found, stats)
}

/// Reads all rows with several scans of a few rows each. Each scan begins where the previous one
/// ended, and its rows come after those of the previous one.
pub async fn read_in_parts(region: &Arc<Region>, wanted: &ColumnQuery, at_once: usize) -> Vec<Vec<Value>> {
    let (mut rows, mut start) = (Vec::new(), Some(wanted.start_row.clone()));
    while let Some(start_row) = start.take() {
        let scan = ColumnScan::new(region, ColumnQuery { start_row, ..wanted.clone() }).unwrap();
        let mut found = CollectedRows { at_once: Some(at_once), ..CollectedRows::default() };
        let plan = scan.plan_up_to(3).await.unwrap();
        start = plan.next_row;
        for unit in &plan.units {
            if found.taken >= at_once {
                start = Some(unit.start_row().clone());
                break;
            }
            if let Some(next_row) = scan.read(unit, &mut found).await.unwrap().next_row {
                start = Some(next_row);
                break;
            }
        }
        found.sort();
        rows.append(&mut found.rows);
    }
    rows
}

/// Values of one timestamp, by family and qualifier.
type Cells = BTreeMap<(Vec<u8>, Vec<u8>), Bytes>;

/// The expected rows, from a cell scan: one for each row and each timestamp at which it has cells
/// of the columns. If only the newest versions are requested, all timestamps count as one.
pub async fn expected(region: &Region, wanted: &ColumnQuery) -> Vec<Vec<Value>> {
    let columns =
        wanted.families.iter().map(|family| FamilyColumns { family: family.clone(), qualifiers: None });
    let selection = CellSelection {
        columns: columns.collect(),
        time_range: wanted.time_range,
        max_versions: wanted.versions,
        ..CellSelection::default()
    };
    let scan = Scan {
        start_row: wanted.start_row.clone(),
        stop_row: wanted.stop_row.clone(),
        selection,
        ..Scan::default()
    };
    let list = region.scan_all(&scan).await.unwrap();
    let names = |family: &[u8], qualifier: &[u8]| {
        wanted.columns.iter().any(
            |column| matches!(&column.location, ColumnLocation::Cell { family: f, qualifier: q } if f == family && q == qualifier),
        )
    };
    let mut rows: BTreeMap<Vec<u8>, BTreeMap<Reverse<i64>, Cells>> = BTreeMap::new();
    for (cell, _) in &list.cells {
        let cell = cell.view(0);
        let times = rows.entry(cell.row().to_vec()).or_default();
        let time = if wanted.versions > 1 { cell.timestamp() } else { 0 };
        if names(cell.family(), cell.qualifier()) {
            let column = (cell.family().to_vec(), cell.qualifier().to_vec());
            times.entry(Reverse(time)).or_default().insert(column, cell.value.to_vec().into());
        }
    }
    let value = |row: &[u8], cells: &Cells, column: &Column| match &column.location {
        ColumnLocation::Cell { family, qualifier } => cells
            .get(&(family.to_vec(), qualifier.to_vec()))
            .map_or(Value::Null, |value| Value::Raw(value.clone())),
        location => location.find_in_row(row).map_or(Value::Null, |part| Value::Raw(part.to_vec().into())),
    };
    let mut found = Vec::new();
    for (row, mut times) in rows {
        if times.is_empty() {
            times.insert(Reverse(0), Cells::new());
        }
        let record = |cells: &Cells| wanted.columns.iter().map(|column| value(&row, cells, column)).collect();
        found.extend(times.values().map(record));
    }
    found
}

/// Checks that both scans return the same. The second column scan uses what the first one left in
/// the cache.
pub async fn check(region: &Arc<Region>, wanted: &ColumnQuery) -> ReadStats {
    let expected = expected(region, wanted).await;
    let (found, first) = read(region, wanted).await;
    assert_eq!(found.rows, expected, "{wanted:?}");
    let (found, second) = read(region, wanted).await;
    assert_eq!(found.rows, expected, "again: {wanted:?}");
    assert_eq!(first.rows(), second.rows());
    assert_eq!(first.rows(), expected.len() as u64, "each row is counted once: {first:?}");
    for at_once in [1 + expected.len() / 7, 1000] {
        assert_eq!(read_in_parts(region, wanted, at_once).await, expected, "{at_once} at a time: {wanted:?}");
    }
    let counted = ColumnQuery { columns: Vec::new(), ..wanted.clone() };
    let (found, _) = read(region, &counted).await;
    if wanted.versions == 1 {
        assert_eq!(found.count, expected.len() as u64, "{wanted:?}");
    }
    second
}
