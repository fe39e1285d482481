//! The wait of a flush for compactions, while a store has too many files.

use std::time::Duration;

use crate::instruments::{ExpectedCompaction, ForecastNumber};
use crate::region::{Region, RegionState};

/// How often the number of files is checked, and the pace of writers adapted.
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// The shortest time until the end of a wait whose compactions have no known speed. It grows with
/// the time so far.
const UNKNOWN_WAIT_MIN: Duration = Duration::from_secs(1);

/// A flush that waits. Meanwhile, writers have the pace of the compactions.
struct FlushWait<'a> {
    region: &'a Region,
    number: ForecastNumber,
    begun: Duration,
    /// When the flush begins even if there are still too many files.
    until: Duration,
}

impl Region {
    /// Whether a flush should wait for a compaction because a store has too many files.
    pub fn has_too_many_files(&self) -> bool {
        self.is_compaction_enabled() && self.full_stores().next().is_some()
    }

    /// Whether [`wait_for_fewer_files`](Region::wait_for_fewer_files) would wait now. It never does
    /// for `hbase:meta`.
    pub fn flush_would_wait(&self) -> bool {
        !self.info.table.is_meta() && self.has_too_many_files()
    }

    /// Waits for compactions while a store has too many files, because a flush would add another
    /// one. The wait is limited by [`blocking_wait`](crate::region::RegionOptions::blocking_wait).
    pub async fn wait_for_fewer_files(&self) {
        if !self.flush_would_wait() {
            return;
        }
        let clock = &self.services.env.clock;
        let wait = FlushWait::begin(self);
        while self.has_too_many_files()
            && self.state() == RegionState::Serving
            && clock.monotonic() < wait.until
        {
            self.request_compactions();
            wait.slow_writers_down();
            clock.sleep(CHECK_PERIOD).await;
        }
    }

    /// The stores with more files than flushes may add, as indexes.
    fn full_stores(&self) -> impl Iterator<Item = usize> {
        let view = self.view.load_full();
        let is_full =
            move |at: &usize| view.stores[*at].files.len() > self.compaction_settings[*at].blocking_files;
        (0..self.compaction_settings.len()).filter(is_full)
    }

    /// The compaction that a store with too many files needs: it merges the shortest files.
    fn needed_compaction(&self, at: usize) -> ExpectedCompaction {
        let view = self.view.load();
        let mut lengths: Vec<u64> = view.stores[at].files.iter().map(|file| file.plain_bytes()).collect();
        lengths.sort_unstable();
        lengths.truncate(self.compaction_settings[at].files_max);
        let files = lengths.len().saturating_sub(1);
        ExpectedCompaction { store: (self.encoded_name().clone(), at), bytes: lengths.iter().sum(), files }
    }
}

impl<'a> FlushWait<'a> {
    fn begin(region: &'a Region) -> FlushWait<'a> {
        let begun = region.services.env.clock.monotonic();
        let number = region.services.instruments.compaction_forecast().begin_wait();
        FlushWait { region, number, begun, until: begun + region.options().blocking_wait }
    }

    /// Spreads the memory that is left over the time that the wait is likely to take.
    fn slow_writers_down(&self) {
        let services = &self.region.services;
        let now = services.env.clock.monotonic();
        let stores = self.region.full_stores().map(|at| self.region.needed_compaction(at)).collect();
        let expected = services.instruments.compaction_forecast().time_to_wait(self.number, stores, now);
        let unknown = || UNKNOWN_WAIT_MIN.max((now - self.begun) / 2);
        let end = now.saturating_add(expected.unwrap_or_else(unknown)).min(self.until);
        services.budget.pace().flush_waits(self.region.encoded_name(), end);
    }
}

impl Drop for FlushWait<'_> {
    fn drop(&mut self) {
        let services = &self.region.services;
        services.instruments.compaction_forecast().end_wait(self.number);
        services.budget.pace().flush_waits_no_longer(self.region.encoded_name());
    }
}
