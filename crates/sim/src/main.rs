//! `sim`: runs simulations of a cluster, and prints what happened.
//!
//! ```text
//! sim --seed 7 --steps 30      one run with its timeline
//! sim --seeds 0..1000          many runs; stops at the first violation
//! ```

use std::process::ExitCode;
use std::sync::Arc;

use base::testing::TestSpawner;
use clap::Parser;
use sim::scenario::{self, Summary};
use sim::scheduler::current;
use sim::timeline::{Detail, Digest};
use sim::{Run, WorldOptions};
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

fn run_one(arguments: &Arguments) -> bool {
    let printed = if arguments.verbose { Detail::All } else { Detail::States };
    let run = scenario::run(options(arguments, arguments.seed, printed), arguments.steps);
    match failure(&run) {
        Ok(summary) => println!(
            "seed {}: correct: {} writes, {} reads, {:?} of virtual time, {} polls, {} events, digest {:016x}",
            arguments.seed, summary.writes, summary.reads, run.took, summary.polls, run.events, run.digest
        ),
        Err(failure) => report(arguments, arguments.seed, &failure, &[]),
    }
    failure(&run).is_ok()
}

fn run_many(arguments: &Arguments, seeds: std::ops::Range<u64>) -> bool {
    // Only the clock is used, so no task is ever started.
    let clock = os::env(Arc::new(TestSpawner::new())).clock;
    let (begun, count) = (clock.monotonic(), seeds.end - seeds.start);
    let (mut writes, mut virtual_time, mut digest) = (0, std::time::Duration::ZERO, Digest::default());
    for seed in seeds {
        let run = scenario::run(options(arguments, seed, Detail::Nothing), arguments.steps);
        virtual_time += run.took;
        digest.add(run.digest);
        match failure(&run) {
            Ok(summary) => writes += summary.writes,
            Err(failure) => {
                report(arguments, seed, &failure, &run.last);
                return false;
            }
        }
    }
    let took = (clock.monotonic() - begun).as_secs_f64();
    println!(
        "{count} seeds: correct: {writes} writes, {:.0} s of virtual time in {took:.1} s, {:.2} seeds per second, \
         digest {:016x}",
        virtual_time.as_secs_f64(),
        count as f64 / took,
        digest.value()
    );
    true
}

/// The summary of a run, or its violation or panic.
fn failure(run: &Run<Result<Summary, String>>) -> Result<Summary, String> {
    match &run.result {
        Ok(Ok(summary)) => Ok(*summary),
        Ok(Err(violation)) => Err(violation.clone()),
        Err(panic) => Err(format!("a task panicked: {panic}")),
    }
}

fn report(arguments: &Arguments, seed: u64, failure: &str, last: &[String]) {
    for event in last {
        println!("{event}");
    }
    println!("seed {seed}: {failure}");
    println!("repeat with: sim --seed {seed} --steps {}", arguments.steps);
}
