//! Plans how each row is read.

use std::sync::Arc;

use bytes::Bytes;
use cell::EndKey;
use cell::query::TimeRange;
use cell::range::min_end;
use columnar::Column;
use engine::error::Result;
use engine::scanner::CursorBlocks;
use engine::store::StoreFile;
use hfile::{Catalog, CatalogEntry, SidecarLocation};

use crate::sidecar;

/// Data blocks per stretch. With HBase's default block size a stretch has 8 MiB of cells: enough
/// that its fixed costs are small per row, and little enough that its vectors are small compared
/// with any cache.
const STRETCH_BLOCKS: usize = 128;

/// Maximum stretches of a file in one plan, for tens of GiB of cells. The index of the file is read
/// no further; the caller plans the remaining rows later.
pub const STRETCHES_MAX: usize = 4096;

/// Maximum number of rows of a stretch that have cells in a memstore or another file, if the
/// vectors of the stretch are used. These rows are then read one by one.
pub(crate) const OTHER_ROWS_MAX: usize = 512;

/// The rows and columns that a query wants from a region.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnQuery {
    /// The columns, each with at most one value per row.
    pub columns: Vec<Column>,
    /// Versions of each column. If more than one, each timestamp of a row's cells becomes a row.
    pub versions: u32,
    /// Families whose cells make rows, without duplicates. Empty for all families.
    pub families: Vec<Bytes>,
    /// The first row. Empty for the first row of the region.
    pub start_row: Bytes,
    /// The row after the last one. Empty for no bound.
    pub stop_row: Bytes,
    /// Only cells with these timestamps.
    pub time_range: TimeRange,
}

/// The wanted rows as a list of units, in order.
#[derive(Clone, Default)]
pub struct Plan {
    /// The units.
    pub units: Vec<Unit>,
    /// The first row that is not in the units, if the plan is not complete.
    pub next_row: Option<Bytes>,
}

/// A range of rows that one task reads.
#[derive(Clone)]
pub struct Unit {
    pub(crate) rows: RowRange,
    pub(crate) method: ReadMethod,
}

/// How rows are read.
#[derive(Clone)]
pub(crate) enum ReadMethod {
    /// By a scan.
    Merged,
    /// From the vectors of a stretch, if they can be used.
    Stretch(Stretch),
    /// Not at all: only the number of rows is wanted, and it is known.
    Counted(u64),
}

/// The rows of a file from the start of one data block to the start of a later one. A unit may
/// cover only a part of them.
#[derive(Clone)]
pub(crate) struct Stretch {
    pub(crate) file: Arc<StoreFile>,
    /// Offset of the data block in which it begins.
    pub(crate) offset: u64,
    pub(crate) rows: RowRange,
    /// Location of the directory of its columns, if the file has a sidecar.
    pub(crate) directory: Option<SidecarLocation>,
}

impl Unit {
    /// The first row that may be in the unit. Empty for the first row of the table.
    pub fn start_row(&self) -> &Bytes {
        &self.rows.start
    }

    /// The part of the unit that is in `range`. `None` if that is empty, or if the unit is
    /// indivisible.
    fn within(&self, range: &RowRange) -> Option<Unit> {
        if range.contains(&self.rows) {
            return Some(self.clone());
        }
        let rows = self.rows.within(range);
        let has_parts = !matches!(self.method, ReadMethod::Counted(_)) && !rows.is_empty();
        has_parts.then(|| Unit { rows, method: self.method.clone() })
    }
}

/// Rows from `start` (inclusive) to `stop` (exclusive). An empty bound is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowRange {
    pub(crate) start: Bytes,
    pub(crate) stop: Bytes,
}

impl RowRange {
    pub(crate) fn is_empty(&self) -> bool {
        !EndKey(&self.stop).is_after(&self.start)
    }

    /// The rows that are in both.
    pub(crate) fn within(&self, other: &RowRange) -> RowRange {
        let stop = min_end(&self.stop, &other.stop).clone();
        RowRange { start: (&self.start).max(&other.start).clone(), stop }
    }

    /// Whether all rows of `other` are in this range.
    pub(crate) fn contains(&self, other: &RowRange) -> bool {
        self.start <= other.start && EndKey(&other.stop) <= EndKey(&self.stop)
    }
}

/// Cuts `range` into units, in order. Units of the first file come first; gaps between them are
/// filled with units of the next files, and the rest is merged. A stretch that reaches beyond the
/// range gives a unit for the part inside.
///
/// A task must finish the unit that it has begun, so no unit has much more than one stretch of any
/// file.
pub(crate) fn fill(range: RowRange, files: &[Vec<Unit>], units: &mut Vec<Unit>) {
    if range.is_empty() {
        return;
    }
    let Some((first, others)) = files.split_first() else {
        units.push(Unit { rows: range, method: ReadMethod::Merged });
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
        match is_filled_by_others(&unit, others) {
            true => fill(unit.rows, others, units),
            false => units.push(unit),
        }
        if start.is_empty() {
            return;
        }
    }
    fill(RowRange { start, stop: range.stop }, others, units);
}

/// Whether a unit is a gap that units of other files should fill. This is so if two stretches of
/// another file begin in it, so that it contains one of them whole; or if it contains a unit with a
/// known count of very many rows. A unit may contain all of a small file.
fn is_filled_by_others(unit: &Unit, others: &[Vec<Unit>]) -> bool {
    let RowRange { start, stop } = &unit.rows;
    let is_counted =
        |other: &Unit| matches!(other.method, ReadMethod::Counted(rows) if rows > OTHER_ROWS_MAX as u64);
    let has_others = |units: &Vec<Unit>| {
        let from = units.partition_point(|other| other.rows.start <= *start);
        let inside = units[from..].iter().take_while(|other| stop.is_empty() || other.rows.start < *stop);
        inside.clone().nth(1).is_some() || inside.take(1).any(is_counted)
    };
    // A counted unit is indivisible, and no other file has rows in it.
    !matches!(unit.method, ReadMethod::Counted(_)) && others.iter().any(has_others)
}

/// The rows of the file's part that the store has, from the first to the last.
pub(crate) fn rows_of(file: &StoreFile) -> Option<RowRange> {
    let start = Bytes::copy_from_slice(file.reader().first_row()?);
    let rows = RowRange { start, stop: rows_end(file) };
    let Some(half) = file.half() else { return Some(rows) };
    let split_row = Bytes::copy_from_slice(half.split_row());
    Some(match half.is_top() {
        true => RowRange { start: rows.start.max(split_row), ..rows },
        false => RowRange { stop: rows.stop.min(split_row), ..rows },
    })
}

/// The smallest row after the last row of the whole file.
fn rows_end(file: &StoreFile) -> Bytes {
    [file.reader().last_row().unwrap_or_default(), &[0]].concat().into()
}

/// Where the stretches of a file begin, in order.
#[derive(Default)]
struct StretchStarts {
    list: Vec<StretchStart>,
    // The first row after the last stretch in `list`, if more were wanted.
    next_row: Option<Bytes>,
    // Whether the last stretch in `list` is the last one of the file.
    is_end: bool,
}

struct StretchStart {
    offset: u64,
    row: Bytes,
    directory: Option<SidecarLocation>,
}

/// The stretches of a file, in order, from the one that contains the first row of `range`. The
/// first row of each is from the index of the file, or from the catalog of its sidecar. At most
/// `max`; `next_row` is then the first row after them.
pub(crate) async fn stretches(
    file: &Arc<StoreFile>,
    range: &RowRange,
    max: usize,
    blocks: &mut CursorBlocks,
) -> Result<Plan> {
    let Some(rows) = rows_of(file) else { return Ok(Plan::default()) };
    let starts = match sidecar::catalog(file, blocks).await? {
        Some(catalog) => starts_by_catalog(&catalog, range, max),
        None => starts_by_index(file, range, max, blocks).await?,
    };
    // The last start only marks the end of the stretch before it, unless the file ends with it.
    let end = starts.is_end.then(|| rows_end(file));
    let stops = starts.list.iter().skip(1).map(|start| start.row.clone()).chain(end);
    let unit = |(start, stop): (&StretchStart, Bytes)| {
        let StretchStart { offset, directory, .. } = *start;
        let rows = RowRange { start: start.row.clone(), stop };
        let stretch = Stretch { file: file.clone(), offset, rows: rows.clone(), directory };
        Unit { rows, method: ReadMethod::Stretch(stretch) }
    };
    let units = starts.list.iter().zip(stops).map(unit).filter_map(|unit| unit.within(&rows)).collect();
    Ok(Plan { units, next_row: starts.next_row })
}

fn starts_by_catalog(catalog: &Catalog, range: &RowRange, max: usize) -> StretchStarts {
    let entries = &catalog.entries;
    let from = entries.partition_point(|entry| entry.start_row <= range.start).saturating_sub(1);
    let is_wanted = |entry: &CatalogEntry| range.stop.is_empty() || entry.start_row < range.stop;
    let wanted = entries[from..].iter().take_while(|entry| is_wanted(entry)).count();
    // One more, where the last one ends.
    let until = (from + wanted.min(max) + 1).min(entries.len());
    let start = |entry: &CatalogEntry| StretchStart {
        offset: entry.block_offset,
        row: entry.start_row.clone(),
        directory: Some(entry.directory),
    };
    StretchStarts {
        list: entries[from..until].iter().map(start).collect(),
        next_row: (wanted > max).then(|| entries[from + max].start_row.clone()),
        is_end: until == entries.len() && until == from + wanted.min(max),
    }
}

async fn starts_by_index(
    file: &Arc<StoreFile>,
    range: &RowRange,
    max: usize,
    blocks: &mut CursorBlocks,
) -> Result<StretchStarts> {
    let mut starts = StretchStarts::default();
    let mut outline = file.reader().outline(STRETCH_BLOCKS, &range.start);
    let mut is_enough = false;
    while !is_enough && !starts.is_end {
        let stop = match outline.next(blocks.source()) {
            Ok(None) => {
                starts.is_end = true;
                continue;
            }
            Ok(Some((offset, key))) => {
                blocks.step_succeeded();
                let row = cell::key::row(key);
                is_enough = !range.stop.is_empty() && row >= &range.stop[..];
                match starts.list.last_mut() {
                    // A row of very many blocks begins only once.
                    Some(last) if last.row == row => last.offset = offset,
                    _ => starts.list.push(StretchStart {
                        offset,
                        row: Bytes::copy_from_slice(row),
                        directory: None,
                    }),
                }
                if !is_enough && starts.list.len() > max {
                    starts.next_row = Some(starts.list[max].row.clone());
                    is_enough = true;
                }
                continue;
            }
            Err(stop) => stop,
        };
        blocks.handle(stop).await?;
    }
    Ok(starts)
}
