//! How long a filter is at work, found out from few of its answers: a look at the clock costs more than most of them.

use std::sync::Arc;
use std::time::Duration;

use base::env::Clock;
use base::spent::{self, Phase};

/// Of how many answers one is measured; a prime, lest it always be that of the same column.
const STRIDE: u32 = 61;
/// Answers that take this long are measured one by one: there the clock costs little, and they may be few.
const COSTLY: Duration = Duration::from_micros(2);

/// Nanoseconds in which a byte of small cells is read.
const NANOS_PER_COST: u128 = 5;
/// An answer that takes this long delays other calls.
const SLOW: Duration = Duration::from_millis(2);

/// Measures now and then, and adds to the account of the call at work what all take, by that.
pub(super) struct Sampler {
    clock: Arc<dyn Clock>,
    // Answers for which the next one that is measured stands, and those of them that are still to come.
    stride: u32,
    left: u32,
    // What answers cost that were measured one by one, and whether one took longer than any should.
    cost: usize,
    is_slow: bool,
    was_slow: bool,
}

impl Sampler {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Sampler {
        Sampler { clock, stride: 1, left: 1, cost: 0, is_slow: false, was_slow: false }
    }

    /// Has the filter answer.
    #[inline]
    pub(super) fn ask<T>(sampler: &mut Option<Sampler>, answer: impl FnOnce() -> T) -> T {
        match sampler {
            Some(sampler) => {
                sampler.left -= 1;
                if sampler.left == 0 { sampler.measure(answer) } else { answer() }
            }
            None => answer(),
        }
    }

    /// What costly answers took since this was asked last, in bytes of cells that are read in that time.
    #[inline]
    pub(super) fn take_cost(&mut self) -> usize {
        std::mem::take(&mut self.cost)
    }

    /// Whether an answer took so long that it delayed other calls.
    pub(super) fn is_slow(&self) -> bool {
        self.is_slow
    }

    #[cold]
    fn measure<T>(&mut self, answer: impl FnOnce() -> T) -> T {
        let begun = self.clock.monotonic();
        let answer = answer();
        let took = self.clock.monotonic().saturating_sub(begun);
        spent::add(Phase::Filter, took * self.stride);
        if took >= COSTLY {
            self.cost += (took.as_nanos() / NANOS_PER_COST) as usize;
        }
        // One alone may have been interrupted by another thread.
        self.is_slow |= self.was_slow && took >= SLOW;
        self.was_slow = took >= SLOW;
        self.stride = if took < COSTLY { STRIDE } else { 1 };
        self.left = self.stride;
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use base::BoxFuture;
    use base::spent::Spent;

    use super::*;

    /// A clock that goes on by so many nanoseconds between two looks.
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

    /// The time that so many answers are said to take together, and how often the clock was looked at.
    fn measured(answers: u64, nanos: u64) -> (Duration, u64) {
        let clock = Arc::new(Stepping(AtomicU64::new(0), nanos));
        let mut sampler = Some(Sampler::new(clock.clone()));
        spent::open(&Spent::default(), Duration::ZERO);
        (0..answers).for_each(|_| Sampler::ask(&mut sampler, || ()));
        (spent::close().time(Phase::Filter), clock.0.load(Ordering::Relaxed) / nanos)
    }

    #[test]
    fn few_answers_are_measured_for_all() {
        let (time, looks) = measured(61 * 1000 + 1, 20);
        assert_eq!((time, looks), (Duration::from_nanos(20 * 61_001), 2 * 1001));
    }

    #[test]
    fn costly_answers_are_measured_one_by_one() {
        assert_eq!(measured(5, 1_000_000), (Duration::from_millis(5), 10));
    }
}
