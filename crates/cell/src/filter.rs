//! Filters as data: what a client asks a scan to leave out, without the state that a scan keeps for it.
//!
//! A filter is a tree: lists, [`Filter::Skip`] and [`Filter::WhileMatch`] hold others. Names and fields are those of HBase's
//! classes (`org.apache.hadoop.hbase.filter`); what each does to cells is in `engine::filter`, how it travels in
//! `wire::filter`.

pub mod comparator;
pub mod language;
mod size;

use bytes::Bytes;

pub use comparator::{BitwiseOp, Comparator, CompareOp, Pattern};
pub use size::{ELEMENT_BYTES, FilterSize};

/// Filters within filters at most: deeper trees are refused where they are decoded.
pub const DEPTH_MAX: usize = 64;

/// A filter of rows and cells.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Nothing passes (HBase's `FilterAllFilter`).
    All,
    /// Several filters together.
    List {
        /// How their verdicts are put together.
        operator: ListOperator,
        /// The filters, asked in this order.
        filters: Vec<Filter>,
    },
    /// So many rows of each region.
    Page {
        /// Rows at most.
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
    /// Cells with a timestamp that a cell of the reference column has too.
    DependentColumn {
        /// The reference column.
        column: Column,
        /// What the reference column's cells must fulfil, if anything.
        compare: Option<Compare>,
        /// Whether the reference column itself is left out.
        drop: bool,
    },
    /// Rows by the value of one column.
    SingleColumnValue(SingleColumnValue),
    /// The same, without the column itself.
    SingleColumnValueExclude(SingleColumnValue),
    /// Only one column's cells, by their values.
    ColumnValue {
        /// The column.
        column: Column,
        /// What its values must fulfil.
        compare: Compare,
    },
    /// Rows that begin with a prefix; `None` passes no row.
    Prefix(Option<Bytes>),
    /// Columns whose qualifiers begin with a prefix.
    ColumnPrefix(Bytes),
    /// Columns whose qualifiers begin with one of these; sorted, without doubles.
    MultipleColumnPrefix(Vec<Bytes>),
    /// Columns between two qualifiers.
    ColumnRange {
        /// The lower bound, if any.
        min: Option<Bytes>,
        /// Whether it belongs to the range.
        min_inclusive: bool,
        /// The upper bound, if any.
        max: Option<Bytes>,
        /// Whether it belongs to the range.
        max_inclusive: bool,
    },
    /// So many columns, then the end of the scan.
    ColumnCountGet {
        /// Columns at most.
        limit: i32,
    },
    /// So many columns of each row, from an offset.
    ColumnPagination {
        /// Columns at most.
        limit: i32,
        /// Where they begin.
        from: PageStart,
    },
    /// The first cell of each row.
    FirstKeyOnly,
    /// The cells of each row up to the first of one of these columns; sorted.
    FirstKeyValueMatchingQualifiers(Vec<Bytes>),
    /// Cells without their values.
    KeyOnly {
        /// Whether the value becomes its length, four bytes, instead of nothing.
        len_as_val: bool,
    },
    /// Rows up to and with this one.
    InclusiveStop(Bytes),
    /// Cells of these timestamps; sorted, without doubles.
    Timestamps {
        /// The timestamps.
        timestamps: Vec<i64>,
        /// Whether the scan may jump to the next timestamp.
        can_hint: bool,
    },
    /// Rows at random.
    RandomRow {
        /// The share of rows that pass.
        chance: f32,
    },
    /// Rows of which every cell passes the inner filter.
    Skip(Box<Filter>),
    /// Everything up to the first thing that does not pass the inner filter.
    WhileMatch(Box<Filter>),
    /// Rows that fit one of these templates.
    FuzzyRow(Vec<FuzzyKey>),
    /// Rows within one of these ranges; sorted, without overlaps, at least one.
    MultiRowRange(Vec<RowRange>),
}

/// How the verdicts of a list's filters are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOperator {
    /// All must let pass.
    MustPassAll,
    /// One must let pass.
    MustPassOne,
}

/// A comparison with a value of the cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// How they must compare, the cell's value on the left.
    pub op: CompareOp,
    /// The value on the right.
    pub comparator: Comparator,
}

/// A column by its names.
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
    /// What its value must fulfil.
    pub compare: Compare,
    /// Whether rows without the column are left out.
    pub filter_if_missing: bool,
    /// Whether only the newest version is looked at.
    pub latest_version_only: bool,
}

/// Where a page of columns begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// Behind so many columns.
    Offset(i32),
    /// At this qualifier.
    Column(Bytes),
}

/// A template of rows: fixed bytes and places where any byte fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzyKey {
    /// The bytes; those at wildcards are 0.
    pub key: Bytes,
    /// Per byte of `key`, whether it is fixed.
    pub fixed: Vec<bool>,
}

/// A range of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The first row; empty for no bound.
    pub start: Bytes,
    /// Whether it belongs to the range.
    pub start_inclusive: bool,
    /// The last row; empty for no bound.
    pub stop: Bytes,
    /// Whether it belongs to the range.
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
