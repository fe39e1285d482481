//! Which rows are read in which way.

use std::sync::Arc;

use bytes::Bytes;
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
    pub(super) fn is_empty(&self) -> bool {
        !self.stop.is_empty() && self.start >= self.stop
    }

    /// Whether all rows of `other` are in it.
    pub(super) fn contains(&self, other: &RowRange) -> bool {
        self.start <= other.start
            && (self.stop.is_empty() || (!other.stop.is_empty() && other.stop <= self.stop))
    }
}

/// Cuts `range` into units, in order: those of the first file, then of the next ones where it has nothing; the rest is merged.
pub(super) fn fill(range: RowRange, files: &[Vec<Unit>], units: &mut Vec<Unit>) {
    if range.is_empty() {
        return;
    }
    let Some((first, others)) = files.split_first() else {
        units.push(Unit { rows: range, way: Way::Merged });
        return;
    };
    let mut start = range.start.clone();
    for unit in first.iter().filter(|unit| range.contains(&unit.rows)) {
        fill(RowRange { start, stop: unit.rows.start.clone() }, others, units);
        start = unit.rows.stop.clone();
        units.push(unit.clone());
    }
    fill(RowRange { start, stop: range.stop }, others, units);
}

/// The rows of a file, from its first to its last.
pub(super) fn rows_of(file: &StoreFile) -> Option<RowRange> {
    // The row right behind the last.
    let mut stop = file.reader().last_row()?.to_vec();
    stop.push(0);
    Some(RowRange { start: Bytes::copy_from_slice(file.reader().first_row()?), stop: stop.into() })
}

/// The stretches of a file, in order: each begins with the first row that the index tells of it.
pub(super) async fn stretches(file: &Arc<StoreFile>, reading: &mut Reading) -> Result<Vec<Unit>> {
    let Some(rows) = rows_of(file) else { return Ok(Vec::new()) };
    let mut starts = vec![(0, rows.start)];
    let mut outline: Outline = file.reader().outline();
    let mut blocks = 0_u64;
    loop {
        let miss = match outline.next(reading.blocks()) {
            Ok(None) => break,
            Ok(Some(key)) => {
                let row = cell::key::row(key);
                // A row of very many blocks begins but once.
                let is_behind = starts.last().is_none_or(|(_, start)| start.as_ref() < row);
                if blocks > 0 && blocks.is_multiple_of(STRETCH_BLOCKS) && is_behind {
                    starts.push((blocks, Bytes::copy_from_slice(row)));
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
    let stops = starts.iter().skip(1).map(|(_, row)| row.clone()).chain([rows.stop]);
    let unit = |((first_block, start), stop): (&(u64, Bytes), Bytes)| Unit {
        rows: RowRange { start: start.clone(), stop },
        way: Way::Stretch(Stretch { file: file.clone(), first_block: *first_block }),
    };
    Ok(starts.iter().zip(stops).map(unit).collect())
}
