//! Commands about the shell and the cluster as a whole.

use client::admin::{ClusterStatus, ServerStatus};

use super::{Arity, Command, GROUPS, Group, Outcome, find, is_unsupported};
use crate::shell::arguments::Arguments;
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::output::Printer;
use crate::shell::session::ShellSession;

pub(super) const GROUP: Group = Group {
    name: "general",
    commands: &[
        Command {
            name: "help",
            arity: Arity::between(0, 1),
            aliases: &[],
            summary: "List all commands, or show the usage of one",
            usage: "  grampus> help\n  grampus> help 'scan'",
            run: |session, arguments| Box::pin(async { help(session, arguments) }),
        },
        Command {
            name: "status",
            arity: Arity::between(0, 2),
            aliases: &[],
            summary: "Show the state of the cluster: 'summary' (default) or 'simple'",
            usage: "  grampus> status\n  grampus> status 'simple'",
            run: |session, arguments| Box::pin(status(session, arguments)),
        },
        Command {
            name: "version",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "Show the version of this program",
            usage: "  grampus> version",
            run: |session, arguments| Box::pin(async { version(session, arguments) }),
        },
        Command {
            name: "whoami",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "Show the user name that is sent to servers",
            usage: "  grampus> whoami",
            run: |session, arguments| Box::pin(async { whoami(session, arguments) }),
        },
        Command {
            name: "exit",
            arity: Arity::between(0, 1),
            aliases: &["quit"],
            summary: "End the shell",
            usage: "  grampus> exit",
            run: |_, arguments| Box::pin(async { arguments.finish().map(|()| Outcome::Exit) }),
        },
    ],
};

fn help(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let asked = arguments.next().and_then(|value| value.string());
    arguments.finish()?;
    let printer = &mut session.printer;
    match asked {
        None => overview(printer)?,
        Some(name) => match find(&name) {
            Some(command) => {
                printer.line(&format!("{}. Examples:\n", command.summary))?;
                printer.line(command.usage)?;
            }
            None if is_unsupported(&name) => return Err(ShellError::Unsupported(name)),
            None => return usage(format!("there is no command {name}; see: help")),
        },
    }
    Ok(Outcome::Silent)
}

fn overview(printer: &mut Printer) -> Result<()> {
    printer.line(
        "Grampus shell. Commands are written as in HBase's shell: names of tables and columns in quotes,",
    )?;
    printer.line(
        "commas between arguments, options as {NAME => 'value'}. Bytes are written in double quotes:",
    )?;
    printer.line("\"\\x00\\xff\". Type help 'scan' for help on one command.\n")?;
    printer.line("COMMAND GROUPS:")?;
    for group in GROUPS {
        let names: Vec<&str> = group.commands.iter().map(|command| command.name).collect();
        printer.line(&format!("  Group name: {}\n  Commands: {}\n", group.name, names.join(", ")))?;
    }
    Ok(())
}

fn version(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    session.printer.line(&format!("grampus {}", env!("CARGO_PKG_VERSION")))?;
    Ok(Outcome::Done)
}

fn whoami(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    session.printer.line(&format!("{} (auth:SIMPLE)", session.user))?;
    Ok(Outcome::Done)
}

async fn status(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let format = match arguments.next() {
        Some(format) => format.string().unwrap_or_default(),
        None => "summary".to_string(),
    };
    // The second argument selects a side of replication, which 'summary' and 'simple' do not show.
    arguments.next();
    arguments.finish()?;
    let print = match format.as_str() {
        "summary" => summary,
        "simple" => simple,
        "detailed" | "replication" | "tasks" => {
            return Err(ShellError::Unsupported(format!("status '{format}'")));
        }
        _ => return usage(format!("status supports 'summary' and 'simple', not '{format}'")),
    };
    let status = session.client.admin().cluster_status().await?;
    print(&mut session.printer, &status)?;
    Ok(Outcome::Done)
}

fn summary(printer: &mut Printer, status: &ClusterStatus) -> std::io::Result<()> {
    let regions: usize = status.servers.iter().map(|server| server.regions.len()).sum();
    let load = if status.servers.is_empty() { 0.0 } else { regions as f64 / status.servers.len() as f64 };
    printer.line(&format!(
        "{} active master, {} backup masters, {} servers, {} dead, {load:.4} average load",
        usize::from(status.master.is_some()),
        status.backup_masters.len(),
        status.servers.len(),
        status.dead_servers.len(),
    ))
}

fn simple(printer: &mut Printer, status: &ClusterStatus) -> std::io::Result<()> {
    if let Some(master) = &status.master {
        printer.line(&format!("active master:  {}:{} {}", master.host, master.port, master.start_code))?;
    }
    printer.line(&format!("{} backup masters", status.backup_masters.len()))?;
    for master in &status.backup_masters {
        printer.line(&format!("    {}:{} {}", master.host, master.port, master.start_code))?;
    }
    printer.line(&format!("{} live servers", status.servers.len()))?;
    for server in &status.servers {
        let name = &server.server;
        printer.line(&format!("    {}:{} {}", name.host, name.port, name.start_code))?;
        printer.line(&format!("        {}", load_line(server)))?;
    }
    printer.line(&format!("{} dead servers", status.dead_servers.len()))?;
    for server in &status.dead_servers {
        printer.line(&format!("    {server}"))?;
    }
    let load: u64 = status.servers.iter().map(|server| server.requests_per_second).sum();
    let regions: usize = status.servers.iter().map(|server| server.regions.len()).sum();
    printer.line(&format!("Aggregate load: {load}, regions: {regions}"))
}

fn load_line(server: &ServerStatus) -> String {
    format!(
        "requestsPerSecond={}, numberOfOnlineRegions={}, usedHeapMB={}, maxHeapMB={}, totalRequests={}",
        server.requests_per_second,
        server.regions.len(),
        server.used_heap_mb,
        server.max_heap_mb,
        server.requests,
    )
}

#[cfg(test)]
mod tests {
    use cell::region::ServerName;

    use super::*;
    use crate::shell::output::tests::CapturedOutput;

    fn printed(print: fn(&mut Printer, &ClusterStatus) -> std::io::Result<()>) -> String {
        let name = |host: &str, port| ServerName { host: host.into(), port, start_code: 7 };
        let server = ServerStatus {
            server: name("h", 16020),
            requests_per_second: 4,
            requests: 9,
            used_heap_mb: 1,
            max_heap_mb: 2,
            regions: Vec::new(),
            replication_sources: Vec::new(),
        };
        let status = ClusterStatus {
            version: "2.6.0".into(),
            cluster_id: "id".into(),
            master: Some(name("h", 16000)),
            backup_masters: Vec::new(),
            servers: vec![server],
            dead_servers: vec![name("d", 16020)],
            balancer_on: None,
            regions_in_transition: 0,
        };
        let captured = CapturedOutput::default();
        print(
            &mut Printer::new(Box::new(captured.clone()), None, crate::shell::output::Style::Plain),
            &status,
        )
        .unwrap();
        captured.text()
    }

    #[test]
    fn status_is_printed_as_hbase_prints_it() {
        assert_eq!(
            printed(summary),
            "1 active master, 0 backup masters, 1 servers, 1 dead, 0.0000 average load\n"
        );
        let expected = "active master:  h:16000 7\n0 backup masters\n1 live servers\n    h:16020 7\n        \
                        requestsPerSecond=4, numberOfOnlineRegions=0, usedHeapMB=1, maxHeapMB=2, totalRequests=9\n\
                        1 dead servers\n    d,16020,7\nAggregate load: 4, regions: 0\n";
        assert_eq!(printed(simple), expected);
    }
}
