//! Binaries that need no libraries: linked statically with musl, for any Linux of this
//! architecture.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::steps::{step, step_with};
use crate::toolchain::{self, MUSL};

/// Directory of the binaries.
const DIRECTORY: &str = "target/static";

/// Builds both binaries. With `--debug`, faster and larger ones.
///
/// # Errors
/// What is missing or failed.
pub fn build(arguments: &[String]) -> Result<(), String> {
    let is_debug = arguments.iter().any(|argument| argument == "--debug");
    toolchain::require(&[&MUSL])?;
    let host = toolchain::host()?;
    let architecture = host.split('-').next().unwrap_or_default();
    let target = format!("{architecture}-unknown-linux-musl");
    step("the standard library for musl", &["rustup", "target", "add", &target])?;
    // For C code. The linker stays that of the host: with musl-gcc as linker, which does not know
    // `-static-pie`, the binary needs a loader and crashes.
    let compiler = format!("CC_{}", target.replace('-', "_"));
    let environment = [(compiler.as_str(), "musl-gcc")];
    let mut options = vec!["build", "--locked", "--target", &target];
    if !is_debug {
        options.push("--release");
    }
    let profile = if is_debug { "debug" } else { "release" };
    let builds = [
        ("grampus", vec!["--package", "server"], "target"),
        (
            "grampus-sql",
            vec!["--manifest-path", "sql/Cargo.toml", "--target-dir", "target/sql"],
            "target/sql",
        ),
    ];
    for (name, more, directory) in builds {
        let command = [&["cargo"][..], &options, &more].concat();
        step_with(&format!("static {name}"), &command, &environment)?;
        keep(&Path::new(directory).join(&target).join(profile).join(name), name)?;
    }
    Ok(())
}

/// Copies a binary without symbols, after it has run and was found to load no library.
fn keep(binary: &Path, name: &str) -> Result<(), String> {
    let kept = Path::new(DIRECTORY).join(name);
    let failed = |error: std::io::Error| format!("{}: {error}", kept.display());
    fs::create_dir_all(DIRECTORY).map_err(failed)?;
    let (from, to) = (binary.to_string_lossy(), kept.to_string_lossy());
    step("without symbols", &["strip", "-o", &to, &from])?;
    step("it runs", &[&to, "--version"])?;
    let dynamic = Command::new("readelf").args(["--dynamic", &to]).output().map_err(failed)?;
    match String::from_utf8_lossy(&dynamic.stdout).contains("(NEEDED)") {
        true => Err(format!("{to} needs libraries: readelf --dynamic {to}")),
        false => Ok(()),
    }
}
