//! Fuzz targets: built with LLVM's coverage counters by the pinned stable compiler, and run by
//! libFuzzer.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::toolchain;

/// Makes the compiler insert the counters and comparisons that guide libFuzzer, and sets
/// `cfg(fuzzing)`, with which checksums pass.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Memory use in MiB above which an input is a finding.
const RSS_LIMIT_MB: u32 = 1024;
/// Time in seconds for one input above which it is a finding.
const TIMEOUT_S: u32 = 10;

/// Runs the targets in `names` (all if empty), each for `seconds`.
pub fn run(names: &[String], seconds: u32) -> Result<(), String> {
    let known = targets()?;
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("unknown fuzz target {unknown}; the targets are: {}", known.join(", ")));
    }
    let binaries = build()?;
    let chosen = if names.is_empty() { &known } else { names };
    for target in chosen {
        fuzz(&binaries.join(target), target, seconds)?;
    }
    Ok(())
}

/// The fuzz targets: one per file in `fuzz/targets`.
fn targets() -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir("fuzz/targets").map_err(|error| format!("fuzz/targets: {error}"))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".rs").map(String::from))
        .collect();
    names.sort();
    Ok(names)
}

/// Builds all targets; returns the directory of their binaries.
fn build() -> Result<PathBuf, String> {
    let host = toolchain::host()?;
    // With an explicit target, the flags do not apply to build scripts, which have no counters to
    // report to.
    let status = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--target",
            &host,
        ])
        .env("RUSTFLAGS", RUSTFLAGS)
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !status.success() {
        return Err(
            "the fuzz targets do not build (libFuzzer needs a C++ compiler:  apt-get install g++)".into()
        );
    }
    Ok(Path::new("fuzz/target").join(host).join("release"))
}

/// Runs one target on its earlier findings (`fuzz/corpus`) and its seeds (`fuzz/seeds`, from real
/// files and calls).
fn fuzz(binary: &Path, target: &str, seconds: u32) -> Result<(), String> {
    let corpus = format!("fuzz/corpus/{target}");
    let artifacts = format!("fuzz/artifacts/{target}/");
    for directory in [&corpus, &artifacts] {
        std::fs::create_dir_all(directory).map_err(|error| format!("{directory}: {error}"))?;
    }
    let start = Instant::now();
    let output = Command::new(binary)
        .args([&corpus, &format!("fuzz/seeds/{target}")])
        .arg(format!("-artifact_prefix={artifacts}"))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={RSS_LIMIT_MB}"))
        .arg(format!("-timeout={TIMEOUT_S}"))
        .args(["-max_len=16384", "-print_final_stats=1", "-use_value_profile=1"])
        .output()
        .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let tail: Vec<&str> = report.lines().rev().take(40).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        return Err(format!("fuzz target {target}: a finding, saved in {artifacts}\n{}", tail.join("\n")));
    }
    let figure = |name: &str| {
        report.lines().find_map(|line| line.strip_prefix(name)).map_or("?", str::trim).to_string()
    };
    println!(
        "{target:18} {:>12} inputs in {:>4} s, peak memory {} MiB, no finding",
        figure("stat::number_of_executed_units:"),
        start.elapsed().as_secs(),
        figure("stat::peak_rss_mb:"),
    );
    Ok(())
}
