//! The steps of each task, ordered so that failures are found as cheaply as possible.

use std::process::Command;
use std::time::Instant;

use crate::fuzz;
use crate::licences;
use crate::sql;
use crate::toolchain::{self, JAVA, MAVEN, PYTHON, VENV};

/// How long each fuzz target runs in a check.
const FUZZ_SECONDS: u32 = 10;

/// Checks that must pass at every commit.
pub fn test() -> Result<(), String> {
    toolchain::require(&[&JAVA, &MAVEN, &PYTHON, &VENV])?;
    // Also builds target/debug/grampus, which some tests start. Building it separately would
    // rebuild half of the crates with fewer features.
    step("tests of all crates", &["cargo", "test", "--workspace", "--locked"])?;
    step(
        "the shell against recorded output of HBase's shell",
        &["compat/shell/run", "--grampus", "target/debug/grampus"],
    )?;
    step(
        "stock Java clients against recorded responses of HBase",
        &["compat/run", "--grampus", "target/debug/grampus"],
    )?;
    step("the coordination interface over ZooKeeper", &["compat/zookeeper/run"])?;
    // The tests of all crates built the example.
    step(
        "a reader of the directory of a running server",
        &["compat/directory/run", "--grampus", "target/debug/grampus"],
    )?;
    sql::test()?;
    step(
        "installed files, and the package",
        &[
            "compat/packages/run",
            "--files",
            "--grampus",
            "target/debug/grampus",
            "--sql",
            "target/sql/debug/grampus-sql",
        ],
    )?;
    // The last steps, because they build target/debug/grampus with other features. The features are
    // those of the workspace, so that only the server and the sinks are built again.
    let with_otlp = "cargo test --workspace --features server/otlp --locked";
    let step_with_otlp = |title, more: &str| {
        let command = format!("{with_otlp} {more}");
        step(title, &command.split(' ').collect::<Vec<_>>())
    };
    // Of the other crates, no test has this in its name.
    step_with_otlp("tests of OpenTelemetry output", "--lib otlp::")?;
    step_with_otlp("tests of a server with metrics sinks", "--test sinks --test otlp --test start")
}

/// Runs `test`, and checks that a reviewer would otherwise have to do.
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
    // The crates are internal to this workspace, so the documentation is for its developers.
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

/// Checks for known vulnerabilities of dependencies. The database is outside the package registry,
/// so the tool runs only where it is installed; otherwise a message reports that the check was
/// skipped.
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
        .map_err(|error| format!("{title}: cannot start {}: {error}", command[0]))?;
    let seconds = start.elapsed().as_secs();
    if status.success() {
        println!("== {title}: passed, {seconds} s");
        Ok(())
    } else {
        Err(format!("{title}: FAILED after {seconds} s ({status}). Repeat with:  {}", command.join(" ")))
    }
}
