//! The pauses of a device on its time axis.

use std::collections::VecDeque;
use std::time::Duration;

use base::env::Random;
use base::testing::SeededRandom;

use super::model::Stalls;

/// Pauses that ended this long ago no longer matter: no request is placed before them.
const HISTORY: Duration = Duration::from_secs(1);

/// Random pauses, generated as far as needed.
pub(super) struct Pauses {
    stalls: Stalls,
    random: SeededRandom,
    // Start times, ascending.
    starts: VecDeque<Duration>,
    // End of the last generated pause.
    end: Duration,
}

impl Pauses {
    pub(super) fn new(stalls: Stalls, now: Duration) -> Pauses {
        let random = SeededRandom::new(stalls.seed);
        Pauses { stalls, random, starts: VecDeque::new(), end: now }
    }

    /// When `work` is done that begins at `from` and rests during the pauses.
    pub(super) fn end_of(&mut self, from: Duration, work: Duration) -> Duration {
        let lasting = self.stalls.lasting;
        while self.starts.front().is_some_and(|start| *start + lasting + HISTORY < from) {
            self.starts.pop_front();
        }
        let (mut at, mut left) = (from, work);
        for index in 0.. {
            let start = self.start(index);
            if start + lasting <= at {
                continue;
            }
            let until_pause = start.saturating_sub(at);
            if !until_pause.is_zero() && left <= until_pause {
                break;
            }
            left -= until_pause;
            at = start + lasting;
        }
        at + left
    }

    fn start(&mut self, index: usize) -> Duration {
        while self.starts.len() <= index {
            // At least one step, so that there is progress with any parameters.
            let step = self.stalls.every.mul_f64(exponential(&self.random)).max(Duration::from_micros(1));
            self.starts.push_back(self.end + step);
            self.end += step + self.stalls.lasting;
        }
        self.starts[index]
    }
}

/// An exponentially distributed number of mean 1.
fn exponential(random: &SeededRandom) -> f64 {
    let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(seed: u64) -> Pauses {
        let stalls = Stalls { every: Duration::from_secs(9), lasting: Duration::from_secs(1), seed };
        Pauses::new(stalls, Duration::ZERO)
    }

    #[test]
    fn work_rests_for_the_stated_part_of_the_time() {
        let end = pauses(1).end_of(Duration::ZERO, Duration::from_secs(9000)).as_secs_f64();
        assert!((9700.0..10_300.0).contains(&end), "{end}");
    }

    #[test]
    fn pieces_of_work_end_when_the_whole_does() {
        let (mut whole, mut pieces) = (pauses(7), pauses(7));
        let mut at = Duration::ZERO;
        for _ in 0..3000 {
            at = pieces.end_of(at, Duration::from_millis(100));
        }
        assert_eq!(at, whole.end_of(Duration::ZERO, Duration::from_secs(300)));
        assert!(pieces.starts.len() < 10, "old pauses are forgotten");
    }

    #[test]
    fn work_that_begins_in_a_pause_waits_for_its_end() {
        let mut pauses = pauses(3);
        let start = pauses.start(0);
        let end = start + Duration::from_secs(1);
        let tiny = Duration::from_nanos(1);
        assert_eq!(pauses.end_of(start + tiny, tiny), end + tiny);
        assert_eq!(pauses.end_of(start - tiny, tiny), start);
    }
}
