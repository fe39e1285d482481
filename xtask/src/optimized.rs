//! The optimized build: a profile-guided (PGO) build, trained by a minute of load.
//!
//! Grampus is built with profile counters, runs all operations that `bench/compare` measures (and
//! some that it does not), and is built again with the profile. The compiler then places code that
//! runs together next to each other, and inlines functions that are called often.
//!
//! The profile is regenerated for each build and stored nowhere else, so it always matches the
//! code. Code that the training did not reach is not optimized for size (`-pgso=false`), but it is
//! not inlined either. So every operation that must be fast has to be part of the training.
//! (Endpoints were not at first, and took two and a half times as long.)

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::steps::step_with;
use crate::toolchain;

/// A build: the directory of its outputs, and flags for the compiler.
struct Build {
    directory: &'static str,
    flags: &'static str,
}

/// The build for users.
const OPTIMIZED: Build = Build { directory: "target/optimized", flags: "" };
/// The build without metrics, to measure the cost of metrics (`bench/counting`).
const UNCOUNTED: Build = Build { directory: "target/optimized-uncounted", flags: "--cfg uncounted" };
/// Ports of a server without an offset.
const PORTS: [u16; 5] = [2181, 16000, 16010, 16020, 16030];
/// Offsets to try until all ports are free.
const PORT_OFFSETS: std::ops::Range<u16> = 4000..4100;
/// Number of rows of the training tables.
const ROWS: &str = "100000";

/// Seconds of each step, and its arguments for `grampus bench`. A row of a scan takes a hundredth
/// of a get's time: with as many seconds for both, scans would dominate the profile.
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
    // Some of the written rows are in the memstore, some in several files.
    ("2", "randomRead --clients 10 --table written"),
    ("2", "randomRead --clients 10 --batch 100 --table written"),
    ("1", "scan --clients 1 --table written"),
];

/// Arguments for `records` (bench/records). The duration depends on the number of rows.
const RECORDS: &[&str] = &[
    "load columns scan endpoint --rows 30000 --attributes 40 --regions 2 --sum 4 --only 6=3 --group-by 1 --runs 6",
    "columns scan endpoint --rows 30000 --attributes 40 --sum 10 --group-by 7 --runs 6",
    "columns --rows 30000 --attributes 40 --sum 4 --only 12=5 --group-by 13 --runs 100",
];

/// The tables: their names, value sizes in bytes, and family attributes.
const TABLES: &[(&str, &str, &[&str])] = &[
    ("TestTable", "100", &[]),
    ("large", "1000", &[]),
    ("encoded", "100", &["DATA_BLOCK_ENCODING=FAST_DIFF", "COMPRESSION=SNAPPY", "BLOOMFILTER=ROW"]),
    ("written", "100", &[]),
];

/// Makes the build and prints its path; with `--uncounted`, the build without metrics.
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
        let here = fs::canonicalize(".").map_err(|error| format!("current directory: {error}"))?;
        let directory = here.join(self.directory);
        let (counts, profile) = (directory.join("counts"), directory.join("profile"));
        clear(&counts)?;
        let generate = format!("-Cprofile-generate={}", counts.display());
        let counting =
            self.cargo("the build with profile counters", "counting", &["server", "records"], &generate)?;
        run(&counting, &directory)?;
        let words = [as_text(&merge)?, "merge", "--output", as_text(&profile)?, as_text(&counts)?];
        step_with("merging the profile", &words, &[])?;
        let by_profile = format!("-Cprofile-use={} -Cllvm-args=-pgso=false", profile.display());
        let optimized = self.cargo("the optimized build", "build", &["server"], &by_profile)?;
        let binary = directory.join("grampus");
        fs::copy(optimized.join("grampus"), &binary)
            .map_err(|error| format!("{}: {error}", binary.display()))?;
        let told = Path::new(self.directory).join("grampus");
        println!("{0} is the optimized binary; start it with:  {0}", told.display());
        Ok(())
    }

    /// Builds packages with these compiler flags; returns the directory of the binaries.
    fn cargo(
        &self,
        title: &str,
        target_directory: &str,
        packages: &[&str],
        flags: &str,
    ) -> Result<PathBuf, String> {
        let (host, target) = (toolchain::host()?, format!("{}/{target_directory}", self.directory));
        // With an explicit target, the flags do not apply to build scripts.
        let packages: Vec<&str> = packages.iter().flat_map(|package| ["--package", package]).collect();
        let words = [
            &["cargo", "build", "--release", "--locked"][..],
            &packages,
            &["--target", &host, "--target-dir", &target],
        ];
        let flags = [self.flags, flags].join(" ");
        step_with(title, &words.concat(), &[("RUSTFLAGS", flags.trim())])?;
        Ok(Path::new(&target).join(host).join("release"))
    }
}

/// Runs all of [`LOAD`] and [`RECORDS`] on a server, which writes its profile when it ends.
fn run(binaries: &Path, directory: &Path) -> Result<(), String> {
    let data = directory.join("data");
    clear(&data)?;
    let server = Server::start(binaries, &data)?;
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

/// A server that records a profile.
struct Server<'b> {
    binaries: &'b Path,
    process: Child,
    // Kept open: without a reader of its output, the server could not report its end.
    _told: BufReader<ChildStdout>,
    zookeeper: String,
}

impl Server<'_> {
    fn start<'b>(binaries: &'b Path, data: &Path) -> Result<Server<'b>, String> {
        let offset = free_ports()?;
        let binary = binaries.join("grampus");
        let failed = |what: &str| format!("{} {what}", binary.display());
        let mut process = Command::new(&binary)
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
        Ok(Server { binaries, process, _told: told, zookeeper })
    }

    fn ask<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Result<(), String> {
        self.run("grampus", ["bench"].into_iter().chain(words).chain(["--rows", ROWS]))
    }

    /// Runs a client on this server.
    fn run<'w>(&self, program: &str, words: impl IntoIterator<Item = &'w str>) -> Result<(), String> {
        let asked = Command::new(self.binaries.join(program))
            .args(words)
            .args(["--zookeeper", &self.zookeeper])
            // The load generator must not be part of the profile.
            .env("LLVM_PROFILE_FILE", "/dev/null")
            .output()
            .map_err(|error| format!("cannot start {program}: {error}"))?;
        match asked.status.success() {
            true => Ok(()),
            false => Err(format!("{program} failed:\n{}", String::from_utf8_lossy(&asked.stderr))),
        }
    }

    /// Stops the server gracefully, so that it writes its profile.
    fn end(mut self) -> Result<(), String> {
        // Uses the shell's built-in `kill`, because not every machine has a program of that name.
        let told = Command::new("sh").args(["-c", &format!("kill {}", self.process.id())]).status();
        let status = told
            .and_then(|_| self.process.wait())
            .map_err(|error| format!("stopping the server: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the training server exited with {status}")) }
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // Has no effect if the process has exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Finds an offset for which all ports are free.
fn free_ports() -> Result<u16, String> {
    let is_free =
        |offset: &u16| PORTS.iter().all(|port| TcpListener::bind(("127.0.0.1", port + offset)).is_ok());
    PORT_OFFSETS.step_by(10).find(is_free).ok_or_else(|| "no free ports for the training server".into())
}

/// Removes a directory and its contents, if it exists.
fn clear(directory: &Path) -> Result<(), String> {
    match directory.exists() {
        true => fs::remove_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display())),
        false => Ok(()),
    }
}

fn as_text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{}: path is not UTF-8", path.display()))
}
