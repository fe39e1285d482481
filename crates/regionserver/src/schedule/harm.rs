//! What compactions do to those who wait for an answer.
//!
//! A request waits until its connection's thread comes to it. So small tasks are put there, some while compactions work
//! and some while they pause, and the time until each ran is compared: what is longer while they work is their doing, and
//! not the load's. Only the slow ones count, for it is the p99 that users see.
//!
//! Where several compactions run, one may work while another pauses; the harm told is then less than it is.

use std::time::Duration;

/// Measured of each kind before they are compared.
const PROBES: usize = 100;
/// The place of the slow ones among them.
const SLOW: usize = PROBES * 95 / 100;

/// What compactions do when a task is put on a connection's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// They read, merge and write.
    Working,
    /// They wait, as they went too fast.
    Pausing,
}

/// How long tasks waited since the last comparison.
#[derive(Default)]
pub(super) struct Harm {
    working: Vec<Duration>,
    pausing: Vec<Duration>,
}

impl Harm {
    /// Notes how long a task waited; where that makes enough of both kinds, by how much the slow ones are slower while
    /// compactions work.
    pub(super) fn note(&mut self, phase: Phase, waited: Duration) -> Option<Duration> {
        let waits = match phase {
            Phase::Working => &mut self.working,
            Phase::Pausing => &mut self.pausing,
        };
        if waits.len() < PROBES {
            waits.push(waited);
        }
        if self.working.len() < PROBES || self.pausing.len() < PROBES {
            return None;
        }
        let slow = [&mut self.working, &mut self.pausing].map(|waits| {
            let (_, slow, _) = waits.select_nth_unstable(SLOW);
            let slow = *slow;
            waits.clear();
            slow
        });
        Some(slow[0].saturating_sub(slow[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The answer to the last of so many of each kind, of which some are slow.
    fn compared(harm: &mut Harm, slow_working: usize, slow_pausing: usize) -> Duration {
        let waited = |at, slow| if at < slow { 10 * MS } else { MS };
        for at in 0..PROBES {
            assert_eq!(harm.note(Phase::Working, waited(at, slow_working)), None);
        }
        for at in 1..PROBES {
            assert_eq!(harm.note(Phase::Pausing, waited(at, slow_pausing)), None);
        }
        harm.note(Phase::Pausing, waited(0, slow_pausing)).expect("enough of both")
    }

    #[test]
    fn only_what_is_slow_by_work_alone_is_harm() {
        let mut harm = Harm::default();
        assert_eq!(compared(&mut harm, 10, 0), 9 * MS);
        assert_eq!(compared(&mut harm, 2, 0), Duration::ZERO, "few of them");
        assert_eq!(compared(&mut harm, 10, 10), Duration::ZERO, "the load's doing");
        assert_eq!(compared(&mut harm, 0, 10), Duration::ZERO);
    }
}
