//! The server: accepts connections, performs their handshakes, and serves each on its assigned
//! thread.
//!
//! Before a client's header has arrived, its connections, bytes and time are limited. Afterwards,
//! its requests are admitted against one byte budget and its responses against another. The server
//! stops reading from a client that does not read its responses, and closes connections that make
//! almost no progress. Servers of one process [share](Shared) these limits.
//!
//! * [`handshake`]: preamble and header;
//! * [`inbox`]: reads and admits requests;
//! * [`connection`]: runs the calls of one connection and batches their responses;
//! * [`calls`]: the calls that were not ready immediately;
//! * [`compressed`]: calls whose cells are compressed;
//! * [`overloaded`]: the responses when a limit is reached;
//! * [`outbox`]: batches and writes responses;
//! * [`instruments`]: metrics of calls;
//! * [`pace`]: checks whether a client makes progress while it pins memory;
//! * [`shared`]: the limits that the servers of a process share;
//! * [`observer`]: the observer of slow calls and large responses.

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

use crate::call::{AllowAll, Authorizer, Service};
use handshake::HandshakeOutcome;
pub use instruments::{CallCounts, CallInstruments};
pub use observer::{CallObserver, EndedCall, Watch};
pub use shared::Shared;

/// Limits of a server. The defaults are HBase's where HBase has one.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Maximum size in bytes of a request frame (`hbase.ipc.max.request.size`).
    pub max_request_bytes: u32,
    /// Maximum total size in bytes of requests in memory; further ones fail with
    /// `CallQueueTooBigException` (`hbase.ipc.server.max.callqueue.size`).
    pub queued_bytes_max: usize,
    /// Maximum total size in bytes of responses that are being built or are unsent; further calls
    /// fail with `CallQueueTooBigException`.
    pub response_bytes_max: usize,
    /// Maximum number of concurrent calls; further ones fail with `CallQueueTooBigException`
    /// (`hbase.ipc.server.max.callqueue.length`). Calls of high priority are counted separately.
    /// `None`: limited only by their bytes.
    pub calls_max: Option<usize>,
    /// Maximum number of connections; further ones are closed immediately.
    pub connections_max: usize,
    /// Maximum number of connections from one address that have not sent their header yet.
    pub handshakes_per_address_max: usize,
    /// Timeout for preamble and header.
    pub handshake_limit: Duration,
    /// Unsent bytes of a client's responses above which no more of its requests are started.
    pub unsent_bytes_soft_max: usize,
    /// Unsent bytes of a client's responses above which calls that have started wait too.
    pub unsent_bytes_hard_max: usize,
    /// How long a client may stop in the middle of a frame, or not read its responses. In this
    /// time it must transfer what is pending, or at least 1 MiB of it. Under memory pressure the
    /// time is a twelfth of this.
    pub stall_limit: Duration,
    /// How long calls may continue after their client disconnected or the server was stopped.
    pub drain_limit: Duration,
    /// The observer of slow calls and large responses.
    pub watch: Option<Watch>,
    /// Decides whether each call may run.
    pub authorizer: Arc<dyn Authorizer>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            max_request_bytes: 256 << 20,
            queued_bytes_max: 1 << 30,
            response_bytes_max: 1 << 30,
            calls_max: None,
            connections_max: 10_000,
            handshakes_per_address_max: 2_000,
            handshake_limit: Duration::from_secs(10),
            unsent_bytes_soft_max: 4 << 20,
            unsent_bytes_hard_max: 64 << 20,
            stall_limit: Duration::from_secs(60),
            drain_limit: Duration::from_secs(60),
            watch: None,
            authorizer: Arc::new(AllowAll),
        }
    }
}

/// A server of several services on any number of listeners.
pub struct Server {
    // Constant after construction.
    env: Env,
    services: Vec<Arc<dyn Service>>,
    options: ServerOptions,
    cluster_id: Option<String>,
    shared: Arc<Shared>,
    instruments: Arc<CallCounts>,
    stop: watch::Sender<bool>,
    // Counters; they change when a connection arrives, completes its handshake, or ends.
    connections: AtomicUsize,
    handshakes: Mutex<HashMap<IpAddr, usize>>,
}

impl Server {
    /// A server that is not listening yet. `cluster_id` is the response to clients that request it
    /// in place of a preamble.
    ///
    /// # Panics
    /// If two services have the same name.
    pub fn new(
        env: Env,
        services: Vec<Arc<dyn Service>>,
        options: ServerOptions,
        cluster_id: Option<String>,
    ) -> Arc<Server> {
        let shared = Shared::new(&options);
        Server::sharing(env, services, options, cluster_id, shared)
    }

    /// Like [`new`](Self::new), with limits that are shared with other servers of the process.
    ///
    /// # Panics
    /// If two services have the same name.
    pub fn sharing(
        env: Env,
        services: Vec<Arc<dyn Service>>,
        options: ServerOptions,
        cluster_id: Option<String>,
        shared: Arc<Shared>,
    ) -> Arc<Server> {
        for (at, service) in services.iter().enumerate() {
            assert!(
                services[..at].iter().all(|other| other.name() != service.name()),
                "service names must be unique"
            );
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

    /// Serves the connections that `listener` accepts, until [`stop`](Server::stop).
    pub fn serve(self: &Arc<Server>, listener: Box<dyn Listener>) -> JoinHandle<()> {
        let server = Arc::clone(self);
        self.env.spawn(TaskClass::Service, async move { server.accept_all(listener).await })
    }

    /// Stops accepting and reading, and lets calls that have started finish within the drain limit.
    /// Returns when all connections are closed.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let pause = Duration::from_millis(5);
        let mut left = self.options.drain_limit + Duration::from_secs(1);
        while self.connections() > 0 && left > Duration::ZERO {
            self.env.clock.sleep(pause).await;
            left = left.saturating_sub(pause);
        }
    }

    /// Current number of connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Current size in bytes of requests in memory (slightly overestimated, because connections
    /// reserve in steps).
    pub fn queued_bytes(&self) -> usize {
        self.shared.request_budget().used()
    }

    /// Metrics of the server's calls.
    pub fn instruments(&self) -> &Arc<CallCounts> {
        &self.instruments
    }

    /// The server's limits, possibly shared with other servers.
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
                    // Most likely out of file descriptors: an immediate retry would only spin.
                    warn!(%error, local = %listener.local_addr(), "cannot accept a connection; retrying in 100 ms");
                    self.env.clock.sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn admit(self: &Arc<Server>, incoming: Incoming) {
        let Some(slot) = ConnectionSlot::admit(self, incoming.peer.ip()) else {
            self.shared.count_connection_rejected();
            debug!(peer = %incoming.peer, "too many connections; closing a new one");
            return;
        };
        let server = Arc::clone(self);
        let task = move || -> base::BoxFuture<'static, ()> {
            // Runs on the connection's own thread, where the connection registers with the runtime.
            let (peer, local) = (incoming.peer, incoming.local);
            match (incoming.open)() {
                Ok(stream) => Box::pin(server.serve_connection(slot, stream, peer, local)),
                Err(error) => {
                    debug!(%peer, %error, "cannot open a connection");
                    Box::pin(std::future::ready(()))
                }
            }
        };
        self.env.spawner.spawn_with(TaskClass::Connection, Box::new(task));
    }

    async fn serve_connection(
        self: Arc<Server>,
        mut slot: ConnectionSlot,
        mut stream: Box<dyn Stream>,
        peer: std::net::SocketAddr,
        local: std::net::SocketAddr,
    ) {
        let mut stop = self.stop.subscribe();
        let opening = handshake::open(&self, &mut stream, peer, local);
        let handshake = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            handshake = self.env.timeout(self.options.handshake_limit, opening) => handshake,
        };
        match handshake {
            Some(Ok(HandshakeOutcome::Serving { service, info })) => {
                slot.end_handshake();
                connection::serve(&self, stream, service, info, stop).await;
            }
            Some(Ok(HandshakeOutcome::Answered)) => {}
            Some(Err(error)) => debug!(%peer, %error, "connection handshake failed"),
            None => debug!(%peer, "connection handshake timed out"),
        }
    }

    fn service(&self, name: &str) -> Option<&Arc<dyn Service>> {
        self.services.iter().find(|service| service.name() == name)
    }
}

/// A connection's slot in the connection limits; released when dropped.
struct ConnectionSlot {
    server: Arc<Server>,
    address: IpAddr,
    is_handshaking: bool,
}

impl ConnectionSlot {
    fn admit(server: &Arc<Server>, address: IpAddr) -> Option<ConnectionSlot> {
        let mut handshakes = server.handshakes.lock().unwrap_or_else(PoisonError::into_inner);
        let count = handshakes.get(&address).copied().unwrap_or(0);
        if count >= server.options.handshakes_per_address_max
            || !server.shared.admit_connection(server.options.connections_max)
        {
            return None;
        }
        handshakes.insert(address, count + 1);
        server.connections.fetch_add(1, Ordering::Relaxed);
        Some(ConnectionSlot { server: Arc::clone(server), address, is_handshaking: true })
    }

    /// The header has arrived: the connection no longer counts as a handshake.
    fn end_handshake(&mut self) {
        if !std::mem::take(&mut self.is_handshaking) {
            return;
        }
        let mut handshakes = self.server.handshakes.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(handshakes.contains_key(&self.address), "a handshake is counted until it ends");
        if let Some(count) = handshakes.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                handshakes.remove(&self.address);
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.end_handshake();
        self.server.shared.release_connection();
        self.server.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
