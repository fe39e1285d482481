//! Encodes filters as their messages.

use cell::filter::{Compare, Filter, ListOperator, PageStart, SingleColumnValue};
use prost::Message;
use proto::filter_list::Operator;

use super::{PACKAGE, comparator, fuzzy, ranges};

/// Encodes a filter as its message.
pub(super) fn filter(filter: &Filter) -> proto::Filter {
    let (name, bytes) = match filter {
        Filter::All => ("FilterAllFilter", Vec::new()),
        Filter::List { operator, filters } => ("FilterList", list(*operator, filters).encode_to_vec()),
        Filter::Skip(inner) => {
            ("SkipFilter", proto::SkipFilter { filter: self::filter(inner) }.encode_to_vec())
        }
        Filter::WhileMatch(inner) => {
            ("WhileMatchFilter", proto::WhileMatchFilter { filter: self::filter(inner) }.encode_to_vec())
        }
        Filter::Row(it) => ("RowFilter", proto::RowFilter { compare_filter: compare(it) }.encode_to_vec()),
        Filter::Family(it) => {
            ("FamilyFilter", proto::FamilyFilter { compare_filter: compare(it) }.encode_to_vec())
        }
        Filter::Qualifier(it) => {
            ("QualifierFilter", proto::QualifierFilter { compare_filter: compare(it) }.encode_to_vec())
        }
        Filter::Value(it) => {
            ("ValueFilter", proto::ValueFilter { compare_filter: compare(it) }.encode_to_vec())
        }
        rows_and_columns => return other(rows_and_columns),
    };
    named(name, bytes)
}

fn other(filter: &Filter) -> proto::Filter {
    match filter {
        Filter::DependentColumn { .. }
        | Filter::SingleColumnValue(_)
        | Filter::SingleColumnValueExclude(_)
        | Filter::ColumnValue { .. } => by_column_value(filter),
        Filter::Page { .. }
        | Filter::Prefix(_)
        | Filter::InclusiveStop(_)
        | Filter::RandomRow { .. }
        | Filter::FuzzyRow(_)
        | Filter::MultiRowRange(_) => by_row(filter),
        _ => by_column(filter),
    }
}

fn by_column_value(filter: &Filter) -> proto::Filter {
    match filter {
        Filter::DependentColumn { column, compare, drop } => {
            let no_op = cell::filter::CompareOp::NoOp;
            let message = proto::DependentColumnFilter {
                compare_filter: match compare {
                    Some(compare) => self::compare(compare),
                    None => {
                        proto::CompareFilter { compare_op: comparator::encode_op(no_op), comparator: None }
                    }
                },
                column_family: Some(column.family.clone()),
                column_qualifier: Some(column.qualifier.clone()),
                drop_dependent_column: Some(*drop),
            };
            named("DependentColumnFilter", message.encode_to_vec())
        }
        Filter::SingleColumnValue(it) => {
            named("SingleColumnValueFilter", single_column_value(it).encode_to_vec())
        }
        Filter::SingleColumnValueExclude(it) => {
            let message =
                proto::SingleColumnValueExcludeFilter { single_column_value_filter: single_column_value(it) };
            named("SingleColumnValueExcludeFilter", message.encode_to_vec())
        }
        Filter::ColumnValue { column, compare } => {
            let message = proto::ColumnValueFilter {
                family: column.family.clone(),
                qualifier: column.qualifier.clone(),
                compare_op: comparator::encode_op(compare.op),
                comparator: comparator::encode(&compare.comparator),
            };
            named("ColumnValueFilter", message.encode_to_vec())
        }
        _ => unreachable!("called for filters by a column's value"),
    }
}

fn by_row(filter: &Filter) -> proto::Filter {
    match filter {
        Filter::Page { page_size } => {
            named("PageFilter", proto::PageFilter { page_size: *page_size }.encode_to_vec())
        }
        Filter::Prefix(prefix) => {
            named("PrefixFilter", proto::PrefixFilter { prefix: prefix.clone() }.encode_to_vec())
        }
        Filter::InclusiveStop(row) => named(
            "InclusiveStopFilter",
            proto::InclusiveStopFilter { stop_row_key: Some(row.clone()) }.encode_to_vec(),
        ),
        Filter::RandomRow { probability } => {
            named("RandomRowFilter", proto::RandomRowFilter { chance: *probability }.encode_to_vec())
        }
        Filter::FuzzyRow(keys) => {
            let fuzzy_keys_data = keys.iter().map(fuzzy::encode).collect();
            let message = proto::FuzzyRowFilter { fuzzy_keys_data, is_mask_v2: Some(true) };
            named("FuzzyRowFilter", message.encode_to_vec())
        }
        Filter::MultiRowRange(list) => {
            let row_range_list = list.iter().map(ranges::encode).collect();
            named("MultiRowRangeFilter", proto::MultiRowRangeFilter { row_range_list }.encode_to_vec())
        }
        _ => unreachable!("called for filters by row"),
    }
}

fn by_column(filter: &Filter) -> proto::Filter {
    match filter {
        Filter::ColumnPrefix(prefix) => {
            named("ColumnPrefixFilter", proto::ColumnPrefixFilter { prefix: prefix.clone() }.encode_to_vec())
        }
        Filter::MultipleColumnPrefix(prefixes) => named(
            "MultipleColumnPrefixFilter",
            proto::MultipleColumnPrefixFilter { sorted_prefixes: prefixes.clone() }.encode_to_vec(),
        ),
        Filter::ColumnRange { min, min_inclusive, max, max_inclusive } => {
            let message = proto::ColumnRangeFilter {
                min_column: min.clone(),
                min_column_inclusive: Some(*min_inclusive),
                max_column: max.clone(),
                max_column_inclusive: Some(*max_inclusive),
            };
            named("ColumnRangeFilter", message.encode_to_vec())
        }
        Filter::ColumnCountGet { limit } => {
            named("ColumnCountGetFilter", proto::ColumnCountGetFilter { limit: *limit }.encode_to_vec())
        }
        Filter::ColumnPagination { limit, from } => {
            let (offset, column_offset) = match from {
                PageStart::Offset(offset) => (Some(*offset), None),
                PageStart::Column(column) => (None, Some(column.clone())),
            };
            let message = proto::ColumnPaginationFilter { limit: *limit, offset, column_offset };
            named("ColumnPaginationFilter", message.encode_to_vec())
        }
        Filter::FirstKeyOnly => named("FirstKeyOnlyFilter", Vec::new()),
        Filter::FirstKeyValueMatchingQualifiers(qualifiers) => named(
            "FirstKeyValueMatchingQualifiersFilter",
            proto::FirstKeyValueMatchingQualifiersFilter { qualifiers: qualifiers.clone() }.encode_to_vec(),
        ),
        Filter::KeyOnly { len_as_val } => {
            named("KeyOnlyFilter", proto::KeyOnlyFilter { len_as_val: *len_as_val }.encode_to_vec())
        }
        Filter::Timestamps { timestamps, can_hint } => {
            let message =
                proto::TimestampsFilter { timestamps: timestamps.clone(), can_hint: Some(*can_hint) };
            named("TimestampsFilter", message.encode_to_vec())
        }
        _ => unreachable!("called for filters by column"),
    }
}

fn list(operator: ListOperator, filters: &[Filter]) -> proto::FilterList {
    let operator = match operator {
        ListOperator::MustPassAll => Operator::MustPassAll,
        ListOperator::MustPassOne => Operator::MustPassOne,
    };
    proto::FilterList { operator: operator.into(), filters: filters.iter().map(filter).collect() }
}

fn compare(compare: &Compare) -> proto::CompareFilter {
    proto::CompareFilter {
        compare_op: comparator::encode_op(compare.op),
        comparator: Some(comparator::encode(&compare.comparator)),
    }
}

fn single_column_value(filter: &SingleColumnValue) -> proto::SingleColumnValueFilter {
    proto::SingleColumnValueFilter {
        column_family: Some(filter.column.family.clone()),
        column_qualifier: Some(filter.column.qualifier.clone()),
        compare_op: comparator::encode_op(filter.compare.op),
        comparator: comparator::encode(&filter.compare.comparator),
        filter_if_missing: Some(filter.filter_if_missing),
        latest_version_only: Some(filter.latest_version_only),
    }
}

fn named(name: &str, bytes: Vec<u8>) -> proto::Filter {
    proto::Filter { name: format!("{PACKAGE}{name}"), serialized_filter: Some(bytes.into()) }
}
