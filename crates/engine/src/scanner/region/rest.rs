//! Scanners at rest: what is kept of one while its client is silent.
//!
//! A scanner stands on blocks, and its views hold memstores that may have been flushed since and files that may have been
//! compacted away. At rest it has none of them, but for each store the place where it goes on. When it wakes it takes the
//! views of that time. They hold all that it may see, for its read point was registered all along, and was the newest when it was:
//! a compaction that had begun before keeps what is visible at an older one. A scanner with an older read point does not
//! rest.
//!
//! What a compaction may drop before the eyes of readers, as HBase's does (versions beyond the limit, of which a time range
//! shows some; what raw scans show; what expires meanwhile), it may then have dropped.
//!
//! It can rest between two rows. Within one, cells of equal keys would have to be told apart by what was given already.

use super::{Phase, RegionScanner};
use crate::scanner::blocks::Supplied;
use crate::scanner::merge::Merge;
use crate::scanner::rules::FamilyRules;
use crate::scanner::select::select;
use crate::store::StoreView;

/// What a scanner let go of. Dropping it may take a while: memory is given back to the system.
#[must_use = "it is let go of when this is dropped"]
#[derive(Default)]
pub struct LetGo {
    _stores: Vec<(Merge, Option<StoreView>)>,
    _supplied: Vec<Supplied>,
}

impl RegionScanner {
    /// Lets go of what was read ahead and, between two rows, of everything that is not its own. It must be woken before its
    /// next call.
    pub fn rest(&mut self) -> LetGo {
        let supplied = self.blocks.take_supplied();
        let (row, reversed) = (&self.row, self.scan.reversed);
        let place_of = |merge: &Merge| match self.phase {
            Phase::Find => Some(merge.place(Some(row))),
            Phase::Begin if !reversed => Some(merge.place(None)),
            Phase::Begin => Some(merge.place_before_row(row)),
            Phase::Start | Phase::Enter | Phase::Row(_) | Phase::Cut(..) | Phase::Done => None,
        };
        if !self.can_rest() {
            return LetGo { _supplied: supplied, ..LetGo::default() };
        }
        let mut held = Vec::with_capacity(self.stores.len());
        for (at, store) in self.stores.iter_mut().enumerate() {
            // The others are sought in each row.
            let place = if at < self.essential { place_of(&store.merge) } else { None };
            held.push(store.rest(self.order, place));
        }
        if self.phase == Phase::Begin {
            // The row is found once more.
            self.phase = Phase::Find;
        }
        self.resting = true;
        LetGo { _stores: held, _supplied: supplied }
    }

    fn can_rest(&self) -> bool {
        !self.resting
            && !self.stays_awake
            && !matches!(self.phase, Phase::Enter | Phase::Row(_) | Phase::Cut(..))
    }

    /// Never rests: its read point was not the newest when it was registered, so that only its own views are known to have all that
    /// it may see.
    pub(crate) fn stay_awake(&mut self) {
        self.stays_awake = true;
    }

    /// Whether it rests.
    pub fn is_resting(&self) -> bool {
        self.resting
    }

    /// Goes on after a rest, with the families and views that its region has now, in the order of those it was made of.
    pub(crate) fn wake<'a>(&mut self, stores: impl IntoIterator<Item = (&'a FamilyRules, &'a StoreView)>) {
        let read_point = self.guard.read_point();
        for (rules, view) in stores {
            let Some(store) = self.stores.iter_mut().find(|store| *store.family() == rules.family) else {
                continue;
            };
            let qualifiers = self.scan.selection.wants(&rules.family).flatten();
            let sources = select(view, self.order, rules, &self.scan, qualifiers, read_point, self.now_ms);
            store.wake(view, Merge::new(self.order, sources));
        }
        self.resting = false;
    }

    /// Whether it holds memstores or files that its region does not have any more, and could rest.
    pub(crate) fn holds_others_than<'a>(
        &self,
        stores: impl IntoIterator<Item = (&'a FamilyRules, &'a StoreView)>,
    ) -> bool {
        let mut stores = stores.into_iter();
        self.can_rest()
            && stores.any(|(rules, view)| {
                let held = self.stores.iter().find(|store| *store.family() == rules.family);
                held.and_then(|store| store.view()).is_some_and(|held| !held.is(view))
            })
    }
}
