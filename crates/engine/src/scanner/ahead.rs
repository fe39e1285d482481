//! Looking ahead of rows that are read one behind the other.
//!
//! A read of a row looks at one place of memory after the other, and where the next one is stands in the one before. So the
//! processor is asked for them in three steps, some rows ahead each: it fetches one row's place while others are read. Few
//! at a time: more than it can fetch at once it would wait for.

use cell::query::GetsAlike;
use hfile::BlockSource;

use crate::scanner::row::Aim;
use crate::store::StoreView;

/// Rows ahead for which the block is asked for, then what a search of it looks at, then the cell.
const BLOCK: usize = 9;
const SEARCH: usize = 6;
const CELL: usize = 3;
/// Places for aims: those of rows ahead, and that of the row at hand.
const AIMS: usize = (BLOCK + 1).next_power_of_two();

/// Looks ahead of Gets; see the module's documentation.
#[derive(Default)]
pub(crate) struct Ahead {
    // That of the Get at `at` is at `at % AIMS`. They are used again.
    aims: [Aim; AIMS],
    // So many of the Gets have come so far.
    aimed: usize,
    searched: usize,
    fetched: usize,
}

impl Ahead {
    /// The aim at the row of the Get at `at`, and a step for those behind it. `first` is the store that is read first.
    #[inline]
    pub(crate) fn aim(
        &mut self,
        at: usize,
        gets: &GetsAlike,
        first: Option<&StoreView>,
        blocks: &dyn BlockSource,
    ) -> &mut Aim {
        let upto = |ahead: usize| gets.len().min(at + ahead + 1);
        let (aimed, searched, fetched) = (upto(BLOCK), upto(SEARCH), upto(CELL));
        for at in self.aimed..aimed {
            self.aims[at % AIMS].set_block(gets.row(at), first, blocks);
        }
        for at in self.searched..searched {
            self.aims[at % AIMS].prefetch_search(gets.row(at));
        }
        for at in self.fetched..fetched {
            self.aims[at % AIMS].prefetch_cell(gets.row(at));
        }
        self.aimed = self.aimed.max(aimed);
        self.searched = self.searched.max(searched);
        self.fetched = self.fetched.max(fetched);
        let (row, aim) = (gets.row(at), &mut self.aims[at % AIMS]);
        // Who goes back finds that another row was aimed at since.
        if !aim.is_at(row) {
            aim.set_row(row);
        }
        aim
    }
}
