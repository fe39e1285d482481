//! The plan by which the rows of one selection are read. It is computed once for all rows.

use std::ops::Deref;
use std::sync::Arc;

use base::metrics::Counts;
use bytes::Bytes;
use cell::query::{CellSelection, TimeRange};

use crate::instruments::{Origin, StoreCounts, StoreReads};
use crate::scanner::matcher::{Matcher, Versions};
use crate::scanner::rules::FamilyRules;

/// How rows are read for a selection.
pub(crate) struct RowPlan {
    // The stores to read, in order; `None` if rows need a scanner.
    stores: Option<Vec<StorePlan>>,
    // Buffer for the key before a row, reused for each row.
    start: Vec<u8>,
}

/// How the cells of a row are read from one store.
pub(super) struct StorePlan {
    /// Index of the store in the region.
    pub(super) store: usize,
    /// The wanted timestamps, and the oldest timestamp that may be alive.
    pub(super) range: TimeRange,
    pub(super) oldest: i64,
    pub(super) matcher: Matcher<Qualifiers>,
    /// Counts of reads that were not added to the store's counters yet.
    pub(super) reads: StoreReads,
    /// The origin that `reads` counted for the row that was read last.
    pub(super) origin: Origin,
}

impl RowPlan {
    /// The plan for `selection`. `rules` are those of all families of the region in order of names.
    /// `now_ms` is the time by which cells expire.
    pub(crate) fn of<'r>(
        selection: &Arc<CellSelection>,
        rules: impl IntoIterator<Item = &'r FamilyRules>,
        now_ms: i64,
    ) -> RowPlan {
        let is_simple =
            selection.filter.is_none() && selection.store_limit.is_none() && selection.store_offset == 0;
        let rules = rules.into_iter();
        let wanted = match selection.columns.len() {
            0 => rules.size_hint().0,
            named => named.min(rules.size_hint().0),
        };
        // Room for the wanted stores only: a store's plan is large, and most Gets read one store.
        let mut stores = is_simple.then(|| Vec::with_capacity(wanted));
        for (store, rules) in rules.enumerate() {
            let Some(qualifiers) = Qualifiers::of(selection, &rules.family) else { continue };
            if rules.new_version_behavior || rules.reads_mob(selection.mob) {
                // Cells are judged in write order, or values are in MOB files: both need a scanner.
                stores = None;
            }
            let Some(stores) = &mut stores else { break };
            stores.push(StorePlan::of(selection, qualifiers, store, rules, now_ms));
        }
        RowPlan { stores, start: Vec::new() }
    }

    /// Index of the first store that is read.
    pub(crate) fn first_store(&self) -> Option<usize> {
        self.stores.as_ref()?.first().map(|plan| plan.store)
    }

    /// Adds the reads to `counts`, the counters of all stores of the region.
    #[inline]
    pub(crate) fn count_reads(&mut self, counts: &[Counts<StoreCounts>]) {
        for plan in self.stores.iter_mut().flatten() {
            plan.reads.add_to_store(&counts[plan.store]);
        }
    }

    /// The plans of the wanted stores, and the buffer for the key before a row.
    pub(super) fn parts(&mut self) -> (Option<&mut [StorePlan]>, &mut Vec<u8>) {
        (self.stores.as_deref_mut(), &mut self.start)
    }
}

impl StorePlan {
    fn of(
        selection: &CellSelection,
        qualifiers: Option<Qualifiers>,
        store: usize,
        rules: &FamilyRules,
        now_ms: i64,
    ) -> StorePlan {
        let range = selection.time_range_of(&rules.family);
        let versions = Versions { wanted: selection.max_versions, filtered: false };
        let matcher = Matcher::user(rules, qualifiers, range, versions, now_ms);
        StorePlan {
            store,
            range,
            oldest: rules.oldest_wanted(now_ms),
            matcher,
            reads: StoreReads::default(),
            origin: Origin::Nowhere,
        }
    }
}

/// The wanted qualifiers of a family, if not all are wanted.
pub(super) struct Qualifiers {
    selection: Arc<CellSelection>,
    // Index of the family in the selection.
    family: usize,
}

impl Qualifiers {
    /// `None` if the family is not wanted, `Some(None)` if all of it is.
    fn of(selection: &Arc<CellSelection>, family: &[u8]) -> Option<Option<Qualifiers>> {
        let single = selection.qualifiers_of(family)?.is_some();
        let family = selection.columns.iter().position(|columns| columns.family == family);
        let of = |family| Qualifiers { selection: selection.clone(), family };
        Some(family.filter(|_| single).map(of))
    }
}

impl Deref for Qualifiers {
    type Target = [Bytes];

    #[inline]
    fn deref(&self) -> &[Bytes] {
        self.selection.columns[self.family].qualifiers.as_deref().unwrap_or_default()
    }
}
