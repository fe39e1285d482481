//! Queries of the states of regions.

use std::time::Duration;

use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;

use super::{Assignment, RegionState, TrackedRegion};

impl Assignment {
    /// Finds a region and its state by encoded name.
    pub fn find(&self, encoded: &str) -> Option<(RegionInfo, RegionState)> {
        self.lock().get(encoded).map(TrackedRegion::info_and_state)
    }

    /// The state of a region; `None` if it is unknown.
    pub fn state(&self, region: &RegionInfo) -> Option<RegionState> {
        self.lock().get(&region.encoded_name()).map(|tracked| tracked.state.clone())
    }

    /// Whether a server was ordered to close the region, and has not reported that it did.
    pub(crate) fn is_closing(&self, region: &RegionInfo) -> bool {
        matches!(self.state(region), Some(RegionState::Closing(_)))
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
        let now = self.env.clock.monotonic();
        let states = self.lock();
        let moving = states.values().filter(|tracked| !tracked.state.is_settled());
        moving.map(|tracked| now.saturating_sub(tracked.since)).collect()
    }

    /// The regions in transition, each with its state and the time since it entered the state. The
    /// region with the longest time is first.
    pub fn regions_in_transition(&self) -> Vec<(RegionInfo, RegionState, Duration)> {
        let now = self.env.clock.monotonic();
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

    /// The regions that are open on a server, or that it was ordered to open or close.
    pub fn regions_on(&self, server: &ServerName) -> Vec<RegionInfo> {
        let states = self.lock();
        let on_server = states.values().filter(|tracked| tracked.state.server() == Some(server));
        on_server.map(|tracked| tracked.region.clone()).collect()
    }
}
