//! The vectors of a stretch: kept ones, and those that are built now.

use std::sync::Arc;

use cell::KeyBuf;
use columnar::{Column, Vector};

use crate::columns::kept::{Facts, KeptVector};
use crate::columns::plan::{RowRange, Stretch};
use crate::columns::rows::Rows;
use crate::columns::scan::Reading;
use crate::error::Result;
use crate::scanner::{BlockLoader, Stop};

/// Cells after which others may run: some hundred microseconds.
const CELLS_A_SLICE: usize = 16 << 10;

/// What is known of a stretch: its facts, if any vector of it is kept, and the vectors that are.
pub(super) struct Known {
    pub(super) facts: Option<Facts>,
    pub(super) vectors: Vec<Option<Arc<Vector>>>,
}

/// Bytes of the vectors of a stretch that are built at once; of larger values, or more columns, nothing is kept.
const VECTORS_BYTES_MAX: usize = 256 << 20;

/// Where the vectors of a stretch are kept.
pub(super) struct Shelf<'a> {
    loader: &'a BlockLoader,
    stretch: &'a Stretch,
}

impl<'a> Shelf<'a> {
    pub(super) fn of(loader: &'a BlockLoader, stretch: &'a Stretch) -> Shelf<'a> {
        Shelf { loader, stretch }
    }

    fn number(&self, column: Option<&Column>) -> u64 {
        self.loader.vector_numbers().of(self.stretch.file.reader().file_id(), column)
    }

    /// What is kept of `columns`.
    pub(super) fn known(&self, columns: &[Column]) -> Known {
        let mut known = Known { facts: self.get(None).map(|kept| kept.facts), vectors: Vec::new() };
        for column in columns {
            let kept = self.get(Some(column));
            known.facts = known.facts.or(kept.as_ref().map(|kept| kept.facts));
            known.vectors.push(kept.and_then(|kept| kept.vector.clone()));
        }
        known
    }

    fn get(&self, column: Option<&Column>) -> Option<Arc<KeptVector>> {
        self.loader.vector(self.number(column), self.stretch.first_block)
    }

    /// Keeps vectors of `columns`, or that the cells are not plain.
    fn keep(&self, facts: Facts, columns: &[Column], vectors: &[Arc<Vector>]) {
        self.put(None, KeptVector { facts, vector: None });
        if facts.is_plain {
            for (column, vector) in columns.iter().zip(vectors) {
                self.put(Some(column), KeptVector { facts, vector: Some(vector.clone()) });
            }
        }
    }

    fn put(&self, column: Option<&Column>, vector: KeptVector) {
        self.loader.keep_vector(self.number(column), self.stretch.first_block, Arc::new(vector));
    }
}

/// Walks over the cells of a stretch and keeps the vectors of `columns`, which are given back too. Where the cells turn out not
/// to be plain, the vectors are of no use.
///
/// `None` where they are too large, and where a value is not as its column says: newer cells elsewhere, or the time that is asked for, may hide it, so it is
/// for the scanner to tell.
///
/// # Errors
/// What reading the file can fail with.
pub(super) async fn build(
    shelf: &Shelf<'_>,
    range: &RowRange,
    columns: &[Column],
    reading: &mut Reading,
) -> Result<Option<(Facts, Vec<Arc<Vector>>)>> {
    let mut rows = Rows::new(columns);
    let mut cursor = shelf.stretch.file.reader().cursor();
    let start = KeyBuf::first_on_row(&range.start);
    let mut is_sought = false;
    let mut cells_left = CELLS_A_SLICE;
    let mut is_of_use = true;
    'cells: loop {
        let step = match is_sought {
            false => cursor.seek(start.as_slice(), reading.blocks()),
            true => cursor.next(reading.blocks()),
        };
        match step {
            Ok(()) => reading.step_succeeded(),
            Err(Stop::Failed(error)) => return Err(error.into()),
            Err(Stop::Miss(miss)) => {
                reading.load(&miss).await?;
                continue;
            }
        }
        is_sought = true;
        // Whole rows of one block first; what is left of it cell by cell.
        if let Some(mut run) = cursor.run(&range.stop) {
            while let Some(cell) = run.cell() {
                is_of_use = take(&mut rows, &cell).is_ok();
                if !is_of_use {
                    break 'cells;
                }
                run.next();
                cells_left = cells_left.saturating_sub(1);
            }
            cursor.resume(&run);
        }
        let Some(cell) = cursor.cell() else { break };
        if !rows.is_current(cell.row()) && cell.row() >= &range.stop[..] {
            break;
        }
        is_of_use = take(&mut rows, &cell).is_ok() && rows.heap_bytes() <= VECTORS_BYTES_MAX;
        cells_left = cells_left.saturating_sub(1);
        if !is_of_use || !rows.facts().is_plain {
            break;
        }
        if cells_left == 0 {
            cells_left = CELLS_A_SLICE;
            tokio::task::yield_now().await;
        }
    }
    let (facts, vectors) = rows.take();
    if !is_of_use && facts.is_plain {
        return Ok(None);
    }
    let vectors: Vec<Arc<Vector>> = vectors.into_iter().map(Arc::new).collect();
    shelf.keep(facts, columns, &vectors);
    Ok(Some((facts, vectors)))
}

/// # Errors
/// Only where a value is not as its column says.
#[inline]
fn take(rows: &mut Rows, cell: &cell::Cell<'_>) -> Result<()> {
    if !rows.is_current(cell.row()) {
        rows.begin(cell.row())?;
    }
    rows.cell(cell)
}
