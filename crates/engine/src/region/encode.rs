//! Cells on their way in, encoded once, as the log and the memstore take them.
//!
//! Per mutation all or nothing: what fails a check leaves no bytes behind. What increments and appends write is computed
//! elsewhere (`region::delta`). Timestamps that the server gives are filled in when the batch is published. Cells that
//! are not to be logged stand among the others, for of two that are equal the later one counts; only where there are
//! some, the log's bytes are a copy.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use cell::cell::LENGTHS_LEN;
use cell::key::TIMESTAMP_TYPE_LEN;
use cell::mutation::{Durability, Mutation, MutationKind};
use cell::schema::FamilyDescriptor;
use cell::{Cell, CellType, KeyValue, LATEST_TIMESTAMP};
use wal::Scope;

use crate::error::{Error, Result};
use crate::memstore::common_front;
use crate::region::Region;
use crate::region::check::{check_cell, check_size, check_timestamp};
use crate::store::RegionView;

/// Bytes of the length before each cell in a log.
pub(super) const LENGTH_LEN: usize = 4;
/// So many cells of a batch show what the rows of a region that has no files yet have in common.
const ROWS_THAT_TELL: usize = 32;
/// Bytes of the length before a cell's tags.
const TAGS_LENGTH_LEN: usize = 2;

/// Encoded cells: `(length 4 | KeyValue)*`.
#[derive(Default)]
pub(super) struct Cells {
    bytes: BytesMut,
    at: Vec<EncodedCell>,
}

/// Where a cell lies in the bytes, and what is still to be done to it.
#[derive(Clone, Copy)]
struct EncodedCell {
    /// Offset of the KeyValue, behind its length.
    start: usize,
    key_len: usize,
    value_len: usize,
    tags_len: usize,
    /// Index of its store.
    store: usize,
    stamp: Stamp,
    is_logged: bool,
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

impl Cells {
    /// None yet; room for `count` of them, which have so many bytes together.
    pub(super) fn with_room(count: usize, bytes: usize) -> Cells {
        Cells { bytes: BytesMut::with_capacity(count * LENGTH_LEN + bytes), at: Vec::with_capacity(count) }
    }

    /// Where the next mutation begins, for [`Cells::cut`].
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.bytes.len(), self.at.len())
    }

    /// Takes back what was added since `mark`.
    pub(super) fn cut(&mut self, (bytes, cells): (usize, usize)) {
        self.bytes.truncate(bytes);
        self.at.truncate(cells);
    }

    /// A marker in every family: what a delete without cells means.
    pub(super) fn add_row_delete(&mut self, region: &Region, mutation: &Mutation) -> Result<()> {
        check_timestamp(mutation.timestamp)?;
        let is_logged = is_logged(region, mutation);
        for (store, family) in region.families().iter().enumerate() {
            let kind = CellType::DeleteFamily;
            let cell = KeyValue::new(&mutation.row, &family.name, &[], mutation.timestamp, kind, &[]);
            self.add(store, &cell, stamp_of(mutation.timestamp), is_logged);
        }
        Ok(())
    }

    /// The cells of a mutation, checked.
    pub(super) fn add_all(
        &mut self,
        region: &Region,
        mutation: &Mutation,
        puts_not_before: Option<i64>,
    ) -> Result<()> {
        let first = self.at.len();
        let is_logged = is_logged(region, mutation);
        for key_value in &mutation.cells {
            let cell = key_value.view(0);
            check_cell(mutation, &cell)?;
            let store = region.store_of(cell.family())?;
            // A marker in a put is stamped as its other cells are.
            let stamp = match (stamp_of(cell.timestamp()), mutation.kind) {
                (Stamp::Now, MutationKind::Delete) if cell.kind() == CellType::Delete => {
                    Stamp::Newest(self.rank_in_column(first, &cell))
                }
                (Stamp::Now, MutationKind::Put) => puts_not_before.map_or(Stamp::Now, Stamp::NotBefore),
                (stamp, _) => stamp,
            };
            check_size(region, &cell)?;
            let whole = is_of_family(&cell).then(|| without_qualifier(&cell));
            let key_value = whole.as_ref().unwrap_or(key_value);
            match mutation.ttl_ms {
                None => self.add(store, key_value, stamp, is_logged),
                Some(ttl_ms) => self.add(store, &with_ttl(&key_value.view(0), ttl_ms)?, stamp, is_logged),
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

    /// One cell of the store with the index `store`.
    pub(super) fn add(&mut self, store: usize, cell: &KeyValue, stamp: Stamp, is_logged: bool) {
        let bytes = cell.bytes();
        let view = cell.view(0);
        self.bytes.reserve(LENGTH_LEN + bytes.len());
        self.bytes.put_u32(bytes.len() as u32);
        let start = self.bytes.len();
        self.bytes.put_slice(bytes);
        let (key_len, value_len, tags_len) = (view.key.len(), view.value.len(), view.tags.len());
        self.at.push(EncodedCell { start, key_len, value_len, tags_len, store, stamp, is_logged });
    }

    /// Bytes of the cells to be logged, as the log takes them.
    pub(super) fn logged_len(&self) -> usize {
        self.at.iter().filter(|at| at.is_logged).map(|at| LENGTH_LEN + at.len()).sum()
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

    /// Gives the remaining cells the timestamp `now`.
    pub(super) fn stamp_now(&mut self, now: i64) {
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
        let tags_at = value_end + TAGS_LENGTH_LEN;
        let tags = if at.tags_len == 0 { &[][..] } else { &self.bytes[tags_at..tags_at + at.tags_len] };
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
            let memstore = &view.stores[first.store].active;
            if memstore.is_empty() && run >= ROWS_THAT_TELL {
                memstore.expect_common(&self.common_of_rows(&rest[..run]));
            }
            debug_assert!(rest[..run].iter().all(|at| at.stamp == Stamp::Given));
            memstore.write().insert_all(rest[..run].iter().map(|at| self.cell_at(at, seq_id)));
            rest = &rest[run..];
        }
    }

    /// What all rows of `cells` begin with.
    fn common_of_rows(&self, cells: &[EncodedCell]) -> Vec<u8> {
        let rows = || cells.iter().map(|at| self.cell_at(at, 0).row());
        let (first, last) = (rows().min().unwrap_or_default(), rows().max().unwrap_or_default());
        common_front(first, last).to_vec()
    }

    /// The cells to be logged, as a log takes them, and how many they are.
    pub(super) fn into_logged(self) -> (Bytes, u32) {
        let count = self.at.iter().filter(|at| at.is_logged).count();
        if count == self.at.len() {
            return (self.bytes.freeze(), count as u32);
        }
        let mut logged = BytesMut::new();
        for at in self.at.iter().filter(|at| at.is_logged) {
            logged.put_slice(&self.bytes[at.start - LENGTH_LEN..at.start + at.len()]);
        }
        (logged.freeze(), count as u32)
    }
}

impl EncodedCell {
    /// Bytes of the KeyValue.
    fn len(&self) -> usize {
        let tags_len = if self.tags_len == 0 { 0 } else { TAGS_LENGTH_LEN + self.tags_len };
        LENGTHS_LEN + self.key_len + self.value_len + tags_len
    }
}

/// Whether the cells of a mutation go into the log.
pub(super) fn is_logged(region: &Region, mutation: &Mutation) -> bool {
    region.durability_of(mutation) != Durability::SkipWal
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

/// Whether this is a marker of a family that has a qualifier nevertheless.
#[inline]
fn is_of_family(cell: &Cell<'_>) -> bool {
    matches!(cell.kind(), CellType::DeleteFamily | CellType::DeleteFamilyVersion)
        && !cell.qualifier().is_empty()
}

/// The marker as HBase has it: with a qualifier it would sort after cells that it hides.
fn without_qualifier(cell: &Cell<'_>) -> KeyValue {
    let (row, family, kind) = (cell.row(), cell.family(), cell.kind());
    KeyValue::with_tags(row, family, &[], cell.timestamp(), kind, cell.value, cell.tags)
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
