//! The disk below a region server: polls its free space, finds out when it is lost, and frees room when it is short.
//!
//! While writes that add data are refused, logs are rolled and memstores flushed, so that the logs can go, and the
//! master's cleaner removes files that are only kept for a time. Writes resume by themselves.
//!
//! A directory that was removed, or a disk that was unmounted, still takes what is written to open files, and no later
//! start finds it. So each poll checks that the directory, its lock file and the open log are in their places.

use std::sync::Arc;
use std::time::Duration;

use base::env::TaskClass;
use fs::reserve::Reserve;
use fs::space::{Level, Space};
use tracing::{error, info, warn};

use crate::server::RegionServer;

/// The pause between two checks of whether a poll is due.
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// The pause between two polls where little was written.
const POLL_PERIOD: Duration = Duration::from_millis(500);
/// A disk that answers no call for so long is taken for lost.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The pause between two attempts to free room.
const RELIEF_PERIOD: Duration = Duration::from_secs(5);
/// Memstores of fewer bytes are not flushed to free room: their logs are hardly longer.
const RELIEF_BYTES_MIN: u64 = 1 << 20;

/// The disk that a server writes to.
#[derive(Clone, Default)]
pub struct Disk {
    /// What is known of its space.
    pub space: Arc<Space>,
    /// What is kept of it for logs and deletes.
    pub reserve: Option<Arc<Reserve>>,
    /// The file by which one process holds the directory.
    pub lock: Option<fs::FilePath>,
    /// What an operator should know of it, found at start.
    pub warnings: Vec<String>,
}

/// What the watch remembers from poll to poll.
#[derive(Default)]
struct Watch {
    polled_at: Duration,
    relieved_at: Option<Duration>,
    level: Option<Level>,
}

impl RegionServer {
    /// Polls the disk from here on.
    pub(crate) fn watch_disk(self: &Arc<Self>) {
        let (watcher, clock) = (Arc::downgrade(self), self.env().clock.clone());
        self.env().spawn(TaskClass::Service, async move {
            let mut watch = Watch::default();
            while let Some(server) = watcher.upgrade() {
                server.check_disk(&mut watch).await;
                drop(server);
                clock.sleep(CHECK_PERIOD).await;
            }
        });
    }

    async fn check_disk(&self, watch: &mut Watch) {
        let (now, space) = (self.env().clock.monotonic(), &self.disk().space);
        let is_first = watch.level.is_none();
        if !is_first && now < watch.polled_at + POLL_PERIOD && !space.is_stale() {
            return;
        }
        watch.polled_at = now;
        let polled = self.env().timeout(ANSWER_WITHIN, self.poll_disk()).await;
        let no_answer = || Err(format!("the disk does not answer within {} s", ANSWER_WITHIN.as_secs()));
        space.set_lost(polled.unwrap_or_else(no_answer).err());
        self.report_level(watch, space.level());
        match space.level() {
            Level::Refusing if watch.relieved_at.is_none_or(|at| now >= at + RELIEF_PERIOD) => {
                watch.relieved_at = Some(now);
                self.relieve_disk().await;
            }
            Level::Enough | Level::Low => self.refill_reserve().await,
            Level::Refusing | Level::Lost => {}
        }
    }

    /// Polls the disk once; why it is lost, if it is.
    pub(crate) async fn poll_disk(&self) -> Result<(), String> {
        let fs = self.fs();
        fs.check_root().await.map_err(|error| error.to_string())?;
        let must_be_there = self.open_logs().into_iter().chain(self.disk().lock.clone());
        for path in must_be_there {
            match fs.stat(&path).await {
                Ok(Some(_)) => {}
                // A log that was replaced and archived since it was asked for.
                Ok(None) if self.disk().lock.as_ref() != Some(&path) && !self.open_logs().contains(&path) => {
                }
                Ok(None) => return Err(format!("{path} is missing")),
                Err(error) => return Err(error.to_string()),
            }
        }
        match fs.space().await {
            Ok(Some(found)) => self.disk().space.polled(found, self.owed_bytes()),
            Ok(None) => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    /// Bytes that memstores and logs will still write.
    fn owed_bytes(&self) -> u64 {
        self.memstore_bytes() + self.log_figures().queued_bytes
    }

    fn report_level(&self, watch: &mut Watch, level: Level) {
        let before = watch.level.replace(level).unwrap_or(Level::Enough);
        if before == level {
            return;
        }
        let space = &self.disk().space;
        let (free_mib, needed_mib) = (space.free_bytes() >> 20, space.needed_bytes() >> 20);
        match level {
            Level::Enough => info!(free_mib, "the disk has enough room"),
            Level::Low => warn!(free_mib, needed_mib, "the disk has little room: add some, or delete data"),
            Level::Refusing => {
                error!(
                    free_mib,
                    needed_mib, "the disk is full: writes that add data are refused until there is room"
                );
            }
            Level::Lost => {
                let reason = space.lost().unwrap_or_default();
                error!(%reason, "the data directory is lost: all writes are refused; what was acknowledged since it \
                       was lost is not on it");
            }
        }
    }

    /// Frees what can be freed: logs whose edits can be flushed.
    async fn relieve_disk(&self) {
        if self.memstore_bytes() < RELIEF_BYTES_MIN {
            return;
        }
        if let Err(error) = self.roll_logs().await {
            warn!(%error, "no new log can be begun on the full disk; the open one cannot be removed");
        }
        self.schedule().flush_for_space();
    }

    async fn refill_reserve(&self) {
        let Some(reserve) = self.disk().reserve.as_ref().filter(|reserve| reserve.is_used()) else { return };
        let spare = self.disk().space.needed_bytes() + reserve.wanted_bytes();
        if let Err(error) = reserve.refill(spare).await {
            warn!(%error, "the reserve of the disk cannot be allocated");
        }
    }

    /// What an operator should know of the disk: warnings, and what keeps the server from its work.
    pub fn disk_findings(&self) -> (Vec<String>, Vec<String>) {
        let space = &self.disk().space;
        let mib = |bytes: u64| bytes >> 20;
        let (mut warnings, mut failures) = (self.disk().warnings.clone(), Vec::new());
        match space.level() {
            Level::Enough => {}
            Level::Low => warnings.push(format!(
                "The disk has little room: {} of {} MiB are free; below {} MiB writes are refused.",
                mib(space.free_bytes()),
                mib(space.total_bytes()),
                mib(space.needed_bytes())
            )),
            Level::Refusing => warnings.push(format!(
                "The disk is full: {} of {} MiB are free, {} MiB are needed. Writes that add data are refused until \
                 there is room.",
                mib(space.free_bytes()),
                mib(space.total_bytes()),
                mib(space.needed_bytes())
            )),
            Level::Lost => failures.push(format!(
                "The data directory is lost: {}. All writes are refused.",
                space.lost().unwrap_or_default()
            )),
        }
        if self.waits_for_room() {
            warnings.push("The log waits for room on the disk: accepted writes are not acknowledged.".into());
        }
        (warnings, failures)
    }
}
