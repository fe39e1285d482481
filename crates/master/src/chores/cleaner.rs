//! The cleaner: removes archived store files to which no snapshot, link or reference refers, old
//! logs, and abandoned staging directories of bulk loads.
//!
//! A file is removed after this master has seen it at its path for the retention time. (The
//! modification time of a file shows when it was written, not when it was archived.) So a restart
//! can only prolong the retention. While a procedure takes or uses a snapshot, nothing is removed
//! from the archive, and a run in which one has ended does not continue there. A log that has a
//! holder ([`wal::LogHolders`]) is not removed. While the disk is full, the retention time is zero.
//! Directories are not removed, because another task may be adding a file. Before each removal, the
//! master checks that it was not replaced: what it has read may be outdated if it was frozen.
//!
//! Source: HBase `HFileCleaner`, `LogCleaner`, `TimeToLiveHFileCleaner`.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use fs::FilePath;
use layout::RootDir;
use tracing::{info, warn};

use super::ChoreSwitch;
use crate::master::Master;
use crate::procedure::Work;

/// Time after its last change at which the staging directory of a bulk load is removed. No load
/// takes that long between two calls.
const STAGING_TTL: Duration = Duration::from_secs(24 * 3600);

/// How many failures to remove a file are logged in one run.
const FAILURES_LOGGED_MAX: usize = 10;

/// The state of the cleaner.
#[derive(Debug, Default)]
pub struct Cleaner {
    /// Whether it may run, and whether it is running.
    pub switch: ChoreSwitch,
    // When each file was first seen at its path, on the monotonic clock.
    seen: Mutex<HashMap<FilePath, Duration>>,
}

impl Cleaner {
    /// For each of `paths`, which are all files of the directory tree `below`: whether it has been
    /// there for `ttl`. Forgets files of the tree that no longer exist.
    fn old(&self, below: &FilePath, paths: &[FilePath], now: Duration, ttl: Duration) -> Vec<bool> {
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        let existing: std::collections::HashSet<&FilePath> = paths.iter().collect();
        seen.retain(|path, _| !is_below(path, below) || existing.contains(path));
        let mut is_old =
            |path: &FilePath| now.saturating_sub(*seen.entry(path.clone()).or_insert(now)) >= ttl;
        paths.iter().map(&mut is_old).collect()
    }
}

fn is_below(path: &FilePath, dir: &FilePath) -> bool {
    path.as_str().strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// What a run of the cleaner has done. A file that cannot be removed does not end the run, because
/// it may fail in each run.
#[derive(Default)]
struct Outcome {
    removed: usize,
    failures: usize,
}

impl Outcome {
    fn record_removed(&mut self) {
        self.removed += 1;
    }

    fn record_failure(&mut self, path: &FilePath, error: &layout::Error) {
        self.failures += 1;
        // A directory of another user may have thousands of files.
        if self.failures <= FAILURES_LOGGED_MAX {
            warn!(%path, %error, "cannot remove an unneeded file or directory; retrying in the next period");
        }
    }

    /// Records that a part of the run has ended. If it has failed, its other files stay.
    fn record_part(&mut self, part: &str, ended: Result<(), layout::Error>) {
        if let Err(error) = ended {
            self.failures += 1;
            warn!(part, %error, "cleaner failed; it resumes in the next period");
        }
    }
}

/// Cleans the archive, the old logs and the staging directories once. Returns whether it completed.
pub(crate) async fn run(master: &Master) -> bool {
    let Some(_running) = master.cleaner().switch.begin() else { return false };
    let tables = &master.context().tables;
    let (user_root, master_root) = (tables.root().clone(), tables.root().master_data());
    let mut outcome = Outcome::default();
    for root in [&user_root, &master_root] {
        let ended = clean_archive(master, root, &mut outcome).await;
        outcome.record_part("archive", ended);
        let ended = clean_logs(master, root, &mut outcome).await;
        outcome.record_part("old logs", ended);
    }
    let ended = clean_staging(master, &user_root, &mut outcome).await;
    outcome.record_part("staging directories", ended);
    let Outcome { removed, failures } = outcome;
    if removed > 0 {
        info!(removed, "removed unneeded files");
    }
    if failures > FAILURES_LOGGED_MAX {
        warn!(failures, "cannot remove all unneeded files; retrying in the next period");
    }
    failures == 0
}

/// Fails without removing a file if a snapshot is unreadable, because it may need any file.
async fn clean_archive(master: &Master, root: &RootDir, outcome: &mut Outcome) -> Result<(), layout::Error> {
    let fs = master.context().tables.fs();
    let files = root.archived_files(fs).await?;
    let paths: Vec<FilePath> = files.iter().map(|file| file.path.clone()).collect();
    let now = master.context().env.clock.monotonic();
    let is_old =
        master.cleaner().old(&root.archive_dir(), &paths, now, ttl(master, master.chores().file_ttl));
    if uses_snapshots(master) || !is_old.contains(&true) {
        return Ok(());
    }
    let needed = root.needed_files(fs).await?;
    for (file, _) in files.iter().zip(is_old).filter(|(_, is_old)| *is_old) {
        if needed.contains(file) {
            continue;
        }
        let is_linked = root.is_linked(fs, &file.path).await;
        // A procedure that has started since may be about to link to the file. The snapshot of one
        // that has ended since may need it: `needed` may lack the snapshot, and the files of the
        // table may have been archived before they were listed.
        if master.procedures().has_run_since(now, uses_snapshot) {
            return Ok(());
        }
        if !is_owner(master).await {
            return Ok(());
        }
        let removed = match is_linked {
            Ok(true) => continue,
            Ok(false) => root.remove_archived(fs, file).await,
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => outcome.record_removed(),
            Err(error) => outcome.record_failure(&file.path, &error),
        }
    }
    Ok(())
}

/// Whether no other master has taken over, which may have begun to use files that this one takes
/// for unneeded.
async fn is_owner(master: &Master) -> bool {
    let checked = master.context().check_owned().await;
    if let Err(error) = &checked {
        warn!(%error, "the cleaner removes nothing more in this run");
    }
    checked.is_ok()
}

/// The retention time: `configured`, or zero while the disk is full.
fn ttl(master: &Master, configured: Duration) -> Duration {
    if master.chores().is_disk_full() { Duration::ZERO } else { configured }
}

/// Whether a procedure is taking or using a snapshot.
pub(super) fn uses_snapshots(master: &Master) -> bool {
    master.procedures().is_running(uses_snapshot)
}

fn uses_snapshot(work: &Work) -> bool {
    work.snapshot().is_some()
}

/// Removes the staging directories of bulk loads whose clients did not remove them. HBase keeps
/// them.
async fn clean_staging(master: &Master, root: &RootDir, outcome: &mut Outcome) -> Result<(), layout::Error> {
    let context = master.context();
    let fs = context.tables.fs();
    let before_ms = context.env.clock.now_ms().saturating_sub(STAGING_TTL.as_millis() as u64);
    for dir in root.list_staging(fs).await? {
        if !is_owner(master).await {
            return Ok(());
        }
        match root.remove_old_staging(fs, &dir, before_ms).await {
            Ok(true) => outcome.record_removed(),
            Ok(false) => {}
            Err(error) => outcome.record_failure(&dir, &error),
        }
    }
    Ok(())
}

async fn clean_logs(master: &Master, root: &RootDir, outcome: &mut Outcome) -> Result<(), layout::Error> {
    let fs = master.context().tables.fs();
    let logs = root.old_logs(fs).await?;
    let now = master.context().env.clock.monotonic();
    let is_old = master.cleaner().old(&root.old_wals_dir(), &logs, now, ttl(master, master.chores().log_ttl));
    let holders = &master.chores().log_holders;
    for (log, _) in logs.iter().zip(is_old).filter(|(_, is_old)| *is_old) {
        if holders.holders_of(log.name()).is_empty() {
            if !is_owner(master).await {
                return Ok(());
            }
            assert!(log.parent() == root.old_wals_dir(), "only obsolete logs are removed");
            match fs.delete(log).await {
                Ok(()) => outcome.record_removed(),
                Err(error) => outcome.record_failure(log, &error.into()),
            }
        }
    }
    Ok(())
}
