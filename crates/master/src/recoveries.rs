//! The dead servers with logs that some regions still need.
//!
//! A region that was open on a dead server replays its edits when it opens elsewhere. Until these
//! edits are in store files, the logs of the dead server are the only durable copy. If the next
//! server of the region dies, too, the region needs the logs of both. So the journal entry of each
//! recovery lists the regions that need the logs of the dead server.
//!
//! A region leaves the list when a server reports that its edits are in files: after a flush, or
//! because it was closed. A closed region is removed from the list, durably, before the master
//! answers the report. After the answer, no edit from these logs may be replayed into the region: a
//! restore may have replaced the region's files by those of a snapshot, which must not get these
//! edits.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use cell::region::{RegionInfo, ServerName};
use proto::exception::{Answer, JavaException};
use tokio::sync::Notify;

use crate::procedure::journal::Journal;

/// The dead servers that are being recovered.
pub struct Recoveries {
    journal: Arc<Journal>,
    servers: Mutex<BTreeMap<ServerName, Recovery>>,
    changed: Notify,
}

#[derive(Default)]
struct Recovery {
    // The id of the procedure; 0 until it is journaled.
    id: u64,
    // Encoded names of the regions that need the logs.
    waiting: HashSet<String>,
}

impl Recoveries {
    /// No recoveries. Changes are written to `journal`.
    pub fn new(journal: Arc<Journal>) -> Recoveries {
        Recoveries { journal, servers: Mutex::default(), changed: Notify::new() }
    }

    /// Counts a server as dead by calling `remove`, which returns whether it was live, and
    /// announces its recovery then. Returns what `remove` returned; if true, the caller begins the
    /// recovery.
    ///
    /// No reader sees the server dead without the announcement. Otherwise the master could load
    /// `hbase:meta` after the server was declared dead and before the recovery is in the journal.
    /// It would then treat the server's regions as closed, and open them without the edits that are
    /// only in the logs. And of two tasks that find the server dead, only one announces the
    /// recovery: the other one could do so after the recovery has ended, and nothing would end it
    /// again.
    ///
    /// Lock order: this lock is acquired before those of the regions and of the servers.
    pub fn announce_if(&self, server: &ServerName, remove: impl FnOnce() -> bool) -> bool {
        let mut servers = self.lock();
        let was_live = remove();
        if was_live {
            servers.entry(server.clone()).or_default();
        }
        was_live
    }

    /// Adds the recovery of a server, which runs as procedure `id`.
    pub(crate) fn begin(&self, server: &ServerName, id: u64) {
        self.lock().entry(server.clone()).or_default().id = id;
    }

    /// Adds regions that need the logs of `server`.
    pub(crate) fn add(&self, server: &ServerName, regions: impl IntoIterator<Item = String>) {
        let mut servers = self.lock();
        let recovery = servers.get_mut(server).expect("the recovery has begun");
        recovery.waiting.extend(regions);
    }

    /// Removes the recovery of a server.
    pub(crate) fn end(&self, server: &ServerName) {
        let ended = self.lock().remove(server);
        debug_assert!(ended.is_none_or(|ended| ended.waiting.is_empty()), "no region needs the logs");
    }

    /// Whether a server is being recovered.
    pub fn is_recovering(&self, server: &ServerName) -> bool {
        self.lock().contains_key(server)
    }

    /// The servers whose logs a region needs.
    pub(crate) fn servers_of(&self, encoded: &str) -> Vec<ServerName> {
        let servers = self.lock();
        let needed = servers.iter().filter(|(_, recovery)| recovery.waiting.contains(encoded));
        needed.map(|(server, _)| server.clone()).collect()
    }

    /// Whether a region needs the logs of a dead server: some of its edits may be only there.
    pub(crate) fn is_needed_by(&self, region: &RegionInfo) -> bool {
        !self.servers_of(&region.encoded_name()).is_empty()
    }

    /// The dead servers, with the number of regions that need their logs.
    pub fn list(&self) -> Vec<(ServerName, usize)> {
        let servers = self.lock();
        servers.iter().map(|(server, recovery)| (server.clone(), recovery.waiting.len())).collect()
    }

    /// Records that regions were closed, which puts all their edits into files, or that their
    /// contents were replaced, so that these edits do not matter any more. Returns when this is
    /// durable.
    ///
    /// # Errors
    /// The journal's error. The regions may still need the logs.
    pub(crate) async fn record_closed(&self, regions: &[RegionInfo]) -> Answer<()> {
        if self.lock().is_empty() {
            return Ok(());
        }
        let names: Vec<String> = regions.iter().map(RegionInfo::encoded_name).collect();
        self.record_flushed(&names).await
    }

    /// Records that all edits of regions are in files. Returns when this is durable.
    ///
    /// # Errors
    /// The journal's error. The regions may still need the logs.
    pub(crate) async fn record_flushed(&self, encoded_names: &[String]) -> Answer<()> {
        for (server, id, flushed) in self.affected(encoded_names) {
            let written = self.journal.record_flushed(id, &flushed).await;
            written.map_err(|error| JavaException::io(error.to_string()))?;
            if let Some(recovery) = self.lock().get_mut(&server) {
                recovery.waiting.retain(|encoded| !flushed.contains(encoded));
            }
        }
        self.changed.notify_waiters();
        Ok(())
    }

    /// The recoveries whose logs any of these regions needs: for each, its server, its procedure
    /// id, and the names of those regions.
    fn affected(&self, encoded_names: &[String]) -> Vec<(ServerName, u64, Vec<String>)> {
        let servers = self.lock();
        let affected = servers.iter().filter_map(|(server, recovery)| {
            let waiting = |name: &&String| recovery.waiting.contains(*name);
            let flushed: Vec<String> = encoded_names.iter().filter(waiting).cloned().collect();
            (!flushed.is_empty()).then(|| (server.clone(), recovery.id, flushed))
        });
        affected.collect()
    }

    /// Removes the regions for which `exists` returns false from all lists, for example regions of
    /// deleted tables.
    pub(crate) fn retain(&self, exists: impl Fn(&str) -> bool) {
        let mut removed = 0;
        for recovery in self.lock().values_mut() {
            let before = recovery.waiting.len();
            recovery.waiting.retain(|encoded| exists(encoded));
            removed += before - recovery.waiting.len();
        }
        // Each recovery calls this when another one changes the lists: if it always notified, two
        // recoveries would wake each other without a pause.
        if removed > 0 {
            self.changed.notify_waiters();
        }
    }

    /// The number of regions that need the logs of a server.
    pub(crate) fn waiting(&self, server: &ServerName) -> usize {
        self.lock().get(server).map_or(0, |recovery| recovery.waiting.len())
    }

    /// Waits until a region leaves a list.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServerName, Recovery>> {
        self.servers.lock().expect("no holder of this lock panics")
    }
}
