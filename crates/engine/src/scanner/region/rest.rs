//! Scanners at rest: scanners whose client is idle release their blocks and views.
//!
//! A scanner pins blocks, and its views pin memstores that may have been flushed and files that may
//! have been compacted away. A resting scanner holds none of them, only the position in each store
//! at which it resumes. When woken, it takes the current views. These hold all cells that it may
//! see, because its read point stays registered, and was the newest read point when it was
//! registered. A compaction that began earlier keeps what is visible at older read points. A
//! scanner with an older read point does not rest.
//!
//! As in HBase, a compaction may drop cells that open readers can still see. These are versions
//! beyond the limit (a time range can show some of them), cells that only raw scans show, and cells
//! that expire meanwhile. After a rest, the scanner may miss such cells.
//!
//! A scanner can rest only between two rows. Within a row, it would have to distinguish cells with
//! equal keys that it has returned from those that it has not.

use super::{Phase, RegionScanner};
use crate::scanner::blocks::SuppliedBlock;
use crate::scanner::merge::Merge;
use crate::scanner::rules::FamilyRules;
use crate::scanner::select::select;
use crate::store::StoreView;

/// What a resting scanner released. Dropping this may take a while, because memory is returned to
/// the system.
#[must_use = "memory is released when this is dropped"]
#[derive(Default)]
pub struct ReleasedViews {
    _stores: Vec<(Merge, Option<StoreView>)>,
    _supplied: Vec<SuppliedBlock>,
}

impl RegionScanner {
    /// Releases the blocks that were read ahead and, between two rows, the views and all other
    /// blocks. The scanner must be woken before its next call.
    pub fn rest(&mut self) -> ReleasedViews {
        let supplied = self.blocks.take_supplied();
        let (row, reversed) = (&self.row, self.scan.reversed);
        let position_of = |merge: &Merge| match self.phase {
            Phase::Find => Some(merge.position(Some(row))),
            Phase::BeginRow if !reversed => Some(merge.position(None)),
            Phase::BeginRow => Some(merge.position_before_row(row)),
            Phase::SeekFirst | Phase::MoveToRow | Phase::Row(_) | Phase::LimitReached(..) | Phase::Done => {
                None
            }
        };
        if !self.can_rest() {
            return ReleasedViews { _supplied: supplied, ..ReleasedViews::default() };
        }
        let mut held = Vec::with_capacity(self.stores.len());
        for (at, store) in self.stores.iter_mut().enumerate() {
            // Stores that are read on demand are sought in each row anyway.
            let position = if at < self.essential_count { position_of(&store.merge) } else { None };
            held.push(store.rest(self.order, position));
        }
        if self.phase == Phase::BeginRow {
            // The row is found again after the rest.
            self.phase = Phase::Find;
        }
        self.resting = true;
        ReleasedViews { _stores: held, _supplied: supplied }
    }

    fn can_rest(&self) -> bool {
        !self.resting
            && !self.pins_views
            && !matches!(self.phase, Phase::MoveToRow | Phase::Row(_) | Phase::LimitReached(..))
    }

    /// Whether the scanner rests.
    pub fn is_resting(&self) -> bool {
        self.resting
    }

    /// Resumes after a rest. `stores` are the families of the region with their current views.
    pub(crate) fn wake<'a>(&mut self, stores: impl IntoIterator<Item = (&'a FamilyRules, &'a StoreView)>) {
        let read_point = self.guard.read_point();
        for (rules, view) in stores {
            let Some(store) = self.stores.iter_mut().find(|store| *store.family() == rules.family) else {
                continue;
            };
            let qualifiers = self.scan.selection.qualifiers_of(&rules.family).flatten();
            let sources = select(view, self.order, rules, &self.scan, qualifiers, read_point, self.now_ms);
            store.wake(view, Merge::new(self.order, sources));
        }
        debug_assert!(
            self.stores.iter().all(|store| store.view().is_some()),
            "a scanner that was woken reads all of its stores"
        );
        self.resting = false;
    }

    /// Whether the scanner holds memstores or files that the region no longer has, and could rest.
    pub(crate) fn pins_outdated_views<'a>(
        &self,
        stores: impl IntoIterator<Item = (&'a FamilyRules, &'a StoreView)>,
    ) -> bool {
        let mut stores = stores.into_iter();
        self.can_rest()
            && stores.any(|(rules, view)| {
                let held = self.stores.iter().find(|store| *store.family() == rules.family);
                held.and_then(|store| store.view()).is_some_and(|held| !held.is_same_as(view))
            })
    }
}
