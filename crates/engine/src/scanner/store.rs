//! The scan of one store: its merge, its rules, and how many cells of a row it may give.

use bytes::Bytes;
use cell::query::Scan;
use cell::{Cell, CellOrder};
use hfile::{BlockSource, Stop};

use crate::filter::{Misfit, ScanFilter, ValueForm};
use crate::scanner::filtered::{Filtered, Followed, Verdict};
use crate::scanner::matcher::{Match, Matcher, Versions};
use crate::scanner::merge::{Before, Merge};
use crate::scanner::output::Output;
use crate::scanner::rules::FamilyRules;
use crate::scanner::select::select;
use crate::store::StoreView;

/// One family's part of a region scan.
pub(crate) struct StoreScanner {
    pub(crate) merge: Merge,
    matcher: Matcher,
    offset: u32,
    limit: Option<u32>,
    // Cells of the current row that passed the rules.
    passed: u32,
    // Whether the row is done with, whatever the merge stands on.
    row_done: bool,
    // Whether a cell of the row was met.
    visited: bool,
    // With a filter: how it and the rules go together.
    filtered: Option<Filtered>,
    // Reversed: a row before the current one, where the filter wants to go on.
    back_to: Option<Vec<u8>>,
    // Kept for as long as the scanner lives: files in a view are not taken away.
    _view: StoreView,
}

/// What became of one cell.
pub(crate) enum Step {
    /// The row has no more cells here.
    RowDone,
    /// A cell was passed over; its size.
    Passed(usize),
    /// A cell was written to the sink; its size as clients get it.
    Written(usize),
    /// The filter cannot judge a cell.
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
        let range = scan.selection.time_range_of(&rules.family);
        let versions =
            Versions { wanted: scan.selection.max_versions, filtered: scan.selection.filter.is_some() };
        let (matcher, kept) = match scan.raw {
            true => (Matcher::raw(rules, range, versions, now_ms), u32::MAX),
            false => (Matcher::user(rules, qualifiers, range, versions, now_ms), rules.max_versions),
        };
        let sources = select(&view, order, rules, scan, qualifiers, read_point, now_ms);
        StoreScanner {
            merge: Merge::new(order, sources),
            matcher,
            offset: scan.selection.store_offset,
            limit: scan.selection.store_limit,
            passed: 0,
            row_done: false,
            visited: false,
            filtered: versions.filtered.then(|| Filtered::new(versions.returned(kept), scan.reversed)),
            back_to: None,
            _view: view,
        }
    }

    /// A row begins; this store may have cells of it or not.
    pub(crate) fn begin_row(&mut self) {
        self.matcher.begin_row();
        self.passed = 0;
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
        filter: Option<&mut ScanFilter>,
        output: &mut Output<'_>,
    ) -> Result<Step, Stop> {
        if let Some(filter) = filter {
            return self.filtered_step(row, goes_on, blocks, filter, output);
        }
        if self.row_done {
            return Ok(Step::RowDone);
        }
        self.merge.settle(blocks)?;
        let Some(cell) = self.merge.cell().filter(|cell| cell.row() == row) else {
            self.row_done = true;
            return Ok(Step::RowDone);
        };
        let mut verdict = self.matcher.check(&cell);
        let mut step = Step::Passed(cell.key.len());
        if verdict.includes() {
            step = take(&mut self.passed, self.offset, &cell, output);
            if self.is_full() {
                verdict = Match::NextRow;
            }
        }
        self.go_on(verdict, goes_on);
        Ok(step)
    }

    /// The same with a filter.
    fn filtered_step(
        &mut self,
        row: &[u8],
        goes_on: bool,
        blocks: &dyn BlockSource,
        filter: &mut ScanFilter,
        output: &mut Output<'_>,
    ) -> Result<Step, Stop> {
        if self.row_done {
            return Ok(self.end_row_of_filter(filter));
        }
        self.merge.settle(blocks)?;
        let Some(cell) = self.merge.cell().filter(|cell| cell.row() == row) else {
            self.row_done = true;
            return Ok(self.end_row_of_filter(filter));
        };
        self.visited = true;
        if filter.is_done() {
            return Ok(self.end_row_of_filter(filter));
        }
        let rules = self.matcher.check(&cell);
        let mut step = Step::Passed(cell.key.len());
        if !rules.includes() {
            self.go_on(rules, goes_on);
            return Ok(step);
        }
        let filtered = self.filtered.as_mut().expect("a scan with a filter has it");
        let mut verdict = match filtered.judge(&mut self.matcher, filter, &cell, rules) {
            Ok(Verdict::Rules(verdict)) => verdict,
            Ok(Verdict::Hint) => {
                match filtered.follow(filter, &cell) {
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
                return Ok(step);
            }
            Err(misfit) => return Ok(Step::Refused(misfit)),
        };
        if verdict.includes() {
            let form = filter.transform(&cell);
            let given = match &form {
                ValueForm::Whole(_) => cell,
                ValueForm::Empty => Cell { value: &[], tags: &[], ..cell },
                ValueForm::Length(bytes) => Cell { value: bytes, tags: &[], ..cell },
            };
            step = take(&mut self.passed, self.offset, &given, output);
            if self.is_full() {
                verdict = Match::NextRow;
            }
        }
        self.go_on(verdict, goes_on);
        Ok(step)
    }

    /// No more cells of the row are looked at. A store that had cells in it and sees its filter at the end is closed, as in
    /// HBase; one that had none may go on, if the filter forgets its end with the row.
    fn end_row_of_filter(&mut self, filter: &ScanFilter) -> Step {
        if self.visited && filter.is_done() {
            self.row_done = true;
            self.merge.close();
        }
        Step::RowDone
    }

    /// Whether the row has given as many cells as it may. As HBase asks behind a cell that was returned, with a limit of
    /// none one is returned.
    #[inline]
    fn is_full(&self) -> bool {
        self.passed > self.offset
            && self.limit.is_some_and(|limit| self.passed >= limit.saturating_add(self.offset))
    }

    #[inline]
    fn go_on(&mut self, verdict: Match, goes_on: bool) {
        match verdict {
            Match::Include | Match::Skip => self.merge.next(),
            Match::IncludeAndNextColumn | Match::NextColumn => self.merge.pass_column(self.matcher.hint()),
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

/// A cell passes: it is written, unless it lies before the offset.
#[inline]
fn take(passed: &mut u32, offset: u32, cell: &Cell<'_>, output: &mut Output<'_>) -> Step {
    *passed += 1;
    if *passed <= offset {
        return Step::Passed(cell.key.len());
    }
    output.write(cell);
    Step::Written(cell.len_without_tags())
}
