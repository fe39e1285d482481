//! Commands about the files of tables.

use bytes::Bytes;

use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::Arguments;
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::Session;

pub(super) const GROUP: Group = Group {
    name: "tools",
    commands: &[
        Command {
            name: "flush",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Write what a table has in memory to files",
            usage: "  grampus> flush 't1'\n  grampus> flush 't1', 'f1'",
            run: |session, arguments| Box::pin(flush(session, arguments)),
        },
        Command {
            name: "compact",
            arity: Arity::between(1, 3),
            aliases: &[],
            summary: "Ask for files of a table to be merged; goes on in the servers afterwards",
            usage: "  grampus> compact 't1'\n  grampus> compact 't1', 'f1'",
            run: |session, arguments| Box::pin(compact(session, arguments, false)),
        },
        Command {
            name: "major_compact",
            arity: Arity::between(1, 3),
            aliases: &[],
            summary: "Ask for all files of each store of a table to become one; goes on in the servers afterwards",
            usage: "  grampus> major_compact 't1'\n  grampus> major_compact 't1', 'f1'",
            run: |session, arguments| Box::pin(compact(session, arguments, true)),
        },
    ],
};

async fn flush(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let family = arguments.next().and_then(|value| value.bytes()).map(Bytes::from);
    arguments.finish()?;
    unless_disabled(session.client.admin().flush_stores(&table, family.as_ref()).await)
}

async fn compact(session: &mut Session, mut arguments: Arguments, major: bool) -> Result<Outcome> {
    let table = arguments.table()?;
    let family = arguments.next().and_then(|value| value.bytes()).map(Bytes::from);
    match arguments.next().map(|kind| kind.string().unwrap_or_default()).as_deref() {
        None | Some("NORMAL") => {}
        Some("MOB") => return Err(ShellError::Unsupported("compaction of MOB files".into())),
        Some(_) => return usage("only NORMAL or MOB accepted for type!"),
    }
    arguments.finish()?;
    unless_disabled(session.client.admin().compact_stores(&table, family.as_ref(), major).await)
}

/// A disabled table has nothing in memory, and is not compacted: to HBase's shell that is no failure.
fn unless_disabled(outcome: client::Result<()>) -> Result<Outcome> {
    match outcome {
        Ok(()) | Err(client::Error::TableNotEnabled(_)) => Ok(Outcome::Done),
        Err(error) => Err(error.into()),
    }
}
