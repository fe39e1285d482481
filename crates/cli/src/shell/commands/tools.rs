//! Commands about the files of tables.

use bytes::Bytes;
use cell::region::RegionInfo;

use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::Arguments;
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::Session;
use crate::shell::text::binary;

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
        Command {
            name: "rit",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "List regions in transition, and why a region cannot be opened",
            usage: "  grampus> rit",
            run: |session, arguments| Box::pin(in_transition(session, arguments)),
        },
    ],
};

async fn in_transition(session: &mut Session, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let regions = session.client.admin().regions_in_transition().await?;
    let now_ms = session.env.clock.now_ms();
    for state in &regions {
        session.printer.row(&described(state, now_ms))?;
    }
    session.printer.footer(regions.len() as u64)?;
    Ok(Outcome::Done)
}

/// A region as HBase's shell shows it; the reason is only there with Grampus.
fn described(state: &proto::RegionState, now_ms: u64) -> String {
    let name = match RegionInfo::try_from(&state.region_info) {
        Ok(region) => binary(&region.name()),
        Err(error) => error.to_string(),
    };
    let seconds = now_ms.saturating_sub(state.stamp()) / 1000;
    let reason = state.failure.as_ref().map_or(String::new(), |failure| format!(", reason={failure}"));
    format!("{name} state={}, {seconds}s ago{reason}", state.state().as_str_name())
}

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
