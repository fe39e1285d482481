//! A counter that many threads update and few read.

use crate::metrics::COUNTING;
use crate::metrics::areas::{AreaOffset, Count};

/// A number that only grows. An addition writes to memory of the calling thread; a read sums over
/// all threads.
///
/// Relaxed: a reader may see only one of two additions of another thread, regardless of their
/// order.
#[derive(Debug)]
pub struct Counter(AreaOffset<Count>);

impl Counter {
    /// A counter at 0.
    pub fn new() -> Counter {
        Counter(AreaOffset::new())
    }

    /// Adds `amount`.
    #[inline]
    pub fn add(&self, amount: u64) {
        if COUNTING {
            self.0.own().add(amount);
        }
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// The current sum.
    pub fn get(&self) -> u64 {
        self.0.all().fold(0, |sum, part| sum.wrapping_add(part.get()))
    }
}

impl Default for Counter {
    fn default() -> Counter {
        Counter::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::pool::Pool;

    #[tokio::test]
    async fn nothing_is_lost_between_threads() {
        let counter = Arc::new(Counter::new());
        let pool = Pool::new("count", 8);
        let jobs: Vec<_> = (0..8)
            .map(|_| {
                let counter = counter.clone();
                pool.run(move || (0..10_000).for_each(|_| counter.increment()))
            })
            .collect();
        for job in jobs {
            job.await;
        }
        counter.add(5);
        assert_eq!(counter.get(), 80_005);
    }
}
