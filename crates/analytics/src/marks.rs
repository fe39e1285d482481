//! Finds the rows of a stretch in its vectors, without storing all row keys.
//!
//! Vectors contain values, but not the rows that they belong to. To find the place of a row, or the
//! row at a place, some rows are marked with their places when the stretch is read, about one per
//! block. A row is found by reading on from the mark before it, through cells of the same block. A
//! query for single rows reads those blocks anyway.

use bytes::Bytes;
use cell::KeyBuf;
use columnar::strings::Strings;
use engine::error::Result;
use engine::scanner::CursorBlocks;
use hfile::Cursor;

use crate::plan::{RowRange, Stretch};

/// Some rows of a stretch with their places, in order. The first row of the stretch is one of them.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    rows: Strings,
    places: Vec<u32>,
}

/// Number of cells of a row after which the next row is sought, because a row may have very many
/// cells.
const STEPS_MAX: usize = 64;

impl Marks {
    /// Adds a mark after the previous ones.
    pub(crate) fn push(&mut self, row: &[u8], place: usize) {
        let place = u32::try_from(place).expect("a stretch has far less than 2^32 rows");
        debug_assert!(self.places.last().is_none_or(|last| *last < place), "marks are in the order of rows");
        self.rows.push(row);
        self.places.push(place);
    }

    /// Bytes of memory in addition to the value itself.
    pub(crate) fn heap_len(&self) -> usize {
        self.rows.heap_len() + self.places.capacity() * size_of::<u32>()
    }

    /// The last mark for which `is_before` holds. It must hold for all marks before that one.
    fn last_where(&self, is_before: impl Fn(&[u8], usize) -> bool) -> Option<(&[u8], usize)> {
        let (mut low, mut high) = (0, self.places.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(self.rows.get(middle), self.places[middle] as usize) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low.checked_sub(1).map(|at| (self.rows.get(at), self.places[at] as usize))
    }
}

/// Finds rows of a stretch. Faster if they are requested in order.
pub(crate) struct RowFinder<'a> {
    marks: &'a Marks,
    // Number of rows of the stretch.
    len: usize,
    stop: &'a [u8],
    cursor: Cursor,
    // Place of the row at the cursor.
    place: usize,
}

/// The place of a row, or where it would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowPlace {
    /// Number of rows before it.
    pub(crate) place: usize,
    /// Whether the stretch has the row.
    pub(crate) is_there: bool,
}

impl<'a> RowFinder<'a> {
    /// A finder for the rows `range` of a stretch, which has `len` rows.
    pub(crate) fn new(stretch: &Stretch, range: &'a RowRange, marks: &'a Marks, len: usize) -> RowFinder<'a> {
        RowFinder { marks, len, stop: &range.stop, cursor: stretch.file.reader().cursor(), place: 0 }
    }

    /// Finds a row.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) async fn find(&mut self, row: &[u8], blocks: &mut CursorBlocks) -> Result<RowPlace> {
        let after = RowPlace { place: self.len, is_there: false };
        if !self.stop.is_empty() && row >= self.stop {
            return Ok(after);
        }
        let Some((mark, place)) = self.marks.last_where(|mark, _| mark <= row) else {
            return Ok(RowPlace { place: 0, is_there: false });
        };
        self.approach(mark, place, |here, _| here <= row, blocks).await?;
        while let Some(here) = self.row() {
            if here >= row {
                return Ok(RowPlace { place: self.place, is_there: here == row });
            }
            self.next_row(blocks).await?;
        }
        Ok(after)
    }

    /// The row at a place; `None` after the last one.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) async fn row_at(&mut self, wanted: usize, blocks: &mut CursorBlocks) -> Result<Option<Bytes>> {
        let mark = self.marks.last_where(|_, place| place <= wanted);
        let Some((mark, place)) = mark.filter(|_| wanted < self.len) else { return Ok(None) };
        self.approach(mark, place, |_, here| here <= wanted, blocks).await?;
        while self.place < wanted && self.row().is_some() {
            self.next_row(blocks).await?;
        }
        Ok(self.row().map(Bytes::copy_from_slice))
    }

    /// Moves to a marked row. Stays if the cursor is at it or after it, and `may_stay` holds.
    async fn approach(
        &mut self,
        mark: &[u8],
        place: usize,
        may_stay: impl Fn(&[u8], usize) -> bool,
        blocks: &mut CursorBlocks,
    ) -> Result<()> {
        let stays = self.row().is_some_and(|here| self.place >= place && may_stay(here, self.place));
        if !stays {
            self.seek(mark, blocks).await?;
            self.place = place;
        }
        Ok(())
    }

    /// The row at the cursor, if it is in the stretch.
    fn row(&self) -> Option<&[u8]> {
        let row = self.cursor.cell()?.row();
        (self.stop.is_empty() || row < self.stop).then_some(row)
    }

    async fn next_row(&mut self, blocks: &mut CursorBlocks) -> Result<()> {
        let Some(row) = self.row().map(<[u8]>::to_vec) else { return Ok(()) };
        self.place += 1;
        let mut steps = 0;
        while steps < STEPS_MAX {
            match self.cursor.next(blocks.source()) {
                Ok(()) => blocks.step_succeeded(),
                Err(stop) => {
                    blocks.handle(stop).await?;
                    continue;
                }
            }
            steps += 1;
            if self.cursor.cell().is_none_or(|cell| cell.row() != &row[..]) {
                return Ok(());
            }
        }
        let after = [&row[..], &[0]].concat();
        self.seek(&after, blocks).await
    }

    async fn seek(&mut self, row: &[u8], blocks: &mut CursorBlocks) -> Result<()> {
        let key = KeyBuf::first_on_row(row);
        loop {
            match self.cursor.seek(key.as_slice(), blocks.source()) {
                Ok(()) => break,
                Err(stop) => blocks.handle(stop).await?,
            }
        }
        blocks.step_succeeded();
        Ok(())
    }
}
