//! The operating system's clock and sockets, for tests against a server in another process.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base::BoxFuture;
use base::env::{Clock, Env, Listener, MakeTask, Network, Spawner, Stream, TaskClass};
use base::testing::SeededRandom;
use tokio::task::JoinHandle;

pub fn env() -> Env {
    let clock = OsClock::new();
    // Not seeded from the clock: two clients created at the same time must not use the same nonces.
    let random = SeededRandom::new(RandomState::new().hash_one(clock.now_ms()));
    Env {
        clock: Arc::new(clock),
        random: Arc::new(random),
        spawner: Arc::new(Current),
        net: Arc::new(Sockets),
    }
}

struct OsClock {
    start: Instant,
}

impl OsClock {
    #[allow(clippy::disallowed_methods, reason = "the sanctioned clock of these tests")]
    fn new() -> OsClock {
        OsClock { start: Instant::now() }
    }
}

impl Clock for OsClock {
    #[allow(clippy::disallowed_methods, reason = "the sanctioned clock of these tests")]
    fn now_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
    }
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
    #[allow(clippy::disallowed_methods, reason = "the sanctioned clock of these tests")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

struct Current;

impl Spawner for Current {
    #[allow(clippy::disallowed_methods, reason = "the sanctioned spawner of these tests")]
    fn spawn_with(&self, _class: TaskClass, make: MakeTask) -> JoinHandle<()> {
        tokio::spawn(async move { make().await })
    }
}

struct Sockets;

impl Network for Sockets {
    fn listen(&self, _address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }

    #[allow(clippy::disallowed_methods, reason = "the sanctioned network of these tests")]
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
