//! The timestamps of cells whose writer left the time to the server.

use cell::schema::TableName;

/// If the clock is set back by at most this much, cells get the last timestamp until the clock has
/// caught up. After a larger step, cells get the time of the clock. Time services such as NTP make
/// smaller steps; a larger step corrects a wrong clock.
const BACKWARD_STEP_MS_MAX: i64 = 10_000;

/// The greatest timestamp that a stored cell can have.
const TIMESTAMP_MAX: i64 = cell::LATEST_TIMESTAMP - 1;

/// Gives cells timestamps, in milliseconds since the Unix epoch.
pub(super) struct WriteClock {
    // The timestamp that it gave last.
    last: i64,
    // Whether each timestamp is greater than all before it, whatever the clocks show.
    grows: bool,
}

impl WriteClock {
    /// The clock of a region of `table`.
    ///
    /// In the tables of masters, each edit must replace the one before it, also after the region
    /// has moved to a server whose clock is slower. A delete marker that is older than the cells
    /// before it would have no effect, and a cell that is not newer than a marker before it would
    /// not be visible. HBase uses the clock of the master for `hbase:meta`, and has this fault when
    /// the next master's clock is slower.
    pub(super) fn new(table: &TableName) -> WriteClock {
        WriteClock { last: 0, grows: table.is_written_by_masters() }
    }

    /// Continues after the newest timestamp that an opened region has.
    pub(super) fn continue_after(&mut self, newest: i64) {
        if self.grows {
            self.last = self.last.max(newest);
        }
    }

    /// The timestamp for cells that are written at the time `now_ms`.
    pub(super) fn timestamp(&mut self, now_ms: u64) -> i64 {
        let now = now_ms.cast_signed();
        self.last = match self.last.saturating_sub(now) {
            back if back < 0 => now,
            _ if self.grows => self.last.saturating_add(1).min(TIMESTAMP_MAX),
            back if back > BACKWARD_STEP_MS_MAX => now,
            _ => self.last,
        };
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_bridge_small_backward_steps_and_follow_large_ones() {
        let mut clock = WriteClock::new(&TableName::parse("t").unwrap());
        clock.continue_after(5_000_000);
        assert_eq!(clock.timestamp(1_000_000), 1_000_000, "a user's timestamps are not continued");
        assert_eq!(clock.timestamp(1_000_001), 1_000_001);
        assert_eq!(clock.timestamp(999_000), 1_000_001);
        assert_eq!(clock.timestamp(990_001), 1_000_001);
        assert_eq!(clock.timestamp(1_000_002), 1_000_002, "the clock has caught up");
        assert_eq!(clock.timestamp(316_000_000_000), 316_000_000_000);
        assert_eq!(clock.timestamp(1_000_500), 1_000_500, "a clock that was wrong is abandoned");
        assert_eq!(clock.timestamp(990_499), 990_499);
    }

    #[test]
    fn timestamps_of_masters_always_grow() {
        for table in [TableName::meta(), TableName::parse("master:store").unwrap()] {
            let mut clock = WriteClock::new(&table);
            clock.continue_after(1_000_000);
            assert_eq!(clock.timestamp(5), 1_000_001, "the last server's clock was ahead");
            assert_eq!(clock.timestamp(5), 1_000_002, "each edit replaces the one before it");
            assert_eq!(clock.timestamp(2_000_000), 2_000_000);
            clock.continue_after(TIMESTAMP_MAX);
            assert_eq!(clock.timestamp(2_000_001), TIMESTAMP_MAX, "the greatest one stays");
        }
    }
}
