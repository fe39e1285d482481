//! Several counts of one thing, kept together where there are very many such things.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::metrics::COUNTING;
use crate::metrics::shards::Shards;

/// Counts that only grow, in a struct `P` of them: one cache line for each thread that counts, and none before it does.
///
/// A [`Counter`](crate::metrics::Counter) has a line for every core; ten thousand regions with ten of these each would cost
/// memory that nobody counts with.
///
/// ```
/// use std::sync::atomic::AtomicU64;
///
/// #[derive(Default)]
/// #[repr(align(128))]
/// struct Requests {
///     reads: AtomicU64,
///     writes: AtomicU64,
/// }
///
/// let requests = base::metrics::Counts::<Requests>::default();
/// requests.add(|of| &of.reads, 3);
/// assert_eq!(requests.get(|of| &of.reads), 3);
/// ```
#[derive(Debug)]
pub struct Counts<P>(Shards<P>);

impl<P: Default> Counts<P> {
    /// Adds `amount` to the count that `of` chooses.
    #[inline]
    pub fn add(&self, of: impl FnOnce(&P) -> &AtomicU64, amount: u64) {
        if COUNTING {
            of(self.0.own()).fetch_add(amount, Relaxed);
        }
    }

    /// The counts of this thread, to add several at once; none where nothing is counted.
    #[inline]
    pub fn own(&self) -> Option<&P> {
        COUNTING.then(|| self.0.own())
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self, of: impl FnOnce(&P) -> &AtomicU64) {
        self.add(of, 1);
    }

    /// The sum so far of the count that `of` chooses.
    pub fn get(&self, of: impl Fn(&P) -> &AtomicU64) -> u64 {
        self.0.all().fold(0, |sum, part| sum.wrapping_add(of(part).load(Relaxed)))
    }
}

impl<P: Default> Default for Counts<P> {
    fn default() -> Counts<P> {
        Counts(Shards::new())
    }
}
