//! A batch on its way in: mutations of one region that are checked one by one and published together.

use cell::KeyValue;
use cell::mutation::{Mutation, MutationKind};

use crate::error::{Error, Result};
use crate::region::Region;
use crate::region::check::check_row;
use crate::region::encode::{Cells, Stamp, is_logged};
use crate::row_locks::RowSet;

/// Mutations of one region that become visible together.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) cells: Cells,
    /// Of the mutations with cells.
    pub(super) rows: RowSet,
    /// The nonce of the first mutation that has one.
    pub(super) nonce: (u64, u64),
    /// Puts that the server stamps get no timestamp below this one.
    pub(super) puts_not_before: Option<i64>,
    /// Whether a mutation adds cells other than delete markers.
    pub(super) adds_data: bool,
    /// Mutations that are not to be in the log, and bytes of their cells.
    pub(super) unlogged: (u64, u64),
    /// The cells that are told to who asked for the mutation.
    pub(super) answers: Vec<Answer>,
}

/// A cell to be told: which one of which mutation.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    mutation: usize,
    index: usize,
}

impl Batch {
    /// An empty one, with room for the cells of `mutations`.
    pub(super) fn for_all(mutations: &[Mutation]) -> Batch {
        let cells = mutations.iter().flat_map(|mutation| &mutation.cells);
        let (mut count, mut bytes) = (0, 0);
        cells.for_each(|cell| (count, bytes) = (count + 1, bytes + cell.bytes().len()));
        Batch { cells: Cells::with_room(count, bytes), ..Batch::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a mutation of `region`.
    ///
    /// # Errors
    /// The first check that fails; the batch is then as before.
    pub(super) fn add(&mut self, region: &Region, mutation: &Mutation) -> Result<()> {
        check_row(region, &mutation.row)?;
        if mutation.kind.reads() {
            return Err(Error::bad_request(format!("no {:?} in a batch of several rows", mutation.kind)));
        }
        let before = self.cells.mark();
        let added = match mutation.cells.is_empty() && mutation.kind == MutationKind::Delete {
            true => self.cells.add_row_delete(region, mutation),
            false => self.cells.add_all(region, mutation, self.puts_not_before),
        };
        if let Err(error) = added {
            self.cells.cut(before);
            return Err(error);
        }
        if self.cells.mark() != before {
            self.rows.add(&mutation.row);
        }
        self.adds_data |= mutation.kind != MutationKind::Delete;
        if !is_logged(region, mutation) {
            self.unlogged.0 += 1;
            self.unlogged.1 += mutation.cells.iter().map(|cell| cell.bytes().len() as u64).sum::<u64>();
        }
        self.note_nonce(mutation);
        Ok(())
    }

    /// Adds what the increment or append at the index `at` of its call writes.
    pub(super) fn add_computed(
        &mut self,
        region: &Region,
        (at, mutation): (usize, &Mutation),
        computed: &[(usize, KeyValue, Stamp)],
    ) {
        let is_logged = is_logged(region, mutation);
        for (store, cell, stamp) in computed {
            let index = self.cells.len();
            self.cells.add(*store, cell, *stamp, is_logged);
            if mutation.return_results {
                self.answers.push(Answer { mutation: at, index });
            }
        }
        if !computed.is_empty() {
            self.rows.add(&mutation.row);
            self.adds_data = true;
        }
        self.note_nonce(mutation);
    }

    fn note_nonce(&mut self, mutation: &Mutation) {
        if self.nonce.1 == 0 {
            self.nonce = mutation.nonce;
        }
    }

    /// The cells to be told, each with the index of its mutation; stamped.
    pub(super) fn take_answers(&mut self) -> Vec<(usize, KeyValue)> {
        let answers = std::mem::take(&mut self.answers);
        let told = answers.into_iter().map(|answer| {
            let (cell, _, stamp) = self.cells.cell(answer.index);
            debug_assert_eq!(stamp, Stamp::Given);
            (answer.mutation, cell.to_key_value())
        });
        told.collect()
    }
}
