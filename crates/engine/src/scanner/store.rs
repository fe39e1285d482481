//! The scan of one store: its merge, its rules, and how many cells of a row it may give.

use bytes::Bytes;
use cell::CellOrder;
use cell::query::Scan;
use hfile::{BlockSource, Stop};

use crate::scanner::matcher::{Match, Matcher};
use crate::scanner::merge::Merge;
use crate::scanner::rules::FamilyRules;
use crate::scanner::select::select;
use crate::scanner::sink::ResultSink;
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
        let max_versions = scan.selection.max_versions;
        let matcher = match scan.raw {
            true => Matcher::raw(rules, range, max_versions, now_ms),
            false => Matcher::user(rules, qualifiers, range, max_versions, now_ms),
        };
        let sources = select(&view, order, rules, scan, qualifiers, read_point, now_ms);
        StoreScanner {
            merge: Merge::new(order, sources),
            matcher,
            offset: scan.selection.store_offset,
            limit: scan.selection.store_limit,
            passed: 0,
            row_done: false,
            _view: view,
        }
    }

    /// A row begins; this store may have cells of it or not.
    pub(crate) fn begin_row(&mut self) {
        self.matcher.begin_row();
        self.passed = 0;
        self.row_done = false;
    }

    /// Whether the merge, which has settled, stands in `row` with cells that were not judged yet.
    pub(crate) fn is_in(&self, row: &[u8]) -> bool {
        !self.row_done && self.merge.cell().is_some_and(|cell| cell.row() == row)
    }

    /// Judges one cell of `row`, and writes it if it passes; the result is begun first, if it was not. `goes_on` says that
    /// the rows behind come next, so that the rest of the row is left for them.
    ///
    /// # Errors
    /// [`Stop::Miss`] before anything else happened.
    #[inline]
    pub(crate) fn step(
        &mut self,
        row: &[u8],
        goes_on: bool,
        blocks: &dyn BlockSource,
        sink: &mut dyn ResultSink,
        begun: &mut bool,
    ) -> Result<Step, Stop> {
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
        if matches!(verdict, Match::Include | Match::IncludeAndNextColumn | Match::IncludeAndNextRow) {
            self.passed += 1;
            if self.passed > self.offset {
                if !*begun {
                    sink.begin_result();
                    *begun = true;
                }
                sink.cell(&cell);
                step = Step::Written(cell.len_without_tags());
            }
            // As HBase, behind the cell: with a limit of none and no offset one is returned.
            if self.limit.is_some_and(|limit| self.passed >= limit.saturating_add(self.offset)) {
                verdict = Match::NextRow;
            }
        }
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
        Ok(step)
    }

    /// Settles the merge, unless the row is done with anyway.
    pub(crate) fn settle_in_row(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        if self.row_done { Ok(()) } else { self.merge.settle(blocks) }
    }
}
