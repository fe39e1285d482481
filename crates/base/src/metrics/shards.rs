//! A part for each thread that writes, so that nobody waits for another's cache line.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

// More shards than cores gain nothing; a machine of many cores may share some.
const SHARDS_MAX: usize = 64;

/// Parts, made by the threads that first write to them: what few threads touch stays small.
///
/// Two threads may have the same part where there are more threads than parts, so a part is written by atomic operations.
#[derive(Debug)]
pub(super) struct Shards<T> {
    parts: Box<[OnceLock<Box<T>>]>,
}

impl<T: Default> Shards<T> {
    pub(super) fn new() -> Shards<T> {
        Shards { parts: (0..shard_count()).map(|_| OnceLock::new()).collect() }
    }

    /// The part of this thread.
    #[inline]
    pub(super) fn own(&self) -> &T {
        self.parts[shard_of_thread()].get_or_init(Box::default)
    }

    /// All that were written to.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().filter_map(|part| part.get()).map(|part| &**part)
    }
}

/// How many parts there are: a power of two.
pub(super) fn shard_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        cores.next_power_of_two().min(SHARDS_MAX)
    })
}

/// Which of the [`shard_count`] parts is this thread's.
///
/// Threads are numbered as they first count, so the runtimes' threads, started together, get shards of their own.
#[inline]
pub(super) fn shard_of_thread() -> usize {
    // An Option would be two words to look at.
    const NONE: usize = usize::MAX;
    thread_local! {
        static INDEX: Cell<usize> = const { Cell::new(NONE) };
    }
    INDEX.with(|index| match index.get() {
        NONE => {
            let new = next_shard();
            index.set(new);
            new
        }
        known => known,
    })
}

#[cold]
fn next_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) & (shard_count() - 1)
}
