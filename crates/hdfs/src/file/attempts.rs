//! The attempts to set up one block on DataNodes: their time limits, the pauses between them, and
//! the last one.
//!
//! The server of a log that cannot continue in a new file ends. So a log does not fail while all
//! DataNodes are restarted: it makes attempts until a time limit. The writer of another file
//! repeats the whole file later.

use std::time::Duration;

use fs::AccessPattern;

use crate::options::Limits;

/// Attempts of a file that is not a log.
const ATTEMPTS_MAX: usize = 8;
/// Pause after an attempt in which no DataNode was usable: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The longest time limit of an attempt.
const LIMIT_MAX: Duration = Duration::from_secs(8);

/// The attempts to set up one block.
pub(super) struct Attempts {
    access: AccessPattern,
    failed: usize,
    /// When a log makes no further attempt, on the monotonic clock.
    end: Duration,
    pause: Duration,
    limit: Duration,
}

impl Attempts {
    pub(super) fn begin(access: AccessPattern, limits: &Limits, now: Duration) -> Attempts {
        Attempts { access, failed: 0, end: now + limits.log_setup, pause: PAUSE, limit: limits.setup }
    }

    /// The time limit of the next attempt.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// The number of failed attempts.
    pub(super) fn failed(&self) -> usize {
        self.failed
    }

    /// Records an attempt in which `faulty` of `nodes` DataNodes failed, or no DataNode responded
    /// in time if none is faulty. Returns the pause before the next attempt; `None`: there is
    /// none.
    ///
    /// If a block has a single DataNode, it is at fault even if it was only late. So its time limit
    /// grows too.
    pub(super) fn record_failure(&mut self, faulty: usize, nodes: usize, now: Duration) -> Option<Duration> {
        self.failed += 1;
        let is_last = match self.access {
            AccessPattern::Log => now >= self.end,
            AccessPattern::Data => self.failed >= ATTEMPTS_MAX,
        };
        if is_last {
            return None;
        }
        if faulty == 0 || nodes == 1 {
            self.limit = (self.limit * 2).min(LIMIT_MAX);
        } else if faulty < nodes {
            // The other nodes are usable now.
            return Some(Duration::ZERO);
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE_MAX);
        Some(pause)
    }
}
