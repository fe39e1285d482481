//! Commands about regions: split, merge, open, close, move, and related chores of the master.

use bytes::Bytes;
use cell::region::ServerName;
use proto::MasterSwitchType;

use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::{Arguments, table_name};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::ShellSession;
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "regions",
    commands: &[
        Command {
            name: "split",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Split a region, or the regions of a table, in the middle or at a row",
            usage: "  grampus> split 't1'\n  grampus> split 't1', 'row5'\n  \
                    grampus> split 't1,,1700000000000.a2331f8e4bb5d76a5eee741e708341a5.', 'row5'",
            run: |session, arguments| Box::pin(split(session, arguments)),
        },
        Command {
            name: "merge_region",
            arity: Arity::from(1),
            aliases: &[],
            summary: "Merge regions, given by encoded names; they must be adjacent unless the merge is forced",
            usage: "  grampus> merge_region 'a2331f8e4bb5d76a5eee741e708341a5', '52ff2a502c1b62e147ef165a0803d6b2'\n  \
                    grampus> merge_region ['a2331f8e', '52ff2a50', '69b13b3b'], true",
            run: |session, arguments| Box::pin(merge(session, arguments)),
        },
        Command {
            name: "splitormerge_switch",
            arity: Arity::exactly(2),
            aliases: &[],
            summary: "Enable or disable splits or merges, and show the previous setting",
            usage: "  grampus> splitormerge_switch 'SPLIT', false\n  grampus> splitormerge_switch 'MERGE', true",
            run: |session, arguments| Box::pin(allow(session, arguments)),
        },
        Command {
            name: "splitormerge_enabled",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Show whether splits or merges are enabled",
            usage: "  grampus> splitormerge_enabled 'SPLIT'\n  grampus> splitormerge_enabled 'MERGE'",
            run: |session, arguments| Box::pin(is_allowed(session, arguments)),
        },
        Command {
            name: "assign",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Open a closed region, given by full or encoded name",
            usage: "  grampus> assign 'a2331f8e4bb5d76a5eee741e708341a5'",
            run: |session, arguments| Box::pin(assign(session, arguments)),
        },
        Command {
            name: "unassign",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Close a region, given by full or encoded name",
            usage: "  grampus> unassign 'a2331f8e4bb5d76a5eee741e708341a5'",
            run: |session, arguments| Box::pin(unassign(session, arguments)),
        },
        Command {
            name: "move",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Move a region to the given server, or to any other server",
            usage: "  grampus> move 'a2331f8e4bb5d76a5eee741e708341a5'\n  \
                    grampus> move 'a2331f8e4bb5d76a5eee741e708341a5', 'host1,16020,1700000000000'",
            run: |session, arguments| Box::pin(move_region(session, arguments)),
        },
        Command {
            name: "catalogjanitor_run",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "Run the catalog janitor now: archive split and merged regions that are no longer needed",
            usage: "  grampus> catalogjanitor_run",
            run: |session, arguments| Box::pin(run_janitor(session, arguments)),
        },
        Command {
            name: "catalogjanitor_switch",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Enable or disable the periodic catalog janitor, and show the previous setting",
            usage: "  grampus> catalogjanitor_switch true",
            run: |session, arguments| Box::pin(switch_janitor(session, arguments)),
        },
        Command {
            name: "catalogjanitor_enabled",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "Show whether the periodic catalog janitor is enabled",
            usage: "  grampus> catalogjanitor_enabled",
            run: |session, arguments| Box::pin(is_janitor_enabled(session, arguments)),
        },
        Command {
            name: "cleaner_chore_run",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "Run the cleaner now: delete archived files and old logs that are no longer needed",
            usage: "  grampus> cleaner_chore_run",
            run: |session, arguments| Box::pin(run_cleaner(session, arguments)),
        },
        Command {
            name: "cleaner_chore_switch",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Enable or disable the periodic cleaner, and show the previous setting",
            usage: "  grampus> cleaner_chore_switch true",
            run: |session, arguments| Box::pin(switch_cleaner(session, arguments)),
        },
        Command {
            name: "cleaner_chore_enabled",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "Show whether the periodic cleaner is enabled",
            usage: "  grampus> cleaner_chore_enabled",
            run: |session, arguments| Box::pin(is_cleaner_enabled(session, arguments)),
        },
    ],
};

async fn split(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = arguments.bytes("a table or a region")?;
    let row = arguments.next().and_then(|value| value.bytes()).map(Bytes::from);
    arguments.finish()?;
    let admin = session.client.admin();
    // Try the name as a region's first: a full one contains commas, which a table's cannot. An
    // encoded one may also be the name of a table.
    if let Some(region) = admin.find_region(&name).await? {
        refuse_start(&region.start_key, row.as_ref())?;
        admin.split_region(&region, row).await?;
        return Ok(Outcome::Done);
    }
    let table = table_name(&name)?;
    if !admin.is_enabled(&table).await? {
        return Err(client::Error::TableNotEnabled(table).into());
    }
    for region in admin.regions(&table).await? {
        if row.as_ref().is_none_or(|row| region.contains(row)) {
            refuse_start(&region.start_key, row.as_ref())?;
            admin.split_region(&region, row.clone()).await?;
        }
    }
    Ok(Outcome::Done)
}

/// HBase's client makes the same check before it calls the server.
fn refuse_start(start: &Bytes, row: Option<&Bytes>) -> Result<()> {
    match row {
        Some(row) if row == start => {
            Err(ShellError::Refused("should not give a splitkey which equals to startkey!".into()))
        }
        _ => Ok(()),
    }
}

async fn merge(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let (mut names, mut forcible) = (Vec::new(), false);
    while let Some(value) = arguments.next() {
        match value {
            Value::Boolean(flag) => forcible = flag,
            Value::Array(values) => names.extend(values.iter().filter_map(Value::bytes).map(Bytes::from)),
            value => names.extend(value.bytes().map(Bytes::from)),
        }
    }
    if names.len() < 2 {
        return usage("Must pass at least 2 regions to merge");
    }
    let admin = session.client.admin();
    for name in &names {
        if admin.find_region(name).await?.is_none() {
            let name = name.escape_ascii();
            return Err(ShellError::Refused(format!("Can't invoke merge on unknown region {name}")));
        }
    }
    admin.merge_regions(&names, forcible).await?;
    Ok(Outcome::Done)
}

fn switch_type(arguments: &mut Arguments) -> Result<MasterSwitchType> {
    let kind = arguments.next().and_then(|value| value.string()).unwrap_or_default();
    match kind.as_str() {
        "SPLIT" => Ok(MasterSwitchType::Split),
        "MERGE" => Ok(MasterSwitchType::Merge),
        _ => usage("only SPLIT or MERGE accepted for type!"),
    }
}

pub(super) fn flag(arguments: &mut Arguments) -> Result<bool> {
    let value = arguments.required("true or false")?;
    value.boolean().ok_or_else(|| ShellError::Usage(format!("expected true or false, not {value}")))
}

/// Prints a flag, which is also the command's value.
pub(super) fn show(session: &mut ShellSession, flag: bool) -> Result<Outcome> {
    session.printer.line(&flag.to_string())?;
    Ok(Outcome::Value(flag.to_string()))
}

async fn allow(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let kind = switch_type(&mut arguments)?;
    let enabled = flag(&mut arguments)?;
    arguments.finish()?;
    let was = session.client.admin().allow(kind, enabled).await?;
    show(session, was)
}

async fn is_allowed(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let kind = switch_type(&mut arguments)?;
    arguments.finish()?;
    let is_allowed = session.client.admin().is_allowed(kind).await?;
    show(session, is_allowed)
}

async fn assign(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = Bytes::from(arguments.bytes("a region")?);
    arguments.finish()?;
    session.client.admin().assign(&name).await?;
    Ok(Outcome::Done)
}

async fn unassign(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = Bytes::from(arguments.bytes("a region")?);
    // The force flag has no effect since HBase 2.
    arguments.next();
    arguments.finish()?;
    session.client.admin().unassign(&name).await?;
    Ok(Outcome::Done)
}

async fn move_region(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = Bytes::from(arguments.bytes("a region")?);
    let server = match arguments.next().and_then(|value| value.string()) {
        None => None,
        Some(text) => match ServerName::parse(&text) {
            Some(server) => Some(server),
            None => return usage(format!("invalid server name {text}: expected host,port,startcode")),
        },
    };
    arguments.finish()?;
    session.client.admin().move_region(&name, server.as_ref()).await?;
    Ok(Outcome::Done)
}

async fn run_janitor(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    Ok(Outcome::Value(session.client.admin().run_janitor().await?.to_string()))
}

async fn switch_janitor(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let enable = flag(&mut arguments)?;
    arguments.finish()?;
    let was = session.client.admin().enable_janitor(enable).await?;
    show(session, was)
}

async fn is_janitor_enabled(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let is_enabled = session.client.admin().is_janitor_enabled().await?;
    show(session, is_enabled)
}

async fn run_cleaner(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    Ok(Outcome::Value(session.client.admin().run_cleaner().await?.to_string()))
}

async fn switch_cleaner(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let enable = flag(&mut arguments)?;
    arguments.finish()?;
    let was = session.client.admin().enable_cleaner(enable).await?;
    show(session, was)
}

async fn is_cleaner_enabled(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let is_enabled = session.client.admin().is_cleaner_enabled().await?;
    show(session, is_enabled)
}
