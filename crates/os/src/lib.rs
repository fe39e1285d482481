//! The operating system as an [`Env`]: real clocks, random numbers, sockets, and one runtime per
//! core. Also the service manager, and the process's log file.

mod clock;
mod files;
mod log_file;
mod network;
mod open_files;
mod random;
mod runtimes;
pub mod service_manager;

use std::sync::Arc;

use base::env::{Env, Spawner};

pub use files::{raise_open_files, read_at_start};
pub use log_file::LogFile;
pub use open_files::{OpenFile, open_files_below};
pub use runtimes::Runtimes;

/// The environment of a real process. Its tasks run on `spawner`, for example on [`Runtimes`].
pub fn env(spawner: Arc<dyn Spawner>) -> Env {
    Env {
        clock: Arc::new(clock::SystemClock::start()),
        random: Arc::new(random::OsRandom::new()),
        spawner,
        net: Arc::new(network::TcpNetwork),
    }
}

/// Runs `future` on the current thread until it completes.
///
/// # Panics
/// If the system has no file descriptors left for a runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("the system has descriptors for a runtime").block_on(future)
}
