//! Serves the subset of ZooKeeper's protocol with which HBase's clients find a cluster.
//!
//! Clients only read; changes are refused. Watches are accepted and never fired, which the protocol
//! allows: the client concludes that nothing changed. A session is only a number and is not stored
//! here, so a client can resume one of another connection or of an earlier run of the server.
//!
//! The cost of a client is bounded: number of connections, bytes of a request, time between
//! requests.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Env, Incoming, Listener, Stream, TaskClass};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::coordinator::{Coordinator, Error};
use crate::four_letters::{EndpointReport, Peer, Word};
use crate::protocol::{
    ConnectRequest, ConnectResponse, Malformed, Operation, PASSWORD_LEN, REQUEST_LEN_MAX, Request, code,
    put_buffer, put_reply, put_stat, put_strings,
};

/// Limits of an endpoint.
#[derive(Debug, Clone)]
pub struct EndpointOptions {
    /// Maximum number of connections. Beyond it, the oldest one without a session is closed, or the
    /// new one if all have sessions.
    pub connections_max: usize,
    /// Time limit for a client to request a session, and to read a response.
    pub io_timeout: Duration,
    /// The shortest session timeout granted.
    pub min_session_timeout: Duration,
    /// The longest session timeout granted.
    pub max_session_timeout: Duration,
}

impl Default for EndpointOptions {
    fn default() -> EndpointOptions {
        EndpointOptions {
            connections_max: 4096,
            io_timeout: Duration::from_secs(10),
            min_session_timeout: Duration::from_secs(4),
            max_session_timeout: Duration::from_secs(40),
        }
    }
}

/// A server of ZooKeeper's protocol over a [`Coordinator`].
pub struct Endpoint {
    env: Env,
    coordinator: Arc<dyn Coordinator>,
    options: EndpointOptions,
    stop: watch::Sender<bool>,
    begun: Duration,
    connections: AtomicUsize,
    rejected: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    // By connection number.
    peers: Mutex<BTreeMap<u64, PeerEntry>>,
    next_peer: AtomicU64,
}

/// A connection's state, and the signal that closes it to make room.
struct PeerEntry {
    peer: Peer,
    close: Arc<Notify>,
}

/// Four-letter words count at most this many znodes. With more, they report on the first ones only.
const ZNODES_COUNTED_MAX: u64 = 100_000;

impl Endpoint {
    /// An endpoint that is not listening yet.
    pub fn new(env: Env, coordinator: Arc<dyn Coordinator>, options: EndpointOptions) -> Arc<Endpoint> {
        Arc::new(Endpoint {
            begun: env.clock.monotonic(),
            env,
            coordinator,
            options,
            stop: watch::channel(false).0,
            connections: AtomicUsize::new(0),
            rejected: AtomicU64::new(0),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            peers: Mutex::default(),
            next_peer: AtomicU64::new(0),
        })
    }

    /// Serves connections that `listener` accepts, until [`stop`](Endpoint::stop).
    pub fn serve(self: &Arc<Endpoint>, listener: Box<dyn Listener>) -> JoinHandle<()> {
        let endpoint = Arc::clone(self);
        self.env.spawn(TaskClass::Service, async move { endpoint.accept_all(listener).await })
    }

    /// Accepts no more connections and closes all. Clients reconnect to the next endpoint.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    async fn accept_all(self: Arc<Endpoint>, listener: Box<dyn Listener>) {
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
                    // Most likely out of descriptors: without a pause, the loop would only spin.
                    warn!(%error, local = %listener.local_addr(), "cannot accept a connection; next try in 100 ms");
                    self.env.clock.sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn admit(self: &Arc<Endpoint>, incoming: Incoming) {
        if self.connections() >= self.options.connections_max && !self.close_oldest() {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            debug!(peer = %incoming.peer, "too many connections; closed");
            return;
        }
        self.connections.fetch_add(1, Ordering::Relaxed);
        let guard = ConnectionGuard::register(self, incoming.peer);
        let task = move || -> base::BoxFuture<'static, ()> {
            match (incoming.open)() {
                Ok(stream) => Box::pin(async move { guard.serve(stream, incoming.local).await }),
                Err(error) => {
                    debug!(peer = %incoming.peer, %error, "cannot open a connection");
                    Box::pin(std::future::ready(()))
                }
            }
        };
        self.env.spawner.spawn_with(TaskClass::Service, Box::new(task));
    }

    /// Closes the oldest connection without a session. Clients request a session immediately, so
    /// such a connection is most likely held open for nothing. Returns false if all have sessions.
    fn close_oldest(&self) -> bool {
        let mut peers = self.peers();
        let oldest = peers.iter().find(|(_, entry)| entry.peer.session.is_none()).map(|(number, _)| *number);
        let Some(entry) = oldest.and_then(|number| peers.remove(&number)) else { return false };
        debug!(peer = %entry.peer.address, "closing a connection without a session for a new one");
        entry.close.notify_one();
        true
    }
}

/// A counted connection, removed when dropped.
struct ConnectionGuard {
    endpoint: Arc<Endpoint>,
    number: u64,
    address: SocketAddr,
    close: Arc<Notify>,
}

impl ConnectionGuard {
    fn register(endpoint: &Arc<Endpoint>, address: SocketAddr) -> ConnectionGuard {
        let number = endpoint.next_peer.fetch_add(1, Ordering::Relaxed);
        let close = Arc::new(Notify::new());
        let peer = Peer { address, session: None, received: 0, sent: 0 };
        endpoint.peers().insert(number, PeerEntry { peer, close: close.clone() });
        ConnectionGuard { endpoint: endpoint.clone(), number, address, close }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.endpoint.peers().remove(&self.number);
        let before = self.endpoint.connections.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a connection is counted until it ends");
    }
}

/// Why a connection ended without being closed by its client.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error("connection lost: {0}")]
    Lost(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("the request is too long: {0} bytes")]
    TooLong(u32),
    #[error("timed out waiting for a request")]
    Idle,
    #[error("the client does not read responses")]
    Unread,
}

impl ConnectionGuard {
    async fn serve(self, stream: Box<dyn Stream>, local: SocketAddr) {
        let endpoint = &self.endpoint;
        let mut stop = endpoint.stop.subscribe();
        let mut session = Session { endpoint, number: self.number, local, stream };
        let result = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = self.close.notified() => return,
            result = session.run() => result,
        };
        if let Err(error) = result {
            debug!(peer = %self.address, ended = %error, "a ZooKeeper connection ended");
        }
    }
}

struct Session<'a> {
    endpoint: &'a Endpoint,
    number: u64,
    local: SocketAddr,
    stream: Box<dyn Stream>,
}

/// A client's first message.
enum FirstMessage {
    Word(Word),
    Frame(Bytes),
}

impl Session<'_> {
    async fn run(&mut self) -> Result<(), ConnectionError> {
        let first = match self.read_first().await? {
            FirstMessage::Frame(first) => first,
            FirstMessage::Word(word) => return self.send_report(word).await,
        };
        let request = ConnectRequest::parse(&first)?;
        let response = self.endpoint.connect(&request);
        self.write(&response.encode()).await?;
        if response.session == 0 {
            return Ok(());
        }
        self.update_peer(|peer| peer.session = Some((response.session, response.timeout_ms)));
        // A client pings every third of its timeout; one that does not has gone.
        let timeout = Duration::from_millis(u64::try_from(response.timeout_ms).unwrap_or(0));
        loop {
            let body = self.read_frame(timeout).await?;
            let request = Request::parse(&body)?;
            let mut reply = BytesMut::new();
            self.endpoint.answer(&request, &mut reply).await;
            self.write(&reply).await?;
            if request.operation == Operation::Close {
                self.stream.shutdown().await?;
                return Ok(());
            }
        }
    }

    fn update_peer(&self, change: impl FnOnce(&mut Peer)) {
        if let Some(entry) = self.endpoint.peers().get_mut(&self.number) {
            change(&mut entry.peer);
        }
    }

    async fn send_report(&mut self, word: Word) -> Result<(), ConnectionError> {
        let report = self.endpoint.report(self.local.port()).await;
        if matches!(word, Word::Srst | Word::Crst) {
            self.endpoint.reset(word);
        }
        self.write(report.format(word).as_bytes()).await?;
        self.stream.shutdown().await?;
        Ok(())
    }

    /// The first frame of a session, or a four-letter word in its place.
    async fn read_first(&mut self) -> Result<FirstMessage, ConnectionError> {
        let stream = &mut self.stream;
        let reading = async {
            let len = stream.read_u32().await?;
            match Word::of(len) {
                Some(word) => Ok(FirstMessage::Word(word)),
                None => read_body(stream, len).await.map(FirstMessage::Frame),
            }
        };
        let endpoint = self.endpoint;
        let first = endpoint
            .env
            .timeout(endpoint.options.io_timeout, reading)
            .await
            .unwrap_or(Err(ConnectionError::Idle))?;
        self.count_received();
        Ok(first)
    }

    async fn read_frame(&mut self, limit: Duration) -> Result<Bytes, ConnectionError> {
        let stream = &mut self.stream;
        let reading = async {
            let len = stream.read_u32().await?;
            read_body(stream, len).await
        };
        let body = self.endpoint.env.timeout(limit, reading).await.unwrap_or(Err(ConnectionError::Idle))?;
        self.count_received();
        Ok(body)
    }

    fn count_received(&self) {
        self.endpoint.received.fetch_add(1, Ordering::Relaxed);
        self.update_peer(|peer| peer.received += 1);
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.endpoint.sent.fetch_add(1, Ordering::Relaxed);
        self.update_peer(|peer| peer.sent += 1);
        let stream = &mut self.stream;
        let writing = async {
            stream.write_all(bytes).await?;
            stream.flush().await?;
            Ok(())
        };
        self.endpoint
            .env
            .timeout(self.endpoint.options.io_timeout, writing)
            .await
            .unwrap_or(Err(ConnectionError::Unread))
    }
}

async fn read_body(stream: &mut Box<dyn Stream>, len: u32) -> Result<Bytes, ConnectionError> {
    if len as usize > REQUEST_LEN_MAX {
        return Err(ConnectionError::TooLong(len));
    }
    let mut body = vec![0; len as usize];
    stream.read_exact(&mut body).await?;
    Ok(Bytes::from(body))
}

impl Endpoint {
    fn peers(&self) -> MutexGuard<'_, BTreeMap<u64, PeerEntry>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reset(&self, word: Word) {
        if word == Word::Srst {
            self.received.store(0, Ordering::Relaxed);
            self.sent.store(0, Ordering::Relaxed);
        }
        self.peers().values_mut().for_each(|entry| (entry.peer.received, entry.peer.sent) = (0, 0));
    }

    async fn report(&self, port: u16) -> EndpointReport {
        let mut report = EndpointReport {
            zxid: self.zxid(),
            received: self.received.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            rejected: self.rejected.load(Ordering::Relaxed),
            znodes: 0,
            data_bytes: 0,
            ephemerals: Vec::new(),
            peers: self.peers().values().map(|entry| entry.peer).collect(),
            up_ms: self.env.clock.monotonic().saturating_sub(self.begun).as_millis() as u64,
            port,
            connections_max: self.options.connections_max,
            session_ms: (
                self.options.min_session_timeout.as_millis(),
                self.options.max_session_timeout.as_millis(),
            ),
        };
        let mut ephemerals: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        let mut paths = vec!["/".to_owned()];
        while let Some(path) = paths.pop()
            && report.znodes < ZNODES_COUNTED_MAX
        {
            // A znode that is deleted meanwhile is not counted.
            let Ok(node) = self.coordinator.get(&path).await else { continue };
            report.znodes += 1;
            report.data_bytes += (path.len() + node.data.len()) as u64;
            if node.stat.ephemeral_owner != 0 {
                ephemerals.entry(node.stat.ephemeral_owner).or_default().push(path.clone());
            }
            if let Ok((names, _)) = self.coordinator.children(&path).await {
                let parent = if path == "/" { "" } else { &path };
                paths.extend(names.iter().map(|name| format!("{parent}/{name}")));
            }
        }
        report.ephemerals = ephemerals.into_iter().collect();
        report
    }

    fn zxid(&self) -> i64 {
        self.coordinator.last_zxid()
    }

    /// Grants a session, unless the client has seen changes that are unknown here: for a client,
    /// zxids must not go backwards.
    fn connect(&self, request: &ConnectRequest) -> ConnectResponse {
        let read_only = request.read_only;
        if request.last_zxid > self.zxid() {
            return ConnectResponse { timeout_ms: 0, session: 0, password: [0; PASSWORD_LEN], read_only };
        }
        let (min, max) = (self.options.min_session_timeout, self.options.max_session_timeout);
        let asked = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
        let timeout_ms = i32::try_from(asked.clamp(min, max).as_millis()).unwrap_or(i32::MAX);
        let mut password = [0; PASSWORD_LEN];
        if request.session != 0 && request.password.len() == PASSWORD_LEN {
            password.copy_from_slice(&request.password);
            return ConnectResponse { timeout_ms, session: request.session, password, read_only };
        }
        self.env.random.fill(&mut password);
        let session = (self.env.random.next_u64() >> 1).max(1).cast_signed();
        ConnectResponse { timeout_ms, session, password, read_only }
    }

    /// Appends the reply to one request.
    async fn answer(&self, request: &Request, out: &mut BytesMut) {
        let mut payload = BytesMut::new();
        let error = match self.execute(&request.operation, &mut payload).await {
            Ok(()) => code::OK,
            Err(error) => error,
        };
        // Read after the znodes: the reply's zxid must not be older than its content.
        put_reply(out, request.xid, self.zxid(), error, |out| out.extend_from_slice(&payload));
    }

    async fn execute(&self, operation: &Operation, payload: &mut BytesMut) -> Result<(), i32> {
        let coordinator = &*self.coordinator;
        match operation {
            Operation::Exists(path) => {
                let stat = coordinator.exists(path).await.map_err(code_of)?;
                put_stat(payload, &stat.ok_or(code::NO_NODE)?);
            }
            Operation::GetData(path) => {
                let node = coordinator.get(path).await.map_err(code_of)?;
                put_buffer(payload, &node.data);
                put_stat(payload, &node.stat);
            }
            Operation::GetChildren { path, stat: with_stat } => {
                let (names, stat) = coordinator.children(path).await.map_err(code_of)?;
                put_strings(payload, &names);
                if *with_stat {
                    put_stat(payload, &stat);
                }
            }
            Operation::Sync(path) => put_buffer(payload, path.as_bytes()),
            Operation::Ping | Operation::Auth | Operation::SetWatches | Operation::Close => {}
            Operation::Change => return Err(code::NO_AUTH),
            Operation::Unknown(_) => return Err(code::UNIMPLEMENTED),
        }
        Ok(())
    }
}

fn code_of(error: Error) -> i32 {
    match error {
        Error::NoNode { .. } => code::NO_NODE,
        Error::BadPath { .. } => code::BAD_ARGUMENTS,
        Error::NodeExists { .. } | Error::BadVersion { .. } | Error::NotEmpty { .. } => code::NO_AUTH,
        error @ (Error::SessionExpired | Error::Refused(_) | Error::Unavailable(_)) => {
            warn!(%error, "cannot read znodes for a ZooKeeper client");
            code::SYSTEM_ERROR
        }
    }
}
