//! Znodes in this process: for a standalone server, and for simulations of a cluster.
//!
//! Nothing survives a restart, and nothing needs to: a standalone server publishes its znodes when
//! it starts. Zxids begin at the start time, so that they also grow over restarts. A client that
//! outlives the server never sees them go backwards.

mod tree;
mod watches;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::BoxFuture;
use base::env::{Clock, Env};
use bytes::Bytes;
use tokio::sync::watch;

use self::tree::Tree;
use crate::coordinator::{
    Coordinator, Error, Mode, SessionState, Stat, Watch, Znode, check_data, check_path,
};

/// A tree of znodes in memory, on which any number of sessions can be opened.
pub struct MemoryEnsemble {
    clock: Arc<dyn Clock>,
    last_session: AtomicI64,
    tree: Mutex<Tree>,
}

impl MemoryEnsemble {
    /// A tree with only its root.
    pub fn new(env: &Env) -> Arc<MemoryEnsemble> {
        let zxid = i64::try_from(env.clock.now_ms()).unwrap_or(0) << 8;
        Arc::new(MemoryEnsemble {
            clock: Arc::clone(&env.clock),
            last_session: AtomicI64::new(0),
            tree: Mutex::new(Tree::new(zxid)),
        })
    }

    /// Opens a session.
    pub fn connect(self: &Arc<MemoryEnsemble>) -> Arc<MemoryCoordinator> {
        Arc::new(MemoryCoordinator {
            ensemble: Arc::clone(self),
            id: self.last_session.fetch_add(1, Ordering::Relaxed) + 1,
            state: watch::channel(SessionState::Connected).0,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session with a [`MemoryEnsemble`]. Its end, by one of the functions here or when this is
/// dropped, deletes its ephemeral znodes.
pub struct MemoryCoordinator {
    ensemble: Arc<MemoryEnsemble>,
    id: i64,
    // Changed only while the tree is locked. So an operation, which also locks the tree, is either
    // before or after a change of the state.
    state: watch::Sender<SessionState>,
}

impl MemoryCoordinator {
    /// The only session of a tree with only its root.
    pub fn new(env: &Env) -> Arc<MemoryCoordinator> {
        MemoryEnsemble::new(env).connect()
    }

    /// Ends the session, as ZooKeeper does with one that it did not hear from: its ephemeral znodes
    /// are deleted, and its owner can read and write no more.
    pub fn expire_session(&self) {
        self.end(SessionState::Expired);
    }

    /// Ends the session, as its owner does when it stops.
    pub fn close(&self) {
        self.end(SessionState::Closed);
    }

    /// Ends the session in this state, unless it has ended before.
    fn end(&self, end: SessionState) {
        let mut tree = self.ensemble.lock();
        let is_first = self.state.send_if_modified(|state| {
            let is_first = !state.has_ended();
            if is_first {
                *state = end;
            }
            is_first
        });
        // Afterwards, so that the owner is notified before another session can see the deletions.
        if is_first {
            tree.end_session(self.id);
        }
    }

    /// Loses the connection: operations fail with [`Error::Unavailable`], and watches report
    /// nothing, until [`resume`](Self::resume) or the end of the session.
    pub fn suspend(&self) {
        let mut tree = self.ensemble.lock();
        if *self.state.borrow() == SessionState::Connected {
            self.state.send_replace(SessionState::Suspended);
            tree.watches(self.id).suspend();
        }
    }

    /// Restores the connection. Watches report the changes since [`suspend`](Self::suspend).
    pub fn resume(&self) {
        let mut tree = self.ensemble.lock();
        if *self.state.borrow() == SessionState::Suspended {
            self.state.send_replace(SessionState::Connected);
            tree.watches(self.id).resume();
        }
    }

    fn check_state(&self) -> Result<(), Error> {
        match *self.state.borrow() {
            SessionState::Connected => Ok(()),
            SessionState::Suspended => {
                Err(Error::Unavailable("the session is suspended (retry)".to_string()))
            }
            SessionState::Expired | SessionState::Closed => Err(Error::SessionExpired),
        }
    }

    /// Executes an operation on the znode at `path`.
    fn locked<T>(&self, path: &str, act: impl FnOnce(&mut Tree) -> Result<T, Error>) -> Result<T, Error> {
        check_path(path)?;
        let mut tree = self.ensemble.lock();
        self.check_state()?;
        act(&mut tree)
    }

    fn read<T>(&self, path: &str, then: impl FnOnce(&Tree, &Znode) -> T) -> Result<T, Error> {
        self.locked(path, |tree| {
            let node = tree.get(path)?;
            Ok(then(tree, node))
        })
    }

    /// Applies a change.
    fn change<T>(
        &self,
        path: &str,
        act: impl FnOnce(&mut Tree, i64) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let now_ms = i64::try_from(self.ensemble.clock.now_ms()).unwrap_or(i64::MAX);
        self.locked(path, |tree| act(tree, now_ms))
    }
}

impl Drop for MemoryCoordinator {
    fn drop(&mut self) {
        self.close();
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Coordinator for MemoryCoordinator {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Znode, Error>> {
        ready(self.read(path, |_, node| node.clone()))
    }

    fn exists<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Stat>, Error>> {
        ready(match self.read(path, |_, node| node.stat) {
            Ok(stat) => Ok(Some(stat)),
            Err(Error::NoNode { .. }) => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(Vec<String>, Stat), Error>> {
        ready(self.read(path, |tree, node| (tree.children(path), node.stat)))
    }

    fn create<'a>(&'a self, path: &'a str, data: Bytes, mode: Mode) -> BoxFuture<'a, Result<Stat, Error>> {
        let owner = if mode == Mode::Ephemeral { self.id } else { 0 };
        let create = |tree: &mut Tree, now_ms| {
            check_data(path, &data)?;
            tree.create(path, data, owner, now_ms)
        };
        ready(self.change(path, create))
    }

    fn set<'a>(
        &'a self,
        path: &'a str,
        data: Bytes,
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<Stat, Error>> {
        let set = |tree: &mut Tree, now_ms| {
            check_data(path, &data)?;
            tree.set(path, data, version, now_ms)
        };
        ready(self.change(path, set))
    }

    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.change(path, |tree, _| tree.delete(path, version)))
    }

    fn watch<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Watch, Error>> {
        ready(self.locked(path, |tree| {
            Ok(Watch::new(tree.watches(self.id).subscribe(path), self.state.subscribe()))
        }))
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.state.subscribe()
    }

    fn session_id(&self) -> i64 {
        self.id
    }

    fn last_zxid(&self) -> i64 {
        self.ensemble.lock().zxid()
    }
}
