//! What is done to a row.

use bytes::Bytes;

use crate::cell::{Cell, CellType, KeyValue};
use crate::query::TimeRange;
use crate::tags;

/// How safe a change must be before it is acknowledged; the numbers are HBase's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Durability {
    /// As the table says.
    #[default]
    UseDefault = 0,
    /// Not logged.
    SkipWal = 1,
    /// Logged, not waited for.
    AsyncWal = 2,
    /// Logged and synced.
    SyncWal = 3,
    /// Logged and forced to disk.
    FsyncWal = 4,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MutationKind {
    /// Cells of type Put; delete markers among them are written as they are.
    Put,
    /// Delete markers. Without cells: the whole row, a family marker in every family.
    Delete,
    /// Cells of type Put whose values, of eight bytes, are added to those stored.
    Increment,
    /// Cells of type Put whose values are put behind those stored.
    Append,
}

impl MutationKind {
    /// Whether what is written depends on what is stored, and is told to who asked for it.
    pub fn reads(self) -> bool {
        matches!(self, MutationKind::Increment | MutationKind::Append)
    }
}

/// Why a cell cannot be part of a mutation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum CellFault {
    /// It is of another row than the mutation.
    WrongRow(String),
    /// Its type, its timestamp or its tags.
    Invalid(String),
}

impl MutationKind {
    /// Checks a cell that a client sent as part of a mutation of `row`.
    ///
    /// All writes come by here, whichever call and codec brought their cells. What passes can be read
    /// back by every client ([`Cell::is_readable`]).
    ///
    /// # Errors
    /// [`CellFault`] for another row, a type that such a mutation does not have, a negative timestamp
    /// and malformed tags.
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

/// A change of one row; its cells become visible together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The row; every cell is of it.
    pub row: Bytes,
    /// What the cells do.
    pub kind: MutationKind,
    /// Cells as the client sent them; a timestamp of [`LATEST_TIMESTAMP`](crate::LATEST_TIMESTAMP) stands for the
    /// server's clock, and in a marker of type Delete for the newest version's.
    pub cells: Vec<KeyValue>,
    /// Timestamp of a delete without cells.
    pub timestamp: i64,
    /// How safe it must be.
    pub durability: Durability,
    /// The client's name for this change, to recognise a retry: nonce group and nonce; 0 for none.
    pub nonce: (u64, u64),
    /// How long its cells live, in milliseconds; takes the place of what their tags say.
    pub ttl_ms: Option<i64>,
    /// Of an increment or append: only stored cells of these times are changed, others count as absent.
    pub time_range: TimeRange,
    /// Of an increment or append: whether the new cells are wanted as an answer.
    pub return_results: bool,
}

impl Mutation {
    /// A put of `cells`, all of `row`.
    pub fn put(row: impl Into<Bytes>, cells: Vec<KeyValue>) -> Mutation {
        Mutation::new(MutationKind::Put, row.into(), cells)
    }

    /// A delete by the markers in `cells`, all of `row`; without cells of the whole row.
    pub fn delete(row: impl Into<Bytes>, cells: Vec<KeyValue>) -> Mutation {
        Mutation::new(MutationKind::Delete, row.into(), cells)
    }

    /// Adds the values of `cells`, all of `row`, to those stored.
    pub fn increment(row: impl Into<Bytes>, cells: Vec<KeyValue>) -> Mutation {
        Mutation::new(MutationKind::Increment, row.into(), cells)
    }

    /// Puts the values of `cells`, all of `row`, behind those stored.
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
        }
    }
}
