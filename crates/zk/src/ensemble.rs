//! Znodes on a real ZooKeeper ensemble (3.8 or 3.9), for a cluster of processes.
//!
//! [`Ensemble`] is one session of the crate `zookeeper-client` and everything that a
//! [`Coordinator`] promises in addition to it:
//!
//! * `connect`, `connection`: the options, the first connection, and those that replace it;
//! * `session`: the session, its heartbeats, and the requests that end with it;
//! * `liveness`: when the session counts as lost, by this process's clock;
//! * `watches`, `arming`: watches that last until they are dropped, built from ZooKeeper's, which
//!   report one change;
//! * `translate`: metadata and errors;
//! * `tasks`: the library's task on the threads of [`Env`].
//!
//! # Expiry by this process's clock
//!
//! ZooKeeper expires a session from which it received nothing for the session timeout, and then
//! another process takes over. A client without a connection is notified only after it reconnects,
//! and the library gives up only after 7/5 of the timeout. Therefore this module sends a heartbeat
//! every tenth of the timeout. The session lasts for the timeout, counted from when the last
//! acknowledged heartbeat was *sent*. After that it is [`SessionState::Expired`], permanently, even
//! if ZooKeeper still has it. [`Ensemble::close`] makes it [`SessionState::Closed`] instead, so
//! that a process that stops is not mistaken for one that lost its session.
//!
//! A heartbeat is a `sync` request, because that needs the leader, which expires sessions. A
//! follower without a leader still responds to pings and reads for some time; after an unanswered
//! `sync` it does not.
//!
//! Each operation reads the clock before and after it, so a process that was paused does not use
//! its old session. [`Coordinator::session`] is updated by a task: after such a pause it is out of
//! date until the task runs. The clock is the monotonic one of [`Env`], which also counts the time
//! for which the machine was suspended.
//!
//! # Operations while the connection is lost
//!
//! They fail with [`Error::Unavailable`] and are not sent. The library would store them and send
//! them after it reconnects, possibly long after the caller gave up. An operation that was sent
//! before the connection was lost fails in the same way, but its change may have been made.
//!
//! # What bypasses `Env`
//!
//! The library has its own network and clock, and no interface to replace them: sockets and timers
//! of the crate `async-io` (one thread with an epoll), name resolution on threads of the crate
//! `blocking`, and `std::time::Instant`. Its reconnects and its own timeouts use that clock: it
//! gives up a connection after 2/5 of the session timeout (1/5 after the client was replaced), and
//! a session after 7/5. Therefore a simulation cannot use this module; it uses
//! [`MemoryCoordinator`](crate::MemoryCoordinator).
//!
//! The library's task runs on the service threads of [`Env`], and needs no feature of tokio.
//! Heartbeats, expiry and retries use the clock of [`Env`].
//!
//! # What the library does not do (0.11.2)
//!
//! * It does not limit the pause between two attempts to reconnect, which doubles. With three
//!   servers, the attempts are 5 and 10 seconds after the loss. So an outage that ends in between
//!   would expire a session of 10 seconds. Therefore the library has a tenth of the timeout to
//!   restore a connection. Then this module replaces its client by another one of the same session,
//!   with an attempt every 500 ms, and arms all watches again. It reports a change to those whose
//!   znode has other metadata than before.
//! * It does not restore persistent watches after a reconnect: its request lists only one-shot
//!   watches. So this module uses one-shot watches.
//! * If the paths of all watches are longer than 128 KiB, it restores them with several requests
//!   that have the same number. It rejects the second response, and so never reconnects. So the
//!   total length of watched paths is limited (`watches::WATCHED_BYTES_MAX`).
//!
//! # Security
//!
//! TLS and SASL are features of the library that are not enabled. Every znode is created with all
//! permissions for all clients, as by HBase without security.

mod arming;
mod connect;
mod connection;
pub mod liveness;
mod session;
mod tasks;
mod translate;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::Env;
use bytes::Bytes;
use tokio::sync::watch;
use zookeeper_client::{Acls, CreateMode};

pub use self::connect::{ConnectError, EnsembleOptions};
use self::connection::Connection;
use self::session::Session;
use self::watches::Watches;
use crate::coordinator::{
    Coordinator, Error, Mode, SessionState, Stat, Watch, Znode, check_data, check_path, parent_and_name,
};

/// Permissions of new znodes.
const OPEN: Acls<'static> = Acls::anyone_all();
/// How long [`Ensemble::close`] waits for the server.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// A session with a ZooKeeper ensemble. Its end, by [`Ensemble::close`] or when this is dropped,
/// deletes its ephemeral znodes.
pub struct Ensemble {
    env: Env,
    session: Arc<Session>,
    watches: Arc<Watches>,
}

impl Ensemble {
    /// Opens a session. Waits at most the session timeout, by the library's clock, for a server.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(options: &EnsembleOptions, env: &Env) -> Result<Arc<Ensemble>, ConnectError> {
        let client = connect::open(options, env).await?;
        let unavailable = |error| connect::unavailable(options, &error);
        let session = Session::start(client, &options.quorum, env).await.map_err(unavailable)?;
        let watches = Watches::new(env, Arc::clone(&session));
        Ok(Arc::new(Ensemble { env: env.clone(), session, watches }))
    }

    /// The session timeout that the ensemble granted.
    pub fn session_timeout(&self) -> Duration {
        self.session.timeout()
    }

    /// Whether the session is still valid by this process's clock. Cheap enough for each request.
    pub fn is_valid(&self) -> bool {
        self.session.is_valid()
    }

    /// Ends the session. When this returns, its ephemeral znodes are deleted, unless no server was
    /// reachable: then ZooKeeper deletes them after the session timeout.
    pub async fn close(&self) {
        if let Some(closed) = self.session.close() {
            self.env.timeout(CLOSE_PATIENCE, closed).await;
        }
    }

    /// The error of an action ("set", "delete") at `path`.
    async fn failure(
        &self,
        client: &Connection,
        action: &str,
        path: &str,
        error: zookeeper_client::Error,
    ) -> Error {
        match error {
            // The library does not report the current version.
            zookeeper_client::Error::BadVersion => self.bad_version(client, path).await,
            error => translate::error(action, path, error),
        }
    }

    async fn bad_version(&self, client: &Connection, path: &str) -> Error {
        let path_string = path.to_string();
        match self.session.response(client, client.check_stat(path)).await {
            Ok(Some(stat)) => Error::BadVersion { path: path_string, actual: stat.version },
            Ok(None) => Error::NoNode { path: path_string },
            Err(error) => translate::error("read", path, error),
        }
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        self.session.close();
    }
}

/// Whether `version` may be sent. For ZooKeeper, -1 is any version; for a caller, it is a version
/// that no znode has.
fn is_possible(version: Option<i32>) -> bool {
    version != Some(-1)
}

impl Coordinator for Ensemble {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Znode, Error>> {
        Box::pin(async move {
            check_path(path)?;
            let client = self.session.client()?;
            let response = self.session.response(&client, client.get_data(path)).await;
            let (data, stat) = response.map_err(|error| translate::error("read", path, error))?;
            Ok(Znode { data: data.into(), stat: self.session.seen(&stat) })
        })
    }

    fn exists<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Stat>, Error>> {
        Box::pin(async move {
            check_path(path)?;
            let client = self.session.client()?;
            let response = self.session.response(&client, client.check_stat(path)).await;
            let stat = response.map_err(|error| translate::error("read", path, error))?;
            Ok(stat.map(|stat| self.session.seen(&stat)))
        })
    }

    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(Vec<String>, Stat), Error>> {
        Box::pin(async move {
            check_path(path)?;
            let client = self.session.client()?;
            let response = self.session.response(&client, client.get_children(path)).await;
            let (mut names, stat) =
                response.map_err(|error| translate::error("list the children of", path, error))?;
            names.sort_unstable();
            Ok((names, self.session.seen(&stat)))
        })
    }

    fn create<'a>(&'a self, path: &'a str, data: Bytes, mode: Mode) -> BoxFuture<'a, Result<Stat, Error>> {
        Box::pin(async move {
            check_path(path)?;
            check_data(path, &data)?;
            let client = self.session.client()?;
            let Some((parent, _)) = parent_and_name(path) else {
                return Err(Error::NodeExists { path: path.to_string() });
            };
            let mode = match mode {
                Mode::Persistent => CreateMode::Persistent,
                Mode::Ephemeral => CreateMode::Ephemeral,
            };
            let created = client.create(path, &data, &mode.with_acls(OPEN));
            match self.session.response(&client, created).await {
                Ok((stat, _)) => Ok(self.session.seen(&stat)),
                Err(zookeeper_client::Error::NoNode) => Err(Error::NoNode { path: parent.to_string() }),
                Err(error) => Err(translate::error("create", path, error)),
            }
        })
    }

    fn set<'a>(
        &'a self,
        path: &'a str,
        data: Bytes,
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<Stat, Error>> {
        Box::pin(async move {
            check_path(path)?;
            check_data(path, &data)?;
            let client = self.session.client()?;
            if !is_possible(version) {
                return Err(self.bad_version(&client, path).await);
            }
            match self.session.response(&client, client.set_data(path, &data, version)).await {
                Ok(stat) => Ok(self.session.seen(&stat)),
                Err(error) => Err(self.failure(&client, "set", path, error).await),
            }
        })
    }

    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            check_path(path)?;
            let client = self.session.client()?;
            if !is_possible(version) {
                return Err(self.bad_version(&client, path).await);
            }
            let Some((parent, _)) = parent_and_name(path) else {
                return Err(Error::NotEmpty { path: path.to_string() });
            };
            // The response has no zxid, but that of the deletion is in the parent's metadata. Both
            // requests are sent here, before the first response.
            let deleted = client.delete(path, version);
            let parent_stat = client.check_stat(parent);
            if let Err(error) = self.session.response(&client, deleted).await {
                return Err(self.failure(&client, "delete", path, error).await);
            }
            // The znode is deleted, whether or not this succeeds.
            if let Ok(Some(stat)) = self.session.response(&client, parent_stat).await {
                self.session.seen(&stat);
            }
            Ok(())
        })
    }

    fn watch<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Watch, Error>> {
        Box::pin(async move {
            check_path(path)?;
            self.watches.watch(path).await
        })
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.session.state()
    }

    fn session_id(&self) -> i64 {
        self.session.id()
    }

    fn last_zxid(&self) -> i64 {
        self.session.last_zxid()
    }
}
