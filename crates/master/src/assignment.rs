//! The assignment of regions to servers.
//!
//! The master requests that a server open or close regions (`AdminService.ExecuteProcedures`). The
//! server responds immediately, does the work, and then reports each region
//! (`RegionServerStatusService.ReportRegionStateTransition`). The master writes the report to
//! `hbase:meta` before it responds, and only then wakes the tasks that wait for the region.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::Clock;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use proto::exception::{JavaException, class};
use proto::region_state_transition::TransitionCode;
use tokio::sync::Notify;
use tracing::{error, info};
use wire::meta::MetaRegionState;

use crate::connections::Connections;
use crate::instruments::AssignmentInstruments;
use crate::meta::MetaTable;
use crate::servers::Servers;

/// The state of a region as the master knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionState {
    /// Offline. No server was requested to open it.
    Closed,
    /// This server was requested to open it.
    Opening(ServerName),
    /// Online on this server.
    Open(ServerName),
    /// This server was requested to close it.
    Closing(ServerName),
    /// It could not be opened. The master retries with increasing pauses.
    FailedOpen,
    /// Split. Its daughters serve its rows.
    Split,
}

impl RegionState {
    /// Whether the region is not in transition: it keeps this state until a new request.
    pub fn is_settled(&self) -> bool {
        matches!(self, RegionState::Open(_) | RegionState::Closed | RegionState::Split)
    }
}

impl TrackedRegion {
    fn info_and_state(&self) -> (RegionInfo, RegionState) {
        (self.region.clone(), self.state.clone())
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
            RegionState::FailedOpen => "FAILED_OPEN",
            RegionState::Split => "SPLIT",
        })
    }
}

/// The states of all regions, and the requests that change them.
pub struct Assignment {
    servers: Arc<Servers>,
    connections: Arc<dyn Connections>,
    meta: Arc<MetaTable>,
    states: Mutex<HashMap<String, TrackedRegion>>,
    changed: Notify,
    clock: Arc<dyn Clock>,
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
}

/// Why a region could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error message.
    pub reason: String,
    /// Consecutive failed attempts.
    pub attempts: u32,
    /// Whether files of the region are damaged, so that another attempt alone will not help.
    pub is_damage: bool,
}

impl Failure {
    /// The pause before the next attempt.
    fn pause(&self) -> Duration {
        debug_assert!(self.attempts > 0, "a failure has at least one attempt");
        RETRY_PAUSE_MIN.saturating_mul(1 << self.attempts.saturating_sub(1).min(16)).min(RETRY_PAUSE_MAX)
    }
}

/// The pause after the first failure to open a region. It doubles with each further failure.
const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause between two attempts to open a region.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(60);

impl Assignment {
    /// Creates an assignment without regions.
    pub fn new(
        servers: Arc<Servers>,
        connections: Arc<dyn Connections>,
        meta: Arc<MetaTable>,
        (clock, instruments): (Arc<dyn Clock>, Arc<AssignmentInstruments>),
    ) -> Assignment {
        let (states, changed) = (Mutex::default(), Notify::new());
        Assignment { servers, connections, meta, states, changed, clock, instruments }
    }

    /// Opens regions. Returns when all of them are open, also according to `hbase:meta`.
    ///
    /// # Errors
    /// The exception of a server that cannot be reached, or an `IOException` that names a region
    /// that failed to open.
    pub async fn open(&self, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.begin_open(regions).await?;
        self.wait_for_open(regions).await
    }

    /// Like `open`, but a region that cannot be opened is not an error. Its failure is logged and
    /// shown on the status page, and [`Assignment::retry_failed`] retries it.
    ///
    /// # Errors
    /// The exception of a server that cannot be reached.
    pub async fn open_or_retry_later(&self, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.begin_open(regions).await?;
        self.wait_while_opening(regions).await;
        Ok(())
    }

    /// Retries the regions that failed to open, if their pauses have passed and `is_enabled`
    /// returns true for their tables.
    pub async fn retry_failed(&self, is_enabled: impl Fn(&TableName) -> bool) {
        let now = self.clock.monotonic();
        let is_due = |tracked: &TrackedRegion| {
            let pause = tracked.failure.as_ref().map_or(RETRY_PAUSE_MIN, Failure::pause);
            tracked.state == RegionState::FailedOpen
                && now.saturating_sub(tracked.since) >= pause
                && is_enabled(&tracked.region.table)
        };
        let due: Vec<RegionInfo> = self
            .lock()
            .values()
            .filter(|tracked| is_due(tracked))
            .map(|tracked| tracked.region.clone())
            .collect();
        for region in due {
            let server = self.servers.pick().await;
            // Meanwhile, a procedure may have closed the region; then it is not retried. Once the
            // region is opening, a procedure that closes it waits until it has been opened.
            if !self.begin_retry(&region, &server) {
                continue;
            }
            let one = std::slice::from_ref(&region);
            let begun = match self.meta.set_opening(one, &server).await {
                Ok(()) => self.request_open(&server, one).await,
                failed => failed,
            };
            if let Err(error) = begun {
                self.set_failed(one, &error.to_string(), false);
            }
        }
    }

    /// If the region has failed to open, changes its state to opening on `server`. Returns whether
    /// it did.
    fn begin_retry(&self, region: &RegionInfo, server: &ServerName) -> bool {
        let now = self.clock.monotonic();
        let mut states = self.lock();
        let Some(tracked) = states.get_mut(&region.encoded_name()) else { return false };
        if tracked.state != RegionState::FailedOpen {
            return false;
        }
        tracked.state = RegionState::Opening(server.clone());
        tracked.since = now;
        self.instruments.record_opening();
        true
    }

    /// Records that regions could not be opened, and why.
    pub(crate) fn set_failed(&self, regions: &[RegionInfo], reason: &str, is_damage: bool) {
        self.set_states(regions, &RegionState::FailedOpen);
        let mut states = self.lock();
        for region in regions {
            let Some(tracked) = states.get_mut(&region.encoded_name()) else { continue };
            let before = tracked.failure.take();
            let attempts = before.as_ref().map_or(0, |failure| failure.attempts) + 1;
            // Repeated failures with the same reason are logged only once.
            if before.is_none_or(|before| before.reason != reason) {
                error!(
                    region = %region.encoded_name(), table = %region.table, reason,
                    "cannot open region; it is retried, and other regions are served"
                );
            }
            tracked.failure = Some(Failure { reason: reason.to_string(), attempts, is_damage });
        }
    }

    /// Why the last attempt to open a region failed. `None` if the region is open or closed.
    pub fn failure(&self, region: &RegionInfo) -> Option<Failure> {
        let states = self.lock();
        states.get(&region.encoded_name()).and_then(|tracked| tracked.failure.clone())
    }

    /// The regions that could not be opened, sorted by table and key.
    pub fn failures(&self) -> Vec<(RegionInfo, Failure)> {
        let states = self.lock();
        let failed =
            states.values().filter_map(|tracked| Some((tracked.region.clone(), tracked.failure.clone()?)));
        let mut failed: Vec<_> = failed.collect();
        failed.sort_by(|(one, _), (other, _)| {
            (&one.table, &one.start_key, one.region_id).cmp(&(
                &other.table,
                &other.start_key,
                other.region_id,
            ))
        });
        failed
    }

    /// Requests that `regions` be opened, and does not wait for them. [`Assignment::close`] waits
    /// for regions that are being opened.
    ///
    /// # Errors
    /// The exception of a server that cannot be reached.
    pub async fn begin_open(&self, regions: &[RegionInfo]) -> Result<(), JavaException> {
        for (server, regions) in self.assign_servers(regions).await {
            self.begin_open_at(&server, &regions).await?;
        }
        Ok(())
    }

    /// Like `begin_open`, but [`Assignment::retry_failed`] retries the regions for which the
    /// request fails.
    pub(crate) async fn begin_open_or_retry_later(&self, regions: &[RegionInfo]) {
        for (server, regions) in self.assign_servers(regions).await {
            if let Err(error) = self.begin_open_at(&server, &regions).await {
                self.set_failed(&regions, &error.to_string(), false);
            }
        }
    }

    /// Chooses a server for each of `regions` that is not open.
    async fn assign_servers(&self, regions: &[RegionInfo]) -> HashMap<ServerName, Vec<RegionInfo>> {
        let mut by_server: HashMap<ServerName, Vec<RegionInfo>> = HashMap::new();
        for region in regions {
            if !matches!(self.state(region), Some(RegionState::Open(_))) {
                by_server.entry(self.servers.pick().await).or_default().push(region.clone());
            }
        }
        by_server
    }

    async fn begin_open_at(&self, server: &ServerName, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.meta.set_opening(regions, server).await?;
        self.set_states(regions, &RegionState::Opening(server.clone()));
        self.request_open(server, regions).await
    }

    /// Closes regions. Returns when all of them are offline, also according to `hbase:meta`.
    ///
    /// # Errors
    /// The exception of a server that cannot be reached.
    pub async fn close(&self, regions: &[RegionInfo]) -> Result<(), JavaException> {
        // A server ignores a request to close a region that it is still opening, and would then
        // report the region as open.
        self.wait_while_opening(regions).await;
        let mut by_server: HashMap<ServerName, Vec<RegionInfo>> = HashMap::new();
        for region in regions {
            match self.state(region) {
                Some(
                    RegionState::Open(server) | RegionState::Closing(server) | RegionState::Opening(server),
                ) => {
                    by_server.entry(server).or_default().push(region.clone());
                }
                Some(RegionState::Closed | RegionState::FailedOpen) | None => {
                    self.set_states(std::slice::from_ref(region), &RegionState::Closed);
                    self.meta.set_state(std::slice::from_ref(region), MetaRegionState::Closed).await?;
                }
                Some(RegionState::Split) => {}
            }
        }
        for (server, regions) in by_server {
            self.meta.set_state(&regions, MetaRegionState::Closing).await?;
            self.set_states(&regions, &RegionState::Closing(server.clone()));
            self.request_close(&server, &regions).await?;
        }
        let is_closed = |region| matches!(self.state(region), Some(RegionState::Closed | RegionState::Split));
        self.wait_until(|| regions.iter().all(is_closed)).await;
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
    pub async fn reopen(&self, region: &RegionInfo) -> Result<(), JavaException> {
        let begun = self.clock.monotonic();
        self.instruments.record_reopening();
        let region = std::slice::from_ref(region);
        let reopened = match self.close(region).await {
            Ok(()) => self.open_or_retry_later(region).await,
            failed => failed,
        };
        let is_open = reopened.is_ok() && matches!(self.state(&region[0]), Some(RegionState::Open(_)));
        self.instruments.record_reopened(is_open, self.clock.monotonic().saturating_sub(begun));
        reopened
    }

    /// Adds a region that was read from `hbase:meta`, with the state closed or split.
    pub fn add_from_meta(&self, region: RegionInfo) {
        let state = if region.split { RegionState::Split } else { RegionState::Closed };
        let since = self.clock.monotonic();
        self.lock().insert(region.encoded_name(), TrackedRegion { region, state, since, failure: None });
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
        let since = self.clock.monotonic();
        let mut states = self.lock();
        for region in regions {
            let new =
                || TrackedRegion { region: region.clone(), state: RegionState::Closed, since, failure: None };
            states.entry(region.encoded_name()).or_insert_with(new);
        }
    }

    /// Finds a region and its state by encoded name.
    pub fn find(&self, encoded: &str) -> Option<(RegionInfo, RegionState)> {
        self.lock().get(encoded).map(TrackedRegion::info_and_state)
    }

    /// The state of a region; `None` if it is unknown.
    pub fn state(&self, region: &RegionInfo) -> Option<RegionState> {
        self.lock().get(&region.encoded_name()).map(|tracked| tracked.state.clone())
    }

    /// All regions of `table`, except split ones, with their states, sorted by key.
    pub fn regions_of(&self, table: &TableName) -> Vec<(RegionInfo, RegionState)> {
        let mut regions = self.all();
        regions.retain(|(region, state)| &region.table == table && *state != RegionState::Split);
        regions.sort_by(|(left, _), (right, _)| {
            (&left.start_key, left.region_id).cmp(&(&right.start_key, right.region_id))
        });
        regions
    }

    /// The split regions of `table` that still have rows in `hbase:meta`.
    pub fn split_parents_of(&self, table: &TableName) -> Vec<RegionInfo> {
        let mut parents = self.all();
        parents.retain(|(region, state)| &region.table == table && *state == RegionState::Split);
        parents.sort_by_key(|(region, _)| region.region_id);
        parents.into_iter().map(|(region, _)| region).collect()
    }

    /// All regions of `table` that have rows in `hbase:meta`.
    pub fn regions_in_meta(&self, table: &TableName) -> Vec<RegionInfo> {
        let regions = self.regions_of(table).into_iter().map(|(region, _)| region);
        regions.chain(self.split_parents_of(table)).collect()
    }

    /// All regions and their states.
    pub fn all(&self) -> Vec<(RegionInfo, RegionState)> {
        self.lock().values().map(TrackedRegion::info_and_state).collect()
    }

    /// How long each region in transition has been in its state.
    pub fn transition_times(&self) -> Vec<Duration> {
        let now = self.clock.monotonic();
        let states = self.lock();
        let moving = states.values().filter(|tracked| !tracked.state.is_settled());
        moving.map(|tracked| now.saturating_sub(tracked.since)).collect()
    }

    /// The regions in transition, each with its state and the time since it entered the state. The
    /// region with the longest time is first.
    pub fn regions_in_transition(&self) -> Vec<(RegionInfo, RegionState, Duration)> {
        let now = self.clock.monotonic();
        let states = self.lock();
        let moving = states.values().filter(|tracked| !tracked.state.is_settled());
        let time_in_state = |tracked: &TrackedRegion| now.saturating_sub(tracked.since);
        let mut moving: Vec<_> = moving
            .map(|tracked| (tracked.region.clone(), tracked.state.clone(), time_in_state(tracked)))
            .collect();
        moving.sort_by_key(|(_, _, time)| std::cmp::Reverse(*time));
        moving
    }

    /// The number of regions, except split ones, and the number of regions in transition.
    pub fn counts(&self) -> (usize, usize) {
        let states = self.lock();
        let unsplit = states.values().filter(|tracked| tracked.state != RegionState::Split).count();
        (unsplit, states.values().filter(|tracked| !tracked.state.is_settled()).count())
    }

    /// Processes a server's report about regions. Returns when `hbase:meta` has the reported
    /// states. A repeated report has no effect.
    ///
    /// # Errors
    /// `UnexpectedStateException` for a region that this server was not requested to open or close.
    /// If `hbase:meta` cannot be written, its error; the server then repeats the report.
    pub async fn report(
        &self,
        server: &ServerName,
        code: TransitionCode,
        regions: &[RegionInfo],
        (open_seq_num, (failure_reason, is_damage)): (u64, (&str, bool)),
    ) -> Result<(), JavaException> {
        let mut expected = Vec::with_capacity(regions.len());
        for region in regions {
            expected.extend(self.expected_region(server, code, region)?);
        }
        let regions = &expected[..];
        let state = match code {
            TransitionCode::Opened => {
                self.meta.set_open(regions, server, open_seq_num).await?;
                RegionState::Open(server.clone())
            }
            TransitionCode::Closed => {
                self.meta.set_state(regions, MetaRegionState::Closed).await?;
                RegionState::Closed
            }
            TransitionCode::FailedOpen => {
                self.meta.set_state(regions, MetaRegionState::FailedOpen).await?;
                self.set_failed(regions, failure_reason, is_damage);
                return Ok(());
            }
            other => {
                return Err(JavaException::unsupported(format!("region transition {}", other.as_str_name())));
            }
        };
        for region in regions {
            info!(region = %region.encoded_name(), table = %region.table, %server, ?code, "region transition");
        }
        self.set_states(regions, &state);
        Ok(())
    }

    /// The region as the master knows it, if the report is expected. `None` if the report was
    /// processed before.
    fn expected_region(
        &self,
        server: &ServerName,
        code: TransitionCode,
        region: &RegionInfo,
    ) -> Result<Option<RegionInfo>, JavaException> {
        let encoded = region.encoded_name();
        let unexpected = |message: String| Err(JavaException::new(class::UNEXPECTED_STATE, message));
        let Some((tracked, state)) = self.find(&encoded) else {
            return unexpected(format!(
                "Unknown region {encoded} reported as {} by {server}",
                code.as_str_name()
            ));
        };
        match (code, &state) {
            (TransitionCode::Opened | TransitionCode::FailedOpen, RegionState::Opening(by))
            | (TransitionCode::Closed, RegionState::Closing(by))
                if by == server =>
            {
                Ok(Some(tracked))
            }
            (TransitionCode::Opened, RegionState::Open(by)) if by == server => Ok(None),
            (TransitionCode::FailedOpen, RegionState::FailedOpen)
            | (TransitionCode::Closed, RegionState::Closed) => Ok(None),
            _ => unexpected(format!(
                "Unexpected report {} by {server}: region {encoded} is {state}",
                code.as_str_name()
            )),
        }
    }

    async fn request_open(&self, server: &ServerName, regions: &[RegionInfo]) -> Result<(), JavaException> {
        let open_info = regions
            .iter()
            .map(|region| proto::open_region_request::RegionOpenInfo {
                region: region.into(),
                ..proto::open_region_request::RegionOpenInfo::default()
            })
            .collect();
        let open = proto::OpenRegionRequest {
            open_info,
            server_start_code: Some(server.start_code),
            ..proto::OpenRegionRequest::default()
        };
        let request = proto::ExecuteProceduresRequest {
            open_region: vec![open],
            ..proto::ExecuteProceduresRequest::default()
        };
        self.connections.admin(server).execute_procedures(request).await.map(|_| ())
    }

    async fn request_close(&self, server: &ServerName, regions: &[RegionInfo]) -> Result<(), JavaException> {
        let close_region = regions
            .iter()
            .map(|region| proto::CloseRegionRequest {
                region: wire::convert::region_specifier(region),
                server_start_code: Some(server.start_code),
                ..proto::CloseRegionRequest::default()
            })
            .collect();
        let request =
            proto::ExecuteProceduresRequest { close_region, ..proto::ExecuteProceduresRequest::default() };
        self.connections.admin(server).execute_procedures(request).await.map(|_| ())
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

    /// Returns when none of `regions` is opening.
    pub(crate) async fn wait_while_opening(&self, regions: &[RegionInfo]) {
        let is_opening = |region| matches!(self.state(region), Some(RegionState::Opening(_)));
        self.wait_until(|| !regions.iter().any(is_opening)).await;
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

    fn set_states(&self, regions: &[RegionInfo], state: &RegionState) {
        let now = self.clock.monotonic();
        let mut states = self.lock();
        for region in regions {
            let tracked =
                TrackedRegion { region: region.clone(), state: state.clone(), since: now, failure: None };
            if let Some(before) = states.insert(region.encoded_name(), tracked) {
                self.record_transition(&before.state, state, now.saturating_sub(before.since));
                if matches!(state, RegionState::Opening(_) | RegionState::FailedOpen)
                    && let Some(tracked) = states.get_mut(&region.encoded_name())
                {
                    tracked.failure = before.failure;
                }
            }
        }
        drop(states);
        self.changed.notify_waiters();
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
