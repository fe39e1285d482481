//! The options of a log.

use std::sync::Arc;
use std::time::Duration;

use fs::{FilePath, SyncLevel};

use crate::instruments::Instruments;

/// Where a log is stored, and when it rolls to a new file.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The server's log directory, `WALs/<server>`.
    pub dir: FilePath,
    /// First part of the file names: the server's name, URL-encoded.
    pub prefix: String,
    /// Last part of the file names: empty, or `.meta` for the log of `hbase:meta`.
    pub suffix: String,
    /// Archive directory for log files that are no longer needed, `oldWALs`.
    pub archive_dir: FilePath,
    /// File length at which the log rolls, at most 1000 MiB.
    pub roll_bytes: u64,
    /// File age at which the log rolls, unless the file has no entries. `None`: never by age.
    pub roll_period: Option<Duration>,
    /// Number of zeros to write ahead of the entries at a time, so that a sync does not change the
    /// file length. 0: none.
    pub reserve_bytes: u64,
    /// Approximate maximum size of a commit group, in bytes.
    pub group_bytes: u64,
    /// Guarantee that an edit must have before it is reported as committed. A group with a
    /// [forced](Edit::forced) edit is always synced to disk.
    pub durability: SyncLevel,
    /// Path of the file that lists the retained log files (see [`crate::record`]). `None`: there is
    /// no such file.
    pub record: Option<FilePath>,
    /// Age at which recorded lengths are updated. It is checked once a second. A change of the set
    /// of log files is recorded at the next check.
    pub record_age: Duration,
    /// The storage policy of `dir`, on storage with policies. `None` leaves it as it is.
    pub storage_policy: Option<Arc<str>>,
    /// Metrics, which several logs can share. `None`: new ones.
    pub instruments: Option<Arc<Instruments>>,
}

impl LogOptions {
    /// Options with HBase's defaults: files of 128 MiB, a new file each hour.
    pub fn new(dir: FilePath, prefix: &str, archive_dir: FilePath) -> LogOptions {
        LogOptions {
            dir,
            prefix: prefix.into(),
            suffix: String::new(),
            archive_dir,
            roll_bytes: 128 << 20,
            roll_period: Some(Duration::from_secs(3600)),
            reserve_bytes: 2 << 20,
            group_bytes: 1 << 20,
            durability: SyncLevel::Disk,
            record: None,
            record_age: Duration::ZERO,
            storage_policy: None,
            instruments: None,
        }
    }
}
