//! Counts of the storage policies of directories.

/// What a storage did with the storage policies of its directories, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyCounts {
    /// Policies of directories that were set.
    pub set: u64,
    /// Files that were found on disks other than their policy names, and whose move was requested.
    pub moves: u64,
    /// Policies that were not set, and requests to move that failed. A storage whose service for
    /// moves is turned off refuses requests, which is not an error.
    pub errors: u64,
}
