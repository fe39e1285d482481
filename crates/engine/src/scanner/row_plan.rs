//! What is the same of all rows that are read for one selection, made out once for all of them.

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
    // Those that are wanted, in order; `None` if rows are for a scanner.
    stores: Option<Vec<StorePlan>>,
    // Memory for the key in front of a row, used again for each.
    start: Vec<u8>,
}

/// How the part of a row is read that is in one store.
pub(super) struct StorePlan {
    /// Which of the region's stores.
    pub(super) store: usize,
    /// The timestamps wanted, and the oldest that may live.
    pub(super) range: TimeRange,
    pub(super) oldest: i64,
    pub(super) matcher: Matcher<Qualifiers>,
    /// What the store is to be told of rows that were read.
    pub(super) reads: StoreReads,
    /// What that has of the row that was read last.
    pub(super) origin: Origin,
}

impl RowPlan {
    /// The plan for a selection from families of these rules, all of the region in order of names. `now_ms` is the time by
    /// which cells expire.
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
        // Room for those alone: a store's part is long, and most Gets are for one.
        let mut stores = is_simple.then(|| Vec::with_capacity(wanted));
        for (store, rules) in rules.enumerate() {
            let Some(qualifiers) = Qualifiers::of(selection, &rules.family) else { continue };
            if rules.new_version_behavior {
                // Cells are judged in the order of writing.
                stores = None;
            }
            let Some(stores) = &mut stores else { break };
            stores.push(StorePlan::of(selection, qualifiers, store, rules, now_ms));
        }
        RowPlan { stores, start: Vec::new() }
    }

    /// The first of the region's stores that is read.
    pub(crate) fn first_store(&self) -> Option<usize> {
        self.stores.as_ref()?.first().map(|plan| plan.store)
    }

    /// Tells the stores what was read; `counts` are those of all stores of the region.
    #[inline]
    pub(crate) fn tell_reads(&mut self, counts: &[Counts<StoreCounts>]) {
        for plan in self.stores.iter_mut().flatten() {
            plan.reads.tell(&counts[plan.store]);
        }
    }

    /// How the row is read in each of the stores that are wanted, and memory for the key in front of it.
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

/// The qualifiers that are wanted of a family, where not all are.
pub(super) struct Qualifiers {
    selection: Arc<CellSelection>,
    // Which of the families that are wanted.
    family: usize,
}

impl Qualifiers {
    /// `None` if nothing is wanted of the family, `Some(None)` if all is.
    fn of(selection: &Arc<CellSelection>, family: &[u8]) -> Option<Option<Qualifiers>> {
        let single = selection.wants(family)?.is_some();
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
