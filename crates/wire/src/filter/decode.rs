//! Decodes filters from their messages.

use bytes::Bytes;
use cell::filter::{Column, Compare, Filter, ListOperator, PageStart, SingleColumnValue};
use prost::Message;
use proto::filter_list::Operator;

use super::{comparator, fuzzy, invalid_filter, ranges, simple_name, unknown_class};
use crate::convert::Refused;

/// Decodes a filter with at most `depth` nested levels and `left` filters in all.
pub(super) fn filter(filter: &proto::Filter, depth: usize, left: &mut usize) -> Result<Filter, Refused> {
    *left = left
        .checked_sub(1)
        .ok_or_else(|| invalid_filter(format!("filter exceeds limit of {} elements", super::ELEMENTS_MAX)))?;
    let Some(depth) = depth.checked_sub(1) else {
        return Err(invalid_filter("filters are nested too deeply"));
    };
    let bytes = filter.serialized_filter.clone().unwrap_or_default();
    let Some(name) = simple_name(&filter.name) else {
        return Err(unknown_class(&filter.name));
    };
    match name {
        "FilterList" => list(&message(bytes)?, depth, left),
        "FilterWrapper" => self::filter(&message::<proto::FilterWrapper>(bytes)?.filter, depth, left),
        "SkipFilter" => {
            let inner = message::<proto::SkipFilter>(bytes)?.filter;
            Ok(Filter::Skip(Box::new(self::filter(&inner, depth, left)?)))
        }
        "WhileMatchFilter" => {
            let inner = message::<proto::WhileMatchFilter>(bytes)?.filter;
            Ok(Filter::WhileMatch(Box::new(self::filter(&inner, depth, left)?)))
        }
        _ => leaf(name, bytes).unwrap_or_else(|| Err(unknown_class(&filter.name))),
    }
}

fn list(message: &proto::FilterList, depth: usize, left: &mut usize) -> Result<Filter, Refused> {
    let operator = match message.operator() {
        Operator::MustPassAll => ListOperator::MustPassAll,
        Operator::MustPassOne => ListOperator::MustPassOne,
    };
    let filters = message.filters.iter().map(|inner| filter(inner, depth, left)).collect::<Result<_, _>>()?;
    Ok(Filter::List { operator, filters })
}

/// Decodes a filter that contains no other filter; `None` for an unknown name.
fn leaf(name: &str, bytes: Bytes) -> Option<Result<Filter, Refused>> {
    Some(match name {
        "FilterAllFilter" => Ok(Filter::All),
        "PageFilter" => {
            message::<proto::PageFilter>(bytes).map(|it| Filter::Page { page_size: it.page_size })
        }
        "RowFilter" => {
            message::<proto::RowFilter>(bytes).and_then(|it| compare(&it.compare_filter).map(Filter::Row))
        }
        "FamilyFilter" => message::<proto::FamilyFilter>(bytes)
            .and_then(|it| compare(&it.compare_filter).map(Filter::Family)),
        "QualifierFilter" => message::<proto::QualifierFilter>(bytes)
            .and_then(|it| compare(&it.compare_filter).map(Filter::Qualifier)),
        "ValueFilter" => {
            message::<proto::ValueFilter>(bytes).and_then(|it| compare(&it.compare_filter).map(Filter::Value))
        }
        "DependentColumnFilter" => message(bytes).and_then(dependent_column),
        "SingleColumnValueFilter" => {
            message(bytes).and_then(|it| single_column_value(it).map(Filter::SingleColumnValue))
        }
        "SingleColumnValueExcludeFilter" => message::<proto::SingleColumnValueExcludeFilter>(bytes)
            .and_then(|it| single_column_value(it.single_column_value_filter))
            .map(Filter::SingleColumnValueExclude),
        "ColumnValueFilter" => message(bytes).and_then(column_value),
        "PrefixFilter" => message::<proto::PrefixFilter>(bytes).map(|it| Filter::Prefix(it.prefix)),
        "ColumnPrefixFilter" => {
            message::<proto::ColumnPrefixFilter>(bytes).map(|it| Filter::ColumnPrefix(it.prefix))
        }
        "MultipleColumnPrefixFilter" => message::<proto::MultipleColumnPrefixFilter>(bytes)
            .map(|it| Filter::MultipleColumnPrefix(sorted(it.sorted_prefixes))),
        "ColumnRangeFilter" => message(bytes).map(column_range),
        "ColumnCountGetFilter" => message::<proto::ColumnCountGetFilter>(bytes).and_then(|it| {
            not_negative(it.limit, "limit be positive").map(|limit| Filter::ColumnCountGet { limit })
        }),
        "ColumnPaginationFilter" => message(bytes).and_then(column_pagination),
        "FirstKeyOnlyFilter" => Ok(Filter::FirstKeyOnly),
        "FirstKeyValueMatchingQualifiersFilter" => {
            message::<proto::FirstKeyValueMatchingQualifiersFilter>(bytes)
                .map(|it| Filter::FirstKeyValueMatchingQualifiers(sorted(it.qualifiers)))
        }
        "KeyOnlyFilter" => {
            message::<proto::KeyOnlyFilter>(bytes).map(|it| Filter::KeyOnly { len_as_val: it.len_as_val })
        }
        "InclusiveStopFilter" => message::<proto::InclusiveStopFilter>(bytes)
            .map(|it| Filter::InclusiveStop(it.stop_row_key.unwrap_or_default())),
        "TimestampsFilter" => message::<proto::TimestampsFilter>(bytes).and_then(timestamps),
        "RandomRowFilter" => {
            message::<proto::RandomRowFilter>(bytes).map(|it| Filter::RandomRow { probability: it.chance })
        }
        "FuzzyRowFilter" => message::<proto::FuzzyRowFilter>(bytes).and_then(|it| {
            let keys = it.fuzzy_keys_data.iter().map(|pair| fuzzy::decode(pair, it.is_mask_v2()));
            keys.collect::<Result<_, _>>().map(Filter::FuzzyRow)
        }),
        "MultiRowRangeFilter" => message::<proto::MultiRowRangeFilter>(bytes)
            .and_then(|it| ranges::decode(&it.row_range_list).map(Filter::MultiRowRange)),
        _ => return None,
    })
}

fn compare(message: &proto::CompareFilter) -> Result<Compare, Refused> {
    let Some(comparator) = &message.comparator else {
        return Err(invalid_filter("comparison has no comparator"));
    };
    compare_with(message.compare_op, comparator)
}

fn compare_with(op: i32, comparator: &proto::Comparator) -> Result<Compare, Refused> {
    Ok(Compare { op: comparator::decode_op(op)?, comparator: comparator::decode(comparator)? })
}

fn dependent_column(message: proto::DependentColumnFilter) -> Result<Filter, Refused> {
    let compare_filter = &message.compare_filter;
    let compare = match &compare_filter.comparator {
        Some(comparator) => Some(compare_with(compare_filter.compare_op, comparator)?),
        None => None,
    };
    let drop = message.drop_dependent_column();
    Ok(Filter::DependentColumn {
        column: column(message.column_family, message.column_qualifier),
        compare,
        drop,
    })
}

fn single_column_value(message: proto::SingleColumnValueFilter) -> Result<SingleColumnValue, Refused> {
    let compare = compare_with(message.compare_op, &message.comparator)?;
    let (filter_if_missing, latest_version_only) =
        (message.filter_if_missing(), message.latest_version_only());
    Ok(SingleColumnValue {
        column: column(message.column_family, message.column_qualifier),
        compare,
        filter_if_missing,
        latest_version_only,
    })
}

fn column_value(message: proto::ColumnValueFilter) -> Result<Filter, Refused> {
    let compare = compare_with(message.compare_op, &message.comparator)?;
    Ok(Filter::ColumnValue {
        column: Column { family: message.family, qualifier: message.qualifier },
        compare,
    })
}

fn column_range(message: proto::ColumnRangeFilter) -> Filter {
    Filter::ColumnRange {
        min_inclusive: message.min_column_inclusive(),
        max_inclusive: message.max_column_inclusive(),
        min: message.min_column,
        max: message.max_column,
    }
}

fn column_pagination(message: proto::ColumnPaginationFilter) -> Result<Filter, Refused> {
    let limit = not_negative(message.limit, "limit must be positive")?;
    let from = match message.column_offset {
        Some(column) => PageStart::Column(column),
        None => PageStart::Offset(not_negative(message.offset.unwrap_or(0), "offset must be positive")?),
    };
    Ok(Filter::ColumnPagination { limit, from })
}

fn timestamps(message: proto::TimestampsFilter) -> Result<Filter, Refused> {
    let can_hint = message.can_hint();
    let mut timestamps = message.timestamps;
    if let Some(negative) = timestamps.iter().find(|timestamp| **timestamp < 0) {
        return Err(invalid_filter(format!(
            "java.lang.IllegalArgumentException: must be positive {negative}"
        )));
    }
    timestamps.sort_unstable();
    timestamps.dedup();
    Ok(Filter::Timestamps { timestamps, can_hint })
}

fn column(family: Option<Bytes>, qualifier: Option<Bytes>) -> Column {
    Column { family: family.unwrap_or_default(), qualifier: qualifier.unwrap_or_default() }
}

fn sorted(mut names: Vec<Bytes>) -> Vec<Bytes> {
    names.sort_unstable();
    names.dedup();
    names
}

fn not_negative(number: i32, what: &str) -> Result<i32, Refused> {
    if number >= 0 {
        return Ok(number);
    }
    Err(invalid_filter(format!("java.lang.IllegalArgumentException: {what} {number}")))
}

fn message<M: Message + Default>(bytes: Bytes) -> Result<M, Refused> {
    M::decode(bytes).map_err(invalid_filter)
}
