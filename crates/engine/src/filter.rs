//! Filters at work: the state that one scan of one region keeps for a [`cell::filter::Filter`].
//!
//! One file a filter, each an implementation of [`Evaluate`], whose defaults are those of HBase's `FilterBase`; an enum
//! holds them ([`Node`]), so that a cell costs a match and no virtual call. What the scanner works with is
//! [`ScanFilter`]. The calls and their order are HBase's:
//!
//! 1. `filter_row_key` with the first cell's row: true passes over the row;
//! 2. `filter_cell` for each cell that is wanted, with a [`ReturnCode`]; `transform` for those included;
//! 3. `filter_row` once a row with cells is complete: true drops it. Before that `keeps` says which cells of it stay;
//! 4. `reset` behind each row. `filter_all_remaining` is asked before each row and each cell.
//!
//! Nothing here allocates for a cell: hints are relative to the cell they are given for, lists keep buffers.
//!
//! Not here: what filters are on the wire (`wire::filter`), and how codes meet versions and columns (`scanner`).

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

/// What a filter says of a cell, and where the scan goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnCode {
    /// Take it.
    Include,
    /// Take it, then the next column.
    IncludeAndNextCol,
    /// Take it, then the next row.
    IncludeAndSeekNextRow,
    /// Pass over it.
    Skip,
    /// Pass over it and the rest of its column.
    NextCol,
    /// Pass over it and the rest of its row in its family.
    NextRow,
    /// Pass over it and go to the filter's hint.
    SeekNextUsingHint,
}

impl ReturnCode {
    /// Whether the cell is taken.
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

    /// The code that takes a cell or not, and jumps so far.
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

/// Where a scan goes on: the next cell, column or row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Jump {
    Cell,
    Column,
    Row,
}

/// A cell that a comparator cannot compare, or another thing that HBase's class fails with in the middle of a scan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A number was expected.
    #[error("Wrong length: {0}, expected 8")]
    LongLength(usize),
    /// The part to be compared is not within the value.
    #[error("the value of {0} bytes is too short for the comparator")]
    Component(usize),
    /// No decimal number, or one of too many digits to be compared.
    #[error("the value of {0} bytes is no decimal number that can be compared")]
    Decimal(usize),
    /// A comparison that is none.
    #[error("Unknown Compare op NO_OP")]
    NoOp,
    /// A regular expression takes more steps than it may.
    #[error("{0}")]
    Steps(Box<str>),
}

/// The result of a judgement.
pub type Judged<T> = Result<T, Misfit>;

/// What a filter answers to a scan; the defaults are those of HBase's `FilterBase`.
trait Evaluate {
    /// A row is behind.
    fn reset(&mut self) {}
    /// Whether a row is passed over, by its key.
    fn filter_row_key(&mut self, _row: &[u8]) -> Judged<bool> {
        Ok(false)
    }
    /// What becomes of a cell.
    fn filter_cell(&mut self, cell: &Cell<'_>) -> Judged<ReturnCode>;
    /// Whether nothing passes any more.
    fn filter_all_remaining(&self) -> bool {
        false
    }
    /// Whether a row that is complete is dropped.
    fn filter_row(&mut self) -> bool {
        false
    }
    /// Whether rows are dropped when they are complete, so that they must not be cut.
    fn has_filter_row(&self) -> bool {
        false
    }
    /// Whether [`keeps`](Evaluate::keeps) leaves cells out.
    fn edits_rows(&self) -> bool {
        false
    }
    /// Whether a cell of a complete row stays in it.
    fn keeps(&self, _cell: &Cell<'_>) -> bool {
        true
    }
    /// Where to go from a cell for which [`ReturnCode::SeekNextUsingHint`] was said.
    fn next_hint<'a>(&'a mut self, _cell: &Cell<'_>) -> Option<Hint<'a>> {
        None
    }
    /// What the value of an included cell becomes.
    fn transform(&self, value: ValueForm) -> ValueForm {
        value
    }
    /// Whether cells of a family matter to which rows pass.
    fn is_family_essential(&self, _family: &[u8]) -> bool {
        true
    }
    /// Whether it is one of HBase's hinting filters, which lists ask although the verdict is known.
    fn is_hinting(&self) -> bool {
        false
    }
    /// Whether what it says of a row depends on that row alone, and it never hints: so a row may be shown to it again, and
    /// be walked through.
    fn judges_rows_apart(&self) -> bool {
        false
    }
    /// Whether it may ever end the scan before its last row.
    fn may_end(&self) -> bool {
        false
    }
    /// Whether cells of rows that were passed over by key change what it says later.
    fn sees_skipped_rows(&self) -> bool {
        false
    }
    /// Whether it searches for a regular expression by backtracking: one answer may then take many milliseconds.
    fn backtracks(&self) -> bool {
        false
    }
}
