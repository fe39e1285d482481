//! Looking ahead of rows that are read one behind the other.
//!
//! A read of a row looks at one place of memory after the other, and where the next one is stands in the one before. So the
//! processor is asked for them in steps, some rows ahead each: it fetches one row's place while others are read. A step is made
//! for a few rows together, so that it looks for their addresses at the same time (two tables of pages to walk through, on a
//! virtual machine); for few, as it can fetch only so much at once.

use cell::query::GetsAlike;
use hfile::BlockSource;

use crate::scanner::row::Aim;
use crate::store::StoreView;

/// Rows that a step is made for together.
const GROUP: usize = 4;
/// Rows ahead for which it is found out which block they are in, then the block is asked for, then what a search of it looks at,
/// then the cell.
const FIND: usize = 4 * GROUP;
const BLOCK: usize = 3 * GROUP;
const SEARCH: usize = 2 * GROUP;
const CELL: usize = GROUP;
/// Places for aims: those of rows ahead, and those of the group at hand.
const AIMS: usize = (FIND + GROUP).next_power_of_two();

/// Looks ahead of Gets; see the module's documentation.
#[derive(Default)]
pub(crate) struct Ahead {
    // That of the Get at `at` is at `at % AIMS`.
    aims: [Aim; AIMS],
    // So many of the Gets have come so far.
    found: usize,
    aimed: usize,
    searched: usize,
    fetched: usize,
}

impl Ahead {
    /// The aim at the row of the Get at `at`, and steps for those behind it. `first` is the store that is read first. Who goes
    /// back gets one that is at nothing.
    #[inline]
    pub(crate) fn aim(
        &mut self,
        at: usize,
        gets: &GetsAlike,
        first: Option<&StoreView>,
        blocks: &dyn BlockSource,
    ) -> &mut Aim {
        if at.is_multiple_of(GROUP) || self.fetched <= at {
            self.look(at, gets, first, blocks);
        }
        let is_anothers = at + AIMS < self.found;
        let aim = &mut self.aims[at % AIMS];
        if is_anothers {
            *aim = Aim::default();
        }
        aim
    }

    /// Makes the steps for the next group of each.
    fn look(&mut self, at: usize, gets: &GetsAlike, first: Option<&StoreView>, blocks: &dyn BlockSource) {
        let upto = |ahead: usize| gets.len().min(at + ahead + GROUP);
        // What asks for memory is asked right behind each other: for all that is in different pages.
        let found = forward(&mut self.found, upto(FIND));
        for at in found.clone() {
            self.aims[at % AIMS] = Aim::at(gets.row(at), first, blocks);
        }
        for at in found {
            self.aims[at % AIMS].prefetch_block(blocks);
        }
        for at in forward(&mut self.aimed, upto(BLOCK)) {
            self.aims[at % AIMS].take_block(first, blocks);
        }
        for at in forward(&mut self.searched, upto(SEARCH)) {
            self.aims[at % AIMS].prefetch_search(gets.row(at));
        }
        let fetched = forward(&mut self.fetched, upto(CELL));
        for at in fetched.clone() {
            self.aims[at % AIMS].find_cell(gets.row(at));
        }
        for at in fetched {
            self.aims[at % AIMS].prefetch_cell();
        }
    }
}

/// Those from where a step has come to on; it comes to `end`.
fn forward(so_far: &mut usize, end: usize) -> std::ops::Range<usize> {
    let start = std::mem::replace(so_far, end.max(*so_far));
    start..end
}
