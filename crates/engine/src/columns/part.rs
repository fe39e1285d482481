//! Rows of one stretch: from its vectors, but for those that others have cells of.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use columnar::{Batch, Bits, Vector, slices};

use crate::columns::marks::{Finder, Marks};
use crate::columns::merged::MergedRows;
use crate::columns::others::rows_of_others;
use crate::columns::plan::{RowRange, Stretch};
use crate::columns::reading::Reading;
use crate::columns::scan::{BatchSink, ColumnScan, Looked, ReadUnit};
use crate::columns::stretch::{Known, Shelf};
use crate::error::Result;

/// Where the rows that are asked for are in the vectors of their stretch.
struct Places {
    range: Range<usize>,
    // Of those rows that others have cells of, in order, each once.
    others: Vec<usize>,
}

impl Places {
    fn count(&self) -> usize {
        self.range.len() - self.others.len()
    }

    /// A bit for each row of the stretch, where it is not all of them.
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
    /// Reads rows of a stretch; `None`, and nothing given to the sink, where the scanner is to read them: because their cells need
    /// its judgement, or the vectors cannot be had or are not worth it.
    pub(super) async fn read_part(
        &self,
        rows: &RowRange,
        stretch: &Stretch,
        store: usize,
        sink: &mut dyn BatchSink,
    ) -> Result<Option<ReadUnit>> {
        let mut reading = Reading::new(self.region().loader());
        let (view, read_point) = (&self.view().stores[store], self.read_point());
        let others = rows_of_others(rows, &stretch.file, view, read_point, &mut reading).await?;
        let Some(others) = others else { return Ok(None) };
        let columns = &self.wanted().columns;
        let shelf = Shelf::of(self.region().loader(), stretch);
        let mut known = shelf.known(columns);
        let may_take = |known: &Known| known.facts.is_none_or(|facts| self.may_take(&facts, store));
        if known.is_of_no_use || !may_take(&known) || !known.fits_memory() {
            return Ok(None);
        }
        let is_of_use = columns.is_empty() || known.facts.is_none() || sink.may_use(&known.bounds());
        let is_whole = *rows == stretch.rows;
        let is_known = match is_of_use {
            true => known.is_complete(),
            false => true,
        };
        let needs_marks = !is_whole || !others.is_empty();
        let wants_marks = needs_marks || sink.may_stop();
        let mut looked = Looked::default();
        if !is_known || (wants_marks && known.marks().is_none()) {
            if !is_whole {
                // To walk over a stretch for a part of it is not worth it.
                return Ok(None);
            }
            shelf.build(if is_of_use { columns } else { &[] }, &mut known, &mut reading).await?;
            if known.is_of_no_use || !may_take(&known) || !known.fits_memory() {
                return Ok(None);
            }
            looked.built = 1;
        }
        let Some(merged) = self.merge_rows(&others).await? else { return Ok(None) };
        let part = Part { rows, stretch, known: &known, len: known.facts.map_or(0, |facts| facts.rows) };
        let places = part.places(&others, needs_marks, &mut reading).await?;
        let mut next_row = None;
        if !is_of_use || columns.is_empty() {
            looked.skipped = places.count() as u64;
            if is_of_use {
                sink.rows(places.count() as u64);
            }
        } else {
            let until = self.give_vectors(&part, &places, sink).await?;
            let given = until.unwrap_or(places.range.end);
            let passed = places.others.partition_point(|other| *other < given);
            looked.in_vectors = (given - places.range.start - passed) as u64;
            if let Some(until) = until {
                next_row = part.row_at(until, &mut reading).await?;
            }
        }
        looked.merged = self.give_before(&merged, next_row.as_ref(), sink)?;
        Ok(Some(ReadUnit { looked, next_row }))
    }

    /// Gives rows of the vectors, some at a time; the first one that was not taken, if the sink wants no more.
    async fn give_vectors(
        &self,
        part: &Part<'_>,
        places: &Places,
        sink: &mut dyn BatchSink,
    ) -> Result<Option<usize>> {
        let vectors: Vec<Arc<Vector>> =
            part.known.vectors.iter().flatten().map(|vector| vector.unpack()).collect();
        let bits = places.bits(part.len);
        let ranges = slices::cut(&vectors, places.range.clone());
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

    /// Gives those of merged rows that are before a row, all of them; how many.
    fn give_before(
        &self,
        merged: &MergedRows,
        before: Option<&Bytes>,
        sink: &mut dyn BatchSink,
    ) -> Result<u64> {
        let len = merged.keys.len();
        let is_before = |row: &usize| before.is_none_or(|before| merged.keys.get(*row) < &before[..]);
        let count = (0..len).take_while(is_before).count();
        self.give_whole(merged, 0..count, sink)?;
        Ok(count as u64)
    }
}

/// Rows of a stretch, of which all is known that is needed.
struct Part<'a> {
    rows: &'a RowRange,
    stretch: &'a Stretch,
    known: &'a Known,
    // Rows of the stretch.
    len: usize,
}

impl Part<'_> {
    fn finder<'m>(&'m self, marks: &'m Marks) -> Finder<'m> {
        Finder::new(self.stretch, &self.stretch.rows, marks, self.len)
    }

    async fn places(&self, others: &[Bytes], needs_marks: bool, reading: &mut Reading) -> Result<Places> {
        let Some(marks) = self.known.marks().filter(|_| needs_marks) else {
            return Ok(Places { range: 0..self.len, others: Vec::new() });
        };
        let mut finder = self.finder(marks);
        let start = match self.rows.start > self.stretch.rows.start {
            true => finder.find(&self.rows.start, reading).await?.place,
            false => 0,
        };
        let mut places = Vec::new();
        for other in others {
            let found = finder.find(other, reading).await?;
            if found.is_there {
                places.push(found.place);
            }
        }
        let end = match self.rows.stop == self.stretch.rows.stop {
            true => self.len,
            false => finder.find(&self.rows.stop, reading).await?.place,
        };
        Ok(Places { range: start..end.max(start), others: places })
    }

    /// The row at a place.
    async fn row_at(&self, place: usize, reading: &mut Reading) -> Result<Option<Bytes>> {
        let marks = self.known.marks().expect("who may stop has them built");
        self.finder(marks).row_at(place, reading).await
    }
}
