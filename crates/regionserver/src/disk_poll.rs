//! Watches the disk of a region server: polls its free space, detects its loss, and frees space
//! when it is full.
//!
//! While writes that add data are refused, the server rolls logs and flushes memstores, so that
//! logs can be removed. The master's cleaner also removes files that are retained only for a time.
//! Writes resume automatically.
//!
//! After a directory is removed or a disk unmounted, writes to open files still succeed, but no
//! later start finds the data. So each poll checks that the directory, its lock file and the open
//! log still exist at their paths.
//!
//! A local disk also counts as lost if a call on it fails or does not return. A remote file system
//! may be unavailable for minutes, for example during a failover, while its open logs still commit.
//! So it counts as lost only if something is missing.

use std::sync::Arc;
use std::time::Duration;

use base::env::TaskClass;
use fs::space::Level;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::server::RegionServer;

/// The pause between two checks of whether a poll is due.
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// A poll that takes longer has failed.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest pause between two polls of a disk that is lost or low on space.
const TROUBLED_POLL_PERIOD: Duration = Duration::from_secs(5);
/// The pause between two attempts to free space.
const FREE_SPACE_PERIOD: Duration = Duration::from_secs(5);
/// If all memstores together have fewer bytes, they are not flushed to free space, because their
/// logs are hardly larger.
const FREE_SPACE_FLUSH_BYTES_MIN: u64 = 1 << 20;

/// Why a poll failed.
enum PollFailure {
    /// The directory, its lock file or the open log is not at its path.
    Missing(String),
    /// A call failed or did not return.
    NoAnswer(String),
}

impl PollFailure {
    fn of(error: &fs::Error) -> PollFailure {
        let reason = error.to_string();
        match error {
            fs::Error::NotFound { .. } | fs::Error::RootReplaced { .. } => PollFailure::Missing(reason),
            _ => PollFailure::NoAnswer(reason),
        }
    }
}

/// The state that a poll leaves for the next one.
#[derive(Default)]
struct PollState {
    polled_at: Duration,
    // When the last attempt to free space began, and its task.
    freed_at: Option<Duration>,
    freeing: Option<JoinHandle<()>>,
    level: Option<Level>,
}

impl PollState {
    /// Whether to begin another attempt to free space.
    fn is_attempt_due(&self, now: Duration) -> bool {
        let has_ended = self.freeing.as_ref().is_none_or(JoinHandle::is_finished);
        has_ended && self.freed_at.is_none_or(|at| now >= at + FREE_SPACE_PERIOD)
    }
}

impl RegionServer {
    /// Starts to poll the disk.
    pub(crate) fn watch_disk(self: &Arc<Self>) {
        let (weak, clock) = (Arc::downgrade(self), self.env().clock.clone());
        self.env().spawn(TaskClass::Service, async move {
            let mut state = PollState::default();
            while let Some(server) = weak.upgrade() {
                server.check_disk(&mut state).await;
                drop(server);
                clock.sleep(CHECK_PERIOD).await;
            }
        });
    }

    async fn check_disk(self: &Arc<Self>, state: &mut PollState) {
        let (now, space) = (self.env().clock.monotonic(), &self.disk().space);
        let period = match state.level {
            None => Duration::ZERO,
            Some(Level::Enough) => self.disk().poll_period,
            Some(_) => self.disk().poll_period.min(TROUBLED_POLL_PERIOD),
        };
        if now < state.polled_at + period && !space.is_stale() {
            return;
        }
        state.polled_at = now;
        let polled = self.env().timeout(RESPONSE_TIMEOUT, self.poll_disk()).await;
        self.record_presence(polled.unwrap_or_else(|| {
            let waited_s = RESPONSE_TIMEOUT.as_secs();
            Err(PollFailure::NoAnswer(format!("the disk does not answer within {waited_s} s")))
        }));
        self.report_level(state, space.level());
        match space.level() {
            Level::Refusing if state.is_attempt_due(now) => {
                state.freed_at = Some(now);
                let server = self.clone();
                // In a task: on HDFS, a roll may wait a minute for DataNodes.
                let freeing = async move { server.free_disk_space().await };
                state.freeing = Some(self.env().spawn(TaskClass::Service, freeing));
            }
            Level::Enough | Level::Low => self.refill_reserve().await,
            Level::Refusing | Level::Lost => {}
        }
    }

    /// Records whether the disk is lost, after a poll with this result.
    fn record_presence(&self, polled: Result<(), PollFailure>) {
        let lost = match polled {
            Ok(()) => None,
            Err(PollFailure::NoAnswer(reason)) if self.disk().is_remote => {
                warn!(%reason, "cannot check the data directory; retrying");
                return;
            }
            Err(PollFailure::Missing(reason) | PollFailure::NoAnswer(reason)) => Some(reason),
        };
        self.disk().space.set_lost(lost);
    }

    /// Polls the disk once.
    async fn poll_disk(&self) -> Result<(), PollFailure> {
        let fs = self.fs();
        fs.check_root().await.map_err(|error| PollFailure::of(&error))?;
        let required = self.open_logs().into_iter().chain(self.disk().lock.clone());
        for path in required {
            match fs.stat(&path).await {
                Ok(Some(_)) => {}
                // The log was rolled and archived after `open_logs` returned it.
                Ok(None) if self.disk().lock.as_ref() != Some(&path) && !self.open_logs().contains(&path) => {
                }
                Ok(None) => return Err(PollFailure::Missing(format!("{path} is missing"))),
                Err(error) => return Err(PollFailure::of(&error)),
            }
        }
        if let Some(found) = fs.space().await.map_err(|error| PollFailure::of(&error))? {
            self.disk().space.record_poll(found, self.unwritten_bytes());
        }
        Ok(())
    }

    /// Bytes that memstores and logs will still write.
    fn unwritten_bytes(&self) -> u64 {
        self.memstore_bytes() + self.user_log_statistics().queued_bytes
    }

    fn report_level(&self, state: &mut PollState, level: Level) {
        let before = state.level.replace(level).unwrap_or(Level::Enough);
        if before == level {
            return;
        }
        let space = &self.disk().space;
        let (free_mib, needed_mib) = (space.free_bytes() >> 20, space.needed_bytes() >> 20);
        match level {
            Level::Enough => info!(free_mib, "the disk has enough free space"),
            Level::Low => warn!(free_mib, needed_mib, "the disk is low on space: add space or delete data"),
            Level::Refusing => {
                error!(
                    free_mib,
                    needed_mib, "the disk is full: writes that add data are refused until space is free"
                );
            }
            Level::Lost => {
                let reason = space.lost().unwrap_or_default();
                error!(%reason, "the data directory is lost: all writes are refused; writes acknowledged since the \
                       loss are not on it");
            }
        }
    }

    /// Frees space by rolling logs and flushing the memstores whose edits they hold.
    async fn free_disk_space(&self) {
        if self.memstore_bytes() < FREE_SPACE_FLUSH_BYTES_MIN {
            return;
        }
        if let Err(error) = self.roll_logs().await {
            warn!(%error, "cannot roll the log on the full disk; the open log cannot be removed");
        }
        self.schedule().flush_for_space();
    }

    async fn refill_reserve(&self) {
        let Some(reserve) = self.disk().reserve.as_ref().filter(|reserve| reserve.is_used()) else { return };
        let spare = self.disk().space.needed_bytes() + reserve.wanted_bytes();
        if let Err(error) = reserve.refill(spare).await {
            warn!(%error, "cannot allocate the disk reserve");
        }
    }

    /// Findings about the disk for the operator: warnings, and failures that prevent the server
    /// from working.
    pub fn disk_findings(&self) -> (Vec<String>, Vec<String>) {
        let space = &self.disk().space;
        let mib = |bytes: u64| bytes >> 20;
        let (mut warnings, mut failures) = (self.disk().warnings.clone(), Vec::new());
        match space.level() {
            Level::Enough => {}
            Level::Low => warnings.push(format!(
                "The disk is low on space: {} of {} MiB are free; writes are refused below {} MiB.",
                mib(space.free_bytes()),
                mib(space.total_bytes()),
                mib(space.needed_bytes())
            )),
            Level::Refusing => warnings.push(format!(
                "The disk is full: {} of {} MiB are free, {} MiB are needed. Writes that add data are refused \
                 until space is free.",
                mib(space.free_bytes()),
                mib(space.total_bytes()),
                mib(space.needed_bytes())
            )),
            Level::Lost => failures.push(format!(
                "The data directory is lost: {}. All writes are refused.",
                space.lost().unwrap_or_default()
            )),
        }
        if self.waits_for_space() {
            warnings.push("The log waits for disk space: accepted writes are not acknowledged.".into());
        }
        (warnings, failures)
    }
}
