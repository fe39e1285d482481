//! The cleaner: removes archived store files that no snapshot, no link and no reference leads to, and old logs.
//!
//! A file goes when this master has seen it in its place for as long as it is to be kept: times of files say when they
//! were written, not when they came there. So a restart keeps files longer, never shorter. While a snapshot is taken or
//! used nothing is removed from the archive. While the disk is full, no file is kept for a time only. Directories stay: one could be removed while a file is being put into it.
//!
//! Source: HBase `HFileCleaner`, `LogCleaner`, `TimeToLiveHFileCleaner`.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use fs::FilePath;
use layout::RootDir;
use tracing::{info, warn};

use super::Turn;
use crate::master::Master;
use crate::procedure::executor::Progress;

/// The cleaner's state.
#[derive(Debug, Default)]
pub struct Cleaner {
    /// Whether it may run, and runs.
    pub turn: Turn,
    // When each file was seen in its place first, by the monotonic clock.
    seen: Mutex<HashMap<FilePath, Duration>>,
}

impl Cleaner {
    /// Those of the files of one directory tree that have been there for `ttl`. Forgets files of it that are gone.
    fn old(&self, below: &FilePath, paths: &[FilePath], now: Duration, ttl: Duration) -> Vec<bool> {
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        let there: std::collections::HashSet<&FilePath> = paths.iter().collect();
        seen.retain(|path, _| !is_below(path, below) || there.contains(path));
        let mut is_old =
            |path: &FilePath| now.saturating_sub(*seen.entry(path.clone()).or_insert(now)) >= ttl;
        paths.iter().map(&mut is_old).collect()
    }
}

fn is_below(path: &FilePath, dir: &FilePath) -> bool {
    path.as_str().strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// Looks through the archive and the old logs once; whether it ran to its end.
pub(crate) async fn run(master: &Master) -> bool {
    let Some(_running) = master.cleaner().turn.begin() else { return false };
    let tables = &master.context().tables;
    let (of_users, of_master) = (tables.root().clone(), tables.root().master_data());
    let mut removed = 0;
    for root in [&of_users, &of_master] {
        let done = async {
            removed += clean_archive(master, root).await?;
            removed += clean_logs(master, root).await?;
            Ok::<(), layout::Error>(())
        };
        if let Err(error) = done.await {
            warn!(%error, "the cleaner stopped; it goes on at its next turn");
            return false;
        }
    }
    if removed > 0 {
        info!(removed, "files that nobody needs were removed");
    }
    true
}

async fn clean_archive(master: &Master, root: &RootDir) -> Result<usize, layout::Error> {
    let fs = master.context().tables.fs();
    let files = root.archived_files(fs).await?;
    let paths: Vec<FilePath> = files.iter().map(|file| file.path.clone()).collect();
    let now = master.context().env.clock.monotonic();
    let is_old =
        master.cleaner().old(&root.archive_dir(), &paths, now, ttl(master, master.chores().file_ttl));
    if uses_snapshots(master) || !is_old.contains(&true) {
        return Ok(0);
    }
    let needed = root.needed_files(fs).await?;
    let mut removed = 0;
    for (file, _) in files.iter().zip(is_old).filter(|(_, is_old)| *is_old) {
        if needed.has(file) || root.is_linked(fs, &file.path).await? {
            continue;
        }
        // One that began meanwhile may be about to link to the file.
        if uses_snapshots(master) {
            return Ok(removed);
        }
        root.remove_archived(fs, file).await?;
        removed += 1;
    }
    Ok(removed)
}

/// How long files are kept, `configured` if there is room.
fn ttl(master: &Master, configured: Duration) -> Duration {
    if master.chores().is_disk_full() { Duration::ZERO } else { configured }
}

/// Whether a snapshot is being taken or made use of.
fn uses_snapshots(master: &Master) -> bool {
    let known = master.procedures().list();
    known.iter().any(|(_, status)| status.progress == Progress::Running && status.work.snapshot().is_some())
}

async fn clean_logs(master: &Master, root: &RootDir) -> Result<usize, layout::Error> {
    let fs = master.context().tables.fs();
    let logs = root.old_logs(fs).await?;
    let now = master.context().env.clock.monotonic();
    let is_old = master.cleaner().old(&root.old_wals_dir(), &logs, now, ttl(master, master.chores().log_ttl));
    let mut removed = 0;
    for (log, _) in logs.iter().zip(is_old).filter(|(_, is_old)| *is_old) {
        fs.delete(log).await?;
        removed += 1;
    }
    Ok(removed)
}
