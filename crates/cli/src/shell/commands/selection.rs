//! Options of reads: columns, times, versions, rows and filters, and how to fetch the results.

use std::sync::Arc;

use bytes::Bytes;
use cell::filter::{Filter, language};
use cell::query::{CellSelection, FamilyColumns, Scan};
use client::ScanOptions;

use super::formatter::Converters;
use crate::shell::arguments::{Column, Options};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::value::Value;

/// Options that are not supported, or not yet.
const UNSUPPORTED: &[&str] = &["AUTHORIZATIONS", "ALL_METRICS", "METRICS"];

/// The cells of a row to read. Converters in columns are added to `converters`.
pub(super) fn selection(options: &mut Options, converters: &mut Converters) -> Result<CellSelection> {
    let columns = match (options.take("COLUMNS"), options.take("COLUMN")) {
        (None, None) => Vec::new(),
        (Some(columns @ (Value::Text(_) | Value::Array(_))), None)
        | (None, Some(columns @ (Value::Text(_) | Value::Array(_)))) => columns.into_elements(),
        (Some(_), Some(_)) => return usage("COLUMN and COLUMNS exclude each other"),
        _ => return usage("COLUMNS must be specified as a String or an Array"),
    };
    Ok(CellSelection {
        columns: family_columns(columns, converters)?,
        time_range: options.time_range()?,
        max_versions: options.number("VERSIONS", 1)?.unwrap_or(1),
        cache_blocks: options.boolean("CACHE_BLOCKS")?.unwrap_or(true),
        filter: filter(options)?.map(Arc::new),
        ..CellSelection::default()
    })
}

fn filter(options: &mut Options) -> Result<Option<Filter>> {
    let Some(text) = options.bytes("FILTER")? else { return Ok(None) };
    language::parse(&text).map(Some).map_err(|error| ShellError::Usage(error.to_string()))
}

/// Takes options that affect how a read is done, but not its result. Grampus has one replica per
/// region and assembles whole rows, so these options have no effect.
pub(super) fn take_hints(options: &mut Options) -> Result<()> {
    super::take_attributes(options)?;
    check_one_of(options, "CONSISTENCY", &["STRONG", "TIMELINE"])?;
    check_one_of(options, "ISOLATION_LEVEL", &["READ_COMMITTED", "READ_UNCOMMITTED"])?;
    check_one_of(options, "READ_TYPE", &["DEFAULT", "STREAM", "PREAD"])?;
    options.boolean("ALLOW_PARTIAL_RESULTS")?;
    options.number::<i64>("MAX_RESULT_SIZE", i64::MIN)?;
    if options.number::<u32>("REGION_REPLICA_ID", 0)?.is_some_and(|replica| replica > 0) {
        return Err(ShellError::Unsupported("REGION_REPLICA_ID other than 0".into()));
    }
    options.refuse(UNSUPPORTED)
}

fn check_one_of(options: &mut Options, name: &str, known: &[&str]) -> Result<()> {
    match options.take(name) {
        Some(value) if value.string().is_none_or(|text| !known.contains(&text.as_str())) => {
            usage(format!("{name} must be one of {}, not {value}", known.join(", ")))
        }
        _ => Ok(()),
    }
}

/// Columns grouped by family. As in HBase's client, a later entry overrides: a family after its
/// columns selects the whole family, a column after its family selects that column.
pub(super) fn family_columns(columns: Vec<Value>, converters: &mut Converters) -> Result<Vec<FamilyColumns>> {
    let mut families: Vec<FamilyColumns> = Vec::new();
    for value in columns {
        let text = value.bytes().ok_or_else(|| ShellError::Usage(format!("{value} is not a column")))?;
        let column = converters.take_from(Column::parse(&text)?)?;
        let Column { family, qualifier } = column;
        let at = families.iter().position(|known| known.family == family).unwrap_or_else(|| {
            families.push(FamilyColumns { family, qualifiers: None });
            families.len() - 1
        });
        let qualifiers = &mut families[at].qualifiers;
        match qualifier {
            None => *qualifiers = None,
            Some(qualifier) => qualifiers.get_or_insert_default().push(qualifier),
        }
    }
    families.sort_by(|a, b| a.family.cmp(&b.family));
    for qualifiers in families.iter_mut().filter_map(|family| family.qualifiers.as_mut()) {
        qualifiers.sort();
        qualifiers.dedup();
    }
    Ok(families)
}

/// The rows and cells to scan.
pub(super) fn parse_scan(options: &mut Options, converters: &mut Converters) -> Result<Scan> {
    let start = match options.bytes("STARTROW")? {
        Some(start) => start,
        None => options.bytes("STARTKEY")?.unwrap_or_default(),
    };
    let stop = match options.bytes("STOPROW")? {
        Some(stop) => stop,
        None => options.bytes("ENDROW")?.or(options.bytes("ENDKEY")?).unwrap_or_default(),
    };
    let mut scan = Scan {
        start_row: start.into(),
        stop_row: stop.into(),
        reversed: options.boolean("REVERSED")?.unwrap_or(false),
        raw: options.boolean("RAW")?.unwrap_or(false),
        // HBase's shell treats 0 and less as no batching.
        batch: options
            .number::<i64>("BATCH", i64::MIN)?
            .map_or(Ok(0), |cells| at_most_u32("BATCH", cells))?,
        selection: selection(options, converters)?,
        ..Scan::default()
    };
    if let Some(prefix) = options.bytes("ROWPREFIXFILTER")? {
        restrict_to_prefix(&mut scan, prefix)?;
    }
    Ok(scan)
}

/// A scan of the rows with a prefix that returns only keys.
pub(super) fn keys_of_prefix(prefix: Vec<u8>) -> Scan {
    Scan {
        stop_row: end_of_prefix(&prefix),
        start_row: prefix.into(),
        selection: CellSelection { filter: Some(Arc::new(keys_only(None))), ..CellSelection::default() },
        ..Scan::default()
    }
}

/// A filter for one cell of each row that passes `filter`, without its value.
pub(super) fn keys_only(filter: Option<&Filter>) -> Filter {
    let own = [Filter::FirstKeyOnly, Filter::KeyOnly { len_as_val: false }];
    let filters = filter.cloned().into_iter().chain(own).collect();
    Filter::List { operator: cell::filter::ListOperator::MustPassAll, filters }
}

fn restrict_to_prefix(scan: &mut Scan, prefix: Vec<u8>) -> Result<()> {
    if !scan.start_row.is_empty() || !scan.stop_row.is_empty() {
        return usage("ROWPREFIXFILTER excludes STARTROW and STOPROW");
    }
    let end = end_of_prefix(&prefix);
    if scan.reversed {
        scan.start_row = end;
        scan.include_start_row = false;
        scan.stop_row = prefix.into();
        scan.include_stop_row = true;
    } else {
        scan.start_row = prefix.into();
        scan.stop_row = end;
    }
    Ok(())
}

/// The first row after all rows with `prefix`; empty if there is none.
fn end_of_prefix(prefix: &[u8]) -> Bytes {
    let Some(last) = prefix.iter().rposition(|byte| *byte != 0xff) else { return Bytes::new() };
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    end.into()
}

pub(super) fn scan_options(options: &mut Options) -> Result<ScanOptions> {
    let default = ScanOptions::default();
    Ok(ScanOptions {
        // HBase's shell treats 0 and less as no limit, and as the default caching.
        limit: options
            .number::<i64>("LIMIT", i64::MIN)?
            .map_or(Ok(0), |limit| at_most_u32("LIMIT", limit))?,
        caching: match options.number::<i64>("CACHE", i64::MIN)? {
            Some(rows) if rows > 0 => at_most_u32("CACHE", rows)?,
            _ => default.caching,
        },
    })
}

fn at_most_u32(name: &str, number: i64) -> Result<u32> {
    u32::try_from(number.max(0))
        .or_else(|_| usage(format!("{name} must be at most {}, not {number}", u32::MAX)))
}

#[cfg(test)]
mod tests {
    use cell::query::TimeRange;

    use super::*;
    use crate::shell::arguments::Arguments;
    use crate::shell::error::Position;
    use crate::shell::parser::parse;
    use crate::shell::text::binary;

    fn options(source: &str) -> Options {
        let statement = parse(&format!("scan {{{source}}}"), Position::START).unwrap().remove(0);
        Arguments::new("scan", statement.values).options().unwrap()
    }

    fn columns(source: &str) -> String {
        let selection =
            selection(&mut options(&format!("COLUMNS => {source}")), &mut Converters::default()).unwrap();
        let show = |family: &FamilyColumns| {
            let name = binary(&family.family);
            match &family.qualifiers {
                None => name,
                Some(all) => {
                    format!("{name}({})", all.iter().map(|one| binary(one)).collect::<Vec<_>>().join(" "))
                }
            }
        };
        selection.columns.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn columns_are_sorted_by_family_and_the_later_one_counts() {
        assert_eq!(columns("'f'"), "f");
        assert_eq!(columns("['g:b', 'f', 'g:a', 'g:b']"), "f g(a b)");
        assert_eq!(columns("['f:a', 'f']"), "f");
        assert_eq!(columns("['f', 'f:a']"), "f(a)");
        assert_eq!(columns("['f:']"), "f()");
        assert!(selection(&mut options("COLUMNS => [nil]"), &mut Converters::default()).is_err());
        assert!(
            selection(&mut options("COLUMNS => 'f', COLUMN => 'g'"), &mut Converters::default()).is_err()
        );
    }

    #[test]
    fn a_scan_is_built_from_its_options() {
        let mut given = options(
            "STARTROW => 'a', STOPROW => \"b\\x00\", REVERSED => true, RAW => true, VERSIONS => 3, \
             TIMERANGE => [1, 9], LIMIT => 5, CACHE => 10, CACHE_BLOCKS => false",
        );
        let scan = parse_scan(&mut given, &mut Converters::default()).unwrap();
        assert_eq!((&*scan.start_row, &*scan.stop_row), (&b"a"[..], &b"b\x00"[..]));
        assert!(scan.reversed && scan.raw && !scan.selection.cache_blocks);
        assert_eq!(
            (scan.selection.max_versions, scan.selection.time_range),
            (3, TimeRange { from: 1, to: 9 })
        );
        let scan_options = scan_options(&mut given).unwrap();
        assert_eq!((scan_options.limit, scan_options.caching), (5, 10));
        given.finish().unwrap();
    }

    #[test]
    fn several_values_mean_no_limit() {
        for source in ["", "LIMIT => -1", "LIMIT => 0", "CACHE => 0"] {
            let found = scan_options(&mut options(source)).unwrap();
            assert_eq!((found.limit, found.caching), (0, ScanOptions::default().caching), "{source}");
        }
        assert!(scan_options(&mut options("LIMIT => 4294967296")).is_err());
    }

    #[test]
    fn a_prefix_is_a_range_of_rows() {
        let range = |source: &str| {
            let scan = parse_scan(&mut options(source), &mut Converters::default()).unwrap();
            (scan.start_row, scan.include_start_row, scan.stop_row, scan.include_stop_row)
        };
        assert_eq!(range("ROWPREFIXFILTER => 'ab'"), ("ab".into(), true, "ac".into(), false));
        assert_eq!(
            range("ROWPREFIXFILTER => 'ab', REVERSED => true"),
            ("ac".into(), false, "ab".into(), true)
        );
        assert_eq!(range("ROWPREFIXFILTER => \"a\\xff\""), (b"a\xff"[..].into(), true, "b".into(), false));
        assert_eq!(range("ROWPREFIXFILTER => \"\\xff\""), (b"\xff"[..].into(), true, "".into(), false));
        assert!(
            parse_scan(&mut options("ROWPREFIXFILTER => 'a', STARTROW => 'b'"), &mut Converters::default())
                .is_err()
        );
    }
}
