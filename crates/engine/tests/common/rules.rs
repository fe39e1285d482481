//! HBase's rules of which cells live, restated cell by cell, without seeks, merges, files or blocks.
//!
//! The cells of a row are walked in order. Whoever decides that the rest of a column does not matter leaves out all that
//! follows in it, markers too; but not in the column without a qualifier, where markers of the family are.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cell::cell::CellType;
use cell::query::TimeRange;
use cell::schema::{FamilyDescriptor, KeepDeletedCells};

use super::model::ModelCell;

/// What a family keeps.
#[derive(Clone, Debug)]
pub struct Rules {
    pub max_versions: usize,
    pub min_versions: usize,
    pub ttl: Option<i64>,
    pub keep_deleted: KeepDeletedCells,
    /// How long markers stay that could go.
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

/// What is read of a family.
#[derive(Clone, Debug)]
pub struct Question {
    /// These columns; all if none are named.
    pub qualifiers: Option<BTreeSet<Vec<u8>>>,
    pub range: TimeRange,
    pub versions: usize,
    /// Markers and what they hide too.
    pub raw: bool,
}

impl Default for Question {
    fn default() -> Question {
        Question { qualifiers: None, range: TimeRange::ALL, versions: 1, raw: false }
    }
}

/// What becomes of a cell.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Stays,
    Goes,
    /// With all that follows in its column.
    GoesWithRest,
    /// It stays, and all that follows in its column goes.
    StaysAlone,
}

/// What was met of a row.
#[derive(Default)]
struct Row {
    markers: Vec<ModelCell>,
    // Versions of the column that is walked, and the last that counted.
    column: Option<Vec<u8>>,
    count: usize,
    last: Option<(i64, CellType)>,
}

/// Limits on versions.
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
    let mut left_out: Option<Vec<u8>> = None;
    let mut staying = Vec::new();
    for cell in in_order(cells.to_vec()) {
        if current.as_ref() != Some(&cell.row) {
            (row, current, left_out) = (Row::default(), Some(cell.row.clone()), None);
        }
        if left_out.as_ref() == Some(&cell.qualifier) {
            continue;
        }
        let fate = judge(&mut row, &cell);
        if matches!(fate, Fate::GoesWithRest | Fate::StaysAlone) && !cell.qualifier.is_empty() {
            left_out = Some(cell.qualifier.clone());
        }
        if matches!(fate, Fate::Stays | Fate::StaysAlone) {
            staying.push(cell);
        }
    }
    staying
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

/// Markers of the family are asked before those of the column. Source: HBase `ScanDeleteTracker.isDeleted`.
fn hidden(row: &Row, put: &ModelCell) -> Option<Fate> {
    let is_hidden_by = |kind| row.markers.iter().any(|marker| marker.kind == kind && hides(marker, put));
    [
        (CellType::DeleteFamily, Fate::GoesWithRest),
        (CellType::DeleteFamilyVersion, Fate::Goes),
        (CellType::DeleteColumn, Fate::GoesWithRest),
        (CellType::Delete, Fate::Goes),
    ]
    .into_iter()
    .find_map(|(kind, fate)| is_hidden_by(kind).then_some(fate))
}

/// Counts a version where all columns are wanted; markers count for nothing, but may be behind the last version.
fn counted(row: &mut Row, cell: &ModelCell, limits: &Limits) -> Fate {
    if row.column.as_ref() != Some(&cell.qualifier) {
        (row.column, row.count, row.last) = (Some(cell.qualifier.clone()), 0, None);
    }
    if row.last == Some((cell.timestamp, cell.kind)) {
        return Fate::Goes;
    }
    row.count += usize::from(!cell.kind.is_delete());
    let is_over = cell.timestamp < limits.oldest;
    if row.count > limits.max || (row.count > limits.min && is_over) {
        return Fate::GoesWithRest;
    }
    row.last = Some((cell.timestamp, cell.kind));
    Fate::Stays
}

/// The same where single columns are wanted: the last version that is wanted ends the column.
fn counted_wanted(row: &mut Row, cell: &ModelCell, limits: &Limits) -> Fate {
    if row.column.as_ref() != Some(&cell.qualifier) {
        (row.column, row.count, row.last) = (Some(cell.qualifier.clone()), 0, None);
    }
    if row.last.is_some_and(|(timestamp, _)| timestamp == cell.timestamp) || row.count == usize::MAX {
        return Fate::Goes;
    }
    row.count += 1;
    let is_over = cell.timestamp < limits.oldest;
    if row.count >= limits.max || (row.count >= limits.min && is_over) {
        row.count = usize::MAX;
        return Fate::StaysAlone;
    }
    row.last = Some((cell.timestamp, cell.kind));
    Fate::Stays
}

/// What a read shows.
pub fn seen(cells: &[ModelCell], rules: &Rules, question: &Question, now: i64) -> Vec<ModelCell> {
    let range = question.range;
    let outside = |timestamp: i64| match range.contains(timestamp) {
        true => None,
        false if timestamp < range.from => Some(Fate::GoesWithRest),
        false => Some(Fate::Goes),
    };
    if question.raw {
        let limits = Limits { max: question.versions, min: rules.min_versions, oldest: 0 };
        return walk(cells, |row, cell| {
            outside(cell.timestamp).unwrap_or_else(|| counted(row, cell, &limits))
        });
    }
    let oldest = rules.ttl.map_or(i64::MIN, |ttl| now - ttl);
    let limits = Limits { max: question.versions.min(rules.max_versions), min: rules.min_versions, oldest };
    walk(cells, |row, cell| {
        if rules.min_versions == 0 && cell.timestamp < oldest {
            return Fate::GoesWithRest;
        }
        if cell.kind.is_delete() {
            // Who keeps deleted cells sees the past as it was: markers of later times hide nothing.
            let counts = match rules.keep_deleted {
                KeepDeletedCells::False => range.is_all() || cell.timestamp >= range.from,
                _ => range.contains(cell.timestamp),
            };
            if counts {
                row.markers.push(cell.clone());
            }
            return Fate::Goes;
        }
        if let Some(fate) = hidden(row, cell).or(outside(cell.timestamp)) {
            return fate;
        }
        match &question.qualifiers {
            Some(wanted) if !wanted.contains(&cell.qualifier) => Fate::Goes,
            Some(_) => counted_wanted(row, cell, &limits),
            None => counted(row, cell, &limits),
        }
    })
}

/// What a flush or a compaction writes. `earliest_put` is given if all files are read: no put in them is older.
pub fn kept(cells: &[ModelCell], rules: &Rules, earliest_put: Option<i64>, now: i64) -> Vec<ModelCell> {
    let oldest = rules.ttl.map_or(i64::MIN, |ttl| now - ttl);
    let limits = Limits { max: rules.max_versions, min: rules.min_versions, oldest };
    walk(cells, |row, cell| {
        if rules.min_versions == 0 && cell.timestamp < oldest {
            return Fate::GoesWithRest;
        }
        if !cell.kind.is_delete() {
            return hidden(row, cell).unwrap_or_else(|| counted(row, cell, &limits));
        }
        let over = rules.keep_deleted == KeepDeletedCells::Ttl && cell.timestamp < oldest;
        let is_for_good = rules.keep_deleted == KeepDeletedCells::False || over;
        if is_for_good {
            row.markers.push(cell.clone());
        }
        let Some(earliest_put) = earliest_put else { return Fate::Stays };
        if rules.purge_after > 0 && now - cell.timestamp <= rules.purge_after {
            return Fate::Stays;
        }
        if is_for_good {
            return Fate::Goes;
        }
        match cell.timestamp < earliest_put {
            true => Fate::GoesWithRest,
            false => counted(row, cell, &limits),
        }
    })
}
