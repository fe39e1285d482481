//! Detects ended processes before their sessions expire.
//!
//! A process [occupies](fs::FileSystem::occupy) a directory before it registers or takes part in an
//! election. The mark ends with the process, whatever ends it. So if the directory of a known
//! process is not occupied, that process has certainly ended. A process that is only paused or
//! unreachable keeps its mark; for it, only the end of its session counts.
//!
//! HDFS has no such marks. There a second process on the same machine waits for the end of the
//! first one, and then deletes its znodes ([`delete_znodes_of`]), as the end of its session would.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::region::ServerName;
use fs::{FileSystem, Occupied};
use layout::RootDir;
use master::Master;
use tracing::{info, warn};
use zk::Coordinator;
use zk::coordinator::Error;
use zk::names::Names;

/// The pause between two checks of all directories.
const CHECK_PERIOD: Duration = Duration::from_millis(200);

/// The active master as a backup master last saw it.
#[derive(Clone, Default)]
pub struct SeenMaster(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    // With the port of its status pages (0: none).
    other: Option<(ServerName, u16)>,
    elected_ms: Option<u64>,
}

impl SeenMaster {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, master: ServerName, info_port: u16) {
        self.lock().other = Some((master, info_port));
    }

    /// Records that this master is elected now. The previous one is not active any more.
    pub(crate) fn set_elected(&self, now_ms: u64) {
        *self.lock() = Seen { other: None, elected_ms: Some(now_ms) };
    }

    /// The master, and the port of its status pages (0: none); `None` if none was seen yet, or this
    /// one is elected.
    pub fn get(&self) -> Option<(ServerName, u16)> {
        self.lock().other.clone()
    }

    /// When this master was elected, in milliseconds since the epoch.
    pub fn elected_ms(&self) -> Option<u64> {
        self.lock().elected_ms
    }
}

/// Marks this process as alive, until the result is dropped or the process ends.
///
/// # Errors
/// One line that states why its directory cannot be used.
pub async fn mark_alive(
    fs: &dyn FileSystem,
    root: &RootDir,
    server: &ServerName,
) -> Result<Option<Occupied>, String> {
    let dir = root.process_dir(server);
    let marked = async {
        fs.make_dirs(&dir).await?;
        fs.occupy(&dir).await
    };
    marked.await.map_err(|error| format!("cannot mark this process as alive: {error}"))
}

/// Whether the process of a server has certainly ended.
pub async fn has_ended(fs: &dyn FileSystem, root: &RootDir, server: &ServerName) -> bool {
    matches!(fs.is_occupied(&root.process_dir(server)).await, Ok(Some(false)))
}

/// Like [`has_ended`], for a process that may use another file system: it has ended only if it had
/// its directory in this one.
async fn has_ended_here(fs: &dyn FileSystem, root: &RootDir, server: &ServerName) -> bool {
    let has_dir = fs.stat(&root.process_dir(server)).await.is_ok_and(|dir| dir.is_some());
    has_dir && has_ended(fs, root, server).await
}

/// Deletes the ephemeral znodes of a process that has certainly ended, so that the master recovers
/// it, or another master is elected, before its session expires. Znodes that are missing are
/// skipped, and so is the znode of the active master if it names another one.
///
/// # Errors
/// The error of the first znode that could not be deleted.
pub async fn delete_znodes_of(
    coordinator: &dyn Coordinator,
    names: &Names,
    ended: &ServerName,
) -> Result<(), Error> {
    let unless_missing = |deleted| match deleted {
        Err(Error::NoNode { .. }) => Ok(()),
        deleted => deleted,
    };
    let name = ended.to_string();
    for path in [names.region_server(&name), names.backup_master(&name)] {
        unless_missing(coordinator.delete(&path, None).await)?;
    }
    match coordinator.get(&names.master()).await {
        Ok(znode) if zk::payload::read_master(&znode.data).as_ref() == Ok(ended) => {
            // Only this version: another master may have been elected since.
            let deleted = coordinator.delete(&names.master(), Some(znode.stat.version)).await;
            match deleted {
                Err(Error::BadVersion { .. }) => Ok(()),
                deleted => unless_missing(deleted),
            }
        }
        Ok(_) | Err(Error::NoNode { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Deletes the directories of processes that have ended, except those of `known` servers, which are
/// deleted when they are recovered.
pub async fn delete_unused(fs: &dyn FileSystem, root: &RootDir, known: &BTreeSet<ServerName>) {
    let Ok(dirs) = fs.list(&root.processes_dir()).await else { return };
    for server in dirs.iter().filter_map(|dir| ServerName::parse(&dir.name)) {
        if !known.contains(&server) && has_ended(fs, root, &server).await {
            // A directory that stays is deleted by the next master.
            let _ = fs.delete(&root.process_dir(&server)).await;
        }
    }
}

/// Starts a task of the active master that expires region servers whose processes have ended.
pub fn watch_region_servers(
    env: &Env,
    fs: Arc<dyn FileSystem>,
    root: RootDir,
    master: Weak<Master>,
    coordinator: Arc<dyn Coordinator>,
    names: Names,
) {
    let clock = env.clock.clone();
    env.spawn(TaskClass::Service, async move {
        loop {
            clock.sleep(CHECK_PERIOD).await;
            let Some(master) = master.upgrade() else { return };
            for server in master.context().servers.live_names() {
                if !has_ended(&*fs, &root, &server).await {
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
pub async fn watch_active_master(
    env: &Env,
    fs: &dyn FileSystem,
    root: &RootDir,
    coordinator: &dyn Coordinator,
    names: &Names,
    seen: &SeenMaster,
) -> Infallible {
    loop {
        env.clock.sleep(CHECK_PERIOD).await;
        let Ok(znode) = coordinator.get(&names.master()).await else { continue };
        let Ok((active, info_port)) = zk::payload::read_master_pages(&znode.data) else { continue };
        seen.set(active.clone(), info_port);
        if has_ended_here(fs, root, &active).await {
            info!(%active, "the process of the active master has ended");
            // Only this version: another master may have been elected since.
            let _ = coordinator.delete(&names.master(), Some(znode.stat.version)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use base::pool::Pool;
    use base::testing::{SeededRandom, env};
    use fs::FilePath;
    use fs::local::LocalFs;
    use zk::coordinator::{Mode, publish};
    use zk::memory::MemoryCoordinator;

    use super::*;

    fn server(start_code: u64) -> ServerName {
        ServerName { host: "h".into(), port: 1, start_code }
    }

    #[tokio::test]
    async fn a_process_without_a_directory_here_may_run_elsewhere() {
        let dir = std::env::temp_dir().join(format!("roles-watchdog-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let fs = LocalFs::new(&dir, Arc::new(Pool::new("files", 1))).unwrap();
        let (root, process) = (RootDir::new(FilePath::root()), server(1));
        assert!(!has_ended_here(&fs, &root, &process).await);
        let alive = mark_alive(&fs, &root, &process).await.unwrap();
        assert!(!has_ended_here(&fs, &root, &process).await);
        drop(alive);
        assert!(has_ended_here(&fs, &root, &process).await);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[tokio::test]
    async fn only_the_znodes_of_the_ended_process_are_deleted() {
        let coordinator = MemoryCoordinator::new(&env(1));
        let names = Names::below("/hbase");
        let (ended, other) = (server(1), server(2));
        let master_is = |name: &ServerName| zk::payload::master("m", &SeededRandom::new(1), name, 0);
        let paths = |name: &ServerName| {
            [names.region_server(&name.to_string()), names.backup_master(&name.to_string())]
        };
        for path in paths(&ended).iter().chain(&paths(&other)) {
            publish(&*coordinator, path, Default::default(), Mode::Persistent).await.unwrap();
        }
        publish(&*coordinator, &names.master(), master_is(&other), Mode::Persistent).await.unwrap();
        delete_znodes_of(&*coordinator, &names, &ended).await.unwrap();
        for path in paths(&ended) {
            assert_eq!(coordinator.exists(&path).await.unwrap(), None, "{path}");
        }
        for path in paths(&other).into_iter().chain([names.master()]) {
            assert!(coordinator.exists(&path).await.unwrap().is_some(), "{path}");
        }
        let version = coordinator.get(&names.master()).await.unwrap().stat.version;
        coordinator.set(&names.master(), master_is(&ended), Some(version)).await.unwrap();
        delete_znodes_of(&*coordinator, &names, &ended).await.unwrap();
        assert_eq!(coordinator.exists(&names.master()).await.unwrap(), None);
        delete_znodes_of(&*coordinator, &names, &ended).await.unwrap();
    }
}
