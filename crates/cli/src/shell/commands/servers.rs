//! Commands about region servers: the balancer, decommissioning, and lists of servers.

use cell::region::ServerName;
use client::admin::Admin;

use super::namespaces::show_names;
use super::regions::{flag, show};
use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::Arguments;
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::ShellSession;
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "servers",
    commands: &[
        Command {
            name: "balancer",
            arity: Arity::between(0, 2),
            aliases: &[],
            summary: "Balance the regions over the servers now; with 'dry_run', only plan the moves",
            usage: "  grampus> balancer\n  grampus> balancer 'dry_run'",
            run: |session, arguments| Box::pin(balance(session, arguments)),
        },
        Command {
            name: "balance_switch",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Enable or disable the balancer, and show the previous setting",
            usage: "  grampus> balance_switch true",
            run: |session, arguments| Box::pin(switch_balancer(session, arguments)),
        },
        Command {
            name: "balancer_enabled",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "Show whether the balancer is enabled",
            usage: "  grampus> balancer_enabled",
            run: |session, arguments| Box::pin(is_balancer_enabled(session, arguments)),
        },
        Command {
            name: "decommission_regionservers",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Give servers no more regions; with true, also move their regions to other servers",
            usage: "  grampus> decommission_regionservers 'host1,16020'\n  \
                    grampus> decommission_regionservers ['host1', 'host2,16020,1700000000000'], true",
            run: |session, arguments| Box::pin(decommission(session, arguments)),
        },
        Command {
            name: "recommission_regionserver",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Let a decommissioned server have regions again",
            usage: "  grampus> recommission_regionserver 'host1,16020,1700000000000'",
            run: |session, arguments| Box::pin(recommission(session, arguments)),
        },
        Command {
            name: "list_decommissioned_regionservers",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "List the decommissioned servers",
            usage: "  grampus> list_decommissioned_regionservers",
            run: |session, arguments| Box::pin(list_decommissioned(session, arguments)),
        },
        Command {
            name: "list_liveservers",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "List the live servers",
            usage: "  grampus> list_liveservers",
            run: |session, arguments| Box::pin(list_live(session, arguments)),
        },
        Command {
            name: "list_deadservers",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "List the dead servers",
            usage: "  grampus> list_deadservers",
            run: |session, arguments| Box::pin(list_dead(session, arguments)),
        },
        Command {
            name: "clear_deadservers",
            arity: Arity::from(0),
            aliases: &[],
            summary: "No longer list dead servers: the given ones, or all; shows those that are still listed",
            usage: "  grampus> clear_deadservers\n  grampus> clear_deadservers 'host1,16020,1700000000000'",
            run: |session, arguments| Box::pin(clear_dead(session, arguments)),
        },
        Command {
            name: "tiers",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "Show the storage tiers: space, health, queue and speed of each volume",
            usage: "  grampus> tiers",
            run: |session, arguments| Box::pin(tiers(session, arguments)),
        },
    ],
};

async fn tiers(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let volumes = crate::tiers::volumes(&session.client).await?;
    for line in crate::tiers::lines(&volumes, false) {
        session.printer.line(&line)?;
    }
    Ok(Outcome::Done)
}

async fn balance(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let mut is_dry = false;
    while let Some(value) = arguments.next() {
        match value.string().as_deref() {
            Some("dry_run") => is_dry = true,
            // The balancer never runs while regions are in transition.
            Some("ignore_rit") => {}
            _ => return usage(format!("Invalid argument {value}.")),
        }
    }
    arguments.finish()?;
    let balanced = session.client.admin().balance(is_dry).await?;
    if balanced.moves_calculated > 0 {
        let (calculated, executed) = (balanced.moves_calculated, balanced.moves_executed);
        session.printer.line(&format!("Moves calculated: {calculated}, moves executed: {executed}"))?;
    }
    show(session, balanced.ran)
}

async fn switch_balancer(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let on = flag(&mut arguments)?;
    arguments.finish()?;
    let was = session.client.admin().enable_balancer(on).await?;
    session.printer.line(&format!("Previous balancer state : {was}"))?;
    Ok(Outcome::Value(was.to_string()))
}

async fn is_balancer_enabled(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let is_enabled = session.client.admin().is_balancer_enabled().await?;
    show(session, is_enabled)
}

async fn decommission(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let given = match arguments.required("a server or an array of servers")? {
        Value::Array(values) => values,
        value => vec![value],
    };
    let offload = match arguments.peek() {
        Some(_) => flag(&mut arguments)?,
        None => false,
    };
    arguments.finish()?;
    let (admin, mut servers) = (session.client.admin(), Vec::new());
    for value in given {
        servers.extend(live_servers(&admin, &value).await?);
    }
    admin.decommission_servers(&servers, offload).await?;
    Ok(Outcome::Done)
}

async fn recommission(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let value = arguments.required("a server")?;
    // The regions to load on it again: the balancer moves regions there.
    arguments.next();
    arguments.finish()?;
    let admin = session.client.admin();
    let servers = live_servers(&admin, &value).await?;
    let [server] = &servers[..] else {
        return usage(format!("{value} is not one server: give host,port,startcode"));
    };
    admin.recommission_server(server).await?;
    Ok(Outcome::Done)
}

async fn list_decommissioned(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let servers = session.client.admin().decommissioned_servers().await?;
    list(session, "DECOMMISSIONED REGION SERVERS", &servers)
}

async fn list_live(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let status = session.client.admin().cluster_status().await?;
    let servers: Vec<ServerName> = status.servers.into_iter().map(|server| server.server).collect();
    list(session, "SERVERNAME", &servers)
}

async fn list_dead(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let status = session.client.admin().cluster_status().await?;
    list(session, "SERVERNAME", &status.dead_servers)
}

async fn clear_dead(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let mut servers = Vec::new();
    while let Some(value) = arguments.next() {
        match value {
            Value::Array(values) => {
                servers.extend(values.iter().map(server_name).collect::<Result<Vec<_>>>()?);
            }
            value => servers.push(server_name(&value)?),
        }
    }
    let admin = session.client.admin();
    if servers.is_empty() {
        servers = admin.cluster_status().await?.dead_servers;
    }
    let left = admin.clear_dead_servers(&servers).await?;
    if left.is_empty() {
        session.printer.line("true")?;
        return Ok(Outcome::Value("[]".into()));
    }
    list(session, "SERVERNAME", &left)
}

fn list(session: &mut ShellSession, head: &str, servers: &[ServerName]) -> Result<Outcome> {
    session.printer.head(head)?;
    show_names(session, servers.iter().map(ToString::to_string).collect())?;
    Ok(Outcome::Done)
}

fn server_name(value: &Value) -> Result<ServerName> {
    let text = value.string().unwrap_or_default();
    ServerName::parse(&text)
        .ok_or_else(|| ShellError::Usage(format!("invalid server name {text}: expected host,port,startcode")))
}

/// The live servers that are meant by `host`, `host,port` or `host,port,startcode`.
async fn live_servers(admin: &Admin, value: &Value) -> Result<Vec<ServerName>> {
    let text = value.string().unwrap_or_default();
    let status = admin.cluster_status().await?;
    let servers = status.servers.into_iter().map(|server| server.server);
    let found: Vec<ServerName> = servers.filter(|server| is_meant(server, &text)).collect();
    match found.is_empty() {
        true => Err(ShellError::Refused(format!("no live server is named {text:?}; see list_liveservers"))),
        false => Ok(found),
    }
}

fn is_meant(server: &ServerName, text: &str) -> bool {
    let name = server.to_string();
    name == text || name.strip_prefix(text).is_some_and(|rest| rest.starts_with(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_meant_by_whole_parts_of_their_names() {
        let server = ServerName { host: "host1".into(), port: 16020, start_code: 7 };
        for text in ["host1", "host1,16020", "host1,16020,7"] {
            assert!(is_meant(&server, text), "{text}");
        }
        for text in ["", "host", "host1,160", "host1,16020,", "host1,16020,77", "16020"] {
            assert!(!is_meant(&server, text), "{text}");
        }
    }
}
