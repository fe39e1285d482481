//! Encodes the cells of a batch once, in the format that both the log and the memstore take.
//!
//! A mutation is added completely or not at all: after a failed check none of its bytes remain.
//! `region::delta` computes what increments and appends write. Timestamps from the server's clock
//! are filled in when the batch is published.
//!
//! Cells that skip the log are in the same list as all other cells, because their order matters: if
//! two cells are equal, the later one is valid. The other cells are copied for the log only if the
//! list has such cells.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use cell::cell::LENGTHS_LEN;
use cell::key::TIMESTAMP_TYPE_LEN;
use cell::mutation::{Durability, Mutation, MutationKind};
use cell::schema::FamilyDescriptor;
use cell::{Cell, CellType, KeyValue, LATEST_TIMESTAMP};
use wal::Scope;

use crate::error::{Error, Result};
use crate::memstore::common_prefix;
use crate::region::Region;
use crate::region::check::{check_cell, check_size, check_timestamp};
use crate::store::RegionView;

/// Bytes of the length prefix of each cell in a log.
pub(super) const LENGTH_LEN: usize = 4;
/// Number of cells of one store in a batch from which the common prefix of the store's rows is
/// predicted, if its memstore is empty.
const PREFIX_SAMPLE_CELLS: usize = 32;
/// Bytes of the length prefix of a cell's tags.
const TAGS_LENGTH_LEN: usize = 2;

/// Encoded cells: `(length 4 | KeyValue)*`.
#[derive(Default)]
pub(super) struct Cells {
    bytes: BytesMut,
    cells: Vec<EncodedCell>,
}

/// The position of a cell in the bytes, and how its timestamp is determined.
#[derive(Clone, Copy)]
struct EncodedCell {
    /// Offset of the KeyValue, after its length prefix.
    start: usize,
    /// Bytes of the KeyValue. More than its parts need if it has a tags section of length 0.
    len: usize,
    key_len: usize,
    value_len: usize,
    tags_len: usize,
    /// Index of the store.
    store: usize,
    rule: TimestampRule,
    is_logged: bool,
}

/// How a cell gets its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimestampRule {
    /// The cell has its final timestamp.
    Given,
    /// The server's clock.
    Now,
    /// The server's clock, but at least this.
    NotBefore(i64),
    /// The timestamp of the nth newest version of its column, counted from 1. The server's clock if
    /// there are fewer versions.
    Newest(u32),
}

impl Cells {
    /// An empty list, with capacity for `count` cells of `bytes` bytes in total.
    pub(super) fn with_capacity(count: usize, bytes: usize) -> Cells {
        Cells { bytes: BytesMut::with_capacity(count * LENGTH_LEN + bytes), cells: Vec::with_capacity(count) }
    }

    /// The position at which the next mutation begins, for [`Cells::truncate`].
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.bytes.len(), self.cells.len())
    }

    /// Removes what was added since `mark`.
    pub(super) fn truncate(&mut self, (bytes, cells): (usize, usize)) {
        debug_assert!(
            bytes <= self.bytes.len() && cells <= self.cells.len(),
            "a batch is cut back to an earlier mark"
        );
        self.bytes.truncate(bytes);
        self.cells.truncate(cells);
    }

    /// Adds a delete marker for every family, which is the meaning of a delete without cells.
    pub(super) fn add_row_delete(&mut self, region: &Region, mutation: &Mutation) -> Result<()> {
        check_timestamp(mutation.timestamp)?;
        let is_logged = is_logged(region, mutation);
        for (store, family) in region.families().iter().enumerate() {
            let kind = CellType::DeleteFamily;
            let cell = KeyValue::new(&mutation.row, &family.name, &[], mutation.timestamp, kind, &[]);
            self.add(store, &cell, timestamp_rule_of(mutation.timestamp), is_logged);
        }
        Ok(())
    }

    /// Checks and adds the cells of a mutation.
    pub(super) fn add_all(
        &mut self,
        region: &Region,
        mutation: &Mutation,
        puts_not_before: Option<i64>,
    ) -> Result<()> {
        let first = self.cells.len();
        let is_logged = is_logged(region, mutation);
        for key_value in &mutation.cells {
            let cell = key_value.view(0);
            check_cell(mutation, &cell)?;
            let store = region.store_of(cell.family())?;
            // In a put, a delete marker gets the same timestamp as the other cells.
            let rule = match (timestamp_rule_of(cell.timestamp()), mutation.kind) {
                (TimestampRule::Now, MutationKind::Delete) if cell.kind() == CellType::Delete => {
                    TimestampRule::Newest(self.rank_in_column(first, &cell))
                }
                (TimestampRule::Now, MutationKind::Put) => {
                    puts_not_before.map_or(TimestampRule::Now, TimestampRule::NotBefore)
                }
                (rule, _) => rule,
            };
            check_size(region, &cell)?;
            let whole = is_of_family(&cell).then(|| without_qualifier(&cell));
            let key_value = whole.as_ref().unwrap_or(key_value);
            match mutation.ttl_ms {
                None => self.add(store, key_value, rule, is_logged),
                Some(ttl_ms) => self.add(store, &with_ttl(&key_value.view(0), ttl_ms)?, rule, is_logged),
            }
        }
        Ok(())
    }

    /// Which version a delete marker for the newest version deletes: 1 is the newest. If the
    /// mutation has several such markers for a column, each deletes the next older version. The
    /// cells of the mutation begin at `first`.
    fn rank_in_column(&self, first: usize, cell: &Cell<'_>) -> u32 {
        let earlier = self.cells[first..].iter().filter(|at| {
            let other = self.cell_at(at, 0);
            at.rule != TimestampRule::Given
                && other.kind() == CellType::Delete
                && (other.family(), other.qualifier()) == (cell.family(), cell.qualifier())
        });
        earlier.count() as u32 + 1
    }

    /// Adds one cell of the store with the index `store`.
    pub(super) fn add(&mut self, store: usize, cell: &KeyValue, rule: TimestampRule, is_logged: bool) {
        let bytes = cell.bytes();
        let view = cell.view(0);
        self.bytes.reserve(LENGTH_LEN + bytes.len());
        self.bytes.put_u32(bytes.len() as u32);
        let start = self.bytes.len();
        self.bytes.put_slice(bytes);
        let (key_len, value_len, tags_len) = (view.key.len(), view.value.len(), view.tags.len());
        let len = bytes.len();
        self.cells.push(EncodedCell { start, len, key_len, value_len, tags_len, store, rule, is_logged });
    }

    /// Bytes of the cells to log, in the log's format.
    pub(super) fn logged_len(&self) -> usize {
        self.cells.iter().filter(|at| at.is_logged).map(|at| LENGTH_LEN + at.len).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The cell at an index, its store, and its timestamp rule. The timestamp is not final before
    /// [`Cells::set_timestamps`].
    pub(super) fn cell(&self, index: usize) -> (Cell<'_>, usize, TimestampRule) {
        let at = &self.cells[index];
        (self.cell_at(at, 0), at.store, at.rule)
    }

    /// Whether the timestamp of any cell depends on stored cells.
    pub(super) fn needs_newest(&self) -> bool {
        self.cells.iter().any(|at| matches!(at.rule, TimestampRule::Newest(_)))
    }

    /// Sets the timestamp of one cell; `None` for the server's clock.
    pub(super) fn resolve(&mut self, index: usize, timestamp: Option<i64>) {
        match timestamp {
            Some(timestamp) => self.set_timestamp(index, timestamp),
            None => self.cells[index].rule = TimestampRule::Now,
        }
    }

    /// Gives the remaining cells the timestamp `now`, or their lower limit if that is later.
    pub(super) fn set_timestamps(&mut self, now: i64) {
        for index in 0..self.cells.len() {
            match self.cells[index].rule {
                TimestampRule::Given => {}
                TimestampRule::Now => self.set_timestamp(index, now),
                TimestampRule::NotBefore(earliest) => self.set_timestamp(index, now.max(earliest)),
                TimestampRule::Newest(_) => unreachable!("settled before the batch is published"),
            }
        }
    }

    fn set_timestamp(&mut self, index: usize, timestamp: i64) {
        let at = &mut self.cells[index];
        debug_assert!(at.rule != TimestampRule::Given, "the timestamp of a cell is set once");
        let offset = at.start + LENGTHS_LEN + at.key_len - TIMESTAMP_TYPE_LEN;
        self.bytes[offset..offset + 8].copy_from_slice(&timestamp.to_be_bytes());
        at.rule = TimestampRule::Given;
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
        self.cells.iter().any(|at| at.tags_len > 0)
    }

    /// Copies all cells into the memstores of `view` with the sequence id `seq_id`.
    pub(super) fn insert_into(&self, view: &RegionView, seq_id: u64) {
        let mut rest = &self.cells[..];
        while let Some(first) = rest.first() {
            let run = rest.iter().take_while(|at| at.store == first.store).count();
            let memstore = &view.stores[first.store].active;
            if memstore.is_empty() && run >= PREFIX_SAMPLE_CELLS {
                memstore.set_common_prefix(&self.rows_common_prefix(&rest[..run]));
            }
            debug_assert!(
                rest[..run].iter().all(|at| at.rule == TimestampRule::Given),
                "memstores get cells with their final timestamps"
            );
            memstore.write().insert_all(rest[..run].iter().map(|at| self.cell_at(at, seq_id)));
            rest = &rest[run..];
        }
    }

    /// The common prefix of the rows of `cells`.
    fn rows_common_prefix(&self, cells: &[EncodedCell]) -> Vec<u8> {
        let rows = || cells.iter().map(|at| self.cell_at(at, 0).row());
        let (first, last) = (rows().min().unwrap_or_default(), rows().max().unwrap_or_default());
        common_prefix(first, last).to_vec()
    }

    /// The cells to log, in the log's format, and their number.
    pub(super) fn into_logged(self) -> (Bytes, u32) {
        let count = self.cells.iter().filter(|at| at.is_logged).count();
        if count == self.cells.len() {
            return (self.bytes.freeze(), count as u32);
        }
        let mut logged = BytesMut::new();
        for at in self.cells.iter().filter(|at| at.is_logged) {
            logged.put_slice(&self.bytes[at.start - LENGTH_LEN..at.start + at.len]);
        }
        (logged.freeze(), count as u32)
    }
}

/// Whether the cells of a mutation are logged.
pub(super) fn is_logged(region: &Region, mutation: &Mutation) -> bool {
    region.durability_of(mutation) != Durability::SkipWal
}

/// The replicated families, in the log's format.
pub(super) fn scopes_of(families: &[FamilyDescriptor]) -> Arc<[Scope]> {
    let replicated = families.iter().filter(|family| family.replication_scope() != 0);
    replicated.map(|family| Scope { family: family.name.clone(), code: family.replication_scope() }).collect()
}

/// One cell in the log's format.
pub(super) fn logged_bytes(cell: &KeyValue) -> Bytes {
    let mut bytes = BytesMut::with_capacity(LENGTH_LEN + cell.bytes().len());
    bytes.put_u32(cell.bytes().len() as u32);
    bytes.put_slice(cell.bytes());
    bytes.freeze()
}

pub(super) fn timestamp_rule_of(timestamp: i64) -> TimestampRule {
    if timestamp == LATEST_TIMESTAMP { TimestampRule::Now } else { TimestampRule::Given }
}

/// Whether this is a family delete marker that has a qualifier.
#[inline]
fn is_of_family(cell: &Cell<'_>) -> bool {
    matches!(cell.kind(), CellType::DeleteFamily | CellType::DeleteFamilyVersion)
        && !cell.qualifier().is_empty()
}

/// The marker as HBase stores it. With a qualifier it would sort after cells that it hides.
fn without_qualifier(cell: &Cell<'_>) -> KeyValue {
    let (row, family, kind) = (cell.row(), cell.family(), cell.kind());
    KeyValue::with_tags(row, family, &[], cell.timestamp(), kind, cell.value, cell.tags)
}

/// A copy of the cell with a TTL.
fn with_ttl(cell: &Cell<'_>, ttl_ms: i64) -> Result<KeyValue> {
    let tags = cell::tags::joined(&[cell.tags], Some(ttl_ms)).ok_or_else(too_many_tags)?;
    let (row, family, qualifier) = (cell.row(), cell.family(), cell.qualifier());
    Ok(KeyValue::with_tags(row, family, qualifier, cell.timestamp(), cell.kind(), cell.value, &tags))
}

pub(super) fn too_many_tags() -> Error {
    Error::bad_request("more tags than a cell can have")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A KeyValue whose tags section is present and empty, as a client may send it.
    fn with_empty_tags() -> KeyValue {
        let plain = KeyValue::new(b"row", b"f", b"q", 1, CellType::Put, b"value");
        let bytes: Vec<u8> = [plain.bytes(), &[0, 0][..]].concat();
        KeyValue::from_bytes(bytes.into()).expect("a tags section may be empty")
    }

    #[test]
    fn the_logged_cells_of_a_mixed_batch_have_the_lengths_that_their_prefixes_state() {
        let mut cells = Cells::with_capacity(2, 0);
        let unlogged = KeyValue::new(b"row", b"f", b"p", 1, CellType::Put, b"unlogged");
        cells.add(0, &unlogged, TimestampRule::Given, false);
        cells.add(0, &with_empty_tags(), TimestampRule::Given, true);
        let expected_len = cells.logged_len();
        let (logged, count) = cells.into_logged();
        assert_eq!((logged.len(), count), (expected_len, 1));
        assert_eq!(logged, logged_bytes(&with_empty_tags()));
    }
}
