//! Changes of a row.

use std::sync::Arc;

use bytes::Bytes;

use crate::cell::{Cell, CellType, KeyValue};
use crate::query::TimeRange;
use crate::tags;

/// Durability that a change must reach before it is acknowledged; the numbers are HBase's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Durability {
    /// Uses the table's setting.
    #[default]
    UseDefault = 0,
    /// Not written to the log.
    SkipWal = 1,
    /// Written to the log, acknowledged without waiting for it.
    AsyncWal = 2,
    /// Written to the log and synced.
    SyncWal = 3,
    /// Written to the log and forced to disk.
    FsyncWal = 4,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MutationKind {
    /// Cells of type Put; delete markers among them are written unchanged.
    Put,
    /// Delete markers. Without cells it deletes the whole row: one family marker in every family.
    Delete,
    /// Cells of type Put with 8-byte values, which are added to the stored ones.
    Increment,
    /// Cells of type Put with values that are appended to the stored ones.
    Append,
}

impl MutationKind {
    /// Whether the written cells depend on the stored ones and are returned to the client.
    pub fn reads(self) -> bool {
        matches!(self, MutationKind::Increment | MutationKind::Append)
    }
}

/// Why a cell cannot be part of a mutation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum CellFault {
    /// The cell's row is not the mutation's row.
    WrongRow(String),
    /// The cell's type, timestamp or tags are invalid.
    Invalid(String),
}

impl MutationKind {
    /// Checks a cell that a client sent as part of a mutation of `row`.
    ///
    /// All writes pass this check, regardless of the call and codec that brought their cells. Every
    /// client can read back the cells that pass ([`Cell::is_readable`]).
    ///
    /// # Errors
    /// [`CellFault`] for another row, a type that this kind of mutation does not allow, a negative
    /// timestamp, or malformed tags.
    #[inline]
    pub fn check_cell(self, row: &[u8], cell: &Cell<'_>) -> Result<(), CellFault> {
        let kind = CellType::stored(cell.type_code());
        let fits = match self {
            MutationKind::Put => kind.is_some(),
            MutationKind::Delete => kind.is_some_and(CellType::is_delete),
            MutationKind::Increment | MutationKind::Append => kind == Some(CellType::Put),
        };
        let tags_fit = cell.tags.is_empty() || tags::check(cell.tags).is_ok();
        if fits && tags_fit && cell.timestamp() >= 0 && cell.row() == row {
            return Ok(());
        }
        Err(self.fault_of(row, cell))
    }

    #[cold]
    fn fault_of(self, row: &[u8], cell: &Cell<'_>) -> CellFault {
        if cell.row() != row {
            let (found, row) = (cell.row().escape_ascii(), row.escape_ascii());
            return CellFault::WrongRow(format!("The row in {found} doesn't match the original one {row}"));
        }
        if cell.timestamp() < 0 {
            return CellFault::Invalid(format!("Timestamp cannot be negative. ts={}", cell.timestamp()));
        }
        match tags::check(cell.tags) {
            Err(malformed) => CellFault::Invalid(malformed.0.into()),
            Ok(()) => CellFault::Invalid(format!("a {self:?} with a cell of type {}", cell.type_code())),
        }
    }
}

/// A change of one row. Its cells become visible together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The row of every cell.
    pub row: Bytes,
    /// How the cells are applied.
    pub kind: MutationKind,
    /// Cells as the client sent them. A timestamp of [`LATEST_TIMESTAMP`](crate::LATEST_TIMESTAMP)
    /// means the server's clock; in a marker of type Delete it means the newest version's
    /// timestamp.
    pub cells: Vec<KeyValue>,
    /// Timestamp of a delete without cells.
    pub timestamp: i64,
    /// Durability that the change must reach.
    pub durability: Durability,
    /// The client's id of this change, which identifies a retry: nonce group and nonce. 0 for none.
    pub nonce: (u64, u64),
    /// Time to live of the cells in milliseconds. Overrides the TTL in their tags.
    pub ttl_ms: Option<i64>,
    /// For an increment or append: only stored cells in this range are changed; others count as
    /// absent.
    pub time_range: TimeRange,
    /// For an increment or append: whether the new cells are returned.
    pub return_results: bool,
    /// The clusters that already have the change, each a UUID with its most significant half first.
    /// Only changes that came by replication have some.
    pub cluster_ids: Option<Arc<[(u64, u64)]>>,
}

impl Mutation {
    /// A put of `cells`, all of `row`.
    pub fn put(row: impl Into<Bytes>, cells: Vec<KeyValue>) -> Mutation {
        Mutation::new(MutationKind::Put, row.into(), cells)
    }

    /// A delete with the markers in `cells`, all of `row`; without cells, of the whole row.
    pub fn delete(row: impl Into<Bytes>, cells: Vec<KeyValue>) -> Mutation {
        Mutation::new(MutationKind::Delete, row.into(), cells)
    }

    /// Length of all its cells in bytes, in the format of [`KeyValue`].
    pub fn cells_len(&self) -> usize {
        self.cells.iter().map(|cell| cell.bytes().len()).sum()
    }

    /// Adds the values of `cells`, all of `row`, to those stored.
    pub fn increment(row: impl Into<Bytes>, cells: Vec<KeyValue>) -> Mutation {
        Mutation::new(MutationKind::Increment, row.into(), cells)
    }

    /// Appends the values of `cells`, all of `row`, to those stored.
    pub fn append(row: impl Into<Bytes>, cells: Vec<KeyValue>) -> Mutation {
        Mutation::new(MutationKind::Append, row.into(), cells)
    }

    fn new(kind: MutationKind, row: Bytes, cells: Vec<KeyValue>) -> Mutation {
        Mutation {
            row,
            kind,
            cells,
            timestamp: crate::LATEST_TIMESTAMP,
            durability: Durability::UseDefault,
            nonce: (0, 0),
            ttl_ms: None,
            time_range: TimeRange::ALL,
            return_results: true,
            cluster_ids: None,
        }
    }
}
