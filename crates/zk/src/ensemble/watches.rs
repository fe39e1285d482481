//! The watched paths of a session.
//!
//! Each path has a task that arms ZooKeeper's one-shot watches, and arms them again after each
//! change. A watch is armed before the caller gets it, and armed again before a change is reported.
//! So a change that follows a read is never lost: either an armed watch reports it, or it happened
//! before the watch was armed again, and the report of the earlier change is still to come.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Env, TaskClass};
use tokio::sync::watch;
use tracing::warn;

use super::arming::Armed;
use super::session::Session;
use crate::coordinator::{Error, Watch};

/// Maximum total length of watched paths, in bytes. After a reconnect, the library restores two
/// watches for each path, which must fit in 128 KiB (see [`super`]).
pub(super) const WATCHED_BYTES_MAX: usize = 60 * 1024;
/// Pause after a failure to arm a watch again.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// The watched paths of a session.
pub(super) struct Watches {
    env: Env,
    session: Arc<Session>,
    paths: Mutex<HashMap<Arc<str>, Watched>>,
}

struct Watched {
    /// The number of changes so far.
    changes: watch::Sender<u64>,
    arming: watch::Receiver<Arming>,
}

/// The state of a new watch.
#[derive(Clone)]
enum Arming {
    Pending,
    Done,
    Failed(Error),
}

impl Watches {
    /// No watches.
    pub(super) fn new(env: &Env, session: Arc<Session>) -> Arc<Watches> {
        Arc::new(Watches { env: env.clone(), session, paths: Mutex::default() })
    }

    /// Watches `path`, which must be valid. Returns when the watch is armed.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::SessionExpired`].
    pub(super) async fn watch(self: &Arc<Watches>, path: &str) -> Result<Watch, Error> {
        self.session.client()?;
        let (changes, mut arming) = self.subscribe(path)?;
        let armed = arming.wait_for(|arming| !matches!(arming, Arming::Pending)).await;
        // The task ends without an outcome only at the end of the process.
        match armed.map(|arming| arming.clone()) {
            Ok(Arming::Done) => Ok(Watch::new(changes, self.session.state())),
            Ok(Arming::Failed(error)) => Err(error),
            Ok(Arming::Pending) | Err(_) => Err(Error::SessionExpired),
        }
    }

    fn subscribe(
        self: &Arc<Watches>,
        path: &str,
    ) -> Result<(watch::Receiver<u64>, watch::Receiver<Arming>), Error> {
        let mut paths = self.lock();
        if let Some(watched) = paths.get(path) {
            return Ok((watched.changes.subscribe(), watched.arming.clone()));
        }
        let watched_bytes: usize = paths.keys().map(|path| path.len()).sum();
        if watched_bytes + path.len() > WATCHED_BYTES_MAX {
            return Err(Error::Unavailable(format!(
                "cannot watch znode {path}: the watched paths would be longer than {WATCHED_BYTES_MAX} bytes"
            )));
        }
        let path: Arc<str> = path.into();
        let (changes, receiver) = watch::channel(0);
        let (outcome, arming) = watch::channel(Arming::Pending);
        let task = Arc::clone(self).follow(Arc::clone(&path), changes.clone(), outcome);
        paths.insert(path, Watched { changes, arming: arming.clone() });
        self.env.spawn(TaskClass::Service, task);
        Ok((receiver, arming))
    }

    /// The task of a path. Ends with the session, or when the watches of the path are dropped.
    async fn follow(
        self: Arc<Watches>,
        path: Arc<str>,
        changes: watch::Sender<u64>,
        outcome: watch::Sender<Arming>,
    ) {
        let mut armed = Armed::default();
        if let Err(error) = armed.arm(&self.session, &path).await {
            self.lock().remove(&path);
            outcome.send_replace(Arming::Failed(error));
            return;
        }
        armed.take_changed();
        outcome.send_replace(Arming::Done);
        loop {
            tokio::select! {
                biased;
                () = self.session.expired() => break,
                zxid = armed.fired() => {
                    if let Some(zxid) = zxid {
                        self.session.seen_zxid(zxid);
                    }
                    if !self.arm_again(&mut armed, &path).await {
                        break;
                    }
                    if armed.take_changed() || zxid.is_some() {
                        changes.send_modify(|changes| *changes += 1);
                    }
                }
                () = changes.closed() => {
                    if self.remove_unused(&path) {
                        return;
                    }
                }
            }
        }
        self.lock().remove(&path);
    }

    /// Arms watches that reported a change. Returns false if the session ended.
    async fn arm_again(&self, armed: &mut Armed, path: &str) -> bool {
        loop {
            match armed.arm(&self.session, path).await {
                Ok(()) => return true,
                Err(Error::SessionExpired) => return false,
                Err(error) => {
                    warn!(%error, "cannot arm a watch again; retrying");
                    self.session.pause(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// Removes a path if all its watches are dropped.
    fn remove_unused(&self, path: &str) -> bool {
        let mut paths = self.lock();
        let is_unused = paths.get(path).is_none_or(|watched| watched.changes.receiver_count() == 0);
        if is_unused {
            paths.remove(path);
        }
        is_unused
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Watched>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
