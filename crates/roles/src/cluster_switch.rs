//! The znode `running`, by which a whole cluster is shut down. The active master creates it, and
//! the `shutdown` call of HBase's `Admin` deletes it. Region servers and backup masters stop then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::env::Clock;
use zk::{Coordinator, Election, Error, Names};

/// The pause before another attempt when ZooKeeper does not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Follows the znode `running`.
///
/// A cluster counts as shut down only if it was seen running before. Otherwise it may be about to
/// start.
pub(crate) struct ClusterSwitch {
    path: String,
    was_on: AtomicBool,
}

/// How a master's wait for its election ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elected {
    /// The master is active.
    Active,
    /// The cluster was shut down while the master waited. It is not active.
    ShutDown,
}

impl ClusterSwitch {
    /// The switch of a cluster that may not have started yet.
    pub(crate) fn new(names: &Names) -> ClusterSwitch {
        ClusterSwitch { path: names.running(), was_on: AtomicBool::new(false) }
    }

    /// The switch of a cluster that was seen running.
    pub(crate) fn on(names: &Names) -> ClusterSwitch {
        ClusterSwitch { path: names.running(), was_on: AtomicBool::new(true) }
    }

    /// Waits until the cluster is shut down.
    ///
    /// # Errors
    /// Only [`Error::SessionExpired`].
    pub(crate) async fn turned_off(
        &self,
        coordinator: &dyn Coordinator,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        loop {
            let changed = async {
                let mut watch = coordinator.watch(&self.path).await?;
                match self.is_off(coordinator).await? {
                    true => Ok(true),
                    false => watch.changed().await.map(|()| false),
                }
            };
            match changed.await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(Error::SessionExpired) => return Err(Error::SessionExpired),
                Err(_) => clock.sleep(RETRY_PAUSE).await,
            }
        }
    }

    /// Takes part in an election until this master is active, or the cluster is shut down. In the
    /// second case, the master has resigned.
    ///
    /// # Errors
    /// The election failed, for example because the session expired.
    pub(crate) async fn elect(
        &self,
        election: &Election,
        coordinator: &dyn Coordinator,
        clock: &dyn Clock,
    ) -> Result<Elected, Error> {
        // From here on, a shutdown is noticed, also one that this master sees only after its
        // election.
        self.is_off(coordinator).await.ok();
        let is_off = tokio::select! {
            biased;
            off = self.turned_off(coordinator, clock) => off.map(|()| true)?,
            won = election.win() => {
                won?;
                // A shutdown deletes `running` before the znode of the active master.
                self.is_off(coordinator).await?
            }
        };
        if is_off {
            election.resign().await;
            return Ok(Elected::ShutDown);
        }
        Ok(Elected::Active)
    }

    async fn is_off(&self, coordinator: &dyn Coordinator) -> Result<bool, Error> {
        let is_on = coordinator.exists(&self.path).await?.is_some();
        let was_on = self.was_on.fetch_or(is_on, Ordering::Relaxed);
        Ok(was_on && !is_on)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests run on one runtime with a paused clock")]
mod tests {
    use std::sync::Arc;

    use base::env::Env;
    use cell::region::ServerName;
    use zk::coordinator::{Mode, publish};
    use zk::{MemoryCoordinator, MemoryEnsemble};

    use super::*;

    /// A process that can become a master.
    struct Master {
        env: Env,
        session: Arc<MemoryCoordinator>,
        election: Election,
        switch: ClusterSwitch,
    }

    impl Master {
        fn new(env: &Env, ensemble: &Arc<MemoryEnsemble>, port: u16) -> Arc<Master> {
            let session = ensemble.connect();
            let server = ServerName { host: "host".into(), port, start_code: 1 };
            let names = Names::default();
            let election = Election::new(session.clone(), env, names.clone(), server, 0);
            let switch = ClusterSwitch::new(&names);
            Arc::new(Master { env: env.clone(), session, election, switch })
        }

        async fn elect(&self) -> Result<Elected, Error> {
            self.switch.elect(&self.election, &*self.session, &*self.env.clock).await
        }

        async fn set_running(&self) {
            publish(&*self.session, &Names::default().running(), "on".into(), Mode::Persistent)
                .await
                .unwrap();
        }

        async fn shut_down(&self) {
            self.session.delete(&Names::default().running(), None).await.unwrap();
        }

        async fn sees_a_master(&self) -> bool {
            self.session.exists(&Names::default().master()).await.unwrap().is_some()
        }
    }

    async fn pause() {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_backup_master_stops_when_the_cluster_is_shut_down() {
        let env = base::testing::env(1);
        let ensemble = MemoryEnsemble::new(&env);
        let [active, backup] = [16000, 16001].map(|port| Master::new(&env, &ensemble, port));
        assert_eq!(active.elect().await, Ok(Elected::Active), "no cluster has run yet");
        let waiting = tokio::spawn({
            let backup = backup.clone();
            async move { backup.elect().await }
        });
        pause().await;
        active.set_running().await;
        pause().await;
        assert!(!waiting.is_finished());
        active.shut_down().await;
        assert_eq!(waiting.await.unwrap(), Ok(Elected::ShutDown));
        active.election.resign().await;
        pause().await;
        assert!(!backup.sees_a_master().await);
        let next = Master::new(&env, &ensemble, 16002);
        assert_eq!(next.elect().await, Ok(Elected::Active), "the cluster starts again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_master_that_wins_during_a_shutdown_resigns() {
        let env = base::testing::env(1);
        let ensemble = MemoryEnsemble::new(&env);
        let [active, backup] = [16000, 16001].map(|port| Master::new(&env, &ensemble, port));
        assert_eq!(active.elect().await, Ok(Elected::Active));
        active.set_running().await;
        let waiting = tokio::spawn({
            let backup = backup.clone();
            async move { backup.elect().await }
        });
        pause().await;
        // The backup sees both deletions at once.
        backup.session.suspend();
        active.shut_down().await;
        active.election.resign().await;
        backup.session.resume();
        assert_eq!(waiting.await.unwrap(), Ok(Elected::ShutDown));
        assert!(!backup.sees_a_master().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_backup_master_replaces_one_that_ends_in_a_running_cluster() {
        let env = base::testing::env(1);
        let ensemble = MemoryEnsemble::new(&env);
        let [active, backup] = [16000, 16001].map(|port| Master::new(&env, &ensemble, port));
        assert_eq!(active.elect().await, Ok(Elected::Active));
        active.set_running().await;
        let waiting = tokio::spawn({
            let backup = backup.clone();
            async move { backup.elect().await }
        });
        pause().await;
        active.election.resign().await;
        assert_eq!(waiting.await.unwrap(), Ok(Elected::Active));
    }
}
