//! The server: accepts connections, opens them, and serves each on the thread that it was given to.
//!
//! What a stranger can cost is bounded before he has said who he is (connections, bytes, time), and what a client can
//! cost after that too: requests are admitted against one number of bytes, answers against another, and a client that
//! does not read its answers is not read from; one that hardly moves is parted with. Servers of one process
//! [share](Shared) these numbers.
//!
//! * [`handshake`]: preamble and header;
//! * [`inbox`]: bytes in, frames out, admission;
//! * [`connection`]: runs the calls of one connection and gathers their answers;
//! * [`calls`]: those of them that were not ready at once;
//! * [`compressed`]: calls whose cells are compressed;
//! * [`overloaded`]: the answers where there is no room;
//! * [`outbox`]: answers in, vectored writes out;
//! * [`instruments`]: what is counted of calls;
//! * [`pace`]: whether a client goes on fast enough for what it makes the server hold;
//! * [`shared`]: what the servers of a process share;
//! * [`observer`]: who is told of calls that took long.

mod calls;
mod compressed;
mod connection;
mod handshake;
mod inbox;
mod instruments;
mod observer;
mod outbox;
mod overloaded;
mod pace;
mod shared;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::env::{Env, Incoming, Listener, Stream, TaskClass};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::call::Service;
use handshake::Opened;
pub use instruments::{CallCounts, CallInstruments};
pub use observer::{CallObserver, EndedCall, Watch};
pub use shared::Shared;

/// Limits of a server. The defaults are HBase's where HBase has one.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Bytes of the longest request frame (`hbase.ipc.max.request.size`).
    pub max_request_bytes: u32,
    /// Bytes of requests held at a time; beyond it they are answered `CallQueueTooBigException`
    /// (`hbase.ipc.server.max.callqueue.size`).
    pub queued_bytes_max: usize,
    /// Bytes of answers held at a time, being made or unread; beyond it calls are refused in the same way.
    pub answer_bytes_max: usize,
    /// Calls at work at a time; beyond it they are answered `CallQueueTooBigException`
    /// (`hbase.ipc.server.max.callqueue.length`). `None`: as many as their bytes allow.
    pub calls_max: Option<usize>,
    /// Connections at a time; more are closed at once.
    pub connections_max: usize,
    /// Connections of one address that have not yet sent their header.
    pub handshakes_per_address_max: usize,
    /// Time for preamble and header.
    pub handshake_limit: Duration,
    /// Bytes of answers that a client may leave unread before no more of its requests are begun.
    pub unsent_bytes_soft_max: usize,
    /// Bytes of unread answers at which the calls already begun wait too.
    pub unsent_bytes_hard_max: usize,
    /// How long a client may stop in the middle of a frame, or leave its answers unread; in this time it has to move what
    /// is there, or at least a MiB of it. Where memory is tight it has a twelfth of the time.
    pub stall_limit: Duration,
    /// How long calls may go on once their client is gone, or the server stops.
    pub drain_limit: Duration,
    /// Who is told of calls that take long.
    pub watch: Option<Watch>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            max_request_bytes: 256 << 20,
            queued_bytes_max: 1 << 30,
            answer_bytes_max: 1 << 30,
            calls_max: None,
            connections_max: 10_000,
            handshakes_per_address_max: 2_000,
            handshake_limit: Duration::from_secs(10),
            unsent_bytes_soft_max: 4 << 20,
            unsent_bytes_hard_max: 64 << 20,
            stall_limit: Duration::from_secs(60),
            drain_limit: Duration::from_secs(60),
            watch: None,
        }
    }
}

/// A server of some services on any number of listeners.
pub struct Server {
    // Fixed when made.
    env: Env,
    services: Vec<Arc<dyn Service>>,
    options: ServerOptions,
    cluster_id: Option<String>,
    shared: Arc<Shared>,
    instruments: Arc<CallCounts>,
    stop: watch::Sender<bool>,
    // Counts; each changes when a connection comes, has opened or goes.
    connections: AtomicUsize,
    handshakes: Mutex<HashMap<IpAddr, usize>>,
}

impl Server {
    /// A server that is not listening yet. `cluster_id` answers clients that ask for it in place of a preamble.
    ///
    /// # Panics
    /// If two services have one name.
    pub fn new(
        env: Env,
        services: Vec<Arc<dyn Service>>,
        options: ServerOptions,
        cluster_id: Option<String>,
    ) -> Arc<Server> {
        let shared = Shared::new(&options);
        Server::sharing(env, services, options, cluster_id, shared)
    }

    /// The same, with limits that other servers of the process keep together with this one.
    ///
    /// # Panics
    /// If two services have one name.
    pub fn sharing(
        env: Env,
        services: Vec<Arc<dyn Service>>,
        options: ServerOptions,
        cluster_id: Option<String>,
        shared: Arc<Shared>,
    ) -> Arc<Server> {
        for (at, service) in services.iter().enumerate() {
            assert!(services[..at].iter().all(|other| other.name() != service.name()), "one service a name");
        }
        Arc::new(Server {
            shared,
            instruments: Arc::new(CallCounts::begin(env.clock.monotonic())),
            env,
            services,
            options,
            cluster_id,
            stop: watch::channel(false).0,
            connections: AtomicUsize::new(0),
            handshakes: Mutex::default(),
        })
    }

    /// Serves what `listener` accepts, until [`stop`](Server::stop).
    pub fn serve(self: &Arc<Server>, listener: Box<dyn Listener>) -> JoinHandle<()> {
        let server = Arc::clone(self);
        self.env.spawn(TaskClass::Service, async move { server.accept_all(listener).await })
    }

    /// Accepts and reads no more, lets begun calls finish within the drain limit, and returns when all connections are
    /// closed.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let pause = Duration::from_millis(5);
        let mut left = self.options.drain_limit + Duration::from_secs(1);
        while self.connections() > 0 && left > Duration::ZERO {
            self.env.clock.sleep(pause).await;
            left = left.saturating_sub(pause);
        }
    }

    /// Connections now.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Bytes of requests held now (a little more than that: connections take them in steps).
    pub fn queued_bytes(&self) -> usize {
        self.shared.requests().used()
    }

    /// What it counts of its calls.
    pub fn instruments(&self) -> &Arc<CallCounts> {
        &self.instruments
    }

    /// The limits that it keeps, perhaps together with others.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    async fn accept_all(self: Arc<Server>, listener: Box<dyn Listener>) {
        let mut stop = self.stop.subscribe();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok(incoming) => self.admit(incoming),
                Err(error) => {
                    // Out of descriptors, most likely: accepting again at once would only spin.
                    warn!(%error, local = %listener.local_addr(), "cannot accept a connection; next try in 100 ms");
                    self.env.clock.sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn admit(self: &Arc<Server>, incoming: Incoming) {
        let Some(guest) = Guest::admit(self, incoming.peer.ip()) else {
            self.shared.count_turned_away();
            debug!(peer = %incoming.peer, "too many connections; closed");
            return;
        };
        let server = Arc::clone(self);
        let task = move || -> base::BoxFuture<'static, ()> {
            // Here, on its own thread, the connection is tied to the runtime.
            let (peer, local) = (incoming.peer, incoming.local);
            match (incoming.open)() {
                Ok(stream) => Box::pin(server.attend(guest, stream, peer, local)),
                Err(error) => {
                    debug!(%peer, %error, "cannot open a connection");
                    Box::pin(std::future::ready(()))
                }
            }
        };
        self.env.spawner.spawn_with(TaskClass::Connection, Box::new(task));
    }

    async fn attend(
        self: Arc<Server>,
        mut guest: Guest,
        mut stream: Box<dyn Stream>,
        peer: std::net::SocketAddr,
        local: std::net::SocketAddr,
    ) {
        let mut stop = self.stop.subscribe();
        let opening = handshake::open(&self, &mut stream, peer, local);
        let opened = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            opened = self.env.timeout(self.options.handshake_limit, opening) => opened,
        };
        match opened {
            Some(Ok(Opened::Serving { service, info })) => {
                guest.opened();
                connection::serve(&self, stream, service, info, stop).await;
            }
            Some(Ok(Opened::Answered)) => {}
            Some(Err(error)) => debug!(%peer, %error, "a connection was not opened"),
            None => debug!(%peer, "a connection was not opened in time"),
        }
    }

    fn service(&self, name: &str) -> Option<&Arc<dyn Service>> {
        self.services.iter().find(|service| service.name() == name)
    }
}

/// A connection's place among the counted ones; left when dropped.
struct Guest {
    server: Arc<Server>,
    address: IpAddr,
    opening: bool,
}

impl Guest {
    fn admit(server: &Arc<Server>, address: IpAddr) -> Option<Guest> {
        let mut handshakes = server.handshakes.lock().unwrap_or_else(PoisonError::into_inner);
        let count = handshakes.get(&address).copied().unwrap_or(0);
        if count >= server.options.handshakes_per_address_max
            || !server.shared.admit_connection(server.options.connections_max)
        {
            return None;
        }
        handshakes.insert(address, count + 1);
        server.connections.fetch_add(1, Ordering::Relaxed);
        Some(Guest { server: Arc::clone(server), address, opening: true })
    }

    /// The header is through: the connection no longer counts as a stranger's.
    fn opened(&mut self) {
        if !std::mem::take(&mut self.opening) {
            return;
        }
        let mut handshakes = self.server.handshakes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = handshakes.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                handshakes.remove(&self.address);
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.opened();
        self.server.shared.connection_gone();
        self.server.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
