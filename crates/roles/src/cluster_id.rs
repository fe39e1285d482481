//! The id of a cluster. It is in the root directory and in ZooKeeper, so a process can check that
//! it uses the directory of the cluster that it joins.
//!
//! A process with another directory does damage. A master, for example, fences the logs of earlier
//! servers there, so that the real servers can still write to theirs.

use std::fmt::Display;
use std::time::Duration;

use cell::region::ServerName;
use tracing::{info, warn};
use zk::coordinator::Error;
use zk::names::Names;

use crate::member::Member;

/// How long another id is accepted: an active master may be about to publish the id of a new
/// directory.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two reads of the id.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The role of a process that joins a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It may be the first process of the cluster.
    Master,
    /// It waits for the active master, which publishes the id.
    RegionServer,
}

/// The id in ZooKeeper, compared with that of a directory.
enum Comparison {
    Same,
    /// There is none, or that of a cluster without live processes.
    Unused,
    /// That of a cluster with live processes.
    Different(String),
}

/// Checks that the directory of a process, with the id `own`, is that of the cluster.
///
/// # Errors
/// One line, if live processes of a cluster have another directory.
pub async fn check(member: &Member, own: &str, role: Role) -> Result<(), String> {
    let clock = &member.env.clock;
    let (mut differs_since, mut is_logged) = (None, false);
    loop {
        match compare(member, own).await {
            Ok(Comparison::Same) => return Ok(()),
            Ok(Comparison::Unused) if role == Role::Master => return Ok(()),
            Ok(Comparison::Unused) => {
                differs_since = None;
                if !std::mem::replace(&mut is_logged, true) {
                    info!("waiting for the active master, which publishes the id of the cluster");
                }
            }
            Ok(Comparison::Different(other)) => {
                let now = clock.monotonic();
                if now >= *differs_since.get_or_insert(now) + PATIENCE {
                    return Err(refusal(&member.names, own, &other));
                }
            }
            Err(Error::Unavailable(_)) => {}
            Err(error) => return Err(format!("cannot read the id of the cluster: {error}")),
        }
        clock.sleep(RETRY_PAUSE).await;
    }
}

/// Like [`check`], for a process with the id `own`, and returns the id of the cluster. A directory
/// that processes of the cluster use, but that has another id, gets the id of the cluster: an
/// earlier process has generated the other one, and ended before it could restore the lost id.
///
/// # Errors
/// One line, if live processes of a cluster have another directory, or the id cannot be restored.
pub async fn check_or_restore(member: &Member, own: &str, role: Role) -> Result<String, String> {
    let Err(refused) = check(member, own, role).await else { return Ok(own.to_string()) };
    let restored = restore(member, own).await?;
    if restored == own {
        return Err(refused);
    }
    check(member, &restored, role).await?;
    Ok(restored)
}

/// Writes the id of the running cluster to a directory that had lost its id, and returns it. If no
/// cluster uses the directory now, its new id `generated` stays.
///
/// # Errors
/// One line, if ZooKeeper or the directory cannot be read, or the directory cannot be written.
pub async fn restore(member: &Member, generated: &str) -> Result<String, String> {
    let used_by = running_cluster(member).await?;
    let Some(id) = used_by.filter(|id| id != generated) else { return Ok(generated.to_string()) };
    write(member, &id).await?;
    Ok(id)
}

/// Writes the id `own` of an elected master back to its directory, which has got another id since
/// the master started. Returns false, and changes nothing, if `own` is not the id in ZooKeeper: the
/// other id may then be the right one.
///
/// # Errors
/// One line, if ZooKeeper or the directory cannot be read, or the directory cannot be written.
pub async fn write_back(member: &Member, own: &str) -> Result<bool, String> {
    let is_published = running_cluster(member).await?.as_deref() == Some(own);
    if is_published {
        write(member, own).await?;
    }
    Ok(is_published)
}

async fn write(member: &Member, id: &str) -> Result<(), String> {
    let Member { env, fs, root, .. } = member;
    root.write_cluster_id(&**fs, &*env.random, id).await.map_err(|error| not_restored(&error))?;
    warn!(cluster_id = id, "restored the cluster id of the root directory from ZooKeeper");
    Ok(())
}

/// Like [`cluster_of_directory`]. Waits while ZooKeeper does not respond.
async fn running_cluster(member: &Member) -> Result<Option<String>, String> {
    loop {
        match cluster_of_directory(member).await {
            Ok(used_by) => return Ok(used_by),
            Err(Unknown::ZooKeeper(Error::Unavailable(_))) => member.env.clock.sleep(RETRY_PAUSE).await,
            Err(Unknown::ZooKeeper(error)) => return Err(not_restored(&error)),
            Err(Unknown::Directory(error)) => return Err(not_restored(&error)),
        }
    }
}

fn not_restored(error: &dyn Display) -> String {
    format!("cannot restore the id of the cluster: {error}")
}

/// Why it is unknown which cluster uses a directory.
enum Unknown {
    ZooKeeper(Error),
    Directory(fs::Error),
}

impl From<Error> for Unknown {
    fn from(error: Error) -> Unknown {
        Unknown::ZooKeeper(error)
    }
}

impl From<fs::Error> for Unknown {
    fn from(error: fs::Error) -> Unknown {
        Unknown::Directory(error)
    }
}

/// The id of the cluster in ZooKeeper, if a process of it uses the directory of `member`.
async fn cluster_of_directory(member: &Member) -> Result<Option<String>, Unknown> {
    let Some(id) = published(member).await? else { return Ok(None) };
    for process in processes(member).await? {
        if member.fs.stat(&member.root.process_dir(&process)).await?.is_some() {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The active master and the region servers.
async fn processes(member: &Member) -> Result<Vec<ServerName>, Error> {
    let Member { coordinator, names, .. } = member;
    let master = match coordinator.get(&names.master()).await {
        Ok(znode) => zk::payload::read_master(&znode.data).ok(),
        Err(Error::NoNode { .. }) => None,
        Err(error) => return Err(error),
    };
    let servers = match coordinator.children(&names.rs()).await {
        Ok((servers, _)) => servers,
        Err(Error::NoNode { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    Ok(master.into_iter().chain(servers.iter().filter_map(|name| ServerName::parse(name))).collect())
}

/// The id in ZooKeeper. The next active master replaces an unreadable one.
async fn published(member: &Member) -> Result<Option<String>, Error> {
    match member.coordinator.get(&member.names.hbaseid()).await {
        Ok(znode) => Ok(zk::payload::read_cluster_id(&znode.data).ok()),
        Err(Error::NoNode { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn compare(member: &Member, own: &str) -> Result<Comparison, Error> {
    Ok(match published(member).await? {
        Some(id) if id == own => Comparison::Same,
        Some(id) if has_other_processes(member).await? => Comparison::Different(id),
        _ => Comparison::Unused,
    })
}

/// Whether another process is the active master, or a region server.
async fn has_other_processes(member: &Member) -> Result<bool, Error> {
    let Member { coordinator, names, name, .. } = member;
    match coordinator.get(&names.master()).await {
        Ok(znode) if zk::payload::read_master(&znode.data).as_ref() == Ok(name) => {}
        Ok(_) => return Ok(true),
        Err(Error::NoNode { .. }) => {}
        Err(error) => return Err(error),
    }
    match coordinator.children(&names.rs()).await {
        Ok((servers, _)) => Ok(!servers.is_empty()),
        Err(Error::NoNode { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn refusal(names: &Names, own: &str, other: &str) -> String {
    format!(
        "the root directory belongs to another cluster: it has the cluster id {own}, and the cluster in ZooKeeper \
         at {} has {other}; set hbase.rootdir to the directory of that cluster, or zookeeper.znode.parent to another \
         znode. If the directory was replaced, stop all processes of the cluster, and start them when their \
         sessions have expired",
        names.parent()
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::testing::env;
    use bytes::Bytes;
    use fs::FilePath;
    use fs::memory::MemoryFs;
    use layout::RootDir;
    use zk::MemoryCoordinator;
    use zk::coordinator::{Mode, publish};

    use super::*;

    fn server(start_code: u64) -> ServerName {
        ServerName { host: "h".into(), port: 1, start_code }
    }

    fn member() -> Member {
        let env = env(1);
        Member {
            fs: Arc::new(MemoryFs::new()),
            root: RootDir::new(FilePath::root()),
            coordinator: MemoryCoordinator::new(&env),
            names: Names::default(),
            name: server(1),
            info_port: 0,
            end_process: Arc::new(|_: &str| ()),
            env,
        }
    }

    async fn put(member: &Member, path: &str, data: Bytes) {
        publish(&*member.coordinator, path, data, Mode::Persistent).await.unwrap();
    }

    async fn put_id(member: &Member, id: &str) {
        let data = zk::payload::cluster_id("m", &*member.env.random, id);
        put(member, &member.names.hbaseid(), data).await;
    }

    async fn put_master(member: &Member, name: &ServerName) {
        let data = zk::payload::master("m", &*member.env.random, name, 0);
        put(member, &member.names.master(), data).await;
    }

    fn is_refused(checked: Result<(), String>) -> bool {
        checked.is_err_and(|error| error.contains("cluster id own") && error.contains("has other;"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_with_the_directory_of_another_live_cluster_is_refused() {
        for role in [Role::Master, Role::RegionServer] {
            let with_master = member();
            put_id(&with_master, "other").await;
            put_master(&with_master, &server(2)).await;
            assert!(is_refused(check(&with_master, "own", role).await), "{role:?}");

            let with_region_server = member();
            put_id(&with_region_server, "other").await;
            let path = with_region_server.names.region_server(&server(2).to_string());
            put(&with_region_server, &path, Bytes::new()).await;
            assert!(is_refused(check(&with_region_server, "own", role).await), "{role:?}");
            put_id(&with_region_server, "own").await;
            assert_eq!(check(&with_region_server, "own", role).await, Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_master_replaces_the_id_of_a_cluster_without_processes() {
        let member = member();
        assert_eq!(check(&member, "own", Role::Master).await, Ok(()));
        put_id(&member, "other").await;
        assert_eq!(check(&member, "own", Role::Master).await, Ok(()));
        put_master(&member, &member.name).await;
        assert_eq!(check(&member, "own", Role::Master).await, Ok(()), "it is elected itself");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_id_is_restored_if_the_cluster_uses_the_directory() {
        let member = member();
        let stored = || member.root.stored_cluster_id(&*member.fs);
        assert_eq!(restore(&member, "new").await, Ok("new".to_string()), "there is no cluster");
        put_id(&member, "published").await;
        assert_eq!(restore(&member, "new").await, Ok("new".to_string()), "the cluster does not run");
        put_master(&member, &server(2)).await;
        let path = member.names.region_server(&server(3).to_string());
        put(&member, &path, Bytes::new()).await;
        assert_eq!(restore(&member, "new").await, Ok("new".to_string()), "it has another directory");
        assert_eq!(stored().await.unwrap(), None);
        member.fs.make_dirs(&member.root.process_dir(&server(3))).await.unwrap();
        member.fs.make_dirs(&member.root.tmp_dir()).await.unwrap();
        assert_eq!(restore(&member, "new").await, Ok("published".to_string()));
        assert_eq!(stored().await.unwrap(), Some("published".to_string()));
        assert_eq!(check(&member, "published", Role::RegionServer).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_id_that_an_ended_process_has_generated_is_replaced_by_that_of_the_cluster() {
        for role in [Role::Master, Role::RegionServer] {
            let member = member();
            let Member { env, fs, root, .. } = &member;
            fs.make_dirs(&root.tmp_dir()).await.unwrap();
            root.write_cluster_id(&**fs, &*env.random, "own").await.unwrap();
            put_id(&member, "other").await;
            put_master(&member, &server(2)).await;
            let checked = check_or_restore(&member, "own", role).await;
            assert!(is_refused(checked.map(drop)), "{role:?}: no process of the cluster uses the directory");
            assert_eq!(root.stored_cluster_id(&**fs).await.unwrap(), Some("own".to_string()));

            fs.make_dirs(&root.process_dir(&server(2))).await.unwrap();
            assert_eq!(check_or_restore(&member, "own", role).await, Ok("other".to_string()), "{role:?}");
            assert_eq!(root.stored_cluster_id(&**fs).await.unwrap(), Some("other".to_string()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_region_server_waits_until_the_active_master_publishes_the_id() {
        let member = member();
        put_id(&member, "other").await;
        let publication = async {
            member.env.clock.sleep(PATIENCE * 2).await;
            put_master(&member, &server(2)).await;
            member.env.clock.sleep(PATIENCE / 2).await;
            put_id(&member, "own").await;
        };
        let (checked, ()) = tokio::join!(check(&member, "own", Role::RegionServer), publication);
        assert_eq!(checked, Ok(()));
    }
}
