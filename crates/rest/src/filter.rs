//! Filters in the JSON form of HBase's REST API.

use bytes::Bytes;
use cell::filter::{
    BitwiseOp, Column, Comparator, Compare, CompareOp, DEPTH_MAX, Filter, FuzzyKey, ListOperator, PageStart,
    Pattern, RowRange, SingleColumnValue,
};
use serde_json::{Map, Value};

use crate::base64::{self, Alphabet};

/// Parses a filter. `None` if the text is not a filter.
pub fn parse(text: &str) -> Option<Filter> {
    // serde_json limits the depth of values to 128.
    let value = serde_json::from_str(text).ok()?;
    filter(&value, 0)
}

/// The members of a filter or comparator.
struct Members<'a>(&'a Map<String, Value>);

impl<'a> Members<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Option<String> {
        text_of(self.get(name)?)
    }

    fn bytes(&self, name: &str) -> Option<Bytes> {
        bytes_of(self.get(name)?)
    }

    /// Like [`bytes`](Self::bytes); a missing member is `Some(None)`.
    fn optional_bytes(&self, name: &str) -> Option<Option<Bytes>> {
        self.get(name).map_or(Some(None), |value| bytes_of(value).map(Some))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.trim().parse().ok()
    }

    fn flag(&self, name: &str, otherwise: bool) -> bool {
        self.text(name).map_or(otherwise, |text| text == "true")
    }

    fn list(&self, name: &str) -> Option<&'a Vec<Value>> {
        self.get(name)?.as_array()
    }

    fn compare(&self) -> Option<Compare> {
        Some(Compare { op: operator(&self.text("op")?)?, comparator: comparator(self.get("comparator")?)? })
    }

    fn single_column_value(&self) -> Option<SingleColumnValue> {
        Some(SingleColumnValue {
            column: Column {
                family: self.bytes("family")?,
                qualifier: self.optional_bytes("qualifier")?.unwrap_or_default(),
            },
            compare: self.compare()?,
            filter_if_missing: self.flag("ifMissing", false),
            latest_version_only: self.flag("latestVersion", true),
        })
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn bytes_of(value: &Value) -> Option<Bytes> {
    base64::decode(value.as_str()?.as_bytes(), Alphabet::Standard).map(Bytes::from)
}

fn filter(value: &Value, depth: usize) -> Option<Filter> {
    if depth >= DEPTH_MAX {
        return None;
    }
    let members = Members(value.as_object()?);
    let inner =
        || members.list("filters")?.iter().map(|value| filter(value, depth + 1)).collect::<Option<Vec<_>>>();
    let first = || inner()?.into_iter().next().map(Box::new);
    Some(match members.text("type")?.as_str() {
        "ColumnCountGetFilter" => Filter::ColumnCountGet { limit: members.number("limit")? },
        "ColumnPaginationFilter" => Filter::ColumnPagination {
            limit: members.number("limit")?,
            from: PageStart::Offset(members.number("offset")?),
        },
        "ColumnPrefixFilter" => Filter::ColumnPrefix(members.bytes("value")?),
        "ColumnRangeFilter" => Filter::ColumnRange {
            min: members.optional_bytes("minColumn")?,
            min_inclusive: members.flag("minColumnInclusive", false),
            max: members.optional_bytes("maxColumn")?,
            max_inclusive: members.flag("maxColumnInclusive", false),
        },
        "DependentColumnFilter" => Filter::DependentColumn {
            column: Column {
                family: members.bytes("family")?,
                qualifier: members.optional_bytes("qualifier")?.unwrap_or_default(),
            },
            compare: Some(members.compare()?),
            drop: members.flag("dropDependentColumn", false),
        },
        "FamilyFilter" => Filter::Family(members.compare()?),
        "FilterList" => Filter::List {
            operator: match members.text("op")?.as_str() {
                "MUST_PASS_ALL" => ListOperator::MustPassAll,
                "MUST_PASS_ONE" => ListOperator::MustPassOne,
                _ => return None,
            },
            filters: inner()?,
        },
        "FirstKeyOnlyFilter" => Filter::FirstKeyOnly,
        "FuzzyRowFilter" => {
            Filter::FuzzyRow(members.list("fuzzyKeys")?.iter().map(fuzzy_key).collect::<Option<_>>()?)
        }
        "InclusiveStopFilter" => Filter::InclusiveStop(members.bytes("value")?),
        "KeyOnlyFilter" => Filter::KeyOnly { len_as_val: false },
        "MultipleColumnPrefixFilter" => {
            let mut prefixes = members.list("prefixes")?.iter().map(bytes_of).collect::<Option<Vec<_>>>()?;
            prefixes.sort();
            prefixes.dedup();
            Filter::MultipleColumnPrefix(prefixes)
        }
        "MultiRowRangeFilter" => Filter::MultiRowRange(merged(
            members.list("ranges")?.iter().map(row_range).collect::<Option<_>>()?,
        )?),
        "PageFilter" => Filter::Page { page_size: members.number("value")? },
        "PrefixFilter" => Filter::Prefix(Some(members.bytes("value")?)),
        "QualifierFilter" => Filter::Qualifier(members.compare()?),
        "RandomRowFilter" => Filter::RandomRow { probability: members.number("chance")? },
        "RowFilter" => Filter::Row(members.compare()?),
        "SingleColumnValueFilter" => Filter::SingleColumnValue(members.single_column_value()?),
        "SingleColumnValueExcludeFilter" => Filter::SingleColumnValueExclude(members.single_column_value()?),
        "SkipFilter" => Filter::Skip(first()?),
        "TimestampsFilter" => {
            let numbers = members.list("timestamps")?.iter();
            let mut timestamps: Vec<i64> =
                numbers.map(|value| text_of(value)?.trim().parse().ok()).collect::<Option<_>>()?;
            timestamps.sort_unstable();
            timestamps.dedup();
            Filter::Timestamps { timestamps, can_hint: false }
        }
        "ValueFilter" => Filter::Value(members.compare()?),
        "WhileMatchFilter" => Filter::WhileMatch(first()?),
        _ => return None,
    })
}

fn operator(name: &str) -> Option<CompareOp> {
    Some(match name {
        "LESS" => CompareOp::Less,
        "LESS_OR_EQUAL" => CompareOp::LessOrEqual,
        "EQUAL" => CompareOp::Equal,
        "NOT_EQUAL" => CompareOp::NotEqual,
        "GREATER_OR_EQUAL" => CompareOp::GreaterOrEqual,
        "GREATER" => CompareOp::Greater,
        "NO_OP" => CompareOp::NoOp,
        _ => return None,
    })
}

fn comparator(value: &Value) -> Option<Comparator> {
    let members = Members(value.as_object()?);
    Some(match members.text("type")?.as_str() {
        "BinaryComparator" => Comparator::Binary(members.bytes("value")?),
        "BinaryPrefixComparator" => Comparator::BinaryPrefix(members.bytes("value")?),
        "BitComparator" => Comparator::Bit {
            value: members.bytes("value")?,
            op: match members.text("op")?.as_str() {
                "AND" => BitwiseOp::And,
                "OR" => BitwiseOp::Or,
                "XOR" => BitwiseOp::Xor,
                _ => return None,
            },
        },
        "NullComparator" => Comparator::Null,
        "RegexStringComparator" => Comparator::Regex(Pattern {
            source: members.text("value")?,
            // java.util.regex.Pattern.DOTALL, the default of HBase's comparator.
            flags: 32,
            charset: "UTF-8".into(),
            engine: "JAVA".into(),
        }),
        "SubstringComparator" => Comparator::Substring(members.text("value")?.to_lowercase()),
        _ => return None,
    })
}

fn fuzzy_key(value: &Value) -> Option<FuzzyKey> {
    let members = Members(value.as_object()?);
    let (key, mask) = (members.bytes("key")?, members.bytes("mask")?);
    if key.len() != mask.len() {
        return None;
    }
    let fixed: Vec<bool> = mask.iter().map(|byte| *byte == 0).collect();
    let key: Vec<u8> = key.iter().zip(&fixed).map(|(byte, fixed)| if *fixed { *byte } else { 0 }).collect();
    Some(FuzzyKey { key: key.into(), fixed })
}

fn row_range(value: &Value) -> Option<RowRange> {
    let members = Members(value.as_object()?);
    Some(RowRange {
        start: members.optional_bytes("startRow")?.unwrap_or_default(),
        start_inclusive: members.flag("startRowInclusive", true),
        stop: members.optional_bytes("stopRow")?.unwrap_or_default(),
        stop_inclusive: members.flag("stopRowInclusive", false),
    })
}

/// Ranges in order, with overlapping ones merged. `None` if one is not valid or there is none.
fn merged(mut ranges: Vec<RowRange>) -> Option<Vec<RowRange>> {
    let is_valid = |range: &RowRange| range.stop.is_empty() || range.start <= range.stop;
    if ranges.is_empty() || !ranges.iter().all(is_valid) {
        return None;
    }
    ranges.sort_by(|one, other| {
        one.start.cmp(&other.start).then(other.start_inclusive.cmp(&one.start_inclusive))
    });
    let mut result: Vec<RowRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match result.last_mut() {
            Some(last) if touches(last, &range) => extend(last, range),
            _ => result.push(range),
        }
    }
    Some(result)
}

fn touches(last: &RowRange, next: &RowRange) -> bool {
    last.stop.is_empty()
        || next.start < last.stop
        || (next.start == last.stop && (next.start_inclusive || last.stop_inclusive))
}

fn extend(last: &mut RowRange, next: RowRange) {
    if last.stop.is_empty() {
        return;
    }
    if next.stop.is_empty() || next.stop > last.stop {
        (last.stop, last.stop_inclusive) = (next.stop, next.stop_inclusive);
    } else if next.stop == last.stop {
        last.stop_inclusive |= next.stop_inclusive;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_each_type_are_parsed() {
        let comparator = r#""op":"EQUAL","comparator":{"type":"BinaryComparator","value":"YQ=="}"#;
        let texts = [
            r#"{"type":"ColumnCountGetFilter","limit":"2"}"#.to_owned(),
            r#"{"type":"ColumnPaginationFilter","limit":1,"offset":1}"#.into(),
            r#"{"type":"ColumnPrefixFilter","value":"YQ=="}"#.into(),
            r#"{"type":"ColumnRangeFilter","minColumn":"YQ==","minColumnInclusive":true}"#.into(),
            format!(
                r#"{{"type":"DependentColumnFilter","family":"Zg==","dropDependentColumn":true,{comparator}}}"#
            ),
            format!(
                r#"{{"type":"FilterList","op":"MUST_PASS_ONE","filters":[{{"type":"RowFilter",{comparator}}}]}}"#
            ),
            format!(
                r#"{{"type":"SingleColumnValueFilter","family":"Zg==","qualifier":"YQ==",{comparator}}}"#
            ),
            r#"{"type":"FuzzyRowFilter","fuzzyKeys":[{"key":"YWI=","mask":"AAE="}]}"#.into(),
            r#"{"type":"SkipFilter","filters":[{"type":"KeyOnlyFilter"}]}"#.into(),
            r#"{"type":"TimestampsFilter","timestamps":["3",1]}"#.into(),
            r#"{"type":"RandomRowFilter","chance":0.5}"#.into(),
        ];
        for text in texts {
            assert!(parse(&text).is_some(), "{text}");
        }
        let fuzzy = parse(r#"{"type":"FuzzyRowFilter","fuzzyKeys":[{"key":"YWI=","mask":"AAE="}]}"#);
        let key = FuzzyKey { key: Bytes::from_static(b"a\0"), fixed: vec![true, false] };
        assert_eq!(fuzzy, Some(Filter::FuzzyRow(vec![key])));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "{}",
            "PrefixFilter('a')",
            r#"{"type":"None"}"#,
            r#"{"type":"PageFilter","value":"x"}"#,
            r#"{"type":"PrefixFilter","value":"!"}"#,
            r#"{"type":"RowFilter","op":"LIKE","comparator":{"type":"NullComparator"}}"#,
            r#"{"type":"SkipFilter","filters":[]}"#,
            r#"{"type":"MultiRowRangeFilter","ranges":[]}"#,
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let deep = r#"{"type":"SkipFilter","filters":["#.repeat(200) + "{}" + &"]}".repeat(200);
        assert_eq!(parse(&deep), None);
    }

    #[test]
    fn overlapping_ranges_are_merged() {
        let range = |start: &'static str, stop: &'static str| RowRange {
            start: start.into(),
            start_inclusive: true,
            stop: stop.into(),
            stop_inclusive: false,
        };
        let ranges = vec![range("e", ""), range("a", "c"), range("b", "d")];
        assert_eq!(merged(ranges).unwrap(), [range("a", "d"), range("e", "")]);
        assert_eq!(merged(vec![range("b", "a")]), None);
    }
}
