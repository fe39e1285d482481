//! The optimized build: the compiler is shown by a minute of load which ways through the code are common.
//!
//! Grampus is built with counters, asked for rows in all the ways that `bench/compare` measures (and some that it does not), and
//! built again with what was counted: what runs together then lies together, and what is called often is put where it is called.
//! The counts are made anew each time and kept nowhere else, so that they are always those of the code that is built. What was never
//! seen at work is not made for size (`-pgso=false`), but it is not put in place of calls either: what must be quick has to be among
//! what is asked. (Endpoints were not at first, and took two and a half times as long.)

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::steps::step_with;
use crate::toolchain;

/// A build: where all is that it leaves behind, and flags for the compiler.
struct Build {
    directory: &'static str,
    flags: &'static str,
}

/// That of users.
const OPTIMIZED: Build = Build { directory: "target/optimized", flags: "" };
/// That in which nothing is counted, to see what counting costs (`bench/counting`).
const UNCOUNTED: Build = Build { directory: "target/optimized-uncounted", flags: "--cfg uncounted" };
/// Ports of a server without an offset.
const PORTS: [u16; 5] = [2181, 16000, 16010, 16020, 16030];
/// How far they are moved, where they are taken further.
const PORT_OFFSETS: std::ops::Range<u16> = 4000..4100;
/// Rows of the tables that are asked.
const ROWS: &str = "100000";

/// Seconds of a step, and what it asks `grampus bench` for. A row of a scan takes a hundredth of a get's time: with as many seconds
/// for both the compiler would see little but scans.
const LOAD: &[(&str, &str)] = &[
    ("8", "randomRead --clients 10"),
    ("4", "randomRead --clients 1"),
    ("3", "randomRead --clients 2 --in-flight 16"),
    ("3", "randomRead --clients 10 --table large"),
    ("3", "randomRead --clients 10 --table encoded"),
    ("4", "randomRead --clients 10 --batch 100"),
    ("2", "randomRead --clients 1 --batch 100"),
    ("1", "randomRead --clients 4 --batch 20 --table encoded"),
    ("2", "scan --clients 1"),
    ("1", "scan --clients 1 --table encoded"),
    ("1", "scanRange10000 --clients 2 --table large"),
    ("2", "filterScan --clients 1"),
    ("2", "filterRange10000 --clients 1 --returned 1"),
    ("4", "randomWrite --clients 1 --batch 1000 --table written"),
    ("2", "sequentialWrite --clients 2 --batch 100 --table written"),
    ("4", "randomWrite --clients 10 --table written"),
    ("1", "randomWrite --clients 1 --table written"),
    ("3", "increment --clients 10 --table written"),
    ("3", "checkAndPut --clients 10 --table written"),
    // Some of what is written lies in the memstore, some in several files.
    ("2", "randomRead --clients 10 --table written"),
    ("2", "randomRead --clients 10 --batch 100 --table written"),
    ("1", "scan --clients 1 --table written"),
];

/// What `grampus records` is asked for: seconds are those of its rows.
const RECORDS: &[&str] = &[
    "load columns scan endpoint --rows 30000 --attributes 40 --regions 2 --sum 4 --only 6=3 --group-by 1 --runs 6",
    "columns scan endpoint --rows 30000 --attributes 40 --sum 10 --group-by 7 --runs 6",
    "columns --rows 30000 --attributes 40 --sum 4 --only 12=5 --group-by 13 --runs 100",
];

/// The tables: their names, bytes of a value, attributes of their families.
const TABLES: &[(&str, &str, &[&str])] = &[
    ("TestTable", "100", &[]),
    ("large", "1000", &[]),
    ("encoded", "100", &["DATA_BLOCK_ENCODING=FAST_DIFF", "COMPRESSION=SNAPPY", "BLOOMFILTER=ROW"]),
    ("written", "100", &[]),
];

/// Builds it, and tells where it is; with `--uncounted` the one in which nothing is counted.
pub fn build(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [] => OPTIMIZED.run(),
        [flag] if flag == "--uncounted" => UNCOUNTED.run(),
        _ => Err("usage: cargo xtask optimized [--uncounted]".to_string()),
    }
}

impl Build {
    fn run(&self) -> Result<(), String> {
        let merge = toolchain::llvm_tool("llvm-profdata")?;
        let here = fs::canonicalize(".").map_err(|error| format!("this directory: {error}"))?;
        let directory = here.join(self.directory);
        let (counts, profile) = (directory.join("counts"), directory.join("profile"));
        clear(&counts)?;
        let generate = format!("-Cprofile-generate={}", counts.display());
        let counting = self.cargo("the build that counts", "counting", &generate)?;
        run(&counting, &directory)?;
        let words = [as_text(&merge)?, "merge", "--output", as_text(&profile)?, as_text(&counts)?];
        step_with("what was counted", &words, &[])?;
        let by_profile = format!("-Cprofile-use={} -Cllvm-args=-pgso=false", profile.display());
        let optimized = self.cargo("the optimized build", "build", &by_profile)?;
        let binary = directory.join("grampus");
        fs::copy(&optimized, &binary).map_err(|error| format!("{}: {error}", binary.display()))?;
        let told = Path::new(self.directory).join("grampus");
        println!("{0} is the optimized binary; it serves with:  {0}", told.display());
        Ok(())
    }

    /// Builds with these flags for the compiler; the binary.
    fn cargo(&self, title: &str, target_directory: &str, flags: &str) -> Result<PathBuf, String> {
        let (host, target) = (toolchain::host()?, format!("{}/{target_directory}", self.directory));
        // A target is named so that the flags are not given to build scripts.
        let words = [
            &["cargo", "build", "--release", "--locked", "--package", "server"][..],
            &["--target", &host, "--target-dir", &target],
        ];
        let flags = [self.flags, flags].join(" ");
        step_with(title, &words.concat(), &[("RUSTFLAGS", flags.trim())])?;
        Ok(Path::new(&target).join(host).join("release/grampus"))
    }
}

/// Has a server work through all of [`LOAD`]; what it counts is written as it ends.
fn run(binary: &Path, directory: &Path) -> Result<(), String> {
    let data = directory.join("data");
    clear(&data)?;
    let server = Server::start(binary, &data)?;
    for (table, value_bytes, attributes) in TABLES {
        let attributes = attributes.iter().flat_map(|attribute| ["--attribute", attribute]);
        let words = [
            "sequentialRead",
            "--load",
            "--batch",
            "1000",
            "--clients",
            "4",
            "--table",
            table,
            "--value-size",
        ];
        server.ask(words.into_iter().chain([*value_bytes]).chain(attributes))?;
    }
    for (seconds, words) in LOAD {
        println!("   {words}");
        server.ask(words.split(' ').chain(["--warm-up", "0", "--seconds", seconds]))?;
    }
    for words in RECORDS {
        println!("   records {words}");
        server.run("records", words.split(' '))?;
    }
    server.end()?;
    clear(&data)
}

/// A server that counts.
struct Server<'b> {
    binary: &'b Path,
    process: Child,
    // Kept, for a server whose output nobody takes has nowhere to tell of its end.
    _told: BufReader<ChildStdout>,
    zookeeper: String,
}

impl Server<'_> {
    fn start<'b>(binary: &'b Path, data: &Path) -> Result<Server<'b>, String> {
        let offset = free_ports()?;
        let failed = |what: &str| format!("{} {what}", binary.display());
        let mut process = Command::new(binary)
            .arg("--data")
            .arg(data)
            .args(["--port-offset", &offset.to_string()])
            .env_remove("HBASE_CONF_DIR")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&format!("cannot be started: {error}")))?;
        let mut told = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("is ready") {
            line.clear();
            let read = told.read_line(&mut line).map_err(|error| failed(&error.to_string()))?;
            if read == 0 {
                let _ = process.wait();
                return Err(failed("ended before it was ready"));
            }
        }
        let zookeeper = format!("127.0.0.1:{}", PORTS[0] + offset);
        Ok(Server { binary, process, _told: told, zookeeper })
    }

    fn ask<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Result<(), String> {
        self.run("bench", words.into_iter().chain(["--rows", ROWS]))
    }

    /// Runs a sub-command that asks this server.
    fn run<'w>(&self, command: &str, words: impl IntoIterator<Item = &'w str>) -> Result<(), String> {
        let asked = Command::new(self.binary)
            .arg(command)
            .args(words)
            .args(["--zookeeper", &self.zookeeper])
            // What the load generator does is not what is to be counted.
            .env("LLVM_PROFILE_FILE", "/dev/null")
            .output()
            .map_err(|error| format!("{} cannot be started: {error}", self.binary.display()))?;
        match asked.status.success() {
            true => Ok(()),
            false => Err(format!("grampus {command} failed:\n{}", String::from_utf8_lossy(&asked.stderr))),
        }
    }

    /// Ends it in order, so that it writes what it counted.
    fn end(mut self) -> Result<(), String> {
        // Of the shell, for not every machine has a program of that name.
        let told = Command::new("sh").args(["-c", &format!("kill {}", self.process.id())]).status();
        let status =
            told.and_then(|_| self.process.wait()).map_err(|error| format!("the server's end: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the server that counts ended with {status}")) }
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // Without effect where it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How far ports are to be moved for all of them to be free.
fn free_ports() -> Result<u16, String> {
    let is_free =
        |offset: &u16| PORTS.iter().all(|port| TcpListener::bind(("127.0.0.1", port + offset)).is_ok());
    PORT_OFFSETS.step_by(10).find(is_free).ok_or_else(|| "no ports are free for a server that counts".into())
}

/// Removes a directory and what is in it, if it is there.
fn clear(directory: &Path) -> Result<(), String> {
    match directory.exists() {
        true => fs::remove_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display())),
        false => Ok(()),
    }
}

fn as_text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{}: a path that is no text", path.display()))
}
