//! Layer 8: the binary `grampus`: roles, options, signals, the operating system as an `Env`.
//!
//! * [`arguments`]: the command line; [`standalone`]: both roles in this process, wired to each other;
//! * [`os`]: clocks, sockets, threads; [`lock`]: one process to a data directory;
//! * [`health`]: whether a server serves, asked from outside; [`notify`]: what the service manager is told;
//! * [`registry`], [`services`]: services behind the RPC server;
//! * [`pages`]: what the pages show; [`history`]: what is kept of the last hour; [`beans`], [`log_counts`]: metrics.

mod address;
mod arguments;
mod beans;
mod direct;
mod health;
mod history;
mod lock;
mod log_counts;
mod notify;
mod os;
mod pages;
mod registry;
mod services;
mod signals;
mod standalone;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

// Many small allocations of different lengths: kept apart by size and thread. What is large and lives long is in `base::pages`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long the allocator keeps pages that were freed. Its own default of a second is long enough for a burst of requests to
/// be in memory twice.
const PURGE_DELAY_MS: std::ffi::c_long = 10;
/// Source: `mi_option_e` of mimalloc 3.
const PURGE_DELAY_OPTION: libmimalloc_sys::mi_option_t = 15;

fn main() -> ExitCode {
    // SAFETY: sets a number within the allocator; nothing else reads it yet.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY_OPTION, PURGE_DELAY_MS) };
    let arguments = Arguments::parse();
    let outcome = match arguments.command.unwrap_or(Command::Start(arguments.start)) {
        Command::Start(start) => standalone::run(&start),
        Command::Shell(shell) => run_shell(&shell),
        Command::Bench(bench) => run_bench(&bench),
        Command::Health(server) => health::run(&server),
        Command::Version => {
            println!("grampus {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("grampus: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run_bench(arguments: &cli::BenchArguments) -> Result<(), String> {
    let runtimes = os::Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(std::sync::Arc::new(runtimes));
    os::raise_open_files();
    os::block_on(cli::bench(env, arguments))
}

fn run_shell(arguments: &cli::ShellArguments) -> Result<(), String> {
    let runtimes = os::Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(std::sync::Arc::new(runtimes));
    let interrupts: cli::Interrupts = Box::new(|| Box::pin(signals::interrupted()));
    os::block_on(cli::shell(env, interrupts, arguments))
}
