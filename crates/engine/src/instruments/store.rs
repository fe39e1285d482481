//! What reads find in a store: counted by whoever reads, told to the store when he is done.

use base::metrics::{Count, Counts};
use hfile::FiltersAsked;

base::counts! {
    /// What a store counts for itself.
    pub(crate) struct StoreCounts {
        /// Rows all of whose cells that were read came from memory.
        memstore_reads,
        /// Rows with cells from files.
        mixed_reads,
        /// Looks into filters.
        filter_looks,
        /// Those that said no.
        filter_negatives,
        /// Files without a filter, which would have been asked.
        filters_missing,
    }
}

/// Where the cells are that were read of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// There were none.
    #[default]
    Nowhere,
    /// All in memstores.
    Memstores,
    /// Some in files.
    Files,
}

impl Origin {
    /// That of one cell more.
    #[inline]
    pub(crate) fn add(&mut self, in_memstore: impl FnOnce() -> bool) {
        if *self != Origin::Files {
            *self = if in_memstore() { Origin::Memstores } else { Origin::Files };
        }
    }
}

/// What was found in a store, and not told to it yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreReads {
    memstore: u32,
    mixed: u32,
    filters: FiltersAsked,
}

impl StoreReads {
    /// A row was read.
    #[inline]
    pub(crate) fn note_row(&mut self, origin: Origin) {
        match origin {
            Origin::Nowhere => {}
            Origin::Memstores => self.memstore += 1,
            Origin::Files => self.mixed += 1,
        }
    }

    /// A row that was noted is read once more.
    pub(crate) fn forget_row(&mut self, origin: Origin) {
        match origin {
            Origin::Nowhere => {}
            Origin::Memstores => self.memstore -= 1,
            Origin::Files => self.mixed -= 1,
        }
    }

    /// Filters of its files were asked.
    #[inline]
    pub(crate) fn note_filters(&mut self, asked: FiltersAsked) {
        if !asked.is_none() {
            self.filters += asked;
        }
    }

    /// Tells all of it to the store.
    #[inline]
    pub(crate) fn tell(&mut self, counts: &Counts<StoreCounts>) {
        let is_none = self.memstore | self.mixed == 0 && self.filters.is_none();
        if !is_none && let Some(own) = counts.own() {
            std::mem::take(self).add_to(own);
        }
    }

    fn add_to(self, own: &StoreCounts) {
        let add = |count: &Count, more: u32| count.add(more.into());
        add(&own.memstore_reads, self.memstore);
        add(&own.mixed_reads, self.mixed);
        if !self.filters.is_none() {
            add(&own.filter_looks, self.filters.looks);
            add(&own.filter_negatives, self.filters.negatives);
            add(&own.filters_missing, self.filters.without);
        }
    }
}
