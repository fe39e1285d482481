//! The election of the active master, by the rules of HBase's masters.
//!
//! Every master creates an ephemeral child of `backup-masters`, and then tries to create the
//! ephemeral znode `master`. The one that succeeds is active, and deletes its child of
//! `backup-masters`. The others wait until `master` is deleted, and try again.
//!
//! A master that is killed leaves its znode until its session expires. The next process on the same
//! host and port need not wait for that: it deletes the znode. Machines with the same name would
//! depose each other in this way, so the rule can be [turned off](Election::replacing_earlier).
//!
//! At most one master is active, with one exception. A deletion names a version, and a znode that
//! was created since has the same version as its predecessor. So if the znode of an earlier process
//! expires and another master wins, both between two requests of the new process, then that process
//! deletes the znode of the other master. That master is notified ([`Election::lost`]), but may
//! write in between; the log of the master's store, which only one master can append to, must
//! prevent that.
//!
//! Source: HBase `ActiveMasterManager`, `MasterAddressTracker`.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::region::ServerName;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::coordinator::{Coordinator, Error, Mode, Znode, create_own, delete_version, pause};
use crate::names::Names;
use crate::payload;

/// Minimum pause after a failure of the coordination service.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// One master's part in the election.
pub struct Election {
    coordinator: Arc<dyn Coordinator>,
    env: Env,
    names: Names,
    server: ServerName,
    // The content of this master's znodes.
    data: Bytes,
    // Whether the znode of a process on the same host and port is deleted.
    replaces_earlier: bool,
    // While this master is active: the zxid at which its znode was created.
    won: watch::Sender<Option<i64>>,
}

/// Which process a `master` znode belongs to.
enum Holder {
    This,
    /// A process on the same host and port, which has ended: this process has its port.
    Earlier(ServerName),
    /// Another master, or one whose name is unreadable.
    Other(String),
}

impl Election {
    /// An election in which `server` takes part, with status pages at `info_port`. No znode is
    /// created yet. The process must have bound the port of `server`, so that no other process
    /// has the same host and port.
    pub fn new(
        coordinator: Arc<dyn Coordinator>,
        env: &Env,
        names: Names,
        server: ServerName,
        info_port: u16,
    ) -> Election {
        let writer = format!("master:{}", server.port);
        let data = payload::master(&writer, &*env.random, &server, info_port);
        let (env, won) = (env.clone(), watch::Sender::new(None));
        Election { coordinator, env, names, server, data, replaces_earlier: true, won }
    }

    /// Whether the znode of an earlier process on the same host and port is deleted. Otherwise, the
    /// election waits until another process deletes it, or its session expires.
    pub fn replacing_earlier(self, replaces_earlier: bool) -> Election {
        Election { replaces_earlier, ..self }
    }

    /// Waits until this is the active master. If the coordination service is unavailable, retries.
    ///
    /// If the returned future is dropped, the znodes of this master remain: call
    /// [`resign`](Self::resign).
    ///
    /// # Errors
    /// [`Error::SessionExpired`]: this process must stop, or take part with a new session. Others
    /// if the znodes cannot be created.
    pub async fn win(&self) -> Result<(), Error> {
        loop {
            match self.try_to_win().await {
                Err(error @ Error::Unavailable(_)) => {
                    warn!(%error, "the election of the master is interrupted; retrying");
                    self.pause().await;
                }
                result => return result,
            }
        }
    }

    /// Completes when this is not the active master any more. Returns the cause: its session has
    /// expired, or its `master` znode is deleted or names another master. `None`: it resigned, or
    /// [`win`](Self::win) has not returned success.
    ///
    /// A suspended session is not lost: no other master can win before it expires.
    pub async fn lost(&self) -> Option<&'static str> {
        let mut won = self.won.subscribe();
        let created_zxid = (*won.borrow_and_update())?;
        tokio::select! {
            biased;
            // This cannot fail, because `self` has the sender.
            _ = won.wait_for(|won| *won != Some(created_zxid)) => {
                info!(server = %self.server, "resigned");
                None
            }
            cause = self.until_lost(created_zxid) => {
                warn!(server = %self.server, cause, "this is not the active master any more");
                Some(cause)
            }
        }
    }

    /// Ends the part of this master: deletes its znodes, but none of another master. If they cannot
    /// be deleted, this is logged, and they remain until the session ends. No call of
    /// [`win`](Self::win) may be in progress.
    pub async fn resign(&self) {
        self.won.send_replace(None);
        for path in [self.names.master(), self.backup_path()] {
            match self.delete_own(&path).await {
                // The end of the session deletes them.
                Ok(()) | Err(Error::SessionExpired) => {}
                Err(error) => warn!(%error, "cannot resign; the znode remains until the session ends"),
            }
        }
    }

    /// Every step can be repeated after a failure, also if it was executed but not acknowledged.
    async fn try_to_win(&self) -> Result<(), Error> {
        create_own(&*self.coordinator, &self.backup_path(), self.data.clone()).await?;
        let created_zxid = self.take_master().await?;
        self.delete_own(&self.backup_path()).await?;
        info!(server = %self.server, "this is the active master");
        self.won.send_replace(Some(created_zxid));
        Ok(())
    }

    /// Creates `master`, as soon as no other master has it. Returns the zxid of its creation.
    async fn take_master(&self) -> Result<i64, Error> {
        let path = self.names.master();
        // Before the first attempt: so every later deletion is reported.
        let mut watch = self.coordinator.watch(&path).await?;
        loop {
            match self.coordinator.create(&path, self.data.clone(), Mode::Ephemeral).await {
                Ok(stat) => return Ok(stat.created_zxid),
                Err(Error::NodeExists { .. }) => {}
                Err(error) => return Err(error),
            }
            let znode = match self.coordinator.get(&path).await {
                Ok(znode) => znode,
                Err(Error::NoNode { .. }) => continue,
                Err(error) => return Err(error),
            };
            match self.holder(&znode) {
                Holder::This => return Ok(znode.stat.created_zxid),
                Holder::Earlier(earlier) => {
                    warn!(
                        %earlier,
                        "deleting the znode of an earlier master on this host and port; if it runs on another \
                         machine, give the machines different names (GRAMPUS_HOST)"
                    );
                    delete_version(&*self.coordinator, &path, znode.stat.version).await?;
                }
                Holder::Other(active) => {
                    info!(server = %self.server, active, "another master is active; waiting for its end");
                    watch.changed().await?;
                }
            }
        }
    }

    fn holder(&self, znode: &Znode) -> Holder {
        if znode.stat.ephemeral_owner == self.coordinator.session_id() {
            // It was created, but the response was lost.
            return Holder::This;
        }
        match payload::read_master(&znode.data) {
            Ok(master) if self.replaces_earlier && has_same_address(&master, &self.server) => {
                Holder::Earlier(master)
            }
            Ok(master) => Holder::Other(master.to_string()),
            Err(error) => Holder::Other(error.to_string()),
        }
    }

    /// Waits until the `master` znode is lost; returns the cause.
    async fn until_lost(&self, created_zxid: i64) -> &'static str {
        loop {
            match self.watch_master(created_zxid).await {
                Ok(cause) => return cause,
                Err(Error::SessionExpired) => return "its session expired",
                Err(error) => {
                    warn!(%error, "cannot read the znode of the active master; retrying");
                    self.pause().await;
                }
            }
        }
    }

    async fn watch_master(&self, created_zxid: i64) -> Result<&'static str, Error> {
        let path = self.names.master();
        let mut watch = self.coordinator.watch(&path).await?;
        loop {
            match self.coordinator.get(&path).await {
                Ok(znode) if znode.stat.created_zxid == created_zxid && self.is_own(&znode) => {}
                Ok(_) => return Ok("its znode names another master"),
                Err(Error::NoNode { .. }) => return Ok("its znode is deleted"),
                Err(error) => return Err(error),
            }
            watch.changed().await?;
        }
    }

    async fn delete_own(&self, path: &str) -> Result<(), Error> {
        loop {
            let znode = match self.coordinator.get(path).await {
                Ok(znode) if self.is_own(&znode) => znode,
                Ok(_) | Err(Error::NoNode { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            if delete_version(&*self.coordinator, path, znode.stat.version).await? {
                return Ok(());
            }
        }
    }

    fn is_own(&self, znode: &Znode) -> bool {
        payload::read_master(&znode.data).as_ref() == Ok(&self.server)
    }

    fn backup_path(&self) -> String {
        self.names.backup_master(&self.server.to_string())
    }

    async fn pause(&self) {
        pause(&*self.coordinator, &*self.env.clock, RETRY_PAUSE).await;
    }
}

fn has_same_address(one: &ServerName, other: &ServerName) -> bool {
    one.host.eq_ignore_ascii_case(&other.host) && one.port == other.port
}
