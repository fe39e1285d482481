//! The assignment of regions to servers.
//!
//! The master orders a server to open or close regions (`AdminService.ExecuteProcedures`). The
//! server responds immediately, does the work, and then reports each region
//! (`RegionServerStatusService.ReportRegionStateTransition`). The master writes the report to
//! `hbase:meta` before it responds, and only then wakes the tasks that wait for the region.
//!
//! Each order has a number. Numbers only grow, also from one master to the next. A server ignores
//! an order that is older than another one for the same region, and the master ignores reports
//! about orders that it has replaced. So late and repeated messages change nothing.
//!
//! That a server does not respond is no reason to open its regions elsewhere. A region is opened on
//! a second server only after the first one was fenced ([`crash`](crate::crash)).
//!
//! * [`dispatch`]: sends orders to servers until they are accepted;
//! * [`reports`]: the reports of servers;
//! * [`failures`]: regions that cannot be opened;
//! * [`placement`]: the choice of servers;
//! * [`loading`]: the states at the start of a master;
//! * [`views`]: what other parts ask about regions.

mod dispatch;
mod failures;
mod loading;
mod placement;
mod reports;
mod views;

pub use failures::Failure;
pub use reports::Report;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::Env;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use proto::exception::JavaException;
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard};
use wire::meta::MetaRegionState;

use crate::connections::Connections;
use crate::instruments::AssignmentInstruments;
use crate::meta::MetaTable;
use crate::recoveries::Recoveries;
use crate::servers::Servers;

/// The state of a region as the master knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionState {
    /// Offline. No server was ordered to open it.
    Closed,
    /// This server was ordered to open it.
    Opening(ServerName),
    /// Online on this server.
    Open(ServerName),
    /// This server was ordered to close it.
    Closing(ServerName),
    /// This server died while it had the region. The region is opened elsewhere after the logs of
    /// the server are fenced.
    Crashed(ServerName),
    /// It could not be opened. The master retries with increasing pauses.
    FailedOpen,
    /// Split. Its daughters serve its rows.
    Split,
}

impl RegionState {
    /// Whether the region is not in transition: it keeps this state until a new order.
    pub fn is_settled(&self) -> bool {
        matches!(self, RegionState::Open(_) | RegionState::Closed | RegionState::Split)
    }

    /// The living server that has the region or is to open it.
    pub fn server(&self) -> Option<&ServerName> {
        match self {
            RegionState::Opening(server) | RegionState::Open(server) | RegionState::Closing(server) => {
                Some(server)
            }
            RegionState::Closed | RegionState::Crashed(_) | RegionState::FailedOpen | RegionState::Split => {
                None
            }
        }
    }
}

impl fmt::Display for RegionState {
    /// The name of the state in HBase's messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RegionState::Closed => "CLOSED",
            RegionState::Opening(_) => "OPENING",
            RegionState::Open(_) => "OPEN",
            RegionState::Closing(_) => "CLOSING",
            RegionState::Crashed(_) => "ABNORMALLY_CLOSED",
            RegionState::FailedOpen => "FAILED_OPEN",
            RegionState::Split => "SPLIT",
        })
    }
}

/// The dependencies of [`Assignment`].
pub struct AssignmentParts {
    /// Clock, randomness, tasks.
    pub env: Env,
    /// Live region servers.
    pub servers: Arc<Servers>,
    /// Connections to region servers.
    pub connections: Arc<dyn Connections>,
    /// The rows of `hbase:meta`.
    pub meta: Arc<MetaTable>,
    /// The dead servers with logs that some regions still need.
    pub recoveries: Arc<Recoveries>,
    /// When this master became active, in milliseconds since the Unix epoch; later than for all
    /// earlier masters.
    pub active_since_ms: u64,
    /// Metrics.
    pub instruments: Arc<AssignmentInstruments>,
}

/// The states of all regions, and the orders that change them.
pub struct Assignment {
    env: Env,
    servers: Arc<Servers>,
    connections: Arc<dyn Connections>,
    meta: Arc<MetaTable>,
    recoveries: Arc<Recoveries>,
    // By encoded name.
    states: Mutex<HashMap<String, TrackedRegion>>,
    changed: Notify,
    active_since_ms: u64,
    last_order: AtomicI64,
    instruments: Arc<AssignmentInstruments>,
}

/// A region with its state and its last failure.
struct TrackedRegion {
    region: RegionInfo,
    state: RegionState,
    // When the region entered this state.
    since: Duration,
    // The last failure to open it, kept until the region is open or closed.
    failure: Option<Failure>,
    // The number of the last order; 0 if this master gave none.
    order: i64,
    // The open sequence id that its server reported.
    open_seq_num: u64,
    // The host and port of the server that had it last.
    last_address: Option<(String, u16)>,
    // Held during a change of the state and the write of that change to `hbase:meta`, so that the
    // rows of `hbase:meta` change in the same order.
    transition: Arc<AsyncMutex<()>>,
}

impl TrackedRegion {
    fn new(region: RegionInfo, state: RegionState, since: Duration) -> TrackedRegion {
        TrackedRegion {
            region,
            state,
            since,
            failure: None,
            order: 0,
            open_seq_num: 0,
            last_address: None,
            transition: Arc::default(),
        }
    }

    fn info_and_state(&self) -> (RegionInfo, RegionState) {
        (self.region.clone(), self.state.clone())
    }
}

/// Numbers of orders that are reserved per millisecond. The first number of a master is its start
/// time in milliseconds times this. The recorded start of the next master is a minute later or more
/// ([`MasterStore::become_active`](crate::store::MasterStore::become_active)), so its numbers are
/// higher.
const ORDERS_PER_MS: i64 = 1000;

impl Assignment {
    /// Creates an assignment without regions.
    pub fn new(parts: AssignmentParts) -> Arc<Assignment> {
        let first = i64::try_from(parts.active_since_ms).unwrap_or(i64::MAX).saturating_mul(ORDERS_PER_MS);
        Arc::new(Assignment {
            env: parts.env,
            servers: parts.servers,
            connections: parts.connections,
            meta: parts.meta,
            recoveries: parts.recoveries,
            states: Mutex::default(),
            changed: Notify::new(),
            active_since_ms: parts.active_since_ms,
            last_order: AtomicI64::new(first),
            instruments: parts.instruments,
        })
    }

    /// When the master became the active one, in milliseconds since the Unix epoch.
    pub(crate) fn active_since_ms(&self) -> u64 {
        self.active_since_ms
    }

    fn next_order(&self) -> i64 {
        self.last_order.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Opens regions. Returns when all of them are open, also according to `hbase:meta`.
    ///
    /// # Errors
    /// The error of `hbase:meta`, or an `IOException` that names a region that failed to open.
    pub async fn open(self: &Arc<Self>, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.begin_open(regions).await?;
        self.wait_for_open(regions).await
    }

    /// Like `open`, but a region that cannot be opened is not an error. Its failure is logged and
    /// shown on the status page, and [`Assignment::retry_failed`] retries it.
    ///
    /// # Errors
    /// The error of `hbase:meta`.
    pub async fn open_or_retry_later(self: &Arc<Self>, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.begin_open(regions).await?;
        self.wait_while_opening(regions).await;
        Ok(())
    }

    /// Orders that `regions` be opened, and does not wait for them. Waits only for regions that are
    /// closing. Regions that are open or opening are skipped, and regions of a crashed server are
    /// opened by its recovery.
    ///
    /// # Errors
    /// The error of `hbase:meta`.
    pub async fn begin_open(self: &Arc<Self>, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.track(regions);
        self.wait_until(|| !regions.iter().any(|region| self.is_closing(region))).await;
        let may_open = |state: &RegionState| matches!(state, RegionState::Closed | RegionState::FailedOpen);
        self.begin_open_from(regions, may_open).await
    }

    /// Like `begin_open`, but [`Assignment::retry_failed`] retries the regions for which the order
    /// cannot be recorded.
    pub(crate) async fn begin_open_or_retry_later(self: &Arc<Self>, regions: &[RegionInfo]) {
        if let Err(error) = self.begin_open(regions).await {
            let is_closed = |state: &RegionState| *state == RegionState::Closed;
            self.set_failed(regions, &error.to_string(), false, is_closed);
        }
    }

    /// Gives the order to open each of `regions` for which `may_open` accepts the current state.
    /// Unknown regions are skipped.
    ///
    /// # Errors
    /// The error of `hbase:meta`. Regions whose order could not be recorded have their old state.
    async fn begin_open_from(
        self: &Arc<Self>,
        regions: &[RegionInfo],
        may_open: impl Fn(&RegionState) -> bool,
    ) -> Result<(), JavaException> {
        // The orders for all other regions are recorded in `hbase:meta`. If it is offline, that
        // waits until it is open. So it is ordered first, and not in one batch with other regions.
        let (meta, others): (Vec<RegionInfo>, Vec<RegionInfo>) =
            regions.iter().cloned().partition(|region| region.table.is_meta());
        let meta_ordered = self.place_and_order(&meta, &may_open).await;
        self.place_and_order(&others, &may_open).await.and(meta_ordered)
    }

    /// The same, with one record in `hbase:meta` for all regions that go to the same server.
    async fn place_and_order(
        self: &Arc<Self>,
        regions: &[RegionInfo],
        may_open: &impl Fn(&RegionState) -> bool,
    ) -> Result<(), JavaException> {
        let mut outcome = Ok(());
        loop {
            let is_due = |region: &&RegionInfo| self.state(region).is_some_and(|state| may_open(&state));
            let due: Vec<RegionInfo> = regions.iter().filter(is_due).cloned().collect();
            if due.is_empty() {
                return outcome;
            }
            let mut is_repeated = false;
            for (server, regions) in self.place(&due).await {
                match self.begin_open_at(&server, &regions, may_open).await {
                    Ok(()) => {}
                    // The server died since it was chosen: choose again.
                    Err(_) if !self.servers.is_live(&server) => is_repeated = true,
                    Err(error) => outcome = Err(error),
                }
            }
            if !is_repeated {
                return outcome;
            }
        }
    }

    /// Adds unknown regions as closed ones.
    fn track(&self, regions: &[RegionInfo]) {
        self.add_new(regions);
    }

    async fn begin_open_at(
        self: &Arc<Self>,
        server: &ServerName,
        regions: &[RegionInfo],
        may_open: &impl Fn(&RegionState) -> bool,
    ) -> Result<(), JavaException> {
        let _transitions = self.lock_transitions(regions).await;
        let opening = RegionState::Opening(server.clone());
        let changed = self.begin_change(regions, &opening, |state| may_open(state))?;
        let regions: Vec<RegionInfo> = changed.iter().map(|change| change.region.clone()).collect();
        if let Err(error) = self.meta.set_opening(&regions, server).await {
            self.undo(&changed, &opening);
            return Err(error);
        }
        self.dispatch_open(server, changed);
        Ok(())
    }

    /// Closes regions. Returns when all of them are offline, also according to `hbase:meta`. If the
    /// server of a region dies meanwhile, the region is first opened elsewhere, so that its edits
    /// in the logs of that server get into its files. This is repeated if the region fails to open,
    /// unless its files are damaged.
    ///
    /// # Errors
    /// The error of `hbase:meta`.
    pub async fn close(self: &Arc<Self>, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.close_toward(regions, None).await
    }

    /// Like `close`; clients of the old server are referred to `destination`.
    pub(crate) async fn close_toward(
        self: &Arc<Self>,
        regions: &[RegionInfo],
        destination: Option<&ServerName>,
    ) -> Result<(), JavaException> {
        let is_closed = |region: &RegionInfo| {
            matches!(self.state(region), Some(RegionState::Closed | RegionState::Split))
        };
        loop {
            // A server ignores an order to close a region that it is still opening, and would then
            // report the region as open.
            self.wait_while_opening(regions).await;
            if self.retry_before_close(regions).await {
                continue;
            }
            self.begin_close(regions, destination).await?;
            self.wait_until(|| !regions.iter().any(|region| self.is_closing_or_dead(region))).await;
            if regions.iter().all(is_closed) {
                return Ok(());
            }
        }
    }

    /// Whether the region is closing, or its server counts as dead and the region is not marked as
    /// crashed yet.
    fn is_closing_or_dead(&self, region: &RegionInfo) -> bool {
        match self.state(region) {
            Some(RegionState::Closing(_)) => true,
            Some(RegionState::Open(server)) => !self.servers.is_live(&server),
            _ => false,
        }
    }

    /// Like `close`, for a caller that will use the files of the regions instead of the regions.
    ///
    /// # Errors
    /// The error of `hbase:meta`. A final `IOException` if edits of a region may be only in logs,
    /// because the region cannot be opened.
    pub(crate) async fn close_completely(
        self: &Arc<Self>,
        regions: &[RegionInfo],
    ) -> Result<(), JavaException> {
        let refusal = |region: &RegionInfo, why: &str| {
            let name = region.encoded_name();
            let message =
                format!("region {name} may have edits that are only in logs, and cannot be opened: {why}");
            JavaException { do_not_retry: true, ..JavaException::io(message) }
        };
        self.wait_while_opening(regions).await;
        for region in regions {
            if let Some(failure) = self.failure(region) {
                return Err(refusal(region, &failure.reason));
            }
        }
        self.close(regions).await?;
        // A server may have died meanwhile.
        let is_incomplete = |region: &&RegionInfo| self.recoveries.is_needed_by(region);
        regions
            .iter()
            .find(is_incomplete)
            .map_or(Ok(()), |region| Err(refusal(region, "its files are damaged")))
    }

    async fn begin_close(
        self: &Arc<Self>,
        regions: &[RegionInfo],
        destination: Option<&ServerName>,
    ) -> Result<(), JavaException> {
        self.track(regions);
        let mut by_server: HashMap<ServerName, Vec<RegionInfo>> = HashMap::new();
        for region in regions {
            match self.state(region) {
                Some(RegionState::Open(server)) => by_server.entry(server).or_default().push(region.clone()),
                Some(RegionState::FailedOpen) => self.close_failed(region).await?,
                Some(RegionState::Closed) => {
                    self.meta.set_state(std::slice::from_ref(region), MetaRegionState::Closed).await?;
                }
                _ => {}
            }
        }
        for (server, regions) in by_server {
            self.begin_close_at(&server, &regions, destination).await?;
        }
        Ok(())
    }

    /// Closes a region that failed to open, unless it is being retried meanwhile.
    async fn close_failed(&self, region: &RegionInfo) -> Result<(), JavaException> {
        let region = std::slice::from_ref(region);
        let _transitions = self.lock_transitions(region).await;
        if self.state(&region[0]) == Some(RegionState::FailedOpen) {
            self.meta.set_state(region, MetaRegionState::Closed).await?;
            self.set_states(region, &RegionState::Closed);
        }
        Ok(())
    }

    async fn begin_close_at(
        self: &Arc<Self>,
        server: &ServerName,
        regions: &[RegionInfo],
        destination: Option<&ServerName>,
    ) -> Result<(), JavaException> {
        let _transitions = self.lock_transitions(regions).await;
        let (open, closing) = (RegionState::Open(server.clone()), RegionState::Closing(server.clone()));
        // If the server has died, its regions are no longer open there.
        let Ok(changed) = self.begin_change(regions, &closing, |state| *state == open) else { return Ok(()) };
        let regions: Vec<RegionInfo> = changed.iter().map(|change| change.region.clone()).collect();
        if let Err(error) = self.meta.set_state(&regions, MetaRegionState::Closing).await {
            self.undo(&changed, &closing);
            return Err(error);
        }
        self.dispatch_close(server, changed, destination.cloned());
        Ok(())
    }

    /// Forgets the regions of a deleted table.
    pub fn forget(&self, table: &TableName) {
        self.lock().retain(|_, tracked| &tracked.region.table != table);
    }

    /// Forgets deleted regions.
    pub fn forget_regions(&self, regions: &[RegionInfo]) {
        let mut states = self.lock();
        for region in regions {
            states.remove(&region.encoded_name());
        }
    }

    /// Closes and reopens a region, so that it uses the current descriptor of its table. Returns
    /// when the region is open or has failed to open. [`Assignment::retry_failed`] retries a failed
    /// region.
    ///
    /// # Errors
    /// As for [`Assignment::close`] and [`Assignment::open_or_retry_later`].
    pub async fn reopen(self: &Arc<Self>, region: &RegionInfo) -> Result<(), JavaException> {
        let begun = self.env.clock.monotonic();
        self.instruments.record_reopening();
        let region = std::slice::from_ref(region);
        let reopened = match self.close(region).await {
            Ok(()) => self.open_or_retry_later(region).await,
            failed => failed,
        };
        let is_open = reopened.is_ok() && matches!(self.state(&region[0]), Some(RegionState::Open(_)));
        self.instruments.record_reopened(is_open, self.env.clock.monotonic().saturating_sub(begun));
        reopened
    }

    /// Closes a region and opens it on `target`, or on another server if `target` dies. Nothing
    /// changes if the region is open on `target`: an earlier move may have had the same target.
    ///
    /// # Errors
    /// As for [`Assignment::close`] and [`Assignment::open_or_retry_later`].
    pub async fn move_to(
        self: &Arc<Self>,
        region: &RegionInfo,
        target: &ServerName,
    ) -> Result<(), JavaException> {
        if self.state(region) == Some(RegionState::Open(target.clone())) {
            return Ok(());
        }
        let region = std::slice::from_ref(region);
        self.close_toward(region, Some(target)).await?;
        let is_closed = |state: &RegionState| *state == RegionState::Closed;
        if self.servers.is_live(target) && self.begin_open_at(target, region, &is_closed).await.is_ok() {
            self.wait_while_opening(region).await;
        }
        self.open_or_retry_later(region).await
    }

    /// Marks all regions of a server that has died. Its recovery opens them elsewhere.
    pub(crate) fn mark_crashed(&self, server: &ServerName) {
        debug_assert!(!self.servers.is_live(server), "a live server keeps its regions");
        let now = self.env.clock.monotonic();
        for tracked in self.lock().values_mut() {
            if tracked.state.server() == Some(server) {
                tracked.state = RegionState::Crashed(server.clone());
                tracked.since = now;
            }
        }
        self.changed.notify_waiters();
    }

    /// Waits until the location of `hbase:meta` that the previous master stored is known.
    pub(crate) async fn meta_known(&self) {
        self.wait_until(|| self.state(&RegionInfo::meta()).is_some()).await;
    }

    /// The regions that a dead server had and that no living server has been ordered to open.
    pub fn crashed_regions(&self, server: &ServerName) -> Vec<RegionInfo> {
        let crashed = RegionState::Crashed(server.clone());
        let states = self.lock();
        let regions = states.values().filter(|tracked| tracked.state == crashed);
        let mut regions: Vec<RegionInfo> = regions.map(|tracked| tracked.region.clone()).collect();
        regions.sort_by(|one, other| (&one.table, &one.start_key).cmp(&(&other.table, &other.start_key)));
        regions
    }

    /// Gives the order to open each of `regions` that `server` had when it died. Regions that were
    /// merged or deleted since are unknown, and stay so.
    ///
    /// # Errors
    /// The error of `hbase:meta`.
    pub(crate) async fn begin_recovery(
        self: &Arc<Self>,
        server: &ServerName,
        regions: &[RegionInfo],
    ) -> Result<(), JavaException> {
        let crashed = RegionState::Crashed(server.clone());
        self.begin_open_from(regions, |state| *state == crashed).await
    }

    /// Updates the states after the split of `parent` into `daughters` was written to `hbase:meta`.
    /// Daughters that are already known keep their state.
    pub fn apply_split(&self, parent: &RegionInfo, daughters: &[RegionInfo; 2]) {
        let parent = RegionInfo { split: true, offline: true, ..parent.clone() };
        self.add_new(daughters);
        self.add_from_meta(parent);
        self.changed.notify_waiters();
    }

    /// Updates the states after the merge of `parents` into `merged` was written to `hbase:meta`.
    /// If `merged` is already known, it keeps its state.
    pub fn apply_merge(&self, parents: &[RegionInfo], merged: &RegionInfo) {
        debug_assert!(!parents.contains(merged), "the result of a merge is a new region");
        debug_assert!(
            !parents.iter().any(|parent| matches!(self.state(parent), Some(RegionState::Open(_)))),
            "the parents of a merge are closed before they are forgotten"
        );
        self.add_new(std::slice::from_ref(merged));
        self.forget_regions(parents);
        self.changed.notify_waiters();
    }

    fn add_new(&self, regions: &[RegionInfo]) {
        let since = self.env.clock.monotonic();
        let mut states = self.lock();
        for region in regions {
            let new = || TrackedRegion::new(region.clone(), RegionState::Closed, since);
            states.entry(region.encoded_name()).or_insert_with(new);
        }
    }

    /// Returns when none of `regions` is opening, also according to `hbase:meta`. Success means
    /// that each region was opened; another task may have closed it again.
    ///
    /// # Errors
    /// An `IOException` that names a region that failed to open.
    pub async fn wait_for_open(&self, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.wait_while_opening(regions).await;
        match regions.iter().find(|region| self.state(region) == Some(RegionState::FailedOpen)) {
            None => Ok(()),
            Some(failed) => {
                let reason = self.failure(failed).map_or(String::new(), |failure| failure.reason);
                let name = failed.name();
                Err(JavaException::io(format!("region {} cannot be opened: {reason}", name.escape_ascii())))
            }
        }
    }

    /// Returns when none of `regions` is opening or waits for the recovery of its server.
    pub(crate) async fn wait_while_opening(&self, regions: &[RegionInfo]) {
        let is_opening =
            |region| matches!(self.state(region), Some(RegionState::Opening(_) | RegionState::Crashed(_)));
        self.wait_until(|| !regions.iter().any(is_opening)).await;
    }

    /// Returns when `region` is not closing.
    pub(crate) async fn wait_while_closing(&self, region: &RegionInfo) {
        self.wait_until(|| !self.is_closing(region)).await;
    }

    async fn wait_until(&self, done: impl Fn() -> bool) {
        loop {
            // Subscribe before `done` is evaluated, so that no change in between is missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if done() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no other task changes the states of these regions.
    async fn lock_transitions(&self, regions: &[RegionInfo]) -> Vec<OwnedMutexGuard<()>> {
        let mut locks: Vec<(String, Arc<AsyncMutex<()>>)> = {
            let states = self.lock();
            let known = regions.iter().filter_map(|region| {
                let encoded = region.encoded_name();
                let transition = states.get(&encoded)?.transition.clone();
                Some((encoded, transition))
            });
            known.collect()
        };
        // All tasks lock in the same order.
        locks.sort_by(|(one, _), (other, _)| one.cmp(other));
        locks.dedup_by(|(one, _), (other, _)| one == other);
        let mut held = Vec::with_capacity(locks.len());
        for (_, lock) in locks {
            held.push(lock.lock_owned().await);
        }
        held
    }

    /// Gives those of `regions` whose state `is_expected` accepts the state `new` and the number of
    /// an order to the server of `new`.
    ///
    /// # Errors
    /// An `IOException` if that server is not live. Nothing was changed then.
    fn begin_change(
        &self,
        regions: &[RegionInfo],
        new: &RegionState,
        is_expected: impl Fn(&RegionState) -> bool,
    ) -> Result<Vec<Change>, JavaException> {
        let now = self.env.clock.monotonic();
        let server = new.server().expect("an order goes to a server");
        let mut states = self.lock();
        // If the server dies after this check, `mark_crashed` finds the new state.
        if !self.servers.is_live(server) {
            return Err(JavaException::io(format!("{server} is not live")));
        }
        let mut changed = Vec::new();
        for region in regions {
            let Some(tracked) = states.get_mut(&region.encoded_name()) else { continue };
            if !is_expected(&tracked.state) {
                continue;
            }
            let order = self.next_order();
            debug_assert!(order > tracked.order, "the numbers of orders grow");
            let took = now.saturating_sub(tracked.since);
            self.record_transition(&tracked.state, new, took);
            let before = std::mem::replace(&mut tracked.state, new.clone());
            (tracked.order, tracked.since) = (order, now);
            tracked.last_address = Some((server.host.clone(), server.port));
            changed.push(Change { region: tracked.region.clone(), before, order });
        }
        drop(states);
        self.changed.notify_waiters();
        Ok(changed)
    }

    /// Takes changes back that could not be recorded. A region whose server died meanwhile stays
    /// with its recovery.
    fn undo(&self, changed: &[Change], new: &RegionState) {
        let mut states = self.lock();
        for change in changed {
            if let Some(tracked) = states.get_mut(&change.region.encoded_name())
                && tracked.order == change.order
                && tracked.state == *new
            {
                tracked.state = change.before.clone();
            }
        }
        drop(states);
        self.changed.notify_waiters();
    }

    fn set_states(&self, regions: &[RegionInfo], state: &RegionState) {
        let now = self.env.clock.monotonic();
        let mut states = self.lock();
        for region in regions {
            let tracked = states
                .entry(region.encoded_name())
                .or_insert_with(|| TrackedRegion::new(region.clone(), RegionState::Closed, now));
            self.enter(tracked, state, now);
        }
        drop(states);
        self.changed.notify_waiters();
    }

    /// Gives a region a new state. `tracked` is borrowed from the locked states.
    fn enter(&self, tracked: &mut TrackedRegion, state: &RegionState, now: Duration) {
        self.record_transition(&tracked.state, state, now.saturating_sub(tracked.since));
        (tracked.state, tracked.since) = (state.clone(), now);
        if !matches!(state, RegionState::Opening(_) | RegionState::FailedOpen) {
            tracked.failure = None;
        }
    }

    /// Counts a change from the state `before`, which lasted for `took`, to `state`.
    fn record_transition(&self, before: &RegionState, state: &RegionState, took: Duration) {
        match (before, state) {
            (RegionState::Opening(_), RegionState::Open(_)) => self.instruments.record_opened(true, took),
            (RegionState::Opening(_), RegionState::FailedOpen) => self.instruments.record_opened(false, took),
            (_, RegionState::Opening(_)) => self.instruments.record_opening(),
            (RegionState::Closing(_), RegionState::Closed) => self.instruments.record_closed(took),
            (_, RegionState::Closing(_)) => self.instruments.record_closing(),
            _ => {}
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, TrackedRegion>> {
        self.states.lock().expect("no holder of this lock panics")
    }
}

/// A region that was given a new state and order.
struct Change {
    region: RegionInfo,
    before: RegionState,
    order: i64,
}
