//! The operating system as an [`Env`]: real clocks, random numbers, sockets, and one runtime per core.

mod clock;
mod files;
mod network;
mod random;
mod runtimes;

use std::sync::Arc;

use base::env::Env;

pub use files::{raise_open_files, read_at_start};
pub use runtimes::Runtimes;

/// The environment of a real process, its tasks on `runtimes`.
pub fn env(runtimes: Arc<Runtimes>) -> Env {
    Env {
        clock: Arc::new(clock::SystemClock::start()),
        random: Arc::new(random::OsRandom::new()),
        spawner: runtimes,
        net: Arc::new(network::TcpNetwork),
    }
}

/// Files and sockets for sinks of metrics.
pub fn outside_of_sinks() -> sinks::Outside {
    sinks::Outside { files: Arc::new(files::LocalFiles), udp: Arc::new(network::UdpNetwork) }
}

/// Runs `future` on this thread until it is done.
///
/// # Panics
/// If the system has no more descriptors for a runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("the first runtime of the process can be made").block_on(future)
}
