//! What is done to a row.

use bytes::Bytes;

use crate::cell::KeyValue;
use crate::query::TimeRange;

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
    /// Cells of type Put.
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
