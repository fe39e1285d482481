//! The binary `grampus-sql`: SQL over the tables of a Grampus cluster. Operations that need no
//! endpoint also work with HBase.
//!
//! ```text
//! statements  parses and runs statements, from shell (terminal, script, pipe)
//!             or postgres (PostgreSQL's protocol)
//! session     DataFusion's context
//! catalog     the declared tables: declaration, mapping, types, system_table
//! table       a table for DataFusion
//! predicate   conditions that are pushed down, and the row ranges that can meet them
//! scan        plan nodes that run on the servers; also aggregate, whose aggregate::rule
//!             finds aggregates to push down
//! narrowing   conditions from dynamic filters, which are added while a scan runs
//! request     requests to the servers; arrays: their responses as Arrow arrays
//! yielding    joins that can be cancelled
//! source      the servers; threads: where tasks run
//! ```
//!
//! Does not depend on how servers compute their results (crates `coprocessor`, `engine`,
//! `columnar`).

mod aggregate;
mod arrays;
mod catalog;
mod declaration;
mod mapping;
mod narrowing;
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
mod threads;
mod types;
mod value;
mod yielding;

#[cfg(test)]
mod fake_cluster;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use base::env::Env;
use clap::Parser;
use client::{Client, ClientOptions, ClusterKey};

use catalog::Catalog;
use shell::{Failed, Shell, Style};
use source::Cluster;
use statements::Engine;
use system_table::SystemTable;
use threads::Threads;

/// Retries after the first attempt: few, because a user waits for the result.
const RETRIES_MAX: u32 = 7;
/// Task polls between two polls of the sockets: few, because one poll of a join is long.
const SOCKETS_EVERY: u32 = 2;
/// Stack size of a thread in bytes: plans are trees that are traversed by recursion.
const STACK_BYTES: usize = 8 << 20;

/// SQL over the cluster's tables: a shell, or a port that speaks PostgreSQL's protocol
#[derive(Debug, Parser)]
#[command(name = "grampus sql", version)]
struct Arguments {
    /// Statements to run, separated by semicolons; the first failure ends the shell with status 1
    #[arg(short = 'e', long = "execute", value_name = "SQL", conflicts_with_all = ["file", "listen"])]
    execute: Option<String>,
    /// File of statements to run, like --execute
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "listen")]
    file: Option<PathBuf>,
    /// Serve PostgreSQL's protocol on this address, without authentication
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Output format of rows
    #[arg(long, value_name = "STYLE", default_value = "table")]
    format: Style,
    /// Memory for groups, sorts and joins, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: usize,
    /// Address of the cluster's ZooKeeper; separate several servers with commas
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    zookeeper: ClusterKey,
    /// Add N to ZooKeeper's port, for a server started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    port_offset: u16,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A query uses as many threads as there are cores. The others handle new connections and cancel
    // requests.
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
    let env = os::env(Arc::new(Threads(runtime.handle().clone())));
    // Run on a thread of the runtime, which has the configured stack size.
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
    let failed = |text: String| Failed(Some(text));
    let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset).map_err(failed)?;
    let options = ClientOptions { user: user(), retries_max: RETRIES_MAX, ..ClientOptions::default() };
    let client = Client::new(env.clone(), cluster.registry(), options);
    let declarations = Arc::new(SystemTable::new(client.clone(), env.clone()));
    let catalog = Arc::new(Catalog::new(declarations, Arc::new(Cluster(client)), env.clone()));
    let context = session::context(&catalog, arguments.memory << 20);
    let context = context.map_err(|error| Failed(Some(error.to_string())))?;
    let engine = Engine { context, catalog };
    if let Some(address) = arguments.listen {
        return postgres::serve(engine, &env, address).await.map_err(failed);
    }
    let shell = Shell::new(engine, env, arguments.format);
    match (arguments.execute, arguments.file) {
        (Some(sql), _) => shell.script(&sql).await,
        (None, Some(path)) => shell.script(&read(&path).map_err(failed)?).await,
        (None, None) => shell.run_interactive().await,
    }
}

#[allow(clippy::disallowed_methods, reason = "a script of the user's, not a file of the store's")]
fn read(path: &std::path::Path) -> Result<String, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8"))
}

/// The user name that is sent to servers, as HBase without authentication accepts it.
fn user() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "grampus".to_string())
}
