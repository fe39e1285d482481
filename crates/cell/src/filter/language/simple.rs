//! Builds one filter from its name and arguments. Source of each: `createFilterFromArguments` of
//! the filter's class in HBase.

use bytes::Bytes;

use super::arguments::Arguments;
use super::{NotAFilter, refused};
use crate::filter::{Column, Filter, PageStart, SingleColumnValue};

/// Builds a filter from `Name(argument, ..)`.
pub(super) fn filter(expression: &[u8]) -> Result<Filter, NotAFilter> {
    let ends_name = |byte: &u8| matches!(byte, b'(' | b' ' | b'\t');
    let Some(end) = expression.iter().position(ends_name).filter(|end| *end > 0) else {
        return refused("Incorrect Filter Name");
    };
    let name = String::from_utf8_lossy(&expression[..end]);
    if !NAMES.contains(&name.as_ref()) {
        return refused(format!("Filter Name {name} not supported"));
    }
    // Like HBase, do not report which argument is wrong.
    let built = Arguments::of(&expression[end..]).and_then(|arguments| named(&name, arguments));
    built.map_err(|_| NotAFilter(format!("Incorrect filter string {}", String::from_utf8_lossy(expression))))
}

/// The filters that have a text form. Source: HBase `ParseFilter`.
const NAMES: &[&str] = &[
    "ColumnCountGetFilter",
    "ColumnPaginationFilter",
    "ColumnPrefixFilter",
    "ColumnRangeFilter",
    "ColumnValueFilter",
    "DependentColumnFilter",
    "FamilyFilter",
    "FirstKeyOnlyFilter",
    "InclusiveStopFilter",
    "KeyOnlyFilter",
    "MultipleColumnPrefixFilter",
    "PageFilter",
    "PrefixFilter",
    "QualifierFilter",
    "RowFilter",
    "SingleColumnValueExcludeFilter",
    "SingleColumnValueFilter",
    "TimestampsFilter",
    "ValueFilter",
];

fn named(name: &str, arguments: Arguments) -> Result<Filter, NotAFilter> {
    match name {
        "KeyOnlyFilter" => arguments.none().map(|()| Filter::KeyOnly { len_as_val: false }),
        "FirstKeyOnlyFilter" => arguments.none().map(|()| Filter::FirstKeyOnly),
        "PrefixFilter" => arguments.exactly(1).map(|of| Filter::Prefix(Some(of.text(0)))),
        "ColumnPrefixFilter" => arguments.exactly(1).map(|of| Filter::ColumnPrefix(of.text(0))),
        "MultipleColumnPrefixFilter" => Ok(Filter::MultipleColumnPrefix(sorted(arguments.texts()))),
        "ColumnCountGetFilter" => {
            Ok(Filter::ColumnCountGet { limit: not_negative(arguments.exactly(1)?.int(0)?, "limit")? })
        }
        "PageFilter" => {
            Ok(Filter::Page { page_size: not_negative(arguments.exactly(1)?.long(0)?, "Page size")? })
        }
        "ColumnPaginationFilter" => column_pagination(&arguments.exactly(2)?),
        "InclusiveStopFilter" => arguments.exactly(1).map(|of| Filter::InclusiveStop(of.text(0))),
        "TimestampsFilter" => timestamps(&arguments),
        "RowFilter" => arguments.exactly(2)?.compare(0).map(Filter::Row),
        "FamilyFilter" => arguments.exactly(2)?.compare(0).map(Filter::Family),
        "QualifierFilter" => arguments.exactly(2)?.compare(0).map(Filter::Qualifier),
        "ValueFilter" => arguments.exactly(2)?.compare(0).map(Filter::Value),
        "DependentColumnFilter" => dependent_column(&arguments),
        "SingleColumnValueFilter" => single_column_value(&arguments).map(Filter::SingleColumnValue),
        "SingleColumnValueExcludeFilter" => {
            single_column_value(&arguments).map(Filter::SingleColumnValueExclude)
        }
        "ColumnValueFilter" => {
            let of = arguments.exactly(4)?;
            Ok(Filter::ColumnValue { column: column(&of), compare: of.compare(2)? })
        }
        "ColumnRangeFilter" => column_range(&arguments.exactly(4)?),
        name => refused(format!("Filter Name {name} not supported")),
    }
}

fn column(of: &Arguments) -> Column {
    Column { family: of.text(0), qualifier: of.text(1) }
}

fn sorted(mut texts: Vec<Bytes>) -> Vec<Bytes> {
    texts.sort();
    texts.dedup();
    texts
}

fn not_negative<T: PartialOrd + Default + std::fmt::Display>(number: T, what: &str) -> Result<T, NotAFilter> {
    match number < T::default() {
        true => refused(format!("{what} must be positive {number}")),
        false => Ok(number),
    }
}

fn column_pagination(of: &Arguments) -> Result<Filter, NotAFilter> {
    let limit = not_negative(of.int(0)?, "limit")?;
    Ok(Filter::ColumnPagination { limit, from: PageStart::Offset(not_negative(of.int(1)?, "offset")?) })
}

fn timestamps(of: &Arguments) -> Result<Filter, NotAFilter> {
    let mut timestamps = (0..of.len()).map(|at| of.long(at)).collect::<Result<Vec<i64>, NotAFilter>>()?;
    if let Some(negative) = timestamps.iter().find(|timestamp| **timestamp < 0) {
        return refused(format!("must be positive {negative}"));
    }
    timestamps.sort_unstable();
    timestamps.dedup();
    Ok(Filter::Timestamps { timestamps, can_hint: false })
}

fn dependent_column(of: &Arguments) -> Result<Filter, NotAFilter> {
    let (drop, compare) = match of.len() {
        2 => (false, None),
        3 => (of.boolean(2)?, None),
        5 => (of.boolean(2)?, Some(of.compare(3)?)),
        count => return refused(format!("Expected 2, 3 or 5 but got: {count}")),
    };
    Ok(Filter::DependentColumn { column: column(of), compare, drop })
}

fn single_column_value(of: &Arguments) -> Result<SingleColumnValue, NotAFilter> {
    let (filter_if_missing, latest_version_only) = match of.len() {
        4 => (false, true),
        6 => (of.boolean(4)?, of.boolean(5)?),
        count => return refused(format!("Expected 4 or 6 but got: {count}")),
    };
    Ok(SingleColumnValue {
        column: column(of),
        compare: of.compare(2)?,
        filter_if_missing,
        latest_version_only,
    })
}

fn column_range(of: &Arguments) -> Result<Filter, NotAFilter> {
    let bound = |at: usize| Some(of.text(at)).filter(|bound| !bound.is_empty());
    Ok(Filter::ColumnRange {
        min: bound(0),
        min_inclusive: of.boolean(1)?,
        max: bound(2),
        max_inclusive: of.boolean(3)?,
    })
}
