//! The scan of one store: its merge, who judges the cells, and where it goes from each.

use base::metrics::Counts;
use bytes::Bytes;
use cell::CellOrder;
use cell::query::Scan;
use hfile::{BlockSource, LARGE_VALUE_LEN, Stop};

use crate::filter::{Misfit, ScanFilter};
use crate::instruments::{Origin, StoreCounts, StoreReads};
use crate::scanner::filtered::Followed;
use crate::scanner::judge::{Judge, Judgement, Step};
use crate::scanner::matcher::Match;
use crate::scanner::merge::{Before, Merge, Place};
use crate::scanner::output::Output;
use crate::scanner::rules::FamilyRules;
use crate::scanner::select::select;
use crate::scanner::sink::Keeping;
use crate::store::StoreView;

/// One family's part of a region scan.
pub(crate) struct StoreScanner {
    family: Bytes,
    pub(crate) merge: Merge,
    pub(crate) judge: Judge,
    // Whether the row is done with, whatever the merge stands on.
    row_done: bool,
    // Whether a cell of the row was met.
    visited: bool,
    // Reversed: a row before the current one, where the filter wants to go on.
    back_to: Option<Vec<u8>>,
    // Kept for as long as it is read: files in a view are not taken away. None at rest.
    view: Option<StoreView>,
    // Where it goes on after a rest; none if nobody has sent it anywhere.
    place: Option<Place>,
    // Which of the region's stores it is.
    at: usize,
    // Where the cells of the current row are that passed.
    origin: Origin,
    // What the store is to be told.
    reads: StoreReads,
}

/// What became of the next cell of a row.
pub(crate) enum Stepped {
    /// It was judged.
    Cell(Step),
    /// The row has no more cells here.
    RowDone,
    /// The filter cannot judge it.
    Refused(Misfit),
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
            place: None,
            at: 0,
            origin: Origin::default(),
            reads: StoreReads::default(),
        }
    }

    /// It is the region's store of this index.
    pub(crate) fn at(self, at: usize) -> StoreScanner {
        StoreScanner { at, ..self }
    }

    /// The family that it reads.
    pub(crate) fn family(&self) -> &Bytes {
        &self.family
    }

    /// What it reads; none at rest.
    pub(crate) fn view(&self) -> Option<&StoreView> {
        self.view.as_ref()
    }

    /// Gives up its sources and its view, to go on at `place`.
    pub(crate) fn rest(&mut self, order: CellOrder, place: Option<Place>) -> (Merge, Option<StoreView>) {
        self.place = place;
        (std::mem::replace(&mut self.merge, Merge::new(order, Vec::new())), self.view.take())
    }

    /// Goes on where it was, in another view of the same cells.
    pub(crate) fn wake(&mut self, view: &StoreView, merge: Merge) {
        self.merge = merge;
        self.view = Some(view.clone());
        if let Some(place) = self.place.take() {
            self.merge.go_to(place);
        }
    }

    /// Rows were walked through that had cells in a file.
    pub(crate) fn note_walked(&mut self, has_cells: bool) {
        if has_cells {
            self.reads.note_row(Origin::Files);
        }
    }

    /// The row ends here, or its result does.
    #[inline]
    pub(crate) fn note_row(&mut self) {
        self.reads.note_row(std::mem::take(&mut self.origin));
    }

    /// Tells the stores of the region what was read; `counts` are theirs.
    pub(crate) fn tell_reads(&mut self, counts: &[Counts<StoreCounts>]) {
        self.reads.note_filters(self.merge.take_asked());
        self.reads.tell(&counts[self.at]);
    }

    /// A row begins; this store may have cells of it or not.
    pub(crate) fn begin_row(&mut self) {
        self.judge.begin_row();
        self.row_done = false;
        self.visited = false;
    }

    /// Passes over `row` without a look at its cells.
    pub(crate) fn skip_row(&mut self, row: &[u8]) {
        if self.merge.cell().is_some_and(|cell| cell.row() == row) {
            self.merge.pass_row();
        }
    }

    /// Goes before `row` in a reversed scan, as far as the filter wants.
    pub(crate) fn leave_row_backward(&mut self, row: &[u8]) {
        match self.back_to.take() {
            Some(hint) => self.merge.seek_before(Before::EndOf(&hint)),
            None => self.merge.leave_row_backward(row),
        }
    }

    /// Whether the merge, which has settled, stands in `row` with cells that were not judged yet.
    pub(crate) fn is_in(&self, row: &[u8]) -> bool {
        !self.row_done && self.merge.cell().is_some_and(|cell| cell.row() == row)
    }

    /// Judges one cell of `row`, and writes it if it passes. `goes_on` says that the rows behind come next, so that the rest of
    /// the row is left for them.
    ///
    /// # Errors
    /// [`Stop::Miss`] before anything else happened.
    #[inline]
    pub(crate) fn step(
        &mut self,
        row: &[u8],
        goes_on: bool,
        blocks: &dyn BlockSource,
        mut filter: Option<&mut ScanFilter>,
        output: &mut Output<'_>,
    ) -> Result<Stepped, Stop> {
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
                let mut sink = Keeping::new(output.sink, value);
                let (way, goes_on) = (output.way.again(), output.goes_on);
                let mut output = Output { sink: &mut sink, way, goes_on, begun: &mut *output.begun };
                self.judge.judge(&cell, filter.as_deref_mut(), &mut output)
            }
        };
        match (judgement, filter) {
            (Judgement::Step(step, verdict), _) => {
                if matches!(step, Step::Written(_)) {
                    self.origin.add(|| self.merge.is_in_memstore());
                }
                self.go_on(verdict, goes_on);
                Ok(Stepped::Cell(step))
            }
            (Judgement::Hint, Some(filter)) => {
                let step = Step::Passed(cell.key.len());
                match self.judge.follow(filter, &cell) {
                    Followed::No => self.merge.next(),
                    Followed::InRow(hint) => self.merge.follow(hint),
                    Followed::ToRow(hint) => {
                        self.row_done = true;
                        if goes_on {
                            self.merge.follow(hint);
                        }
                    }
                    Followed::BackTo(row) => {
                        self.row_done = true;
                        self.back_to = Some(row.to_vec());
                    }
                }
                Ok(Stepped::Cell(step))
            }
            (Judgement::Hint, None) => unreachable!("hints come from filters"),
            (Judgement::Refused(misfit), _) => Ok(Stepped::Refused(misfit)),
        }
    }

    /// No more cells of the row are looked at. A store that had cells in it and sees its filter at the end is closed, as in
    /// HBase; one that had none may go on, if the filter forgets its end with the row.
    fn end_row(&mut self, filter: Option<&mut ScanFilter>) -> Stepped {
        if self.visited && filter.is_some_and(|filter| filter.is_done()) {
            self.row_done = true;
            self.reads.note_filters(self.merge.take_asked());
            self.merge.close();
        }
        Stepped::RowDone
    }

    #[inline]
    fn go_on(&mut self, verdict: Match, goes_on: bool) {
        match verdict {
            Match::Include | Match::Skip => self.merge.next(),
            Match::IncludeAndNextColumn | Match::NextColumn => self.merge.pass_column(self.judge.hint()),
            Match::IncludeAndNextRow | Match::NextRow => {
                self.row_done = true;
                if goes_on {
                    self.merge.pass_row();
                }
            }
        }
    }

    /// Settles the merge, unless the row is done with anyway.
    pub(crate) fn settle_in_row(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        if self.row_done { Ok(()) } else { self.merge.settle(blocks) }
    }
}
