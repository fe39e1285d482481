//! The content of the logs of earlier runs. They are read once at start, and replayed region by
//! region as regions open.
//!
//! The old logs stay where they are. The new logs adopt them: they move an old log to the archive
//! when all regions with edits in it have been flushed. A crash before that replays the old log
//! again.
//!
//! A region that has been opened and closed since the start needs nothing from the old logs,
//! because all its edits are in its files ([`RecoveredLogs::mark_closed`]).
//!
//! If a log is damaged, only the regions that may have lost edits in it stay closed, until the
//! operator accepts the loss ([`OnDamage::Skip`]). The end of each log and all missing parts are
//! reported.

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

/// The option with which an operator accepts the loss of edits in a damaged log.
const SKIP_OPTION: &str = "hbase.hlog.split.skip.errors";

/// What happens to regions that may have lost edits in a damaged log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// They stay closed, and the log stays in place.
    #[default]
    Refuse,
    /// They are opened without these edits, and the log is moved below `corrupt`.
    Skip,
}

/// The logs of earlier runs.
pub struct RecoveredLogs {
    index: Arc<LogIndex>,
    on_damage: OnDamage,
    corrupt_dir: FilePath,
    // Regions created later have nothing in these logs.
    started_ms: u64,
    closed: Mutex<HashSet<String>>,
    warnings: Vec<String>,
}

/// The log directories below `root` of all servers except `own`. If only one process uses the root
/// directory, they all belong to earlier runs.
///
/// # Errors
/// File system errors.
pub async fn other_servers_log_dirs(
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

impl RecoveredLogs {
    /// Scans and checks the logs in `dirs`, to which no process writes any more. `own` is the
    /// server that starts.
    ///
    /// # Errors
    /// File system errors, and logs that are not supported. Damage is not an error here: it is
    /// returned when an affected region opens ([`Entries::check`]).
    pub async fn scan(
        fs: Arc<dyn FileSystem>,
        root: &RootDir,
        dirs: &[FilePath],
        own: &ServerName,
        on_damage: OnDamage,
    ) -> std::result::Result<RecoveredLogs, wal::Error> {
        let mut paths = Vec::new();
        for dir in dirs {
            paths.extend(wal::recovery::logs_in(&*fs, dir).await?);
        }
        sort_by_age(&mut paths);
        let index = wal::recovery::scan_past_damage(&*fs, &paths).await?;
        let mut recovered = RecoveredLogs {
            index: Arc::new(index),
            on_damage,
            corrupt_dir: root.corrupt_dir(),
            started_ms: own.start_code,
            closed: Mutex::default(),
            warnings: Vec::new(),
        };
        recovered.report();
        recovered.compare_with_records(&*fs, root).await?;
        Ok(recovered)
    }

    /// Reports where and why each log ends.
    fn report(&mut self) {
        let index = self.index.clone();
        if !index.logs().is_empty() {
            let bytes: u64 = index.regions().map(|(_, region)| region.bytes).sum();
            let (logs, regions) = (index.logs().len(), index.regions().count());
            info!(logs, regions, bytes, "read the logs of an earlier run");
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

    /// Compares the logs with the list of logs that the last run recorded.
    async fn compare_with_records(
        &mut self,
        fs: &dyn FileSystem,
        root: &RootDir,
    ) -> std::result::Result<(), wal::Error> {
        let mut lost = Vec::new();
        for record in root.log_records() {
            for recorded in wal::record::read(fs, &record).await? {
                match self.index.logs().iter().find(|log| log.path == recorded.path) {
                    // A log is recorded only after its header is durable.
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

    /// Whether `log` ends before `bytes` without damage, which is reported separately.
    fn is_shorter(&self, log: &IndexedLog, bytes: u64) -> bool {
        log.tail.end < bytes && !self.index.damages().iter().any(|damage| damage.file == log.path)
    }

    /// Warnings for the operator about damaged, shortened, and missing logs.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The old logs, as [`wal::Log::adopt`] takes them, with the fate of the damaged ones.
    pub fn old_logs(&self) -> Vec<wal::OldLog> {
        let mut logs = self.index.old_logs();
        for log in &mut logs {
            if self.index.damages().iter().any(|damage| damage.file == log.path) {
                log.action = match self.on_damage {
                    OnDamage::Refuse => wal::OldLogAction::Stay,
                    OnDamage::Skip => wal::OldLogAction::MoveTo(self.corrupt_dir.clone()),
                };
            }
        }
        logs
    }

    /// Lets the new logs adopt the old ones: `meta_log` those of `hbase:meta`, `log` all others.
    pub fn let_adopt(&self, log: &wal::Log, meta_log: &wal::Log) {
        let (meta, users) = self.old_logs().into_iter().partition(|old| is_meta_log(&old.path));
        log.adopt(users);
        meta_log.adopt(meta);
    }

    /// Makes `log` forget regions that will never be opened again because their tables were
    /// deleted. If a region has lost its directory but its table has not, its edits are retained:
    /// the directory may be restored.
    ///
    /// # Errors
    /// File system errors.
    pub async fn forget_deleted_regions(
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
                log.forget_region(encoded);
            }
        }
        Ok(())
    }

    /// Records that a region was closed with all its edits in files. If it is opened again, nothing
    /// is replayed. By then the old logs may be archived, or the region's files may come from a
    /// restored snapshot, which must not get later edits.
    pub fn mark_closed(&self, encoded: &str) {
        if self.index.region(encoded).is_some() || !self.index.damages().is_empty() {
            self.closed.lock().unwrap_or_else(PoisonError::into_inner).insert(encoded.to_owned());
        }
    }

    /// The entries of a region that the old logs have and its files lack.
    pub fn entries_of(&self, fs: Arc<dyn FileSystem>, info: &RegionInfo) -> Box<dyn Entries> {
        let encoded = info.encoded_name();
        let is_closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner).contains(&encoded);
        if is_closed {
            return Box::new(crate::replay::NoEntries);
        }
        let is_older = info.region_id < self.started_ms;
        let damages = self
            .index
            .damages()
            .iter()
            .filter(|damage| is_older && is_meta_log(&damage.file) == info.table.is_meta());
        let damages: Vec<Damage> = damages.cloned().collect();
        let closed_at = self.index.region(&encoded).map_or(0, |region| region.closed_at);
        let reader = wal::recovery::read_region(fs, self.index.clone(), &encoded);
        Box::new(OldLogEntries { reader, encoded, damages, closed_at, on_damage: self.on_damage })
    }
}

/// The entries of one region in old logs.
struct OldLogEntries {
    reader: RegionReader,
    encoded: String,
    // Damage in which it may have lost entries.
    damages: Vec<Damage>,
    closed_at: u64,
    on_damage: OnDamage,
}

impl Entries for OldLogEntries {
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

/// Sorts logs from oldest to newest, regardless of their server. The numbers in their names are
/// milliseconds.
fn sort_by_age(paths: &mut [FilePath]) {
    paths.sort_by_key(|path| wal::LogName::of(path).map(|name| name.number));
}

fn is_meta_log(path: &FilePath) -> bool {
    wal::LogName::of(path).is_some_and(|name| !name.suffix.is_empty())
}
