//! An [`Env`] for tests: seeded random numbers, tokio's test clock, tasks on the test's runtime, an
//! in-memory network.
//!
//! With `#[tokio::test(start_paused = true)]` time advances only when every task waits for it, so a
//! run depends only on its seed. On a runtime that is not paused the same `Env` runs in real time.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::BoxFuture;
use crate::env::{Clock, Env, Incoming, Listener, MakeTask, Network, Random, Spawner, Stream, TaskClass};

/// Initial wall clock of a [`TestClock`]: 2023-11-14 22:13:20 UTC.
pub const START_MS: u64 = 1_700_000_000_000;

/// An environment that depends only on `seed`: its own clock, random numbers and network.
pub fn env(seed: u64) -> Env {
    Env {
        clock: Arc::new(TestClock::new()),
        random: Arc::new(SeededRandom::new(seed)),
        spawner: Arc::new(TestSpawner::new()),
        net: Arc::new(MemoryNetwork::default()),
    }
}

/// Tokio's clock as a wall clock that begins at [`START_MS`].
pub struct TestClock {
    start: Instant,
}

impl TestClock {
    /// A clock that starts now. Create it on the runtime whose (paused) time it should follow.
    pub fn new() -> TestClock {
        TestClock { start: Instant::now() }
    }
}

impl Default for TestClock {
    fn default() -> TestClock {
        TestClock::new()
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        START_MS + u64::try_from(self.monotonic().as_millis()).expect("a test ends before the clock does")
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    // Tests sleep only through this function.
    #[allow(clippy::disallowed_methods)]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Random numbers from a seed (SplitMix64: each seed gives a different sequence of full period).
pub struct SeededRandom {
    state: AtomicU64,
}

impl SeededRandom {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom { state: AtomicU64::new(seed) }
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Runs tasks of every class on one runtime: the one it was created on, else the current one.
pub struct TestSpawner {
    runtime: Option<Handle>,
}

impl TestSpawner {
    /// A spawner on the current runtime, if there is one.
    pub fn new() -> TestSpawner {
        TestSpawner { runtime: Handle::try_current().ok() }
    }
}

impl Default for TestSpawner {
    fn default() -> TestSpawner {
        TestSpawner::new()
    }
}

impl Spawner for TestSpawner {
    fn spawn_with(&self, _class: TaskClass, make: MakeTask) -> JoinHandle<()> {
        let runtime = self.runtime.clone().unwrap_or_else(Handle::current);
        runtime.spawn(async move { make().await })
    }
}

// Pipe capacity, like that of socket buffers: a writer waits for the reader when it is full.
const PIPE_BYTES: usize = 64 * 1024;
// Maximum number of unaccepted connections; like a full backlog, it refuses further ones.
const BACKLOG: usize = 128;
// First port for listeners that request port 0 and for the connecting side.
const FIRST_FREE_PORT: u16 = 49152;

/// A network of in-memory pipes. Any host name reaches it; a listener is found only by its port.
///
/// Clones of one [`Env`] share a network; separately created environments do not.
#[derive(Default)]
pub struct MemoryNetwork {
    ports: Arc<Mutex<Ports>>,
}

#[derive(Default)]
struct Ports {
    listeners: HashMap<u16, mpsc::Sender<Incoming>>,
    given: u16,
}

impl Ports {
    fn free_port(&mut self) -> u16 {
        loop {
            let port = FIRST_FREE_PORT + self.given % (u16::MAX - FIRST_FREE_PORT);
            self.given = self.given.wrapping_add(1);
            if !self.listeners.contains_key(&port) {
                return port;
            }
        }
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

impl MemoryNetwork {
    fn listen_now(&self, mut address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        if address.port() == 0 {
            address.set_port(ports.free_port());
        }
        if ports.listeners.contains_key(&address.port()) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{address} is in use")));
        }
        let (send, receive) = mpsc::channel(BACKLOG);
        ports.listeners.insert(address.port(), send);
        let receive = tokio::sync::Mutex::new(receive);
        Ok(Box::new(MemoryListener { address, receive, ports: self.ports.clone() }))
    }

    fn connect_now(&self, port: u16) -> io::Result<Box<dyn Stream>> {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let refused =
            || io::Error::new(io::ErrorKind::ConnectionRefused, format!("no listener on port {port}"));
        let backlog = ports.listeners.get(&port).ok_or_else(refused)?.clone();
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let incoming = Incoming {
            peer: loopback(ports.free_port()),
            local: loopback(port),
            open: Box::new(move || Ok(Box::new(far))),
        };
        backlog.try_send(incoming).map_err(|_| refused())?;
        Ok(Box::new(near))
    }
}

impl Network for MemoryNetwork {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(std::future::ready(self.listen_now(address)))
    }

    fn connect<'a>(&'a self, _host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(std::future::ready(self.connect_now(port)))
    }

    fn has_address(&self, address: IpAddr) -> bool {
        address.is_loopback()
    }
}

struct MemoryListener {
    address: SocketAddr,
    receive: tokio::sync::Mutex<mpsc::Receiver<Incoming>>,
    ports: Arc<Mutex<Ports>>,
}

impl Listener for MemoryListener {
    fn local_addr(&self) -> SocketAddr {
        self.address
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<Incoming>> {
        Box::pin(async move {
            let next = self.receive.lock().await.recv().await;
            Ok(next.expect("the network holds the sender while the listener lives"))
        })
    }
}

impl Drop for MemoryListener {
    fn drop(&mut self) {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).listeners.remove(&self.address.port());
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_passes_when_all_wait() {
        let env = env(1);
        env.clock.sleep(Duration::from_secs(3600)).await;
        assert_eq!(env.clock.now_ms(), START_MS + 3_600_000);
        assert_eq!(env.timeout(Duration::from_secs(1), std::future::pending::<()>()).await, None);
        assert_eq!(env.clock.monotonic(), Duration::from_secs(3601));
    }

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let take = |seed| {
            let env = env(seed);
            [0; 4].map(|_: u64| env.random.next_u64())
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        // First output of SplitMix64 with seed 0 in its author's reference code.
        assert_eq!(env(0).random.next_u64(), 0xe220_a839_7b1d_cdaf);
    }

    #[tokio::test(start_paused = true)]
    async fn two_ends_talk() {
        let env = env(1);
        let listener = env.net.listen(loopback(0)).await.unwrap();
        let port = listener.local_addr().port();
        assert_ne!(port, 0);
        let server = env.spawn(TaskClass::Connection, async move {
            let incoming = listener.accept().await.unwrap();
            assert_eq!(incoming.local.port(), port);
            let mut stream = (incoming.open)().unwrap();
            let mut question = [0; 4];
            stream.read_exact(&mut question).await.unwrap();
            assert_eq!(&question, b"ping");
            stream.write_all(b"pong").await.unwrap();
        });
        let mut stream = env.net.connect("any.host", port).await.unwrap();
        stream.write_all(b"ping").await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"pong");
        server.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn ports_are_allocated_and_freed() {
        let env = env(1);
        let listener = env.net.listen(loopback(16000)).await.unwrap();
        let taken = env.net.listen(loopback(16000)).await.err().map(|error| error.kind());
        assert_eq!(taken, Some(io::ErrorKind::AddrInUse));
        drop(listener);
        let refused = env.net.connect("localhost", 16000).await.err().map(|error| error.kind());
        assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
        env.net.listen(loopback(16000)).await.unwrap();
    }
}
