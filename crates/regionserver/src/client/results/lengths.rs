//! What a scan's answer says of each of its results, if their cells are behind the message.

use bytes::{BufMut, BytesMut};
use prost::encoding::encode_varint;
use wire::convert::field::SHORT;

// Keys of `ScanResponse`: `cells_per_result` is field 1, `partial_flag_per_result` field 7, both numbers.
const CELLS_PER_RESULT: u8 = 1 << 3;
const PARTIAL_FLAG_PER_RESULT: u8 = 7 << 3;
/// A key, and one byte that is 0 or 1.
const FLAG_LEN: usize = 2;

/// How many cells each result has and whether it is partial, as the fields of the message that they will be: there may be
/// more of them than anything else in it, and lists of numbers would be measured and written once more.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    cells: BytesMut,
    partials: BytesMut,
    results: usize,
}

/// A place to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LengthsMark {
    cells_len: usize,
    results: usize,
}

impl Lengths {
    /// Results so far.
    pub(super) fn len(&self) -> usize {
        self.results
    }

    /// Adds a result of so many cells.
    pub(super) fn push(&mut self, cells: u32, partial: bool) {
        match u8::try_from(cells) {
            Ok(small @ ..SHORT) => self.cells.put_slice(&[CELLS_PER_RESULT, small]),
            _ => {
                self.cells.put_u8(CELLS_PER_RESULT);
                encode_varint(u64::from(cells), &mut self.cells);
            }
        }
        self.partials.put_slice(&[PARTIAL_FLAG_PER_RESULT, u8::from(partial)]);
        self.results += 1;
    }

    /// The last result is whole.
    pub(super) fn complete_last(&mut self) {
        if let Some(flag) = self.partials.last_mut() {
            *flag = 0;
        }
    }

    /// The place behind the last result.
    pub(super) fn mark(&self) -> LengthsMark {
        LengthsMark { cells_len: self.cells.len(), results: self.results }
    }

    /// Forgets what came behind a place.
    pub(super) fn truncate(&mut self, mark: LengthsMark) {
        self.cells.truncate(mark.cells_len);
        self.partials.truncate(mark.results * FLAG_LEN);
        self.results = mark.results;
    }

    /// The fields, in front of which or behind which those of the rest of the message go.
    pub(super) fn into_fields(mut self) -> BytesMut {
        self.cells.unsplit(self.partials);
        self.cells
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn message(lengths: Lengths) -> (Vec<u32>, Vec<bool>) {
        let message = proto::ScanResponse::decode(lengths.into_fields()).unwrap();
        (message.cells_per_result, message.partial_flag_per_result)
    }

    #[test]
    fn they_are_the_fields_of_the_message() {
        let mut lengths = Lengths::default();
        for cells in [0, 1, 127, 128, 255, 256, 70_000, u32::MAX] {
            lengths.push(cells, cells % 2 == 1);
        }
        lengths.complete_last();
        assert_eq!(lengths.len(), 8);
        let (cells, partials) = message(lengths);
        assert_eq!(cells, [0, 1, 127, 128, 255, 256, 70_000, u32::MAX]);
        assert_eq!(partials, [false, true, true, false, true, false, false, false]);
    }

    #[test]
    fn what_is_taken_back_is_not_there() {
        let mut lengths = Lengths::default();
        lengths.push(300, true);
        let mark = lengths.mark();
        lengths.push(1, false);
        lengths.push(500, false);
        lengths.truncate(mark);
        lengths.push(2, false);
        assert_eq!(message(lengths), (vec![300, 2], vec![true, false]));
        let mut none = Lengths::default();
        none.complete_last();
        assert_eq!(message(none), (vec![], vec![]));
    }
}
