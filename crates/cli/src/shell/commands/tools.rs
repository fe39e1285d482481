//! Commands about the files of tables.

use super::{Command, Group, Outcome};
use crate::shell::arguments::Arguments;
use crate::shell::error::{Result, ShellError};
use crate::shell::session::Session;

pub(super) const GROUP: Group = Group {
    name: "tools",
    commands: &[
        Command {
            name: "flush",
            aliases: &[],
            summary: "Write what a table has in memory to files",
            usage: "  grampus> flush 't1'",
            run: |session, arguments| Box::pin(flush(session, arguments)),
        },
        Command {
            name: "compact",
            aliases: &[],
            summary: "Ask for files of a table to be merged; goes on in the servers afterwards",
            usage: "  grampus> compact 't1'",
            run: |session, arguments| Box::pin(compact(session, arguments, false)),
        },
        Command {
            name: "major_compact",
            aliases: &[],
            summary: "Ask for all files of each store of a table to become one; goes on in the servers afterwards",
            usage: "  grampus> major_compact 't1'",
            run: |session, arguments| Box::pin(compact(session, arguments, true)),
        },
    ],
};

async fn flush(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    only_whole_tables("flush", arguments)?;
    session.client.admin().flush(&table).await?;
    Ok(Outcome::Done)
}

async fn compact(session: &mut Session, mut arguments: Arguments, major: bool) -> Result<Outcome> {
    let table = arguments.table()?;
    only_whole_tables(if major { "major_compact" } else { "compact" }, arguments)?;
    session.client.admin().compact(&table, major).await?;
    Ok(Outcome::Done)
}

/// HBase's shell takes a family, and a type, behind the table.
fn only_whole_tables(command: &str, mut arguments: Arguments) -> Result<()> {
    match arguments.next() {
        Some(value) => Err(ShellError::Unsupported(format!("{command} of a part of a table ({value})"))),
        None => arguments.finish(),
    }
}
