//! The project's tasks: `cargo xtask check` is what a change must pass, `cargo xtask test` is what
//! CI runs.
//!
//! Scripts are written in Rust so that they run everywhere and are reviewed like code. Direct use
//! of files and processes is allowed here, because nothing here is part of the product.
#![allow(clippy::disallowed_methods)]

mod fuzz;
mod licences;
mod optimized;
mod planted;
mod sql;
mod static_build;
mod steps;
mod toolchain;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask TASK
  test       unit, vector, model, crash and layer tests; stock Java clients against recorded responses of HBase; SQL by psql, and
             against DuckDB
  check      format, lints, documentation, licences and advisories of dependencies, short fuzz runs, then test
  fuzz       runs every fuzz target for a minute; or:  fuzz [--seconds N] [TARGET...]
  optimized  profile-guided (PGO) build after a minute of load: target/optimized/grampus; with --uncounted one that
             has no metrics, for bench/counting
  static     binaries that need no libraries, linked with musl: target/static; with --debug, from a debug build
  sim        simulates a cluster under faults, in release mode on all cores:  sim [--seeds FROM..TO] [--step-kills]
  planted    plants faults of the product, each of which the simulation must find:  planted [--seeds N] [--only NAME]
  licences   checks that the licences of all dependencies are compatible with Apache-2.0";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let outcome = match task.as_deref() {
        Some("test") => steps::test(),
        Some("check") => steps::check(),
        Some("fuzz") => fuzz(&rest),
        Some("optimized") => optimized::build(&rest),
        Some("static") => static_build::build(&rest),
        Some("sim") => simulate(&rest),
        Some("planted") => planted::run(&rest),
        Some("licences") => licences::check(),
        _ => Err(USAGE.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs many seeds of the simulation. Without arguments, some thousand.
fn simulate(arguments: &[String]) -> Result<(), String> {
    let mut command = vec!["cargo", "run", "--release", "--locked", "--package", "sim", "--"];
    match arguments {
        [] => command.extend(["--seeds", "0..10000"]),
        arguments => command.extend(arguments.iter().map(String::as_str)),
    }
    steps::step("simulation", &command)
}

fn fuzz(arguments: &[String]) -> Result<(), String> {
    const SECONDS: u32 = 60;
    match arguments {
        [flag, seconds, targets @ ..] if flag == "--seconds" => {
            fuzz::run(targets, seconds.parse().map_err(|_| USAGE.to_string())?)
        }
        targets => fuzz::run(targets, SECONDS),
    }
}
