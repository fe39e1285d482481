//! Scans of columns against scans of cells.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::query::{CellSelection, FamilyColumns, Scan, TimeRange};
use columnar::{Batch, Column, Encoding, Place, Value, Vector};
use engine::Region;
use engine::columns::{BatchSink, ColumnScan, Looked, Wanted};

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
    fn may_use(&self, _vectors: &[Option<Arc<Vector>>]) -> bool {
        true
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool, engine::Error> {
        let mut selected = Vec::new();
        batch.select(None, &mut selected);
        for row in selected {
            self.rows.push(batch.columns.iter().map(|column| column.get(row as usize)).collect());
        }
        Ok(true)
    }

    fn rows(&mut self, rows: u64) {
        self.count += rows;
    }
}

/// Reads all that is wanted.
pub async fn read(region: &Arc<Region>, wanted: &Wanted) -> (Found, Looked) {
    let scan = ColumnScan::new(region, wanted.clone()).unwrap();
    let (mut found, mut looked) = (Found::default(), Looked::default());
    for unit in scan.units().await.unwrap() {
        looked.add(&scan.read(&unit, &mut found).await.unwrap().looked);
    }
    found.sort();
    (found, looked)
}

/// Values of a row by family and qualifier.
type Cells = BTreeMap<(Vec<u8>, Vec<u8>), Bytes>;

/// The same by a scan of cells.
pub async fn expected(region: &Region, wanted: &Wanted) -> Vec<Vec<Value>> {
    let columns =
        wanted.families.iter().map(|family| FamilyColumns { family: family.clone(), qualifiers: None });
    let selection = CellSelection {
        columns: columns.collect(),
        time_range: wanted.time_range,
        ..CellSelection::default()
    };
    let scan = Scan {
        start_row: wanted.start_row.clone(),
        stop_row: wanted.stop_row.clone(),
        selection,
        ..Scan::default()
    };
    let list = region.scan_all(&scan).await.unwrap();
    let mut rows: BTreeMap<Vec<u8>, Cells> = BTreeMap::new();
    for (cell, _) in &list.cells {
        let cell = cell.view(0);
        let column = (cell.family().to_vec(), cell.qualifier().to_vec());
        rows.entry(cell.row().to_vec()).or_default().insert(column, cell.value.to_vec().into());
    }
    let value = |row: &[u8], cells: &Cells, column: &Column| match &column.place {
        Place::Cell { family, qualifier } => cells
            .get(&(family.to_vec(), qualifier.to_vec()))
            .map_or(Value::Null, |value| Value::Raw(value.clone())),
        place => place.of_row(row).map_or(Value::Null, |part| Value::Raw(part.to_vec().into())),
    };
    rows.iter()
        .map(|(row, cells)| wanted.columns.iter().map(|column| value(row, cells, column)).collect())
        .collect()
}

/// Checks that both ways give the same, asked twice: the second time with what the first left in the cache.
pub async fn check(region: &Arc<Region>, wanted: &Wanted) -> Looked {
    let expected = expected(region, wanted).await;
    let (found, first) = read(region, wanted).await;
    assert_eq!(found.rows, expected, "{wanted:?}");
    let (found, second) = read(region, wanted).await;
    assert_eq!(found.rows, expected, "again: {wanted:?}");
    assert_eq!(first.rows(), second.rows());
    let counted = Wanted { columns: Vec::new(), ..wanted.clone() };
    let (found, _) = read(region, &counted).await;
    assert_eq!(found.count, expected.len() as u64, "{wanted:?}");
    second
}
