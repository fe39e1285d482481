//! Encodes results into a response: each cell is written in the form that the client expects when
//! it is read.

mod lengths;

use std::sync::Arc;

use base::budget::{Budget, BudgetShare};
use bytes::{Bytes, BytesMut};
use cell::codec::Codec;
use cell::{Cell, KeyValue};
use engine::scanner::{ResultEnd, ResultSink, SinkMemory};
use prost::Message;
use rpc::CellBlock;
use wire::convert::result::InlineResult;

use lengths::{Lengths, LengthsMark};

/// Where the cells of results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultForm {
    /// Into a cell block after the message; the message has the number of cells of each result.
    Block(Codec),
    /// Into the message.
    Inline,
}

/// The results of one response.
pub(super) struct Results<'a> {
    form: ResultForm,
    // The cells of all results, if they go into the cell block; it may already have cells of other
    // results.
    block: &'a mut CellBlock,
    // The number of cells of each result; inline results also have the cells themselves.
    lengths: Lengths,
    inline: Vec<proto::Result>,
    bytes: usize,
    current: CurrentResult,
    row_start: RollbackPoint,
    // The written bytes, as accounted in the server's budget for responses.
    admission: Admission<'a>,
}

/// Responses up to this size need no admission: there is at most one for each running call.
const UNADMITTED_BYTES: usize = 64 << 10;

/// The result being written.
#[derive(Default)]
struct CurrentResult {
    cells: u32,
    inline: InlineResult,
}

/// A position to roll back to.
#[derive(Clone, Copy, Default)]
struct RollbackPoint {
    lengths: LengthsMark,
    block_len: usize,
    bytes: usize,
}

impl<'a> Results<'a> {
    /// Starts without results; cells are appended to `block`.
    pub(super) fn new(form: ResultForm, block: &'a mut CellBlock) -> Results<'a> {
        Results {
            form,
            block,
            lengths: Lengths::default(),
            inline: Vec::new(),
            bytes: 0,
            current: CurrentResult::default(),
            row_start: RollbackPoint::default(),
            admission: Admission::default(),
        }
    }

    /// Like `new`, but the growing response is admitted against `budget`.
    pub(super) fn with_budget(
        form: ResultForm,
        block: &'a mut CellBlock,
        budget: &'a Arc<Budget>,
    ) -> Results<'a> {
        Results { admission: Admission::new(budget), ..Results::new(form, block) }
    }

    /// The number of complete results.
    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// The result of a Get, which may be empty.
    pub(super) fn into_single(mut self) -> proto::Result {
        debug_assert!(self.len() <= 1, "a get has one result");
        match self.form {
            ResultForm::Block(_) => wire::convert::result::in_block(self.current.cells as usize),
            ResultForm::Inline => {
                self.inline.pop().unwrap_or_else(|| decode_result(InlineResult::new(), false))
            }
        }
    }

    /// The result of a mutation, with the cells that it produced.
    pub(super) fn into_single_with(mut self, cells: &[KeyValue]) -> proto::Result {
        if !cells.is_empty() {
            self.begin_result(false);
            cells.iter().for_each(|cell| self.cell(&cell.view(0)));
            self.end_result(ResultEnd { partial: false });
        }
        self.into_single()
    }

    /// Marks the last result as complete, because the scan has ended. It may be marked partial, if
    /// cells of its row remained to be checked.
    pub(super) fn complete_last(&mut self) {
        self.lengths.complete_last();
        if let Some(result) = self.inline.last_mut() {
            result.partial = Some(false);
        }
    }

    /// All results for a scan response: the messages of inline results, or the encoded fields
    /// `cells_per_result` and `partial_flag_per_result` for results in the cell block.
    pub(super) fn into_scan(self) -> (Vec<proto::Result>, BytesMut) {
        match self.form {
            ResultForm::Block(_) => (Vec::new(), self.lengths.into_fields()),
            ResultForm::Inline => (self.inline, BytesMut::new()),
        }
    }
}

impl ResultSink for Results<'_> {
    fn begin_result(&mut self, continues_row: bool) {
        self.current = CurrentResult::default();
        if !continues_row {
            self.row_start = RollbackPoint {
                lengths: self.lengths.mark(),
                block_len: self.block.len(),
                bytes: self.bytes,
            };
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
            self.inline.push(decode_result(std::mem::take(&mut self.current.inline), end.partial));
        }
    }

    fn rollback_row(&mut self) {
        let RollbackPoint { lengths, block_len, bytes } = self.row_start;
        self.lengths.truncate(lengths);
        self.inline.truncate(self.len());
        self.block.truncate(block_len);
        self.bytes = bytes;
        self.current = CurrentResult::default();
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn memory(&mut self) -> SinkMemory {
        // Inline cells are in memory twice while their message is built.
        let bytes = if self.form == ResultForm::Inline { self.bytes * 2 } else { self.bytes };
        self.admission.memory(bytes)
    }
}

/// Appends a cell to `block` without copying its `value`.
fn push_by_reference(codec: Codec, cell: &Cell<'_>, value: Bytes, block: &mut CellBlock) {
    codec.write_before_value(cell, block.tail_for(codec.len(cell) - value.len()));
    block.push(value);
    codec.write_after_value(cell, block.tail());
}

/// Admits a growing response against the server's budget. Small responses need no admission.
#[derive(Default)]
struct Admission<'a> {
    budget: Option<&'a Arc<Budget>>,
    share: Option<BudgetShare>,
    // Bytes at the time of the last request for memory.
    last_request_bytes: usize,
}

impl<'a> Admission<'a> {
    fn new(budget: &'a Arc<Budget>) -> Admission<'a> {
        Admission { budget: Some(budget), ..Admission::default() }
    }

    /// Whether the response may grow beyond the `bytes` that are written.
    fn memory(&mut self, bytes: usize) -> SinkMemory {
        let Some(budget) = self.budget.filter(|_| bytes > UNADMITTED_BYTES) else {
            return SinkMemory::Enough;
        };
        let share = self.share.get_or_insert_with(|| BudgetShare::of(budget));
        // Request as much again as was written since the last request, so that memory is admitted
        // before it is used.
        let next = bytes + bytes.saturating_sub(self.last_request_bytes).max(UNADMITTED_BYTES);
        self.last_request_bytes = bytes;
        if share.take_large(next.saturating_sub(share.used())) {
            return SinkMemory::Enough;
        }
        if bytes <= share.used() { SinkMemory::Full } else { SinkMemory::Exceeded }
    }
}

/// The one result of a Get, with its cells in the cell block.
pub(super) struct RowResult<'a> {
    codec: Codec,
    block: &'a mut CellBlock,
    // Where its cells begin in the block.
    start: usize,
    cells: u32,
    admission: Admission<'a>,
}

impl<'a> RowResult<'a> {
    /// Starts without cells. They are appended to `block` and admitted against `budget` as they
    /// grow.
    pub(super) fn with_budget(
        codec: Codec,
        block: &'a mut CellBlock,
        budget: &'a Arc<Budget>,
    ) -> RowResult<'a> {
        RowResult { codec, start: block.len(), block, cells: 0, admission: Admission::new(budget) }
    }

    /// The number of cells written.
    pub(super) fn cells(&self) -> usize {
        self.cells as usize
    }

    /// The result's message; it may be an empty result.
    pub(super) fn finish(self) -> proto::Result {
        wire::convert::result::in_block(self.cells as usize)
    }
}

impl ResultSink for RowResult<'_> {
    fn begin_result(&mut self, _continues_row: bool) {}

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

    fn memory(&mut self) -> SinkMemory {
        self.admission.memory(self.bytes())
    }
}

/// Decodes the message that was encoded piece by piece. This does not copy the cells' bytes again.
fn decode_result(inline: InlineResult, partial: bool) -> proto::Result {
    let bytes: Bytes = inline.finish(partial).freeze();
    proto::Result::decode(bytes).expect("just written as this message")
}

#[cfg(test)]
mod tests {
    use cell::cell::CellType;

    use super::*;

    #[test]
    fn a_large_value_is_not_copied_and_the_response_is_equal() {
        let [small, large] = [10, 70_000]
            .map(|len| KeyValue::with_tags(b"r", b"f", b"q", 1, CellType::Put, &vec![7; len], &[0, 2, 1, 9]));
        let budget = Budget::new(1 << 20);
        for codec in [Codec::KeyValue, Codec::KeyValueWithTags] {
            let (mut copied, mut kept, mut of_scan) = (CellBlock::new(), CellBlock::new(), CellBlock::new());
            let value = Bytes::copy_from_slice(large.view(0).value);
            let mut copying = RowResult::with_budget(codec, &mut copied, &budget);
            let mut keeping = RowResult::with_budget(codec, &mut kept, &budget);
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
