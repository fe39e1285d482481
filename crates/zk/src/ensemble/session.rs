//! One session: its state, its heartbeats, and the requests that end with it.

use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Env, TaskClass};
use tokio::sync::{Notify, watch};
use tracing::{debug, info, warn};
use zookeeper_client::{SessionState as ClientState, StateWatcher};

use super::connect;
use super::connection::Connection;
use super::liveness::{HEARTBEATS, Liveness};
use super::translate;
use crate::coordinator::{Error, SessionState, Stat};

/// The library has this part of the timeout to restore a lost connection. Then its client is
/// replaced.
const LIBRARY_SHARE: u32 = 10;
/// Pause after a failure to replace the client.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// A session of the library, with this process's own rule for its end (see [`super`]).
pub(super) struct Session {
    env: Env,
    quorum: String,
    id: i64,
    /// `None` while it is replaced, and after the end. The library closes the session when the last
    /// reference is dropped, except that of a client that is given up.
    client: Mutex<Option<Connection>>,
    liveness: Mutex<Liveness>,
    /// Wakes the task that waits until the session expires: this may be sooner now.
    shortened: Notify,
    /// Whether the library has a connection.
    connected: watch::Sender<bool>,
    state: watch::Sender<SessionState>,
    last_zxid: AtomicI64,
}

impl Session {
    /// Takes over a session of the library after a first heartbeat, and starts its task.
    pub(super) async fn start(
        client: Connection,
        quorum: &str,
        env: &Env,
    ) -> Result<Arc<Session>, zookeeper_client::Error> {
        let states = client.state_watcher();
        let sent = env.clock.monotonic();
        client.sync("/").await?;
        let (id, timeout) = (client.session_id().0, client.session_timeout());
        info!("ZooKeeper session {id:#x} is open, with a timeout of {timeout:?}");
        let session = Arc::new(Session {
            env: env.clone(),
            quorum: quorum.to_string(),
            id,
            client: Mutex::new(Some(client)),
            liveness: Mutex::new(Liveness::new(timeout, sent)),
            shortened: Notify::new(),
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
        lock(&self.liveness).timeout()
    }

    pub(super) fn state(&self) -> watch::Receiver<SessionState> {
        self.state.subscribe()
    }

    pub(super) fn last_zxid(&self) -> i64 {
        self.last_zxid.load(Ordering::Relaxed)
    }

    /// Whether the session has not ended.
    pub(super) fn is_valid(&self) -> bool {
        !lock(&self.liveness).state(true, self.env.clock.monotonic()).has_ended()
    }

    /// The library's client, for one operation.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::SessionExpired`].
    pub(super) fn client(&self) -> Result<Connection, Error> {
        match self.refresh() {
            SessionState::Connected => lock(&self.client).clone().ok_or_else(connection_lost),
            SessionState::Suspended => Err(connection_lost()),
            SessionState::Expired | SessionState::Closed => Err(Error::SessionExpired),
        }
    }

    /// Waits for a response of `client`, or for the end of the session.
    pub(super) async fn response<T>(
        &self,
        client: &Connection,
        response: impl Future<Output = Result<T, zookeeper_client::Error>>,
    ) -> Result<T, zookeeper_client::Error> {
        let mut given_up = client.given_up();
        let response = tokio::select! {
            biased;
            () = self.expired() => return Err(zookeeper_client::Error::SessionExpired),
            response = response => response,
            () = given_up.wait() => Err(zookeeper_client::Error::ConnectionLoss),
        };
        if let Err(error) = &response
            && translate::ends_session(error)
        {
            warn!("ZooKeeper ended session {:#x}: {error}", self.id);
            self.end();
        }
        if self.refresh().has_ended() {
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
        // This cannot fail, because `self` has the sender.
        let _ = self.state.subscribe().wait_for(|state| state.has_ended()).await;
    }

    /// Waits for `duration`, then for the connection or the end of the session.
    pub(super) async fn pause(&self, duration: Duration) {
        self.env.clock.sleep(duration).await;
        let is_decided = |state: &SessionState| *state != SessionState::Suspended;
        let _ = self.state.subscribe().wait_for(is_decided).await;
    }

    /// Ends the session. Returns a future that waits until the server has closed it, unless no
    /// server is connected.
    pub(super) fn close(&self) -> Option<impl Future<Output = ()> + use<>> {
        let states = lock(&self.client).as_ref().map(|client| client.state_watcher());
        info!("closing ZooKeeper session {:#x}", self.id);
        lock(&self.liveness).close();
        self.refresh();
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
        let new = liveness.state(*self.connected.borrow(), self.env.clock.monotonic());
        let old = *self.state.borrow();
        if old != new {
            info!("ZooKeeper session {:#x} was {old:?} and is {new:?}", self.id);
            self.state.send_replace(new);
        }
        if new.has_ended() {
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
            () = self.stay_connected(states) => self.end(),
        }
    }

    /// Follows the library's connection, and replaces the client if the library does not restore it
    /// in time. Returns when there is no session any more.
    async fn stay_connected(&self, mut states: StateWatcher) {
        loop {
            if let Some(state) = self.follow(states).await {
                warn!("the client of ZooKeeper session {:#x} is {state}", self.id);
                return;
            }
            match self.reconnect().await {
                Ok(new_states) => states = new_states,
                Err(error) => {
                    warn!("ZooKeeper ended session {:#x}: {error}", self.id);
                    return;
                }
            }
        }
    }

    /// Follows the library's connection. Returns its final state, or `None` if the connection is
    /// lost for too long.
    async fn follow(&self, mut states: StateWatcher) -> Option<ClientState> {
        loop {
            let is_connected = *self.connected.borrow();
            let state = tokio::select! {
                biased;
                state = states.changed() => state,
                () = self.env.clock.sleep(self.timeout() / LIBRARY_SHARE), if !is_connected => return None,
            };
            if state.is_terminated() {
                return Some(state);
            }
            self.connected.send_replace(state == ClientState::SyncConnected);
            self.refresh();
        }
    }

    /// Replaces the client by another one of the same session. The library's own attempts become
    /// rare: it doubles the pause between them without limit.
    ///
    /// # Errors
    /// There is no session any more.
    async fn reconnect(&self) -> Result<StateWatcher, zookeeper_client::Error> {
        let old = lock(&self.client).take().ok_or(zookeeper_client::Error::SessionExpired)?;
        let session = old.session().clone();
        old.give_up();
        info!("replacing the connection of ZooKeeper session {:#x}", self.id);
        loop {
            let sent = self.env.clock.monotonic();
            let opened = connect::reopen(&self.quorum, session.clone(), self.timeout(), &self.env).await;
            match opened {
                Ok(client) => {
                    self.accept_timeout(client.session_timeout(), sent);
                    if let Some(states) = self.replace_client(client).await {
                        return Ok(states);
                    }
                }
                Err(error) if translate::ends_session(&error) => return Err(error),
                Err(error) => debug!("cannot connect to ZooKeeper session {:#x}: {error}", self.id),
            }
            self.env.clock.sleep(RECONNECT_PAUSE).await;
        }
    }

    /// Accepts the timeout that a server granted with a new connection, which was requested at
    /// `sent`. It is shorter if the servers were restarted with other limits.
    fn accept_timeout(&self, granted: Duration, sent: Duration) {
        let mut liveness = lock(&self.liveness);
        if granted < liveness.timeout() {
            warn!("the timeout of ZooKeeper session {:#x} is only {granted:?} now", self.id);
            liveness.shorten(granted, sent, self.env.clock.monotonic());
            self.publish(&mut liveness);
            self.shortened.notify_one();
        }
    }

    /// Uses a new client after a first heartbeat. This is a `sync`, so the server has all changes
    /// that the session has seen. Returns `None` if it does not succeed.
    async fn replace_client(&self, client: Connection) -> Option<StateWatcher> {
        let states = client.state_watcher();
        let sent = self.env.clock.monotonic();
        if self.response(&client, client.sync("/")).await.is_err() {
            client.give_up();
            return None;
        }
        let mut liveness = lock(&self.liveness);
        let now = self.env.clock.monotonic();
        liveness.confirm(sent, now);
        if !liveness.state(true, now).has_ended() {
            *lock(&self.client) = Some(client);
            self.connected.send_replace(states.peek_state() == ClientState::SyncConnected);
        }
        self.publish(&mut liveness);
        Some(states)
    }

    /// Publishes the states that depend on the clock; returns at the end of the session.
    async fn watch_clock(&self) {
        while !self.refresh().has_ended() {
            let until_change = lock(&self.liveness).until_change(self.env.clock.monotonic());
            tokio::select! {
                // At least the resolution of a timer.
                () = self.env.clock.sleep(until_change.max(Duration::from_millis(1))) => {}
                () = self.shortened.notified() => {}
            }
        }
    }

    /// Sends a heartbeat every tenth of the timeout while there is a connection; returns at the end
    /// of the session.
    async fn send_heartbeats(&self) {
        let mut connected = self.connected.subscribe();
        loop {
            let _ = connected.wait_for(|connected| *connected).await;
            let Some(client) = lock(&self.client).clone() else { return };
            let sent = self.env.clock.monotonic();
            if self.response(&client, client.sync("/")).await.is_ok() {
                lock(&self.liveness).confirm(sent, self.env.clock.monotonic());
                self.refresh();
            }
            drop(client);
            let next = (sent + self.timeout() / HEARTBEATS).saturating_sub(self.env.clock.monotonic());
            tokio::select! {
                () = self.env.clock.sleep(next) => {}
                // A new connection is used immediately, because the session may expire soon.
                _ = connected.changed() => {}
            }
        }
    }
}

fn connection_lost() -> Error {
    Error::Unavailable("the connection to ZooKeeper is lost (retry)".to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
