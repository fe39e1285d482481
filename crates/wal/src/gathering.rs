//! When a group is put off a little, so that more edits join it.
//!
//! Whoever waits for his edit to be committed before he makes the next comes back soon after he was told. Of several such
//! the edits of one half wait while the sync for the other half runs, so that each sync serves one half. To wait until all
//! are back spares every second sync, and where that takes no longer than a sync all are served as soon as before.
//!
//! Whether they come back can only be tried. What took longer than a sync is not tried again soon.

use std::time::Duration;

/// A shorter sync costs too little to be worth a wait.
const SYNC_MIN: Duration = Duration::from_micros(50);
/// A longer one comes of a disk in trouble, or of much that was written: nobody is to wait that long in vain.
const SYNC_MAX: Duration = Duration::from_millis(10);
/// What timers can tell apart.
const PATIENCE_MIN: Duration = Duration::from_millis(1);
/// Groups between two tries at most.
const PAUSE_MAX: u32 = 1024;

/// Whether to wait for more edits, from what came of it before.
#[derive(Debug)]
pub(crate) struct Gathering {
    // How many edits were told of together lately, or waited then.
    expected: usize,
    // What a sync takes, as a moving average.
    sync: Duration,
    // Groups until the next try, and how many there will be after a failure.
    pause: u32,
    next_pause: u32,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Edits in the queue.
    pub(crate) edits: usize,
    /// But no longer than this.
    pub(crate) patience: Duration,
}

impl Gathering {
    pub(crate) fn new() -> Gathering {
        Gathering { expected: 0, sync: Duration::ZERO, pause: 0, next_pause: 1 }
    }

    /// Whether to wait before the next group is taken from a queue of so many edits. What came of it is
    /// [told](Gathering::waited).
    pub(crate) fn wait(&mut self, queued: usize) -> Option<Wait> {
        if queued == 0 || queued >= self.expected || !(SYNC_MIN..=SYNC_MAX).contains(&self.sync) {
            return None;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        Some(Wait { edits: self.expected, patience: self.sync.max(PATIENCE_MIN) })
    }

    /// A wait took so long, and all came who were waited for, or not.
    pub(crate) fn waited(&mut self, all_came: bool, took: Duration) {
        if all_came && took <= self.sync {
            self.next_pause = (self.next_pause / 2).max(1);
        } else {
            self.pause = self.next_pause;
            self.next_pause = (self.next_pause * 2).min(PAUSE_MAX);
        }
    }

    /// Nobody wrote for so long: who was told is not about to come back.
    pub(crate) fn idle(&mut self, time: Duration) {
        if time > self.sync {
            self.expected = 0;
        }
    }

    /// So many edits were committed, which took so long, and so many are queued.
    pub(crate) fn committed(&mut self, edits: usize, took: Duration, queued: usize) {
        self.expected = edits + queued;
        self.sync = if self.sync.is_zero() { took } else { (self.sync * 7 + took) / 8 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_micros(300);

    /// Writers of which half are in each group so far.
    fn of_two_halves() -> Gathering {
        let mut gathering = Gathering::new();
        gathering.committed(5, SYNC, 5);
        gathering
    }

    #[test]
    fn all_who_were_there_lately_are_waited_for() {
        let mut gathering = of_two_halves();
        let wait = gathering.wait(5).unwrap();
        assert_eq!(wait, Wait { edits: 10, patience: PATIENCE_MIN });
        gathering.waited(true, SYNC / 2);
        gathering.committed(10, SYNC, 0);
        assert_eq!(gathering.wait(1).map(|wait| wait.edits), Some(10));
        assert_eq!(gathering.wait(10), None, "all are back");
        assert_eq!(gathering.wait(0), None, "nobody has to wait");
    }

    #[test]
    fn one_alone_never_waits() {
        let mut gathering = Gathering::new();
        for _ in 0..10 {
            assert_eq!(gathering.wait(1), None);
            gathering.committed(1, SYNC, 0);
        }
    }

    #[test]
    fn nobody_waits_where_syncs_are_quick_or_slow() {
        for sync in [SYNC_MIN / 2, SYNC_MAX * 2] {
            let mut gathering = Gathering::new();
            gathering.committed(5, sync, 5);
            assert_eq!(gathering.wait(5), None);
        }
    }

    #[test]
    fn nobody_waits_for_those_of_long_ago() {
        let mut gathering = of_two_halves();
        gathering.idle(SYNC / 2);
        assert!(gathering.wait(1).is_some());
        gathering.idle(SYNC * 2);
        assert_eq!(gathering.wait(1), None);
    }

    #[test]
    fn what_takes_too_long_is_tried_ever_more_rarely() {
        let mut gathering = of_two_halves();
        let mut tries = 0;
        for _ in 0..10_000 {
            if gathering.wait(5).is_some() {
                tries += 1;
                gathering.waited(true, SYNC * 2);
            }
            gathering.committed(5, SYNC, 5);
        }
        assert!((10..25).contains(&tries), "{tries}");
        // It pays again: that is found out.
        let mut tries = 0;
        for _ in 0..10_000 {
            if gathering.wait(5).is_some() {
                tries += 1;
                gathering.waited(true, SYNC / 2);
            }
            gathering.committed(5, SYNC, 5);
        }
        assert!(tries > 8_000, "{tries}");
    }

    #[test]
    fn who_leaves_is_waited_for_once() {
        let mut gathering = of_two_halves();
        assert!(gathering.wait(9).is_some());
        gathering.waited(false, PATIENCE_MIN);
        gathering.committed(9, SYNC, 0);
        assert_eq!(gathering.wait(5), None, "a pause");
        gathering.committed(5, SYNC, 4);
        assert_eq!(gathering.wait(4).map(|wait| wait.edits), Some(9));
    }
}
