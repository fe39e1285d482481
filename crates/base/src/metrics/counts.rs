//! Several counts of one thing, kept together where there are very many such things.

use crate::metrics::COUNTING;
use crate::metrics::areas::{Count, OwnArea, Place, Zeroed};

/// Counts that only grow, in a struct `P` of them, which [`counts`](crate::counts) declares: one for each thread that counts.
///
/// ```
/// base::counts! {
///     /// What is asked.
///     struct Requests {
///         /// Rows read.
///         reads,
///         /// Rows written.
///         writes,
///     }
/// }
///
/// let requests = base::metrics::Counts::<Requests>::default();
/// requests.add(|of| &of.reads, 3);
/// assert_eq!(requests.get(|of| &of.reads), 3);
/// ```
#[derive(Debug)]
pub struct Counts<P: Zeroed>(Place<P>);

impl<P: Zeroed> Counts<P> {
    /// Adds `amount` to the count that `of` chooses.
    #[inline]
    pub fn add(&self, of: impl FnOnce(&P) -> &Count, amount: u64) {
        if COUNTING {
            of(self.0.own()).add(amount);
        }
    }

    /// The counts of this thread, to add to several at once; none where nothing is counted.
    #[inline]
    pub fn own(&self) -> Option<&P> {
        COUNTING.then(|| self.0.own())
    }

    /// The same, for who has the thread's area at hand.
    #[inline]
    pub fn within(&self, area: OwnArea) -> Option<&P> {
        COUNTING.then(|| self.0.within(area))
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self, of: impl FnOnce(&P) -> &Count) {
        self.add(of, 1);
    }

    /// The sum so far of the count that `of` chooses.
    pub fn get(&self, of: impl Fn(&P) -> &Count) -> u64 {
        self.0.all().fold(0, |sum, part| sum.wrapping_add(of(part).get()))
    }
}

impl<P: Zeroed> Default for Counts<P> {
    fn default() -> Counts<P> {
        Counts(Place::new())
    }
}

/// Declares a struct of counts, for [`Counts`].
#[macro_export]
macro_rules! counts {
    (
        $(#[$about:meta])*
        $visibility:vis struct $struct:ident {
            $( $(#[doc = $help:literal])* $field:ident, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        $visibility struct $struct {
            $( $(#[doc = $help])* $visibility $field: $crate::metrics::Count, )*
        }

        // SAFETY: it has counts only, of which each can be zeros.
        unsafe impl $crate::metrics::Zeroed for $struct {}
    };
}
