//! Commands about the store files of tables.

use bytes::Bytes;
use cell::region::RegionInfo;

use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::Arguments;
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::ShellSession;
use crate::shell::text::binary;

pub(super) const GROUP: Group = Group {
    name: "tools",
    commands: &[
        Command {
            name: "flush",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Flush a table's memstores to files",
            usage: "  grampus> flush 't1'\n  grampus> flush 't1', 'f1'",
            run: |session, arguments| Box::pin(flush(session, arguments)),
        },
        Command {
            name: "compact",
            arity: Arity::between(1, 3),
            aliases: &[],
            summary: "Request a compaction of a table, which runs in the background",
            usage: "  grampus> compact 't1'\n  grampus> compact 't1', 'f1'",
            run: |session, arguments| Box::pin(compact(session, arguments, false)),
        },
        Command {
            name: "major_compact",
            arity: Arity::between(1, 3),
            aliases: &[],
            summary: "Request a major compaction of a table (one file per store), which runs in the background",
            usage: "  grampus> major_compact 't1'\n  grampus> major_compact 't1', 'f1'",
            run: |session, arguments| Box::pin(compact(session, arguments, true)),
        },
        Command {
            name: "rit",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "List regions in transition, with the reason if one cannot be opened",
            usage: "  grampus> rit",
            run: |session, arguments| Box::pin(in_transition(session, arguments)),
        },
    ],
};

async fn in_transition(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let regions = session.client.admin().regions_in_transition().await?;
    let now_ms = session.env.clock.now_ms();
    for state in &regions {
        session.printer.row(&described(state, now_ms))?;
    }
    session.printer.footer(regions.len() as u64)?;
    Ok(Outcome::Done)
}

/// Formats a region as HBase's shell does. Only Grampus reports a reason.
fn described(state: &proto::RegionState, now_ms: u64) -> String {
    let name = match RegionInfo::try_from(&state.region_info) {
        Ok(region) => binary(&region.name()),
        Err(error) => error.to_string(),
    };
    let seconds = now_ms.saturating_sub(state.stamp()) / 1000;
    let reason = state.failure.as_ref().map_or(String::new(), |failure| format!(", reason={failure}"));
    format!("{name} state={}, {seconds}s ago{reason}", state.state().as_str_name())
}

async fn flush(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let family = arguments.next().and_then(|value| value.bytes()).map(Bytes::from);
    arguments.finish()?;
    unless_disabled(session.client.admin().flush_stores(&table, family.as_ref()).await)
}

async fn compact(session: &mut ShellSession, mut arguments: Arguments, major: bool) -> Result<Outcome> {
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

/// A disabled table has no memstores and is not compacted. HBase's shell does not treat this as a
/// failure.
fn unless_disabled(outcome: client::Result<()>) -> Result<Outcome> {
    match outcome {
        Ok(()) | Err(client::Error::TableNotEnabled(_)) => Ok(Outcome::Done),
        Err(error) => Err(error.into()),
    }
}
