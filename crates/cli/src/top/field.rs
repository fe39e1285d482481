//! What can be told of a region, a table, a server or a user: hbtop's fields, with its heads.

use super::value::Kind;

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    RegionName,
    Namespace,
    Table,
    StartCode,
    ReplicaId,
    Region,
    RegionServer,
    LongRegionServer,
    User,
    Client,
    RegionCount,
    UserCount,
    ClientCount,
    Requests,
    Reads,
    FilteredReads,
    Writes,
    StoreFileSize,
    UncompressedStoreFileSize,
    StoreFiles,
    MemstoreSize,
    Locality,
    StartKey,
    CompactingCells,
    CompactedCells,
    CompactionProgress,
    LastMajorCompaction,
    UsedHeap,
    MaxHeap,
}

impl Field {
    /// Head, meaning and kind. Source of heads and kinds: HBase's `hbtop.field.Field`.
    fn told(self) -> (&'static str, &'static str, Kind) {
        match self {
            Field::RegionName => ("RNAME", "full name of the region", Kind::Text),
            Field::Namespace => ("NAMESPACE", "namespace", Kind::Text),
            Field::Table => ("TABLE", "table", Kind::Text),
            Field::StartCode => ("SCODE", "when the region was made: its id", Kind::Text),
            Field::ReplicaId => ("REPID", "number of the replica", Kind::Text),
            Field::Region => ("REGION", "encoded name of the region", Kind::Text),
            Field::RegionServer => ("RS", "region server: host and port", Kind::Text),
            Field::LongRegionServer => ("LRS", "region server with its start code", Kind::Text),
            Field::User => ("USER", "user", Kind::Text),
            Field::Client => ("CLIENT", "host of the client", Kind::Text),
            Field::RegionCount => ("#REGION", "regions", Kind::Count),
            Field::UserCount => ("#USER", "users", Kind::Count),
            Field::ClientCount => ("#CLIENT", "hosts of clients", Kind::Count),
            Field::Requests => ("#REQ/S", "requests a second", Kind::Rate),
            Field::Reads => ("#READ/S", "read requests a second", Kind::Rate),
            Field::FilteredReads => ("#FREAD/S", "rows a second that filters left out", Kind::Rate),
            Field::Writes => ("#WRITE/S", "write requests a second", Kind::Rate),
            Field::StoreFileSize => ("SF", "size of store files", Kind::Megabytes),
            Field::UncompressedStoreFileSize => ("USF", "the same, not compressed", Kind::Megabytes),
            Field::StoreFiles => ("#SF", "store files", Kind::Count),
            Field::MemstoreSize => ("MEMSTORE", "size of memstores", Kind::Megabytes),
            Field::Locality => ("LOCALITY", "share of blocks on the server's machine", Kind::Share),
            Field::StartKey => ("SKEY", "first row of the region", Kind::Text),
            Field::CompactingCells => ("#COMPingCELL", "cells of compactions that run", Kind::Count),
            Field::CompactedCells => ("#COMPedCELL", "how many of them are done", Kind::Count),
            Field::CompactionProgress => ("%COMP", "how much of them is done", Kind::Percent),
            Field::LastMajorCompaction => ("LASTMCOMP", "last major compaction", Kind::Text),
            Field::UsedHeap => ("UHEAP", "memory in use", Kind::Megabytes),
            Field::MaxHeap => ("MHEAP", "memory at most", Kind::Megabytes),
        }
    }

    /// What stands over its column, and by which filters and options know it.
    pub(super) fn head(self) -> &'static str {
        self.told().0
    }

    /// What it means.
    pub(super) fn meaning(self) -> &'static str {
        self.told().1
    }

    /// What its values are.
    pub(super) fn kind(self) -> Kind {
        self.told().2
    }
}
