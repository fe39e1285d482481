//! The binary `grampus-sql`: SQL over the tables of a Grampus cluster. Operations that need no
//! endpoint also work with HBase.
//!
//! ```text
//! statements  parses and runs statements, from shell (terminal, script, pipe)
//!             or postgres (PostgreSQL's protocol)
//! session     DataFusion's context; copy: the options of COPY; durable: the files that it writes
//! catalog     the declared tables: declaration, mapping, types, system_table
//! table       a table for DataFusion
//! predicate   conditions that are pushed down, and the row ranges that can meet them
//! scan        plan nodes that run on the servers; also aggregate, whose aggregate::rule
//!             finds aggregates to push down
//! narrowing   conditions from dynamic filters, which are added while a scan runs
//! request     requests to the servers; arrays: their responses as Arrow arrays
//! yielding    joins that can be cancelled
//! source      the servers; stored: a directory without a server; threads: where tasks run
//! export      the command export: a table's rows in files; export::manifest: what it resumes
//! import      the command import: puts of files' rows
//! progress    their progress bar
//! ```
//!
//! Only `stored` depends on crates of the server, and only on those that read files.

mod aggregate;
mod arrays;
mod catalog;
mod copy;
mod declaration;
mod durable;
mod export;
mod import;
mod mapping;
mod narrowing;
mod postgres;
mod predicate;
mod progress;
mod request;
mod scan;
mod session;
mod shell;
mod source;
mod statements;
mod stored;
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
use clap::{CommandFactory, Parser, Subcommand};
use client::{Client, ClientOptions, ClusterKey};
use datafusion::error::DataFusionError;

use catalog::Catalog;
use export::ExportArguments;
use import::ImportArguments;
use session::Sender;
use shell::{Failed, Shell, Style};
use source::Cluster;
use statements::{Engine, user_message};
use stored::Stored;
use system_table::SystemTable;
use threads::Threads;

/// Retries of the shell after the first attempt: few, because a user waits for the result.
const RETRIES_MAX: u32 = 7;
/// Task polls between two polls of the sockets: few, because one poll of a join is long.
const SOCKETS_EVERY: u32 = 2;
/// Stack size of a thread in bytes: plans are trees that are traversed by recursion.
const STACK_BYTES: usize = 8 << 20;

/// SQL over the cluster's tables: a shell, or a port that speaks PostgreSQL's protocol
#[derive(Debug, Parser)]
#[command(name = "grampus sql", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
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
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "GRAMPUS_ZOOKEEPER",
        default_value = "127.0.0.1:2181",
        global = true
    )]
    zookeeper: ClusterKey,
    /// Add N to ZooKeeper's port, for a server started with the same option
    #[arg(long, value_name = "N", default_value_t = 0, global = true)]
    port_offset: u16,
    /// Write man pages and completions for bash, zsh and fish to this directory
    #[arg(long, value_name = "DIR", hide = true)]
    generate: Option<PathBuf>,
}

impl Arguments {
    fn client_options(&self) -> ClientOptions {
        let defaults = ClientOptions::default();
        let is_shell = self.command.is_none() && self.listen.is_none();
        // An import, or a client of the port, waits for a region that moves, as HBase's clients do.
        let retries_max = if is_shell { RETRIES_MAX } else { defaults.retries_max };
        ClientOptions { user: user(), retries_max, ..defaults }
    }
}

/// A command that is no shell.
#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Write the rows of a declared table to files (also as `grampus export`)
    #[command(override_usage = "grampus export [OPTIONS] <TABLE> <FILE>")]
    Export(ExportArguments),
    /// Write the rows of files to a declared table (also as `grampus import`)
    #[command(override_usage = "grampus import [OPTIONS] <FILE>... <TABLE>")]
    Import(ImportArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(dir) = &arguments.generate {
        return generate(dir);
    }
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

/// Packages contain these pages and completions.
fn generate(dir: &std::path::Path) -> ExitCode {
    let command = Arguments::command().name("grampus-sql");
    let written = manual::write_pages(&command, "grampus-sql", dir)
        .and_then(|()| manual::write_completions(command, "grampus-sql", dir));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("grampus sql: cannot write to {}: {error}", dir.display());
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments, env: Env) -> Result<(), Failed> {
    let failed = |text: String| Failed(Some(text));
    if let Some(Command::Export(export)) = &arguments.command
        && let Some(options) = export.stored()
    {
        let stored = Arc::new(Stored::open(options, &env).await.map_err(failed)?);
        let catalog = Arc::new(Catalog::new(stored.clone(), stored, env.clone()));
        let context = session::context(&catalog, arguments.memory << 20, Sender::User);
        let context = context.map_err(|error| Failed(Some(error.to_string())))?;
        return run_export(export, &Engine { context, catalog }, &env).await.map_err(failed);
    }
    let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset).map_err(failed)?;
    let client = Client::new(env.clone(), cluster.registry(), arguments.client_options());
    let declarations = Arc::new(SystemTable::new(client.clone(), env.clone()));
    let catalog = Arc::new(Catalog::new(declarations, Arc::new(Cluster(client.clone())), env.clone()));
    let sender = if arguments.listen.is_some() { Sender::Clients } else { Sender::User };
    let context = session::context(&catalog, arguments.memory << 20, sender);
    let context = context.map_err(|error| Failed(Some(error.to_string())))?;
    let engine = Engine { context, catalog };
    match arguments.command {
        Some(Command::Export(export)) => return run_export(&export, &engine, &env).await.map_err(failed),
        Some(Command::Import(import)) => {
            return run_import(&import, &engine, client, &env).await.map_err(failed);
        }
        None => {}
    }
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

async fn run_export(export: &ExportArguments, engine: &Engine, env: &Env) -> Result<(), String> {
    let start = env.clock.monotonic();
    let rows = export::run(export, engine, env).await?;
    let seconds = (env.clock.monotonic() - start).as_secs_f64();
    println!("{} rows in {seconds:.1} s", progress::grouped(rows));
    Ok(())
}

async fn run_import(
    import: &ImportArguments,
    engine: &Engine,
    client: Client,
    env: &Env,
) -> Result<(), String> {
    let text = |error: DataFusionError| user_message(&error);
    engine.catalog.refresh().await.map_err(text)?;
    let table = engine.catalog.find(&import.table).map_err(text)?;
    let start = env.clock.monotonic();
    let now_ms = i64::try_from(env.clock.now_ms()).unwrap_or(i64::MAX);
    let imported = import::run(import, table.declaration(), Arc::new(client), now_ms).await?;
    println!("{}", imported.summary((env.clock.monotonic() - start).as_secs_f64()));
    Ok(())
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
