//! Where the rows of a stretch are in its vectors, found without their keys.
//!
//! Vectors know values and not whose they are. To find a row's place in them, or the row at a place, some rows are marked with
//! their places when the stretch is walked over, about one a block; from the mark in front of it a row is found by a walk over
//! cells that it shares a block with. Who looks for single rows reads those blocks anyway.

use bytes::Bytes;
use cell::KeyBuf;
use columnar::strings::Strings;
use hfile::{Cursor, Stop};

use crate::columns::plan::{RowRange, Stretch};
use crate::columns::reading::Reading;
use crate::error::Result;

/// Rows of a stretch with their places, in order; its first row is one of them.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    rows: Strings,
    places: Vec<u32>,
}

/// Cells of a row after which the next row is sought: a row may have very many.
const STEPS_MAX: usize = 64;

impl Marks {
    /// Marks a row, behind those before it.
    pub(super) fn push(&mut self, row: &[u8], place: usize) {
        self.rows.push(row);
        self.places.push(u32::try_from(place).expect("a stretch has far less than 2^32 rows"));
    }

    /// Bytes of memory beside the value itself.
    pub(super) fn heap_len(&self) -> usize {
        self.rows.heap_len() + self.places.capacity() * size_of::<u32>()
    }

    /// The last mark for whose row and place `is_before` holds; it holds for those before it.
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

/// Finds rows of a stretch, faster where they are asked for in order.
pub(super) struct Finder<'a> {
    marks: &'a Marks,
    // Rows of the stretch.
    len: usize,
    stop: &'a [u8],
    cursor: Cursor,
    // Of the row that the cursor is in.
    place: usize,
}

/// Where a row is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Rows in front of it.
    pub(super) place: usize,
    /// Whether it is there.
    pub(super) is_there: bool,
}

impl<'a> Finder<'a> {
    /// Of the rows `range` of a stretch, `len` of which there are.
    pub(super) fn new(stretch: &Stretch, range: &'a RowRange, marks: &'a Marks, len: usize) -> Finder<'a> {
        Finder { marks, len, stop: &range.stop, cursor: stretch.file.reader().cursor(), place: 0 }
    }

    /// Finds a row.
    ///
    /// # Errors
    /// What reading the file can fail with.
    pub(super) async fn find(&mut self, row: &[u8], reading: &mut Reading) -> Result<Found> {
        let behind = Found { place: self.len, is_there: false };
        if !self.stop.is_empty() && row >= self.stop {
            return Ok(behind);
        }
        let Some((mark, place)) = self.marks.last_where(|mark, _| mark <= row) else {
            return Ok(Found { place: 0, is_there: false });
        };
        self.approach(mark, place, |here, _| here <= row, reading).await?;
        while let Some(here) = self.row() {
            if here >= row {
                return Ok(Found { place: self.place, is_there: here == row });
            }
            self.next_row(reading).await?;
        }
        Ok(behind)
    }

    /// The row at a place; `None` behind the last.
    ///
    /// # Errors
    /// What reading the file can fail with.
    pub(super) async fn row_at(&mut self, wanted: usize, reading: &mut Reading) -> Result<Option<Bytes>> {
        let mark = self.marks.last_where(|_, place| place <= wanted);
        let Some((mark, place)) = mark.filter(|_| wanted < self.len) else { return Ok(None) };
        self.approach(mark, place, |_, here| here <= wanted, reading).await?;
        while self.place < wanted && self.row().is_some() {
            self.next_row(reading).await?;
        }
        Ok(self.row().map(Bytes::copy_from_slice))
    }

    /// Goes to a marked row, unless the cursor is at it or behind, where `may_stay`.
    async fn approach(
        &mut self,
        mark: &[u8],
        place: usize,
        may_stay: impl Fn(&[u8], usize) -> bool,
        reading: &mut Reading,
    ) -> Result<()> {
        let stays = self.row().is_some_and(|here| self.place >= place && may_stay(here, self.place));
        if !stays {
            self.seek(mark, reading).await?;
            self.place = place;
        }
        Ok(())
    }

    /// The row that the cursor is in, if it is one of the stretch's.
    fn row(&self) -> Option<&[u8]> {
        let row = self.cursor.cell()?.row();
        (self.stop.is_empty() || row < self.stop).then_some(row)
    }

    async fn next_row(&mut self, reading: &mut Reading) -> Result<()> {
        let Some(row) = self.row().map(<[u8]>::to_vec) else { return Ok(()) };
        self.place += 1;
        let mut steps = 0;
        while steps < STEPS_MAX {
            match self.cursor.next(reading.blocks()) {
                Ok(()) => reading.step_succeeded(),
                Err(Stop::Failed(error)) => return Err(error.into()),
                Err(Stop::Miss(miss)) => {
                    reading.load(&miss).await?;
                    continue;
                }
            }
            steps += 1;
            if self.cursor.cell().is_none_or(|cell| cell.row() != &row[..]) {
                return Ok(());
            }
        }
        let behind = [&row[..], &[0]].concat();
        self.seek(&behind, reading).await
    }

    async fn seek(&mut self, row: &[u8], reading: &mut Reading) -> Result<()> {
        let key = KeyBuf::first_on_row(row);
        loop {
            match self.cursor.seek(key.as_slice(), reading.blocks()) {
                Ok(()) => break,
                Err(Stop::Failed(error)) => return Err(error.into()),
                Err(Stop::Miss(miss)) => reading.load(&miss).await?,
            }
        }
        reading.step_succeeded();
        Ok(())
    }
}
