//! The tools that tasks need: checked before the work begins, with the command that installs each.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program that a task needs.
pub struct Tool {
    /// Its name on the path.
    pub program: &'static str,
    /// Arguments that make it print its version and exit with 0.
    pub probe: &'static [&'static str],
    /// The purpose of the tool.
    pub purpose: &'static str,
    /// The command that installs it on Debian.
    pub install: &'static str,
}

/// Java 17 or newer.
pub const JAVA: Tool = Tool {
    program: "java",
    probe: &["-version"],
    purpose: "runs the stock HBase clients of compat/",
    install: "apt-get install openjdk-17-jdk-headless",
};

/// Maven.
pub const MAVEN: Tool = Tool {
    program: "mvn",
    probe: &["-v"],
    purpose: "fetches the stock HBase clients of compat/",
    install: "apt-get install maven",
};

/// Python 3.
pub const PYTHON: Tool = Tool {
    program: "python3",
    probe: &["--version"],
    purpose: "drives the comparisons of compat/ and bench/compare",
    install: "apt-get install python3",
};

/// The C compiler for static binaries.
pub const MUSL: Tool = Tool {
    program: "musl-gcc",
    probe: &["--version"],
    purpose: "compiles C code for static binaries",
    install: "apt-get install musl-tools",
};

/// The environment for PyPI's packages: a part of Python that Debian has in a separate package.
pub const VENV: Tool = Tool {
    program: "python3",
    probe: &["-c", "import ensurepip, venv"],
    purpose: "its module venv fetches DuckDB and psql",
    install: "apt-get install python3-venv",
};

/// Reports all missing `tools` together.
pub fn require(tools: &[&Tool]) -> Result<(), String> {
    let missing: Vec<String> = tools
        .iter()
        .filter(|tool| !runs(tool))
        .map(|tool| {
            format!("{} is missing ({}). Install it with:  {}", tool.program, tool.purpose, tool.install)
        })
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(missing.join("\n")) }
}

/// The compiler's name for the host.
pub fn host() -> Result<String, String> {
    asked_of_rustc("host-tuple")
}

/// A tool of the compiler's LLVM version; rustup installs it if it is missing.
pub fn llvm_tool(name: &str) -> Result<PathBuf, String> {
    let libraries = PathBuf::from(asked_of_rustc("target-libdir")?);
    let tool = libraries.with_file_name("bin").join(name);
    if !tool.exists() {
        let added = Command::new("rustup").args(["component", "add", "llvm-tools"]).status();
        if !added.is_ok_and(|status| status.success()) || !tool.exists() {
            return Err(format!("{name} is missing. Install it with:  rustup component add llvm-tools"));
        }
    }
    Ok(tool)
}

fn asked_of_rustc(what: &str) -> Result<String, String> {
    let output = Command::new("rustc")
        .args(["--print", what])
        .output()
        .map_err(|error| format!("cannot start rustc: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn runs(tool: &Tool) -> bool {
    Command::new(tool.program)
        .args(tool.probe)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
