//! Opening a connection: a request that is repeated until it is answered.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::env::Incoming;
use tokio::sync::oneshot;

use super::connection::{Connection, ConnectionId, Side};
use super::stream::SimStream;
use super::{HostId, SimNetwork, State};
use crate::scheduler::Owner;

/// The pause before the first repetition of a request; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Requests before the connection attempt fails, after about a minute.
const ATTEMPTS: u32 = 6;

/// A connection attempt.
struct Attempt {
    client: (HostId, Owner),
    server: HostId,
    port: u16,
    answer: oneshot::Sender<io::Result<SimStream>>,
    requests: u32,
}

/// Connects to a port of the host of this name or address.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] for an unknown host, [`io::ErrorKind::ConnectionRefused`],
/// [`io::ErrorKind::TimedOut`].
pub(super) async fn connect(
    network: &Arc<SimNetwork>,
    client: (HostId, Owner),
    host: &str,
    port: u16,
) -> io::Result<SimStream> {
    let server = match host {
        "localhost" | "127.0.0.1" => Some(client.0),
        host => network.lock().find_host(host),
    };
    let server = server.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no host {host}")))?;
    let (answer, answered) = oneshot::channel();
    network.request(Attempt { client, server, port, answer, requests: 1 });
    answered.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

impl SimNetwork {
    fn request(self: &Arc<Self>, attempt: Attempt) {
        let network = self.clone();
        let latency = self.latency(attempt.client.0, attempt.server);
        self.scheduler.after(latency, move || network.request_arrives(attempt));
    }

    fn request_arrives(self: &Arc<Self>, attempt: Attempt) {
        let mut state = self.lock();
        let (client, server) = (attempt.client.0, attempt.server);
        let is_reachable = state.hosts[server.0].has_power && !state.is_blocked(client, server);
        let backlog = state.listeners.get(&(server, attempt.port)).cloned();
        match backlog {
            _ if attempt.answer.is_closed() => {}
            Some(backlog) if is_reachable && !backlog.is_full() => {
                let id = self.establish(&mut state, &attempt, backlog.owner);
                let incoming = self.incoming(&mut state, &attempt, id);
                drop(state);
                backlog.push(incoming);
                let stream = SimStream::new(self.clone(), id, Side::Client);
                self.answer(attempt, Ok(stream));
            }
            None if is_reachable => {
                drop(state);
                self.answer(attempt, Err(io::ErrorKind::ConnectionRefused.into()));
            }
            _ => self.repeat(attempt),
        }
    }

    /// Repeats a request that was not answered.
    fn repeat(self: &Arc<Self>, mut attempt: Attempt) {
        if attempt.requests == ATTEMPTS {
            let _ = attempt.answer.send(Err(io::ErrorKind::TimedOut.into()));
            return;
        }
        let pause = FIRST_PAUSE * (1 << (attempt.requests - 1));
        attempt.requests += 1;
        let network = self.clone();
        self.scheduler.after(pause, move || network.request(attempt));
    }

    fn establish(&self, state: &mut State, attempt: &Attempt, listener: Owner) -> ConnectionId {
        state.last_connection += 1;
        let id = ConnectionId(state.last_connection);
        state.connections.insert(id, Connection::new(attempt.client, (attempt.server, listener)));
        let text = format!("{}->{}", state.name(attempt.client.0), state.name(attempt.server));
        let numbers = [id.0, u64::from(attempt.port)];
        self.timeline.detail(self.scheduler.now(), "network", "connects", &text, &numbers);
        id
    }

    fn incoming(self: &Arc<Self>, state: &mut State, attempt: &Attempt, id: ConnectionId) -> Incoming {
        let client_port = state.free_port(attempt.client.0);
        let stream = SimStream::new(self.clone(), id, Side::Server);
        Incoming {
            peer: SocketAddr::new(state.hosts[attempt.client.0.0].address, client_port),
            local: SocketAddr::new(state.hosts[attempt.server.0].address, attempt.port),
            // Closed even if it is never opened.
            open: Box::new(move || Ok(Box::new(stream))),
        }
    }

    /// Sends the answer to the client, again and again while the way back is blocked. A stream that
    /// does not reach the client is closed when it is dropped.
    fn answer(self: &Arc<Self>, attempt: Attempt, answer: io::Result<SimStream>) {
        let network = self.clone();
        let latency = self.latency(attempt.server, attempt.client.0);
        self.scheduler.after(latency, move || network.answer_arrives(attempt, answer));
    }

    fn answer_arrives(self: &Arc<Self>, mut attempt: Attempt, answer: io::Result<SimStream>) {
        let is_blocked = self.is_blocked(attempt.server, attempt.client.0);
        if is_blocked && attempt.requests < ATTEMPTS && !attempt.answer.is_closed() {
            let pause = FIRST_PAUSE * (1 << (attempt.requests - 1));
            attempt.requests += 1;
            let network = self.clone();
            self.scheduler.after(pause, move || network.answer(attempt, answer));
            return;
        }
        let answer = if is_blocked { Err(io::ErrorKind::TimedOut.into()) } else { answer };
        let _ = attempt.answer.send(answer);
    }
}
