//! `sim`: runs simulations of a cluster, and prints what happened.
//!
//! ```text
//! sim --seed 7 --steps 30          one run of a cluster with its timeline
//! sim --seeds 0..1000              many runs on all cores; stops at the first violation
//! sim --hdfs --seed 7              one run of a cluster on HDFS
//! sim --from-standalone --seed 7   one run of a cluster on the directory of a standalone server
//! sim --step-kills --seeds 0..100  kills of processes at durable steps of an operation
//! sim --standalone --seed 7        one run of a server that is master and region server
//! ```

#![allow(clippy::disallowed_methods, reason = "runs of seeds are independent, each in its own process")]

use std::process::{Command, ExitCode};
use std::sync::Arc;

use base::testing::TestSpawner;
use clap::{Parser, ValueEnum};
use sim::batch::{Batch, Outcome, Results};
use sim::cluster::Planted;
use sim::cluster::scenario::ClusterOptions;
use sim::scenario::{self, Summary};
use sim::scheduler::current;
use sim::timeline::Detail;
use sim::{Run, WorldOptions, cluster};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Simulates a cluster with faults. Everything that happens follows from the seed.
#[derive(Parser)]
#[command(name = "sim")]
struct Arguments {
    /// Run this seed and print its timeline.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Run all seeds of this range, for example 0..1000, without timelines.
    #[arg(long, value_parser = parse_range)]
    seeds: Option<std::ops::Range<u64>>,
    /// Number of faults in each run.
    #[arg(long, default_value_t = 12)]
    steps: usize,
    /// Kill processes at a durable step of an administrative operation, instead of other faults.
    #[arg(long, conflicts_with_all = ["standalone", "steps"])]
    step_kills: bool,
    /// Run the cluster on HDFS, with faults of HDFS, instead of on a shared directory.
    #[arg(long, conflicts_with_all = ["standalone", "step_kills"])]
    hdfs: bool,
    /// Run the cluster on the directory of a standalone server that was killed.
    #[arg(long, conflicts_with_all = ["standalone", "step_kills", "hdfs"])]
    from_standalone: bool,
    /// Run a standalone server instead of a cluster.
    #[arg(long)]
    standalone: bool,
    /// Runs at the same time. The default is the number of cores.
    #[arg(long)]
    jobs: Option<usize>,
    /// Continue after a violation, and print one line for each.
    #[arg(long)]
    all: bool,
    /// Plant a fault of the product, which the checks should find.
    #[arg(long, conflicts_with = "standalone")]
    plant: Option<Planted>,
    /// Also print messages and file operations.
    #[arg(long)]
    verbose: bool,
    /// Print log lines of the product, for example `info` or `regionserver=debug`.
    #[arg(long)]
    log: Option<String>,
    /// Seed of the iteration order of hash maps, if not the seed of the run. The result should not
    /// depend on it.
    #[arg(long)]
    hash_seed: Option<u64>,
    /// Print only the outcome of the run, for the process that runs many.
    #[arg(long, hide = true)]
    outcome: bool,
}

fn parse_range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let parsed = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed
        .filter(|range| !range.is_empty())
        .ok_or_else(|| format!("{text}: expected FROM..TO, for example 0..100"))
}

/// Virtual time and the process, at the start of a log line.
struct VirtualTime;

impl FormatTime for VirtualTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        let (now, process) = current::get();
        let process = process.as_deref().unwrap_or("world");
        write!(writer, "{:>5}.{:06} {process:<10}", now.as_secs(), now.subsec_micros())
    }
}

fn start_logging(filter: &str) {
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(VirtualTime)
        .with_target(false)
        .with_ansi(false)
        .with_writer(std::io::stdout)
        .init();
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(filter) = &arguments.log {
        start_logging(filter);
    }
    let is_correct = match arguments.seeds.clone() {
        Some(seeds) => run_many(&arguments, seeds),
        None => run_one(&arguments),
    };
    if is_correct { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options(arguments: &Arguments, seed: u64, printed: Detail) -> WorldOptions {
    WorldOptions { seed, hash_seed: arguments.hash_seed.unwrap_or(seed), printed }
}

/// Runs one seed.
fn run(arguments: &Arguments, seed: u64, printed: Detail) -> Run<Result<Summary, String>> {
    let options = options(arguments, seed, printed);
    let planted = arguments.plant;
    let (on_hdfs, from_standalone) = (arguments.hdfs, arguments.from_standalone);
    let cluster_options =
        ClusterOptions { planted, on_hdfs, from_standalone, ..ClusterOptions::new(arguments.steps) };
    match (arguments.standalone, arguments.step_kills) {
        (true, _) => scenario::run(options, arguments.steps),
        (_, true) => cluster::step_kills::run(options, cluster_options),
        _ => cluster::scenario::run(options, cluster_options),
    }
}

fn run_one(arguments: &Arguments) -> bool {
    let printed = match arguments {
        Arguments { outcome: true, .. } => Detail::Nothing,
        Arguments { verbose: true, .. } => Detail::All,
        _ => Detail::States,
    };
    let run = run(arguments, arguments.seed, printed);
    let outcome = Outcome::of(&run);
    if arguments.outcome {
        println!("{}", outcome.to_text());
        return outcome.failure.is_none();
    }
    match &run.result {
        Ok(Ok(summary)) => println!(
            "seed {}: correct: {} writes, {} reads, {:?} of virtual time, {} polls, {} events, digest {:016x}",
            arguments.seed, summary.writes, summary.reads, run.took, summary.polls, run.events, run.digest
        ),
        // The events have been printed.
        _ => report(arguments, arguments.seed, &Outcome { last: Vec::new(), ..outcome.clone() }),
    }
    outcome.failure.is_none()
}

fn run_many(arguments: &Arguments, seeds: std::ops::Range<u64>) -> bool {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("cannot find the program of this process: {error}");
            return false;
        }
    };
    // Only the clock is used, so no task is ever started.
    let clock = os::env(Arc::new(TestSpawner::new())).clock;
    let begun = clock.monotonic();
    let command = |seed| {
        let mut command = Command::new(&program);
        command.args(run_arguments(arguments, seed)).arg("--outcome");
        command
    };
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.unwrap_or_else(cores);
    let results = Batch { seeds, jobs, continues: arguments.all, command }.run();
    print_results(arguments, &results, (clock.monotonic() - begun).as_secs_f64());
    results.failed.is_empty()
}

/// The arguments that run a seed as these do.
fn run_arguments(arguments: &Arguments, seed: u64) -> Vec<String> {
    let mut words = vec!["--seed".to_string(), seed.to_string()];
    match (arguments.standalone, arguments.step_kills) {
        (_, true) => words.push("--step-kills".to_string()),
        (is_standalone, _) => {
            words.extend(["--steps".to_string(), arguments.steps.to_string()]);
            words.extend(is_standalone.then(|| "--standalone".to_string()));
            words.extend(arguments.hdfs.then(|| "--hdfs".to_string()));
            words.extend(arguments.from_standalone.then(|| "--from-standalone".to_string()));
        }
    }
    if let Some(planted) = arguments.plant.and_then(|planted| planted.to_possible_value()) {
        words.extend(["--plant".to_string(), planted.get_name().to_string()]);
    }
    if let Some(seed) = arguments.hash_seed {
        words.extend(["--hash-seed".to_string(), seed.to_string()]);
    }
    words
}

fn print_results(arguments: &Arguments, results: &Results, took_s: f64) {
    for (seed, failed) in &results.failed {
        match arguments.all {
            true => println!("seed {seed}: {}", failed.outcome.failure.as_deref().unwrap_or_default()),
            false => report(arguments, *seed, &failed.outcome),
        }
        println!("seed {seed} {}", if failed.replays { "replays" } else { "does not replay" });
    }
    println!(
        "{} seeds: {} with violations, {} writes, {:.0} s of virtual time in {took_s:.1} s, {:.2} seeds per second, \
         digest {:016x}",
        results.seeds,
        results.failed.len(),
        results.writes,
        results.virtual_time.as_secs_f64(),
        results.seeds as f64 / took_s,
        results.digest
    );
    for (kind, runs) in &results.kinds {
        println!("{runs:>8} {kind}");
    }
    if let Some(first) = results.failed.keys().next() {
        println!("first: sim {}", run_arguments(arguments, *first).join(" "));
    }
}

fn report(arguments: &Arguments, seed: u64, outcome: &Outcome) {
    for event in &outcome.last {
        println!("{event}");
    }
    println!("seed {seed}: {}", outcome.failure.as_deref().unwrap_or_default());
    println!("repeat with: sim {}", run_arguments(arguments, seed).join(" "));
}
