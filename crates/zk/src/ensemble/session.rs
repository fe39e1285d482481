//! One session: its state, its heartbeats, and the requests that end with it.

use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Clock, Env, TaskClass};
use tokio::sync::watch;
use tracing::{info, warn};
use zookeeper_client::{Client, SessionState as ClientState, StateWatcher};

use super::liveness::{HEARTBEATS, Liveness};
use super::translate;
use crate::coordinator::{Error, SessionState, Stat};

/// A session of the library, with this process's own rule for its end (see [`super`]).
pub(super) struct Session {
    clock: Arc<dyn Clock>,
    id: i64,
    timeout: Duration,
    /// `None` after the end. The library closes the session when the last reference is dropped.
    client: Mutex<Option<Arc<Client>>>,
    liveness: Mutex<Liveness>,
    /// Whether the library has a connection.
    connected: watch::Sender<bool>,
    state: watch::Sender<SessionState>,
    last_zxid: AtomicI64,
}

impl Session {
    /// Takes over a session of the library after a first heartbeat, and starts its task.
    pub(super) async fn start(client: Client, env: &Env) -> Result<Arc<Session>, zookeeper_client::Error> {
        let states = client.state_watcher();
        let sent = env.clock.monotonic();
        client.sync("/").await?;
        let (id, timeout) = (client.session_id().0, client.session_timeout());
        info!("ZooKeeper session {id:#x} is open, with a timeout of {timeout:?}");
        let session = Arc::new(Session {
            clock: Arc::clone(&env.clock),
            id,
            timeout,
            client: Mutex::new(Some(Arc::new(client))),
            liveness: Mutex::new(Liveness::new(timeout, sent)),
            connected: watch::channel(states.peek_state() == ClientState::SyncConnected).0,
            state: watch::channel(SessionState::Connected).0,
            last_zxid: AtomicI64::new(0),
        });
        session.refresh();
        env.spawn(TaskClass::Service, Arc::clone(&session).run(states));
        Ok(session)
    }

    pub(super) fn id(&self) -> i64 {
        self.id
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn state(&self) -> watch::Receiver<SessionState> {
        self.state.subscribe()
    }

    pub(super) fn last_zxid(&self) -> i64 {
        self.last_zxid.load(Ordering::Relaxed)
    }

    /// Whether the session has not expired.
    pub(super) fn is_valid(&self) -> bool {
        lock(&self.liveness).state(true, self.clock.monotonic()) != SessionState::Expired
    }

    /// The library's client, for one operation.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::SessionExpired`].
    pub(super) fn client(&self) -> Result<Arc<Client>, Error> {
        match self.refresh() {
            SessionState::Connected => lock(&self.client).clone().ok_or(Error::SessionExpired),
            SessionState::Suspended => {
                Err(Error::Unavailable("the connection to ZooKeeper is lost (retry)".to_string()))
            }
            SessionState::Expired => Err(Error::SessionExpired),
        }
    }

    /// Waits for a response, or for the end of the session.
    pub(super) async fn response<T>(
        &self,
        response: impl Future<Output = Result<T, zookeeper_client::Error>>,
    ) -> Result<T, zookeeper_client::Error> {
        let response = tokio::select! {
            biased;
            () = self.expired() => return Err(zookeeper_client::Error::SessionExpired),
            response = response => response,
        };
        if let Err(error) = &response
            && translate::ends_session(error)
        {
            warn!("ZooKeeper ended session {:#x}: {error}", self.id);
            self.end();
        }
        if self.refresh() == SessionState::Expired {
            return Err(zookeeper_client::Error::SessionExpired);
        }
        response
    }

    /// Translates metadata that this session has read.
    pub(super) fn seen(&self, stat: &zookeeper_client::Stat) -> Stat {
        self.seen_zxid(stat.czxid.max(stat.mzxid).max(stat.pzxid));
        translate::stat(stat)
    }

    /// Records a zxid that this session has read.
    pub(super) fn seen_zxid(&self, zxid: i64) {
        self.last_zxid.fetch_max(zxid, Ordering::Relaxed);
    }

    /// Waits for the end of the session.
    pub(super) async fn expired(&self) {
        let is_expired = |state: &SessionState| *state == SessionState::Expired;
        // This cannot fail, because `self` has the sender.
        let _ = self.state.subscribe().wait_for(is_expired).await;
    }

    /// Waits for `duration`, then for the connection or the end of the session.
    pub(super) async fn pause(&self, duration: Duration) {
        self.clock.sleep(duration).await;
        let is_decided = |state: &SessionState| *state != SessionState::Suspended;
        let _ = self.state.subscribe().wait_for(is_decided).await;
    }

    /// Ends the session. Returns a future that waits until the server has closed it, unless no
    /// server is connected.
    pub(super) fn close(&self) -> Option<impl Future<Output = ()> + use<>> {
        let states = lock(&self.client).as_ref().map(|client| client.state_watcher());
        info!("closing ZooKeeper session {:#x}", self.id);
        self.end();
        let mut states = states.filter(|states| states.peek_state() == ClientState::SyncConnected)?;
        Some(async move { while !states.changed().await.is_terminated() {} })
    }

    fn end(&self) {
        let mut liveness = lock(&self.liveness);
        liveness.end();
        self.publish(&mut liveness);
    }

    /// Updates and returns the state.
    fn refresh(&self) -> SessionState {
        self.publish(&mut lock(&self.liveness))
    }

    /// Publishes the state. Callers hold the lock of `liveness`, so states are published in order.
    fn publish(&self, liveness: &mut Liveness) -> SessionState {
        let new = liveness.state(*self.connected.borrow(), self.clock.monotonic());
        let old = *self.state.borrow();
        if old != new {
            info!("ZooKeeper session {:#x} was {old:?} and is {new:?}", self.id);
            self.state.send_replace(new);
        }
        if new == SessionState::Expired {
            lock(&self.client).take();
        }
        new
    }

    /// The session's task.
    async fn run(self: Arc<Session>, states: StateWatcher) {
        tokio::select! {
            biased;
            () = self.expired() => {}
            () = self.watch_clock() => {}
            () = self.send_heartbeats() => {}
            state = self.follow(states) => {
                warn!("the client of ZooKeeper session {:#x} is {state}", self.id);
                self.end();
            }
        }
    }

    /// Follows the library's connection; returns its final state.
    async fn follow(&self, mut states: StateWatcher) -> ClientState {
        loop {
            let state = states.changed().await;
            if state.is_terminated() {
                return state;
            }
            self.connected.send_replace(state == ClientState::SyncConnected);
            self.refresh();
        }
    }

    /// Publishes the states that depend on the clock; returns at the end of the session.
    async fn watch_clock(&self) {
        while self.refresh() != SessionState::Expired {
            let until_change = lock(&self.liveness).until_change(self.clock.monotonic());
            // At least the resolution of a timer.
            self.clock.sleep(until_change.max(Duration::from_millis(1))).await;
        }
    }

    /// Sends a heartbeat every tenth of the timeout while there is a connection; returns at the end
    /// of the session.
    async fn send_heartbeats(&self) {
        let mut connected = self.connected.subscribe();
        loop {
            let _ = connected.wait_for(|connected| *connected).await;
            let Some(client) = lock(&self.client).clone() else { return };
            let sent = self.clock.monotonic();
            if self.response(client.sync("/")).await.is_ok() {
                lock(&self.liveness).confirm(sent, self.clock.monotonic());
                self.refresh();
            }
            drop(client);
            let next = (sent + self.timeout / HEARTBEATS).saturating_sub(self.clock.monotonic());
            tokio::select! {
                () = self.clock.sleep(next) => {}
                // A new connection is used immediately, because the session may expire soon.
                _ = connected.changed() => {}
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
