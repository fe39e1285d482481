//! The binary `grampus-sql`: SQL over the tables of a cluster, which may be Grampus' or, for what needs no endpoint, HBase's.
//!
//! ```text
//! statements        parsed and run: by shell (a person, a script, a pipe) or postgres (PostgreSQL's wire)
//! session, catalog  DataFusion's context, and the tables that it finds: declaration, mapping, types, system_table
//! table, predicate  a table as DataFusion asks for it: which conditions the servers look at, which rows can meet them
//! scan, aggregate   the parts of plans that are done by the servers; aggregate::rule finds what can be
//! narrowing         what a scan is told, while it runs, that nobody wants any more
//! request, arrays   questions to the servers, and their answers as arrow's arrays
//! yielding          joins that can be cancelled
//! source            the servers; os: clocks, sockets and threads
//! ```
//!
//! Knows nothing about: how servers find what they are asked for (crates `coprocessor`, `engine`, `columnar`).

mod aggregate;
mod arrays;
mod catalog;
mod declaration;
mod mapping;
mod narrowing;
mod os;
mod postgres;
mod predicate;
mod request;
mod scan;
mod session;
mod shell;
mod source;
mod statements;
mod system_table;
mod table;
mod types;
mod value;
mod yielding;

#[cfg(test)]
mod pretend;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use base::env::Env;
use clap::Parser;
use client::{Client, ClientOptions, Registry};

use catalog::Catalog;
use shell::{Failed, Shell, Style};
use source::Cluster;
use statements::Engine;
use system_table::SystemTable;

/// Tries after the first: a person waits for the answer.
const RETRIES_MAX: u32 = 7;
/// ZooKeeper's port where none is named.
const ZOOKEEPER_PORT: u16 = 2181;
/// Turns of tasks between two looks at the sockets: a turn of a join is long.
const SOCKETS_EVERY: u32 = 2;
/// Bytes of a thread's stack: plans are trees, and are walked by recursion.
const STACK_BYTES: usize = 8 << 20;

/// SQL over the cluster's tables: a shell, or a port that speaks PostgreSQL's protocol
#[derive(Debug, Parser)]
#[command(name = "grampus sql", version)]
struct Arguments {
    /// Statements to run, separated by semicolons; the first that fails ends the shell with status 1
    #[arg(short = 'e', long = "execute", value_name = "SQL", conflicts_with_all = ["file", "listen"])]
    execute: Option<String>,
    /// A file of statements to run, as --execute does
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "listen")]
    file: Option<PathBuf>,
    /// Serve PostgreSQL's protocol at this address. Nobody is asked for a password
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// How rows are shown
    #[arg(long, value_name = "STYLE", default_value = "table")]
    format: Style,
    /// Memory for groups, sorts and joins, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: usize,
    /// Where the cluster's ZooKeeper answers; several servers with commas between them
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    zookeeper: String,
    /// Add N to ZooKeeper's port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    port_offset: u16,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A query keeps as many threads at work as there are cores. Others are there for who connects meanwhile, or cancels.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2 * cores)
        .event_interval(SOCKETS_EVERY)
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("grampus sql: cannot start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let env = os::env(runtime.handle().clone());
    // On a thread of the runtime, whose stack is as large as was asked for.
    let work = runtime.spawn(async move { run(arguments, env).await });
    match runtime.block_on(work) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(Failed(text))) => {
            if let Some(text) = text {
                eprintln!("grampus sql: {text}");
            }
            ExitCode::FAILURE
        }
        Err(panicked) => {
            eprintln!("grampus sql: {panicked}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments, env: Env) -> Result<(), Failed> {
    let tell = |text: String| Failed(Some(text));
    let quorum = with_offset(&arguments.zookeeper, arguments.port_offset).map_err(tell)?;
    let options = ClientOptions { user: user(), retries_max: RETRIES_MAX, ..ClientOptions::default() };
    let client = Client::new(env.clone(), Registry::zookeeper(&quorum, "/hbase"), options);
    let declarations = Arc::new(SystemTable::new(client.clone(), env.clone()));
    let catalog = Arc::new(Catalog::new(declarations, Arc::new(Cluster(client)), env.clone()));
    let context = session::context(&catalog, arguments.memory << 20);
    let context = context.map_err(|error| Failed(Some(error.to_string())))?;
    let engine = Engine { context, catalog };
    if let Some(address) = arguments.listen {
        return postgres::serve(engine, &env, address).await.map_err(tell);
    }
    let shell = Shell::new(engine, env, arguments.format);
    match (arguments.execute, arguments.file) {
        (Some(sql), _) => shell.script(&sql).await,
        (None, Some(path)) => shell.script(&read(&path).map_err(tell)?).await,
        (None, None) => shell.converse().await,
    }
}

#[allow(clippy::disallowed_methods, reason = "a script of the user's, not a file of the store's")]
fn read(path: &std::path::Path) -> Result<String, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8"))
}

/// `host:port,..` with `offset` added to each port.
fn with_offset(quorum: &str, offset: u16) -> Result<String, String> {
    let add = |server: &str| {
        let (host, port) = server.rsplit_once(':').unwrap_or((server, ""));
        let port = match port {
            "" => ZOOKEEPER_PORT,
            port => port.parse().map_err(|_| format!("--zookeeper {quorum}: {port} is no port"))?,
        };
        let port = port.checked_add(offset);
        Ok(format!(
            "{host}:{}",
            port.ok_or_else(|| format!("--port-offset {offset} leads beyond the last port"))?
        ))
    };
    let servers = quorum.split(',').map(str::trim).filter(|server| !server.is_empty());
    Ok(servers.map(add).collect::<Result<Vec<String>, String>>()?.join(","))
}

/// The user that servers are told, as an insecure HBase takes it.
fn user() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "grampus".to_string())
}
