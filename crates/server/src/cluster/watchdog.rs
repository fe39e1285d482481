//! Detects ended processes before their sessions expire.
//!
//! A process marks the directory of its logs as [occupied](fs::FileSystem::occupy). The mark ends
//! with the process, whatever ends it. So a directory that was occupied and no longer is belongs to
//! a process that has certainly ended. A process that is only paused or unreachable keeps its mark;
//! for it, only the end of its session counts. Storage without such marks shows nothing, and the
//! sessions decide alone.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::region::ServerName;
use fs::FileSystem;
use layout::RootDir;
use master::Master;
use tracing::{info, warn};
use zk::Coordinator;
use zk::coordinator::Error;
use zk::names::Names;

/// The pause between two checks of all directories.
const CHECK_PERIOD: Duration = Duration::from_millis(200);

/// The processes whose directories were seen as occupied.
#[derive(Default)]
struct Occupants(BTreeSet<ServerName>);

impl Occupants {
    /// Whether the process of a directory has ended.
    async fn has_ended(&mut self, fs: &dyn FileSystem, root: &RootDir, server: &ServerName) -> bool {
        match fs.is_occupied(&root.wal_dir(server)).await {
            Ok(Some(true)) => {
                self.0.insert(server.clone());
                false
            }
            Ok(Some(false)) => self.0.remove(server),
            Ok(None) | Err(_) => false,
        }
    }
}

/// Starts a task of the active master that expires region servers whose processes have ended.
pub(super) fn watch_region_servers(
    env: &Env,
    fs: Arc<dyn FileSystem>,
    root: RootDir,
    master: Weak<Master>,
    coordinator: Arc<dyn Coordinator>,
    names: Names,
) {
    let clock = env.clock.clone();
    env.spawn(TaskClass::Service, async move {
        let mut occupants = Occupants::default();
        loop {
            clock.sleep(CHECK_PERIOD).await;
            let Some(master) = master.upgrade() else { return };
            for server in master.context().servers.live_names() {
                if !occupants.has_ended(&*fs, &root, &server).await {
                    continue;
                }
                master.expire(&server, "its process has ended").await;
                // Clients and tools see the end now, not when the session expires.
                let path = names.region_server(&server.to_string());
                if let Err(error) = coordinator.delete(&path, None).await
                    && !matches!(error, Error::NoNode { .. })
                {
                    warn!(%server, %error, "cannot delete the znode of a dead server");
                }
            }
        }
    });
}

/// Deletes the znode of the active master when the process of that master has ended, so that this
/// process can be elected. Runs until it is dropped.
pub(super) async fn watch_active_master(
    env: &Env,
    fs: &dyn FileSystem,
    root: &RootDir,
    coordinator: &dyn Coordinator,
    names: &Names,
) {
    let (root, mut occupants) = (root.master_data(), Occupants::default());
    loop {
        env.clock.sleep(CHECK_PERIOD).await;
        let Ok(znode) = coordinator.get(&names.master()).await else { continue };
        let Ok(active) = zk::payload::read_master(&znode.data) else { continue };
        if occupants.has_ended(fs, &root, &active).await {
            info!(%active, "the process of the active master has ended");
            // Only this version: another master may have been elected since.
            let _ = coordinator.delete(&names.master(), Some(znode.stat.version)).await;
        }
    }
}
