//! The fields of regions, tables, servers and users, with hbtop's column headers.

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
    /// Column header, meaning and kind. Source of headers and kinds: HBase's `hbtop.field.Field`.
    fn description(self) -> (&'static str, &'static str, Kind) {
        match self {
            Field::RegionName => ("RNAME", "full name of the region", Kind::Text),
            Field::Namespace => ("NAMESPACE", "namespace", Kind::Text),
            Field::Table => ("TABLE", "table", Kind::Text),
            Field::StartCode => ("SCODE", "creation time of the region, its id", Kind::Text),
            Field::ReplicaId => ("REPID", "replica number", Kind::Text),
            Field::Region => ("REGION", "encoded name of the region", Kind::Text),
            Field::RegionServer => ("RS", "region server: host and port", Kind::Text),
            Field::LongRegionServer => ("LRS", "region server with its start code", Kind::Text),
            Field::User => ("USER", "user", Kind::Text),
            Field::Client => ("CLIENT", "host of the client", Kind::Text),
            Field::RegionCount => ("#REGION", "number of regions", Kind::Count),
            Field::UserCount => ("#USER", "number of users", Kind::Count),
            Field::ClientCount => ("#CLIENT", "number of client hosts", Kind::Count),
            Field::Requests => ("#REQ/S", "requests per second", Kind::Rate),
            Field::Reads => ("#READ/S", "read requests per second", Kind::Rate),
            Field::FilteredReads => ("#FREAD/S", "rows per second that filters dropped", Kind::Rate),
            Field::Writes => ("#WRITE/S", "write requests per second", Kind::Rate),
            Field::StoreFileSize => ("SF", "size of store files", Kind::Megabytes),
            Field::UncompressedStoreFileSize => ("USF", "uncompressed size of store files", Kind::Megabytes),
            Field::StoreFiles => ("#SF", "number of store files", Kind::Count),
            Field::MemstoreSize => ("MEMSTORE", "size of memstores", Kind::Megabytes),
            Field::Locality => ("LOCALITY", "share of blocks on the server's host", Kind::Share),
            Field::StartKey => ("SKEY", "first row of the region", Kind::Text),
            Field::CompactingCells => ("#COMPingCELL", "cells of running compactions", Kind::Count),
            Field::CompactedCells => ("#COMPedCELL", "cells already compacted", Kind::Count),
            Field::CompactionProgress => ("%COMP", "progress of running compactions", Kind::Percent),
            Field::LastMajorCompaction => ("LASTMCOMP", "last major compaction", Kind::Text),
            Field::UsedHeap => ("UHEAP", "memory in use", Kind::Megabytes),
            Field::MaxHeap => ("MHEAP", "maximum memory", Kind::Megabytes),
        }
    }

    /// The column header. Filters and options use it as the field's name.
    pub(super) fn head(self) -> &'static str {
        self.description().0
    }

    /// A description for the user.
    pub(super) fn meaning(self) -> &'static str {
        self.description().1
    }

    /// The kind of its values.
    pub(super) fn kind(self) -> Kind {
        self.description().2
    }
}
