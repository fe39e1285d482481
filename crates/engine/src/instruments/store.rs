//! Where reads find the cells of a store. A reader counts, and adds its counts to the store at the
//! end.

use base::metrics::{Count, Counts};
use hfile::FilterCounts;

base::counts! {
    /// The counters of a store.
    pub(crate) struct StoreCounts {
        /// Rows of which all cells that were read came from memstores.
        memstore_reads,
        /// Rows with at least one cell from a file.
        mixed_reads,
        /// Filter lookups.
        filter_lookups,
        /// Filter lookups that excluded a file.
        filter_negatives,
        /// Files without a filter for the lookup.
        filters_missing,
    }
}

/// Where the cells that were read of a row came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// There were no cells.
    #[default]
    Nowhere,
    /// All came from memstores.
    Memstores,
    /// Some came from files.
    Files,
}

impl Origin {
    /// Adds one more cell.
    #[inline]
    pub(crate) fn add(&mut self, in_memstore: impl FnOnce() -> bool) {
        if *self != Origin::Files {
            *self = if in_memstore() { Origin::Memstores } else { Origin::Files };
        }
    }
}

/// Counts of reads that are not added to their store yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreReads {
    memstore: u32,
    mixed: u32,
    filters: FilterCounts,
}

impl StoreReads {
    /// Counts a row.
    #[inline]
    pub(crate) fn count_row(&mut self, origin: Origin) {
        match origin {
            Origin::Nowhere => {}
            Origin::Memstores => self.memstore += 1,
            Origin::Files => self.mixed += 1,
        }
    }

    /// Removes a counted row, because it is read again.
    pub(crate) fn uncount_row(&mut self, origin: Origin) {
        match origin {
            Origin::Nowhere => {}
            Origin::Memstores => self.memstore -= 1,
            Origin::Files => self.mixed -= 1,
        }
    }

    /// Counts lookups in filters of its files.
    #[inline]
    pub(crate) fn count_filters(&mut self, lookups: FilterCounts) {
        if !lookups.is_empty() {
            self.filters += lookups;
        }
    }

    /// Adds all counts to those of the store, and resets them.
    #[inline]
    pub(crate) fn add_to_store(&mut self, counts: &Counts<StoreCounts>) {
        let is_none = self.memstore | self.mixed == 0 && self.filters.is_empty();
        if !is_none && let Some(own) = counts.own() {
            std::mem::take(self).add_to(own);
        }
    }

    fn add_to(self, own: &StoreCounts) {
        let add = |count: &Count, more: u32| count.add(more.into());
        add(&own.memstore_reads, self.memstore);
        add(&own.mixed_reads, self.mixed);
        if !self.filters.is_empty() {
            add(&own.filter_lookups, self.filters.lookups);
            add(&own.filter_negatives, self.filters.negatives);
            add(&own.filters_missing, self.filters.unfiltered);
        }
    }
}
