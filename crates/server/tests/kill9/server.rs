//! The server as a child process.
#![allow(clippy::disallowed_methods, reason = "a process and its files are what is tested here")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use base::env::Env;

/// A start on what a kill left may have a log to replay, on a machine that has other things to do.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Lines of the server's log that a failure tells.
const LAST_LINES: usize = 30;
/// Variables of this test that mean nothing to the server.
const OWN_VARIABLES: [&str; 4] =
    ["GRAMPUS_KILL_CYCLES", "GRAMPUS_KILL_SEED", "GRAMPUS_KILL_BINARY", "GRAMPUS_KEEP_IMAGES"];
/// The system chooses ports, so that tests run side by side; nobody looks at pages.
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
    // Kept open: a server whose output nobody takes could not print.
    stdout: Option<BufReader<ChildStdout>>,
    log: PathBuf,
}

impl Server {
    /// Executes the binary; its log goes to the end of the file `log`.
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

    /// Waits until it serves; the address of its ZooKeeper endpoint.
    ///
    /// # Panics
    /// If it ends before, or takes too long.
    pub async fn ready(&mut self, env: &Env) -> String {
        let stdout = self.stdout.take().expect("asked once");
        let reading = tokio::task::spawn_blocking(|| read_address(stdout));
        let Some(read) = env.timeout(READY_WITHIN, reading).await else {
            self.kill();
            panic!("the server is not ready after {READY_WITHIN:?}; {}", self.last_words());
        };
        let (address, stdout) = read.expect("reading does not panic");
        self.stdout = Some(stdout);
        address.unwrap_or_else(|| {
            let ended = self.child.wait().expect("a child can be waited for");
            panic!("the server ended at its start, {ended}; {}", self.last_words())
        })
    }

    /// Sends SIGKILL and waits for the end.
    ///
    /// # Panics
    /// If it had ended by itself.
    pub fn kill(&mut self) {
        let ended = self.child.try_wait().expect("a child can be asked for");
        assert_eq!(ended, None, "the server ended by itself; {}", self.last_words());
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// The end of its log, which may be gone with the machine when somebody reads of the failure.
    pub fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        format!("its log {} ends with\n{}", self.log.display(), last.join("\n"))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what the server says at its start, up to the address of its ZooKeeper endpoint.
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
