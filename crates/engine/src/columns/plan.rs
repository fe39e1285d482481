//! Which rows are read in which way.

use std::sync::Arc;

use bytes::Bytes;
use cell::EndKey;
use cell::query::TimeRange;
use cell::range::min_end;
use columnar::Column;
use hfile::{Catalog, CatalogEntry, SidecarPlace};

use crate::columns::others::ROWS_MAX;
use crate::columns::reading::Reading;
use crate::columns::sidecar;
use crate::error::Result;
use crate::scanner::Stop;
use crate::store::StoreFile;

/// Data blocks whose rows are a stretch: at HBase's usual size of blocks 8 MiB of cells, so that what is done once for a
/// stretch costs little a row, and its vectors are small against any cache.
const STRETCH_BLOCKS: usize = 128;

/// Stretches of a file in one plan: some tens of GiB of cells. Its index is read no further, and the rest is planned by whoever
/// goes on there.
pub const STRETCHES_MAX: usize = 4096;

/// What is asked of the rows of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The columns, at most one value a row each.
    pub columns: Vec<Column>,
    /// Versions of each column: of more than one, each time that a cell was written at is a row.
    pub versions: u32,
    /// Families whose cells make a row, each once; without any, all.
    pub families: Vec<Bytes>,
    /// The first row; empty for the region's.
    pub start_row: Bytes,
    /// The row behind the last; empty for all.
    pub stop_row: Bytes,
    /// Only cells of these timestamps.
    pub time_range: TimeRange,
}

/// The rows that are wanted, cut into units, in order.
#[derive(Clone, Default)]
pub struct Plan {
    /// The units.
    pub units: Vec<Unit>,
    /// The first row that is not in them, where they would be too many.
    pub next_row: Option<Bytes>,
}

/// Some rows of a region, to be read in one go.
#[derive(Clone)]
pub struct Unit {
    pub(super) rows: RowRange,
    pub(super) way: Way,
}

/// How rows are read.
#[derive(Clone)]
pub(super) enum Way {
    /// As every scan reads them.
    Merged,
    /// From the vectors of a stretch, if they are of use.
    Stretch(Stretch),
    /// Not at all: all there is to know is that there are so many.
    Counted(u64),
}

/// Rows of a file between two data blocks, of which a unit may be a part.
#[derive(Clone)]
pub(super) struct Stretch {
    pub(super) file: Arc<StoreFile>,
    /// Where the data block is that it begins in.
    pub(super) offset: u64,
    pub(super) rows: RowRange,
    /// Where the directory of its columns is, if the file has a sidecar.
    pub(super) directory: Option<SidecarPlace>,
}

impl Unit {
    /// The first row that may be in it; empty for the first of the table.
    pub fn start_row(&self) -> &Bytes {
        &self.rows.start
    }

    /// What of it lies in `range`; nothing if it can only be had whole.
    fn within(&self, range: &RowRange) -> Option<Unit> {
        if range.contains(&self.rows) {
            return Some(self.clone());
        }
        let rows = self.rows.within(range);
        let has_parts = !matches!(self.way, Way::Counted(_)) && !rows.is_empty();
        has_parts.then(|| Unit { rows, way: self.way.clone() })
    }
}

/// Rows from `start` on and before `stop`; empty ones are no bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowRange {
    pub(super) start: Bytes,
    pub(super) stop: Bytes,
}

impl RowRange {
    pub(super) fn is_empty(&self) -> bool {
        !EndKey(&self.stop).is_after(&self.start)
    }

    /// The rows that are in both.
    pub(super) fn within(&self, other: &RowRange) -> RowRange {
        let stop = min_end(&self.stop, &other.stop).clone();
        RowRange { start: (&self.start).max(&other.start).clone(), stop }
    }

    /// Whether all rows of `other` are in it.
    pub(super) fn contains(&self, other: &RowRange) -> bool {
        self.start <= other.start && EndKey(&other.stop) <= EndKey(&self.stop)
    }
}

/// Cuts `range` into units, in order: those of the first file, then of the next ones where it has nothing; the rest is merged.
/// Of a stretch that reaches beyond the range there is a unit for the part within.
///
/// No unit has much more than a stretch of any file, for whoever began one has to end it.
pub(super) fn fill(range: RowRange, files: &[Vec<Unit>], units: &mut Vec<Unit>) {
    if range.is_empty() {
        return;
    }
    let Some((first, others)) = files.split_first() else {
        units.push(Unit { rows: range, way: Way::Merged });
        return;
    };
    let mut start = range.start.clone();
    let from = first.partition_point(|unit| !EndKey(&unit.rows.stop).is_after(&start));
    for unit in &first[from..] {
        if !EndKey(&range.stop).is_after(&unit.rows.start) {
            break;
        }
        let Some(unit) = unit.within(&range) else { continue };
        fill(RowRange { start, stop: unit.rows.start.clone() }, others, units);
        start = unit.rows.stop.clone();
        match is_gap(&unit, others) {
            true => fill(unit.rows, others, units),
            false => units.push(unit),
        }
        if start.is_empty() {
            return;
        }
    }
    fill(RowRange { start, stop: range.stop }, others, units);
}

/// Whether a unit is but a gap around rows of others, to be filled by their units: two stretches of a file begin in it, so that it
/// has one of them whole, or it has very many rows that are counted. Of a small file it may have all.
fn is_gap(unit: &Unit, others: &[Vec<Unit>]) -> bool {
    let RowRange { start, stop } = &unit.rows;
    let is_counted = |other: &Unit| matches!(other.way, Way::Counted(rows) if rows > ROWS_MAX as u64);
    let has_others = |units: &Vec<Unit>| {
        let from = units.partition_point(|other| other.rows.start <= *start);
        let inside = units[from..].iter().take_while(|other| stop.is_empty() || other.rows.start < *stop);
        inside.clone().nth(1).is_some() || inside.take(1).any(is_counted)
    };
    // What is counted is so as a whole, and alone.
    !matches!(unit.way, Way::Counted(_)) && others.iter().any(has_others)
}

/// The rows that a store has of a file, from the first to the last.
pub(super) fn rows_of(file: &StoreFile) -> Option<RowRange> {
    let start = Bytes::copy_from_slice(file.reader().first_row()?);
    let rows = RowRange { start, stop: rows_end(file) };
    let Some(half) = file.half() else { return Some(rows) };
    let split_row = Bytes::copy_from_slice(half.split_row());
    Some(match half.is_top() {
        true => RowRange { start: rows.start.max(split_row), ..rows },
        false => RowRange { stop: rows.stop.min(split_row), ..rows },
    })
}

/// The row right behind the last of a file, whatever of it the store has.
fn rows_end(file: &StoreFile) -> Bytes {
    [file.reader().last_row().unwrap_or_default(), &[0]].concat().into()
}

/// Where stretches of a file begin, in order.
#[derive(Default)]
struct Starts {
    list: Vec<Start>,
    // The first row behind those that are wanted, where there are more.
    next_row: Option<Bytes>,
    // Whether the last one is the last of the file.
    is_end: bool,
}

struct Start {
    offset: u64,
    row: Bytes,
    directory: Option<SidecarPlace>,
}

/// Stretches of a file, in order, from the one that the first row of `range` is in: each begins with the first row that the index
/// tells of it, or the catalog of its sidecar. At most `max`; then the first row behind them, too.
pub(super) async fn stretches(
    file: &Arc<StoreFile>,
    range: &RowRange,
    max: usize,
    reading: &mut Reading,
) -> Result<Plan> {
    let Some(rows) = rows_of(file) else { return Ok(Plan::default()) };
    let starts = match sidecar::catalog(file, reading).await? {
        Some(catalog) => starts_in(&catalog, range, max),
        None => starts_by_index(file, range, max, reading).await?,
    };
    // The last one is only where the one before it ends, unless the file does.
    let end = starts.is_end.then(|| rows_end(file));
    let stops = starts.list.iter().skip(1).map(|start| start.row.clone()).chain(end);
    let unit = |(start, stop): (&Start, Bytes)| {
        let Start { offset, directory, .. } = *start;
        let rows = RowRange { start: start.row.clone(), stop };
        let stretch = Stretch { file: file.clone(), offset, rows: rows.clone(), directory };
        Unit { rows, way: Way::Stretch(stretch) }
    };
    let units = starts.list.iter().zip(stops).map(unit).filter_map(|unit| unit.within(&rows)).collect();
    Ok(Plan { units, next_row: starts.next_row })
}

fn starts_in(catalog: &Catalog, range: &RowRange, max: usize) -> Starts {
    let entries = &catalog.entries;
    let from = entries.partition_point(|entry| entry.start_row <= range.start).saturating_sub(1);
    let is_wanted = |entry: &CatalogEntry| range.stop.is_empty() || entry.start_row < range.stop;
    let wanted = entries[from..].iter().take_while(|entry| is_wanted(entry)).count();
    // And where the last one ends.
    let until = (from + wanted.min(max) + 1).min(entries.len());
    let start = |entry: &CatalogEntry| Start {
        offset: entry.block_offset,
        row: entry.start_row.clone(),
        directory: Some(entry.directory),
    };
    Starts {
        list: entries[from..until].iter().map(start).collect(),
        next_row: (wanted > max).then(|| entries[from + max].start_row.clone()),
        is_end: until == entries.len() && until == from + wanted.min(max),
    }
}

async fn starts_by_index(
    file: &Arc<StoreFile>,
    range: &RowRange,
    max: usize,
    reading: &mut Reading,
) -> Result<Starts> {
    let mut starts = Starts::default();
    let mut outline = file.reader().outline(STRETCH_BLOCKS, &range.start);
    let mut is_enough = false;
    while !is_enough && !starts.is_end {
        let miss = match outline.next(reading.blocks()) {
            Ok(None) => {
                starts.is_end = true;
                continue;
            }
            Ok(Some((offset, key))) => {
                reading.step_succeeded();
                let row = cell::key::row(key);
                is_enough = !range.stop.is_empty() && row >= &range.stop[..];
                match starts.list.last_mut() {
                    // A row of very many blocks begins but once.
                    Some(last) if last.row == row => last.offset = offset,
                    _ => {
                        starts.list.push(Start { offset, row: Bytes::copy_from_slice(row), directory: None })
                    }
                }
                if !is_enough && starts.list.len() > max {
                    starts.next_row = Some(starts.list[max].row.clone());
                    is_enough = true;
                }
                continue;
            }
            Err(Stop::Failed(error)) => return Err(error.into()),
            Err(Stop::Miss(miss)) => miss,
        };
        reading.load(&miss).await?;
    }
    Ok(starts)
}
