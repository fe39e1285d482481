//! The operating system as an [`Env`]: real clocks, random numbers, sockets, and one runtime per core.

mod clock;
mod network;
mod random;
mod runtimes;

use std::sync::Arc;

use base::env::Env;

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
