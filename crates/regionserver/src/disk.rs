//! The disk that a region server writes to. [`disk_poll`](crate::disk_poll) watches it.

use std::sync::Arc;
use std::time::Duration;

use fs::reserve::Reserve;
use fs::space::Space;
use tiers::TieredFs;

/// The pause between two polls of a local disk when little was written.
const LOCAL_POLL_PERIOD: Duration = Duration::from_millis(500);
/// The same for a remote file system. Its server answers all processes of the cluster, and it fails
/// the writes to a log that was removed.
const REMOTE_POLL_PERIOD: Duration = Duration::from_secs(60);

/// The disk that a server writes to.
#[derive(Clone)]
pub struct Disk {
    /// The pause between two polls when little was written.
    pub poll_period: Duration,
    /// Whether other machines provide it. It may then be unavailable for a time without being lost.
    pub is_remote: bool,
    /// The state of its free space.
    pub space: Arc<Space>,
    /// Space that is reserved for logs and deletes.
    pub reserve: Option<Arc<Reserve>>,
    /// The lock file that gives one process exclusive use of the directory.
    pub lock: Option<fs::FilePath>,
    /// The storage tiers, if files are on several disks.
    pub tiers: Option<TieredFs>,
    /// Warnings for the operator, found at start.
    pub warnings: Vec<String>,
}

impl Default for Disk {
    /// A local disk, without a reserve.
    fn default() -> Disk {
        Disk {
            poll_period: LOCAL_POLL_PERIOD,
            is_remote: false,
            space: Arc::default(),
            reserve: None,
            lock: None,
            tiers: None,
            warnings: Vec::new(),
        }
    }
}

impl Disk {
    /// A file system that a server on another machine provides.
    pub fn remote() -> Disk {
        Disk { poll_period: REMOTE_POLL_PERIOD, is_remote: true, ..Disk::default() }
    }
}
