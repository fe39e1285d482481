//! A batch before it is published: mutations of one region, checked one by one, published together.

use std::sync::Arc;

use cell::KeyValue;
use cell::mutation::{Durability, Mutation, MutationKind};

use crate::error::{Error, Result};
use crate::region::Region;
use crate::region::check::check_row;
use crate::region::encode::{Cells, TimestampRule, is_logged};
use crate::row_locks::RowSet;

/// Mutations of one region that become visible together.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) cells: Cells,
    /// Rows of the mutations that have cells.
    pub(super) rows: RowSet,
    /// The nonce of the first mutation that has one.
    pub(super) nonce: (u64, u64),
    /// Lower limit of the timestamps that the server assigns to cells of puts.
    pub(super) puts_not_before: Option<i64>,
    /// Whether a mutation adds cells other than delete markers.
    pub(super) adds_data: bool,
    /// Number of mutations that skip the log, and bytes of their cells.
    pub(super) unlogged_count_and_bytes: (u64, u64),
    /// Whether a mutation must survive power loss (`FSYNC_WAL`).
    pub(super) is_forced: bool,
    /// The clusters that already have the mutations. As in HBase, those of the first mutation that
    /// has some: a replicated batch has the same for all.
    pub(super) cluster_ids: Option<Arc<[(u64, u64)]>>,
    /// The cells to return to the client.
    pub(super) returned: Vec<ReturnedCell>,
}

/// A cell to return, and the mutation it belongs to.
#[derive(Clone, Copy)]
pub(super) struct ReturnedCell {
    mutation: usize,
    index: usize,
}

impl Batch {
    /// An empty batch with capacity for the cells of `mutations`.
    pub(super) fn with_capacity_for(mutations: &[Mutation]) -> Batch {
        let cells = mutations.iter().flat_map(|mutation| &mutation.cells);
        let (mut count, mut bytes) = (0, 0);
        cells.for_each(|cell| (count, bytes) = (count + 1, bytes + cell.bytes().len()));
        Batch { cells: Cells::with_capacity(count, bytes), ..Batch::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a mutation of `region`.
    ///
    /// # Errors
    /// The first check that fails. The batch is then unchanged.
    pub(super) fn add(&mut self, region: &Region, mutation: &Mutation) -> Result<()> {
        check_row(region, &mutation.row)?;
        if mutation.kind.reads() {
            return Err(Error::bad_request(format!("{:?} is invalid in a multi-row batch", mutation.kind)));
        }
        let before = self.cells.mark();
        let added = match mutation.cells.is_empty() && mutation.kind == MutationKind::Delete {
            true => self.cells.add_row_delete(region, mutation),
            false => self.cells.add_all(region, mutation, self.puts_not_before),
        };
        if let Err(error) = added {
            self.cells.truncate(before);
            return Err(error);
        }
        if self.cells.mark() != before {
            self.rows.add(&mutation.row);
        }
        self.adds_data |= mutation.kind != MutationKind::Delete;
        if !is_logged(region, mutation) {
            self.unlogged_count_and_bytes.0 += 1;
            self.unlogged_count_and_bytes.1 += mutation.cells_len() as u64;
        }
        self.add_settings(region, mutation);
        Ok(())
    }

    /// Adds the cells written by an increment or append, which has the index `at` in its call.
    pub(super) fn add_computed(
        &mut self,
        region: &Region,
        (at, mutation): (usize, &Mutation),
        computed: &[(usize, KeyValue, TimestampRule)],
    ) {
        let is_logged = is_logged(region, mutation);
        for (store, cell, rule) in computed {
            let index = self.cells.len();
            self.cells.add(*store, cell, *rule, is_logged);
            if mutation.return_results {
                self.returned.push(ReturnedCell { mutation: at, index });
            }
        }
        if !computed.is_empty() {
            self.rows.add(&mutation.row);
            self.adds_data = true;
        }
        self.add_settings(region, mutation);
    }

    fn add_settings(&mut self, region: &Region, mutation: &Mutation) {
        self.is_forced |= region.durability_of(mutation) == Durability::FsyncWal;
        if self.cluster_ids.is_none() {
            self.cluster_ids.clone_from(&mutation.cluster_ids);
        }
        if self.nonce.1 == 0 {
            self.nonce = mutation.nonce;
        }
    }

    /// The cells to return, each with the index of its mutation. Their timestamps are final.
    pub(super) fn take_returned(&mut self) -> Vec<(usize, KeyValue)> {
        let returned = std::mem::take(&mut self.returned);
        let cells = returned.into_iter().map(|returned_cell| {
            let (cell, _, rule) = self.cells.cell(returned_cell.index);
            debug_assert_eq!(rule, TimestampRule::Given);
            (returned_cell.mutation, cell.to_key_value())
        });
        cells.collect()
    }
}
