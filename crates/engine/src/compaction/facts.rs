//! The facts that a selection of files to compact is based on.

/// A file, as a policy sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// File name. That of the oldest file shifts the period of major compactions.
    pub name: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// Number of cells.
    pub entries: u64,
    /// The smallest timestamp of a cell, according to the file's metadata.
    pub min_timestamp: i64,
    /// The greatest timestamp; `i64::MAX` for a file without cells, or without this metadata.
    pub max_timestamp: i64,
    /// When it was written, in milliseconds since the epoch.
    pub modified_ms: u64,
    /// Whether it refers to a half of a file of the region that was split.
    pub is_reference: bool,
    /// Whether it was compacted from all files of the store.
    pub is_major: bool,
    /// Whether it was bulk loaded.
    pub is_bulk_loaded: bool,
    /// Whether it is excluded from minor compactions.
    pub exclude_from_minor: bool,
}

/// The requested kind of selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectionRequest {
    /// Requested by a user, not by the server.
    pub by_user: bool,
    /// All files, if none is being compacted.
    pub major: bool,
    /// It is an off-peak hour, and no off-peak compaction is running.
    pub off_peak: bool,
}

/// The time of a selection, and the TTL of the store's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectionTime {
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// Milliseconds after which cells expire; `None` if they never do, or if some are kept anyway
    /// (`MIN_VERSIONS`).
    pub ttl_ms: Option<i64>,
}

impl SelectionTime {
    /// Whether all cells in `file` are expired.
    pub fn is_expired(&self, file: &FileFacts) -> bool {
        self.ttl_ms.is_some_and(|ttl_ms| file.max_timestamp < self.now_ms.saturating_sub(ttl_ms))
    }
}

/// Total bytes of `files`.
pub(super) fn bytes_of(files: &[FileFacts]) -> u64 {
    files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
}
