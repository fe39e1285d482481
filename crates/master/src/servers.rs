//! The registered region servers and their last reports.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cell::region::ServerName;
use tokio::sync::Notify;

/// The live region servers.
#[derive(Default)]
pub struct Servers {
    live: Mutex<BTreeMap<ServerName, proto::ServerLoad>>,
    changed: Notify,
    next_index: AtomicUsize,
}

impl Servers {
    /// Records that a server has registered or reported its load.
    pub fn report(&self, server: ServerName, load: proto::ServerLoad) {
        self.lock().insert(server, load);
        self.changed.notify_waiters();
    }

    /// Removes a server that has stopped.
    pub fn remove(&self, server: &ServerName) {
        self.lock().remove(server);
    }

    /// The live servers and their loads, by name.
    pub fn live(&self) -> Vec<(ServerName, proto::ServerLoad)> {
        self.lock().iter().map(|(server, load)| (server.clone(), load.clone())).collect()
    }

    /// Numbers of rows read and of mutations in all open regions, and the time of the last report
    /// in milliseconds since the Unix epoch.
    pub fn requests(&self) -> (u64, u64, u64) {
        let live = self.lock();
        let reported_ms = live.values().map(proto::ServerLoad::report_end_time).max().unwrap_or(0);
        let regions = live.values().flat_map(|load| &load.region_loads);
        regions.fold((0, 0, reported_ms), |(reads, writes, at), region| {
            (reads + region.read_requests_count(), writes + region.write_requests_count(), at)
        })
    }

    /// The number of live servers.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Whether `server` is live.
    pub fn is_live(&self, server: &ServerName) -> bool {
        self.lock().contains_key(server)
    }

    /// Picks the server for the next region, round-robin; waits until a server is live.
    pub async fn pick(&self) -> ServerName {
        loop {
            let changed = self.changed.notified();
            if let Some(server) = self.next() {
                return server;
            }
            changed.await;
        }
    }

    fn next(&self) -> Option<ServerName> {
        let live = self.lock();
        let index = self.next_index.fetch_add(1, Ordering::Relaxed).checked_rem(live.len())?;
        live.keys().nth(index).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ServerName, proto::ServerLoad>> {
        self.live.lock().expect("no holder of this lock panics")
    }
}
