//! Replay of the logs of earlier runs. The logs are read once at start. A region replays its edits
//! when it is opened.
//!
//! The old logs stay in place until all regions with edits in them have been flushed. Then the log
//! of this run moves the old logs to the archive ([`wal::Log::adopt`]). After a crash, the next
//! start replays the logs that are still in place.
//!
//! A region that was closed since the start needs nothing from the old logs: all its edits are in
//! store files ([`RecoveredLogs::mark_closed`]).
//!
//! If a log is damaged, only the regions that may have lost edits in it stay closed, until the
//! operator accepts the loss ([`OnDamage::Skip`]). That option is for user data: the master's own
//! region never opens without lost edits ([`OnDamage::RefuseMasterStore`]).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use base::BoxFuture;
use base::env::Clock;
use cell::region::{RegionInfo, ServerName};

use fs::{FilePath, FileSystem};
use layout::RootDir;
use tracing::{error, info, warn};
use wal::recovery::{Damage, IndexedLog, LogIndex, RegionReader};
use wal::{Ending, LogKind};

use crate::error::{Error, Result};
use crate::region::log_close_of_unopened;
use crate::replay::Entries;

/// The option with which an operator accepts the loss of edits in a damaged log.
const SKIP_OPTION: &str = "hbase.hlog.split.skip.errors";

/// What happens to regions that may have lost edits in a damaged log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// They stay closed, and the log stays in place.
    #[default]
    Refuse,
    /// The same for `master:store`. No option skips its edits: without them, procedures would be
    /// forgotten, and regions opened without the logs that they need. `grampus repair master`, or a
    /// command of HDFS, replaces the whole region.
    RefuseMasterStore,
    /// They are opened without the lost edits, and the log is moved to the directory `corrupt`. A
    /// log that cannot be read counts as damaged. Otherwise it is read again when a region opens.
    Skip,
}

/// The logs of earlier runs.
pub struct RecoveredLogs {
    index: Arc<LogIndex>,
    on_damage: OnDamage,
    corrupt_dir: FilePath,
    // Regions that were created later have no edits in these logs.
    until_ms: u64,
    // Encoded names of the regions that were closed since the start.
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
    /// Scans and checks the logs in `dirs`, to which no process writes any more. `records` are
    /// files: in each, a server listed its logs. Regions that were created after `until_ms`
    /// (milliseconds since the Unix epoch) have no edits in these logs.
    ///
    /// # Errors
    /// File system errors, and logs of an unsupported format. Damage is reported later, when an
    /// affected region opens ([`Entries::check`]).
    pub async fn scan(
        fs: Arc<dyn FileSystem>,
        root: &RootDir,
        (dirs, records): (&[FilePath], &[FilePath]),
        until_ms: u64,
        on_damage: OnDamage,
    ) -> std::result::Result<RecoveredLogs, wal::Error> {
        let paths = logs_in(&*fs, dirs).await?;
        RecoveredLogs::scan_paths(fs, root, (paths, records), until_ms, on_damage).await
    }

    /// The same for those logs in `dirs` that have the edits of `hbase:meta`, or for all others.
    /// `record` lists only logs of this kind.
    ///
    /// # Errors
    /// As for [`RecoveredLogs::scan`].
    pub async fn scan_kind(
        fs: Arc<dyn FileSystem>,
        root: &RootDir,
        kind: LogKind,
        (dirs, record): (&[FilePath], &FilePath),
        until_ms: u64,
        on_damage: OnDamage,
    ) -> std::result::Result<RecoveredLogs, wal::Error> {
        let mut paths = logs_in(&*fs, dirs).await?;
        paths.retain(|path| LogKind::of(path.name()) == kind);
        let records = std::slice::from_ref(record);
        RecoveredLogs::scan_paths(fs, root, (paths, records), until_ms, on_damage).await
    }

    async fn scan_paths(
        fs: Arc<dyn FileSystem>,
        root: &RootDir,
        (mut paths, records): (Vec<FilePath>, &[FilePath]),
        until_ms: u64,
        on_damage: OnDamage,
    ) -> std::result::Result<RecoveredLogs, wal::Error> {
        sort_by_age(&mut paths);
        let index = match on_damage {
            OnDamage::Refuse | OnDamage::RefuseMasterStore => {
                wal::recovery::scan_past_damage(&*fs, &paths).await?
            }
            OnDamage::Skip => wal::recovery::scan_past_failed_reads(&*fs, &paths).await?,
        };
        let mut recovered = RecoveredLogs {
            index: Arc::new(index),
            on_damage,
            corrupt_dir: root.corrupt_dir(),
            until_ms,
            closed: Mutex::default(),
            warnings: Vec::new(),
        };
        recovered.report();
        recovered.compare_with_records(&*fs, root, records).await?;
        Ok(recovered)
    }

    /// Reports where each log ends, and adds warnings for damage and for logs without an end mark.
    fn report(&mut self) {
        let index = self.index.clone();
        if !index.logs().is_empty() {
            let bytes: u64 = index.regions().map(|(_, region)| region.bytes).sum();
            let (logs, regions) = (index.logs().len(), index.regions().count());
            info!(logs, regions, bytes, "read the logs of an earlier run");
        }
        for log in index.logs() {
            let is_damaged = index.damaged_parts().iter().any(|damage| damage.file == log.path);
            match log.tail.ending {
                Ending::Torn(what) if !is_damaged => {
                    self.warnings.push(format!(
                        "Log {} ends at offset {} without an end mark: {what}. If power was lost, only unacknowledged \
                         edits are missing. If not, the file is damaged, and acknowledged edits after this offset may \
                         be lost.",
                        log.path, log.tail.end
                    ));
                }
                ending => info!(path = %log.path, end = log.tail.end, ?ending, "end of a log"),
            }
        }
        for damage in index.damaged_parts() {
            self.warnings.push(match self.on_damage {
                OnDamage::Refuse => format!(
                    "{damage}. Regions that may have lost edits in it stay closed. To open them without these edits, \
                     restart once with {SKIP_OPTION}=true; the log is then moved to the directory {}.",
                    self.corrupt_dir
                ),
                OnDamage::RefuseMasterStore => format!(
                    "{damage}. master:store stays closed if it may have lost edits in it. Restore the log from a copy, \
                     or replace master:store with an empty one."
                ),
                OnDamage::Skip => format!(
                    "{damage}. {SKIP_OPTION} is set: regions are opened without the lost edits, and the log is moved \
                     to the directory {}.",
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
        records: &[FilePath],
    ) -> std::result::Result<(), wal::Error> {
        let mut lost = Vec::new();
        for record in records {
            for recorded in wal::record::read(fs, record).await? {
                // Only the names are compared: they are unique, and the directory of a dead server
                // was renamed.
                match self.index.logs().iter().find(|log| log.path.name() == recorded.path.name()) {
                    // A log is recorded only after its header is durable.
                    Some(log) if log.tail.end == 0 => lost.push(format!(
                        "Log {} is empty or has no header, although the last run wrote to it: edits that were not in \
                         store files yet are lost.",
                        log.path
                    )),
                    Some(log) if self.is_shorter(log, recorded.bytes) => lost.push(format!(
                        "Log {} ends at offset {}, but {} bytes were acknowledged: the edits in the last {} of these \
                         bytes are lost.",
                        log.path,
                        log.tail.end,
                        recorded.bytes,
                        recorded.bytes - log.tail.end
                    )),
                    Some(_) => {}
                    None if fs.stat(&root.old_wals_dir().join(recorded.path.name())).await?.is_some() => {}
                    None if fs.stat(&self.corrupt_dir.join(recorded.path.name())).await?.is_some() => {}
                    None => lost.push(format!(
                        "Log {} of {} bytes is missing, although the last run still needed it: edits that were not in \
                         store files yet are lost.",
                        recorded.path, recorded.bytes
                    )),
                }
            }
        }
        lost.iter().for_each(|what| error!("{what}"));
        self.warnings.extend(lost);
        Ok(())
    }

    /// Whether `log` has fewer than `bytes` bytes. False for a damaged log, whose damage is
    /// reported separately.
    fn is_shorter(&self, log: &IndexedLog, bytes: u64) -> bool {
        log.tail.end < bytes && !self.index.damaged_parts().iter().any(|damage| damage.file == log.path)
    }

    /// Warnings for the operator about damaged, shortened, and missing logs.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The old logs, for [`wal::Log::adopt`]. What happens to a damaged log depends on
    /// [`OnDamage`].
    pub fn old_logs(&self) -> Vec<wal::OldLog> {
        let mut logs = self.index.old_logs();
        for log in &mut logs {
            if self.index.damaged_parts().iter().any(|damage| damage.file == log.path) {
                log.action = match self.on_damage {
                    OnDamage::Refuse | OnDamage::RefuseMasterStore => wal::OldLogAction::Stay,
                    OnDamage::Skip => wal::OldLogAction::MoveTo(self.corrupt_dir.clone()),
                };
            }
        }
        logs
    }

    /// Passes the old logs of `hbase:meta` to `meta_log` and all other old logs to `log`. The
    /// receiving log archives them when they are no longer needed.
    pub fn pass_old_logs_to(&self, log: &wal::Log, meta_log: &wal::Log) {
        let (meta, users) = self.old_logs().into_iter().partition(|old| is_meta_log(&old.path));
        log.adopt(users);
        meta_log.adopt(meta);
    }

    /// Makes `log` forget the regions of deleted tables, which are never opened again. A region of
    /// an existing table is not forgotten, even if the region's directory is missing: the directory
    /// may be restored later.
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

    /// Whether the logs may have edits of a region: they have some, or a part cannot be read.
    pub fn may_have_edits_of(&self, encoded: &str) -> bool {
        self.index.region(encoded).is_some() || !self.index.damaged_parts().is_empty()
    }

    /// Records that a region was closed, with all its edits in store files. Nothing is replayed if
    /// the region is opened again. By then, the old logs may be archived. Or a snapshot may have
    /// been restored: the region must not receive edits that are newer than it.
    pub fn mark_closed(&self, encoded: &str) {
        if self.may_have_edits_of(encoded) {
            self.closed.lock().unwrap_or_else(PoisonError::into_inner).insert(encoded.to_owned());
        }
    }

    /// Discards the edits that the old logs have of a region, because its contents were replaced
    /// while it was not open. `log` is the current log of its server. Does nothing if the region
    /// was closed since the start. Returns when this is durable.
    ///
    /// # Errors
    /// The error of the log.
    pub async fn discard(&self, log: &wal::Log, info: &RegionInfo, clock: &dyn Clock) -> Result<()> {
        let encoded = info.encoded_name();
        let known = self.index.region(&encoded);
        if self.is_closed(&encoded) || (known.is_none() && self.index.damaged_parts().is_empty()) {
            return Ok(());
        }
        let newest = known.map_or(0, |region| region.highest_seq_id);
        log_close_of_unopened(log, info, newest, clock).await?;
        self.mark_closed(&encoded);
        log.forget_region(&encoded);
        Ok(())
    }

    fn is_closed(&self, encoded: &str) -> bool {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).contains(encoded)
    }

    /// The entries of a region in the old logs. There are none if the region was closed since the
    /// start.
    pub fn entries_of(&self, fs: Arc<dyn FileSystem>, info: &RegionInfo) -> Box<dyn Entries> {
        let encoded = info.encoded_name();
        if self.is_closed(&encoded) {
            return Box::new(crate::replay::NoEntries);
        }
        let existed_at_start = info.region_id < self.until_ms;
        let damages = self
            .index
            .damaged_parts()
            .iter()
            .filter(|damage| existed_at_start && is_meta_log(&damage.file) == info.table.is_meta());
        let damages: Vec<Damage> = damages.cloned().collect();
        let closed_seq_id = self.index.region(&encoded).map_or(0, |region| region.closed_at);
        let reader = wal::recovery::read_region(fs, self.index.clone(), &encoded);
        Box::new(OldLogEntries { reader, encoded, damages, closed_seq_id, on_damage: self.on_damage })
    }
}

/// The entries of one region from several sources, one source after the other: the logs of dead
/// servers, and `recovered.edits`.
pub struct JoinedEntries {
    parts: Vec<Box<dyn Entries>>,
    // Index of the part being read.
    current: usize,
}

impl JoinedEntries {
    /// Joins the entries of several sources, those with the lowest sequence ids first. So memory
    /// can be flushed during the replay.
    pub fn new(mut parts: Vec<Box<dyn Entries>>) -> JoinedEntries {
        parts.sort_by_key(|part| part.lowest_to_come());
        JoinedEntries { parts, current: 0 }
    }
}

impl Entries for JoinedEntries {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<wal::Entry>>> {
        Box::pin(async move {
            while let Some(part) = self.parts.get_mut(self.current) {
                match part.next().await? {
                    Some(entry) => return Ok(Some(entry)),
                    None => self.current += 1,
                }
            }
            Ok(None)
        })
    }

    fn lowest_to_come(&self) -> Option<u64> {
        self.parts.get(self.current..)?.iter().filter_map(|part| part.lowest_to_come()).min()
    }

    fn check(&self, flushed: u64) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.check(flushed))
    }
}

/// The entries of one region in old logs.
struct OldLogEntries {
    reader: RegionReader,
    encoded: String,
    // Damage in which the region may have lost entries.
    damages: Vec<Damage>,
    // Sequence id of the last close in the logs. All edits up to it are in store files.
    closed_seq_id: u64,
    on_damage: OnDamage,
}

impl Entries for OldLogEntries {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<wal::Entry>>> {
        Box::pin(self.reader.next())
    }

    fn lowest_to_come(&self) -> Option<u64> {
        self.reader.lowest_in_later_logs()
    }

    fn check(&self, flushed: u64) -> Result<()> {
        for damage in &self.damages {
            let Some(loss) = damage.loss_of(&self.encoded, flushed.max(self.closed_seq_id)) else { continue };
            let what = format!("{}; edits of this region with {loss} may be lost", damage.what);
            let what = match self.on_damage {
                OnDamage::Skip => {
                    error!(
                        region = %self.encoded, file = %damage.file, offset = damage.offset,
                        "edits of a region may be lost in a damaged log: {loss}"
                    );
                    continue;
                }
                OnDamage::Refuse => {
                    format!("{what}. To open it without them, restart with {SKIP_OPTION}=true")
                }
                OnDamage::RefuseMasterStore => what,
            };
            return Err(Error::corrupt(&damage.file, damage.offset, what));
        }
        Ok(())
    }
}

/// The logs in several directories.
async fn logs_in(fs: &dyn FileSystem, dirs: &[FilePath]) -> std::result::Result<Vec<FilePath>, wal::Error> {
    let mut paths = Vec::new();
    for dir in dirs {
        paths.extend(wal::recovery::logs_in(fs, dir).await?);
    }
    Ok(paths)
}

/// Sorts logs from oldest to newest, regardless of their server. The number in the name of a log is
/// its creation time in milliseconds.
fn sort_by_age(paths: &mut [FilePath]) {
    paths.sort_by_key(|path| wal::LogName::of(path).map(|name| name.number));
}

fn is_meta_log(path: &FilePath) -> bool {
    LogKind::of(path.name()) == LogKind::Meta
}
