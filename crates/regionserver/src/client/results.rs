//! Results on their way into an answer: cells go where the client wants them, as they are found.

mod lengths;

use std::sync::Arc;

use base::budget::{Budget, Share};
use bytes::{Bytes, BytesMut};
use cell::codec::Codec;
use cell::{Cell, KeyValue};
use engine::scanner::{ResultEnd, ResultSink, Room};
use prost::Message;
use rpc::CellBlock;
use wire::convert::result::InlineResult;

use lengths::{Lengths, LengthsMark};

/// Where the cells of results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultForm {
    /// Behind the message, in a cell block; the message says how many each result has.
    Block(Codec),
    /// Into the message.
    Inline,
}

/// Results of one answer.
pub(super) struct Results<'a> {
    form: ResultForm,
    // The cells of all results, if they go behind the message; other answers' cells may come before them.
    block: &'a mut CellBlock,
    // Per result its number of cells; inline the cells themselves.
    lengths: Lengths,
    inline: Vec<proto::Result>,
    bytes: usize,
    current: Current,
    row_start: Mark,
    // What is written, in the server's number for answers.
    admission: Admission<'a>,
}

/// Answers below this are not admitted one by one: there are as many of them as there are calls on a thread.
const UNADMITTED_BYTES: usize = 64 << 10;

/// The result being written.
#[derive(Default)]
struct Current {
    cells: u32,
    inline: InlineResult,
}

/// A place to go back to.
#[derive(Clone, Copy, Default)]
struct Mark {
    lengths: LengthsMark,
    block_len: usize,
    bytes: usize,
}

impl<'a> Results<'a> {
    /// No results yet; cells go behind what `block` has already.
    pub(super) fn new(form: ResultForm, block: &'a mut CellBlock) -> Results<'a> {
        Results {
            form,
            block,
            lengths: Lengths::default(),
            inline: Vec::new(),
            bytes: 0,
            current: Current::default(),
            row_start: Mark::default(),
            admission: Admission::default(),
        }
    }

    /// The same, admitted against the server's number of bytes for answers as they grow.
    pub(super) fn admitted(
        form: ResultForm,
        block: &'a mut CellBlock,
        budget: &'a Arc<Budget>,
    ) -> Results<'a> {
        Results { admission: Admission::by(budget), ..Results::new(form, block) }
    }

    /// Results that are complete.
    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// The one result of a Get: what is there, or an empty one.
    pub(super) fn into_single(mut self) -> proto::Result {
        debug_assert!(self.len() <= 1, "a get has one result");
        match self.form {
            ResultForm::Block(_) => wire::convert::result::in_block(self.current.cells as usize),
            ResultForm::Inline => self.inline.pop().unwrap_or_else(|| message_of(InlineResult::new(), false)),
        }
    }

    /// The one result of a change: the cells that it made.
    pub(super) fn single_of(mut self, cells: &[KeyValue]) -> proto::Result {
        if !cells.is_empty() {
            self.begin_result(false);
            cells.iter().for_each(|cell| self.cell(&cell.view(0)));
            self.end_result(ResultEnd { partial: false });
        }
        self.into_single()
    }

    /// Nothing comes any more: the last result is whole, even if it was cut where more of its row was there to look at.
    pub(super) fn complete_last(&mut self) {
        self.lengths.complete_last();
        if let Some(result) = self.inline.last_mut() {
            result.partial = Some(false);
        }
    }

    /// All results for the answer of a scan: the messages of those that are inline, or the fields `cells_per_result` and
    /// `partial_flag_per_result` of those that are behind the message.
    pub(super) fn into_scan(self) -> (Vec<proto::Result>, BytesMut) {
        match self.form {
            ResultForm::Block(_) => (Vec::new(), self.lengths.into_fields()),
            ResultForm::Inline => (self.inline, BytesMut::new()),
        }
    }
}

impl ResultSink for Results<'_> {
    fn begin_result(&mut self, goes_on: bool) {
        self.current = Current::default();
        if !goes_on {
            self.row_start =
                Mark { lengths: self.lengths.mark(), block_len: self.block.len(), bytes: self.bytes };
        }
    }

    fn cell(&mut self, cell: &Cell<'_>) {
        self.bytes += cell.len_without_tags();
        self.current.cells += 1;
        match self.form {
            ResultForm::Block(codec) => codec.write(cell, self.block.tail_for(codec.len(cell))),
            ResultForm::Inline => self.current.inline.push(cell),
        }
    }

    fn large_cell(&mut self, cell: &Cell<'_>, value: Bytes) {
        let ResultForm::Block(codec) = self.form else { return self.cell(cell) };
        self.bytes += cell.len_without_tags();
        self.current.cells += 1;
        push_by_reference(codec, cell, value, self.block);
    }

    fn end_result(&mut self, end: ResultEnd) {
        self.lengths.push(self.current.cells, end.partial);
        if self.form == ResultForm::Inline {
            self.inline.push(message_of(std::mem::take(&mut self.current.inline), end.partial));
        }
    }

    fn rollback_row(&mut self) {
        let Mark { lengths, block_len, bytes } = self.row_start;
        self.lengths.truncate(lengths);
        self.inline.truncate(self.len());
        self.block.truncate(block_len);
        self.bytes = bytes;
        self.current = Current::default();
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn room(&mut self) -> Room {
        // Inline cells are built beside each other before they are one message.
        let bytes = if self.form == ResultForm::Inline { self.bytes * 2 } else { self.bytes };
        self.admission.room(bytes)
    }
}

/// Adds a cell whose `value` is not copied.
fn push_by_reference(codec: Codec, cell: &Cell<'_>, value: Bytes, block: &mut CellBlock) {
    codec.write_front(cell, block.tail_for(codec.len(cell) - value.len()));
    block.push(value);
    codec.write_behind(cell, block.tail());
}

/// Room for an answer that grows, in the server's number. Small answers need not ask.
#[derive(Default)]
struct Admission<'a> {
    budget: Option<&'a Arc<Budget>>,
    share: Option<Share>,
    // Bytes when room was asked for last.
    asked_at: usize,
}

impl<'a> Admission<'a> {
    fn by(budget: &'a Arc<Budget>) -> Admission<'a> {
        Admission { budget: Some(budget), ..Admission::default() }
    }

    /// Whether there is room for what comes behind the `bytes` that are written.
    fn room(&mut self, bytes: usize) -> Room {
        let Some(budget) = self.budget.filter(|_| bytes > UNADMITTED_BYTES) else {
            return Room::Enough;
        };
        let share = self.share.get_or_insert_with(|| Share::of(budget));
        // Room for as much again as came since the last time, so that what comes next is admitted before it is there.
        let next = bytes + bytes.saturating_sub(self.asked_at).max(UNADMITTED_BYTES);
        self.asked_at = bytes;
        if share.take_large(next.saturating_sub(share.used())) {
            return Room::Enough;
        }
        if bytes <= share.used() { Room::Full } else { Room::Over }
    }
}

/// The one result of a Get, with its cells behind the message.
pub(super) struct RowResult<'a> {
    codec: Codec,
    block: &'a mut CellBlock,
    // Where its cells begin.
    start: usize,
    cells: u32,
    admission: Admission<'a>,
}

impl<'a> RowResult<'a> {
    /// No cells yet; they go behind what `block` has already, and are admitted against the server's number of bytes for
    /// answers as they grow.
    pub(super) fn admitted(codec: Codec, block: &'a mut CellBlock, budget: &'a Arc<Budget>) -> RowResult<'a> {
        RowResult { codec, start: block.len(), block, cells: 0, admission: Admission::by(budget) }
    }

    /// Cells that are there.
    pub(super) fn cells(&self) -> usize {
        self.cells as usize
    }

    /// What is there, or an empty result.
    pub(super) fn finish(self) -> proto::Result {
        wire::convert::result::in_block(self.cells as usize)
    }
}

impl ResultSink for RowResult<'_> {
    fn begin_result(&mut self, _goes_on: bool) {}

    fn cell(&mut self, cell: &Cell<'_>) {
        self.cells += 1;
        self.codec.write(cell, self.block.tail_for(self.codec.len(cell)));
    }

    fn large_cell(&mut self, cell: &Cell<'_>, value: Bytes) {
        self.cells += 1;
        push_by_reference(self.codec, cell, value, self.block);
    }

    fn end_result(&mut self, _end: ResultEnd) {}

    fn rollback_row(&mut self) {
        self.block.truncate(self.start);
        self.cells = 0;
    }

    fn bytes(&self) -> usize {
        self.block.len() - self.start
    }

    fn room(&mut self) -> Room {
        self.admission.room(self.bytes())
    }
}

/// The message that was written piece by piece; its cells' bytes are not copied again.
fn message_of(inline: InlineResult, partial: bool) -> proto::Result {
    let bytes: Bytes = inline.finish(partial).freeze();
    proto::Result::decode(bytes).expect("just written as this message")
}

#[cfg(test)]
mod tests {
    use cell::cell::CellType;

    use super::*;

    #[test]
    fn a_large_value_is_not_copied_and_the_answer_is_the_same() {
        let [small, large] = [10, 70_000]
            .map(|len| KeyValue::with_tags(b"r", b"f", b"q", 1, CellType::Put, &vec![7; len], &[0, 2, 1, 9]));
        let budget = Budget::new(1 << 20);
        for codec in [Codec::KeyValue, Codec::KeyValueWithTags] {
            let (mut copied, mut kept, mut of_scan) = (CellBlock::new(), CellBlock::new(), CellBlock::new());
            let value = Bytes::copy_from_slice(large.view(0).value);
            let mut copying = RowResult::admitted(codec, &mut copied, &budget);
            let mut keeping = RowResult::admitted(codec, &mut kept, &budget);
            let mut scanning = Results::new(ResultForm::Block(codec), &mut of_scan);
            scanning.begin_result(false);
            for cell in [&small, &large, &small] {
                let cell = cell.view(0);
                copying.cell(&cell);
                for sink in [&mut keeping as &mut dyn ResultSink, &mut scanning] {
                    match cell.value.len() == value.len() {
                        true => sink.large_cell(&cell, value.clone()),
                        false => sink.cell(&cell),
                    }
                }
            }
            assert_eq!((keeping.cells(), keeping.bytes()), (copying.cells(), copying.bytes()));
            assert_eq!(
                (scanning.current.cells, scanning.bytes),
                (3, small.view(0).len_without_tags() * 2 + large.view(0).len_without_tags())
            );
            let copied = copied.into_bytes();
            for block in [kept, of_scan] {
                let pieces = block.clone().into_pieces();
                assert_eq!(pieces.iter().filter(|piece| piece.as_ptr() == value.as_ptr()).count(), 1);
                assert_eq!(block.into_bytes(), copied);
            }
        }
    }
}
