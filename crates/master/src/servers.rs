//! The registered region servers and their last reports, those that are decommissioned, and those
//! that died.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use cell::region::ServerName;
use tokio::sync::Notify;

/// The region servers of the cluster.
#[derive(Default)]
pub struct Servers {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    live: BTreeMap<ServerName, proto::ServerLoad>,
    // Servers that count as dead. Their names are never used again.
    dead: BTreeSet<ServerName>,
    // Those of the dead servers that an operator does not want to see any more.
    cleared: BTreeSet<ServerName>,
    // Servers that get no more regions. They need not live.
    decommissioned: BTreeSet<ServerName>,
    is_shutting_down: bool,
}

impl Servers {
    /// Records that a server has registered or reported its load. Returns false, and changes
    /// nothing, if the server counts as dead.
    pub fn report(&self, server: ServerName, load: proto::ServerLoad) -> bool {
        let mut state = self.lock();
        if state.dead.contains(&server) {
            return false;
        }
        state.live.insert(server, load);
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Counts a server as dead from now on. Returns whether it was live.
    pub fn remove(&self, server: &ServerName) -> bool {
        let mut state = self.lock();
        state.dead.insert(server.clone());
        let was_live = state.live.remove(server).is_some();
        debug_assert!(!state.live.contains_key(server), "a server is live or dead");
        was_live
    }

    /// Records that the cluster is shutting down.
    pub(crate) fn begin_shutdown(&self) {
        self.lock().is_shutting_down = true;
    }

    /// Records that the cluster could not be shut down.
    pub(crate) fn cancel_shutdown(&self) {
        self.lock().is_shutting_down = false;
    }

    /// Whether the cluster is shutting down.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.lock().is_shutting_down
    }

    /// The live servers and their loads, by name.
    pub fn live(&self) -> Vec<(ServerName, proto::ServerLoad)> {
        self.lock().live.iter().map(|(server, load)| (server.clone(), load.clone())).collect()
    }

    /// The names of the live servers.
    pub fn live_names(&self) -> Vec<ServerName> {
        self.lock().live.keys().cloned().collect()
    }

    /// Sets which servers are decommissioned. Returns whether that is a change.
    pub(crate) fn set_decommissioned(&self, servers: BTreeSet<ServerName>) -> bool {
        let mut state = self.lock();
        let is_changed = state.decommissioned != servers;
        state.decommissioned = servers;
        is_changed
    }

    /// Decommissions one server.
    pub(crate) fn decommission(&self, server: &ServerName) {
        self.lock().decommissioned.insert(server.clone());
    }

    /// Reverses [`decommission`](Self::decommission).
    pub(crate) fn recommission(&self, server: &ServerName) {
        self.lock().decommissioned.remove(server);
    }

    /// The live servers that are decommissioned.
    pub fn decommissioned(&self) -> Vec<ServerName> {
        let state = self.lock();
        state.live.keys().filter(|server| state.decommissioned.contains(server)).cloned().collect()
    }

    /// The live servers that may get regions: those that are not decommissioned. If all are, then
    /// all may, because a region without a server is worse.
    pub fn available(&self) -> Vec<ServerName> {
        let state = self.lock();
        let available = state.live.keys().filter(|server| !state.decommissioned.contains(server));
        let available: Vec<ServerName> = available.cloned().collect();
        match available.is_empty() {
            true => state.live.keys().cloned().collect(),
            false => available,
        }
    }

    /// No longer lists a dead server. Returns false if it is not listed.
    pub(crate) fn clear_dead(&self, server: &ServerName) -> bool {
        let mut state = self.lock();
        state.dead.contains(server) && state.cleared.insert(server.clone())
    }

    /// The servers that died since this master started, except those whose address a live server
    /// has again, and those that were cleared.
    pub fn dead(&self) -> Vec<ServerName> {
        let state = self.lock();
        let is_replaced = |dead: &ServerName| {
            state.live.keys().any(|live| (&live.host, live.port) == (&dead.host, dead.port))
        };
        let is_listed = |dead: &&ServerName| !is_replaced(dead) && !state.cleared.contains(*dead);
        state.dead.iter().filter(is_listed).cloned().collect()
    }

    /// Numbers of rows read and of mutations in all open regions, and the time of the last report
    /// in milliseconds since the Unix epoch.
    pub fn requests(&self) -> (u64, u64, u64) {
        let state = self.lock();
        let reported_ms = state.live.values().map(proto::ServerLoad::report_end_time).max().unwrap_or(0);
        let regions = state.live.values().flat_map(|load| &load.region_loads);
        regions.fold((0, 0, reported_ms), |(reads, writes, at), region| {
            (reads + region.read_requests_count(), writes + region.write_requests_count(), at)
        })
    }

    /// The number of live servers.
    pub fn count(&self) -> usize {
        self.lock().live.len()
    }

    /// Whether `server` is live.
    pub fn is_live(&self, server: &ServerName) -> bool {
        self.lock().live.contains_key(server)
    }

    /// Whether `server` counts as dead.
    pub fn is_dead(&self, server: &ServerName) -> bool {
        self.lock().dead.contains(server)
    }

    /// The live servers at the address of `server` that started before it.
    pub(crate) fn predecessors(&self, server: &ServerName) -> Vec<ServerName> {
        let is_earlier = |live: &&ServerName| {
            (&live.host, live.port) == (&server.host, server.port) && live.start_code < server.start_code
        };
        self.lock().live.keys().filter(is_earlier).cloned().collect()
    }

    /// Whether a live server at the address of `server` started after it.
    pub(crate) fn has_successor(&self, server: &ServerName) -> bool {
        let is_later = |live: &ServerName| {
            (&live.host, live.port) == (&server.host, server.port) && live.start_code > server.start_code
        };
        self.lock().live.keys().any(is_later)
    }

    /// The [available](Self::available) servers; waits until there is one.
    pub async fn wait_for_available(&self) -> Vec<ServerName> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let available = self.available();
            if !available.is_empty() {
                return available;
            }
            changed.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16, start_code: u64) -> ServerName {
        ServerName { host: "h".into(), port, start_code }
    }

    #[test]
    fn a_dead_server_never_lives_again() {
        let servers = Servers::default();
        assert!(servers.report(server(1, 5), proto::ServerLoad::default()));
        assert!(servers.remove(&server(1, 5)));
        assert!(!servers.remove(&server(1, 5)), "it was dead already");
        assert!(!servers.report(server(1, 5), proto::ServerLoad::default()));
        assert_eq!((servers.count(), servers.dead()), (0, vec![server(1, 5)]));
        assert!(servers.report(server(1, 6), proto::ServerLoad::default()));
        assert_eq!(servers.dead(), [], "replaced");
    }

    #[test]
    fn decommissioned_servers_get_regions_only_if_there_is_no_other() {
        let servers = Servers::default();
        servers.report(server(1, 5), proto::ServerLoad::default());
        servers.report(server(2, 5), proto::ServerLoad::default());
        assert!(servers.set_decommissioned([server(1, 5), server(3, 5)].into()));
        assert!(!servers.set_decommissioned([server(1, 5), server(3, 5)].into()), "no change");
        assert_eq!(servers.decommissioned(), [server(1, 5)], "the third one does not live");
        assert_eq!(servers.available(), [server(2, 5)]);
        servers.remove(&server(2, 5));
        assert_eq!(servers.available(), [server(1, 5)]);
    }

    #[test]
    fn a_cleared_server_stays_dead() {
        let servers = Servers::default();
        servers.report(server(1, 5), proto::ServerLoad::default());
        assert!(!servers.clear_dead(&server(1, 5)), "it lives");
        servers.remove(&server(1, 5));
        assert!(servers.clear_dead(&server(1, 5)));
        assert!(!servers.clear_dead(&server(1, 5)), "it is not listed");
        assert_eq!(servers.dead(), []);
        assert!(servers.is_dead(&server(1, 5)));
    }

    #[test]
    fn a_restarted_server_replaces_its_predecessor() {
        let servers = Servers::default();
        for (port, start_code) in [(1, 5), (1, 7), (2, 1)] {
            servers.report(server(port, start_code), proto::ServerLoad::default());
        }
        assert_eq!(servers.predecessors(&server(1, 6)), [server(1, 5)]);
        assert_eq!(servers.predecessors(&server(1, 5)), []);
        assert!(servers.has_successor(&server(1, 5)) && !servers.has_successor(&server(1, 7)));
        assert!(!servers.has_successor(&server(2, 1)));
    }
}
