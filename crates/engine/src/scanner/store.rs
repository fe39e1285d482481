//! The scan of one store: merges its sources, judges their cells, and moves on from each.

use base::metrics::Counts;
use bytes::Bytes;
use cell::CellOrder;
use cell::query::Scan;
use hfile::{BlockSource, LARGE_VALUE_LEN, Stop};

use crate::filter::{FilterError, ScanFilter};
use crate::instruments::{Origin, StoreCounts, StoreReads};
use crate::scanner::filtered::HintTarget;
use crate::scanner::judge::{CellOutcome, Judge, Judgement};
use crate::scanner::matcher::Match;
use crate::scanner::merge::{Merge, MergePosition, ReverseStart};
use crate::scanner::output::Output;
use crate::scanner::rules::FamilyRules;
use crate::scanner::select::select;
use crate::scanner::sink::LargeValueSink;
use crate::store::StoreView;

/// The part of a region scan that reads one family.
pub(crate) struct StoreScanner {
    family: Bytes,
    pub(crate) merge: Merge,
    pub(crate) judge: Judge,
    // Whether no more cells of the current row are wanted from this store. The merge may still be
    // at a cell of the row.
    row_done: bool,
    // Whether a cell of the current row was found.
    visited: bool,
    // Reversed scans: an earlier row to which the filter wants to go.
    back_to: Option<Vec<u8>>,
    // Held while the store is read, because files in a view are not deleted. `None` from `rest` to
    // `wake`.
    view: Option<StoreView>,
    // Where `wake` resumes; `None` if the store has not been sought.
    position: Option<MergePosition>,
    // Index of the store in the region.
    index: usize,
    // Whether the cells of the current row that passed came from memstores only, or some from
    // files.
    origin: Origin,
    // Counts of reads that were not added to the store's counters yet.
    reads: StoreReads,
}

/// The outcome of one step.
pub(crate) enum StepOutcome {
    /// A cell was judged.
    Cell(CellOutcome),
    /// The store has no more cells of the row.
    RowDone,
    /// The filter cannot judge the cell.
    Failed(FilterError),
}

impl StoreScanner {
    pub(crate) fn new(
        view: StoreView,
        order: CellOrder,
        rules: &FamilyRules,
        scan: &Scan,
        qualifiers: Option<&[Bytes]>,
        read_point: u64,
        now_ms: i64,
    ) -> StoreScanner {
        let sources = select(&view, order, rules, scan, qualifiers, read_point, now_ms);
        StoreScanner {
            family: rules.family.clone(),
            merge: Merge::new(order, sources),
            judge: Judge::new(rules, scan, qualifiers, now_ms),
            row_done: false,
            visited: false,
            back_to: None,
            view: Some(view),
            position: None,
            index: 0,
            origin: Origin::default(),
            reads: StoreReads::default(),
        }
    }

    /// Sets the index of the store in the region.
    pub(crate) fn with_index(self, index: usize) -> StoreScanner {
        StoreScanner { index, ..self }
    }

    /// The family of the store.
    pub(crate) fn family(&self) -> &Bytes {
        &self.family
    }

    /// The view that is read; `None` from [`rest`](Self::rest) to [`wake`](Self::wake).
    pub(crate) fn view(&self) -> Option<&StoreView> {
        self.view.as_ref()
    }

    /// Releases and returns the sources and the view. `position` is where [`wake`](Self::wake)
    /// resumes.
    pub(crate) fn rest(
        &mut self,
        order: CellOrder,
        position: Option<MergePosition>,
    ) -> (Merge, Option<StoreView>) {
        self.position = position;
        (std::mem::replace(&mut self.merge, Merge::new(order, Vec::new())), self.view.take())
    }

    /// Resumes after [`rest`](Self::rest), in another view of the same cells.
    pub(crate) fn wake(&mut self, view: &StoreView, merge: Merge) {
        self.merge = merge;
        self.view = Some(view.clone());
        if let Some(position) = self.position.take() {
            self.merge.resume_at(position);
        }
    }

    /// Counts a row that the fast path of a region scan read from a file, if any of its cells
    /// passed.
    pub(crate) fn count_walked_row(&mut self, has_cells: bool) {
        if has_cells {
            self.reads.count_row(Origin::Files);
        }
    }

    /// Counts the current row, by where its cells that passed came from. A row that is returned in
    /// several results counts once for each.
    #[inline]
    pub(crate) fn count_row(&mut self) {
        self.reads.count_row(std::mem::take(&mut self.origin));
    }

    /// Adds the reads to `counts`, the counters of all stores of the region.
    pub(crate) fn count_reads(&mut self, counts: &[Counts<StoreCounts>]) {
        self.reads.count_filters(self.merge.take_filter_lookups());
        self.reads.add_to_store(&counts[self.index]);
    }

    /// Begins a row. The store may have no cells of it.
    pub(crate) fn begin_row(&mut self) {
        self.judge.begin_row();
        self.row_done = false;
        self.visited = false;
    }

    /// Skips `row` without judging its cells.
    pub(crate) fn skip_row(&mut self, row: &[u8]) {
        if self.merge.cell().is_some_and(|cell| cell.row() == row) {
            self.merge.pass_row();
        }
    }

    /// Moves to before `row` in a reversed scan, or to the earlier row to which the filter wants to
    /// go.
    pub(crate) fn leave_row_backward(&mut self, row: &[u8]) {
        match self.back_to.take() {
            Some(hint) => self.merge.seek_before(ReverseStart::EndOf(&hint)),
            None => self.merge.leave_row_backward(row),
        }
    }

    /// Whether the merge, which must have settled, is at a cell of `row` that was not judged yet.
    pub(crate) fn is_in(&self, row: &[u8]) -> bool {
        !self.row_done && self.merge.cell().is_some_and(|cell| cell.row() == row)
    }

    /// Judges one cell of `row`, and writes it if it passes.
    ///
    /// `skip_rest_of_row`: whether to skip the rest of a finished row. A forward scan of several
    /// rows needs this, because it reads the next row from this position. A store that is read on
    /// demand does not, because it seeks each row.
    ///
    /// # Errors
    /// [`Stop::Miss`], before any other effect.
    #[inline]
    pub(crate) fn step(
        &mut self,
        row: &[u8],
        skip_rest_of_row: bool,
        blocks: &dyn BlockSource,
        mut filter: Option<&mut ScanFilter>,
        output: &mut Output<'_>,
    ) -> Result<StepOutcome, Stop> {
        if self.row_done {
            return Ok(self.end_row(filter));
        }
        self.merge.settle(blocks)?;
        let Some(cell) = self.merge.cell().filter(|cell| cell.row() == row) else {
            self.row_done = true;
            return Ok(self.end_row(filter));
        };
        self.visited = true;
        if filter.as_ref().is_some_and(|filter| filter.is_done()) {
            return Ok(self.end_row(filter));
        }
        let large_value = if cell.value.len() >= LARGE_VALUE_LEN { self.merge.large_value() } else { None };
        let judgement = match large_value {
            None => self.judge.judge(&cell, filter.as_deref_mut(), output),
            Some(value) => {
                let mut sink = LargeValueSink::new(output.sink, value);
                let (destination, continues_row) = (output.destination.reborrow(), output.continues_row);
                let mut output =
                    Output { sink: &mut sink, destination, continues_row, begun: &mut *output.begun };
                self.judge.judge(&cell, filter.as_deref_mut(), &mut output)
            }
        };
        match (judgement, filter) {
            (Judgement::Decided(step, verdict), _) => {
                if matches!(step, CellOutcome::Written(_)) {
                    self.origin.add(|| self.merge.is_in_memstore());
                }
                self.advance(verdict, skip_rest_of_row);
                Ok(StepOutcome::Cell(step))
            }
            (Judgement::Hint, Some(filter)) => {
                let step = CellOutcome::Skipped(cell.key.len());
                match self.judge.hint_target(filter, &cell) {
                    HintTarget::Ignored => self.merge.next(),
                    HintTarget::InRow(hint) => self.merge.seek_hint(hint),
                    HintTarget::ToRow(hint) => {
                        self.row_done = true;
                        if skip_rest_of_row {
                            self.merge.seek_hint(hint);
                        }
                    }
                    HintTarget::BackTo(row) => {
                        self.row_done = true;
                        self.back_to = Some(row.to_vec());
                    }
                }
                Ok(StepOutcome::Cell(step))
            }
            (Judgement::Hint, None) => unreachable!("hints come from filters"),
            (Judgement::Failed(error), _) => Ok(StepOutcome::Failed(error)),
        }
    }

    /// Ends the row in this store. As in HBase, a store that had cells in the row is closed for the
    /// rest of the scan if the filter lets nothing more pass, although the filter is reset at the
    /// end of the row. A store without cells in the row stays open.
    fn end_row(&mut self, filter: Option<&mut ScanFilter>) -> StepOutcome {
        if self.visited && filter.is_some_and(|filter| filter.is_done()) {
            self.row_done = true;
            self.reads.count_filters(self.merge.take_filter_lookups());
            self.merge.close();
        }
        StepOutcome::RowDone
    }

    #[inline]
    fn advance(&mut self, verdict: Match, skip_rest_of_row: bool) {
        match verdict {
            Match::Include | Match::Skip => self.merge.next(),
            Match::IncludeAndNextColumn | Match::NextColumn => self.merge.pass_column(self.judge.hint()),
            Match::IncludeAndNextRow | Match::NextRow => {
                self.row_done = true;
                if skip_rest_of_row {
                    self.merge.pass_row();
                }
            }
        }
    }

    /// Settles the merge, unless the rest of the row is not wanted.
    pub(crate) fn settle_in_row(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        if self.row_done { Ok(()) } else { self.merge.settle(blocks) }
    }
}
