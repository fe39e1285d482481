//! The project's tasks: `cargo xtask check` is what a change must pass, `cargo xtask test` what CI runs.
//!
//! Scripts are Rust so that they run everywhere and are reviewed like code. The sanctioned direct use of files and
//! processes: nothing here is part of the product.
#![allow(clippy::disallowed_methods)]

mod licences;
mod steps;
mod toolchain;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask TASK
  test       unit, vector, model, crash and layer tests; stock Java clients against recorded answers of HBase
  check      format, lints, documentation, licences and advisories of dependencies, short fuzz runs, then test
  licences   licences of all dependencies against the list of those that go with Apache-2.0";

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let outcome = match task.as_deref() {
        Some("test") => steps::test(),
        Some("check") => steps::check(),
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
