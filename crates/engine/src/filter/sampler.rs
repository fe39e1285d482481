//! Measures how long a filter takes, by samples: reading the clock costs more than most
//! evaluations.

use std::sync::Arc;
use std::time::Duration;

use base::env::Clock;
use base::spent::{self, Phase};

/// One of this many evaluations is measured. A prime, so that it is not always that of the same
/// column.
const STRIDE: u32 = 61;
/// Evaluations that take this long are measured one by one: the clock costs little in comparison,
/// and there may be few of them.
const COSTLY: Duration = Duration::from_micros(2);

/// Nanoseconds to read a byte of small cells.
const NANOS_PER_COST: u128 = 5;
/// An evaluation that takes this long delays other calls.
const SLOW: Duration = Duration::from_millis(2);

/// Measures some evaluations, and adds the estimated time of all to the account of the current
/// call.
pub(super) struct Sampler {
    clock: Arc<dyn Clock>,
    // Number of evaluations that the next measured one represents, and how many of them are left.
    stride: u32,
    until_measured: u32,
    // Cost of the evaluations that were measured one by one, and whether they were too slow.
    cost: usize,
    is_slow: bool,
    was_slow: bool,
}

impl Sampler {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Sampler {
        Sampler { clock, stride: 1, until_measured: 1, cost: 0, is_slow: false, was_slow: false }
    }

    /// Evaluates the filter, and measures some of the evaluations.
    #[inline]
    pub(super) fn evaluate<T>(sampler: &mut Option<Sampler>, evaluation: impl FnOnce() -> T) -> T {
        match sampler {
            Some(sampler) => {
                sampler.until_measured -= 1;
                if sampler.until_measured == 0 { sampler.measure(evaluation) } else { evaluation() }
            }
            None => evaluation(),
        }
    }

    /// Time of the costly evaluations since the last call of this method, in bytes of cells that
    /// are read in that time.
    #[inline]
    pub(super) fn take_cost(&mut self) -> usize {
        std::mem::take(&mut self.cost)
    }

    /// Whether evaluations took so long that they delayed other calls.
    pub(super) fn is_slow(&self) -> bool {
        self.is_slow
    }

    #[cold]
    fn measure<T>(&mut self, evaluation: impl FnOnce() -> T) -> T {
        let begun = self.clock.monotonic();
        let evaluation = evaluation();
        let took = self.clock.monotonic().saturating_sub(begun);
        spent::add(Phase::Filter, took * self.stride);
        if took >= COSTLY {
            self.cost += (took.as_nanos() / NANOS_PER_COST) as usize;
        }
        // A single one may have been preempted by another thread.
        self.is_slow |= self.was_slow && took >= SLOW;
        self.was_slow = took >= SLOW;
        self.stride = if took < COSTLY { STRIDE } else { 1 };
        self.until_measured = self.stride;
        evaluation
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use base::BoxFuture;
    use base::spent::Spent;

    use super::*;

    /// A clock that advances by a fixed number of nanoseconds at each read.
    struct Stepping(AtomicU64, u64);

    impl Clock for Stepping {
        fn now_ms(&self) -> u64 {
            0
        }
        fn monotonic(&self) -> Duration {
            Duration::from_nanos(self.0.fetch_add(self.1, Ordering::Relaxed))
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    /// The time recorded for this many evaluations, and how often the clock was read.
    fn measured(evaluations: u64, nanos: u64) -> (Duration, u64) {
        let clock = Arc::new(Stepping(AtomicU64::new(0), nanos));
        let mut sampler = Some(Sampler::new(clock.clone()));
        spent::open(&Spent::default(), Duration::ZERO);
        (0..evaluations).for_each(|_| Sampler::evaluate(&mut sampler, || ()));
        (spent::close().time(Phase::Filter), clock.0.load(Ordering::Relaxed) / nanos)
    }

    #[test]
    fn sampled_evaluations_stand_for_all() {
        let (time, clock_reads) = measured(61 * 1000 + 1, 20);
        assert_eq!((time, clock_reads), (Duration::from_nanos(20 * 61_001), 2 * 1001));
    }

    #[test]
    fn costly_evaluations_are_all_measured() {
        assert_eq!(measured(5, 1_000_000), (Duration::from_millis(5), 10));
    }
}
