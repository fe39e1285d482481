//! A count that many threads add to and few read.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::metrics::COUNTING;
use crate::metrics::shards::{shard_count, shard_of_thread};

/// A number that only grows. Adding touches a cache line that (nearly) only this thread writes; reading sums all.
///
/// Relaxed: a reader may see one of two additions of another thread and not yet the other, whatever their order.
#[derive(Debug)]
pub struct Counter {
    shards: Box<[Shard]>,
}

// A cache line each, two where the processor fetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(AtomicU64);

impl Counter {
    /// A counter at 0.
    pub fn new() -> Counter {
        Counter { shards: (0..shard_count()).map(|_| Shard::default()).collect() }
    }

    /// Adds `amount`.
    #[inline]
    pub fn add(&self, amount: u64) {
        if !COUNTING {
            return;
        }
        self.shards[shard_of_thread()].0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.shards.iter().fold(0, |sum, shard| sum.wrapping_add(shard.0.load(Ordering::Relaxed)))
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
