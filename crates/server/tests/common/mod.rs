//! Starts a server as users do: the binary in its own process, with its own ports and directory.
//!
//! Tests run concurrently. Each server picks an offset at which all ports are free, and tries
//! another one if a port is taken in the meantime. Directories are removed and processes ended when
//! their values are dropped.
#![allow(dead_code, reason = "each test uses a part of this module")]
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The ports of a server with offset 0.
pub const PORTS: [u16; 5] = [2181, 16000, 16010, 16020, 16030];
/// A start or stop that takes longer hangs. Long enough for a busy machine.
const START_STOP_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of offsets tried.
const OFFSETS_MAX: u32 = 40;

/// A directory that is removed when dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    /// Creates an empty directory.
    pub fn new() -> TempDir {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("server-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    /// A path in the directory.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Unpacks a root directory that HBase wrote, a test vector of the crate `adoption`. Returns its
/// path in `dir`.
pub fn unpack(dir: &TempDir, name: &str) -> PathBuf {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adoption/tests/vectors");
    let mut tar = Command::new("tar");
    tar.arg("xzf").arg(vectors.join(format!("{name}.tar.gz"))).arg("-C").arg(dir.join(""));
    assert!(tar.status().unwrap().success(), "{name}");
    dir.join(name)
}

/// The binary, with no configuration in its environment.
pub fn grampus() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grampus"));
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("GRAMPUS_"));
        if is_ours || name == "HBASE_CONF_DIR" {
            command.env_remove(name);
        }
    }
    command
}

/// An offset at which all ports are free at present.
pub fn free_offset() -> u16 {
    // Below the range of ephemeral ports, and far from a server with default ports. Test processes
    // start at different offsets.
    const FIRST: u16 = 5_000;
    const STEP: u16 = 100;
    const COUNT: u16 = 100;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap();
    for _ in 0..COUNT {
        let at = (process.wrapping_mul(37).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))) % COUNT;
        let offset = FIRST + at * STEP;
        if PORTS.iter().all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port + offset)).is_ok()) {
            return offset;
        }
    }
    panic!("no offset has free ports");
}

/// A running server.
pub struct Server {
    child: Child,
    lines: Receiver<String>,
    errors: PathBuf,
    /// The offset of its ports.
    pub offset: u16,
}

impl Server {
    /// Starts a server on `data` and waits until it announces that it is ready.
    pub fn start(data: &Path) -> Server {
        Server::start_with(data, &[])
    }

    /// As [`Server::start`], with more arguments.
    pub fn start_with(data: &Path, arguments: &[&str]) -> Server {
        Server::start_in(data, arguments, &[])
    }

    /// As [`Server::start_with`], with environment variables.
    pub fn start_in(data: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        Server::start_by(&grampus, data, arguments, variables)
    }

    /// Starts a server with a limit of open files.
    pub fn start_limited(data: &Path, files: u32) -> Server {
        let limited = || {
            let of = grampus();
            let mut command = Command::new("sh");
            command.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\"")]).arg(of.get_program());
            for (name, value) in of.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            command
        };
        Server::start_by(&limited, data, &[], &[])
    }

    fn start_by(
        program: &dyn Fn() -> Command,
        data: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Server {
        for _ in 0..OFFSETS_MAX {
            let offset = free_offset();
            let mut server = Server::spawn(program(), data, offset, arguments, variables);
            if server.wait_ready() {
                return server;
            }
            let errors = server.errors();
            assert!(errors.contains("choose another port"), "the server did not start: {errors}");
        }
        panic!("other processes keep taking the ports before the server starts");
    }

    fn spawn(
        mut program: Command,
        data: &Path,
        offset: u16,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Server {
        let errors = data.with_extension("stderr");
        let mut child = program
            .arg("start")
            .arg("--data")
            .arg(data)
            .args(["--port-offset", &offset.to_string()])
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        // Reads to the end, so that the server never blocks on a full pipe.
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        Server { child, lines, errors, offset }
    }

    /// Waits until the server is ready. Returns `false` if it ended before.
    fn wait_ready(&mut self) -> bool {
        self.wait_line(" is ready after ").is_some()
    }

    /// Waits for a line on standard output that contains `part`; `None` if the output ends before.
    pub fn wait_line(&mut self, part: &str) -> Option<String> {
        let deadline = Instant::now() + START_STOP_TIMEOUT;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return Some(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("no line with '{part}': {}", self.errors()),
            }
        }
    }

    /// Everything written to standard error so far.
    pub fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `HOST:PORT` of the ZooKeeper endpoint.
    pub fn zookeeper(&self) -> String {
        format!("127.0.0.1:{}", PORTS[0] + self.offset)
    }

    /// `grampus shell` with these arguments, connected to this server.
    pub fn shell_command(&self, arguments: &[&str]) -> Command {
        let mut command = grampus();
        command
            .args(["shell", "--port-offset", &self.offset.to_string()])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Runs commands in the shell.
    pub fn shell(&self, commands: &str) -> Output {
        self.shell_command(&["-e", commands]).output().unwrap()
    }

    /// Stops the server with SIGTERM and waits until it has ended.
    pub fn stop(mut self) -> ExitStatus {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        wait(&mut self.child)
    }

    /// Kills the server, as a power loss would, except that the page cache survives.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running gateway, for example `grampus rest`; ended when dropped.
///
/// Its output stays open: a process that prints to a closed pipe ends.
pub struct Gateway(Child, BufReader<ChildStdout>);

impl Gateway {
    /// Starts a gateway on a free port, and waits for the line with `mark`, which ends with the
    /// port.
    pub fn start(command: &str, arguments: &[&str], mark: &str) -> (Gateway, u16) {
        let mut process = grampus();
        process.arg(command).args(["--port", "0"]).args(arguments);
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = process.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let line = output.by_ref().lines().map_while(Result::ok).find(|line| line.contains(mark));
        let line = line.unwrap();
        let port = line.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        (Gateway(child, output), port)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a process to end. A process that hangs is killed, and the test fails.
pub fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + START_STOP_TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("process {} does not end", child.id());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command that is expected to end on its own.
pub fn run(command: &mut Command) -> Output {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The output of such commands fits into a pipe's buffer.
    wait(&mut child);
    child.wait_with_output().unwrap()
}

/// Output of a process as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
