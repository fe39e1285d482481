//! Evaluation of filters: the state that one scan of one region keeps for a
//! [`cell::filter::Filter`].
//!
//! Each filter has a file with its implementation of [`Evaluate`], whose defaults are those of
//! HBase's `FilterBase`. An enum holds them ([`Node`]), so that a cell costs a match and no virtual
//! call. The scanner uses [`ScanFilter`]. The calls and their order are HBase's:
//!
//! 1. `filter_row_key` with the first cell's row: true skips the row;
//! 2. `filter_cell` for each requested cell, which returns a [`ReturnCode`]; `transform` for those
//!    included;
//! 3. `filter_row` once a row with cells is complete: true drops it. Before that, `keeps` selects
//!    the cells that stay in it;
//! 4. `reset` after each row. `filter_all_remaining` is checked before each row and each cell.
//!
//! Nothing here allocates for a cell: hints are relative to their cell, and lists reuse buffers.
//!
//! Not here: the wire format of filters (`wire::filter`), and how codes combine with versions and
//! columns (`scanner`).

mod all;
mod column_count_get;
mod column_pagination;
mod column_prefix;
mod column_range;
mod column_value;
mod comparator;
mod decimal;
mod dependent_column;
mod family;
mod first_key_only;
mod first_key_value_matching_qualifiers;
mod fuzzy_row;
mod hint;
mod inclusive_stop;
mod key_only;
mod list;
mod list_and;
mod list_or;
mod multi_row_range;
mod multiple_column_prefix;
mod node;
mod page;
mod pattern;
mod prefix;
mod qualifier;
mod random_row;
mod row;
mod sampler;
mod scan;
mod single_column_value;
mod single_column_value_exclude;
mod skip;
mod timestamps;
mod value;
mod while_match;

use cell::Cell;

pub use hint::Hint;
pub use key_only::ValueForm;
use node::Node;
pub use scan::ScanFilter;

/// A filter's verdict on a cell, and where the scan continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnCode {
    /// Include it.
    Include,
    /// Include it, then continue with the next column.
    IncludeAndNextCol,
    /// Include it, then continue with the next row.
    IncludeAndSeekNextRow,
    /// Skip it.
    Skip,
    /// Skip it and the rest of its column.
    NextCol,
    /// Skip it and the rest of its row in its family.
    NextRow,
    /// Skip it and seek to the filter's hint.
    SeekNextUsingHint,
}

impl ReturnCode {
    /// Whether the cell is included.
    pub fn includes(self) -> bool {
        matches!(
            self,
            ReturnCode::Include | ReturnCode::IncludeAndNextCol | ReturnCode::IncludeAndSeekNextRow
        )
    }

    /// How far the scan jumps.
    fn jump(self) -> Jump {
        match self {
            ReturnCode::Include | ReturnCode::Skip | ReturnCode::SeekNextUsingHint => Jump::Cell,
            ReturnCode::IncludeAndNextCol | ReturnCode::NextCol => Jump::Column,
            ReturnCode::IncludeAndSeekNextRow | ReturnCode::NextRow => Jump::Row,
        }
    }

    /// The code that includes a cell or not, and jumps this far.
    fn of(included: bool, jump: Jump) -> ReturnCode {
        match (included, jump) {
            (true, Jump::Cell) => ReturnCode::Include,
            (true, Jump::Column) => ReturnCode::IncludeAndNextCol,
            (true, Jump::Row) => ReturnCode::IncludeAndSeekNextRow,
            (false, Jump::Cell) => ReturnCode::Skip,
            (false, Jump::Column) => ReturnCode::NextCol,
            (false, Jump::Row) => ReturnCode::NextRow,
        }
    }
}

/// Where a scan continues: at the next cell, column, or row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Jump {
    Cell,
    Column,
    Row,
}

/// An error in the middle of a scan: a comparator cannot compare a cell, or HBase's class fails for
/// another reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The value is not a number of eight bytes.
    #[error("Wrong length: {0}, expected 8")]
    LongLength(usize),
    /// The part to compare is not within the value.
    #[error("the value of {0} bytes is too short for the comparator")]
    Component(usize),
    /// The value is not a decimal number, or has too many digits to be compared.
    #[error("cannot compare: the {0}-byte value is not a valid decimal")]
    Decimal(usize),
    /// The operator of a comparison is `NO_OP`.
    #[error("Unknown Compare op NO_OP")]
    NoOp,
    /// A regular expression exceeded its step limit.
    #[error("{0}")]
    Steps(Box<str>),
}

/// The result of an evaluation.
pub type FilterResult<T> = Result<T, FilterError>;

/// The methods of a filter that a scan calls. The defaults are those of HBase's `FilterBase`.
trait Evaluate {
    /// Called after each row.
    fn reset(&mut self) {}
    /// Whether to skip a row, by its key.
    fn filter_row_key(&mut self, _row: &[u8]) -> FilterResult<bool> {
        Ok(false)
    }
    /// The verdict on a cell.
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode>;
    /// Whether nothing can pass any more.
    fn filter_all_remaining(&self) -> bool {
        false
    }
    /// Whether to drop a complete row.
    fn filter_row(&mut self) -> bool {
        false
    }
    /// Whether complete rows may be dropped. The scan must then not split rows into batches.
    fn has_filter_row(&self) -> bool {
        false
    }
    /// Whether [`keeps`](Evaluate::keeps) excludes cells.
    fn edits_rows(&self) -> bool {
        false
    }
    /// Whether a cell of a complete row stays in it.
    fn keeps(&self, _cell: &Cell<'_>) -> bool {
        true
    }
    /// Where to seek from a cell for which [`ReturnCode::SeekNextUsingHint`] was returned.
    fn next_hint<'a>(&'a mut self, _cell: &Cell<'_>) -> Option<Hint<'a>> {
        None
    }
    /// Transforms the value of an included cell.
    fn transform(&self, value: ValueForm) -> ValueForm {
        value
    }
    /// Whether cells of a family affect which rows pass.
    fn is_family_essential(&self, _family: &[u8]) -> bool {
        true
    }
    /// Whether it is one of HBase's hinting filters, which lists evaluate even if the verdict is
    /// known.
    fn is_hinting(&self) -> bool {
        false
    }
    /// Whether the verdict on a row depends on that row alone, and the filter never hints. The
    /// scanner may then evaluate a row again, and walk through the rows of a block on its fast
    /// path.
    fn is_row_local(&self) -> bool {
        false
    }
    /// Whether it may end the scan before its last row.
    fn may_end(&self) -> bool {
        false
    }
    /// Whether cells of rows that were skipped by key affect later verdicts.
    fn sees_skipped_rows(&self) -> bool {
        false
    }
    /// Whether it searches for a regular expression by backtracking, so that one evaluation may
    /// take many milliseconds.
    fn backtracks(&self) -> bool {
        false
    }
}
