//! What the logs of earlier runs hold: read once at start, replayed region by region as regions open.
//!
//! The old logs stay where they are. The new logs adopt them and move them to the archive when the regions with edits in
//! them have been flushed; a crash before that replays them again.
//!
//! A region that was opened and closed since has nothing to look for there: all it had is in its files ([`Recovered::settle`]).
//!
//! A log that is damaged keeps only those regions closed that may have lost edits by it, until the operator accepts the
//! loss ([`OnDamage::Skip`]). Where replay of each log ends, and what is missing, is logged.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use base::BoxFuture;
use cell::region::{RegionInfo, ServerName};

use fs::{FilePath, FileSystem};
use layout::RootDir;
use tracing::{error, info, warn};
use wal::Ending;
use wal::recovery::{Damage, IndexedLog, LogIndex, RegionReader};

use crate::error::{Error, Result};
use crate::replay::Entries;

/// The option by which an operator accepts what a damaged log has lost.
const SKIP_OPTION: &str = "hbase.hlog.split.skip.errors";

/// What happens to regions that may have lost edits by a damaged log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// They are not opened, and the log stays.
    #[default]
    Refuse,
    /// They are opened without the edits, and the log is kept below `corrupt`.
    Skip,
}

/// The logs of earlier runs.
pub struct Recovered {
    index: Arc<LogIndex>,
    on_damage: OnDamage,
    corrupt_dir: FilePath,
    // Regions that were made later have nothing in these logs.
    started_ms: u64,
    settled: Mutex<HashSet<String>>,
    warnings: Vec<String>,
}

/// The directories of logs below `root` of all servers but `own`: all of them are of earlier runs where one process
/// holds the root directory.
///
/// # Errors
/// What the file system reports.
pub async fn log_dirs_of_others(
    fs: &dyn FileSystem,
    root: &RootDir,
    own: &ServerName,
) -> fs::Result<Vec<FilePath>> {
    let dirs = match fs.list(&root.wals_dir()).await {
        Ok(dirs) => dirs,
        Err(fs::Error::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let own_dir = root.wal_dir(own);
    let dirs = dirs.into_iter().filter(|status| status.is_dir).map(|dir| root.wals_dir().join(&dir.name));
    Ok(dirs.filter(|dir| *dir != own_dir).collect())
}

impl Recovered {
    /// Finds and checks the logs in `dirs`, which no other process writes any more; `own` is the server that starts.
    ///
    /// # Errors
    /// What the file system reports, and logs that are not supported. Damage is no error here, but of regions
    /// ([`Entries::check`]).
    pub async fn scan(
        fs: Arc<dyn FileSystem>,
        root: &RootDir,
        dirs: &[FilePath],
        own: &ServerName,
        on_damage: OnDamage,
    ) -> std::result::Result<Recovered, wal::Error> {
        let mut paths = Vec::new();
        for dir in dirs {
            paths.extend(wal::recovery::logs_in(&*fs, dir).await?);
        }
        sort_by_age(&mut paths);
        let index = wal::recovery::scan_past_damage(&*fs, &paths).await?;
        let mut recovered = Recovered {
            index: Arc::new(index),
            on_damage,
            corrupt_dir: root.corrupt_dir(),
            started_ms: own.start_code,
            settled: Mutex::default(),
            warnings: Vec::new(),
        };
        recovered.report();
        recovered.compare_with_records(&*fs, root).await?;
        Ok(recovered)
    }

    /// Logs where each log ends and why.
    fn report(&mut self) {
        let index = self.index.clone();
        if !index.logs().is_empty() {
            let bytes: u64 = index.regions().map(|(_, region)| region.bytes).sum();
            let (logs, regions) = (index.logs().len(), index.regions().count());
            info!(logs, regions, bytes, "logs of an earlier run read");
        }
        for log in index.logs() {
            let is_damaged = index.damages().iter().any(|damage| damage.file == log.path);
            match log.tail.ending {
                Ending::Torn(what) if !is_damaged => {
                    self.warnings.push(format!(
                        "Log {} ends at {} without an end mark: {what}. After a loss of power this was its last, \
                         unacknowledged group; otherwise the file was damaged, and acknowledged edits after that offset \
                         may be lost.",
                        log.path, log.tail.end
                    ));
                }
                ending => info!(path = %log.path, end = log.tail.end, ?ending, "end of a log"),
            }
        }
        for damage in index.damages() {
            self.warnings.push(match self.on_damage {
                OnDamage::Refuse => format!(
                    "{damage}. Regions that may have lost edits by it stay closed. To open them without these edits, \
                     restart once with {SKIP_OPTION}=true; the log is then kept below {}.",
                    self.corrupt_dir
                ),
                OnDamage::Skip => format!(
                    "{damage}. {SKIP_OPTION} is set: regions are opened without these edits, and the log is kept below \
                     {}.",
                    self.corrupt_dir
                ),
            });
        }
        self.warnings.iter().for_each(|warning| warn!("{warning}"));
    }

    /// Compares the logs with those that the last run recorded.
    async fn compare_with_records(
        &mut self,
        fs: &dyn FileSystem,
        root: &RootDir,
    ) -> std::result::Result<(), wal::Error> {
        let mut lost = Vec::new();
        for record in root.log_records() {
            for recorded in wal::record::read(fs, &record).await? {
                match self.index.logs().iter().find(|log| log.path == recorded.path) {
                    // Its header was durable before it was recorded.
                    Some(log) if log.tail.end == 0 => lost.push(format!(
                        "Log {} is empty or has no header, although the last run wrote it: edits that were in no \
                         file yet are lost.",
                        log.path
                    )),
                    Some(log) if self.is_shorter(log, recorded.bytes) => lost.push(format!(
                        "Log {} ends at {}, but {} bytes of it were acknowledged: the edits in the last {} bytes are \
                         lost.",
                        log.path,
                        log.tail.end,
                        recorded.bytes,
                        recorded.bytes - log.tail.end
                    )),
                    Some(_) => {}
                    None if fs.stat(&root.old_wals_dir().join(recorded.path.name())).await?.is_some() => {}
                    None if fs.stat(&self.corrupt_dir.join(recorded.path.name())).await?.is_some() => {}
                    None => lost.push(format!(
                        "Log {} is missing, although the last run still kept it with {} bytes: edits that were in no \
                         file yet are lost.",
                        recorded.path, recorded.bytes
                    )),
                }
            }
        }
        lost.iter().for_each(|what| error!("{what}"));
        self.warnings.extend(lost);
        Ok(())
    }

    /// Whether less of a log is there than `bytes`, by more than damage that is reported anyway.
    fn is_shorter(&self, log: &IndexedLog, bytes: u64) -> bool {
        log.tail.end < bytes && !self.index.damages().iter().any(|damage| damage.file == log.path)
    }

    /// What an operator should know: damaged, shortened and missing logs.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The old logs, for the one log that adopts them all.
    pub fn old_logs(&self) -> Vec<wal::OldLog> {
        let mut logs = self.index.old_logs();
        for log in &mut logs {
            if self.index.damages().iter().any(|damage| damage.file == log.path) {
                log.fate = match self.on_damage {
                    OnDamage::Refuse => wal::Fate::Stay,
                    OnDamage::Skip => wal::Fate::MoveTo(self.corrupt_dir.clone()),
                };
            }
        }
        logs
    }

    /// Hands the old logs over to the new ones, each to that of its kind.
    pub fn hand_over(&self, log: &wal::Log, meta_log: &wal::Log) {
        let (meta, users) = self.old_logs().into_iter().partition(|old| is_of_meta(&old.path));
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
    ) -> std::result::Result<(), wal::Error> {
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
        if self.index.region(encoded).is_some() || !self.index.damages().is_empty() {
            self.settled.lock().unwrap_or_else(PoisonError::into_inner).insert(encoded.to_owned());
        }
    }

    /// What one region has in the old logs, and not in its files.
    pub fn entries_of(&self, fs: Arc<dyn FileSystem>, info: &RegionInfo) -> Box<dyn Entries> {
        let encoded = info.encoded_name();
        let is_settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner).contains(&encoded);
        if is_settled {
            return Box::new(crate::replay::NoEntries);
        }
        let is_older = info.region_id < self.started_ms;
        let damages = self
            .index
            .damages()
            .iter()
            .filter(|damage| is_older && is_of_meta(&damage.file) == info.table.is_meta());
        let damages: Vec<Damage> = damages.cloned().collect();
        let closed_at = self.index.region(&encoded).map_or(0, |region| region.closed_at);
        let reader = wal::recovery::read_region(fs, self.index.clone(), &encoded);
        Box::new(Logged { reader, encoded, damages, closed_at, on_damage: self.on_damage })
    }
}

/// The entries of one region in old logs.
struct Logged {
    reader: RegionReader,
    encoded: String,
    // Those by which it may have lost some.
    damages: Vec<Damage>,
    closed_at: u64,
    on_damage: OnDamage,
}

impl Entries for Logged {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<wal::Entry>>> {
        Box::pin(self.reader.next())
    }

    fn check(&self, flushed: u64) -> Result<()> {
        for damage in &self.damages {
            let Some(loss) = damage.loss_of(&self.encoded, flushed.max(self.closed_at)) else { continue };
            match self.on_damage {
                OnDamage::Skip => {
                    error!(
                        region = %self.encoded, file = %damage.file, offset = damage.offset,
                        "edits of a region may be lost with a damaged log: {loss}"
                    );
                }
                OnDamage::Refuse => {
                    let what = format!(
                        "{}; edits of this region with {loss} may be lost. To open it without them, restart with \
                         {SKIP_OPTION}=true",
                        damage.what
                    );
                    return Err(Error::corrupt(&damage.file, damage.offset, what));
                }
            }
        }
        Ok(())
    }
}

/// Older logs first, whichever server wrote them: their numbers count milliseconds.
fn sort_by_age(paths: &mut [FilePath]) {
    paths.sort_by_key(|path| wal::LogName::of(path).map(|name| name.number));
}

fn is_of_meta(path: &FilePath) -> bool {
    wal::LogName::of(path).is_some_and(|name| !name.suffix.is_empty())
}
