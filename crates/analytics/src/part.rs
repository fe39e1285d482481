//! Reads rows of one stretch: from its vectors, except rows that have cells elsewhere.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use columnar::{Batch, Bits, Vector, slices};
use engine::error::Result;
use engine::scanner::CursorBlocks;

use crate::marks::{Marks, RowFinder};
use crate::merged::MergedRows;
use crate::plan::{OTHER_ROWS_MAX, RowRange, Stretch};
use crate::scan::{BatchSink, ColumnScan, ReadStats, ReadUnit};
use crate::stretch::{CachedStretch, StretchCache};

/// The places of the wanted rows in the vectors of their stretch.
struct PartPlaces {
    range: Range<usize>,
    // Places of rows that have cells elsewhere, in order, each once.
    others: Vec<usize>,
}

impl PartPlaces {
    fn count(&self) -> usize {
        self.range.len() - self.others.len()
    }

    /// One bit per row of the stretch, set for rows to read from vectors. `None` if these are all
    /// rows.
    fn bits(&self, len: usize) -> Option<Bits> {
        if self.others.is_empty() && self.range == (0..len) {
            return None;
        }
        let mut bits = Bits::of(len, |row| self.range.contains(&row));
        let mut others = Bits::zeros(len);
        self.others.iter().for_each(|row| others.set(*row));
        bits.and_not(&others);
        Some(bits)
    }
}

impl ColumnScan {
    /// Reads rows of a stretch. Returns `None`, with the sink unchanged, if a scan must read them:
    /// because the retention rules may drop some of their cells, or because the vectors cannot be
    /// built or are not worth building.
    pub(crate) async fn read_part(
        &self,
        rows: &RowRange,
        stretch: &Stretch,
        store: usize,
        sink: &mut dyn BatchSink,
    ) -> Result<Option<ReadUnit>> {
        let mut blocks = self.region().cursor_blocks();
        let range = (&rows.start[..], &rows.stop[..]);
        let others =
            self.reader.rows_outside(&stretch.file, store, range, OTHER_ROWS_MAX, &mut blocks).await?;
        let Some(others) = others else { return Ok(None) };
        let columns = &self.query().columns;
        let cache = StretchCache::of(self.region().loader(), stretch);
        let mut cached = cache.entries(columns);
        let may_use =
            |cached: &CachedStretch| cached.facts.is_none_or(|facts| self.may_use_stretch(&facts, store));
        if cached.is_unusable || !may_use(&cached) || !cached.fits_memory() {
            return Ok(None);
        }
        let is_of_use = columns.is_empty() || cached.facts.is_none() || sink.may_use(&cached.bounds());
        let is_whole = *rows == stretch.rows;
        let is_cached = match is_of_use {
            true => cached.is_complete(),
            false => true,
        };
        let needs_marks = !is_whole || !others.is_empty();
        let wants_marks = needs_marks || sink.may_stop();
        let mut stats = ReadStats::default();
        if !is_cached || (wants_marks && cached.marks().is_none()) {
            if !is_whole {
                // It does not pay to read a whole stretch for a part of it.
                return Ok(None);
            }
            cache.build(if is_of_use { columns } else { &[] }, &mut cached, &mut blocks).await?;
            if cached.is_unusable || !may_use(&cached) || !cached.fits_memory() {
                return Ok(None);
            }
            stats.built = 1;
        }
        let Some(merged) = self.merge_rows(&others).await? else { return Ok(None) };
        let part =
            StretchPart { rows, stretch, cached: &cached, len: cached.facts.map_or(0, |facts| facts.rows) };
        let places = part.places(&others, needs_marks, &mut blocks).await?;
        let mut next_row = None;
        if !is_of_use || columns.is_empty() {
            stats.skipped = places.count() as u64;
            if is_of_use {
                sink.rows(places.count() as u64);
            }
        } else {
            let until = self.pass_vectors(&part, &places, sink).await?;
            let end = until.unwrap_or(places.range.end);
            let passed = places.others.partition_point(|other| *other < end);
            stats.in_vectors = (end - places.range.start - passed) as u64;
            if let Some(until) = until {
                next_row = part.row_at(until, &mut blocks).await?;
            }
        }
        stats.merged = self.pass_before(&merged, next_row.as_ref(), sink)?;
        Ok(Some(ReadUnit { stats, next_row }))
    }

    /// Passes rows of the vectors in slices. Returns the first row that was not taken, if the sink
    /// wants no more.
    async fn pass_vectors(
        &self,
        part: &StretchPart<'_>,
        places: &PartPlaces,
        sink: &mut dyn BatchSink,
    ) -> Result<Option<usize>> {
        let vectors: Vec<Arc<Vector>> =
            part.cached.vectors.iter().flatten().map(|vector| vector.unpack()).collect();
        let bits = places.bits(part.len);
        let ranges = slices::slice_ranges(&vectors, places.range.clone());
        if let [_] = ranges[..] {
            let taken = sink.batch(&Batch { len: part.len, columns: &vectors, rows: bits.as_ref() })?;
            return Ok(taken.until(0..places.range.end));
        }
        for range in ranges {
            let slice = |vector: &Arc<Vector>| Arc::new(vector.slice(range.clone()));
            let slices: Vec<Arc<Vector>> = vectors.iter().map(slice).collect();
            let bits = bits.as_ref().map(|bits| bits.slice(range.clone()));
            let taken = sink.batch(&Batch { len: range.len(), columns: &slices, rows: bits.as_ref() })?;
            if let Some(until) = taken.until(range.start..places.range.end) {
                return Ok(Some(until));
            }
            tokio::task::yield_now().await;
        }
        Ok(None)
    }

    /// Passes all merged rows before a row. Returns how many.
    fn pass_before(
        &self,
        merged: &MergedRows,
        before: Option<&Bytes>,
        sink: &mut dyn BatchSink,
    ) -> Result<u64> {
        let len = merged.keys.len();
        let is_before = |row: &usize| before.is_none_or(|before| merged.keys.get(*row) < &before[..]);
        let count = (0..len).take_while(is_before).count();
        self.pass_all(merged, 0..count, sink)?;
        Ok(count as u64)
    }
}

/// Rows of a stretch for which all necessary entries are known.
struct StretchPart<'a> {
    rows: &'a RowRange,
    stretch: &'a Stretch,
    cached: &'a CachedStretch,
    // Number of rows of the stretch.
    len: usize,
}

impl StretchPart<'_> {
    fn finder<'m>(&'m self, marks: &'m Marks) -> RowFinder<'m> {
        RowFinder::new(self.stretch, &self.stretch.rows, marks, self.len)
    }

    async fn places(
        &self,
        others: &[Bytes],
        needs_marks: bool,
        blocks: &mut CursorBlocks,
    ) -> Result<PartPlaces> {
        let Some(marks) = self.cached.marks().filter(|_| needs_marks) else {
            return Ok(PartPlaces { range: 0..self.len, others: Vec::new() });
        };
        let mut finder = self.finder(marks);
        let start = match self.rows.start > self.stretch.rows.start {
            true => finder.find(&self.rows.start, blocks).await?.place,
            false => 0,
        };
        let mut places = Vec::new();
        for other in others {
            let found = finder.find(other, blocks).await?;
            if found.is_there {
                places.push(found.place);
            }
        }
        let end = match self.rows.stop == self.stretch.rows.stop {
            true => self.len,
            false => finder.find(&self.rows.stop, blocks).await?.place,
        };
        Ok(PartPlaces { range: start..end.max(start), others: places })
    }

    /// The row at a place.
    async fn row_at(&self, place: usize, blocks: &mut CursorBlocks) -> Result<Option<Bytes>> {
        let marks = self.cached.marks().expect("marks are built for a sink that may stop");
        self.finder(marks).row_at(place, blocks).await
    }
}
