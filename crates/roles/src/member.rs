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
        let ended = session.wait_for(|state| state.has_ended()).await;
        // A process that stops closes its session.
        if ended.is_ok_and(|state| *state == SessionState::Expired) {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use base::testing::env;
    use zk::MemoryCoordinator;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_that_expires_ends_the_process_and_one_that_is_closed_does_not() {
        let env = env(1);
        let ends: [(fn(&MemoryCoordinator), usize); 2] =
            [(MemoryCoordinator::close, 0), (MemoryCoordinator::expire_session, 1)];
        for (end, expected) in ends {
            let calls = Arc::new(AtomicUsize::new(0));
            let (session, counter) = (MemoryCoordinator::new(&env), calls.clone());
            let end_process = Arc::new(move |_: &str| {
                counter.fetch_add(1, Ordering::Relaxed);
            });
            end_with_session(&env, &*session, end_process);
            end(&session);
            // Time passes only when no task can run any more.
            env.clock.sleep(RETRY_PAUSE).await;
            assert_eq!(calls.load(Ordering::Relaxed), expected);
        }
    }
}
