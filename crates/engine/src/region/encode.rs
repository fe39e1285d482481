//! A batch on its way in: checked, and its cells encoded once, as the log and the memstore take them.
//!
//! Per mutation all or nothing: what fails a check leaves no bytes behind. What increments and appends write is computed
//! elsewhere (`region::delta`). Timestamps that the server gives are filled in when the batch is published. Cells that are not to be logged are kept apart, so that the bytes of the others are
//! the log's as they are.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use cell::cell::{LENGTHS_LEN, ROW_LEN_MAX};
use cell::key::TIMESTAMP_TYPE_LEN;
use cell::mutation::{Durability, Mutation, MutationKind};
use cell::schema::FamilyDescriptor;
use cell::{Cell, CellType, KeyValue, LATEST_TIMESTAMP};
use wal::Scope;

use crate::error::{Error, Result};
use crate::region::Region;
use crate::store::RegionView;

/// Bytes of the length before each cell in a log.
pub(super) const LENGTH_LEN: usize = 4;

/// Mutations of one region that become visible together.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) logged: Cells,
    pub(super) unlogged: Cells,
    /// Of the mutations with cells.
    pub(super) rows: Vec<Bytes>,
    /// The nonce of the first mutation that has one.
    pub(super) nonce: (u64, u64),
    /// Puts that the server stamps get no timestamp below this one.
    pub(super) puts_not_before: Option<i64>,
    /// The cells that are told to who asked for the mutation.
    pub(super) answers: Vec<Answer>,
}

/// A cell to be told: which one of which mutation.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    mutation: usize,
    is_logged: bool,
    index: usize,
}

/// Encoded cells: `(length 4 | KeyValue)*`.
#[derive(Default)]
pub(super) struct Cells {
    bytes: BytesMut,
    at: Vec<EncodedCell>,
}

/// Where a cell lies in the bytes, and what is still to be done to it.
#[derive(Clone, Copy)]
pub(super) struct EncodedCell {
    /// Offset of the KeyValue, behind its length.
    start: usize,
    key_len: usize,
    value_len: usize,
    tags_len: usize,
    /// Index of its store.
    pub(super) store: usize,
    pub(super) stamp: Stamp,
}

/// Which timestamp a cell gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// It has one.
    Given,
    /// The server's clock.
    Now,
    /// The server's clock, but no less than this.
    NotBefore(i64),
    /// That of the nth newest version of its column, counted from 1; the server's clock if there are fewer.
    Newest(u32),
}

impl Batch {
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
        let puts_not_before = self.puts_not_before;
        let cells = self.cells_of(is_logged(region, mutation));
        let before = cells.mark();
        let added = match mutation.cells.is_empty() && mutation.kind == MutationKind::Delete {
            true => cells.add_row_delete(region, mutation),
            false => cells.add_all(region, mutation, puts_not_before),
        };
        if let Err(error) = added {
            cells.cut(before);
            return Err(error);
        }
        if cells.mark() != before {
            self.rows.push(mutation.row.clone());
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
            let cells = self.cells_of(is_logged);
            let index = cells.len();
            cells.add(*store, cell, *stamp);
            if mutation.return_results {
                self.answers.push(Answer { mutation: at, is_logged, index });
            }
        }
        if !computed.is_empty() {
            self.rows.push(mutation.row.clone());
        }
        self.note_nonce(mutation);
    }

    fn note_nonce(&mut self, mutation: &Mutation) {
        if self.nonce.1 == 0 {
            self.nonce = mutation.nonce;
        }
    }

    fn cells_of(&mut self, is_logged: bool) -> &mut Cells {
        if is_logged { &mut self.logged } else { &mut self.unlogged }
    }

    /// The cells to be told, each with the index of its mutation; stamped.
    pub(super) fn take_answers(&mut self) -> Vec<(usize, KeyValue)> {
        let answers = std::mem::take(&mut self.answers);
        let told = answers.into_iter().map(|answer| {
            let cells = if answer.is_logged { &self.logged } else { &self.unlogged };
            let (cell, _, stamp) = cells.cell(answer.index);
            debug_assert_eq!(stamp, Stamp::Given);
            (answer.mutation, cell.to_key_value())
        });
        told.collect()
    }

    /// The cells to be logged and those not to be.
    pub(super) fn both(&mut self) -> [&mut Cells; 2] {
        [&mut self.logged, &mut self.unlogged]
    }

    /// Gives the remaining cells the timestamp `now`.
    pub(super) fn stamp_now(&mut self, now: i64) {
        self.logged.stamp_now(now);
        self.unlogged.stamp_now(now);
    }
}

fn is_logged(region: &Region, mutation: &Mutation) -> bool {
    region.durability_of(mutation) != Durability::SkipWal
}

pub(super) fn check_row(region: &Region, row: &Bytes) -> Result<()> {
    if row.is_empty() {
        return Err(Error::bad_request("Row length is 0"));
    }
    if row.len() > ROW_LEN_MAX {
        return Err(Error::bad_request(format!("Row length {} is > {ROW_LEN_MAX}", row.len())));
    }
    region.check_contains(row)
}

impl Cells {
    fn mark(&self) -> (usize, usize) {
        (self.bytes.len(), self.at.len())
    }

    fn cut(&mut self, (bytes, cells): (usize, usize)) {
        self.bytes.truncate(bytes);
        self.at.truncate(cells);
    }

    /// A marker in every family: what a delete without cells means.
    fn add_row_delete(&mut self, region: &Region, mutation: &Mutation) -> Result<()> {
        for (store, family) in region.families().iter().enumerate() {
            let kind = CellType::DeleteFamily;
            let cell = KeyValue::new(&mutation.row, &family.name, &[], mutation.timestamp, kind, &[]);
            self.add(store, &cell, stamp_of(mutation.timestamp));
        }
        Ok(())
    }

    fn add_all(&mut self, region: &Region, mutation: &Mutation, puts_not_before: Option<i64>) -> Result<()> {
        let first = self.at.len();
        for key_value in &mutation.cells {
            let cell = key_value.view(0);
            check_cell(mutation, &cell)?;
            let store = region.store_of(cell.family())?;
            let stamp = match stamp_of(cell.timestamp()) {
                Stamp::Now if cell.kind() == CellType::Delete => {
                    Stamp::Newest(self.rank_in_column(first, &cell))
                }
                Stamp::Now if cell.kind() == CellType::Put => {
                    puts_not_before.map_or(Stamp::Now, Stamp::NotBefore)
                }
                stamp => stamp,
            };
            check_size(region, &cell)?;
            match mutation.ttl_ms {
                None => self.add(store, key_value, stamp),
                Some(ttl_ms) => self.add(store, &with_ttl(&cell, ttl_ms)?, stamp),
            }
        }
        Ok(())
    }

    /// The how-manieth marker "newest version of this column" of its mutation, whose cells begin at `first`, this is.
    fn rank_in_column(&self, first: usize, cell: &Cell<'_>) -> u32 {
        let earlier = self.at[first..].iter().filter(|at| {
            let other = self.cell_at(at, 0);
            at.stamp != Stamp::Given
                && other.kind() == CellType::Delete
                && (other.family(), other.qualifier()) == (cell.family(), cell.qualifier())
        });
        earlier.count() as u32 + 1
    }

    fn add(&mut self, store: usize, cell: &KeyValue, stamp: Stamp) {
        let bytes = cell.bytes();
        let view = cell.view(0);
        self.bytes.reserve(LENGTH_LEN + bytes.len());
        self.bytes.put_u32(bytes.len() as u32);
        let start = self.bytes.len();
        self.bytes.put_slice(bytes);
        let (key_len, value_len, tags_len) = (view.key.len(), view.value.len(), view.tags.len());
        self.at.push(EncodedCell { start, key_len, value_len, tags_len, store, stamp });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Bytes as the log takes them.
    pub(super) fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    /// The cell at an index; its timestamp is not final before [`Cells::stamp_now`].
    pub(super) fn cell(&self, index: usize) -> (Cell<'_>, usize, Stamp) {
        let at = &self.at[index];
        (self.cell_at(at, 0), at.store, at.stamp)
    }

    /// Whether the timestamp of a cell depends on what is stored.
    pub(super) fn wants_newest(&self) -> bool {
        self.at.iter().any(|at| matches!(at.stamp, Stamp::Newest(_)))
    }

    /// Settles the timestamp of one cell: `None` for the server's clock.
    pub(super) fn settle(&mut self, index: usize, timestamp: Option<i64>) {
        match timestamp {
            Some(timestamp) => self.stamp(index, timestamp),
            None => self.at[index].stamp = Stamp::Now,
        }
    }

    fn stamp_now(&mut self, now: i64) {
        for index in 0..self.at.len() {
            match self.at[index].stamp {
                Stamp::Given => {}
                Stamp::Now => self.stamp(index, now),
                Stamp::NotBefore(earliest) => self.stamp(index, now.max(earliest)),
                Stamp::Newest(_) => unreachable!("settled before the batch is published"),
            }
        }
    }

    fn stamp(&mut self, index: usize, timestamp: i64) {
        let at = &mut self.at[index];
        let offset = at.start + LENGTHS_LEN + at.key_len - TIMESTAMP_TYPE_LEN;
        self.bytes[offset..offset + 8].copy_from_slice(&timestamp.to_be_bytes());
        at.stamp = Stamp::Given;
    }

    fn cell_at(&self, at: &EncodedCell, seq_id: u64) -> Cell<'_> {
        let key_at = at.start + LENGTHS_LEN;
        let value_at = key_at + at.key_len;
        let value_end = value_at + at.value_len;
        let tags =
            if at.tags_len == 0 { &[][..] } else { &self.bytes[value_end + 2..value_end + 2 + at.tags_len] };
        Cell { key: &self.bytes[key_at..value_at], value: &self.bytes[value_at..value_end], tags, seq_id }
    }

    /// Whether a cell has tags.
    pub(super) fn has_tags(&self) -> bool {
        self.at.iter().any(|at| at.tags_len > 0)
    }

    /// Copies all cells into the memstores of `view` with the sequence id `seq_id`.
    pub(super) fn insert_into(&self, view: &RegionView, seq_id: u64) {
        let mut rest = &self.at[..];
        while let Some(first) = rest.first() {
            let run = rest.iter().take_while(|at| at.store == first.store).count();
            let mut writer = view.stores[first.store].active.write();
            for at in &rest[..run] {
                debug_assert_eq!(at.stamp, Stamp::Given);
                writer.insert(&self.cell_at(at, seq_id));
            }
            rest = &rest[run..];
        }
    }

    /// The bytes as a log takes them.
    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes.freeze()
    }
}

/// The families whose changes are replicated, as the log names them.
pub(super) fn scopes_of(families: &[FamilyDescriptor]) -> Arc<[Scope]> {
    let replicated = families.iter().filter(|family| family.replication_scope() != 0);
    replicated.map(|family| Scope { family: family.name.clone(), code: family.replication_scope() }).collect()
}

/// One cell as a log takes it.
pub(super) fn logged_bytes(cell: &KeyValue) -> Bytes {
    let mut bytes = BytesMut::with_capacity(LENGTH_LEN + cell.bytes().len());
    bytes.put_u32(cell.bytes().len() as u32);
    bytes.put_slice(cell.bytes());
    bytes.freeze()
}

pub(super) fn stamp_of(timestamp: i64) -> Stamp {
    if timestamp == LATEST_TIMESTAMP { Stamp::Now } else { Stamp::Given }
}

/// A cell as HBase shows it, whose timestamp may stand for the server's clock.
fn shown(cell: &Cell<'_>) -> String {
    if cell.timestamp() != LATEST_TIMESTAMP {
        return format!("{cell:?}");
    }
    let (row, family) = (cell.row().escape_ascii(), cell.family().escape_ascii());
    let (qualifier, kind, value_len) = (cell.qualifier().escape_ascii(), cell.kind(), cell.value.len());
    format!("{row}/{family}:{qualifier}/LATEST_TIMESTAMP/{kind:?}/vlen={value_len}/seqid={}", cell.seq_id)
}

/// Checks a cell that a client sent; what the server adds to it does not count.
///
/// Source: HBase `RSRpcServices.checkCellSizeLimit`.
pub(super) fn check_size(region: &Region, cell: &Cell<'_>) -> Result<()> {
    let limit = region.options().cell_bytes_max;
    let bytes = LENGTH_LEN + cell.serialized_len();
    if limit > 0 && bytes as u64 > limit {
        return Err(Error::bad_request(format!(
            "Cell[{}] with size {bytes} exceeds limit of {limit} bytes",
            shown(cell)
        )));
    }
    Ok(())
}

/// The cell with a time to live of its own.
fn with_ttl(cell: &Cell<'_>, ttl_ms: i64) -> Result<KeyValue> {
    let tags = cell::tags::joined(&[cell.tags], Some(ttl_ms)).ok_or_else(too_many_tags)?;
    let (row, family, qualifier) = (cell.row(), cell.family(), cell.qualifier());
    Ok(KeyValue::with_tags(row, family, qualifier, cell.timestamp(), cell.kind(), cell.value, &tags))
}

pub(super) fn too_many_tags() -> Error {
    Error::bad_request("more tags than a cell can have")
}

pub(super) fn check_cell(mutation: &Mutation, cell: &Cell<'_>) -> Result<()> {
    if cell.row() != &mutation.row[..] {
        return Err(Error::bad_request(format!(
            "The row in {cell:?} doesn't match the original one {}",
            mutation.row.escape_ascii()
        )));
    }
    let fits = match mutation.kind {
        MutationKind::Put | MutationKind::Increment | MutationKind::Append => cell.kind() == CellType::Put,
        MutationKind::Delete => cell.kind().is_delete(),
    };
    if !fits {
        return Err(Error::bad_request(format!("{cell:?} is no cell of a {:?}", mutation.kind)));
    }
    Ok(())
}
