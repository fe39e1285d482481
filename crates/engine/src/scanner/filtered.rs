//! Combines the verdict of a filter with that of the rules.
//!
//! A filter chooses among all versions that a family retains. Of the versions that it accepts, only
//! as many are returned as the read wants. Source: HBase
//! `UserScanQueryMatcher.mergeFilterResponse`.

use cell::{Cell, key};

use crate::filter::{FilterResult, Hint, ReturnCode, ScanFilter};
use crate::scanner::matcher::{Match, Matcher};

/// Counts the versions that the filter accepted.
pub(crate) struct FilteredVersions {
    max_versions: u32,
    reversed: bool,
    // Accepted versions of the current column, and the key prefix of that column.
    count: u32,
    column: Vec<u8>,
}

/// The combined verdict of rules and filter.
pub(crate) enum Verdict {
    /// A verdict that the rules could have given.
    Rules(Match),
    /// The cell is skipped; the filter knows where to go.
    Hint,
}

/// The target of a filter's hint.
pub(crate) enum HintTarget<'a> {
    /// None: only the cell is skipped.
    Ignored,
    /// A later cell of the row.
    InRow(Hint<'a>),
    /// A later row.
    ToRow(Hint<'a>),
    /// In a reversed scan: an earlier row.
    BackTo(&'a [u8]),
}

impl FilteredVersions {
    pub(crate) fn new(max_versions: u32, reversed: bool) -> FilteredVersions {
        FilteredVersions { max_versions, reversed, count: 0, column: Vec::new() }
    }

    /// Begins a row, possibly again.
    #[inline]
    pub(crate) fn begin_row(&mut self) {
        self.count = 0;
        self.column.clear();
    }

    /// Applies the filter to a cell that the rules include.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        matcher: &mut Matcher,
        filter: &mut ScanFilter,
        cell: &Cell<'_>,
        rules: Match,
    ) -> FilterResult<Verdict> {
        let last_of_row = rules == Match::IncludeAndNextRow;
        let verdict = match filter.filter_cell(cell)? {
            ReturnCode::NextRow => Match::NextRow,
            ReturnCode::Skip => rules.skipped(),
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

    /// Counts an accepted version. It is skipped if it exceeds the number of wanted versions.
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
            // The matcher must also leave the column, if it has a list of wanted columns.
            matcher.pass_column(cell);
        }
        Verdict::Rules(verdict)
    }

    /// Where the filter wants to go from the cell. Hints in the wrong direction are ignored.
    pub(crate) fn hint_target<'a>(&self, filter: &'a mut ScanFilter, cell: &Cell<'_>) -> HintTarget<'a> {
        let Some(hint) = filter.next_hint(cell) else {
            return HintTarget::Ignored;
        };
        let order = hint.compare_to_cell(cell, cell);
        match hint {
            Hint::Row(row) if self.reversed && order.is_lt() && row != cell.row() => HintTarget::BackTo(row),
            _ if self.reversed || order.is_lt() => HintTarget::Ignored,
            Hint::Row(_) => HintTarget::ToRow(hint),
            _ => HintTarget::InRow(hint),
        }
    }
}
