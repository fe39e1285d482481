//! A listening socket and its backlog.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use base::BoxFuture;
use base::env::{Incoming, Listener};

use super::{HostId, SimNetwork};
use crate::scheduler::Owner;

/// Maximum number of connections that were not accepted yet. Further ones are not answered.
const BACKLOG: usize = 128;

/// Connections that wait to be accepted.
pub(super) struct Backlog {
    pub(super) owner: Owner,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    connections: VecDeque<Incoming>,
    waker: Option<Waker>,
}

impl Backlog {
    pub(super) fn is_full(&self) -> bool {
        self.lock().connections.len() >= BACKLOG
    }

    pub(super) fn push(&self, incoming: Incoming) {
        let mut waiting = self.lock();
        waiting.connections.push_back(incoming);
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listening socket; closed when it is dropped.
pub(super) struct SimListener {
    network: Arc<SimNetwork>,
    host: HostId,
    address: SocketAddr,
    backlog: Arc<Backlog>,
}

impl SimListener {
    /// Listens on the port of `address`. Every address is one of the host.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`].
    pub(super) fn listen(
        network: &Arc<SimNetwork>,
        host: HostId,
        owner: Owner,
        mut address: SocketAddr,
    ) -> io::Result<SimListener> {
        let mut state = network.lock();
        address.set_ip(state.hosts[host.0].address);
        if address.port() == 0 {
            address.set_port(state.free_port(host));
        }
        let key = (host, address.port());
        if state.listeners.contains_key(&key) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{address} is in use")));
        }
        let backlog = Arc::new(Backlog { owner, waiting: Mutex::default() });
        state.listeners.insert(key, backlog.clone());
        Ok(SimListener { network: network.clone(), host, address, backlog })
    }
}

impl Listener for SimListener {
    fn local_addr(&self) -> SocketAddr {
        self.address
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<Incoming>> {
        Box::pin(std::future::poll_fn(|context| {
            let mut waiting = self.backlog.lock();
            match waiting.connections.pop_front() {
                Some(incoming) => Poll::Ready(Ok(incoming)),
                None => {
                    waiting.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let key = (self.host, self.address.port());
        let mut state = self.network.lock();
        // After a crash, the port may belong to the next life of the process.
        let is_own = state.listeners.get(&key).is_some_and(|known| Arc::ptr_eq(known, &self.backlog));
        let removed = if is_own { state.listeners.remove(&key) } else { None };
        drop(state);
        drop(removed);
        let waiting = std::mem::take(&mut self.backlog.lock().connections);
        drop(waiting);
    }
}
