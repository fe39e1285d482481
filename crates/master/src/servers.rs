//! The registered region servers and their last reports, those that the master can call, those that
//! are decommissioned, and those that died.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
    live: BTreeMap<ServerName, LiveServer>,
    // Servers that count as dead. Their names are never used again.
    dead: BTreeSet<ServerName>,
    // Those of the dead servers that an operator does not want to see any more.
    cleared: BTreeSet<ServerName>,
    // Servers that get no more regions. They need not live.
    decommissioned: BTreeSet<ServerName>,
    // Those of the decommissioned servers whose regions move to other servers.
    offloading: BTreeSet<ServerName>,
    is_shutting_down: bool,
    // Requests that servers have reported that do not live any more.
    ended_requests: u64,
}

#[derive(Default)]
struct LiveServer {
    load: proto::ServerLoad,
    // When the load was received, by the master's monotonic clock. `None`: not yet.
    received: Option<Duration>,
    // The highest total that it has reported.
    requests: u64,
    contact: Contact,
    // Number of its LateOrders.
    late_orders: usize,
}

impl LiveServer {
    fn is_reachable(&self) -> bool {
        self.contact == Contact::Made && self.late_orders == 0
    }
}

/// Whether the master can call a live server.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Contact {
    /// It was not called yet.
    #[default]
    None,
    /// The server may still be starting: it has not answered, and has not refused a call.
    Pending,
    /// All calls so far have failed.
    Failed,
    /// It has answered a call.
    Made,
}

impl Servers {
    /// Records a load that was received at `now`, a time of the monotonic clock. The clock of the
    /// server may differ. Returns false, and changes nothing, if the server counts as dead.
    pub fn receive(&self, server: ServerName, load: proto::ServerLoad, now: Duration) -> bool {
        let is_recorded = self.report(server.clone(), load);
        if let Some(live) = self.lock().live.get_mut(&server) {
            live.received = Some(now);
        }
        is_recorded
    }

    /// When the load of a live server was received last, by the monotonic clock.
    pub fn received(&self, server: &ServerName) -> Option<Duration> {
        self.lock().live.get(server).and_then(|live| live.received)
    }

    /// Records that a server has registered, with a first load. Returns false, and changes nothing,
    /// if the server counts as dead.
    pub fn report(&self, server: ServerName, load: proto::ServerLoad) -> bool {
        let mut state = self.lock();
        if state.dead.contains(&server) {
            return false;
        }
        let live = state.live.entry(server).or_default();
        live.requests = live.requests.max(load.total_number_of_requests());
        live.load = load;
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Counts a server as dead from now on. Returns whether it was live.
    pub fn remove(&self, server: &ServerName) -> bool {
        let mut state = self.lock();
        state.dead.insert(server.clone());
        let ended = state.live.remove(server);
        let was_live = ended.is_some();
        state.ended_requests += ended.map_or(0, |live| live.requests);
        debug_assert!(!state.live.contains_key(server), "a server is live or dead");
        drop(state);
        // The first call to it is no longer awaited.
        self.changed.notify_waiters();
        was_live
    }

    /// Records that the first call to a live server begins. Returns false if it has begun before.
    pub(crate) fn begin_contact(&self, server: &ServerName) -> bool {
        let mut state = self.lock();
        let Some(live) = state.live.get_mut(server) else { return false };
        let is_first = live.contact == Contact::None;
        if is_first {
            live.contact = Contact::Pending;
        }
        is_first
    }

    /// Records whether a server has answered a call.
    pub(crate) fn end_contact(&self, server: &ServerName, has_answered: bool) {
        let mut state = self.lock();
        if let Some(live) = state.live.get_mut(server) {
            live.contact = if has_answered { Contact::Made } else { Contact::Failed };
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Records that a server has not accepted orders in time. It counts as unreachable until the
    /// result is dropped.
    pub(crate) fn begin_late_orders(self: &Arc<Self>, server: &ServerName) -> LateOrders {
        if let Some(live) = self.lock().live.get_mut(server) {
            live.late_orders += 1;
        }
        LateOrders { servers: self.clone(), server: server.clone() }
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
        self.lock().live.iter().map(|(server, live)| (server.clone(), live.load.clone())).collect()
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
        let mut state = self.lock();
        state.decommissioned.remove(server);
        state.offloading.remove(server);
    }

    /// Requests that the regions of a decommissioned server move to other servers.
    pub(crate) fn begin_offload(&self, server: &ServerName) {
        self.lock().offloading.insert(server.clone());
    }

    /// Requests that a decommissioned server keeps its regions.
    pub(crate) fn end_offload(&self, server: &ServerName) {
        self.lock().offloading.remove(server);
    }

    /// The live, decommissioned servers whose regions are to move to other servers.
    pub(crate) fn offloading(&self) -> Vec<ServerName> {
        let mut state = self.lock();
        let State { live, decommissioned, offloading, .. } = &mut *state;
        offloading.retain(|server| live.contains_key(server));
        // The mark of a server can be absent for a moment: several are read one after the other.
        offloading.intersection(decommissioned).cloned().collect()
    }

    /// The live servers that are decommissioned.
    pub fn decommissioned(&self) -> Vec<ServerName> {
        let state = self.lock();
        state.live.keys().filter(|server| state.decommissioned.contains(server)).cloned().collect()
    }

    /// The live servers that may get regions: those that the master can call and that are not
    /// decommissioned. If there is none, then decommissioned ones, and otherwise also those that
    /// the master cannot call, because a region without a server is worse.
    pub fn available(&self) -> Vec<ServerName> {
        let state = self.lock();
        let rank = |(server, live): (&ServerName, &LiveServer)| {
            (!live.is_reachable(), state.decommissioned.contains(server))
        };
        let best = state.live.iter().map(rank).min();
        let available = state.live.iter().filter(|one| Some(rank(*one)) == best);
        available.map(|(server, _)| server.clone()).collect()
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

    /// Numbers of rows read and of mutations in all open regions, and when the last report was
    /// received, by the monotonic clock.
    pub fn requests(&self) -> (u64, u64, Option<Duration>) {
        let state = self.lock();
        let received = state.live.values().filter_map(|live| live.received).max();
        let regions = state.live.values().flat_map(|live| &live.load.region_loads);
        regions.fold((0, 0, received), |(reads, writes, at), region| {
            (reads + region.read_requests_count(), writes + region.write_requests_count(), at)
        })
    }

    /// Rows read plus mutations of the live servers, and of those that ended since this master
    /// became active. The total only grows.
    pub fn total_requests(&self) -> u64 {
        let state = self.lock();
        state.ended_requests + state.live.values().map(|live| live.requests).sum::<u64>()
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

    /// The number of dead servers at the address of `server` that started at most `span_ms` before
    /// it.
    pub(crate) fn recent_predecessors(&self, server: &ServerName, span_ms: u64) -> usize {
        let is_recent = |dead: &&ServerName| {
            (&dead.host, dead.port) == (&server.host, server.port)
                && dead.start_code < server.start_code
                && dead.start_code.saturating_add(span_ms) >= server.start_code
        };
        self.lock().dead.iter().filter(is_recent).count()
    }

    /// Whether a live server at the address of `server` started after it.
    pub(crate) fn has_successor(&self, server: &ServerName) -> bool {
        let is_later = |live: &ServerName| {
            (&live.host, live.port) == (&server.host, server.port) && live.start_code > server.start_code
        };
        self.lock().live.keys().any(is_later)
    }

    /// The [available](Self::available) servers. Waits until there is one.
    pub async fn wait_for_available(&self) -> Vec<ServerName> {
        self.wait_for(|| Some(self.available()).filter(|available| !available.is_empty())).await
    }

    /// Returns when the first calls to all new servers have ended: when several servers start, the
    /// first one to answer must not get all regions.
    pub(crate) async fn wait_for_contacts(&self) {
        let is_pending = || self.lock().live.values().any(|live| live.contact == Contact::Pending);
        self.wait_for(|| (!is_pending()).then_some(())).await
    }

    async fn wait_for<T>(&self, find: impl Fn() -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = find() {
                return found;
            }
            changed.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

/// Orders that a server has not accepted in time.
pub(crate) struct LateOrders {
    servers: Arc<Servers>,
    server: ServerName,
}

impl Drop for LateOrders {
    fn drop(&mut self) {
        if let Some(live) = self.servers.lock().live.get_mut(&self.server) {
            debug_assert!(live.late_orders > 0, "the orders were counted");
            live.late_orders -= 1;
        }
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
    fn reports_have_the_time_at_which_they_were_received() {
        let servers = Servers::default();
        // By the clock of the server, which is wrong.
        let load = proto::ServerLoad { report_end_time: Some(u64::MAX), ..proto::ServerLoad::default() };
        servers.report(server(1, 5), proto::ServerLoad::default());
        assert_eq!((servers.requests(), servers.received(&server(1, 5))), ((0, 0, None), None));
        for (port, second) in [(1, 7), (2, 9), (1, 8)] {
            assert!(servers.receive(server(port, 5), load.clone(), Duration::from_secs(second)));
        }
        assert_eq!(servers.received(&server(1, 5)), Some(Duration::from_secs(8)));
        assert_eq!(servers.requests(), (0, 0, Some(Duration::from_secs(9))));
        servers.remove(&server(2, 5));
        assert!(!servers.receive(server(2, 5), load, Duration::from_secs(10)));
        assert_eq!(servers.received(&server(2, 5)), None);
    }

    #[test]
    fn the_total_of_requests_never_falls() {
        let servers = Servers::default();
        let load = |requests| proto::ServerLoad {
            total_number_of_requests: Some(requests),
            ..proto::ServerLoad::default()
        };
        servers.report(server(1, 5), load(100));
        servers.report(server(2, 5), load(10));
        assert_eq!(servers.total_requests(), 110);
        servers.report(server(1, 5), proto::ServerLoad::default());
        assert_eq!(servers.total_requests(), 110, "it registered again");
        servers.report(server(1, 5), load(120));
        servers.remove(&server(1, 5));
        servers.report(server(1, 6), load(1));
        assert_eq!(servers.total_requests(), 131, "a new process at the address counts from 0");
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
    fn servers_that_cannot_be_called_get_regions_only_if_there_is_no_other() {
        let servers = Arc::new(Servers::default());
        let (one, other) = (server(1, 5), server(2, 5));
        for server in [&one, &other] {
            servers.report(server.clone(), proto::ServerLoad::default());
        }
        assert_eq!(servers.available(), [one.clone(), other.clone()], "none was called yet");
        servers.end_contact(&other, true);
        assert_eq!(servers.available(), std::slice::from_ref(&other));
        servers.decommission(&other);
        assert_eq!(servers.available(), std::slice::from_ref(&other), "the first one was not called yet");
        servers.end_contact(&one, true);
        let late = [servers.begin_late_orders(&one), servers.begin_late_orders(&one)];
        assert_eq!(servers.available(), std::slice::from_ref(&other));
        let [first, second] = late;
        drop(first);
        assert_eq!(servers.available(), std::slice::from_ref(&other), "other orders are late");
        drop(second);
        assert_eq!(servers.available(), [one]);
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
    fn servers_that_started_shortly_before_at_the_same_address_are_counted() {
        let servers = Servers::default();
        for (port, start_code) in [(1, 10), (1, 500), (1, 900), (2, 950)] {
            servers.report(server(port, start_code), proto::ServerLoad::default());
            servers.remove(&server(port, start_code));
        }
        servers.report(server(1, 990), proto::ServerLoad::default());
        assert_eq!(servers.recent_predecessors(&server(1, 1000), 500), 2);
        assert_eq!(servers.recent_predecessors(&server(1, 900), 500), 1);
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
