//! Several counts of one object in one allocation, for objects of which there are many.

use crate::metrics::COUNTING;
use crate::metrics::areas::{AreaOffset, Count, OwnArea, Zeroed};

/// Counts that only grow, in a struct `P` declared with [`counts`](crate::counts). Each counting
/// thread has its own `P`.
///
/// ```
/// base::counts! {
///     /// Requests of a region.
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
pub struct Counts<P: Zeroed>(AreaOffset<P>);

impl<P: Zeroed> Counts<P> {
    /// Adds `amount` to the count that `of` selects.
    #[inline]
    pub fn add(&self, of: impl FnOnce(&P) -> &Count, amount: u64) {
        if COUNTING {
            of(self.0.own()).add(amount);
        }
    }

    /// The counts of this thread, to update several of them together; `None` if metrics are
    /// disabled.
    #[inline]
    pub fn own(&self) -> Option<&P> {
        COUNTING.then(|| self.0.own())
    }

    /// Like [`own`](Self::own), for a caller that already has the thread's area.
    #[inline]
    pub fn within(&self, area: OwnArea) -> Option<&P> {
        COUNTING.then(|| self.0.within(area))
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self, of: impl FnOnce(&P) -> &Count) {
        self.add(of, 1);
    }

    /// The current sum of the count that `of` selects.
    pub fn get(&self, of: impl Fn(&P) -> &Count) -> u64 {
        self.0.all().fold(0, |sum, part| sum.wrapping_add(of(part).get()))
    }
}

impl<P: Zeroed> Default for Counts<P> {
    fn default() -> Counts<P> {
        Counts(AreaOffset::new())
    }
}

/// Declares a struct of counts for [`Counts`].
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

        // SAFETY: all fields are counts, which may be zero bytes.
        unsafe impl $crate::metrics::Zeroed for $struct {}
    };
}
