//! The network between hosts: byte streams with latency, partitions and lost connections.
//!
//! Each direction of a connection is a queue of segments, like TCP: bytes arrive in order, once,
//! and a writer waits when 64 KiB are not read yet. Faults are:
//!
//! * a blocked link (one direction between two hosts): segments wait at the end of the link. They
//!   are delivered when the link is unblocked, or the connection breaks after some time. A new
//!   connection is not answered;
//! * a process that ends: its peers see the end of the stream or a reset, depending on the seed. A
//!   connection to a port without a listener is refused;
//! * a host without power: nothing is sent, and nothing is answered. After its restart, its peers
//!   see a reset.
//!
//! A paused process keeps its sockets: connections to it are accepted, and bytes are buffered.

mod connection;
mod connector;
mod listener;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Listener, Network, Stream};

use self::connection::{Connection, ConnectionId, Side};
use self::listener::{Backlog, SimListener};
use crate::random::RandomSource;
use crate::scheduler::{Owner, Scheduler};
use crate::timeline::Timeline;

/// First port for listeners that request port 0 and for the connecting side.
const FIRST_FREE_PORT: u16 = 49152;

/// A host of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(usize);

/// How a process ends, as its peers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process was killed: its host closes its sockets.
    Process,
    /// The host lost power: its peers receive nothing.
    Host,
}

/// The network of one world.
pub struct SimNetwork {
    scheduler: Arc<Scheduler>,
    timeline: Arc<Timeline>,
    random: RandomSource,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    hosts: Vec<Host>,
    // Directions that are blocked: from, to.
    blocked: BTreeSet<(HostId, HostId)>,
    // Factors of latencies of slow directions.
    slow: BTreeMap<(HostId, HostId), u32>,
    listeners: BTreeMap<(HostId, u16), Arc<Backlog>>,
    connections: BTreeMap<ConnectionId, Connection>,
    last_connection: u64,
}

struct Host {
    name: String,
    address: IpAddr,
    has_power: bool,
    last_port: u16,
}

impl SimNetwork {
    /// A network without hosts.
    pub fn new(seed: u64, scheduler: Arc<Scheduler>, timeline: Arc<Timeline>) -> Arc<SimNetwork> {
        Arc::new(SimNetwork {
            scheduler,
            timeline,
            random: RandomSource::new(seed, "network"),
            state: Mutex::default(),
        })
    }

    /// Adds a host, which is found by its name or its address.
    ///
    /// # Panics
    /// If a host of this name exists.
    pub fn add_host(&self, name: &str) -> HostId {
        let mut state = self.lock();
        assert!(state.hosts.iter().all(|host| host.name != name), "two hosts are named {name}");
        let number = u8::try_from(state.hosts.len() + 1).expect("fewer than 255 hosts");
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, number));
        state.hosts.push(Host { name: name.to_string(), address, has_power: true, last_port: 0 });
        HostId(state.hosts.len() - 1)
    }

    /// The network as a process of `host` sees it. Its sockets belong to `owner`.
    pub fn of_host(self: &Arc<Self>, host: HostId, owner: Owner) -> Arc<dyn Network> {
        Arc::new(HostNetwork { network: self.clone(), host, owner })
    }

    /// The name of a host.
    pub fn host_name(&self, host: HostId) -> String {
        self.lock().hosts[host.0].name.clone()
    }

    /// Whether messages from one host to another are held back.
    pub fn is_blocked(&self, from: HostId, to: HostId) -> bool {
        self.lock().is_blocked(from, to)
    }

    /// Holds back everything that one host sends to another.
    pub fn block(&self, from: HostId, to: HostId) {
        let mut state = self.lock();
        if from != to && state.blocked.insert((from, to)) {
            self.record(&state, &format!("blocked {} -> {}", state.name(from), state.name(to)));
        }
    }

    /// Delivers again what one host sends to another.
    pub fn unblock(self: &Arc<Self>, from: HostId, to: HostId) {
        let mut state = self.lock();
        if !state.blocked.remove(&(from, to)) {
            return;
        }
        self.record(&state, &format!("unblocked {} -> {}", state.name(from), state.name(to)));
        self.release_segments(&mut state, from, to);
    }

    /// Blocks both directions between each host of `left` and each of `right`.
    pub fn partition(&self, left: &[HostId], right: &[HostId]) {
        for (one, other) in left.iter().flat_map(|one| right.iter().map(move |other| (*one, *other))) {
            self.block(one, other);
            self.block(other, one);
        }
    }

    /// Multiplies the latency from one host to another.
    pub fn slow_down(&self, from: HostId, to: HostId, factor: u32) {
        let mut state = self.lock();
        self.record(&state, &format!("{} -> {} is {factor} times slower", state.name(from), state.name(to)));
        state.slow.insert((from, to), factor);
    }

    /// Removes all blocks and slow links.
    pub fn heal(self: &Arc<Self>) {
        let blocked = {
            let mut state = self.lock();
            state.slow.clear();
            state.blocked.clone()
        };
        for (from, to) in blocked {
            self.unblock(from, to);
        }
    }

    /// Resets all connections between two hosts.
    pub fn break_connections(&self, one: HostId, other: HostId) {
        let mut state = self.lock();
        let mut broken = 0;
        for connection in state.connections.values_mut() {
            if connection.hosts() == [one, other] || connection.hosts() == [other, one] {
                connection.reset(Side::Client, io::ErrorKind::ConnectionReset);
                connection.reset(Side::Server, io::ErrorKind::ConnectionReset);
                broken += 1;
            }
        }
        let (one, other) = (state.name(one), state.name(other));
        self.record(&state, &format!("reset {broken} connections between {one} and {other}"));
    }

    /// Ends the sockets of a process that ended.
    pub fn end_process(self: &Arc<Self>, host: HostId, owner: Owner, crash: Crash) {
        let mut state = self.lock();
        state.hosts[host.0].has_power = crash == Crash::Process;
        let listeners: Vec<_> = state.listeners.extract_if(.., |_, backlog| backlog.owner == owner).collect();
        let mut ended: Vec<(ConnectionId, Side)> = Vec::new();
        for (id, connection) in &mut state.connections {
            for side in [Side::Client, Side::Server] {
                if connection.owner(side) == owner && !connection.is_closed(side) {
                    ended.push((*id, side));
                }
            }
        }
        for (id, side) in ended {
            match crash {
                Crash::Process => self.close(&mut state, id, side, self.random.one_in(2)),
                Crash::Host => self.close_silently(&mut state, id, side),
            }
        }
        drop(state);
        // Connections in a backlog close when they are dropped, which takes the lock.
        drop(listeners);
    }

    /// Gives a host power again. The peers of its earlier connections see a reset.
    pub fn start_host(self: &Arc<Self>, host: HostId) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.hosts[host.0].has_power, true) {
            return;
        }
        for (id, side) in state.silent_ends(host) {
            // When the peer sends something again.
            let delay = self.random.between(Duration::from_millis(50), Duration::from_secs(3));
            let network = self.clone();
            self.scheduler.after(delay, move || network.send_reset(id, side));
        }
    }

    /// The time that a message takes.
    pub fn latency(&self, from: HostId, to: HostId) -> Duration {
        let factor = self.lock().slow.get(&(from, to)).copied().unwrap_or(1);
        self.random_latency(from, to) * factor
    }

    /// Most messages take less than a millisecond, some far longer.
    fn random_latency(&self, from: HostId, to: HostId) -> Duration {
        let micros = |from, to| self.random.between(Duration::from_micros(from), Duration::from_micros(to));
        match self.random.below(1024) {
            _ if from == to => micros(5, 30),
            0 => micros(20_000, 300_000),
            1..24 => micros(1_000, 20_000),
            _ => micros(60, 400),
        }
    }

    fn record(&self, state: &State, event: &str) {
        debug_assert!(!state.hosts.is_empty(), "events are of hosts");
        self.timeline.record(self.scheduler.now(), "network", event);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_blocked(&self, from: HostId, to: HostId) -> bool {
        self.blocked.contains(&(from, to))
    }

    fn name(&self, host: HostId) -> &str {
        &self.hosts[host.0].name
    }

    fn find_host(&self, host: &str) -> Option<HostId> {
        let is_host = |known: &Host| known.name == host || known.address.to_string() == host;
        self.hosts.iter().position(is_host).map(HostId)
    }

    fn connection(&mut self, id: ConnectionId) -> &mut Connection {
        self.connections.get_mut(&id).expect("a connection exists until both of its ends are closed")
    }

    fn silent_ends(&self, host: HostId) -> Vec<(ConnectionId, Side)> {
        let silent = |(id, connection): (&ConnectionId, &Connection)| {
            connection.silent_side(host).map(|side| (*id, side))
        };
        self.connections.iter().filter_map(silent).collect()
    }

    fn free_port(&mut self, host: HostId) -> u16 {
        loop {
            let known = &mut self.hosts[host.0];
            let port = FIRST_FREE_PORT + known.last_port % (u16::MAX - FIRST_FREE_PORT);
            known.last_port = known.last_port.wrapping_add(1);
            if !self.listeners.contains_key(&(host, port)) {
                return port;
            }
        }
    }
}

/// The network as one process sees it.
struct HostNetwork {
    network: Arc<SimNetwork>,
    host: HostId,
    owner: Owner,
}

impl Network for HostNetwork {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        let listener = SimListener::listen(&self.network, self.host, self.owner, address);
        Box::pin(std::future::ready(listener.map(|listener| Box::new(listener) as Box<dyn Listener>)))
    }

    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = connector::connect(&self.network, (self.host, self.owner), host, port).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

#[cfg(test)]
mod tests;
