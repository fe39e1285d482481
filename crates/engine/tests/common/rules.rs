//! HBase's rules for which cells are visible, applied to one cell at a time, without seeks, merges,
//! files, or blocks.
//!
//! The cells of a row are visited in order. When a rule skips the rest of a column, it skips all
//! following cells of that column, including delete markers. The exception is the column with the
//! empty qualifier, because it also has the family's markers.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cell::cell::CellType;
use cell::query::TimeRange;
use cell::schema::{FamilyDescriptor, KeepDeletedCells};

use super::model::ModelCell;

/// What a family retains.
#[derive(Clone, Debug)]
pub struct Rules {
    pub max_versions: usize,
    pub min_versions: usize,
    pub ttl: Option<i64>,
    pub keep_deleted: KeepDeletedCells,
    /// How long, in milliseconds, a marker is retained after it could be dropped.
    pub purge_after: i64,
}

impl Rules {
    pub fn of(family: &FamilyDescriptor) -> Rules {
        Rules {
            max_versions: family.max_versions() as usize,
            min_versions: family.min_versions() as usize,
            ttl: family.ttl_ms(),
            keep_deleted: family.keep_deleted_cells(),
            purge_after: 0,
        }
    }
}

/// A read of one family.
#[derive(Clone, Debug)]
pub struct ModelRead {
    /// The columns to read; `None` for all.
    pub qualifiers: Option<BTreeSet<Vec<u8>>>,
    pub range: TimeRange,
    pub versions: usize,
    /// Also returns delete markers and the cells they hide.
    pub raw: bool,
}

impl Default for ModelRead {
    fn default() -> ModelRead {
        ModelRead { qualifiers: None, range: TimeRange::ALL, versions: 1, raw: false }
    }
}

/// The fate of a cell.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Retained,
    Dropped,
    /// Dropped, with all following cells of its column.
    DroppedWithRest,
    /// Retained, but all following cells of its column are dropped.
    RetainedAlone,
}

/// The state of the visit of a row.
#[derive(Default)]
struct Row {
    markers: Vec<ModelCell>,
    // Versions of the current column, and the last one that was counted.
    column: Option<Vec<u8>>,
    count: usize,
    last: Option<(i64, CellType)>,
}

/// Limits on the number and age of versions.
struct Limits {
    max: usize,
    min: usize,
    oldest: i64,
}

pub fn in_order(mut cells: Vec<ModelCell>) -> Vec<ModelCell> {
    cells.sort_by(|left, right| {
        let key = |cell: &ModelCell| (Reverse(cell.timestamp), Reverse(cell.kind as u8), Reverse(cell.order));
        (&left.row, &left.family, &left.qualifier)
            .cmp(&(&right.row, &right.family, &right.qualifier))
            .then_with(|| key(left).cmp(&key(right)))
    });
    cells
}

fn walk(cells: &[ModelCell], mut judge: impl FnMut(&mut Row, &ModelCell) -> Fate) -> Vec<ModelCell> {
    let (mut row, mut current) = (Row::default(), None::<Vec<u8>>);
    let mut finished: Option<Vec<u8>> = None;
    let mut retained = Vec::new();
    for cell in in_order(cells.to_vec()) {
        if current.as_ref() != Some(&cell.row) {
            (row, current, finished) = (Row::default(), Some(cell.row.clone()), None);
        }
        if finished.as_ref() == Some(&cell.qualifier) {
            continue;
        }
        let fate = judge(&mut row, &cell);
        if matches!(fate, Fate::DroppedWithRest | Fate::RetainedAlone) && !cell.qualifier.is_empty() {
            finished = Some(cell.qualifier.clone());
        }
        if matches!(fate, Fate::Retained | Fate::RetainedAlone) {
            retained.push(cell);
        }
    }
    retained
}

/// Whether `marker` hides `put` of the same row and family.
fn hides(marker: &ModelCell, put: &ModelCell) -> bool {
    let same_column = marker.qualifier == put.qualifier;
    match marker.kind {
        CellType::DeleteFamily => marker.timestamp >= put.timestamp,
        CellType::DeleteFamilyVersion => marker.timestamp == put.timestamp,
        CellType::DeleteColumn => same_column && marker.timestamp >= put.timestamp,
        CellType::Delete => same_column && marker.timestamp == put.timestamp,
        _ => false,
    }
}

/// Markers of the family are checked before those of the column. Source: HBase
/// `ScanDeleteTracker.isDeleted`.
fn hidden(row: &Row, put: &ModelCell) -> Option<Fate> {
    let is_hidden_by = |kind| row.markers.iter().any(|marker| marker.kind == kind && hides(marker, put));
    [
        (CellType::DeleteFamily, Fate::DroppedWithRest),
        (CellType::DeleteFamilyVersion, Fate::Dropped),
        (CellType::DeleteColumn, Fate::DroppedWithRest),
        (CellType::Delete, Fate::Dropped),
    ]
    .into_iter()
    .find_map(|(kind, fate)| is_hidden_by(kind).then_some(fate))
}

/// Counts versions when all columns are read. Markers are not counted, but may follow the last
/// version.
fn counted(row: &mut Row, cell: &ModelCell, limits: &Limits) -> Fate {
    if row.column.as_ref() != Some(&cell.qualifier) {
        (row.column, row.count, row.last) = (Some(cell.qualifier.clone()), 0, None);
    }
    if row.last == Some((cell.timestamp, cell.kind)) {
        return Fate::Dropped;
    }
    row.count += usize::from(!cell.kind.is_delete());
    let is_expired = cell.timestamp < limits.oldest;
    if row.count > limits.max || (row.count > limits.min && is_expired) {
        return Fate::DroppedWithRest;
    }
    row.last = Some((cell.timestamp, cell.kind));
    Fate::Retained
}

/// Counts versions when single columns are read. The last requested version ends the column.
fn counted_wanted(row: &mut Row, cell: &ModelCell, limits: &Limits) -> Fate {
    if row.column.as_ref() != Some(&cell.qualifier) {
        (row.column, row.count, row.last) = (Some(cell.qualifier.clone()), 0, None);
    }
    if row.last.is_some_and(|(timestamp, _)| timestamp == cell.timestamp) || row.count == usize::MAX {
        return Fate::Dropped;
    }
    row.count += 1;
    let is_expired = cell.timestamp < limits.oldest;
    if row.count >= limits.max || (row.count >= limits.min && is_expired) {
        row.count = usize::MAX;
        return Fate::RetainedAlone;
    }
    row.last = Some((cell.timestamp, cell.kind));
    Fate::Retained
}

/// The cells that a read returns.
pub fn returned(cells: &[ModelCell], rules: &Rules, read: &ModelRead, now: i64) -> Vec<ModelCell> {
    let range = read.range;
    let outside = |timestamp: i64| match range.contains(timestamp) {
        true => None,
        false if timestamp < range.from => Some(Fate::DroppedWithRest),
        false => Some(Fate::Dropped),
    };
    if read.raw {
        let limits = Limits { max: read.versions, min: rules.min_versions, oldest: 0 };
        return walk(cells, |row, cell| {
            outside(cell.timestamp).unwrap_or_else(|| counted(row, cell, &limits))
        });
    }
    let oldest = rules.ttl.map_or(i64::MIN, |ttl| now - ttl);
    let limits = Limits { max: read.versions.min(rules.max_versions), min: rules.min_versions, oldest };
    walk(cells, |row, cell| {
        if rules.min_versions == 0 && cell.timestamp < oldest {
            return Fate::DroppedWithRest;
        }
        if cell.kind.is_delete() {
            // With `KEEP_DELETED_CELLS`, a read of the past ignores markers with later timestamps.
            let counts = match rules.keep_deleted {
                KeepDeletedCells::False => range.is_all() || cell.timestamp >= range.from,
                _ => range.contains(cell.timestamp),
            };
            if counts {
                row.markers.push(cell.clone());
            }
            return Fate::Dropped;
        }
        if let Some(fate) = hidden(row, cell).or(outside(cell.timestamp)) {
            return fate;
        }
        match &read.qualifiers {
            Some(wanted) if !wanted.contains(&cell.qualifier) => Fate::Dropped,
            Some(_) => counted_wanted(row, cell, &limits),
            None => counted(row, cell, &limits),
        }
    })
}

/// The cells that a flush or compaction writes. A compaction of all files passes `earliest_put`,
/// the lowest timestamp of their puts.
pub fn kept(cells: &[ModelCell], rules: &Rules, earliest_put: Option<i64>, now: i64) -> Vec<ModelCell> {
    let oldest = rules.ttl.map_or(i64::MIN, |ttl| now - ttl);
    let limits = Limits { max: rules.max_versions, min: rules.min_versions, oldest };
    walk(cells, |row, cell| {
        if rules.min_versions == 0 && cell.timestamp < oldest {
            return Fate::DroppedWithRest;
        }
        if !cell.kind.is_delete() {
            return hidden(row, cell).unwrap_or_else(|| counted(row, cell, &limits));
        }
        let over = rules.keep_deleted == KeepDeletedCells::Ttl && cell.timestamp < oldest;
        let is_permanent = rules.keep_deleted == KeepDeletedCells::False || over;
        if is_permanent {
            row.markers.push(cell.clone());
        }
        let Some(earliest_put) = earliest_put else { return Fate::Retained };
        if rules.purge_after > 0 && now - cell.timestamp <= rules.purge_after {
            return Fate::Retained;
        }
        if is_permanent {
            return Fate::Dropped;
        }
        match cell.timestamp < earliest_put {
            true => Fate::DroppedWithRest,
            false => counted(row, cell, &limits),
        }
    })
}
