//! Commands that change rows.

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};

use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::{Arguments, Column, Options, row_key};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::ShellSession;
use crate::shell::text::binary;
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "dml, writes",
    commands: &[
        Command {
            name: "put",
            arity: Arity::between(4, 6),
            aliases: &[],
            summary: "Write a cell: table, row, column, value, and optionally a timestamp",
            usage: "  grampus> put 't1', 'r1', 'f1:q1', 'value'\n  \
                    grampus> put 't1', \"r\\x00\", 'f1:q1', 'value', 1700000000000\n  \
                    grampus> put 't1', 'r1', 'f1:q1', 'value', {TTL => 86400000}",
            run: |session, arguments| Box::pin(put(session, arguments)),
        },
        Command {
            name: "incr",
            arity: Arity::between(3, 5),
            aliases: &[],
            summary: "Increment a counter (by 1 by default), and show it",
            usage: "  grampus> incr 't1', 'r1', 'f1:q1'\n  grampus> incr 't1', 'r1', 'f1:q1', 10",
            run: |session, arguments| Box::pin(increment(session, arguments)),
        },
        Command {
            name: "append",
            arity: Arity::between(4, 5),
            aliases: &[],
            summary: "Append bytes to the value of a cell, and show it",
            usage: "  grampus> append 't1', 'r1', 'f1:q1', 'more'",
            run: |session, arguments| Box::pin(append(session, arguments)),
        },
        Command {
            name: "delete",
            arity: Arity::between(3, 5),
            aliases: &[],
            summary: "Delete one version of a cell: table, row, column, and optionally a timestamp",
            usage: "  grampus> delete 't1', 'r1', 'f1:q1'\n  \
                    grampus> delete 't1', 'r1', 'f1:q1', 1700000000000\n\n\
                    Without a timestamp, the newest version is deleted, and the next older one becomes visible.",
            run: |session, arguments| Box::pin(delete(session, arguments, Versions::One)),
        },
        Command {
            name: "deleteall",
            arity: Arity::between(2, 5),
            aliases: &[],
            summary: "Delete all cells of a row, family or column, optionally up to a timestamp",
            usage: "  grampus> deleteall 't1', 'r1'\n  \
                    grampus> deleteall 't1', 'r1', 'f1:q1'\n  \
                    grampus> deleteall 't1', 'r1', 'f1', 1700000000000\n  \
                    grampus> deleteall 't1', 'r1', '', 1700000000000\n  \
                    grampus> deleteall 't1', {ROWPREFIXFILTER => 'user-'}",
            run: |session, arguments| Box::pin(delete(session, arguments, Versions::All)),
        },
    ],
};

async fn put(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let row = row_key(arguments.bytes("the row")?)?;
    let column = column(&arguments.bytes("the column")?)?;
    let value = arguments.bytes("the value")?;
    let timestamp = timestamp(&mut arguments)?;
    let ttl_ms = change_options(&mut arguments)?;
    arguments.finish()?;
    let cell = new_cell(&row, &column, timestamp, &value);
    let put = Mutation { ttl_ms, ..Mutation::put(row, vec![cell]) };
    session.client.table(table).mutate(&put).await?;
    Ok(Outcome::Done)
}

fn new_cell(row: &[u8], column: &Column, timestamp: i64, value: &[u8]) -> KeyValue {
    let qualifier = column.qualifier.as_deref().unwrap_or_default();
    KeyValue::new(row, &column.family, qualifier, timestamp, CellType::Put, value)
}

async fn increment(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let row = row_key(arguments.bytes("the row")?)?;
    let column = column(&arguments.bytes("the column")?)?;
    let amount = match arguments.next_plain() {
        None => 1_i64,
        Some(value) => {
            value.integer().ok_or_else(|| ShellError::Usage(format!("{value} is not an integer")))?
        }
    };
    let ttl_ms = change_options(&mut arguments)?;
    arguments.finish()?;
    let cell = new_cell(&row, &column, LATEST_TIMESTAMP, &amount.to_be_bytes());
    let mutation = Mutation { ttl_ms, ..Mutation::increment(row, vec![cell]) };
    let changed = session.client.table(table).read_modify_write(mutation).await?;
    super::read::show_counter(session, &changed)
}

async fn append(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let row = row_key(arguments.bytes("the row")?)?;
    let column = column(&arguments.bytes("the column")?)?;
    let value = arguments.bytes("the value")?;
    let ttl_ms = change_options(&mut arguments)?;
    arguments.finish()?;
    let cell = new_cell(&row, &column, LATEST_TIMESTAMP, &value);
    let mutation = Mutation { ttl_ms, ..Mutation::append(row, vec![cell]) };
    let changed = session.client.table(table).read_modify_write(mutation).await?;
    if let Some(cell) = changed.cells.first() {
        session.printer.line(&format!("CURRENT VALUE = {}", binary(cell.view(0).value)))?;
    }
    Ok(Outcome::Done)
}

/// The versions that a delete removes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Versions {
    One,
    All,
}

/// Default number of rows that one request of `delete_prefix` deletes.
const PREFIX_CACHE: u32 = 100;

async fn delete(session: &mut ShellSession, mut arguments: Arguments, versions: Versions) -> Result<Outcome> {
    let table = arguments.table()?;
    let rows = match arguments.required("the row")? {
        Value::Hash(hash) => Err(Options::new("deleteall", hash)?),
        value => Ok(value.bytes().ok_or_else(|| ShellError::Usage(format!("{value} is not a row")))?),
    };
    let column = match arguments.next_plain() {
        None => None,
        Some(value) => {
            let text = value.bytes().ok_or_else(|| ShellError::Usage(format!("{value} is not a column")))?;
            (!text.is_empty()).then(|| column(&text)).transpose()?
        }
    };
    let timestamp = timestamp(&mut arguments)?;
    change_options(&mut arguments)?;
    arguments.finish()?;
    let table = session.client.table(table);
    let marked = |row: Bytes| match (&column, versions) {
        (Some(column), _) => marker(row, column, versions, timestamp),
        (None, _) => Mutation { timestamp, ..Mutation::delete(row, Vec::new()) },
    };
    match rows {
        Ok(row) => table.mutate(&marked(row_key(row)?)).await?,
        Err(options) => delete_prefix(&table, options, marked).await?,
    }
    Ok(Outcome::Done)
}

/// Deletes all rows with a prefix, a batch at a time.
async fn delete_prefix(
    table: &client::Table,
    mut options: Options,
    marked: impl Fn(Bytes) -> Mutation,
) -> Result<()> {
    let Some(prefix) = options.bytes("ROWPREFIXFILTER")? else {
        return usage("deleteall requires a row, or {ROWPREFIXFILTER => 'prefix'}");
    };
    let cache = options.number::<u32>("CACHE", 1)?.unwrap_or(PREFIX_CACHE);
    options.finish()?;
    let mut scanner = table.scan(super::selection::keys_of_prefix(prefix));
    let mut deletes = Vec::new();
    while let Some(row) = scanner.next().await? {
        deletes.push(marked(Bytes::copy_from_slice(row.key())));
        if deletes.len() >= cache as usize {
            table.mutate_all(std::mem::take(&mut deletes)).await?;
        }
    }
    table.mutate_all(deletes).await?;
    Ok(())
}

/// Parses a column. HBase's shell allows a converter after it, which is dropped.
fn column(text: &[u8]) -> Result<Column> {
    let Column { family, qualifier } = Column::parse(text)?;
    Ok(Column {
        family,
        qualifier: qualifier.map(|qualifier| super::formatter::split_converter(qualifier).0),
    })
}

/// The delete marker of a column, or of a family if there is no qualifier.
fn marker(row: Bytes, column: &Column, versions: Versions, timestamp: i64) -> Mutation {
    let kind = match (&column.qualifier, versions) {
        (Some(_), Versions::One) => CellType::Delete,
        (Some(_), Versions::All) => CellType::DeleteColumn,
        (None, Versions::One) => CellType::DeleteFamilyVersion,
        (None, Versions::All) => CellType::DeleteFamily,
    };
    let qualifier = column.qualifier.as_deref().unwrap_or_default();
    let cell = KeyValue::new(&row, &column.family, qualifier, timestamp, kind, &[]);
    Mutation::delete(row, vec![cell])
}

fn timestamp(arguments: &mut Arguments) -> Result<i64> {
    let Some(value) = arguments.next_plain() else { return Ok(LATEST_TIMESTAMP) };
    match value.integer() {
        Some(timestamp) if timestamp < 0 => usage(format!("Timestamp cannot be negative. ts={timestamp}")),
        Some(timestamp) => Ok(timestamp),
        None => usage(format!("a timestamp must be a number of milliseconds, not {value}")),
    }
}

/// Parses `TTL` and the other options at the end of a change. Returns the time to live in
/// milliseconds.
///
/// Attributes are for coprocessors, which do not exist here. As HBase without coprocessors does,
/// this accepts and ignores them.
fn change_options(arguments: &mut Arguments) -> Result<Option<i64>> {
    let mut options = arguments.options()?;
    let ttl_ms = options.number("TTL", 0)?;
    super::take_attributes(&mut options)?;
    options.refuse(&["VISIBILITY"])?;
    options.finish()?;
    Ok(ttl_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletes_have_hbases_four_markers() {
        let kind = |column: &str, versions| {
            let mutation = marker("r".into(), &Column::parse(column.as_bytes()).unwrap(), versions, 5);
            assert_eq!(mutation.row, "r");
            mutation.cells[0].view(0).kind()
        };
        assert_eq!(kind("f:q", Versions::One), CellType::Delete);
        assert_eq!(kind("f:q", Versions::All), CellType::DeleteColumn);
        assert_eq!(kind("f:", Versions::All), CellType::DeleteColumn);
        assert_eq!(kind("f", Versions::One), CellType::DeleteFamilyVersion);
        assert_eq!(kind("f", Versions::All), CellType::DeleteFamily);
    }
}
