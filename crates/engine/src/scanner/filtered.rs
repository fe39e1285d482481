//! What becomes of a cell that the rules let pass and a filter judges too.
//!
//! A filter chooses among all versions that a family keeps; of those it lets pass only as many are returned as the read
//! wants. Source: HBase `UserScanQueryMatcher.mergeFilterResponse`.

use cell::{Cell, key};

use crate::filter::{Hint, Judged, ReturnCode, ScanFilter};
use crate::scanner::matcher::{Match, Matcher};

/// The versions that passed the filter, and where the scan goes.
pub(crate) struct Filtered {
    max_versions: u32,
    reversed: bool,
    // Versions of the current column that passed, and what its keys begin with.
    count: u32,
    column: Vec<u8>,
}

/// What rules and filter say together.
pub(crate) enum Verdict {
    /// What the rules might have said.
    Rules(Match),
    /// The cell is passed over; the filter knows where to go.
    Hint,
}

/// Where a hint leads.
pub(crate) enum Followed<'a> {
    /// Nowhere: one cell is passed over.
    No,
    /// On in the row.
    InRow(Hint<'a>),
    /// To a later row.
    ToRow(Hint<'a>),
    /// In a reversed scan: to an earlier row.
    BackTo(&'a [u8]),
}

impl Filtered {
    pub(crate) fn new(max_versions: u32, reversed: bool) -> Filtered {
        Filtered { max_versions, reversed, count: 0, column: Vec::new() }
    }

    /// A row begins, perhaps once more.
    #[inline]
    pub(crate) fn begin_row(&mut self) {
        self.count = 0;
        self.column.clear();
    }

    /// Asks the filter about a cell that the rules include.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        matcher: &mut Matcher,
        filter: &mut ScanFilter,
        cell: &Cell<'_>,
        rules: Match,
    ) -> Judged<Verdict> {
        let last_of_row = rules == Match::IncludeAndNextRow;
        let verdict = match filter.filter_cell(cell)? {
            ReturnCode::NextRow => Match::NextRow,
            ReturnCode::Skip => match rules {
                Match::IncludeAndNextColumn => Match::NextColumn,
                Match::IncludeAndNextRow => Match::NextRow,
                _ => Match::Skip,
            },
            ReturnCode::NextCol if last_of_row => Match::NextRow,
            ReturnCode::NextCol => matcher.pass_column(cell),
            ReturnCode::SeekNextUsingHint => return Ok(Verdict::Hint),
            ReturnCode::Include => return Ok(self.count(matcher, cell, rules)),
            ReturnCode::IncludeAndNextCol if rules == Match::Include => {
                return Ok(self.count(matcher, cell, Match::IncludeAndNextColumn));
            }
            ReturnCode::IncludeAndNextCol => return Ok(self.count(matcher, cell, rules)),
            ReturnCode::IncludeAndSeekNextRow => {
                return Ok(self.count(matcher, cell, Match::IncludeAndNextRow));
            }
        };
        Ok(Verdict::Rules(verdict))
    }

    /// A version passed: is it one too many?
    #[inline]
    fn count(&mut self, matcher: &mut Matcher, cell: &Cell<'_>, verdict: Match) -> Verdict {
        let column = key::column_part(cell.key);
        if self.column != column {
            self.column.clear();
            self.column.extend_from_slice(column);
            self.count = 0;
        }
        self.count += 1;
        let verdict = match verdict {
            verdict if self.count <= self.max_versions => verdict,
            Match::IncludeAndNextRow => Match::NextRow,
            _ => Match::NextColumn,
        };
        if matches!(verdict, Match::IncludeAndNextColumn | Match::NextColumn) {
            // The columns that are wanted one by one must know it too.
            matcher.pass_column(cell);
        }
        Verdict::Rules(verdict)
    }

    /// Asks the filter where to go from the cell. Only what lies ahead is followed.
    pub(crate) fn follow<'a>(&self, filter: &'a mut ScanFilter, cell: &Cell<'_>) -> Followed<'a> {
        let Some(hint) = filter.next_hint(cell) else {
            return Followed::No;
        };
        let order = hint.compare_to_cell(cell, cell);
        match hint {
            Hint::Row(row) if self.reversed && order.is_lt() && row != cell.row() => Followed::BackTo(row),
            _ if self.reversed || order.is_lt() => Followed::No,
            Hint::Row(_) => Followed::ToRow(hint),
            _ => Followed::InRow(hint),
        }
    }
}
