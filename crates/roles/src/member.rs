//! A process of a cluster, as both roles see it.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::region::ServerName;
use fs::FileSystem;
use layout::RootDir;
use tracing::info;
use zk::coordinator::SessionState;
use zk::{Coordinator, Names};

/// The pause before another attempt when ZooKeeper does not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Ends the process immediately, for the reason that is passed to it.
pub type EndProcess = Arc<dyn Fn(&str) + Send + Sync>;

/// A process of a cluster. Its session with ZooKeeper is open.
#[derive(Clone)]
pub struct Member {
    /// Clock, random numbers, tasks and network.
    pub env: Env,
    /// The shared directory. Its logs detect a takeover ([`fs::shared`]).
    pub fs: Arc<dyn FileSystem>,
    /// Paths in `fs`.
    pub root: RootDir,
    /// The session with ZooKeeper. The process must end when it expires.
    pub coordinator: Arc<dyn Coordinator>,
    /// The znodes of the cluster.
    pub names: Names,
    /// Address and start time of this process.
    pub name: ServerName,
    /// Port of the status pages; 0 without pages.
    pub info_port: u16,
    /// Called when the process must not continue: for example, its write-ahead log failed.
    pub end_process: EndProcess,
}

/// Ends the process when the session expires: another process may have taken over its work.
pub fn end_with_session(env: &Env, coordinator: &dyn Coordinator, end_process: EndProcess) {
    let mut session = coordinator.session();
    env.spawn(TaskClass::Service, async move {
        if session.wait_for(|state| *state == SessionState::Expired).await.is_ok() {
            end_process("the session with ZooKeeper expired; another process may have taken over");
        }
    });
}

/// Waits until a master has set up the cluster in ZooKeeper.
///
/// # Errors
/// If the session expired.
pub async fn wait_for_cluster(env: &Env, coordinator: &dyn Coordinator, names: &Names) -> Result<(), String> {
    wait_for_znode(env, coordinator, &names.hbaseid()).await?;
    wait_for_znode(env, coordinator, &names.running()).await
}

/// Waits until a znode exists, which the active master creates.
async fn wait_for_znode(env: &Env, coordinator: &dyn Coordinator, path: &str) -> Result<(), String> {
    let mut is_logged = false;
    loop {
        let found = async {
            let mut watch = coordinator.watch(path).await?;
            match coordinator.exists(path).await? {
                Some(_) => Ok(true),
                None => {
                    if !std::mem::replace(&mut is_logged, true) {
                        info!(path, "waiting for the active master");
                    }
                    watch.changed().await.map(|()| false)
                }
            }
        };
        match found.await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(zk::Error::Unavailable(_)) => env.clock.sleep(RETRY_PAUSE).await,
            Err(error) => return Err(error.to_string()),
        }
    }
}
