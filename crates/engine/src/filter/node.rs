//! All filters as one type, dispatched by a match.

use cell::Cell;
use cell::filter::{Filter, ListOperator, SingleColumnValue as SingleColumnValueData};

use super::comparator::Compare;
use super::list::Children;
use super::{Evaluate, FilterResult, Hint, ReturnCode, ValueForm};
use super::{
    all, column_count_get, column_pagination, column_prefix, column_range, column_value, dependent_column,
    family, first_key_only, first_key_value_matching_qualifiers, fuzzy_row, inclusive_stop, key_only,
    list_and, list_or, multi_row_range, multiple_column_prefix, page, prefix, qualifier, random_row, row,
    single_column_value, single_column_value_exclude, skip, timestamps, value, while_match,
};
use crate::error::Result;

/// A filter with the state of its scan.
pub(super) enum Node {
    All(all::All),
    ListAnd(list_and::ListAnd),
    ListOr(list_or::ListOr),
    Page(page::Page),
    Row(row::Row),
    Family(family::Family),
    Qualifier(qualifier::Qualifier),
    Value(value::Value),
    DependentColumn(dependent_column::DependentColumn),
    SingleColumnValue(single_column_value::SingleColumnValue),
    SingleColumnValueExclude(single_column_value_exclude::SingleColumnValueExclude),
    ColumnValue(column_value::ColumnValue),
    Prefix(prefix::Prefix),
    ColumnPrefix(column_prefix::ColumnPrefix),
    MultipleColumnPrefix(multiple_column_prefix::MultipleColumnPrefix),
    ColumnRange(column_range::ColumnRange),
    ColumnCountGet(column_count_get::ColumnCountGet),
    ColumnPagination(column_pagination::ColumnPagination),
    FirstKeyOnly(first_key_only::FirstKeyOnly),
    FirstKeyValueMatchingQualifiers(first_key_value_matching_qualifiers::FirstKeyValueMatchingQualifiers),
    KeyOnly(key_only::KeyOnly),
    InclusiveStop(inclusive_stop::InclusiveStop),
    Timestamps(timestamps::Timestamps),
    RandomRow(random_row::RandomRow),
    Skip(skip::Skip),
    WhileMatch(while_match::WhileMatch),
    FuzzyRow(fuzzy_row::FuzzyRow),
    MultiRowRange(multi_row_range::MultiRowRange),
}

/// Calls a method of the filter in a node.
macro_rules! each {
    ($node:expr, $filter:ident => $call:expr) => {
        match $node {
            Node::All($filter) => $call,
            Node::ListAnd($filter) => $call,
            Node::ListOr($filter) => $call,
            Node::Page($filter) => $call,
            Node::Row($filter) => $call,
            Node::Family($filter) => $call,
            Node::Qualifier($filter) => $call,
            Node::Value($filter) => $call,
            Node::DependentColumn($filter) => $call,
            Node::SingleColumnValue($filter) => $call,
            Node::SingleColumnValueExclude($filter) => $call,
            Node::ColumnValue($filter) => $call,
            Node::Prefix($filter) => $call,
            Node::ColumnPrefix($filter) => $call,
            Node::MultipleColumnPrefix($filter) => $call,
            Node::ColumnRange($filter) => $call,
            Node::ColumnCountGet($filter) => $call,
            Node::ColumnPagination($filter) => $call,
            Node::FirstKeyOnly($filter) => $call,
            Node::FirstKeyValueMatchingQualifiers($filter) => $call,
            Node::KeyOnly($filter) => $call,
            Node::InclusiveStop($filter) => $call,
            Node::Timestamps($filter) => $call,
            Node::RandomRow($filter) => $call,
            Node::Skip($filter) => $call,
            Node::WhileMatch($filter) => $call,
            Node::FuzzyRow($filter) => $call,
            Node::MultiRowRange($filter) => $call,
        }
    };
}

impl Node {
    /// The state of a filter before its first row. `seed` is for filters that choose at random.
    ///
    /// As in HBase, only lists pass on to their filters that the scan is reversed.
    pub(super) fn new(filter: &Filter, reversed: bool, seed: u64) -> Result<Node> {
        Ok(match filter {
            Filter::All => Node::All(all::All),
            Filter::List { operator, filters } => list(*operator, filters, reversed, seed)?,
            Filter::Skip(inner) => Node::Skip(skip::Skip::new(Node::new(inner, false, seed)?)),
            Filter::WhileMatch(inner) => {
                Node::WhileMatch(while_match::WhileMatch::new(Node::new(inner, false, seed)?))
            }
            Filter::Page { page_size } => Node::Page(page::Page { page_size: *page_size, rows_accepted: 0 }),
            Filter::Row(compare) => Node::Row(row::Row::new(Compare::new(compare)?)),
            Filter::Prefix(prefix) => Node::Prefix(prefix::Prefix::new(prefix.clone(), reversed)),
            Filter::InclusiveStop(stop) => {
                Node::InclusiveStop(inclusive_stop::InclusiveStop::new(stop.clone(), reversed))
            }
            Filter::RandomRow { probability } => {
                Node::RandomRow(random_row::RandomRow::new(*probability, seed))
            }
            Filter::FuzzyRow(keys) => Node::FuzzyRow(fuzzy_row::FuzzyRow::new(keys.clone(), reversed)),
            Filter::MultiRowRange(ranges) => {
                Node::MultiRowRange(multi_row_range::MultiRowRange::new(ranges.clone(), reversed))
            }
            by_column_or_value => return Node::by_column_or_value(by_column_or_value),
        })
    }

    fn by_column_or_value(filter: &Filter) -> Result<Node> {
        Ok(match filter {
            Filter::Family(compare) => Node::Family(family::Family(Compare::new(compare)?)),
            Filter::Qualifier(compare) => Node::Qualifier(qualifier::Qualifier(Compare::new(compare)?)),
            Filter::Value(compare) => Node::Value(value::Value(Compare::new(compare)?)),
            Filter::DependentColumn { column, compare, drop } => {
                let compare = compare.as_ref().map(Compare::new).transpose()?;
                let filter = dependent_column::DependentColumn::new(column.clone(), compare, *drop);
                Node::DependentColumn(filter)
            }
            Filter::SingleColumnValue(data) => Node::SingleColumnValue(single_column_value(data)?),
            Filter::SingleColumnValueExclude(data) => Node::SingleColumnValueExclude(
                single_column_value_exclude::SingleColumnValueExclude(single_column_value(data)?),
            ),
            Filter::ColumnValue { column, compare } => {
                let compare = Compare::new(compare)?;
                Node::ColumnValue(column_value::ColumnValue::new(column.clone(), compare))
            }
            by_column => return Ok(Node::by_column(by_column)),
        })
    }

    fn by_column(filter: &Filter) -> Node {
        match filter {
            Filter::ColumnPrefix(prefix) => Node::ColumnPrefix(column_prefix::ColumnPrefix(prefix.clone())),
            Filter::MultipleColumnPrefix(prefixes) => Node::MultipleColumnPrefix(
                multiple_column_prefix::MultipleColumnPrefix::new(prefixes.clone()),
            ),
            Filter::ColumnRange { min, min_inclusive, max, max_inclusive } => {
                Node::ColumnRange(column_range::ColumnRange {
                    min: min.clone(),
                    min_inclusive: *min_inclusive,
                    max: max.clone(),
                    max_inclusive: *max_inclusive,
                })
            }
            Filter::ColumnCountGet { limit } => {
                Node::ColumnCountGet(column_count_get::ColumnCountGet { limit: *limit, count: 0 })
            }
            Filter::ColumnPagination { limit, from } => {
                Node::ColumnPagination(column_pagination::ColumnPagination::new(*limit, from.clone()))
            }
            Filter::FirstKeyOnly => Node::FirstKeyOnly(first_key_only::FirstKeyOnly { found: false }),
            Filter::FirstKeyValueMatchingQualifiers(qualifiers) => Node::FirstKeyValueMatchingQualifiers(
                first_key_value_matching_qualifiers::FirstKeyValueMatchingQualifiers::new(qualifiers.clone()),
            ),
            Filter::KeyOnly { len_as_val } => Node::KeyOnly(key_only::KeyOnly { len_as_val: *len_as_val }),
            Filter::Timestamps { timestamps, can_hint } => {
                Node::Timestamps(timestamps::Timestamps::new(timestamps.clone(), *can_hint))
            }
            other => unreachable!("{other:?} is not a filter by column"),
        }
    }
}

fn list(operator: ListOperator, filters: &[Filter], reversed: bool, seed: u64) -> Result<Node> {
    // Each filter that chooses at random gets its own seed.
    let seeds = (0u64..).map(|at| seed.rotate_left(7) ^ at.wrapping_mul(0xd6e8_feb8_6659_fd93));
    let nodes = filters.iter().zip(seeds).map(|(filter, seed)| Node::new(filter, reversed, seed));
    let children = Children::new(nodes.collect::<Result<_>>()?);
    Ok(match operator {
        ListOperator::MustPassAll => Node::ListAnd(list_and::ListAnd { children, reversed }),
        ListOperator::MustPassOne => Node::ListOr(list_or::ListOr { children, reversed }),
    })
}

fn single_column_value(data: &SingleColumnValueData) -> Result<single_column_value::SingleColumnValue> {
    Ok(single_column_value::SingleColumnValue {
        column: data.column.clone(),
        compare: Compare::new(&data.compare)?,
        filter_if_missing: data.filter_if_missing,
        latest_version_only: data.latest_version_only,
        found: false,
        matched: false,
    })
}

impl Evaluate for Node {
    fn reset(&mut self) {
        each!(self, filter => filter.reset())
    }
    fn filter_row_key(&mut self, row: &[u8]) -> FilterResult<bool> {
        each!(self, filter => filter.filter_row_key(row))
    }
    #[inline]
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        each!(self, filter => filter.filter_cell(cell))
    }
    fn filter_all_remaining(&self) -> bool {
        each!(self, filter => filter.filter_all_remaining())
    }
    fn filter_row(&mut self) -> bool {
        each!(self, filter => filter.filter_row())
    }
    fn has_filter_row(&self) -> bool {
        each!(self, filter => filter.has_filter_row())
    }
    fn edits_rows(&self) -> bool {
        each!(self, filter => filter.edits_rows())
    }
    fn keeps(&self, cell: &Cell<'_>) -> bool {
        each!(self, filter => filter.keeps(cell))
    }
    fn next_hint<'a>(&'a mut self, cell: &Cell<'_>) -> Option<Hint<'a>> {
        each!(self, filter => filter.next_hint(cell))
    }
    fn transform(&self, value: ValueForm) -> ValueForm {
        each!(self, filter => filter.transform(value))
    }
    fn is_family_essential(&self, family: &[u8]) -> bool {
        each!(self, filter => filter.is_family_essential(family))
    }
    fn is_hinting(&self) -> bool {
        each!(self, filter => filter.is_hinting())
    }
    fn is_row_local(&self) -> bool {
        each!(self, filter => filter.is_row_local())
    }
    fn may_end(&self) -> bool {
        each!(self, filter => filter.may_end())
    }
    fn sees_skipped_rows(&self) -> bool {
        each!(self, filter => filter.sees_skipped_rows())
    }
    fn backtracks(&self) -> bool {
        each!(self, filter => filter.backtracks())
    }
}
