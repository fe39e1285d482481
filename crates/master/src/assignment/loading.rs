//! The states of regions when a master starts, from `hbase:meta`.

use std::sync::Arc;
use std::time::Duration;

use cell::region::{RegionInfo, ServerName};
use proto::exception::JavaException;
use tracing::warn;
use wire::meta::{MetaRegionState, MetaRow};

use super::{Assignment, RegionState, TrackedRegion};

/// The pause before another attempt to repeat an order.
const REPEAT_PAUSE: Duration = Duration::from_secs(1);

impl Assignment {
    /// Adds a new region, with the state closed or split.
    pub fn add_from_meta(&self, region: RegionInfo) {
        let state = if region.split { RegionState::Split } else { RegionState::Closed };
        let tracked = TrackedRegion::new(region, state, self.env.clock.monotonic());
        self.lock().insert(tracked.region.encoded_name(), tracked);
    }

    /// Adds a region with the state that its row records.
    pub(crate) fn add_row(&self, row: MetaRow) {
        let server = row.server_name();
        let recorded = match (row.is_split_parent(), row.state) {
            (true, _) => RegionState::Split,
            (false, Some(MetaRegionState::Opening)) => at(row.target, RegionState::Opening),
            (false, Some(MetaRegionState::Open)) => at(server.clone(), RegionState::Open),
            (false, Some(MetaRegionState::Closing)) => at(server.clone(), RegionState::Closing),
            _ => RegionState::Closed,
        };
        let mut tracked = TrackedRegion::new(row.region, recorded, self.env.clock.monotonic());
        tracked.open_seq_num = row.open_seq_num.and_then(|seq_num| u64::try_from(seq_num).ok()).unwrap_or(0);
        tracked.last_address = server.map(|server| (server.host, server.port));
        if let Some(mut tracked) = self.insert_if_live(tracked) {
            tracked.state = self.state_without_server(&tracked.state);
            self.lock().insert(tracked.region.encoded_name(), tracked);
        }
    }

    /// Adds a region, unless its state has a server that is not live. Then returns the region.
    fn insert_if_live(&self, tracked: TrackedRegion) -> Option<TrackedRegion> {
        let mut states = self.lock();
        // If the server dies after this check, `mark_crashed` finds the region.
        if tracked.state.server().is_some_and(|server| !self.servers.is_live(server)) {
            return Some(tracked);
        }
        states.insert(tracked.region.encoded_name(), tracked);
        None
    }

    /// The state of a region of a server that is not live: crashed if the server is being
    /// recovered. Otherwise closed, because nothing of the region is in logs. A recovery is
    /// announced in the step in which its server becomes dead, and does not end before all regions
    /// are loaded.
    fn state_without_server(&self, recorded: &RegionState) -> RegionState {
        match recorded.server() {
            Some(server) if self.recoveries.is_recovering(server) => RegionState::Crashed(server.clone()),
            _ => RegionState::Closed,
        }
    }

    /// Repeats the orders of the previous master that servers have not answered yet.
    ///
    /// # Errors
    /// As for [`Assignment::repeat_open`].
    pub(crate) async fn repeat_orders(self: &Arc<Self>) -> Result<(), JavaException> {
        for (region, state) in self.all() {
            match &state {
                RegionState::Opening(_) => self.repeat_open(&region).await?,
                RegionState::Closing(server) => {
                    let one = std::slice::from_ref(&region);
                    let _transitions = self.lock_transitions(one).await;
                    if let Ok(changed) = self.begin_change(one, &state, |now| *now == state) {
                        self.dispatch_close(server, changed, None);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Orders the server of an open or opening region to open it. If the region is open there, the
    /// server only reports it again. This is retried while `hbase:meta` cannot be written, because
    /// its server may have died. If the server of the region dies, its recovery opens the region.
    ///
    /// # Errors
    /// An error of `hbase:meta`, or of `master:store` for `hbase:meta` itself, that is final.
    pub(crate) async fn repeat_open(self: &Arc<Self>, region: &RegionInfo) -> Result<(), JavaException> {
        while let Some(state @ (RegionState::Open(_) | RegionState::Opening(_))) = self.state(region) {
            let server = state.server().expect("it is open on a server");
            let is_same = |now: &RegionState| *now == state;
            match self.begin_open_at(server, std::slice::from_ref(region), &is_same).await {
                Ok(()) => break,
                Err(_) if !self.servers.is_live(server) => break,
                Err(error) if error.do_not_retry => return Err(error),
                Err(error) => warn!(%server, %error, "cannot repeat an order to open a region; retrying"),
            }
            self.env.clock.sleep(REPEAT_PAUSE).await;
        }
        Ok(())
    }

    /// Adds `hbase:meta` with the location that the previous master stored. If its server has died,
    /// the recovery of the server begins later. `has_logs` is whether a server may have logs that
    /// are not archived.
    pub(crate) fn add_meta_region(
        &self,
        location: Option<(ServerName, bool, u64)>,
        has_logs: impl Fn(&ServerName) -> bool,
    ) {
        let region = RegionInfo::meta();
        let mut tracked = TrackedRegion::new(region, RegionState::Closed, self.env.clock.monotonic());
        if let Some((server, is_open, open_seq_num)) = location {
            tracked.open_seq_num = open_seq_num;
            tracked.last_address = Some((server.host.clone(), server.port));
            let (has_logs, meta) = (has_logs(&server), tracked.region.encoded_name());
            let has_edits_on_server = || self.recoveries.servers_of(&meta).contains(&server);
            tracked.state = match (self.recoveries.is_recovering(&server), is_open) {
                (true, _) if has_edits_on_server() => RegionState::Crashed(server),
                // It was not open on the server when that died, so the recovery does not open it.
                (true, _) => RegionState::Closed,
                // Its logs are in the archive, so all edits are in files.
                (false, _) if !has_logs => RegionState::Closed,
                (false, true) => RegionState::Open(server),
                (false, false) => RegionState::Opening(server),
            };
        }
        self.lock().insert(tracked.region.encoded_name(), tracked);
        self.changed.notify_waiters();
    }
}

fn at(server: Option<ServerName>, state: fn(ServerName) -> RegionState) -> RegionState {
    server.map_or(RegionState::Closed, state)
}
