//! A session as its owner sees it: state by its own clock, heartbeats, and watches.

use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, TaskClass};
use bytes::Bytes;
use roles::EndProcess;
use tokio::sync::watch;
use zk::coordinator::{Error, Mode, SessionState, Stat, Watch, Znode};
use zk::ensemble::liveness::{HEARTBEATS, Liveness};
use zk::{Coordinator, MemoryCoordinator};

use super::channel::Channel;
use crate::process::{Life, Process};
use crate::ready::now;
use crate::scheduler::{Owner, Scheduler};

/// Bounds of the pause before a lost connection is reopened.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// The pause between two questions whether the session has ended, without a lease.
const REPORT_PERIOD: Duration = Duration::from_millis(200);

/// A session of one life of a process. Dropping it closes the session, unless the process ended.
pub struct SimSession {
    env: Env,
    scheduler: Arc<Scheduler>,
    owner: Owner,
    id: i64,
    process: Arc<Process>,
    channel: Channel,
    liveness: Mutex<Liveness>,
    connected: watch::Sender<bool>,
    state: watch::Sender<SessionState>,
    last_zxid: AtomicI64,
    watched: Mutex<Vec<Weak<WatchedPath>>>,
}

/// A watch as its owner sees it.
struct WatchedPath {
    changes: watch::Sender<u64>,
    // A change that was not reported because the connection was lost.
    missed: Mutex<bool>,
}

impl SimSession {
    /// The session with this id, whose request was sent at `sent`.
    pub(super) fn start(channel: Channel, life: &Life, id: i64, sent: Duration) -> Arc<SimSession> {
        let session = Arc::new(SimSession {
            env: life.env.clone(),
            process: life.process.clone(),
            scheduler: channel.ensemble().world().scheduler().clone(),
            owner: life.owner,
            id,
            liveness: Mutex::new(Liveness::new(channel.ensemble().timeout, sent)),
            channel,
            connected: watch::channel(true).0,
            state: watch::channel(SessionState::Connected).0,
            last_zxid: AtomicI64::new(0),
            watched: Mutex::default(),
        });
        session.refresh();
        let weak = Arc::downgrade(&session);
        let state = session.state.subscribe();
        life.env.spawn(TaskClass::Service, run(weak.clone(), state.clone(), SimSession::watch_clock));
        life.env.spawn(TaskClass::Service, run(weak.clone(), state.clone(), SimSession::send_heartbeat));
        life.env.spawn(TaskClass::Service, run(weak, state, SimSession::reconnect));
        session
    }

    /// Whether the session is still valid by the owner's clock.
    pub fn is_valid(&self) -> bool {
        !self.refresh().has_ended()
    }

    /// Waits until the ensemble reports that the session has ended, which it does later than the
    /// owner's clock, and ends the process then.
    pub(crate) async fn wait_for_reported_end(session: Weak<SimSession>, end_process: EndProcess) {
        loop {
            let Some(current) = session.upgrade() else { return };
            let (clock, id) = (current.env.clock.clone(), current.id);
            let asked = current.channel.exchange(move |ensemble| Ok(ensemble.has_session(id)));
            drop(current);
            if let Some(Ok(false)) = asked.await {
                return end_process("ZooKeeper reports that the session has ended");
            }
            clock.sleep(REPORT_PERIOD).await;
        }
    }

    /// Ends the session. Its ephemeral znodes are deleted when the ensemble receives the request.
    pub fn close(&self) {
        lock(&self.liveness).close();
        self.refresh();
        let id = self.id;
        // The ensemble acts on the request, and no response is needed.
        drop(self.channel.exchange(move |ensemble| {
            ensemble.end(id, "is closed");
            Ok(())
        }));
    }

    /// Sends a request and waits for its response.
    async fn request<T: Send + 'static>(
        &self,
        act: impl FnOnce(&MemoryCoordinator) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match self.refresh() {
            SessionState::Connected => {}
            SessionState::Suspended => return Err(lost()),
            SessionState::Expired | SessionState::Closed => return Err(Error::SessionExpired),
        }
        let id = self.id;
        let (value, zxid) = self
            .respond(move |ensemble| {
                let coordinator = ensemble.hear(id)?;
                let value = act(&coordinator);
                Ok((value, coordinator.last_zxid()))
            })
            .await?;
        self.last_zxid.fetch_max(zxid, Ordering::Relaxed);
        value
    }

    /// Exchanges a request and its response on the current connection.
    async fn respond<T: Send + 'static>(
        &self,
        act: impl FnOnce(&super::SimEnsemble) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let connection = self.channel.connection();
        let exchange = self.env.timeout(self.channel.ensemble().patience(), self.channel.exchange(act));
        let response = tokio::select! {
            biased;
            () = self.expired() => return Err(Error::SessionExpired),
            response = exchange => response.flatten(),
        };
        if response.is_none() && self.channel.connection() == connection {
            self.channel.close();
            self.connected.send_replace(false);
        }
        if matches!(response, Some(Err(Error::SessionExpired))) {
            self.end_liveness();
        }
        match self.refresh() {
            SessionState::Expired | SessionState::Closed => Err(Error::SessionExpired),
            _ => response.unwrap_or_else(|| Err(lost())),
        }
    }

    async fn expired(&self) {
        // This cannot fail, because `self` has the sender.
        let _ = self.state.subscribe().wait_for(|state| state.has_ended()).await;
    }

    fn end_liveness(&self) {
        lock(&self.liveness).end();
        self.refresh();
    }

    /// Updates and returns the state.
    fn refresh(&self) -> SessionState {
        let mut liveness = lock(&self.liveness);
        let new = liveness.state(*self.connected.borrow(), self.env.clock.monotonic());
        if *self.state.borrow() != new {
            self.state.send_replace(new);
            let event = format!("session {} is {new:?}", self.id);
            self.channel.ensemble().world().record(self.process.name(), &event);
        }
        new
    }

    /// Publishes the next state that depends on the clock.
    async fn watch_clock(self: Arc<Self>) {
        self.refresh();
        let until_change = lock(&self.liveness).until_change(self.env.clock.monotonic());
        let clock = self.env.clock.clone();
        drop(self);
        clock.sleep(until_change.max(Duration::from_millis(1))).await;
    }

    /// Sends a heartbeat if there is a connection, and waits until the next one is due.
    async fn send_heartbeat(self: Arc<Self>) {
        let (sent, id) = (self.env.clock.monotonic(), self.id);
        if *self.connected.borrow() && self.respond(move |ensemble| ensemble.hear(id).map(drop)).await.is_ok()
        {
            lock(&self.liveness).confirm(sent, self.env.clock.monotonic());
            self.refresh();
        }
        let next =
            (sent + self.channel.ensemble().timeout / HEARTBEATS).saturating_sub(self.env.clock.monotonic());
        let (clock, mut connected) = (self.env.clock.clone(), self.connected.subscribe());
        drop(self);
        tokio::select! {
            biased;
            () = clock.sleep(next) => {}
            // A new connection is used immediately, because the session may expire soon.
            _ = connected.changed() => {}
        }
    }

    /// Waits until the connection is lost, and reopens it.
    async fn reconnect(self: Arc<Self>) {
        let mut connected = self.connected.subscribe();
        let random = &self.channel.ensemble().random;
        let (clock, pause) = (self.env.clock.clone(), random.between(RECONNECT.0, RECONNECT.1));
        let weak = Arc::downgrade(&self);
        drop(self);
        if connected.wait_for(|connected| !connected).await.is_err() {
            return;
        }
        clock.sleep(pause).await;
        let Some(session) = weak.upgrade() else { return };
        let id = session.id;
        if session.respond(move |ensemble| ensemble.hear(id).map(drop)).await.is_ok() {
            session.connected.send_replace(true);
            session.refresh();
            session.report_missed();
        }
    }

    /// Starts to report the changes of a watch at the ensemble.
    fn forward(&self, mut source: Watch) -> Watch {
        let path = Arc::new(WatchedPath { changes: watch::channel(0).0, missed: Mutex::new(false) });
        let mut watched = lock(&self.watched);
        watched.retain(|path| path.strong_count() > 0);
        watched.push(Arc::downgrade(&path));
        let target = Watch::new(path.changes.subscribe(), self.state.subscribe());
        let reports = self.channel.reports();
        self.scheduler.spawn(Owner::WORLD, async move {
            loop {
                tokio::select! {
                    biased;
                    () = path.changes.closed() => return,
                    changed = source.changed() => if changed.is_err() { return },
                }
                // Set until the report has arrived.
                *lock(&path.missed) = true;
                let path = path.clone();
                reports.send(move || path.report());
            }
        });
        target
    }

    fn report_missed(&self) {
        for path in lock(&self.watched).iter().filter_map(Weak::upgrade) {
            path.report();
        }
    }
}

impl WatchedPath {
    fn report(&self) {
        if std::mem::replace(&mut *lock(&self.missed), false) {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }
}

/// Repeats a step of a session until the session ends or is dropped.
async fn run<F: Future<Output = ()>>(
    session: Weak<SimSession>,
    mut state: watch::Receiver<SessionState>,
    step: impl Fn(Arc<SimSession>) -> F,
) {
    loop {
        let Some(session) = session.upgrade() else { return };
        tokio::select! {
            biased;
            _ = state.wait_for(|state| state.has_ended()) => return,
            () = step(session) => {}
        }
    }
}

impl Drop for SimSession {
    fn drop(&mut self) {
        if self.scheduler.is_alive(self.owner) {
            self.close();
        }
    }
}

fn lost() -> Error {
    Error::Unavailable("the connection to ZooKeeper is lost (retry)".to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Coordinator for SimSession {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Znode, Error>> {
        let path = path.to_string();
        Box::pin(self.request(move |tree| now(tree.get(&path))))
    }

    fn exists<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Stat>, Error>> {
        let path = path.to_string();
        Box::pin(self.request(move |tree| now(tree.exists(&path))))
    }

    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(Vec<String>, Stat), Error>> {
        let path = path.to_string();
        Box::pin(self.request(move |tree| now(tree.children(&path))))
    }

    fn create<'a>(&'a self, path: &'a str, data: Bytes, mode: Mode) -> BoxFuture<'a, Result<Stat, Error>> {
        let path = path.to_string();
        Box::pin(self.request(move |tree| now(tree.create(&path, data, mode))))
    }

    fn set<'a>(
        &'a self,
        path: &'a str,
        data: Bytes,
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<Stat, Error>> {
        let path = path.to_string();
        Box::pin(self.request(move |tree| now(tree.set(&path, data, version))))
    }

    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), Error>> {
        let path = path.to_string();
        Box::pin(self.request(move |tree| now(tree.delete(&path, version))))
    }

    fn watch<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Watch, Error>> {
        let path = path.to_string();
        Box::pin(async move {
            let source = self.request(move |tree| now(tree.watch(&path))).await?;
            Ok(self.forward(source))
        })
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.state.subscribe()
    }

    fn session_id(&self) -> i64 {
        self.id
    }

    fn last_zxid(&self) -> i64 {
        self.last_zxid.load(Ordering::Relaxed)
    }
}
