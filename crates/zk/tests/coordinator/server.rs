//! A ZooKeeper server that a test may stop and kill.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// ZooKeeper's unit of time. Session timeouts are between 2 and 20 of it.
const TICK_MS: u32 = 1000;

/// A running server. It is killed when it is dropped.
pub struct Server {
    pub port: u16,
    dir: PathBuf,
    class: &'static str,
    process: Child,
}

impl Server {
    /// A server of its own.
    pub fn standalone() -> Server {
        let server = Server::spawn("", free_port(), new_dir(), "ZooKeeperServerMain");
        server.wait_until("Mode: standalone");
        server
    }

    /// Three servers that elect a leader.
    pub fn three() -> Vec<Server> {
        let ports: Vec<u16> = (0..9).map(|_| free_port()).collect();
        // A follower gives up a silent leader after `syncLimit` ticks.
        let mut members = "initLimit=20\nsyncLimit=10\n".to_string();
        for id in 0..3 {
            let (quorum, election) = (ports[3 + id], ports[6 + id]);
            writeln!(members, "server.{id}=127.0.0.1:{quorum}:{election}").unwrap();
        }
        let servers: Vec<Server> = (0..3)
            .map(|id| {
                let dir = new_dir();
                std::fs::create_dir_all(dir.join("data")).unwrap();
                std::fs::write(dir.join("data/myid"), id.to_string()).unwrap();
                Server::spawn(&members, ports[id], dir, "quorum.QuorumPeerMain")
            })
            .collect();
        for server in &servers {
            server.wait_until("Mode: ");
        }
        servers
    }

    fn spawn(members: &str, port: u16, dir: PathBuf, class: &'static str) -> Server {
        std::fs::create_dir_all(dir.join("data")).unwrap();
        let config = format!(
            "tickTime={TICK_MS}\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n{members}",
            dir.join("data").display()
        );
        std::fs::write(dir.join("zoo.cfg"), config).unwrap();
        let process = start(&dir, class);
        Server { port, dir, class, process }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Stops the process: it keeps its connections, but does nothing.
    pub fn stop(&self) {
        self.signal("-STOP");
    }

    /// Continues a stopped process.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts the process again, with its data.
    pub fn restart(&mut self) {
        self.process = start(&self.dir, self.class);
        self.wait_until("Mode: ");
    }

    pub fn is_leader(&self) -> bool {
        self.status().contains("Mode: leader")
    }

    fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// What the server reports about itself; empty if it does not respond.
    fn status(&self) -> String {
        let mut text = String::new();
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let _ = stream.write_all(b"srvr");
            let _ = stream.read_to_string(&mut text);
        }
        text
    }

    fn wait_until(&self, mode: &str) {
        let start = Instant::now();
        while !self.status().contains(mode) {
            assert!(start.elapsed() < PATIENCE, "the server did not start: see {}/log", self.dir.display());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

fn start(dir: &std::path::Path, class: &str) -> Child {
    let command = std::env::var("GRAMPUS_TEST_ZOOKEEPER_COMMAND")
        .expect("compat/zookeeper/run sets GRAMPUS_TEST_ZOOKEEPER_COMMAND");
    let mut words = command.lines();
    let log = std::fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
    Command::new(words.next().unwrap())
        .args(words)
        .arg(format!("org.apache.zookeeper.server.{class}"))
        .arg(dir.join("zoo.cfg"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// A port that no process uses. It is not one that the system gives to connections, because those
/// of other tests could take it before the server does, or while it is restarted.
fn free_port() -> u16 {
    static PORTS: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id() % 100 * 100;
    let next = || 20_000 + ((first + PORTS.fetch_add(1, Ordering::Relaxed)) % 10_000) as u16;
    std::iter::repeat_with(next).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

fn new_dir() -> PathBuf {
    static DIRS: AtomicU32 = AtomicU32::new(0);
    let name = format!("zookeeper-{}-{}", std::process::id(), DIRS.fetch_add(1, Ordering::Relaxed));
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}
