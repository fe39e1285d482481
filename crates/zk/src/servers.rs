//! The servers of a cluster: which region servers live, and which master is active.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::env::Env;
use cell::region::ServerName;
use tracing::warn;

use crate::coordinator::{Coordinator, Error, create_own};
use crate::names::Names;
use crate::payload;
use crate::tracker::ZnodeTracker;

/// Publishes a region server: creates its ephemeral znode and the missing ancestors. `info_port` is
/// the port of its status pages. If this session has done that before, nothing changes.
///
/// # Errors
/// [`Error::SessionExpired`]. [`Error::Unavailable`]: the znode may have been created; retry.
pub async fn register_region_server(
    coordinator: &dyn Coordinator,
    names: &Names,
    env: &Env,
    server: &ServerName,
    info_port: u16,
) -> Result<(), Error> {
    let writer = format!("regionserver:{}", server.port);
    let data = payload::region_server(&writer, &*env.random, info_port);
    create_own(coordinator, &names.region_server(&server.to_string()), data).await
}

/// Follows the live region servers: the children of `rs`. A server whose session expired is not
/// live.
pub struct ServerTracker {
    rs: ZnodeTracker,
}

impl ServerTracker {
    /// Follows the region servers below `names`. Nothing is read yet.
    pub fn new(coordinator: Arc<dyn Coordinator>, names: &Names) -> ServerTracker {
        ServerTracker { rs: ZnodeTracker::new(coordinator, names.rs()) }
    }

    /// Reads which region servers live. Children that are not server names are logged and skipped.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::SessionExpired`].
    pub async fn live(&mut self) -> Result<BTreeSet<ServerName>, Error> {
        Ok(server_names(self.rs.children().await?).collect())
    }

    /// Waits until the set may have changed since the last [`live`](Self::live); see
    /// [`ZnodeTracker::changed`]. A server that leaves and returns in between is not reported, but
    /// another process on the same port has another name.
    ///
    /// # Errors
    /// [`Error::SessionExpired`].
    pub async fn changed(&mut self) -> Result<(), Error> {
        self.rs.changed().await
    }
}

/// Follows the active master: the znode `master`.
pub struct MasterTracker {
    master: ZnodeTracker,
}

impl MasterTracker {
    /// Follows the master below `names`. Nothing is read yet.
    pub fn new(coordinator: Arc<dyn Coordinator>, names: &Names) -> MasterTracker {
        MasterTracker { master: ZnodeTracker::new(coordinator, names.master()) }
    }

    /// Reads which master is active; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Unavailable`], also if the znode is unreadable; [`Error::SessionExpired`].
    pub async fn current(&mut self) -> Result<Option<ServerName>, Error> {
        let Some(data) = self.master.value().await? else { return Ok(None) };
        let unreadable = |error| Error::Unavailable(format!("the znode of the active master: {error}"));
        payload::read_master(&data).map(Some).map_err(unreadable)
    }

    /// Waits until the master may have changed since the last [`current`](Self::current); see
    /// [`ZnodeTracker::changed`].
    ///
    /// # Errors
    /// [`Error::SessionExpired`].
    pub async fn changed(&mut self) -> Result<(), Error> {
        self.master.changed().await
    }
}

/// The servers that the children of `rs`, `draining` or `backup-masters` name. Other children are
/// logged and skipped.
pub fn server_names(children: Vec<String>) -> impl Iterator<Item = ServerName> {
    children.into_iter().filter_map(|name| {
        let server = ServerName::parse(&name);
        if server.is_none() {
            warn!(name, "a znode for a server is not named host,port,start code; ignored");
        }
        server
    })
}
