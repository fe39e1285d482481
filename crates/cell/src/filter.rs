//! Filters as data: what a scan should leave out, without the state of a running scan.
//!
//! A filter is a tree: lists, [`Filter::Skip`] and [`Filter::WhileMatch`] contain other filters.
//! Names and fields are those of HBase's classes (`org.apache.hadoop.hbase.filter`). Evaluation is
//! in `engine::filter`, the wire format in `wire::filter`.

pub mod comparator;
pub mod language;
mod size;

use bytes::Bytes;

pub use comparator::{BitwiseOp, Comparator, CompareOp, Pattern};
pub use size::{ELEMENT_BYTES, FilterSize};

/// Maximum nesting depth of filters. The decoder refuses deeper trees.
pub const DEPTH_MAX: usize = 64;

/// A filter of rows and cells.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Nothing passes (HBase's `FilterAllFilter`).
    All,
    /// Several filters.
    List {
        /// How their verdicts are combined.
        operator: ListOperator,
        /// The filters, evaluated in this order.
        filters: Vec<Filter>,
    },
    /// At most `page_size` rows of each region.
    Page {
        /// Maximum number of rows.
        page_size: i64,
    },
    /// Rows by their keys.
    Row(Compare),
    /// Families by their names.
    Family(Compare),
    /// Columns by their qualifiers.
    Qualifier(Compare),
    /// Cells by their values.
    Value(Compare),
    /// Cells with a timestamp that the reference column also has.
    DependentColumn {
        /// The reference column.
        column: Column,
        /// Condition on the reference column's cells, if any.
        compare: Option<Compare>,
        /// Whether the reference column itself is dropped.
        drop: bool,
    },
    /// Rows, by the value of one column.
    SingleColumnValue(SingleColumnValue),
    /// Like `SingleColumnValue`, without returning the column itself.
    SingleColumnValueExclude(SingleColumnValue),
    /// Only the cells of one column, by their values.
    ColumnValue {
        /// The column.
        column: Column,
        /// Condition on the column's values.
        compare: Compare,
    },
    /// Rows that begin with a prefix; `None` passes no row.
    Prefix(Option<Bytes>),
    /// Columns whose qualifiers begin with a prefix.
    ColumnPrefix(Bytes),
    /// Columns whose qualifiers begin with one of these prefixes; sorted, without duplicates.
    MultipleColumnPrefix(Vec<Bytes>),
    /// Columns between two qualifiers.
    ColumnRange {
        /// The lower bound, if any.
        min: Option<Bytes>,
        /// Whether the range includes `min`.
        min_inclusive: bool,
        /// The upper bound, if any.
        max: Option<Bytes>,
        /// Whether the range includes `max`.
        max_inclusive: bool,
    },
    /// At most `limit` columns; then the scan ends.
    ColumnCountGet {
        /// Maximum number of columns.
        limit: i32,
    },
    /// At most `limit` columns of each row, starting at `from`.
    ColumnPagination {
        /// Maximum number of columns.
        limit: i32,
        /// Where the page begins.
        from: PageStart,
    },
    /// The first cell of each row.
    FirstKeyOnly,
    /// The cells of each row up to the first cell of one of these columns; sorted.
    FirstKeyValueMatchingQualifiers(Vec<Bytes>),
    /// Cells without their values.
    KeyOnly {
        /// Whether the value is replaced by its length in four bytes, instead of nothing.
        len_as_val: bool,
    },
    /// Rows up to and including this one.
    InclusiveStop(Bytes),
    /// Cells with these timestamps; sorted, without duplicates.
    Timestamps {
        /// The timestamps.
        timestamps: Vec<i64>,
        /// Whether the scan may jump to the next timestamp.
        can_hint: bool,
    },
    /// A random sample of rows.
    RandomRow {
        /// Probability that a row passes, from 0 to 1.
        probability: f32,
    },
    /// Rows in which every cell passes the inner filter.
    Skip(Box<Filter>),
    /// Everything before the first row or cell that fails the inner filter.
    WhileMatch(Box<Filter>),
    /// Rows that match one of these templates.
    FuzzyRow(Vec<FuzzyKey>),
    /// Rows within one of these ranges; sorted, not overlapping, at least one.
    MultiRowRange(Vec<RowRange>),
}

/// How a list combines the verdicts of its filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOperator {
    /// All filters must pass.
    MustPassAll,
    /// At least one filter must pass.
    MustPassOne,
}

/// A comparison of a part of the cell with a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The operator; the cell's part is the left operand.
    pub op: CompareOp,
    /// The right operand.
    pub comparator: Comparator,
}

/// A column, by family and qualifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The family.
    pub family: Bytes,
    /// The qualifier.
    pub qualifier: Bytes,
}

/// A test of one column's value.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleColumnValue {
    /// The column.
    pub column: Column,
    /// Condition on the column's value.
    pub compare: Compare,
    /// Whether rows without the column are dropped.
    pub filter_if_missing: bool,
    /// Whether only the newest version is tested.
    pub latest_version_only: bool,
}

/// Where a page of columns begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// After this many columns.
    Offset(i32),
    /// At this qualifier.
    Column(Bytes),
}

/// A row template: fixed bytes and wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzyKey {
    /// The bytes; 0 at wildcards.
    pub key: Bytes,
    /// For each byte of `key`, whether it is fixed.
    pub fixed: Vec<bool>,
}

/// A range of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The first row; empty for no bound.
    pub start: Bytes,
    /// Whether the range includes `start`.
    pub start_inclusive: bool,
    /// The last row; empty for no bound.
    pub stop: Bytes,
    /// Whether the range includes `stop`.
    pub stop_inclusive: bool,
}

impl RowRange {
    /// Whether `row` is in the range.
    pub fn contains(&self, row: &[u8]) -> bool {
        let above = row > &self.start[..] || (self.start_inclusive && row == self.start);
        let below = self.stop.is_empty() || row < &self.stop[..] || (self.stop_inclusive && row == self.stop);
        above && below
    }
}
