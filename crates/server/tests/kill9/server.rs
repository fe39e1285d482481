//! The server as a child process.
#![allow(clippy::disallowed_methods, reason = "the test controls a process and its files")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use base::env::Env;

/// A start after a kill may have to replay a log on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Lines of the server's log in a failure message.
const LAST_LINES: usize = 30;
/// Variables of this test, which the server does not know.
const OWN_VARIABLES: [&str; 4] =
    ["GRAMPUS_KILL_CYCLES", "GRAMPUS_KILL_SEED", "GRAMPUS_KILL_BINARY", "GRAMPUS_KEEP_IMAGES"];
/// The system assigns the ports, so that tests can run concurrently. Status pages are off.
const PORTS: [&str; 5] = [
    "hbase.master.port=0",
    "hbase.regionserver.port=0",
    "hbase.zookeeper.property.clientPort=0",
    "hbase.master.info.port=-1",
    "hbase.regionserver.info.port=-1",
];

/// A running server. Killed when dropped.
pub struct Server {
    child: Child,
    // Kept open: printing fails once the reading end is closed.
    stdout: Option<BufReader<ChildStdout>>,
    log: PathBuf,
}

impl Server {
    /// Starts the binary and appends its log to the file `log`.
    pub fn start(data: &Path, log: &Path, settings: &[&str]) -> Server {
        let binary = std::env::var_os("GRAMPUS_KILL_BINARY").unwrap_or(env!("CARGO_BIN_EXE_grampus").into());
        let stderr = File::options().create(true).append(true).open(log).expect("the log can be written");
        let mut command = Command::new(binary);
        command.arg("--data").arg(data).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        for setting in PORTS.iter().chain(settings) {
            command.arg("--set").arg(setting);
        }
        for variable in OWN_VARIABLES.iter().chain(&["HBASE_CONF_DIR"]) {
            command.env_remove(variable);
        }
        let mut child = command.spawn().expect("the server's binary can be executed");
        let stdout = child.stdout.take().map(BufReader::new);
        Server { child, stdout, log: log.to_path_buf() }
    }

    /// Waits until the server serves, and returns the address of its ZooKeeper endpoint.
    ///
    /// # Panics
    /// If the server ends before, or takes too long.
    pub async fn ready(&mut self, env: &Env) -> String {
        let stdout = self.stdout.take().expect("called once");
        let reading = tokio::task::spawn_blocking(|| read_address(stdout));
        let Some(read) = env.timeout(READY_WITHIN, reading).await else {
            self.kill();
            panic!("the server is not ready after {READY_WITHIN:?}; {}", self.log_tail());
        };
        let (address, stdout) = read.expect("reading does not panic");
        self.stdout = Some(stdout);
        address.unwrap_or_else(|| {
            let ended = self.child.wait().expect("a child can be waited for");
            panic!("the server ended at its start, {ended}; {}", self.log_tail())
        })
    }

    /// Sends SIGKILL and waits for the end.
    ///
    /// # Panics
    /// If the server had already ended.
    pub fn kill(&mut self) {
        let ended = self.child.try_wait().expect("a child's status can be read");
        assert_eq!(ended, None, "the server ended before the kill; {}", self.log_tail());
        self.end();
    }

    /// Kills the server if it has not ended, and waits for the end.
    pub fn end(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// The end of the server's log, for failure messages, because the log file may not outlive the
    /// machine.
    pub fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        format!("its log {} ends with\n{}", self.log.display(), last.join("\n"))
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have been killed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the startup lines up to the address of the ZooKeeper endpoint.
fn read_address(mut stdout: BufReader<ChildStdout>) -> (Option<String>, BufReader<ChildStdout>) {
    let mut line = String::new();
    while matches!(stdout.read_line(&mut line), Ok(1..)) {
        let mut words = line.split_whitespace();
        if words.next() == Some("ZooKeeper") {
            return (words.next().map(str::to_string), stdout);
        }
        line.clear();
    }
    (None, stdout)
}
