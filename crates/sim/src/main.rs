//! `sim`: runs simulations of a cluster, and prints what happened.
//!
//! ```text
//! sim --seed 7 --steps 30      one run of a cluster with its timeline
//! sim --seeds 0..1000          many runs on all cores; stops at the first violation
//! sim --standalone --seed 7    the same of a server that is master and region server
//! ```

#![allow(clippy::disallowed_methods, reason = "runs of seeds are independent, each on its own thread")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::testing::TestSpawner;
use clap::Parser;
use sim::cluster::Planted;
use sim::cluster::scenario::ClusterOptions;
use sim::scenario::{self, Summary};
use sim::scheduler::current;
use sim::timeline::{Detail, Digest};
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
    match arguments.standalone {
        true => scenario::run(options, arguments.steps),
        false => {
            let planted = arguments.plant;
            cluster::scenario::run(
                options,
                ClusterOptions { planted, ..ClusterOptions::new(arguments.steps) },
            )
        }
    }
}

fn run_one(arguments: &Arguments) -> bool {
    let printed = if arguments.verbose { Detail::All } else { Detail::States };
    let run = run(arguments, arguments.seed, printed);
    match failure(&run) {
        Ok(summary) => println!(
            "seed {}: correct: {} writes, {} reads, {:?} of virtual time, {} polls, {} events, digest {:016x}",
            arguments.seed, summary.writes, summary.reads, run.took, summary.polls, run.events, run.digest
        ),
        Err(failure) => report(arguments, arguments.seed, &failure, &[]),
    }
    failure(&run).is_ok()
}

/// The results of many runs.
#[derive(Default)]
struct Results {
    seeds: u64,
    writes: u64,
    virtual_time: Duration,
    // Of the digests in the order of their seeds, whatever the order in which the runs ended.
    digests: u64,
    failed: Vec<u64>,
}

fn run_many(arguments: &Arguments, seeds: std::ops::Range<u64>) -> bool {
    // Only the clock is used, so no task is ever started.
    let clock = os::env(Arc::new(TestSpawner::new())).clock;
    let begun = clock.monotonic();
    let (next, results) = (AtomicU64::new(seeds.start), Mutex::new(Results::default()));
    let jobs = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| run_next(arguments, &next, seeds.end, &results));
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let took = (clock.monotonic() - begun).as_secs_f64();
    println!(
        "{} seeds: {} with violations, {} writes, {:.0} s of virtual time in {took:.1} s, {:.2} seeds per second, \
         digest {:016x}",
        results.seeds,
        results.failed.len(),
        results.writes,
        results.virtual_time.as_secs_f64(),
        results.seeds as f64 / took,
        results.digests
    );
    if let Some(first) = results.failed.iter().min() {
        println!("first: sim {} --seed {first} --steps {}", kind(arguments), arguments.steps);
    }
    results.failed.is_empty()
}

/// Runs seeds until there are no more, or one has failed.
fn run_next(arguments: &Arguments, next: &AtomicU64, end: u64, results: &Mutex<Results>) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let run = run(arguments, seed, Detail::Nothing);
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        let mut digest = Digest::default();
        digest.add(seed);
        digest.add(run.digest);
        results.digests = results.digests.wrapping_add(digest.value());
        results.seeds += 1;
        results.virtual_time += run.took;
        match failure(&run) {
            Ok(summary) => results.writes += summary.writes,
            Err(failure) => {
                results.failed.push(seed);
                if arguments.all {
                    println!("seed {seed}: {failure}");
                } else {
                    next.store(end, Ordering::Relaxed);
                    report(arguments, seed, &failure, &run.last);
                }
            }
        }
    }
}

fn kind(arguments: &Arguments) -> &'static str {
    if arguments.standalone { "--standalone" } else { "" }
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
    println!("repeat with: sim {} --seed {seed} --steps {}", kind(arguments), arguments.steps);
}
