//! The steps of each task, in the order in which a failure is cheapest to find.

use std::process::Command;
use std::time::Instant;

use crate::fuzz;
use crate::licences;
use crate::sql;
use crate::toolchain::{self, JAVA, MAVEN, PYTHON, VENV};

/// How long each fuzz target runs in a check.
const FUZZ_SECONDS: u32 = 10;

/// Everything that must hold at every commit.
pub fn test() -> Result<(), String> {
    toolchain::require(&[&JAVA, &MAVEN, &PYTHON, &VENV])?;
    // Builds target/debug/grampus too, which tests of the server start; building it alone would build half of the
    // crates again, with fewer features.
    step("tests of all crates", &["cargo", "test", "--workspace", "--locked"])?;
    // Of the crate alone: with the whole server the step would take as long as the one before. What joins it to the
    // server is compiled by the lints of `check`.
    step(
        "tests of what OpenTelemetry gets",
        &["cargo", "test", "-p", "sinks", "--features", "otlp", "--locked"],
    )?;
    step(
        "the shell against recorded answers of HBase's shell",
        &["compat/shell/run", "--grampus", "target/debug/grampus"],
    )?;
    step(
        "stock Java clients against recorded answers of HBase",
        &["compat/run", "--grampus", "target/debug/grampus"],
    )?;
    sql::test()
}

/// `test`, and what a reviewer would otherwise have to look for.
pub fn check() -> Result<(), String> {
    step("format", &["cargo", "fmt", "--all", "--check"])?;
    sql::format()?;
    step(
        "lints",
        &[
            "cargo",
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            "server/otlp",
            "--locked",
            "--quiet",
            "--",
            "--deny",
            "warnings",
        ],
    )?;
    sql::lints()?;
    // The crates are for this workspace alone, so the documentation is for who works on them.
    step_with(
        "documentation",
        &["cargo", "doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--quiet"],
        &[("RUSTDOCFLAGS", "--deny warnings --allow rustdoc::private-intra-doc-links")],
    )?;
    println!("== licences of dependencies");
    licences::check()?;
    advisories()?;
    println!("== short runs of the fuzz targets");
    fuzz::run(&[], FUZZ_SECONDS)?;
    test()
}

/// Known vulnerabilities of dependencies. The database lies outside the package registry, so the tool is only asked
/// where it is installed; its absence is said, not hidden.
fn advisories() -> Result<(), String> {
    let installed =
        Command::new("cargo").args(["audit", "--version"]).output().is_ok_and(|out| out.status.success());
    if installed {
        return step("advisories of dependencies", &["cargo", "audit"]);
    }
    println!(
        "== advisories of dependencies: not checked here. Install the tool with:  cargo install cargo-audit"
    );
    Ok(())
}

pub fn step(title: &str, command: &[&str]) -> Result<(), String> {
    step_with(title, command, &[])
}

pub fn step_with(title: &str, command: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    println!("== {title}: {}", command.join(" "));
    let start = Instant::now();
    let status = Command::new(command[0])
        .args(&command[1..])
        .envs(environment.iter().copied())
        .status()
        .map_err(|error| format!("{title}: {} cannot be started: {error}", command[0]))?;
    let seconds = start.elapsed().as_secs();
    if status.success() {
        println!("== {title}: good, {seconds} s");
        Ok(())
    } else {
        Err(format!("{title}: FAILED after {seconds} s ({status}). Repeat with:  {}", command.join(" ")))
    }
}
