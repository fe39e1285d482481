//! The vectors of a stretch: cached ones, and those that are built now.

use std::any::Any;
use std::sync::Arc;

use cell::KeyBuf;
use columnar::{Bounds, Column, Kind, Packed};
use engine::error::Result;
use engine::scanner::{BlockLoader, CursorBlocks, DerivedKey};

use crate::entry::{self, CachedEntry, StretchFacts, StretchSource};
use crate::marks::Marks;
use crate::plan::Stretch;
use crate::rows::{RowsBuilder, VALUE_BYTES};
use crate::sidecar::{Sidecar, StripResult};

/// Cells between two pauses for other tasks: a few hundred microseconds.
const CELLS_PER_SLICE: usize = 16 << 10;

/// Cells between two marks, where rows are not read by blocks.
const CELLS_PER_MARK: usize = 512;

/// Maximum bytes of the vectors of a stretch that are built together. If more are needed, because
/// values are large or columns many, none is cached.
const VECTORS_BYTES_MAX: usize = 256 << 20;

/// What the cache has of a stretch.
pub(crate) struct CachedStretch {
    /// Facts about all its cells, if any entry is cached.
    pub(crate) facts: Option<StretchFacts>,
    /// The [`CachedEntry::Rows`] entry, if cached.
    pub(crate) rows: Option<Arc<CachedEntry>>,
    /// Vectors of the wanted columns.
    pub(crate) vectors: Vec<Option<Arc<Packed>>>,
    /// One of the columns cannot be read from the stretch alone.
    pub(crate) is_unusable: bool,
}

impl CachedStretch {
    /// Where the rows are.
    pub(crate) fn marks(&self) -> Option<&Marks> {
        match self.rows.as_deref() {
            Some(CachedEntry::Rows(_, marks)) => Some(marks),
            _ => None,
        }
    }

    /// The bounds of the values of each column.
    pub(crate) fn bounds(&self) -> Vec<Bounds> {
        let bounds =
            |vector: &Option<Arc<Packed>>| vector.as_ref().map_or(Bounds::Unknown, |vector| vector.bounds());
        self.vectors.iter().map(bounds).collect()
    }

    /// Whether all vectors fit into memory when they are unpacked. A vector takes memory for all
    /// rows, even if only one has a value, and values may be large. A vector of unknown size counts
    /// as one of nulls.
    pub(crate) fn fits_memory(&self) -> bool {
        let without = self.facts.map_or(0, |facts| facts.rows).saturating_mul(VALUE_BYTES);
        let bytes = |vector: &Option<Arc<Packed>>| {
            vector.as_ref().map_or(without, |vector| vector.unpacked_len().max(without))
        };
        self.vectors.iter().fold(0_usize, |sum, vector| sum.saturating_add(bytes(vector)))
            <= VECTORS_BYTES_MAX
    }

    /// Whether the vectors of all columns are cached.
    pub(crate) fn is_complete(&self) -> bool {
        self.facts.is_some() && self.vectors.iter().all(Option::is_some)
    }
}

/// The cache entries of a stretch.
pub(crate) struct StretchCache<'a> {
    loader: &'a BlockLoader,
    stretch: &'a Stretch,
}

impl<'a> StretchCache<'a> {
    pub(crate) fn of(loader: &'a BlockLoader, stretch: &'a Stretch) -> StretchCache<'a> {
        StretchCache { loader, stretch }
    }

    /// The cached entries of `columns`.
    pub(crate) fn entries(&self, columns: &[Column]) -> CachedStretch {
        let rows = self.get(None);
        let mut facts = rows.as_ref().and_then(|rows| rows.facts());
        let (mut vectors, mut is_unusable) = (Vec::new(), false);
        for column in columns {
            let entry = self.get(Some(column));
            facts = facts.or(entry.as_ref().and_then(|entry| entry.facts()));
            vectors.push(match entry.as_deref() {
                Some(CachedEntry::Vector(_, vector)) => Some(vector.clone()),
                Some(CachedEntry::Unusable) => {
                    is_unusable = true;
                    None
                }
                _ => None,
            });
        }
        CachedStretch { facts, rows, vectors, is_unusable }
    }

    /// The source of the file's stretches.
    fn source(&self) -> StretchSource {
        if self.stretch.directory.is_some() { StretchSource::Catalog } else { StretchSource::Index }
    }

    /// The key of the entry with this name.
    fn key<'n>(&self, name: &'n [u8]) -> DerivedKey<'n> {
        let file_id = self.stretch.file.reader().file_id();
        DerivedKey { file_id, name, offset: self.stretch.offset }
    }

    fn get(&self, column: Option<&Column>) -> Option<Arc<CachedEntry>> {
        let name = entry::name(self.source(), column);
        let value: Arc<dyn Any + Send + Sync> = self.loader.derived_value(&self.key(&name))?;
        value.downcast().ok()
    }

    fn store(&self, column: Option<&Column>, entry: CachedEntry) -> Arc<CachedEntry> {
        let name = entry::name(self.source(), column);
        let entry = Arc::new(entry);
        self.loader.cache_derived_value(&self.key(&name), entry.clone());
        entry
    }

    /// Adds the vectors of those `columns` that `cached` lacks: from the file's column sidecar if
    /// it has one, otherwise from the cells.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) async fn build(
        &self,
        columns: &[Column],
        cached: &mut CachedStretch,
        blocks: &mut CursorBlocks,
    ) -> Result<()> {
        debug_assert!(
            columns.is_empty() || columns.len() == cached.vectors.len(),
            "each wanted column has a place for its vector"
        );
        if let Some(sidecar) = Sidecar::of(self.stretch, blocks).await?
            && self.build_from(&sidecar, columns, cached, blocks).await?
        {
            return Ok(());
        }
        self.build_from_cells(columns, cached, blocks).await
    }

    /// Builds the vectors from a sidecar. Returns whether it had them all.
    async fn build_from(
        &self,
        sidecar: &Sidecar<'_>,
        columns: &[Column],
        cached: &mut CachedStretch,
        blocks: &mut CursorBlocks,
    ) -> Result<bool> {
        let facts = sidecar.facts();
        if facts.is_plain && !sidecar.has_strips() {
            return Ok(false);
        }
        cached.facts = Some(facts);
        cached.rows = Some(self.store(None, CachedEntry::Rows(facts, sidecar.marks())));
        if !facts.is_plain {
            return Ok(true);
        }
        for (at, column) in columns.iter().enumerate() {
            if cached.vectors[at].is_some() {
                continue;
            }
            if !cached.fits_memory() {
                // The cells would not fit either.
                cached.is_unusable = true;
                return Ok(true);
            }
            match sidecar.vector(column, blocks).await? {
                StripResult::Vector(vector) => {
                    self.store(Some(column), CachedEntry::Vector(facts, vector.clone()));
                    cached.vectors[at] = Some(vector);
                }
                StripResult::Unreadable => {
                    self.store(Some(column), CachedEntry::Unusable);
                    cached.is_unusable = true;
                    return Ok(true);
                }
                StripResult::Damaged => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Reads the cells of the stretch. Builds the vectors of those `columns` that `cached` lacks
    /// and the marks of its rows, caches them, and adds them to `cached`. If cells are not plain,
    /// no vectors are built.
    ///
    /// If a value does not fit the type of its column, or values are very large, this fact is
    /// cached and added to `cached`. It is no error here: newer cells elsewhere or the wanted time
    /// range may hide the value, so a scanner must decide.
    ///
    /// # Errors
    /// Those of reading the file.
    async fn build_from_cells(
        &self,
        columns: &[Column],
        cached: &mut CachedStretch,
        blocks: &mut CursorBlocks,
    ) -> Result<()> {
        let is_missing = |at: &usize| cached.vectors[*at].is_none();
        let missing: Vec<usize> = (0..columns.len()).filter(is_missing).collect();
        let wanted: Vec<Column> = missing.iter().map(|at| columns[*at].clone()).collect();
        let mut pass = CellPass::new(&wanted);
        if pass.run(self.stretch, blocks).await? == PassEnd::Unusable {
            for column in pass.unusable_columns(&wanted) {
                self.store(Some(column), CachedEntry::Unusable);
            }
            cached.is_unusable = true;
            return Ok(());
        }
        let (facts, vectors) = pass.rows.take();
        cached.facts = Some(facts);
        cached.rows = Some(self.store(None, CachedEntry::Rows(facts, pass.marks)));
        if facts.is_plain {
            for (at, vector) in missing.into_iter().zip(vectors) {
                let vector = Arc::new(Packed::new(vector));
                self.store(Some(&columns[at]), CachedEntry::Vector(facts, vector.clone()));
                cached.vectors[at] = Some(vector);
            }
        }
        Ok(())
    }
}

/// One pass through the cells of a stretch.
struct CellPass {
    rows: RowsBuilder,
    marks: Marks,
    cells_unmarked: usize,
}

/// How a pass ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassEnd {
    /// At the end of the stretch, or because the cells are not plain.
    Finished,
    /// Because a value could not be read, or the values are too large.
    Unusable,
}

impl CellPass {
    fn new(columns: &[Column]) -> CellPass {
        CellPass { rows: RowsBuilder::new(columns), marks: Marks::default(), cells_unmarked: CELLS_PER_MARK }
    }

    async fn run(&mut self, stretch: &Stretch, blocks: &mut CursorBlocks) -> Result<PassEnd> {
        let stop = &stretch.rows.stop[..];
        let mut cursor = stretch.file.reader().cursor();
        let start = KeyBuf::first_on_row(&stretch.rows.start);
        let mut is_sought = false;
        let mut cells_left = CELLS_PER_SLICE;
        loop {
            let step = match is_sought {
                false => cursor.seek(start.as_slice(), blocks.source()),
                true => cursor.next(blocks.source()),
            };
            match step {
                Ok(()) => blocks.step_succeeded(),
                Err(stop) => {
                    blocks.handle(stop).await?;
                    continue;
                }
            }
            is_sought = true;
            // First the whole rows of the block, then the rest cell by cell.
            if let Some(mut slice) = cursor.row_slice(stop) {
                self.cells_unmarked = CELLS_PER_MARK;
                while let Some(cell) = slice.cell() {
                    if self.take(&cell).is_err() {
                        return Ok(self.end());
                    }
                    slice.next();
                    cells_left = cells_left.saturating_sub(1);
                }
                cursor.resume(&slice);
            }
            let Some(cell) = cursor.cell() else { return Ok(PassEnd::Finished) };
            if !self.rows.is_current(cell.row()) && !stop.is_empty() && cell.row() >= stop {
                return Ok(PassEnd::Finished);
            }
            self.cells_unmarked += 1;
            if self.take(&cell).is_err() || self.rows.heap_bytes() > VECTORS_BYTES_MAX {
                return Ok(self.end());
            }
            if !self.rows.facts().is_plain {
                return Ok(PassEnd::Finished);
            }
            cells_left = cells_left.saturating_sub(1);
            if cells_left == 0 {
                cells_left = CELLS_PER_SLICE;
                tokio::task::yield_now().await;
            }
        }
    }

    /// # Errors
    /// Only if a value does not fit the type of its column.
    #[inline]
    fn take(&mut self, cell: &cell::Cell<'_>) -> Result<()> {
        if !self.rows.is_current(cell.row()) {
            if self.cells_unmarked >= CELLS_PER_MARK {
                self.cells_unmarked = 0;
                self.marks.push(cell.row(), self.rows.len());
            }
            self.rows.begin(cell.row())?;
        }
        self.rows.cell(cell)
    }

    /// How the pass ended at a value that was not accepted. Cells that are not plain need no
    /// values.
    fn end(&self) -> PassEnd {
        if self.rows.facts().is_plain { PassEnd::Unusable } else { PassEnd::Finished }
    }

    /// The columns that made the pass useless: the column of the value that could not be read, or
    /// else those whose values may be large.
    fn unusable_columns<'c>(&self, columns: &'c [Column]) -> Vec<&'c Column> {
        match self.rows.unreadable() {
            Some(at) => vec![&columns[at]],
            None => columns.iter().filter(|column| column.kind() == Kind::Raw).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use columnar::{ColumnLocation, Encoding, VectorBuilder};

    use super::*;

    #[test]
    fn many_vectors_of_large_values_do_not_fit() {
        let rows = 64;
        let location = ColumnLocation::RowBytes { offset: 0, length: None };
        let mut builder = VectorBuilder::new(&Column { location, encoding: Encoding::Raw, scale: 0 });
        for row in 0..rows {
            builder.push(&[row as u8; 16 << 10]).unwrap();
        }
        let vector = Arc::new(Packed::new(builder.finish()));
        let cached = |vectors| CachedStretch {
            facts: Some(StretchFacts { rows, ..StretchFacts::none() }),
            rows: None,
            vectors,
            is_unusable: false,
        };
        // 1024 columns is the widest request. About 256 of these 1 MiB vectors reach the limit.
        assert!(cached(vec![None; 1024]).fits_memory());
        assert!(cached(vec![Some(vector.clone()); 100]).fits_memory());
        assert!(!cached(vec![Some(vector); 500]).fits_memory());
    }
}
