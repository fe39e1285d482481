//! Commands that read rows.

use bytes::Bytes;
use cell::Cell;
use cell::query::{CellSelection, FamilyColumns, Get, Scan};
use client::ScanOptions;

use super::{Command, Group, Outcome};
use crate::shell::arguments::{Arguments, Column, Options, row_key};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::Session;
use crate::shell::text::{binary, date_time};
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "dml, reads",
    commands: &[
        Command {
            name: "get",
            aliases: &[],
            summary: "Show the cells of a row, or some of them",
            usage: "  grampus> get 't1', 'r1'\n  \
                    grampus> get 't1', 'r1', 'f1:q1'\n  \
                    grampus> get 't1', 'r1', 'f1:q1', 'f2'\n  \
                    grampus> get 't1', 'r1', {COLUMN => ['f1:q1', 'f2'], VERSIONS => 4}\n  \
                    grampus> get 't1', 'r1', {TIMERANGE => [1700000000000, 1700000001000]}\n\n\
                    Options: COLUMN or COLUMNS, VERSIONS, TIMESTAMP, TIMERANGE, MAXLENGTH (characters of a value).",
            run: |session, arguments| Box::pin(get(session, arguments)),
        },
        Command {
            name: "scan",
            aliases: &[],
            summary: "Show rows of a table in order",
            usage: "  grampus> scan 't1'\n  \
                    grampus> scan 't1', {STARTROW => 'a', STOPROW => 'm', LIMIT => 10}\n  \
                    grampus> scan 't1', {COLUMNS => ['f1:q1', 'f2'], VERSIONS => 3}\n  \
                    grampus> scan 't1', {ROWPREFIXFILTER => 'user-', REVERSED => true}\n  \
                    grampus> scan 't1', {RAW => true, VERSIONS => 10}\n\n\
                    Options: STARTROW, STOPROW (not included), ROWPREFIXFILTER, LIMIT, COLUMN or COLUMNS, VERSIONS,\n\
                    TIMESTAMP, TIMERANGE, REVERSED, RAW (delete markers too), MAXLENGTH, CACHE, CACHE_BLOCKS.",
            run: |session, arguments| Box::pin(scan(session, arguments)),
        },
        Command {
            name: "count",
            aliases: &[],
            summary: "Count the rows of a table by reading them",
            usage: "  grampus> count 't1'\n  \
                    grampus> count 't1', 100000\n  \
                    grampus> count 't1', {INTERVAL => 10, STARTROW => 'a', STOPROW => 'm', COLUMNS => ['f1']}\n\n\
                    Every INTERVAL rows (1000 if it is not given) it says how far it is.",
            run: |session, arguments| Box::pin(count(session, arguments)),
        },
    ],
};

/// Options of reads in HBase's shell that are not here yet.
const NOT_YET: &[&str] = &[
    "FILTER",
    "ATTRIBUTES",
    "AUTHORIZATIONS",
    "CONSISTENCY",
    "REGION_REPLICA_ID",
    "FORMATTER",
    "FORMATTER_CLASS",
    "ALL_METRICS",
    "METRICS",
    "ISOLATION_LEVEL",
    "READ_TYPE",
    "ALLOW_PARTIAL_RESULTS",
    "MAX_RESULT_SIZE",
    "BATCH",
];

async fn get(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let row = row_key(arguments.bytes("the row")?)?;
    let mut columns = Vec::new();
    while let Some(value) = arguments.next_plain() {
        columns.extend(value.into_elements());
    }
    let mut options = arguments.options()?;
    arguments.finish()?;
    let mut selection = selection(&mut options)?;
    let lengths = Lengths::take(&mut options)?;
    options.refuse(NOT_YET)?;
    options.finish()?;
    if !columns.is_empty() {
        selection.columns = family_columns(columns)?;
    }

    session.printer.header("COLUMN", "CELL")?;
    let found = session.client.table(table).get(&Get { row, selection, existence_only: false }).await?;
    for cell in &found.cells {
        let cell = cell.view(0);
        session.printer.pair(&column_of(&cell), &lengths.cut(content_of(&cell)))?;
    }
    session.printer.footer(u64::from(!found.is_empty()))?;
    Ok(Outcome::Done)
}

async fn scan(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let mut options = arguments.options()?;
    arguments.finish()?;
    let scan = scan_of(&mut options)?;
    let lengths = Lengths::take(&mut options)?;
    let scan_options = scan_options(&mut options)?;
    options.refuse(NOT_YET)?;
    options.finish()?;

    session.printer.header("ROW", "COLUMN+CELL")?;
    let mut scanner = session.client.table(table).scan_with(scan, scan_options);
    let mut rows = 0;
    while let Some(row) = scanner.next().await? {
        rows += 1;
        let key = binary(row.key());
        for cell in &row.cells {
            let cell = cell.view(0);
            let shown = format!("column={}, {}", column_of(&cell), lengths.cut(content_of(&cell)));
            session.printer.pair(&key, &shown)?;
        }
    }
    session.printer.footer(rows)?;
    Ok(Outcome::Done)
}

async fn count(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let plain = arguments.next_plain();
    let mut options = arguments.options()?;
    arguments.finish()?;
    let interval = match plain {
        None => options.number("INTERVAL", 1)?.unwrap_or(1000),
        Some(value) => value.integer().filter(|interval| *interval > 0).ok_or_else(|| {
            ShellError::Usage(format!("the interval of count is a number of 1 or more, not {value}"))
        })?,
    };
    let mut scan = scan_of(&mut options)?;
    let scan_options = scan_options(&mut options)?;
    options.refuse(NOT_YET)?;
    options.finish()?;
    // A cell of each family tells that there is a row; and what is read only once need not push out other blocks.
    scan.selection.store_limit = Some(1);
    scan.selection.cache_blocks = false;

    let mut scanner = session.client.table(table).scan_with(scan, scan_options);
    let mut rows: u64 = 0;
    while let Some(row) = scanner.next().await? {
        rows += 1;
        if rows.is_multiple_of(interval.unsigned_abs()) {
            session.printer.line(&format!("Current count: {rows}, row: {}", binary(row.key())))?;
            session.printer.flush()?;
        }
    }
    session.printer.footer(rows)?;
    Ok(Outcome::Value(rows.to_string()))
}

/// Which cells of a row are wanted.
fn selection(options: &mut Options) -> Result<CellSelection> {
    let columns = match (options.take("COLUMNS"), options.take("COLUMN")) {
        (None, None) => Vec::new(),
        (Some(columns), None) | (None, Some(columns)) => columns.into_elements(),
        (Some(_), Some(_)) => return usage("COLUMN and COLUMNS exclude each other"),
    };
    Ok(CellSelection {
        columns: family_columns(columns)?,
        time_range: options.time_range()?,
        max_versions: options.number("VERSIONS", 1)?.unwrap_or(1),
        cache_blocks: options.boolean("CACHE_BLOCKS")?.unwrap_or(true),
        ..CellSelection::default()
    })
}

/// Columns by family. As in HBase's client the later one counts: a family behind its columns asks for all of it, a
/// column behind its family for that column.
fn family_columns(columns: Vec<Value>) -> Result<Vec<FamilyColumns>> {
    let mut families: Vec<FamilyColumns> = Vec::new();
    for value in columns {
        let text = value.bytes().ok_or_else(|| ShellError::Usage(format!("{value} is no column")))?;
        let Column { family, qualifier } = Column::parse(&text)?;
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

/// Which rows are wanted, and what of them.
fn scan_of(options: &mut Options) -> Result<Scan> {
    let start = options.bytes("STARTROW")?.unwrap_or_default();
    let stop = match options.bytes("STOPROW")? {
        Some(stop) => stop,
        None => options.bytes("ENDROW")?.unwrap_or_default(),
    };
    let mut scan = Scan {
        start_row: start.into(),
        stop_row: stop.into(),
        reversed: options.boolean("REVERSED")?.unwrap_or(false),
        raw: options.boolean("RAW")?.unwrap_or(false),
        selection: selection(options)?,
        ..Scan::default()
    };
    if let Some(prefix) = options.bytes("ROWPREFIXFILTER")? {
        restrict_to_prefix(&mut scan, prefix)?;
    }
    Ok(scan)
}

fn restrict_to_prefix(scan: &mut Scan, prefix: Vec<u8>) -> Result<()> {
    if !scan.start_row.is_empty() || !scan.stop_row.is_empty() {
        return usage("ROWPREFIXFILTER excludes STARTROW and STOPROW");
    }
    let behind = behind_prefix(&prefix);
    if scan.reversed {
        scan.start_row = behind;
        scan.include_start_row = false;
        scan.stop_row = prefix.into();
        scan.include_stop_row = true;
    } else {
        scan.start_row = prefix.into();
        scan.stop_row = behind;
    }
    Ok(())
}

/// The first row behind all that begin with `prefix`; empty if there is none.
fn behind_prefix(prefix: &[u8]) -> Bytes {
    let Some(last) = prefix.iter().rposition(|byte| *byte != 0xff) else { return Bytes::new() };
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    behind.into()
}

fn scan_options(options: &mut Options) -> Result<ScanOptions> {
    let default = ScanOptions::default();
    Ok(ScanOptions {
        // HBase's shell takes 0 and less for no limit and for the usual.
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
    u32::try_from(number.max(0)).or_else(|_| usage(format!("{name} is at most {}, not {number}", u32::MAX)))
}

/// How much of a cell is shown.
struct Lengths {
    max: Option<usize>,
}

impl Lengths {
    fn take(options: &mut Options) -> Result<Lengths> {
        Ok(Lengths { max: options.number("MAXLENGTH", 0)? })
    }

    /// What is shown is ASCII, so that it can be cut anywhere.
    fn cut(&self, mut shown: String) -> String {
        if let Some(max) = self.max {
            shown.truncate(max);
        }
        shown
    }
}

fn column_of(cell: &Cell<'_>) -> String {
    format!("{}:{}", binary(cell.family()), binary(cell.qualifier()))
}

fn content_of(cell: &Cell<'_>) -> String {
    let timestamp = date_time(cell.timestamp());
    match cell.kind().is_delete() {
        true => format!("timestamp={timestamp}, type={:?}", cell.kind()),
        false => format!("timestamp={timestamp}, value={}", binary(cell.value)),
    }
}

#[cfg(test)]
mod tests {
    use cell::query::TimeRange;
    use cell::{CellType, KeyValue};

    use super::*;
    use crate::shell::error::Position;
    use crate::shell::parser::parse;

    fn options(source: &str) -> Options {
        let statement = parse(&format!("scan {{{source}}}"), Position::START).unwrap().remove(0);
        Arguments::new("scan", statement.values).options().unwrap()
    }

    fn columns(source: &str) -> String {
        let selection = selection(&mut options(&format!("COLUMNS => {source}"))).unwrap();
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
        assert!(selection(&mut options("COLUMNS => [nil]")).is_err());
        assert!(selection(&mut options("COLUMNS => 'f', COLUMN => 'g'")).is_err());
    }

    #[test]
    fn a_scan_is_made_of_its_options() {
        let mut given = options(
            "STARTROW => 'a', STOPROW => \"b\\x00\", REVERSED => true, RAW => true, VERSIONS => 3, \
             TIMERANGE => [1, 9], LIMIT => 5, CACHE => 10, CACHE_BLOCKS => false, MAXLENGTH => 7",
        );
        let scan = scan_of(&mut given).unwrap();
        assert_eq!((&*scan.start_row, &*scan.stop_row), (&b"a"[..], &b"b\x00"[..]));
        assert!(scan.reversed && scan.raw && !scan.selection.cache_blocks);
        assert_eq!(
            (scan.selection.max_versions, scan.selection.time_range),
            (3, TimeRange { from: 1, to: 9 })
        );
        let scan_options = scan_options(&mut given).unwrap();
        assert_eq!((scan_options.limit, scan_options.caching), (5, 10));
        assert_eq!(Lengths::take(&mut given).unwrap().cut("0123456789".into()), "0123456");
        given.finish().unwrap();
    }

    #[test]
    fn no_limit_is_written_in_several_ways() {
        for source in ["", "LIMIT => -1", "LIMIT => 0", "CACHE => 0"] {
            let found = scan_options(&mut options(source)).unwrap();
            assert_eq!((found.limit, found.caching), (0, ScanOptions::default().caching), "{source}");
        }
        assert!(scan_options(&mut options("LIMIT => 4294967296")).is_err());
    }

    #[test]
    fn a_prefix_is_a_range_of_rows() {
        let range = |source: &str| {
            let scan = scan_of(&mut options(source)).unwrap();
            (scan.start_row, scan.include_start_row, scan.stop_row, scan.include_stop_row)
        };
        assert_eq!(range("ROWPREFIXFILTER => 'ab'"), ("ab".into(), true, "ac".into(), false));
        assert_eq!(
            range("ROWPREFIXFILTER => 'ab', REVERSED => true"),
            ("ac".into(), false, "ab".into(), true)
        );
        assert_eq!(range("ROWPREFIXFILTER => \"a\\xff\""), (b"a\xff"[..].into(), true, "b".into(), false));
        assert_eq!(range("ROWPREFIXFILTER => \"\\xff\""), (b"\xff"[..].into(), true, "".into(), false));
        assert!(scan_of(&mut options("ROWPREFIXFILTER => 'a', STARTROW => 'b'")).is_err());
    }

    #[test]
    fn cells_are_shown_as_hbase_shows_them() {
        let put = KeyValue::new(b"r", b"f", b"q\x00", 1_700_000_000_123, CellType::Put, b"v\xff");
        let put = put.view(0);
        assert_eq!(column_of(&put), "f:q\\x00");
        assert_eq!(content_of(&put), "timestamp=2023-11-14T22:13:20.123, value=v\\xFF");
        let delete = KeyValue::new(b"r", b"f", b"", 1, CellType::DeleteFamily, b"");
        assert_eq!(column_of(&delete.view(0)), "f:");
        assert_eq!(content_of(&delete.view(0)), "timestamp=1970-01-01T00:00:00.001, type=DeleteFamily");
    }
}
