//! Which server serves which region.
//!
//! The master asks a server to open or close regions (`AdminService.ExecuteProcedures`); the server answers at once, does
//! it, and reports each region (`RegionServerStatusService.ReportRegionStateTransition`). The report is written to
//! `hbase:meta` before it is answered, and only then those who wait for the region go on.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::Clock;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use proto::region_state_transition::TransitionCode;
use tokio::sync::Notify;
use tracing::{error, info};
use wire::exception::{JavaException, class};
use wire::meta::RegionStateText;

use crate::connections::Connections;
use crate::instruments::AssignmentInstruments;
use crate::meta::MetaTable;
use crate::servers::Servers;

/// The state of a region as the master knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionState {
    /// Not served and not asked for.
    Closed,
    /// Asked to be opened there.
    Opening(ServerName),
    /// Served there.
    Open(ServerName),
    /// Asked to be closed there.
    Closing(ServerName),
    /// It could not be opened. It is retried with a growing pause.
    FailedOpen,
    /// Split into daughters, which are served in its place.
    Split,
}

impl RegionState {
    /// Whether it stays so until somebody wants it otherwise.
    pub fn is_settled(&self) -> bool {
        matches!(self, RegionState::Open(_) | RegionState::Closed | RegionState::Split)
    }
}

impl Known {
    fn shown(&self) -> (RegionInfo, RegionState) {
        (self.region.clone(), self.state.clone())
    }
}

impl fmt::Display for RegionState {
    /// The name that HBase's states have, which its messages show.
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

/// What the master knows of all regions.
pub struct Assignment {
    servers: Arc<Servers>,
    connections: Arc<dyn Connections>,
    meta: Arc<MetaTable>,
    states: Mutex<HashMap<String, Known>>,
    changed: Notify,
    clock: Arc<dyn Clock>,
    instruments: Arc<AssignmentInstruments>,
}

/// A region.
struct Known {
    region: RegionInfo,
    state: RegionState,
    // Since when it is in this state.
    since: Duration,
    // The last failure to open it, until it is open or closed.
    failure: Option<Failure>,
}

/// Why a region could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason.
    pub reason: String,
    /// Attempts that failed, one after the other.
    pub attempts: u32,
    /// Whether files of the region are damaged, so that another attempt alone will not help.
    pub is_damage: bool,
}

impl Failure {
    /// The pause before the next attempt.
    fn pause(&self) -> Duration {
        RETRY_PAUSE_MIN.saturating_mul(1 << self.attempts.saturating_sub(1).min(16)).min(RETRY_PAUSE_MAX)
    }
}

/// The pause after the first failure to open a region; it doubles with each further one.
const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause between two attempts to open a region.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(60);

impl Assignment {
    /// Nothing is assigned yet.
    pub fn new(
        servers: Arc<Servers>,
        connections: Arc<dyn Connections>,
        meta: Arc<MetaTable>,
        (clock, instruments): (Arc<dyn Clock>, Arc<AssignmentInstruments>),
    ) -> Assignment {
        let (states, changed) = (Mutex::default(), Notify::new());
        Assignment { servers, connections, meta, states, changed, clock, instruments }
    }

    /// Opens `regions` and returns when all are open and `hbase:meta` says so.
    ///
    /// # Errors
    /// The exception of a server that cannot be asked, or an `IOException` that names a region that failed to open.
    pub async fn open(&self, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.begin_open(regions).await?;
        self.wait_for_open(regions).await
    }

    /// The same, but a region that cannot be opened keeps nothing waiting: its failure is logged and shown, and it is
    /// retried by [`Assignment::retry_failed`].
    ///
    /// # Errors
    /// The exception of a server that cannot be asked.
    pub async fn open_or_retry_later(&self, regions: &[RegionInfo]) -> Result<(), JavaException> {
        self.begin_open(regions).await?;
        self.wait_while_opening(regions).await;
        Ok(())
    }

    /// Starts to open the regions that failed to open, of tables that are `wanted`, if their pauses have passed.
    pub async fn retry_failed(&self, wanted: impl Fn(&TableName) -> bool) {
        let now = self.clock.monotonic();
        let is_due = |known: &Known| {
            let pause = known.failure.as_ref().map_or(RETRY_PAUSE_MIN, Failure::pause);
            known.state == RegionState::FailedOpen
                && now.saturating_sub(known.since) >= pause
                && wanted(&known.region.table)
        };
        let due: Vec<RegionInfo> =
            self.lock().values().filter(|known| is_due(known)).map(|known| known.region.clone()).collect();
        for region in due {
            let server = self.servers.pick().await;
            // A procedure may have closed it since. Once it is opening, a procedure that closes it waits.
            if !self.claim_failed(&region, &server) {
                continue;
            }
            let one = std::slice::from_ref(&region);
            let begun = match self.meta.set_opening(one, &server).await {
                Ok(()) => self.ask_to_open(&server, one).await,
                failed => failed,
            };
            if let Err(error) = begun {
                self.set_failed(one, &error.to_string(), false);
            }
        }
    }

    /// Whether the region had failed to open; it is opening on `server` now.
    fn claim_failed(&self, region: &RegionInfo, server: &ServerName) -> bool {
        let now = self.clock.monotonic();
        let mut states = self.lock();
        let Some(known) = states.get_mut(&region.encoded_name()) else { return false };
        if known.state != RegionState::FailedOpen {
            return false;
        }
        known.state = RegionState::Opening(server.clone());
        known.since = now;
        self.instruments.note_opening();
        true
    }

    /// Notes that regions could not be opened, and why.
    pub(crate) fn set_failed(&self, regions: &[RegionInfo], reason: &str, is_damage: bool) {
        self.set_states(regions, &RegionState::FailedOpen);
        let mut states = self.lock();
        for region in regions {
            let Some(known) = states.get_mut(&region.encoded_name()) else { continue };
            let before = known.failure.take();
            let attempts = before.as_ref().map_or(0, |failure| failure.attempts) + 1;
            // Of the same failure again and again the first one is enough.
            if before.is_none_or(|before| before.reason != reason) {
                error!(
                    region = %region.encoded_name(), table = %region.table, reason,
                    "region cannot be opened; it is retried, and other regions are served"
                );
            }
            known.failure = Some(Failure { reason: reason.to_string(), attempts, is_damage });
        }
    }

    /// Why a region could not be opened, if it is closed for that reason.
    pub fn failure(&self, region: &RegionInfo) -> Option<Failure> {
        let states = self.lock();
        states.get(&region.encoded_name()).and_then(|known| known.failure.clone())
    }

    /// The regions that could not be opened, in the order of tables and keys.
    pub fn failures(&self) -> Vec<(RegionInfo, Failure)> {
        let states = self.lock();
        let failed = states.values().filter_map(|known| Some((known.region.clone(), known.failure.clone()?)));
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

    /// Requests that `regions` are opened. A caller that closes them waits until they are open.
    ///
    /// # Errors
    /// The exception of a server that cannot be asked.
    pub async fn begin_open(&self, regions: &[RegionInfo]) -> Result<(), JavaException> {
        for (server, regions) in self.place(regions).await {
            self.begin_open_at(&server, &regions).await?;
        }
        Ok(())
    }

    /// The same, but regions for which it cannot be done are retried by [`Assignment::retry_failed`].
    pub(crate) async fn begin_open_or_retry_later(&self, regions: &[RegionInfo]) {
        for (server, regions) in self.place(regions).await {
            if let Err(error) = self.begin_open_at(&server, &regions).await {
                self.set_failed(&regions, &error.to_string(), false);
            }
        }
    }

    /// The servers for those of `regions` that are not open.
    async fn place(&self, regions: &[RegionInfo]) -> HashMap<ServerName, Vec<RegionInfo>> {
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
        self.ask_to_open(server, regions).await
    }

    /// Closes `regions` and returns when none is served any more and `hbase:meta` says so.
    ///
    /// # Errors
    /// The exception of a server that cannot be asked.
    pub async fn close(&self, regions: &[RegionInfo]) -> Result<(), JavaException> {
        // A server has nothing to close while it opens a region, and would report it open after that.
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
                    self.meta.set_state(std::slice::from_ref(region), RegionStateText::Closed).await?;
                }
                Some(RegionState::Split) => {}
            }
        }
        for (server, regions) in by_server {
            self.meta.set_state(&regions, RegionStateText::Closing).await?;
            self.set_states(&regions, &RegionState::Closing(server.clone()));
            self.ask_to_close(&server, &regions).await?;
        }
        let is_closed = |region| matches!(self.state(region), Some(RegionState::Closed | RegionState::Split));
        self.wait_until(|| regions.iter().all(is_closed)).await;
        Ok(())
    }

    /// Forgets regions of a table that is gone.
    pub fn forget(&self, table: &TableName) {
        self.lock().retain(|_, known| &known.region.table != table);
    }

    /// Forgets regions that are gone.
    pub fn forget_regions(&self, regions: &[RegionInfo]) {
        let mut states = self.lock();
        for region in regions {
            states.remove(&region.encoded_name());
        }
    }

    /// Closes a region and opens it again, so that it takes over what its table's descriptor says now. Returns when it
    /// is open, or has failed to open and is retried by [`Assignment::retry_failed`].
    ///
    /// # Errors
    /// As [`Assignment::close`] and [`Assignment::open_or_retry_later`].
    pub async fn reopen(&self, region: &RegionInfo) -> Result<(), JavaException> {
        let begun = self.clock.monotonic();
        self.instruments.note_reopening();
        let region = std::slice::from_ref(region);
        let reopened = match self.close(region).await {
            Ok(()) => self.open_or_retry_later(region).await,
            failed => failed,
        };
        let is_open = reopened.is_ok() && matches!(self.state(&region[0]), Some(RegionState::Open(_)));
        self.instruments.note_reopened(is_open, self.clock.monotonic().saturating_sub(begun));
        reopened
    }

    /// Takes a region over as `hbase:meta` has it: known, not open.
    pub fn learn(&self, region: RegionInfo) {
        let state = if region.split { RegionState::Split } else { RegionState::Closed };
        let since = self.clock.monotonic();
        self.lock().insert(region.encoded_name(), Known { region, state, since, failure: None });
    }

    /// `parent` was split into `daughters`, as `hbase:meta` says. Daughters that are on their way already stay so.
    pub fn take_split(&self, parent: &RegionInfo, daughters: &[RegionInfo; 2]) {
        let parent = RegionInfo { split: true, offline: true, ..parent.clone() };
        self.take_new(daughters);
        self.learn(parent);
        self.changed.notify_waiters();
    }

    /// `parents` were merged into `merged`, as `hbase:meta` says. One that is on its way already stays so.
    pub fn take_merged(&self, parents: &[RegionInfo], merged: &RegionInfo) {
        self.take_new(std::slice::from_ref(merged));
        self.forget_regions(parents);
        self.changed.notify_waiters();
    }

    fn take_new(&self, regions: &[RegionInfo]) {
        let since = self.clock.monotonic();
        let mut states = self.lock();
        for region in regions {
            let new = || Known { region: region.clone(), state: RegionState::Closed, since, failure: None };
            states.entry(region.encoded_name()).or_insert_with(new);
        }
    }

    /// The region of an encoded name, and its state.
    pub fn find(&self, encoded: &str) -> Option<(RegionInfo, RegionState)> {
        self.lock().get(encoded).map(Known::shown)
    }

    /// The state of a region; `None` if it is not known.
    pub fn state(&self, region: &RegionInfo) -> Option<RegionState> {
        self.lock().get(&region.encoded_name()).map(|known| known.state.clone())
    }

    /// All regions of `table` in the order of their keys, and their states; without those that were split.
    pub fn regions_of(&self, table: &TableName) -> Vec<(RegionInfo, RegionState)> {
        let mut regions = self.all();
        regions.retain(|(region, state)| &region.table == table && *state != RegionState::Split);
        regions.sort_by(|(left, _), (right, _)| {
            (&left.start_key, left.region_id).cmp(&(&right.start_key, right.region_id))
        });
        regions
    }

    /// The regions of `table` that were split and have rows in `hbase:meta` still.
    pub fn split_parents_of(&self, table: &TableName) -> Vec<RegionInfo> {
        let mut parents = self.all();
        parents.retain(|(region, state)| &region.table == table && *state == RegionState::Split);
        parents.sort_by_key(|(region, _)| region.region_id);
        parents.into_iter().map(|(region, _)| region).collect()
    }

    /// All regions of `table` that have rows in `hbase:meta`.
    pub fn rows_of(&self, table: &TableName) -> Vec<RegionInfo> {
        let regions = self.regions_of(table).into_iter().map(|(region, _)| region);
        regions.chain(self.split_parents_of(table)).collect()
    }

    /// All regions and their states.
    pub fn all(&self) -> Vec<(RegionInfo, RegionState)> {
        self.lock().values().map(Known::shown).collect()
    }

    /// For how long the regions that are on their way have been in their states.
    pub fn in_transition(&self) -> Vec<Duration> {
        let now = self.clock.monotonic();
        let states = self.lock();
        let moving = states.values().filter(|known| !known.state.is_settled());
        moving.map(|known| now.saturating_sub(known.since)).collect()
    }

    /// The regions that are on their way, their states, and for how long these have been so; the longest first.
    pub fn moving(&self) -> Vec<(RegionInfo, RegionState, Duration)> {
        let now = self.clock.monotonic();
        let states = self.lock();
        let moving = states.values().filter(|known| !known.state.is_settled());
        let since = |known: &Known| now.saturating_sub(known.since);
        let mut moving: Vec<_> =
            moving.map(|known| (known.region.clone(), known.state.clone(), since(known))).collect();
        moving.sort_by_key(|(_, _, took)| std::cmp::Reverse(*took));
        moving
    }

    /// How many regions are known, without those that were split, and how many of them are on their way.
    pub fn counts(&self) -> (usize, usize) {
        let states = self.lock();
        let there = states.values().filter(|known| known.state != RegionState::Split).count();
        (there, states.values().filter(|known| !known.state.is_settled()).count())
    }

    /// A server's report of what became of regions. Returns when `hbase:meta` says it too. A report that is repeated
    /// changes nothing.
    ///
    /// # Errors
    /// `UnexpectedStateException` for a region that this server was not asked to open or close; what `hbase:meta`
    /// answered, then the server reports again.
    pub async fn report(
        &self,
        server: &ServerName,
        code: TransitionCode,
        regions: &[RegionInfo],
        (open_seq_num, failure): (u64, (&str, bool)),
    ) -> Result<(), JavaException> {
        let mut expected = Vec::with_capacity(regions.len());
        for region in regions {
            expected.extend(self.expected(server, code, region)?);
        }
        let regions = &expected[..];
        let state = match code {
            TransitionCode::Opened => {
                self.meta.set_open(regions, server, open_seq_num).await?;
                RegionState::Open(server.clone())
            }
            TransitionCode::Closed => {
                self.meta.set_state(regions, RegionStateText::Closed).await?;
                RegionState::Closed
            }
            TransitionCode::FailedOpen => {
                self.meta.set_state(regions, RegionStateText::FailedOpen).await?;
                self.set_failed(regions, failure.0, failure.1);
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

    /// The region as it is known, if the report about it is expected; `None` if it was reported before.
    fn expected(
        &self,
        server: &ServerName,
        code: TransitionCode,
        region: &RegionInfo,
    ) -> Result<Option<RegionInfo>, JavaException> {
        let encoded = region.encoded_name();
        let unexpected = |message: String| Err(JavaException::new(class::UNEXPECTED_STATE, message));
        let Some((known, state)) = self.find(&encoded) else {
            return unexpected(format!(
                "No known region {encoded} reported {} by {server}",
                code.as_str_name()
            ));
        };
        match (code, &state) {
            (TransitionCode::Opened | TransitionCode::FailedOpen, RegionState::Opening(by))
            | (TransitionCode::Closed, RegionState::Closing(by))
                if by == server =>
            {
                Ok(Some(known))
            }
            (TransitionCode::Opened, RegionState::Open(by)) if by == server => Ok(None),
            (TransitionCode::FailedOpen, RegionState::FailedOpen)
            | (TransitionCode::Closed, RegionState::Closed) => Ok(None),
            _ => unexpected(format!(
                "Reported {} by {server}, but region {encoded} is {state} and that was not asked of it",
                code.as_str_name()
            )),
        }
    }

    async fn ask_to_open(&self, server: &ServerName, regions: &[RegionInfo]) -> Result<(), JavaException> {
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

    async fn ask_to_close(&self, server: &ServerName, regions: &[RegionInfo]) -> Result<(), JavaException> {
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

    /// Returns when none of `regions` is on its way any more and `hbase:meta` says so: all were opened, though some
    /// may have been closed again.
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

    /// Returns when none of `regions` is being opened.
    pub(crate) async fn wait_while_opening(&self, regions: &[RegionInfo]) {
        let is_opening = |region| matches!(self.state(region), Some(RegionState::Opening(_)));
        self.wait_until(|| !regions.iter().any(is_opening)).await;
    }

    async fn wait_until(&self, done: impl Fn() -> bool) {
        loop {
            // Registered before the look, so that no change between them is missed.
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
            let known = Known { region: region.clone(), state: state.clone(), since: now, failure: None };
            if let Some(before) = states.insert(region.encoded_name(), known) {
                self.note(&before.state, state, now.saturating_sub(before.since));
                if matches!(state, RegionState::Opening(_) | RegionState::FailedOpen)
                    && let Some(known) = states.get_mut(&region.encoded_name())
                {
                    known.failure = before.failure;
                }
            }
        }
        drop(states);
        self.changed.notify_waiters();
    }

    /// Counts a change of state; the state before was `before` for so long.
    fn note(&self, before: &RegionState, state: &RegionState, took: Duration) {
        match (before, state) {
            (RegionState::Opening(_), RegionState::Open(_)) => self.instruments.note_opened(true, took),
            (RegionState::Opening(_), RegionState::FailedOpen) => self.instruments.note_opened(false, took),
            (_, RegionState::Opening(_)) => self.instruments.note_opening(),
            (RegionState::Closing(_), RegionState::Closed) => self.instruments.note_closed(took),
            (_, RegionState::Closing(_)) => self.instruments.note_closing(),
            _ => {}
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.states.lock().expect("no holder of this lock panics")
    }
}
