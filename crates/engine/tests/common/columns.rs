//! Scans of columns against scans of cells.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::query::{CellSelection, FamilyColumns, Scan, TimeRange};
use columnar::{Batch, Bounds, Column, Encoding, Place, Value};
use engine::Region;
use engine::columns::{BatchSink, ColumnScan, Looked, Taken, Wanted};

/// The row key and these columns, as they are written.
pub fn raw_columns(columns: &[(&'static [u8], &'static [u8])]) -> Vec<Column> {
    let raw = |place| Column { place, encoding: Encoding::Raw, scale: 0 };
    let cells = columns.iter().map(|(family, qualifier)| Place::Cell {
        family: Bytes::from_static(family),
        qualifier: Bytes::from_static(qualifier),
    });
    std::iter::once(Place::RowBytes { offset: 0, length: None }).chain(cells).map(raw).collect()
}

/// What is wanted of some families.
pub fn wanted(families: &[&'static [u8]], columns: Vec<Column>) -> Wanted {
    Wanted {
        columns,
        versions: 1,
        families: families.iter().map(|family| Bytes::from_static(family)).collect(),
        start_row: Bytes::new(),
        stop_row: Bytes::new(),
        time_range: TimeRange::ALL,
    }
}

/// Rows as they were found.
#[derive(Default)]
pub struct Found {
    pub rows: Vec<Vec<Value>>,
    pub count: u64,
    /// Rows that are taken at a time; without a number, all.
    pub at_once: Option<usize>,
    taken: usize,
}

impl Found {
    /// By the first column, the row key: rows of which others had cells come behind those of their stretch.
    pub fn sort(&mut self) {
        let key = |row: &Vec<Value>| {
            if let Some(Value::Raw(key)) = row.first() { key.clone() } else { Bytes::new() }
        };
        self.rows.sort_by_key(key);
    }
}

impl BatchSink for Found {
    fn may_use(&self, _bounds: &[Bounds]) -> bool {
        true
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<Taken, engine::Error> {
        let mut selected = Vec::new();
        batch.select(None, &mut selected);
        for (at, row) in selected.into_iter().enumerate() {
            if at > 0 && self.at_once.is_some_and(|max| self.taken >= max) {
                return Ok(Taken::Until(row as usize));
            }
            self.taken += 1;
            self.rows.push(batch.columns.iter().map(|column| column.get(row as usize)).collect());
        }
        Ok(Taken::All)
    }

    fn rows(&mut self, rows: u64) {
        self.count += rows;
    }

    fn may_stop(&self) -> bool {
        self.at_once.is_some()
    }
}

/// Reads all that is wanted.
pub async fn read(region: &Arc<Region>, wanted: &Wanted) -> (Found, Looked) {
    let scan = ColumnScan::new(region, wanted.clone()).unwrap();
    let (mut found, mut looked) = (Found::default(), Looked::default());
    for unit in scan.plan().await.unwrap().units {
        looked.add(&scan.read(&unit, &mut found).await.unwrap().looked);
    }
    found.sort();
    (found, looked)
}

/// The same, some rows at a time: as many scans as that takes, each of which goes on where the one before it ended. Rows of one
/// scan are before those of the next.
pub async fn read_in_parts(region: &Arc<Region>, wanted: &Wanted, at_once: usize) -> Vec<Vec<Value>> {
    let (mut rows, mut start) = (Vec::new(), Some(wanted.start_row.clone()));
    while let Some(start_row) = start.take() {
        let scan = ColumnScan::new(region, Wanted { start_row, ..wanted.clone() }).unwrap();
        let mut found = Found { at_once: Some(at_once), ..Found::default() };
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

/// Values at one time by family and qualifier.
type Cells = BTreeMap<(Vec<u8>, Vec<u8>), Bytes>;

/// The same by a scan of cells: rows, and for each the times at which it has cells of the columns; all as one, if only the newest
/// versions are wanted.
pub async fn expected(region: &Region, wanted: &Wanted) -> Vec<Vec<Value>> {
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
            |column| matches!(&column.place, Place::Cell { family: f, qualifier: q } if f == family && q == qualifier),
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
    let value = |row: &[u8], cells: &Cells, column: &Column| match &column.place {
        Place::Cell { family, qualifier } => cells
            .get(&(family.to_vec(), qualifier.to_vec()))
            .map_or(Value::Null, |value| Value::Raw(value.clone())),
        place => place.of_row(row).map_or(Value::Null, |part| Value::Raw(part.to_vec().into())),
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

/// Checks that both ways give the same, asked twice: the second time with what the first left in the cache.
pub async fn check(region: &Arc<Region>, wanted: &Wanted) -> Looked {
    let expected = expected(region, wanted).await;
    let (found, first) = read(region, wanted).await;
    assert_eq!(found.rows, expected, "{wanted:?}");
    let (found, second) = read(region, wanted).await;
    assert_eq!(found.rows, expected, "again: {wanted:?}");
    assert_eq!(first.rows(), second.rows());
    assert_eq!(first.rows(), expected.len() as u64, "each row is counted once: {first:?}");
    for at_once in [1 + expected.len() / 7, 1000] {
        assert_eq!(read_in_parts(region, wanted, at_once).await, expected, "{at_once} at once: {wanted:?}");
    }
    let counted = Wanted { columns: Vec::new(), ..wanted.clone() };
    let (found, _) = read(region, &counted).await;
    if wanted.versions == 1 {
        assert_eq!(found.count, expected.len() as u64, "{wanted:?}");
    }
    second
}
