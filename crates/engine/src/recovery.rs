//! What the logs of earlier runs hold: read once at start, replayed region by region as regions open.
//!
//! The old logs stay where they are. The new logs adopt them and move them to the archive when the regions with edits in
//! them have been flushed; a crash before that replays them again.
//!
//! A region that was opened and closed since has nothing to look for there: all it had is in its files ([`Recovered::settle`]).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use base::BoxFuture;
use cell::region::ServerName;

use fs::{FilePath, FileSystem};
use layout::RootDir;
use tracing::info;
use wal::recovery::{LogIndex, RegionReader};

use crate::replay::{Entries, NoEntries};

/// The logs of earlier runs.
pub struct Recovered {
    index: Arc<LogIndex>,
    settled: Mutex<HashSet<String>>,
}

impl Recovered {
    /// Finds and checks the logs of all servers but `own`.
    ///
    /// # Errors
    /// A log that is damaged below what was durable, or what the file system said.
    pub async fn scan(
        fs: Arc<dyn FileSystem>,
        root: &RootDir,
        own: &ServerName,
    ) -> Result<Recovered, wal::Error> {
        let mut paths = Vec::new();
        let own_dir = root.wal_dir(own);
        let dirs = match fs.list(&root.wals_dir()).await {
            Ok(dirs) => dirs,
            Err(fs::Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        for dir in dirs.into_iter().filter(|status| status.is_dir) {
            let dir = root.wals_dir().join(&dir.name);
            if dir != own_dir {
                paths.extend(wal::recovery::logs_in(&*fs, &dir).await?);
            }
        }
        sort_by_age(&mut paths);
        let index = wal::recovery::scan(&*fs, &paths).await?;
        if !paths.is_empty() {
            let bytes: u64 = index.regions().map(|(_, region)| region.bytes).sum();
            info!(
                logs = paths.len(),
                regions = index.regions().count(),
                bytes,
                "logs of an earlier run read"
            );
        }
        Ok(Recovered { index: Arc::new(index), settled: Mutex::default() })
    }

    /// The old logs, for the one log that adopts them all.
    pub fn old_logs(&self) -> Vec<wal::OldLog> {
        self.index.old_logs()
    }

    /// Hands the old logs over to the new ones, each to that of its kind.
    pub fn hand_over(&self, log: &wal::Log, meta_log: &wal::Log) {
        let (meta, users) = self.index.old_logs().into_iter().partition(|old| is_of_meta(&old.path));
        log.adopt(users);
        meta_log.adopt(meta);
    }

    /// Tells the log of regions that will not be opened again, because their tables were deleted. The log keeps the edits of a
    /// region that lost its directory while its table has one: it may be restored.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn forget_gone_regions(
        &self,
        fs: &dyn FileSystem,
        root: &RootDir,
        log: &wal::Log,
    ) -> Result<(), wal::Error> {
        for (encoded, region) in self.index.regions() {
            let table = std::str::from_utf8(&region.table).ok();
            let Some(table) = table.and_then(|text| cell::schema::TableName::parse(text).ok()) else {
                continue;
            };
            if !table.is_meta() && fs.stat(&root.table_dir(&table)).await?.is_none() {
                log.forget(encoded);
            }
        }
        Ok(())
    }

    /// Takes note that a region was closed, with all it has in files. Opened once more it replays nothing: the old logs
    /// may be in the archive by then, and its files those of a snapshot, without what was written after that.
    pub fn settle(&self, encoded: &str) {
        if self.index.region(encoded).is_some() {
            self.settled.lock().unwrap_or_else(PoisonError::into_inner).insert(encoded.to_owned());
        }
    }

    /// What one region has in the old logs, and not in its files.
    pub fn entries_of(&self, fs: Arc<dyn FileSystem>, encoded: &str) -> Box<dyn Entries> {
        let is_settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner).contains(encoded);
        if is_settled || self.index.region(encoded).is_none() {
            return Box::new(NoEntries);
        }
        Box::new(Logged(wal::recovery::read_region(fs, self.index.clone(), encoded)))
    }
}

/// The entries of one region in old logs.
struct Logged(RegionReader);

impl Entries for Logged {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<wal::Entry>>> {
        Box::pin(self.0.next())
    }
}

/// Older logs first, whichever server wrote them: their numbers count milliseconds.
fn sort_by_age(paths: &mut [FilePath]) {
    paths.sort_by_key(|path| wal::LogName::of(path).map(|name| name.number));
}

fn is_of_meta(path: &FilePath) -> bool {
    wal::LogName::of(path).is_some_and(|name| !name.suffix.is_empty())
}
