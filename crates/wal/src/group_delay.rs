//! Decides when to delay a commit group, so that more edits join it.
//!
//! A synchronous writer appends its next edit soon after the last one was committed. With several
//! such writers, the edits of one half wait while the sync for the other half runs, so each sync
//! serves only one half. If a group waits for the edits of all writers, every second sync is saved.
//! If the wait takes no longer than a sync, no edit is committed later than without it.
//!
//! Whether the writers append again is found by trying. A wait fails if not all expected edits
//! came, or if it took longer than a sync. After a wait that failed, the next one is postponed.

use std::time::Duration;

/// Shortest sync that is worth a wait.
const SYNC_MIN: Duration = Duration::from_micros(50);
/// Longest sync that is worth a wait. Syncs are longer if the disk is slow or the group is large. A
/// wait as long as such a sync would cost too much if it failed.
const SYNC_MAX: Duration = Duration::from_millis(10);
/// Minimum time limit of a wait, even if syncs are shorter: timers have this resolution.
const DELAY_MIN: Duration = Duration::from_millis(1);
/// Maximum number of groups between two waits.
const PAUSE_MAX: u32 = 1024;

/// Decides whether to wait for more edits, from the outcome of earlier waits.
#[derive(Debug)]
pub(crate) struct GroupDelay {
    // Number of edits of the last group, plus those that were queued when it was committed.
    expected: usize,
    // Moving average of the duration of a sync.
    sync: Duration,
    // Groups until the next wait.
    pause: u32,
    // Value of `pause` after the next wait that fails.
    next_pause: u32,
}

/// When a wait ends: as soon as one of these conditions is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DelayLimit {
    /// This many edits are queued.
    pub(crate) edits: usize,
    /// This time has passed.
    pub(crate) duration: Duration,
}

impl GroupDelay {
    pub(crate) fn new() -> GroupDelay {
        GroupDelay { expected: 0, sync: Duration::ZERO, pause: 0, next_pause: 1 }
    }

    /// How long the next group waits for more edits, if `queued` edits are queued now; `None` if it
    /// must not wait. The caller reports the outcome of the wait to
    /// [`record_delay`](GroupDelay::record_delay).
    pub(crate) fn delay_limit(&mut self, queued: usize) -> Option<DelayLimit> {
        if queued == 0 || queued >= self.expected || !(SYNC_MIN..=SYNC_MAX).contains(&self.sync) {
            return None;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        Some(DelayLimit { edits: self.expected, duration: self.sync.max(DELAY_MIN) })
    }

    /// Records a wait: whether all expected edits were queued, and how long it took.
    pub(crate) fn record_delay(&mut self, is_complete: bool, took: Duration) {
        if is_complete && took <= self.sync {
            self.next_pause = (self.next_pause / 2).max(1);
        } else {
            self.pause = self.next_pause;
            self.next_pause = (self.next_pause * 2).min(PAUSE_MAX);
        }
    }

    /// Records that no edit was queued for `time`. If this is longer than a sync, no edits are
    /// expected.
    pub(crate) fn record_idle(&mut self, time: Duration) {
        if time > self.sync {
            self.expected = 0;
        }
    }

    /// Records that `edits` edits were committed in the time `took`, and that `queued` are queued
    /// now.
    pub(crate) fn record_commit(&mut self, edits: usize, took: Duration, queued: usize) {
        self.expected = edits + queued;
        self.sync = if self.sync.is_zero() { took } else { (self.sync * 7 + took) / 8 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_micros(300);

    /// Writers, half of which are in each group so far.
    fn of_two_halves() -> GroupDelay {
        let mut delay = GroupDelay::new();
        delay.record_commit(5, SYNC, 5);
        delay
    }

    #[test]
    fn all_recent_writers_are_waited_for() {
        let mut delay = of_two_halves();
        let wait = delay.delay_limit(5).unwrap();
        assert_eq!(wait, DelayLimit { edits: 10, duration: DELAY_MIN });
        delay.record_delay(true, SYNC / 2);
        delay.record_commit(10, SYNC, 0);
        assert_eq!(delay.delay_limit(1).map(|wait| wait.edits), Some(10));
        assert_eq!(delay.delay_limit(10), None, "all are back");
        assert_eq!(delay.delay_limit(0), None, "no edit is queued");
    }

    #[test]
    fn a_single_writer_never_waits() {
        let mut delay = GroupDelay::new();
        for _ in 0..10 {
            assert_eq!(delay.delay_limit(1), None);
            delay.record_commit(1, SYNC, 0);
        }
    }

    #[test]
    fn there_is_no_wait_if_syncs_are_quick_or_slow() {
        for sync in [SYNC_MIN / 2, SYNC_MAX * 2] {
            let mut delay = GroupDelay::new();
            delay.record_commit(5, sync, 5);
            assert_eq!(delay.delay_limit(5), None);
        }
    }

    #[test]
    fn old_writers_are_not_waited_for() {
        let mut delay = of_two_halves();
        delay.record_idle(SYNC / 2);
        assert!(delay.delay_limit(1).is_some());
        delay.record_idle(SYNC * 2);
        assert_eq!(delay.delay_limit(1), None);
    }

    #[test]
    fn waits_that_take_too_long_become_rarer() {
        let mut delay = of_two_halves();
        let mut tries = 0;
        for _ in 0..10_000 {
            if delay.delay_limit(5).is_some() {
                tries += 1;
                delay.record_delay(true, SYNC * 2);
            }
            delay.record_commit(5, SYNC, 5);
        }
        assert!((10..25).contains(&tries), "{tries}");
        // It pays again, and that is noticed.
        let mut tries = 0;
        for _ in 0..10_000 {
            if delay.delay_limit(5).is_some() {
                tries += 1;
                delay.record_delay(true, SYNC / 2);
            }
            delay.record_commit(5, SYNC, 5);
        }
        assert!(tries > 8_000, "{tries}");
    }

    #[test]
    fn a_writer_that_leaves_is_waited_for_once() {
        let mut delay = of_two_halves();
        assert!(delay.delay_limit(9).is_some());
        delay.record_delay(false, DELAY_MIN);
        delay.record_commit(9, SYNC, 0);
        assert_eq!(delay.delay_limit(5), None, "a pause");
        delay.record_commit(5, SYNC, 4);
        assert_eq!(delay.delay_limit(4).map(|wait| wait.edits), Some(9));
    }
}
