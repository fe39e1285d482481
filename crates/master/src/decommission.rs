//! Decommissioned region servers: they keep their regions, but get no more. As in HBase, each has a
//! persistent znode below `draining`, which tools may also create and delete. The master removes it
//! when it starts the recovery of the server.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::env::TaskClass;
use bytes::Bytes;
use cell::region::ServerName;
use tracing::{info, warn};
use zk::coordinator::{Mode, publish};
use zk::servers::server_names;
use zk::tracker::ZnodeTracker;
use zk::{Coordinator, Error};

use crate::master::Master;
use crate::servers::Servers;

/// The pause before another attempt to read the marks.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Marks a server. If it is marked already, nothing changes.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::SessionExpired`].
pub(crate) async fn mark(coordinator: &dyn Coordinator, znode: &str) -> Result<(), Error> {
    publish(coordinator, znode, Bytes::new(), Mode::Persistent).await.map(drop)
}

/// Removes the mark of a server. If it has none, nothing changes.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::SessionExpired`].
pub(crate) async fn unmark(coordinator: &dyn Coordinator, znode: &str) -> Result<(), Error> {
    match coordinator.delete(znode, None).await {
        Ok(()) | Err(Error::NoNode { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads which servers are marked, before regions are placed, and follows the changes from then on.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::SessionExpired`].
pub(crate) async fn follow(master: &Arc<Master>, mut marks: ZnodeTracker) -> Result<(), Error> {
    let env = &master.context().env;
    update(&master.context().servers, marks.children().await?);
    let (weak, clock) = (Arc::downgrade(master), env.clock.clone());
    env.spawn(TaskClass::Service, async move {
        while let Ok(()) = marks.changed().await {
            let Some(master) = Weak::upgrade(&weak) else { return };
            match marks.children().await {
                Ok(children) => update(&master.context().servers, children),
                Err(Error::SessionExpired) => return,
                Err(error) => {
                    warn!(%error, "cannot read the decommissioned servers; retrying");
                    clock.sleep(RETRY_PAUSE).await;
                }
            }
        }
    });
    Ok(())
}

fn update(servers: &Servers, children: Vec<String>) {
    let marked: BTreeSet<ServerName> = server_names(children).collect();
    if servers.set_decommissioned(marked.clone()) {
        let marked: Vec<String> = marked.iter().map(ToString::to_string).collect();
        info!(servers = marked.join(" "), "decommissioned region servers");
    }
}
