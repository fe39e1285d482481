//! Regions that could not be opened: the reasons, and the retries.

use std::sync::Arc;
use std::time::Duration;

use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use tracing::{error, warn};

use super::{Assignment, RegionState, TrackedRegion};

/// Why a region could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error message.
    pub reason: String,
    /// Consecutive failed attempts.
    pub attempts: u32,
    /// Whether files of the region are damaged, so that another attempt alone will not help.
    pub is_damage: bool,
    // The hosts and ports of the servers that could not open it, the last one at the end.
    tried: Vec<(String, u16)>,
}

impl Failure {
    /// How recently a server could not open the region; 0 if it was not tried.
    pub(super) fn recency_of(&self, server: &ServerName) -> usize {
        let is_same = |(host, port): &(String, u16)| (host, *port) == (&server.host, server.port);
        self.tried.iter().position(is_same).map_or(0, |at| at + 1)
    }

    /// The pause before the next attempt.
    fn pause(&self) -> Duration {
        debug_assert!(self.attempts > 0, "a failure has at least one attempt");
        RETRY_PAUSE_MIN.saturating_mul(1 << self.attempts.saturating_sub(1).min(16)).min(RETRY_PAUSE_MAX)
    }
}

impl TrackedRegion {
    /// Records that the region could not be opened. Its state still names the server that tried.
    fn add_failure(&mut self, reason: &str, is_damage: bool) {
        let before = self.failure.take();
        let attempts = before.as_ref().map_or(0, |failure| failure.attempts) + 1;
        // Repeated failures with the same reason are logged only once.
        if before.as_ref().is_none_or(|before| before.reason != reason) {
            error!(
                region = %self.region.encoded_name(), table = %self.region.table, reason,
                "cannot open region; it is retried, and other regions are served"
            );
        }
        let mut tried = before.map_or_else(Vec::new, |before| before.tried);
        if let RegionState::Opening(server) = &self.state {
            let address = (server.host.clone(), server.port);
            tried.retain(|other| *other != address);
            tried.push(address);
        }
        self.failure = Some(Failure { reason: reason.to_string(), attempts, is_damage, tried });
    }
}

/// The pause after the first failure to open a region. It doubles with each further failure.
const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause between two attempts to open a region.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(60);

impl Assignment {
    /// Retries the regions that failed to open, if their pauses have passed and `is_enabled`
    /// returns true for their tables. Waits while `hbase:meta` is offline, unless only `hbase:meta`
    /// itself is retried.
    pub async fn retry_failed(self: &Arc<Self>, is_enabled: impl Fn(&TableName) -> bool) {
        let now = self.env.clock.monotonic();
        let is_due = |tracked: &TrackedRegion| {
            let pause = tracked.failure.as_ref().map_or(RETRY_PAUSE_MIN, Failure::pause);
            tracked.state == RegionState::FailedOpen
                && now.saturating_sub(tracked.since) >= pause
                && is_enabled(&tracked.region.table)
        };
        let due: Vec<RegionInfo> = self
            .lock()
            .values()
            .filter(|tracked| is_due(tracked))
            .map(|tracked| tracked.region.clone())
            .collect();
        if !due.is_empty() {
            self.begin_retry(&due, |state| *state == RegionState::FailedOpen).await;
        }
    }

    /// Retries those of `regions` that failed to open and whose edits are only in the logs of dead
    /// servers, after their shortest pause. Once such a region is closed, a snapshot may replace
    /// its files, and these edits must not be replayed into it later. Regions with damaged files
    /// are left out. A new master counts a region that failed to open as closed, and its reason is
    /// not known until it is retried. Returns whether there was a region to retry.
    pub(crate) async fn retry_before_close(self: &Arc<Self>, regions: &[RegionInfo]) -> bool {
        let is_retried = |region: &&RegionInfo| {
            matches!(self.state(region), Some(RegionState::FailedOpen | RegionState::Closed))
                && self.failure(region).is_none_or(|failure| !failure.is_damage)
                && self.recoveries.is_needed_by(region)
        };
        let retried: Vec<RegionInfo> = regions.iter().filter(is_retried).cloned().collect();
        let pause_of = |region| self.failure(region).map_or(RETRY_PAUSE_MIN, |failure| failure.pause());
        let Some(pause) = retried.iter().map(pause_of).min() else { return false };
        self.env.clock.sleep(pause).await;
        let may_open = |state: &RegionState| matches!(state, RegionState::FailedOpen | RegionState::Closed);
        self.begin_retry(&retried, may_open).await;
        true
    }

    /// Begins to open those of `regions` that are still in a state that `may_open` accepts.
    async fn begin_retry(self: &Arc<Self>, regions: &[RegionInfo], may_open: impl Fn(&RegionState) -> bool) {
        let begun = self.begin_open_from(regions, may_open).await;
        if let Err(error) = begun {
            warn!(%error, "cannot retry to open regions");
        }
    }

    /// Records that regions could not be opened, and why. Regions whose states `is_expected`
    /// rejects stay unchanged: for example, the server that reports the failure may have died
    /// meanwhile, and then its recovery opens them.
    pub(crate) fn set_failed(
        &self,
        regions: &[RegionInfo],
        reason: &str,
        is_damage: bool,
        is_expected: impl Fn(&RegionState) -> bool,
    ) {
        let now = self.env.clock.monotonic();
        let mut states = self.lock();
        for region in regions {
            if let Some(tracked) = states.get_mut(&region.encoded_name())
                && is_expected(&tracked.state)
            {
                tracked.add_failure(reason, is_damage);
                self.enter(tracked, &RegionState::FailedOpen, now);
            }
        }
        drop(states);
        self.changed.notify_waiters();
    }

    /// Why the last attempt to open a region failed. `None` if the region is open or closed.
    pub fn failure(&self, region: &RegionInfo) -> Option<Failure> {
        let states = self.lock();
        states.get(&region.encoded_name()).and_then(|tracked| tracked.failure.clone())
    }

    /// The regions that could not be opened, sorted by table and key.
    pub fn failures(&self) -> Vec<(RegionInfo, Failure)> {
        let states = self.lock();
        let failed =
            states.values().filter_map(|tracked| Some((tracked.region.clone(), tracked.failure.clone()?)));
        let mut failed: Vec<_> = failed.collect();
        failed.sort_by(|(one, _), (other, _)| {
            (&one.table, &one.start_key, one.region_id).cmp(&(
                &other.table,
                &other.start_key,
                other.region_id,
            ))
        });
        failed
    }
}

#[cfg(test)]
mod tests {
    use base::env::Env;
    use base::testing::env;
    use fs::memory::MemoryFs;
    use fs::{FilePath, FileSystem};
    use layout::RootDir;
    use wire::service::{AdminService, ClientService};
    use zk::memory::MemoryCoordinator;
    use zk::names::Names;

    use super::*;
    use crate::assignment::AssignmentParts;
    use crate::connections::Connections;
    use crate::instruments::MasterInstruments;
    use crate::integrity::Integrity;
    use crate::location::MetaLocation;
    use crate::meta::MetaTable;
    use crate::procedure::journal::Journal;
    use crate::recoveries::Recoveries;
    use crate::servers::Servers;
    use crate::store::MasterStore;

    struct NoConnections;

    impl Connections for NoConnections {
        fn admin(&self, _: &ServerName) -> Arc<dyn AdminService> {
            panic!("no server is called")
        }

        fn client(&self, _: &ServerName) -> Arc<dyn ClientService> {
            panic!("no server is called")
        }
    }

    fn server() -> ServerName {
        ServerName { host: "h".into(), port: 1, start_code: 2 }
    }

    /// An assignment without regions and servers.
    async fn assignment(env: &Env) -> Arc<Assignment> {
        let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let root = RootDir::new(FilePath::root());
        let on_fatal = Arc::new(|_: &wal::Error| ());
        let store = MasterStore::open(env, &fs, &root, &server(), &[], on_fatal).await.unwrap();
        let (coordinator, names) = (MemoryCoordinator::new(env), Names::below("/hbase"));
        let location = MetaLocation::new(env.clone(), coordinator, names, "master:1".into(), None);
        let (connections, integrity) = (Arc::new(NoConnections), Arc::new(Integrity::default()));
        Assignment::new(AssignmentParts {
            env: env.clone(),
            servers: Arc::new(Servers::default()),
            connections: connections.clone(),
            meta: Arc::new(MetaTable::new(Arc::new(location), connections, integrity, 1)),
            recoveries: Arc::new(Recoveries::new(Arc::new(Journal::new(store.region().clone())))),
            active_since_ms: 1,
            instruments: MasterInstruments::begin(env.clock.monotonic()).assignment.clone(),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_changes_only_known_regions_in_the_expected_state() {
        let assignment = assignment(&env(1)).await;
        let region = |id| RegionInfo::new(TableName::parse("t").unwrap(), "".into(), "".into(), id);
        let regions = [region(1), region(2)];
        assignment.add_from_meta(regions[0].clone());
        let opening = RegionState::Opening(server());
        assignment.set_failed(&regions, "late", false, |state| *state == opening);
        assert_eq!(assignment.state(&regions[0]), Some(RegionState::Closed));
        assert_eq!(assignment.failure(&regions[0]), None);
        assignment.set_failed(&regions, "no file", false, |state| *state == RegionState::Closed);
        assert_eq!(assignment.state(&regions[0]), Some(RegionState::FailedOpen));
        assert_eq!(assignment.failure(&regions[0]).unwrap().attempts, 1);
        assert_eq!(assignment.state(&regions[1]), None, "it was deleted meanwhile");
    }
}
