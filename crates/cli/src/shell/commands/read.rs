//! Commands that read rows.

use std::sync::Arc;

use cell::query::{CellSelection, Get};
use client::Row;

use super::aggregate::count_by_servers;
use super::formatter::{CellFormatter, Converters, split_converter};
use super::selection::{family_columns, keys_only, parse_scan, scan_options, selection, take_hints};
use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::{Arguments, Column, Options, row_key};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::ShellSession;
use crate::shell::text::binary;
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "dml, reads",
    commands: &[
        Command {
            name: "get",
            arity: Arity::from(2),
            aliases: &[],
            summary: "Show all or some cells of a row",
            usage: "  grampus> get 't1', 'r1'\n  \
                    grampus> get 't1', 'r1', 'f1:q1'\n  \
                    grampus> get 't1', 'r1', 'f1:q1', 'f2'\n  \
                    grampus> get 't1', 'r1', {COLUMN => ['f1:q1', 'f2'], VERSIONS => 4}\n  \
                    grampus> get 't1', 'r1', {TIMERANGE => [1700000000000, 1700000001000]}\n  \
                    grampus> get 't1', 'r1', {FILTER => \"ValueFilter(=, 'binary:abc')\"}\n  \
                    grampus> get 't1', 'r1', 'f1:q1:toLong'\n\n\
                    Options: COLUMN or COLUMNS, VERSIONS, TIMESTAMP, TIMERANGE, FILTER, MAXLENGTH (characters shown per\n\
                    cell), FORMATTER (toString, toLong, toInt, .. of HBase's class Bytes).",
            run: |session, arguments| Box::pin(get(session, arguments)),
        },
        Command {
            name: "get_counter",
            arity: Arity::exactly(3),
            aliases: &[],
            summary: "Show a counter that incr wrote",
            usage: "  grampus> get_counter 't1', 'r1', 'f1:q1'",
            run: |session, arguments| Box::pin(get_counter(session, arguments)),
        },
        Command {
            name: "scan",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Show rows of a table in order",
            usage: "  grampus> scan 't1'\n  \
                    grampus> scan 't1', {STARTROW => 'a', STOPROW => 'm', LIMIT => 10}\n  \
                    grampus> scan 't1', {COLUMNS => ['f1:q1', 'f2'], VERSIONS => 3}\n  \
                    grampus> scan 't1', {ROWPREFIXFILTER => 'user-', REVERSED => true}\n  \
                    grampus> scan 't1', {FILTER => \"PrefixFilter('a') AND ValueFilter(=, 'substring:x')\"}\n  \
                    grampus> scan 't1', {RAW => true, VERSIONS => 10}\n\n\
                    Options: STARTROW, STOPROW (exclusive), ROWPREFIXFILTER, LIMIT, COLUMN or COLUMNS, VERSIONS,\n\
                    TIMESTAMP, TIMERANGE, REVERSED, FILTER, RAW (delete markers too), BATCH, MAXLENGTH, FORMATTER,\n\
                    CACHE, CACHE_BLOCKS, and options of HBase that do not affect the result.",
            run: |session, arguments| Box::pin(scan(session, arguments)),
        },
        Command {
            name: "count",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Count the rows of a table",
            usage: "  grampus> count 't1'\n  \
                    grampus> count 't1', 100000\n  \
                    grampus> count 't1', {INTERVAL => 10, STARTROW => 'a', STOPROW => 'm', COLUMNS => ['f1']}\n\n\
                    If only the table is given, servers count their rows, from metadata of files where possible.\n\
                    Otherwise, or if the server is HBase, servers send the key of each row, and the shell shows its\n\
                    progress every INTERVAL rows (default: 1000).",
            run: |session, arguments| Box::pin(count(session, arguments)),
        },
    ],
};

async fn get(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let row = arguments.bytes("the row")?;
    session.printer.header("COLUMN", "CELL")?;
    let row = row_key(row)?;
    let mut columns = Vec::new();
    while let Some(value) = arguments.next_plain() {
        columns.extend(value.into_elements());
    }
    let given = arguments.peek().cloned();
    let mut options = arguments.options()?;
    arguments.finish()?;
    if let Some(given) = given {
        refuse_bare_versions(&given)?;
    }
    let mut converters = Converters::take(&mut options)?;
    let mut selection = selection(&mut options, &mut converters)?;
    if !columns.is_empty() {
        selection.columns = family_columns(columns, &mut converters)?;
    }
    let shown = CellFormatter::new(&table, converters, &mut options)?;
    take_hints(&mut options)?;
    options.finish()?;

    let found = session
        .client
        .table(table)
        .get(&Get { row, selection: selection.into(), existence_only: false })
        .await?;
    for cell in &found.cells {
        let cell = cell.view(0);
        session.printer.pair(&shown.column(&cell)?, &shown.content(&cell)?)?;
    }
    session.printer.footer(u64::from(!found.is_empty()))?;
    Ok(Outcome::Done)
}

/// HBase's shell accepts `VERSIONS` and some other options only together with columns, times or
/// attributes.
fn refuse_bare_versions(given: &Value) -> Result<()> {
    const ALONE: &[&str] =
        &["MAXLENGTH", "FILTER", "CONSISTENCY", "REGION_REPLICA_ID", "FORMATTER", "FORMATTER_CLASS"];
    const ENOUGH: &[&str] = &["COLUMN", "COLUMNS", "TIMESTAMP", "TIMERANGE", "ATTRIBUTES", "AUTHORIZATIONS"];
    let Value::Hash(entries) = given else { return Ok(()) };
    let has = |known: &[&str], name: &Value| name.string().is_some_and(|name| known.contains(&name.as_str()));
    let rest = entries.iter().filter(|(name, _)| !has(ALONE, name)).cloned().collect::<Vec<_>>();
    match rest.is_empty() || rest.iter().any(|(name, _)| has(ENOUGH, name)) {
        true => Ok(()),
        false => usage(format!("Failed parse of {}, Hash", Value::Hash(rest).inspect())),
    }
}

async fn get_counter(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let row = row_key(arguments.bytes("the row")?)?;
    let Column { family, qualifier } = Column::parse(&arguments.bytes("the column")?)?;
    arguments.finish()?;
    let (qualifier, _) = split_converter(qualifier.unwrap_or_default());
    let columns = vec![cell::query::FamilyColumns { family, qualifiers: Some(vec![qualifier]) }];
    let selection = CellSelection { columns, ..CellSelection::default() };
    let found = session
        .client
        .table(table)
        .get(&Get { row, selection: selection.into(), existence_only: false })
        .await?;
    show_counter(session, &found)
}

/// Prints the counter for `incr` and `get_counter`.
pub(super) fn show_counter(session: &mut ShellSession, row: &Row) -> Result<Outcome> {
    let Some(cell) = row.cells.first() else {
        session.printer.line("No counter found at specified coordinates")?;
        return Ok(Outcome::Done);
    };
    let value = cell.view(0).value;
    match <[u8; 8]>::try_from(value) {
        Ok(bytes) => session.printer.line(&format!("COUNTER VALUE = {}", i64::from_be_bytes(bytes)))?,
        Err(_) => return usage(format!("Wrong length: {}, expected 8", value.len())),
    }
    Ok(Outcome::Done)
}

async fn scan(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    session.printer.header("ROW", "COLUMN+CELL")?;
    let mut options = arguments.options()?;
    arguments.finish()?;
    let mut converters = Converters::take(&mut options)?;
    let scan = parse_scan(&mut options, &mut converters)?;
    let shown = CellFormatter::new(&table, converters, &mut options)?;
    let scan_options = scan_options(&mut options)?;
    take_hints(&mut options)?;
    options.finish()?;

    let mut scanner = session.client.table(table).scan_with(scan, scan_options);
    let mut rows = 0;
    while let Some(row) = scanner.next().await? {
        rows += 1;
        let key = shown.row(row.key())?;
        for cell in &row.cells {
            let cell = cell.view(0);
            let content = format!("column={}, {}", shown.column(&cell)?, shown.content(&cell)?);
            session.printer.pair(&key, &content)?;
        }
    }
    session.printer.footer(rows)?;
    Ok(Outcome::Done)
}

async fn count(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let plain = arguments.next_plain();
    let mut options = arguments.options()?;
    arguments.finish()?;
    let is_plain = plain.is_none() && options.is_empty();
    let interval = interval(plain, &mut options)?;
    let cache_blocks = count_caches_blocks(&mut options)?;
    let mut converters = Converters::default();
    let mut scan = parse_scan(&mut options, &mut converters)?;
    let scan_options = scan_options(&mut options)?;
    take_hints(&mut options)?;
    options.finish()?;
    if is_plain && let Some(rows) = count_by_servers(&session.client.table(table.clone())).await? {
        session.printer.footer(rows)?;
        return Ok(Outcome::Value(rows.to_string()));
    }
    scan.selection.cache_blocks = cache_blocks;
    scan.selection.filter = Some(Arc::new(keys_only(scan.selection.filter.as_deref())));

    let mut scanner = session.client.table(table).scan_with(scan, scan_options);
    let mut rows: u64 = 0;
    while let Some(row) = scanner.next().await? {
        rows += 1;
        if rows.is_multiple_of(interval) {
            session.printer.line(&format!("Current count: {rows}, row: {}", binary(row.key())))?;
            session.printer.flush()?;
        }
    }
    session.printer.footer(rows)?;
    Ok(Outcome::Value(rows.to_string()))
}

fn interval(plain: Option<Value>, options: &mut Options) -> Result<u64> {
    match plain {
        None => Ok(options.number("INTERVAL", 1)?.unwrap_or(1000)),
        Some(value) => {
            match value.integer().and_then(|rows| u64::try_from(rows).ok()).filter(|rows| *rows > 0) {
                Some(rows) => Ok(rows),
                None => usage(format!("the interval of count must be a number of 1 or more, not {value}")),
            }
        }
    }
}

/// By default, `count` does not cache blocks: it reads them only once, and they would evict others.
fn count_caches_blocks(options: &mut Options) -> Result<bool> {
    let Some(value) = options.take("CACHE_BLOCKS") else { return Ok(false) };
    value.boolean().ok_or_else(|| {
        let wanted = "Expected CACHE_BLOCKS value to be a boolean or the string 'true' or 'false'";
        ShellError::Usage(wanted.into())
    })
}
