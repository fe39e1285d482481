//! Measures how much compactions delay client requests.
//!
//! A request waits until the thread of its connection is free. So small probe tasks are queued on
//! such threads, some while compactions work and some while they pause, and the waiting times of
//! both groups are compared. The difference is caused by compactions, not by the load. Only the
//! slow probes count, because users notice the p99 latency.
//!
//! If several compactions run, one may work while another pauses. The measured delay is then too
//! small.

use std::time::Duration;

/// Probes per phase before the phases are compared.
const PROBES: usize = 100;
/// Index of the compared percentile (p95) in the sorted waiting times.
const SLOW_INDEX: usize = PROBES * 95 / 100;

/// What a compaction is doing while a probe waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It reads, merges and writes.
    Working,
    /// It pauses because it was too fast.
    Pausing,
}

/// Waiting times since the last comparison.
#[derive(Default)]
pub(super) struct ProbeComparison {
    working: Vec<Duration>,
    pausing: Vec<Duration>,
}

impl ProbeComparison {
    /// Records the waiting time of a probe. Once both phases have enough probes, returns by how
    /// much slow probes wait longer while compactions work, and starts over.
    pub(super) fn record(&mut self, phase: Phase, waited: Duration) -> Option<Duration> {
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
            let (_, slow, _) = waits.select_nth_unstable(SLOW_INDEX);
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

    /// The result after `PROBES` probes per phase, the given numbers of which are slow.
    fn compared(probes: &mut ProbeComparison, slow_working: usize, slow_pausing: usize) -> Duration {
        let waited = |at, slow| if at < slow { 10 * MS } else { MS };
        for at in 0..PROBES {
            assert_eq!(probes.record(Phase::Working, waited(at, slow_working)), None);
        }
        for at in 1..PROBES {
            assert_eq!(probes.record(Phase::Pausing, waited(at, slow_pausing)), None);
        }
        probes.record(Phase::Pausing, waited(0, slow_pausing)).expect("enough of both")
    }

    #[test]
    fn only_delays_by_compaction_work_count() {
        let mut probes = ProbeComparison::default();
        assert_eq!(compared(&mut probes, 10, 0), 9 * MS);
        assert_eq!(compared(&mut probes, 2, 0), Duration::ZERO, "fewer slow ones than the percentile");
        assert_eq!(compared(&mut probes, 10, 10), Duration::ZERO, "caused by the load");
        assert_eq!(compared(&mut probes, 0, 10), Duration::ZERO);
    }
}
