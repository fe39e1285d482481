//! A ZooKeeper ensemble: sessions over the simulated network, on one tree of znodes.
//!
//! The tree is that of [`MemoryEnsemble`]. This module adds what lies between a process and its
//! ensemble:
//!
//! * requests and responses take time. They wait while the link is blocked or the ensemble is down;
//!   after two fifths of the session timeout the client gives the connection up, and the request
//!   fails with [`Error::Unavailable`]. Its change may have been made, or may be made later;
//! * the process sends heartbeats. The ensemble ends a session from which it received nothing for
//!   the session timeout, at its next tick. It does not notice a crash earlier;
//! * for its owner, a session ends as for the client of a real ensemble ([`zk::ensemble`]): at the
//!   timeout after the last acknowledged heartbeat was sent, by the owner's clock;
//! * responses and reports of changes arrive in the order in which they were sent.
//!
//! Clients find the cluster through ZooKeeper's protocol at port 2181 of the host `zk`.
//!
//! Not simulated: several servers of the ensemble, of which one may respond with old values.

mod channel;
mod session;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use zk::coordinator::Error;
use zk::endpoint::{Endpoint, EndpointOptions};
use zk::{Coordinator, MemoryCoordinator, MemoryEnsemble};

use self::channel::Channel;
pub use self::session::SimSession;
use crate::network::HostId;
use crate::process::Life;
use crate::random::RandomSource;
use crate::scheduler::Owner;
use crate::world::World;

/// Name of the ensemble's host.
pub const HOST: &str = "zk";
/// Port of ZooKeeper's protocol.
const PORT: u16 = 2181;
/// Ticks per session timeout. Sessions expire at ticks.
const TICKS: u32 = 10;

/// The ensemble. See the module's documentation.
pub struct SimEnsemble {
    world: Weak<World>,
    host: HostId,
    timeout: Duration,
    tree: Arc<MemoryEnsemble>,
    random: RandomSource,
    state: Mutex<State>,
}

struct State {
    // By session id; without sessions that ended.
    sessions: BTreeMap<i64, ServerSession>,
    is_down: bool,
}

/// A session as the ensemble knows it.
struct ServerSession {
    owner_name: String,
    coordinator: Arc<MemoryCoordinator>,
    last_heard: Duration,
}

impl SimEnsemble {
    /// Starts the ensemble on a host of its own. Sessions have this timeout.
    pub fn start(world: &Arc<World>, timeout: Duration) -> Arc<SimEnsemble> {
        let served: Arc<OnceLock<Arc<MemoryEnsemble>>> = Arc::default();
        let slot = served.clone();
        let process = world.add_process(HOST, move |life| serve(life, served.clone()));
        let life = process.start();
        let tree = slot.get_or_init(|| MemoryEnsemble::new(&life.env)).clone();
        let ensemble = Arc::new(SimEnsemble {
            world: Arc::downgrade(world),
            host: process.host(),
            timeout,
            tree,
            random: world.random("ensemble"),
            state: Mutex::new(State { sessions: BTreeMap::new(), is_down: false }),
        });
        let (ticking, clock) = (Arc::downgrade(&ensemble), life.env.clock.clone());
        world.scheduler().spawn(Owner::WORLD, async move {
            while let Some(ensemble) = ticking.upgrade() {
                ensemble.expire_sessions();
                drop(ensemble);
                clock.sleep(timeout / TICKS).await;
            }
        });
        ensemble
    }

    /// Its host, for partitions.
    pub fn host(&self) -> HostId {
        self.host
    }

    /// The tree of znodes, for checks.
    pub fn tree(&self) -> &Arc<MemoryEnsemble> {
        &self.tree
    }

    /// The session timeout.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Opens a session of a process. Waits until the ensemble is reachable.
    pub async fn connect(self: &Arc<Self>, life: &Life) -> Arc<SimSession> {
        loop {
            let channel = Channel::new(self, life.process.host());
            let sent = life.env.clock.monotonic();
            let name = life.process.name().to_string();
            let opening = channel.exchange(move |ensemble| Ok(ensemble.open(&name)));
            match life.env.timeout(self.patience(), opening).await {
                Some(Some(Ok(coordinator))) => {
                    return SimSession::start(channel, life, coordinator.session_id(), sent);
                }
                // The ensemble may have opened a session, which will expire.
                _ => channel.close(),
            }
        }
    }

    /// How long a client waits for a response before it gives its connection up.
    fn patience(&self) -> Duration {
        self.timeout * 2 / 5
    }

    fn open(&self, owner: &str) -> Arc<MemoryCoordinator> {
        let coordinator = self.tree.connect();
        self.record(&format!("session {} of {owner} begins", coordinator.session_id()));
        let session = ServerSession {
            owner_name: owner.to_string(),
            coordinator: coordinator.clone(),
            last_heard: self.world().now(),
        };
        self.lock().sessions.insert(coordinator.session_id(), session);
        coordinator
    }

    /// Stops the whole ensemble: nothing is answered, and no session expires.
    pub fn stop(&self) {
        self.record("stops");
        self.lock().is_down = true;
    }

    /// Continues after [`stop`](Self::stop). Each session has its full timeout again, as after an
    /// election.
    pub fn resume(&self) {
        let now = self.world().now();
        let mut state = self.lock();
        if !std::mem::replace(&mut state.is_down, false) {
            return;
        }
        for session in state.sessions.values_mut() {
            session.last_heard = now;
        }
        drop(state);
        self.record("continues");
    }

    /// Ends the sessions of a process now.
    pub fn expire(&self, process: &str) {
        self.end_where("is expired", |session| session.owner_name == process);
    }

    fn expire_sessions(&self) {
        let now = self.world().now();
        if !self.lock().is_down {
            self.end_where("expires", |session| now.saturating_sub(session.last_heard) >= self.timeout);
        }
    }

    fn end_where(&self, event: &str, ends: impl Fn(&ServerSession) -> bool) {
        let state = self.lock();
        let ended = state.sessions.iter().filter(|(_, session)| ends(session));
        let ids: Vec<i64> = ended.map(|(id, _)| *id).collect();
        drop(state);
        for id in ids {
            self.end(id, event);
        }
    }

    fn end(&self, id: i64, event: &str) {
        let ended = self.lock().sessions.remove(&id);
        if let Some(session) = ended {
            self.record(&format!("session {id} of {} {event}", session.owner_name));
            session.coordinator.expire_session();
        }
    }

    /// The coordinator of a session, which is heard now.
    ///
    /// # Errors
    /// [`Error::SessionExpired`].
    fn hear(&self, id: i64) -> Result<Arc<MemoryCoordinator>, Error> {
        let now = self.world().now();
        let mut state = self.lock();
        let session = state.sessions.get_mut(&id).ok_or(Error::SessionExpired)?;
        session.last_heard = now;
        Ok(session.coordinator.clone())
    }

    /// Whether a session has not ended.
    fn has_session(&self, id: i64) -> bool {
        self.lock().sessions.contains_key(&id)
    }

    /// Whether a message between the ensemble and a host arrives now.
    fn is_reachable(&self, from: HostId, to: HostId) -> bool {
        !self.lock().is_down && !self.world().network().is_blocked(from, to)
    }

    fn record(&self, event: &str) {
        self.world().record(HOST, event);
    }

    fn world(&self) -> Arc<World> {
        self.world.upgrade().expect("the world exists while something happens in it")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves ZooKeeper's protocol.
async fn serve(life: Life, tree: Arc<OnceLock<Arc<MemoryEnsemble>>>) {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT);
    let listener = life.env.net.listen(address).await.expect("the host has no other listener");
    let coordinator = tree.get_or_init(|| MemoryEnsemble::new(&life.env)).connect();
    let endpoint = Endpoint::new(life.env.clone(), coordinator, EndpointOptions::default());
    endpoint.serve(listener);
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests;
