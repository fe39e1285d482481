//! Prefetches memory for Gets that are read in sequence.
//!
//! A read of a row follows a chain of pointers: each address is known only after the previous
//! memory was loaded. The prefetcher advances the locators of the next rows by one stage at a time
//! ([`hfile::RowLocator`]), some rows ahead of the row that is read, so that the CPU loads their
//! memory meanwhile. Each stage runs for a small group of rows, so that their address translations
//! overlap (on a virtual machine each walks two page tables). The group is small because a CPU
//! tracks few outstanding misses.

use cell::query::MultiGet;
use hfile::BlockSource;

use crate::scanner::row_locator::StoreRowLocator;
use crate::store::StoreView;

/// Rows for which a stage runs together.
const GROUP: usize = 4;
/// How many rows ahead of the current row each stage runs: first the search of the index, then the
/// stages of [`hfile::RowLocator::advance`].
const STAGE_DISTANCES: [usize; 1 + hfile::RowLocator::STAGES] =
    [4 * GROUP, 4 * GROUP, 3 * GROUP, 2 * GROUP, GROUP, GROUP];
/// Slots for locators: those of the rows ahead, and those of the current group.
const SLOTS: usize = (STAGE_DISTANCES[0] + GROUP).next_power_of_two();

/// Prefetches for the rows of Gets; see the module's documentation.
#[derive(Default)]
pub(crate) struct Prefetcher {
    // The locator of the Get at `at` is in slot `at % SLOTS`.
    slots: [StoreRowLocator; SLOTS],
    // How many of the Gets have completed each stage.
    progress: [usize; STAGE_DISTANCES.len()],
}

impl Prefetcher {
    /// The locator for the Get at `at`. First runs the stages for the following Gets. `first` is
    /// the store that is read first. A caller that goes back to an earlier Get receives an empty
    /// locator.
    #[inline]
    pub(crate) fn locator(
        &mut self,
        at: usize,
        gets: &MultiGet,
        first: Option<&StoreView>,
        blocks: &dyn BlockSource,
    ) -> &mut StoreRowLocator {
        let [located, .., completed] = self.progress;
        if at.is_multiple_of(GROUP) || completed <= at {
            self.advance(at, gets, first, blocks);
        }
        let is_reused = at + SLOTS < located;
        let locator = &mut self.slots[at % SLOTS];
        if is_reused {
            *locator = StoreRowLocator::default();
        }
        locator
    }

    /// Runs each stage for its next group.
    fn advance(&mut self, at: usize, gets: &MultiGet, first: Option<&StoreView>, blocks: &dyn BlockSource) {
        for (stage, distance) in STAGE_DISTANCES.into_iter().enumerate() {
            let end = gets.len().min(at + distance + GROUP).max(self.progress[stage]);
            for at in std::mem::replace(&mut self.progress[stage], end)..end {
                let (slot, row) = (&mut self.slots[at % SLOTS], gets.row(at));
                match stage {
                    0 => *slot = StoreRowLocator::new(row, first, blocks),
                    _ => slot.advance(row, first, blocks),
                }
            }
        }
        debug_assert!(self.progress.is_sorted_by(|earlier, later| earlier >= later), "stages run in order");
    }
}
