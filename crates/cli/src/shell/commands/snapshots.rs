//! Commands about snapshots.

use cell::schema::TableName;
use proto::SnapshotDescription;
use wire::meta::TableState;

use super::{Arity, Command, Group, Outcome, pattern, regions};
use crate::shell::arguments::{Arguments, table_name};
use crate::shell::error::{Result, ShellError};
use crate::shell::session::ShellSession;
use crate::shell::text::ruby_time;
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "snapshots",
    commands: &[
        Command {
            name: "snapshot",
            arity: Arity::from(2),
            aliases: &[],
            summary: "Take a snapshot of a table",
            usage: "  grampus> snapshot 't1', 's1'\n  \
                    grampus> snapshot 'ns1:t1', 's1', {SKIP_FLUSH => true}\n  \
                    grampus> snapshot 't1', 's1', {TTL => 86400}",
            run: |session, arguments| Box::pin(take(session, arguments)),
        },
        Command {
            name: "clone_snapshot",
            arity: Arity::between(2, 3),
            aliases: &[],
            summary: "Create a table from a snapshot, without copying data",
            usage: "  grampus> clone_snapshot 's1', 't2'",
            run: |session, arguments| Box::pin(clone(session, arguments)),
        },
        Command {
            name: "restore_snapshot",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Restore a disabled table from a snapshot",
            usage: "  grampus> restore_snapshot 's1'",
            run: |session, arguments| Box::pin(restore(session, arguments)),
        },
        Command {
            name: "list_snapshots",
            arity: Arity::between(0, 1),
            aliases: &[],
            summary: "List snapshots, optionally those whose names match a regular expression",
            usage: "  grampus> list_snapshots\n  grampus> list_snapshots 'abc.*'",
            run: |session, arguments| Box::pin(list(session, arguments)),
        },
        Command {
            name: "list_table_snapshots",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "List snapshots of tables whose names match a regular expression",
            usage: "  grampus> list_table_snapshots 't1'\n  grampus> list_table_snapshots 'abc.*', 's.*'",
            run: |session, arguments| Box::pin(list_by_table(session, arguments)),
        },
        Command {
            name: "delete_snapshot",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Delete a snapshot; tables cloned from it remain",
            usage: "  grampus> delete_snapshot 's1'",
            run: |session, arguments| Box::pin(delete(session, arguments)),
        },
        Command {
            name: "snapshot_cleanup_switch",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Enable or disable the removal of expired snapshots; shows the previous setting",
            usage: "  grampus> snapshot_cleanup_switch true\n  grampus> snapshot_cleanup_switch false",
            run: |session, arguments| Box::pin(switch_cleanup(session, arguments)),
        },
        Command {
            name: "snapshot_cleanup_enabled",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "Show whether expired snapshots are removed",
            usage: "  grampus> snapshot_cleanup_enabled",
            run: |session, arguments| Box::pin(is_cleanup_enabled(session, arguments)),
        },
    ],
};

fn name(arguments: &mut Arguments) -> Result<String> {
    String::from_utf8(arguments.bytes("the name of a snapshot")?)
        .map_err(|_| ShellError::Usage("the name of a snapshot must be UTF-8".into()))
}

async fn take(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let (table, name) = (arguments.table()?, name(&mut arguments)?);
    check_name(&name)?;
    let given = arguments.peek().map(Value::inspect);
    let mut options = arguments.options()?;
    arguments.finish()?;
    let skip_flush = options.boolean("SKIP_FLUSH")?.unwrap_or(false);
    let ttl_s = options.number("TTL", 0)?.unwrap_or(0);
    options.refuse(&["MAX_FILESIZE"])?;
    options.finish()?;
    session.client.admin().snapshot(&name, &table, skip_flush, ttl_s).await?;
    // At its prompt, HBase's shell shows the options again.
    Ok(given.map_or(Outcome::Done, |options| Outcome::Value(format!("[{options}]"))))
}

/// Checks the name of a snapshot. The rules are those of tables, but the messages are different.
fn check_name(name: &str) -> Result<()> {
    let legal = TableName::new(cell::schema::DEFAULT_NAMESPACE, name);
    legal.map(|_| ()).map_err(|error| {
        ShellError::Usage(error.to_string().replace("User-space table qualifiers", "Snapshot qualifiers"))
    })
}

async fn clone(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let (name, table) = (name(&mut arguments)?, arguments.table()?);
    let mut options = arguments.options()?;
    arguments.finish()?;
    options.refuse(&["RESTORE_ACL", "CLONE_SFT"])?;
    options.finish()?;
    let admin = session.client.admin();
    if admin.table_exists(&table).await? {
        return Err(ShellError::Refused(format!("Table already exists: {table}!")));
    }
    admin.restore_snapshot(&name, &table).await?;
    Ok(Outcome::Done)
}

async fn restore(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = name(&mut arguments)?;
    let mut options = arguments.options()?;
    arguments.finish()?;
    options.refuse(&["RESTORE_ACL"])?;
    options.finish()?;
    let admin = session.client.admin();
    let found = admin.list_snapshots().await?.into_iter().find(|snapshot| snapshot.name == name);
    let Some(snapshot) = found else {
        return Err(ShellError::Refused(format!("Unable to find the table name for snapshot={name}")));
    };
    let table = snapshot_table(&snapshot)?;
    if admin.table_state(&table).await? == Some(TableState::Enabled) {
        return Err(ShellError::Refused(format!("Table {table} should be disabled!")));
    }
    admin.restore_snapshot(&name, &table).await?;
    Ok(Outcome::Done)
}

fn snapshot_table(snapshot: &SnapshotDescription) -> Result<TableName> {
    table_name(snapshot.table().as_bytes())
}

async fn list(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let wanted = pattern(&mut arguments)?;
    arguments.finish()?;
    let mut found = session.client.admin().list_snapshots().await?;
    found.retain(|snapshot| wanted.is_match(&snapshot.name));
    show(session, &found)
}

async fn list_by_table(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let (tables, names) = (pattern(&mut arguments)?, pattern(&mut arguments)?);
    arguments.finish()?;
    let mut found = session.client.admin().list_snapshots().await?;
    found.retain(|snapshot| tables.is_match(snapshot.table()) && names.is_match(&snapshot.name));
    show(session, &found)
}

fn show(session: &mut ShellSession, found: &[SnapshotDescription]) -> Result<Outcome> {
    session.printer.header("SNAPSHOT", "TABLE + CREATION TIME")?;
    for snapshot in found {
        let time = ruby_time(snapshot.creation_time());
        session.printer.pair(&snapshot.name, &format!("{} ({time})", snapshot.table()))?;
    }
    session.printer.footer(found.len() as u64)?;
    let names: Vec<String> = found.iter().map(|snapshot| format!("\"{}\"", snapshot.name)).collect();
    Ok(Outcome::Value(format!("[{}]", names.join(", "))))
}

async fn delete(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = name(&mut arguments)?;
    arguments.finish()?;
    session.client.admin().delete_snapshot(&name).await?;
    Ok(Outcome::Done)
}

async fn switch_cleanup(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let enable = regions::flag(&mut arguments)?;
    arguments.finish()?;
    let was = session.client.admin().enable_snapshot_cleanup(enable).await?;
    regions::show(session, was)
}

async fn is_cleanup_enabled(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let is_enabled = session.client.admin().is_snapshot_cleanup_enabled().await?;
    regions::show(session, is_enabled)
}
