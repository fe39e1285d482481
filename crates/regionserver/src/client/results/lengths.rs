//! The fields of a scan response that describe each result, if the cells are in the cell block.

use bytes::{BufMut, BytesMut};
use prost::encoding::encode_varint;
use wire::convert::field::SHORT;

// Keys of `ScanResponse`: `cells_per_result` is field 1, `partial_flag_per_result` is field 7; both
// are varints.
const CELLS_PER_RESULT: u8 = 1 << 3;
const PARTIAL_FLAG_PER_RESULT: u8 = 7 << 3;
/// Encoded length of a flag: its key, and one byte that is 0 or 1.
const FLAG_LEN: usize = 2;

/// The number of cells of each result and its partial flag, stored as encoded fields. There may be
/// more of them than anything else in the message, and prost would measure and encode lists of
/// numbers once more.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    cells: BytesMut,
    partials: BytesMut,
    results: usize,
}

/// A position to roll back to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LengthsMark {
    cells_len: usize,
    results: usize,
}

impl Lengths {
    /// The number of results.
    pub(super) fn len(&self) -> usize {
        self.results
    }

    /// Appends a result with `cells` cells.
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

    /// Marks the last result as complete.
    pub(super) fn complete_last(&mut self) {
        if let Some(flag) = self.partials.last_mut() {
            *flag = 0;
        }
    }

    /// The position after the last result.
    pub(super) fn mark(&self) -> LengthsMark {
        LengthsMark { cells_len: self.cells.len(), results: self.results }
    }

    /// Removes everything after a position.
    pub(super) fn truncate(&mut self, mark: LengthsMark) {
        self.cells.truncate(mark.cells_len);
        self.partials.truncate(mark.results * FLAG_LEN);
        self.results = mark.results;
    }

    /// The encoded fields; the other fields of the message may go before or after them.
    pub(super) fn into_fields(mut self) -> BytesMut {
        debug_assert_eq!(self.partials.len(), self.results * FLAG_LEN, "each result has a partial flag");
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
    fn lengths_encode_the_message_fields() {
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
    fn truncated_results_are_removed() {
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
