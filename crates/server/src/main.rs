//! The binary `grampus`: roles, options and signals.
//!
//! * [`arguments`]: the command line; [`settings`]: converts options for the parts of a server;
//! * [`standalone`]: runs both roles, master and region server, in this process;
//! * [`cluster`]: runs one of the roles as a process of a cluster;
//! * [`host`]: the services and pages of the roles; [`data`]: the data directory; [`lock`]: which
//!   processes may use it;
//! * [`foreign_files`]: the files of bulk loads, named by URIs;
//! * [`allocator`]: the memory allocator;
//! * [`limits`]: checks the system's limits at start;
//! * [`rest`]: HBase's REST API, in a server or as `grampus rest`;
//! * [`thrift`]: HBase's Thrift services, in a server or as `grampus thrift` and `grampus thrift2`;
//! * [`repair`]: repairs the data directory of a server that cannot start;
//! * [`adoption`](mod@adoption): takes over a root directory of HBase, and hands it back;
//! * [`fsck`](mod@fsck): checks a root directory; [`directory`]: the directory of these commands;
//! * [`health`]: checks the health of a running server; [`watchdog`]: reports to the service
//!   manager that the server responds;
//! * [`logging`]: where log lines go; [`generate`]: man pages and completions;
//! * [`output`]: lines on the standard output of a running server;
//! * [`printers`]: prints the contents of HFiles, logs and snapshots;
//! * [`sinks`]: where metrics are sent.
//!
//! Metrics and status pages are in the crate `console`.

mod address;
mod adoption;
mod allocator;
mod arguments;
mod cluster;
mod data;
mod direct;
mod directory;
mod foreign_files;
mod fsck;
mod generate;
mod hdfs;
mod health;
mod host;
mod limits;
mod lock;
mod logging;
mod output;
mod printers;
mod repair;
mod rest;
mod second_level_cache;
mod settings;
mod signals;
mod sinks;
mod standalone;
mod thrift;
mod tiers;
mod watchdog;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command, Repair};
use cli::OnlineRepair;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Exit codes of `grampus diff`.
const DIFFERENT: u8 = 1;
const NOT_COMPARED: u8 = 2;

fn main() -> ExitCode {
    allocator::set_up();
    let arguments = match Arguments::try_parse_from(cli::double_dashed(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) => return refused(&error),
    };
    let outcome = match arguments.command.unwrap_or(Command::Start(arguments.server)) {
        Command::Start(server) => standalone::run(&server),
        Command::Master(server) => cluster::master::run(&server),
        Command::RegionServer(server) => cluster::region_server::run(&server),
        Command::Shell(shell) => run_shell(&shell),
        Command::Sql(sql) => cli::sql(cli::SqlCommand::Sql, &sql),
        Command::Export(export) => cli::sql(cli::SqlCommand::Export, &export),
        Command::Import(import) => cli::sql(cli::SqlCommand::Import, &import),
        Command::Bench(bench) => run_bench(&bench),
        Command::Top(top) => run_top(&top),
        Command::Tiers(tiers) => run_tiers(&tiers),
        Command::LoadHfiles(load) => run_load_hfiles(&load),
        Command::Diff(diff) => return run_diff(&diff),
        Command::Migrate(step) => return run_migrate(&step),
        Command::Canary(canary) => return run_canary(&canary),
        Command::Health(server) => health::run(&server),
        Command::Repair(repair) => run_repair(&repair),
        Command::HFile(hfile) => printers::hfile(&hfile),
        Command::Wal(wal) => printers::wal(&wal),
        Command::Snapshot(arguments) => return printers::snapshot(&arguments),
        Command::Adopt(arguments) => return adoption::adopt(&arguments),
        Command::Release(arguments) => return adoption::release(&arguments),
        Command::Fsck(arguments) => return fsck::fsck(&arguments),
        Command::Rest(arguments) => rest::run(&arguments),
        Command::Thrift(arguments) => thrift::run(&arguments, ::thrift::Service::One),
        Command::Thrift2(arguments) => thrift::run(&arguments, ::thrift::Service::Two),
        Command::Generate(target) => generate::run(&target),
        Command::ExitReporter(parent) => cluster::exit_reporter::run(&parent),
        Command::Version => {
            println!("grampus {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            logging::print_fatal(&message);
            ExitCode::FAILURE
        }
    }
}

/// Prints a command-line error, or the requested help, and returns the exit code. The canary has
/// its own exit code for usage errors.
fn refused(error: &clap::Error) -> ExitCode {
    let is_canary = std::env::args_os().nth(1).is_some_and(|command| command == "canary");
    match error.use_stderr() && is_canary {
        true => {
            // If printing fails, there is nowhere left to report it.
            let _ = error.print();
            ExitCode::from(cli::canary::Failure::Usage(String::new()).exit_code())
        }
        false => error.exit(),
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

fn run_top(arguments: &cli::TopArguments) -> Result<(), String> {
    let runtimes = os::Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(std::sync::Arc::new(runtimes));
    os::block_on(cli::top(env, Box::pin(signals::terminated()), arguments))
}

fn run_tiers(arguments: &cli::TiersArguments) -> Result<(), String> {
    let runtimes = os::Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(std::sync::Arc::new(runtimes));
    os::block_on(cli::tiers(env, arguments))
}

fn run_load_hfiles(arguments: &cli::LoadHfilesArguments) -> Result<(), String> {
    let runtimes = os::Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(std::sync::Arc::new(runtimes));
    let local = foreign_files::whole_machine().map_err(|error| error.to_string())?;
    os::block_on(cli::load_hfiles(env, local, arguments))
}

/// The exit codes are those of `diff`.
fn run_migrate(step: &cli::MigrateStep) -> ExitCode {
    exit_code(|env| os::block_on(cli::migrate(env, step)))
}

/// The exit codes are those of the tool `diff`.
fn run_diff(arguments: &cli::DiffArguments) -> ExitCode {
    exit_code(|env| os::block_on(cli::diff(env, arguments)))
}

/// Runs a command that may find differences.
fn exit_code(command: impl FnOnce(base::env::Env) -> Result<bool, String>) -> ExitCode {
    let compared = os::Runtimes::start(1, 1)
        .map_err(|error| format!("cannot start threads: {error}"))
        .and_then(|runtimes| command(os::env(std::sync::Arc::new(runtimes))));
    match compared {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DIFFERENT),
        Err(message) => {
            eprintln!("grampus: {message}");
            ExitCode::from(NOT_COMPARED)
        }
    }
}

fn run_repair(repair: &Repair) -> Result<(), String> {
    let (target, online) = match repair {
        Repair::Status(target) => (target, OnlineRepair::Status),
        Repair::Overlaps(target) => (target, OnlineRepair::Overlaps),
        Repair::Holes(target) => (target, OnlineRepair::Holes),
        Repair::Region(region) => (&region.target, OnlineRepair::Region(&region.region)),
        Repair::Adopt(region) => (&region.target, OnlineRepair::Adopt(&region.region)),
        Repair::Meta(arguments) => return repair::meta(arguments),
        Repair::Master(arguments) => return repair::master(arguments),
    };
    let runtimes = os::Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(std::sync::Arc::new(runtimes));
    os::block_on(cli::repair(env, target, online))
}

fn run_canary(arguments: &cli::CanaryArguments) -> ExitCode {
    let runtimes = match os::Runtimes::start(1, 1) {
        Ok(runtimes) => runtimes,
        Err(error) => {
            eprintln!("grampus: cannot start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let env = os::env(std::sync::Arc::new(runtimes));
    match os::block_on(cli::canary(env, arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("grampus: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
