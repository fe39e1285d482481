//! The vectors of a stretch: kept ones, and those that are built now.

use std::sync::Arc;

use cell::KeyBuf;
use columnar::{Bounds, Column, Kind, Packed};

use crate::columns::kept::{CutBy, Facts, Kept};
use crate::columns::marks::Marks;
use crate::columns::plan::Stretch;
use crate::columns::reading::Reading;
use crate::columns::rows::{Rows, VALUE_BYTES};
use crate::columns::sidecar::{Found, Sidecar};
use crate::error::Result;
use crate::scanner::{BlockLoader, Stop};

/// Cells after which others may run: some hundred microseconds.
const CELLS_A_SLICE: usize = 16 << 10;

/// Cells after which a row is marked, where rows are not read by blocks.
const CELLS_A_MARK: usize = 512;

/// Bytes of the vectors of a stretch that are built at once; of larger values, or more columns, nothing is kept.
const VECTORS_BYTES_MAX: usize = 256 << 20;

/// What is known of a stretch.
pub(super) struct Known {
    /// Of all its cells, if anything of it is kept.
    pub(super) facts: Option<Facts>,
    /// [`Kept::Rows`], if it is.
    pub(super) rows: Option<Arc<Kept>>,
    /// Vectors of the columns that were asked for.
    pub(super) vectors: Vec<Option<Arc<Packed>>>,
    /// One of the columns cannot be read from the stretch by itself.
    pub(super) is_of_no_use: bool,
}

impl Known {
    /// Where rows are.
    pub(super) fn marks(&self) -> Option<&Marks> {
        match self.rows.as_deref() {
            Some(Kept::Rows(_, marks)) => Some(marks),
            _ => None,
        }
    }

    /// What is known of the values of each column.
    pub(super) fn bounds(&self) -> Vec<Bounds> {
        let bounds =
            |vector: &Option<Arc<Packed>>| vector.as_ref().map_or(Bounds::Unknown, |vector| vector.bounds());
        self.vectors.iter().map(bounds).collect()
    }

    /// Whether the vectors may be unpacked together, as far as they are known: each takes memory for all rows, if only one has a
    /// value, and values may be large.
    pub(super) fn fits_memory(&self) -> bool {
        let without = self.facts.map_or(0, |facts| facts.rows).saturating_mul(VALUE_BYTES);
        let bytes = |vector: &Option<Arc<Packed>>| {
            vector.as_ref().map_or(without, |vector| vector.unpacked_len().max(without))
        };
        self.vectors.iter().fold(0_usize, |sum, vector| sum.saturating_add(bytes(vector)))
            <= VECTORS_BYTES_MAX
    }

    /// Whether the vectors of all columns are there.
    pub(super) fn is_complete(&self) -> bool {
        self.facts.is_some() && self.vectors.iter().all(Option::is_some)
    }
}

/// Where the vectors of a stretch are kept.
pub(super) struct Shelf<'a> {
    loader: &'a BlockLoader,
    stretch: &'a Stretch,
}

impl<'a> Shelf<'a> {
    pub(super) fn of(loader: &'a BlockLoader, stretch: &'a Stretch) -> Shelf<'a> {
        Shelf { loader, stretch }
    }

    /// What is kept of `columns`.
    pub(super) fn known(&self, columns: &[Column]) -> Known {
        let rows = self.get(None);
        let mut facts = rows.as_ref().and_then(|rows| rows.facts());
        let (mut vectors, mut is_of_no_use) = (Vec::new(), false);
        for column in columns {
            let kept = self.get(Some(column));
            facts = facts.or(kept.as_ref().and_then(|kept| kept.facts()));
            vectors.push(match kept.as_deref() {
                Some(Kept::Vector(_, vector)) => Some(vector.clone()),
                Some(Kept::OfNoUse) => {
                    is_of_no_use = true;
                    None
                }
                _ => None,
            });
        }
        Known { facts, rows, vectors, is_of_no_use }
    }

    /// The file and its cut.
    fn of_file(&self) -> (u64, CutBy) {
        let cut = if self.stretch.directory.is_some() { CutBy::Catalog } else { CutBy::Index };
        (self.stretch.file.reader().file_id(), cut)
    }

    fn get(&self, column: Option<&Column>) -> Option<Arc<Kept>> {
        let (file_id, cut) = self.of_file();
        let number = self.loader.vector_numbers().known(file_id, cut, column)?;
        self.loader.vector(number, self.stretch.offset)
    }

    fn keep(&self, column: Option<&Column>, kept: Kept) -> Arc<Kept> {
        let (file_id, cut) = self.of_file();
        let number = self.loader.vector_numbers().given(file_id, cut, column);
        let kept = Arc::new(kept);
        self.loader.keep_vector(number, self.stretch.offset, kept.clone());
        kept
    }

    /// Has the vectors of those `columns` of which `known` has none: from the file's column sidecar where there is one, else by a
    /// walk over the cells.
    ///
    /// # Errors
    /// What reading the file can fail with.
    pub(super) async fn build(
        &self,
        columns: &[Column],
        known: &mut Known,
        reading: &mut Reading,
    ) -> Result<()> {
        if let Some(sidecar) = Sidecar::of(self.stretch, reading).await?
            && self.build_from(&sidecar, columns, known, reading).await?
        {
            return Ok(());
        }
        self.build_from_cells(columns, known, reading).await
    }

    /// The same from a sidecar; whether all was there.
    async fn build_from(
        &self,
        sidecar: &Sidecar<'_>,
        columns: &[Column],
        known: &mut Known,
        reading: &mut Reading,
    ) -> Result<bool> {
        let facts = sidecar.facts();
        if facts.is_plain && !sidecar.has_strips() {
            return Ok(false);
        }
        known.facts = Some(facts);
        known.rows = Some(self.keep(None, Kept::Rows(facts, sidecar.marks())));
        if !facts.is_plain {
            return Ok(true);
        }
        for (at, column) in columns.iter().enumerate() {
            if known.vectors[at].is_some() {
                continue;
            }
            if !known.fits_memory() {
                // Nor would a walk over the cells.
                known.is_of_no_use = true;
                return Ok(true);
            }
            match sidecar.vector(column, reading).await? {
                Found::Vector(vector) => {
                    self.keep(Some(column), Kept::Vector(facts, vector.clone()));
                    known.vectors[at] = Some(vector);
                }
                Found::Unreadable => {
                    self.keep(Some(column), Kept::OfNoUse);
                    known.is_of_no_use = true;
                    return Ok(true);
                }
                Found::Damaged => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Walks over the cells of the stretch, keeps the vectors of those `columns` of which `known` has none, and where rows are, and
    /// adds them to what is known. Where the cells turn out not to be plain, there are no vectors.
    ///
    /// Where a value is not as its column says, or values are very large, that is kept and known: newer cells elsewhere, or the time
    /// that is asked for, may hide it, so it is for the scanner to tell.
    ///
    /// # Errors
    /// What reading the file can fail with.
    async fn build_from_cells(
        &self,
        columns: &[Column],
        known: &mut Known,
        reading: &mut Reading,
    ) -> Result<()> {
        let is_missing = |at: &usize| known.vectors[*at].is_none();
        let missing: Vec<usize> = (0..columns.len()).filter(is_missing).collect();
        let wanted: Vec<Column> = missing.iter().map(|at| columns[*at].clone()).collect();
        let mut walk = Walk::new(&wanted);
        if walk.over(self.stretch, reading).await? == Walked::OfNoUse {
            for column in walk.of_no_use(&wanted) {
                self.keep(Some(column), Kept::OfNoUse);
            }
            known.is_of_no_use = true;
            return Ok(());
        }
        let (facts, vectors) = walk.rows.take();
        known.facts = Some(facts);
        known.rows = Some(self.keep(None, Kept::Rows(facts, walk.marks)));
        if facts.is_plain {
            for (at, vector) in missing.into_iter().zip(vectors) {
                let vector = Arc::new(Packed::new(vector));
                self.keep(Some(&columns[at]), Kept::Vector(facts, vector.clone()));
                known.vectors[at] = Some(vector);
            }
        }
        Ok(())
    }
}

/// A walk over the cells of a stretch.
struct Walk {
    rows: Rows,
    marks: Marks,
    cells_unmarked: usize,
}

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walked {
    /// At the stretch's end, or where it was seen that the cells are not plain.
    Through,
    /// Where a value could not be read, or they became too large.
    OfNoUse,
}

impl Walk {
    fn new(columns: &[Column]) -> Walk {
        Walk { rows: Rows::new(columns), marks: Marks::default(), cells_unmarked: CELLS_A_MARK }
    }

    async fn over(&mut self, stretch: &Stretch, reading: &mut Reading) -> Result<Walked> {
        let stop = &stretch.rows.stop[..];
        let mut cursor = stretch.file.reader().cursor();
        let start = KeyBuf::first_on_row(&stretch.rows.start);
        let mut is_sought = false;
        let mut cells_left = CELLS_A_SLICE;
        loop {
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
            if let Some(mut run) = cursor.run(stop) {
                self.cells_unmarked = CELLS_A_MARK;
                while let Some(cell) = run.cell() {
                    if self.take(&cell).is_err() {
                        return Ok(self.ended());
                    }
                    run.next();
                    cells_left = cells_left.saturating_sub(1);
                }
                cursor.resume(&run);
            }
            let Some(cell) = cursor.cell() else { return Ok(Walked::Through) };
            if !self.rows.is_current(cell.row()) && !stop.is_empty() && cell.row() >= stop {
                return Ok(Walked::Through);
            }
            self.cells_unmarked += 1;
            if self.take(&cell).is_err() || self.rows.heap_bytes() > VECTORS_BYTES_MAX {
                return Ok(self.ended());
            }
            if !self.rows.facts().is_plain {
                return Ok(Walked::Through);
            }
            cells_left = cells_left.saturating_sub(1);
            if cells_left == 0 {
                cells_left = CELLS_A_SLICE;
                tokio::task::yield_now().await;
            }
        }
    }

    /// # Errors
    /// Only where a value is not as its column says.
    #[inline]
    fn take(&mut self, cell: &cell::Cell<'_>) -> Result<()> {
        if !self.rows.is_current(cell.row()) {
            if self.cells_unmarked >= CELLS_A_MARK {
                self.cells_unmarked = 0;
                self.marks.push(cell.row(), self.rows.len());
            }
            self.rows.begin(cell.row())?;
        }
        self.rows.cell(cell)
    }

    /// Where values are no more taken: of cells that are not plain nobody wants any.
    fn ended(&self) -> Walked {
        if self.rows.facts().is_plain { Walked::OfNoUse } else { Walked::Through }
    }

    /// The columns because of which the walk was of no use: that of the value that could not be read, or else those that may
    /// have large ones.
    fn of_no_use<'c>(&self, columns: &'c [Column]) -> Vec<&'c Column> {
        match self.rows.unreadable() {
            Some(at) => vec![&columns[at]],
            None => columns.iter().filter(|column| column.kind() == Kind::Raw).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use columnar::{Encoding, Place, VectorBuilder};

    use super::*;

    #[test]
    fn many_vectors_of_large_values_do_not_fit() {
        let rows = 64;
        let place = Place::RowBytes { offset: 0, length: None };
        let mut builder = VectorBuilder::new(&Column { place, encoding: Encoding::Raw, scale: 0 });
        for row in 0..rows {
            builder.push(&[row as u8; 16 << 10]).unwrap();
        }
        let vector = Arc::new(Packed::new(builder.finish()));
        let known = |vectors| Known {
            facts: Some(Facts { rows, ..Facts::none() }),
            rows: None,
            vectors,
            is_of_no_use: false,
        };
        // As wide as requests may be: of these values some hundred are as much as may be built.
        assert!(known(vec![None; 1024]).fits_memory());
        assert!(known(vec![Some(vector.clone()); 100]).fits_memory());
        assert!(!known(vec![Some(vector); 500]).fits_memory());
    }
}
