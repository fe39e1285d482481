//! Commands that change rows.

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};

use super::{Command, Group, Outcome};
use crate::shell::arguments::{Arguments, Column, row_key};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::Session;

pub(super) const GROUP: Group = Group {
    name: "dml, writes",
    commands: &[
        Command {
            name: "put",
            aliases: &[],
            summary: "Write a cell: table, row, column, value, and if need be a timestamp",
            usage: "  grampus> put 't1', 'r1', 'f1:q1', 'value'\n  \
                    grampus> put 't1', \"r\\x00\", 'f1:q1', 'value', 1700000000000",
            run: |session, arguments| Box::pin(put(session, arguments)),
        },
        Command {
            name: "delete",
            aliases: &[],
            summary: "Delete one version of a cell: table, row, column, and if need be a timestamp",
            usage: "  grampus> delete 't1', 'r1', 'f1:q1'\n  \
                    grampus> delete 't1', 'r1', 'f1:q1', 1700000000000\n\n\
                    Without a timestamp the newest version is deleted, and an older one shows again.",
            run: |session, arguments| Box::pin(delete(session, arguments, Versions::One)),
        },
        Command {
            name: "deleteall",
            aliases: &[],
            summary: "Delete all cells of a row, of a family or of a column, up to a timestamp",
            usage: "  grampus> deleteall 't1', 'r1'\n  \
                    grampus> deleteall 't1', 'r1', 'f1:q1'\n  \
                    grampus> deleteall 't1', 'r1', 'f1', 1700000000000\n  \
                    grampus> deleteall 't1', 'r1', '', 1700000000000",
            run: |session, arguments| Box::pin(delete(session, arguments, Versions::All)),
        },
    ],
};

async fn put(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let row = row_key(arguments.bytes("the row")?)?;
    let column = Column::parse(&arguments.bytes("the column")?)?;
    let value = arguments.bytes("the value")?;
    let timestamp = timestamp(&mut arguments)?;
    no_options("put", arguments)?;
    let qualifier = column.qualifier.unwrap_or_default();
    let cell = KeyValue::new(&row, &column.family, &qualifier, timestamp, CellType::Put, &value);
    session.client.table(table).mutate(&Mutation::put(row, vec![cell])).await?;
    Ok(Outcome::Done)
}

/// Which versions a delete takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Versions {
    One,
    All,
}

async fn delete(session: &mut Session, mut arguments: Arguments, versions: Versions) -> Result<Outcome> {
    let table = arguments.table()?;
    let row = row_key(arguments.bytes("the row")?)?;
    let column = match arguments.next_plain() {
        None => None,
        Some(value) => {
            let text = value.bytes().ok_or_else(|| ShellError::Usage(format!("{value} is no column")))?;
            (!text.is_empty()).then(|| Column::parse(&text)).transpose()?
        }
    };
    let timestamp = timestamp(&mut arguments)?;
    no_options(if versions == Versions::One { "delete" } else { "deleteall" }, arguments)?;
    let mutation = match (column, versions) {
        (Some(column), _) => marker(row, &column, versions, timestamp),
        (None, Versions::All) => Mutation { timestamp, ..Mutation::delete(row, Vec::new()) },
        (None, Versions::One) => return usage("delete wants a column; whole rows are deleted by deleteall"),
    };
    session.client.table(table).mutate(&mutation).await?;
    Ok(Outcome::Done)
}

/// The delete of a column, or without a qualifier of a family.
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
    match value.integer().filter(|timestamp| *timestamp >= 0) {
        Some(timestamp) => Ok(timestamp),
        None => usage(format!("a timestamp is a number of milliseconds, not {value}")),
    }
}

/// `ATTRIBUTES`, `VISIBILITY`, `TTL` and what else HBase's shell takes at the end of a change.
fn no_options(command: &str, mut arguments: Arguments) -> Result<()> {
    let options = arguments.options()?;
    arguments.finish()?;
    match options.into_rest().first() {
        Some((name, _)) => Err(ShellError::Unsupported(format!("{name} of {command}"))),
        None => Ok(()),
    }
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
