//! What a choice of files to compact knows.

/// A file, as a policy sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its name; that of the oldest file shifts the period of major compactions.
    pub name: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// Its cells.
    pub entries: u64,
    /// The smallest timestamp of a cell, as the file says.
    pub min_timestamp: i64,
    /// The greatest; `i64::MAX` of a file without cells, or that does not say.
    pub max_timestamp: i64,
    /// When it was written, milliseconds since the epoch.
    pub modified_ms: u64,
    /// Refers to a half of a file of the region that was split.
    pub is_reference: bool,
    /// Made of all files of the store.
    pub is_major: bool,
    /// Came by bulk load.
    pub is_bulk_loaded: bool,
    /// Asks minor compactions to leave it alone.
    pub exclude_from_minor: bool,
}

/// What is wanted of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// A person asks, not the server.
    pub by_user: bool,
    /// All files, if none is being compacted.
    pub major: bool,
    /// It is an hour of little load, and no compaction of such an hour is running.
    pub off_peak: bool,
}

/// The time of a choice, and how long cells of the store live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// Milliseconds after which cells are over; `None` if they never are, or if some are kept nevertheless
    /// (`MIN_VERSIONS`).
    pub ttl_ms: Option<i64>,
}

impl Moment {
    /// Whether everything in `file` is over.
    pub fn is_over(&self, file: &FileFacts) -> bool {
        self.ttl_ms.is_some_and(|ttl_ms| file.max_timestamp < self.now_ms.saturating_sub(ttl_ms))
    }
}

/// Bytes of files together.
pub(super) fn bytes_of(files: &[FileFacts]) -> u64 {
    files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
}
