//! Time, random numbers, tasks and network as injected values.
//!
//! Product code never uses the operating system's versions directly (clippy enforces this); it
//! takes an [`Env`]. The server builds one from real clocks and sockets. Tests build one from a
//! seed and a paused clock, so that a failing run can be repeated.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::BoxFuture;

/// The environment of a component, apart from files.
#[derive(Clone)]
pub struct Env {
    /// Wall clock, monotonic clock and timers.
    pub clock: Arc<dyn Clock>,
    /// Random numbers (names, salts, jitter).
    pub random: Arc<dyn Random>,
    /// Starts tasks.
    pub spawner: Arc<dyn Spawner>,
    /// Listening and connecting.
    pub net: Arc<dyn Network>,
}

/// Wall clock, monotonic clock and timers.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the Unix epoch, the unit of cell timestamps. May jump.
    fn now_ms(&self) -> u64;
    /// Time since some fixed start of the process; never decreases. For leases, durations, rates.
    /// Includes the time for which the machine was suspended, unlike timers.
    fn monotonic(&self) -> Duration;
    /// Completes `duration` from now.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// A source of random numbers, seeded in simulations.
pub trait Random: Send + Sync + 'static {
    /// The next 64 random bits.
    fn next_u64(&self) -> u64;

    /// Fills `bytes` with random bits.
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Which threads a task runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskClass {
    /// One of the per-core runtimes that serve connections; must never block or compute for long.
    Connection,
    /// The runtime of timers, chores and procedures; short steps only.
    Service,
    /// Threads of lower priority for flush, compaction and other long computations. Tasks may
    /// compute, but must not block on I/O.
    Background,
    /// Threads of lower priority, one per core, for calls that read a large number of rows; the
    /// same rules.
    Scan,
}

/// Creates a task's future on the thread that will run it (sockets register with their runtime
/// there).
pub type MakeTask = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Starts tasks. A started task runs without being awaited; dropping its handle does not end it.
pub trait Spawner: Send + Sync + 'static {
    /// Starts a task on one of the threads of `class`.
    fn spawn_with(&self, class: TaskClass, make: MakeTask) -> JoinHandle<()>;
}

impl Env {
    /// Starts `task` on the threads of `class`.
    pub fn spawn(&self, class: TaskClass, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.spawner.spawn_with(class, Box::new(move || Box::pin(task)))
    }

    /// Runs `work` as a task of `class`, and waits for its end. The task continues if the caller
    /// stops waiting. Returns `None` if the task panicked.
    pub async fn run_to_end<T: Send + 'static>(
        &self,
        class: TaskClass,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (send, done) = oneshot::channel();
        self.spawn(class, async move {
            // The caller may have gone.
            let _ = send.send(work.await);
        });
        done.await.ok()
    }

    /// Waits for `future` for at most `limit`. Returns `None` on a timeout, after dropping the
    /// future.
    pub async fn timeout<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = self.clock.sleep(limit) => None,
        }
    }
}

/// A two-way byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An accepted connection that is not bound to a runtime yet.
pub struct Incoming {
    /// Address of the remote end.
    pub peer: SocketAddr,
    /// Local address of the connection.
    pub local: SocketAddr,
    /// Binds the connection permanently to the calling runtime.
    pub open: Box<dyn FnOnce() -> io::Result<Box<dyn Stream>> + Send>,
}

/// A socket that accepts connections.
pub trait Listener: Send + Sync + 'static {
    /// The address of the listening socket (with the port chosen by the system, if 0 was
    /// requested).
    fn local_addr(&self) -> SocketAddr;
    /// Waits for the next connection. The caller should log and skip errors of single connections.
    fn accept(&self) -> BoxFuture<'_, io::Result<Incoming>>;
}

/// A socket on which several servers accept connections.
impl Listener for Arc<dyn Listener> {
    fn local_addr(&self) -> SocketAddr {
        (**self).local_addr()
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<Incoming>> {
        (**self).accept()
    }
}

/// Listening and connecting.
pub trait Network: Send + Sync + 'static {
    /// Listens on `address`; port 0 lets the system choose.
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>>;
    /// Connects to the first reachable address of `host`.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>>;
    /// Whether `host` resolves to an address of this machine that other machines can use. Returns
    /// true if the network does not know, which has no two machines with the same name.
    fn resolves_here<'a>(&'a self, host: &'a str) -> BoxFuture<'a, bool> {
        let _ = host;
        Box::pin(std::future::ready(true))
    }
    /// Whether this machine has `address`. Returns false if the network does not know.
    fn has_address(&self, address: IpAddr) -> bool {
        let _ = address;
        false
    }
}
