//! The operating system as an [`Env`]: real clocks, random numbers, sockets, and one runtime per
//! core.

mod clock;
mod files;
mod network;
mod random;
mod runtimes;

use std::sync::Arc;

use base::env::Env;

pub use files::{raise_open_files, read_at_start};
pub use runtimes::Runtimes;

/// The environment of a real process; its tasks run on `runtimes`.
pub fn env(runtimes: Arc<Runtimes>) -> Env {
    Env {
        clock: Arc::new(clock::SystemClock::start()),
        random: Arc::new(random::OsRandom::new()),
        spawner: runtimes,
        net: Arc::new(network::TcpNetwork),
    }
}

/// Files and sockets for metrics sinks.
pub fn sink_io() -> sinks::Io {
    sinks::Io { files: Arc::new(files::LocalFiles), udp: Arc::new(network::UdpNetwork) }
}

/// Runs `future` on the current thread until it completes.
///
/// # Panics
/// If the system has no file descriptors left for a runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("the system has descriptors for a runtime").block_on(future)
}
