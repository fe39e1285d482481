//! The logs of dead servers. A region that was open on a dead server replays its edits from them
//! when it opens here.
//!
//! The master fences these logs and names their servers in its request to open the region. The logs
//! of a server are scanned once, for all regions that open here. They stay in place until the
//! master moves them to the archive: when each region has written its edits to store files.
//!
//! The logs of `hbase:meta` are scanned separately: `hbase:meta` opens before the other logs are
//! fenced, and does not wait until they are read. A server writes no edit of `hbase:meta` to other
//! logs, and no other edit to these.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::env::Env;
use cell::region::{RegionInfo, ServerName};
use engine::Region;
use engine::recovery::{JoinedEntries, OnDamage, RecoveredLogs};
use engine::replay::Entries;
use fs::FileSystem;
use layout::RootDir;
use tokio::sync::OnceCell;
use wal::LogKind;

type ScannedLogs = Arc<OnceCell<RecoveredLogs>>;

/// The logs of dead servers, and the regions that still need them.
pub(crate) struct DeadServers {
    env: Env,
    fs: Arc<dyn FileSystem>,
    root: RootDir,
    on_damage: OnDamage,
    scanned: Mutex<HashMap<(ServerName, LogKind), ScannedLogs>>,
    // Encoded names of the regions whose replayed edits may not be in files yet.
    unflushed: Mutex<HashSet<String>>,
}

impl DeadServers {
    pub(crate) fn new(env: Env, fs: Arc<dyn FileSystem>, root: RootDir, on_damage: OnDamage) -> DeadServers {
        DeadServers { env, fs, root, on_damage, scanned: Mutex::default(), unflushed: Mutex::default() }
    }

    /// The entries of a region in the logs of `servers`.
    ///
    /// # Errors
    /// File system errors, and logs of an unsupported format.
    pub(crate) async fn entries_of(
        &self,
        info: &RegionInfo,
        servers: &[ServerName],
    ) -> Result<Vec<Box<dyn Entries>>, wal::Error> {
        let kind = if info.table.is_meta() { LogKind::Meta } else { LogKind::User };
        let mut parts = Vec::with_capacity(servers.len());
        for server in servers {
            let logs = self.logs_of(server, kind);
            let recovered = logs.get_or_try_init(|| self.scan(server, kind)).await?;
            parts.push(recovered.entries_of(self.fs.clone(), info));
        }
        Ok(parts)
    }

    fn logs_of(&self, server: &ServerName, kind: LogKind) -> ScannedLogs {
        lock(&self.scanned).entry((server.clone(), kind)).or_default().clone()
    }

    async fn scan(&self, server: &ServerName, kind: LogKind) -> Result<RecoveredLogs, wal::Error> {
        let dir = self.root.fenced_wal_dir(server);
        let dirs = match self.fs.stat(&dir).await? {
            Some(_) => vec![dir],
            // The server had no logs, or all of them are in the archive.
            None => Vec::new(),
        };
        let [user_record, meta_record] = self.root.log_records_of(server);
        let record = match kind {
            LogKind::Meta => meta_record,
            LogKind::User => user_record,
        };
        let (fs, logs, now_ms) = (self.fs.clone(), (&dirs[..], &record), self.env.clock.now_ms());
        RecoveredLogs::scan_kind(fs, &self.root, kind, logs, now_ms, self.on_damage).await
    }

    /// Records that a region was opened with entries of dead servers.
    pub(crate) fn record_opened(&self, region: &Region) {
        if region.memstore_bytes() > 0 {
            lock(&self.unflushed).insert(region.encoded_name().to_string());
        }
    }

    /// Whether logs of dead servers have edits of the region that no store file has.
    pub(crate) fn are_needed_by(&self, region: &Region) -> bool {
        let mut unflushed = lock(&self.unflushed);
        if !unflushed.contains(&**region.encoded_name()) {
            return false;
        }
        let is_flushed = region.metrics().flushed_seq_id + 1 >= region.open_seq_id();
        if is_flushed {
            unflushed.remove(&**region.encoded_name());
        }
        !is_flushed
    }

    /// Records that a region was closed, which writes all edits to store files.
    pub(crate) fn record_closed(&self, encoded: &str) {
        lock(&self.unflushed).remove(encoded);
    }

    /// Forgets the logs that the master has moved to the archive.
    pub(crate) async fn forget_archived(&self) {
        let scanned: Vec<(ServerName, LogKind)> = lock(&self.scanned).keys().cloned().collect();
        for logs in scanned {
            if let Ok(None) = self.fs.stat(&self.root.fenced_wal_dir(&logs.0)).await {
                lock(&self.scanned).remove(&logs);
            }
        }
    }

    /// Warnings for the operator about damaged, shortened and missing logs.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let scanned = lock(&self.scanned);
        let logs = scanned.values().filter_map(|logs| logs.get());
        logs.flat_map(|logs| logs.warnings().to_vec()).collect()
    }
}

/// Joins the entries in the logs that this server took over at its start with those in the logs of
/// dead servers.
pub(crate) fn joined(own: Box<dyn Entries>, mut dead: Vec<Box<dyn Entries>>) -> Box<dyn Entries> {
    if dead.is_empty() {
        return own;
    }
    dead.insert(0, own);
    Box::new(JoinedEntries::new(dead))
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
