//! The reports of servers about regions.

use cell::region::{RegionInfo, ServerName};
use proto::exception::{JavaException, class};
use proto::region_state_transition::TransitionCode;
use tracing::info;
use wire::meta::MetaRegionState;

use super::{Assignment, RegionState};

/// What a server reports about regions.
pub struct Report<'a> {
    /// The server.
    pub server: &'a ServerName,
    /// What happened.
    pub code: TransitionCode,
    /// The number of the order that this answers; not positive if there was none.
    pub order: i64,
    /// The open sequence id of an opened region.
    pub open_seq_num: u64,
    /// Why a region could not be opened.
    pub failure: &'a str,
    /// Whether the region could not be opened because its files are damaged.
    pub is_damage: bool,
}

/// A region whose report is expected, and its state before the report.
struct Expected {
    region: RegionInfo,
    before: RegionState,
    order: i64,
}

impl Assignment {
    /// Processes a server's report about regions. Returns when `hbase:meta` has the reported
    /// states. A repeated report, and one about an order that was replaced, has no effect.
    ///
    /// # Errors
    /// `UnexpectedStateException` for a region that this server was not ordered to open or close.
    /// If `hbase:meta` cannot be written, its error; the server then repeats the report.
    pub async fn report(&self, report: &Report<'_>, regions: &[RegionInfo]) -> Result<(), JavaException> {
        let _transitions = self.lock_transitions(regions).await;
        let mut expected = Vec::with_capacity(regions.len());
        for region in regions {
            expected.extend(self.expected(report, region)?);
        }
        let regions: Vec<RegionInfo> = expected.iter().map(|expected| expected.region.clone()).collect();
        let Report { server, code, .. } = report;
        match code {
            TransitionCode::Opened => {
                self.meta.set_open(&regions, server, report.open_seq_num).await?;
                self.apply(&expected, &RegionState::Open((*server).clone()), report.open_seq_num);
                self.forget_if_dead(server);
            }
            TransitionCode::Closed => {
                // From now on the region needs no logs of dead servers.
                self.recoveries.record_closed(&regions).await?;
                self.meta.set_state(&regions, MetaRegionState::Closed).await?;
                self.apply(&expected, &RegionState::Closed, 0);
            }
            TransitionCode::FailedOpen => {
                self.meta.set_state(&regions, MetaRegionState::FailedOpen).await?;
                let opening = RegionState::Opening((*server).clone());
                let is_expected = |state: &RegionState| *state == opening;
                self.set_failed(&regions, report.failure, report.is_damage, is_expected);
            }
            other => {
                return Err(JavaException::unsupported(format!("region transition {}", other.as_str_name())));
            }
        }
        for region in &regions {
            info!(region = %region.encoded_name(), table = %region.table, %server, ?code, "region transition");
        }
        Ok(())
    }

    /// Sets the new state of regions, unless their server has died since the report was checked.
    fn apply(&self, expected: &[Expected], state: &RegionState, open_seq_num: u64) {
        let now = self.env.clock.monotonic();
        let mut states = self.lock();
        for Expected { region, before, order } in expected {
            // If the server dies after this check, `mark_crashed` finds the new state.
            if let Some(tracked) = states.get_mut(&region.encoded_name())
                && tracked.order == *order
                && tracked.state == *before
            {
                self.enter(tracked, state, now);
                tracked.open_seq_num = open_seq_num;
            }
        }
        drop(states);
        self.changed.notify_waiters();
    }

    /// Forgets the location of `hbase:meta` and the connections if `server` has died while a report
    /// of it was processed: the report may have stored them after they had been forgotten.
    fn forget_if_dead(&self, server: &ServerName) {
        if !self.servers.is_live(server) {
            self.meta.location().forget(server);
            self.connections.forget(server);
        }
    }

    /// The region as the master knows it, if the report is expected. `None` if the report was
    /// processed before, or is about an order that was replaced.
    fn expected(&self, report: &Report<'_>, region: &RegionInfo) -> Result<Option<Expected>, JavaException> {
        let (encoded, Report { server, code, .. }) = (region.encoded_name(), report);
        let unexpected = |message: String| Err(JavaException::new(class::UNEXPECTED_STATE, message));
        let states = self.lock();
        let Some(tracked) = states.get(&encoded) else {
            return unexpected(format!(
                "Unknown region {encoded} reported as {} by {server}",
                code.as_str_name()
            ));
        };
        let state = &tracked.state;
        match (code, state) {
            (TransitionCode::Opened | TransitionCode::FailedOpen, RegionState::Opening(by))
            | (TransitionCode::Closed, RegionState::Closing(by))
                if by == *server =>
            {
                let is_current = report.order <= 0 || report.order == tracked.order;
                let expected = || Expected {
                    region: tracked.region.clone(),
                    before: state.clone(),
                    order: tracked.order,
                };
                Ok(is_current.then(expected))
            }
            // The answer to an order that was replaced. The server also answers the newer order.
            (_, RegionState::Opening(by) | RegionState::Closing(by))
                if by == *server && report.order > 0 && report.order < tracked.order =>
            {
                Ok(None)
            }
            (TransitionCode::Opened, RegionState::Open(by)) if by == *server => Ok(None),
            (TransitionCode::FailedOpen, RegionState::FailedOpen)
            | (TransitionCode::Closed, RegionState::Closed) => Ok(None),
            _ => unexpected(format!(
                "Unexpected report {} by {server}: region {encoded} is {state}",
                code.as_str_name()
            )),
        }
    }

    /// The regions in a server's load that need no logs of dead servers any more.
    pub(crate) fn flushed_regions(&self, server: &ServerName, load: &proto::ServerLoad) -> Vec<String> {
        let open = RegionState::Open(server.clone());
        let states = self.lock();
        let flushed = load.region_loads.iter().filter_map(|load| {
            let encoded = wire::convert::specified_region(&load.region_specifier)?;
            let tracked = states.get(encoded)?;
            // A late report may be about an earlier opening of the region on this server.
            let is_current = tracked.state == open
                && load.grampus_open_seq_num.is_some_and(|seq_num| seq_num == tracked.open_seq_num);
            (is_current && !load.grampus_needs_dead_logs()).then(|| encoded.to_string())
        });
        flushed.collect()
    }
}
