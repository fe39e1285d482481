//! Which rows are read in which way.

use std::sync::Arc;

use bytes::Bytes;
use cell::CellOrder;
use cell::query::TimeRange;
use columnar::Column;
use hfile::Outline;

use crate::error::Result;
use crate::scanner::Stop;
use crate::store::StoreFile;

use super::scan::Reading;

/// Data blocks whose rows are a stretch: at HBase's usual size of blocks 8 MiB of cells, so that what is done once for a
/// stretch costs little a row, and its vectors are small against any cache.
const STRETCH_BLOCKS: u64 = 128;

/// What is asked of the rows of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The columns, at most one value a row each.
    pub columns: Vec<Column>,
    /// Families whose cells make a row, each once; without any, all.
    pub families: Vec<Bytes>,
    /// The first row; empty for the region's.
    pub start_row: Bytes,
    /// The row behind the last; empty for all.
    pub stop_row: Bytes,
    /// Only cells of these timestamps.
    pub time_range: TimeRange,
}

/// Some rows of a region, to be read in one go.
#[derive(Clone)]
pub struct Unit {
    pub(super) rows: RowRange,
    /// Whose stretch it is, if it is one.
    pub(super) stretch: Option<Stretch>,
}

/// A file, and the stretch of it by the number of its first data block.
#[derive(Clone)]
pub(super) struct Stretch {
    pub(super) file: Arc<StoreFile>,
    pub(super) first_block: u64,
}

impl Unit {
    /// The first row that may be in it; empty for the first of the table.
    pub fn start_row(&self) -> &Bytes {
        &self.rows.start
    }
}

/// Rows from `start` on and before `stop`; empty ones are no bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowRange {
    pub(super) start: Bytes,
    pub(super) stop: Bytes,
}

impl RowRange {
    fn is_empty(&self) -> bool {
        !self.stop.is_empty() && self.start >= self.stop
    }

    /// Whether all rows of `other` are in it.
    fn contains(&self, other: &RowRange) -> bool {
        self.start <= other.start
            && (self.stop.is_empty() || (!other.stop.is_empty() && other.stop <= self.stop))
    }
}

/// Cuts `range` into units, in order: stretches of the largest files first, then of smaller ones where those have nothing.
pub(super) async fn units(
    range: RowRange,
    files: &[Arc<StoreFile>],
    reading: &mut Reading,
) -> Result<Vec<Unit>> {
    let mut by_size: Vec<&Arc<StoreFile>> =
        files.iter().filter(|file| file.reader().order() == CellOrder::Plain).collect();
    by_size.sort_by_key(|file| std::cmp::Reverse(file.len()));
    let mut outlines = Vec::with_capacity(by_size.len());
    for file in by_size {
        outlines.push((file.clone(), stretches(file, reading).await?));
    }
    let mut units = Vec::new();
    fill(range, &outlines, &mut units);
    Ok(units)
}

fn fill(range: RowRange, files: &[(Arc<StoreFile>, Vec<(u64, RowRange)>)], units: &mut Vec<Unit>) {
    if range.is_empty() {
        return;
    }
    let Some(((file, stretches), smaller)) = files.split_first() else {
        units.push(Unit { rows: range, stretch: None });
        return;
    };
    let mut start = range.start.clone();
    for (first_block, rows) in stretches.iter().filter(|(_, rows)| range.contains(rows)) {
        fill(RowRange { start, stop: rows.start.clone() }, smaller, units);
        let stretch = Stretch { file: file.clone(), first_block: *first_block };
        units.push(Unit { rows: rows.clone(), stretch: Some(stretch) });
        start = rows.stop.clone();
    }
    fill(RowRange { start, stop: range.stop }, smaller, units);
}

/// The stretches of a file, in order, with the numbers of their first blocks: each begins with the first row that the index
/// tells of it.
async fn stretches(file: &StoreFile, reading: &mut Reading) -> Result<Vec<(u64, RowRange)>> {
    let (Some(first), Some(last)) = (file.reader().first_row(), file.reader().last_row()) else {
        return Ok(Vec::new());
    };
    let mut starts = vec![(0, Bytes::copy_from_slice(first))];
    let mut outline: Outline = file.reader().outline();
    let mut blocks = 0_u64;
    loop {
        let miss = match outline.next(reading.blocks()) {
            Ok(None) => break,
            Ok(Some(key)) => {
                if blocks % STRETCH_BLOCKS == 0 && blocks > 0 {
                    let row = cell::key::row(key);
                    // A row of very many blocks begins but once.
                    if starts.last().is_none_or(|(_, start)| start.as_ref() < row) {
                        starts.push((blocks, Bytes::copy_from_slice(row)));
                    }
                }
                blocks += 1;
                reading.step_succeeded();
                continue;
            }
            Err(Stop::Failed(error)) => return Err(error.into()),
            Err(Stop::Miss(miss)) => miss,
        };
        reading.load(&miss).await?;
    }
    // The row right behind the last.
    let mut end = last.to_vec();
    end.push(0);
    let stops = starts.iter().skip(1).map(|(_, row)| row.clone()).chain([Bytes::from(end)]);
    let stretches = starts.iter().cloned().zip(stops);
    Ok(stretches.map(|((first_block, start), stop)| (first_block, RowRange { start, stop })).collect())
}
