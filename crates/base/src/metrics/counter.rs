//! A count that many threads add to and few read.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

// More shards than cores gain nothing; a machine of many cores may share some.
const SHARDS_MAX: usize = 64;

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
    pub fn add(&self, amount: u64) {
        // The count is a power of two, so the mask keeps the index inside.
        self.shards[thread_index() & (self.shards.len() - 1)].0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Adds one.
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

fn shard_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        cores.next_power_of_two().min(SHARDS_MAX)
    })
}

// Threads are numbered as they first count, so the runtimes' threads, started together, get shards of their own.
fn thread_index() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static INDEX: Cell<Option<usize>> = const { Cell::new(None) };
    }
    INDEX.with(|index| match index.get() {
        Some(index) => index,
        None => {
            let new = NEXT.fetch_add(1, Ordering::Relaxed);
            index.set(Some(new));
            new
        }
    })
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
