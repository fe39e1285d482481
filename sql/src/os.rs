//! The operating system as an [`Env`]: clocks, random numbers, sockets, and tokio's threads.
#![allow(
    clippy::disallowed_methods,
    reason = "implements the clocks, sockets and threads that other code uses through Env"
)]

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base::BoxFuture;
use base::env::{Clock, Env, Incoming, Listener, MakeTask, Network, Random, Spawner, Stream, TaskClass};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// The environment of this process, whose tasks run on the threads of `runtime`.
pub fn env(runtime: Handle) -> Env {
    Env {
        clock: Arc::new(SystemClock { start: Instant::now() }),
        random: Arc::new(SeededRandom { state: AtomicU64::new(RandomState::new().hash_one(0)) }),
        spawner: Arc::new(Threads(runtime)),
        net: Arc::new(Tcp),
    }
}

struct SystemClock {
    start: Instant,
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        // A clock before 1970 is broken; 0 keeps the rest working.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// SplitMix64, for names and jitter, not for secrets.
struct SeededRandom {
    state: AtomicU64,
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.state.fetch_add(GOLDEN, Ordering::Relaxed).wrapping_add(GOLDEN);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Runs all classes of tasks on the same threads: this process stores no rows, and its tasks mostly
/// wait.
struct Threads(Handle);

impl Spawner for Threads {
    fn spawn_with(&self, _: TaskClass, make: MakeTask) -> JoinHandle<()> {
        self.0.spawn(async move { make().await })
    }
}

struct Tcp;

impl Network for Tcp {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let listener = TcpListener::bind(address).await?;
            let local = listener.local_addr()?;
            Ok(Box::new(Listening { listener, local }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

struct Listening {
    listener: TcpListener,
    local: SocketAddr,
}

impl Listener for Listening {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<Incoming>> {
        Box::pin(async move {
            let (stream, peer) = self.listener.accept().await?;
            stream.set_nodelay(true)?;
            let open = Box::new(move || Ok(Box::new(stream) as Box<dyn Stream>));
            Ok(Incoming { peer, local: self.local, open })
        })
    }
}
