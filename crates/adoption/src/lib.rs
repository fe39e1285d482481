//! Takes over a root directory that HBase wrote, and hands it back.
//!
//! * [`inspection`]: what a root directory contains, and whether it can be adopted; reads only;
//! * [`owner`]: signs that a living HBase still uses the directory;
//! * [`takeover`]: makes the directory one of Grampus, or undoes this;
//! * [`release`]: makes it one of HBase again;
//! * [`catalog`], [`master_data`]: the contents of `hbase:meta` and of the master's own region;
//! * [`procedure`]: the fate of procedures that HBase has not finished;
//! * [`finding`]: features that stand in the way, or that have no effect here;
//! * [`file_lists`]: stores whose files are those in a list, and not all in a directory;
//! * `references`: whether references of regions to files of others are good;
//! * [`record`](mod@record): what the take-over changed, so that it can be rolled back;
//! * [`read_only`], [`scratch`]: inspection changes no byte: it replays logs into a copy in memory;
//! * [`offline`]: opens regions without a server;
//! * `replay`: puts edits that are only in logs into store files, also for a cluster that takes
//!   over the directory of a standalone server;
//! * [`report`]: an inspection as text and as JSON;
//! * [`stored`]: the rows of a table in a directory that a running server uses; reads only.
//!
//! While Grampus owns the directory, `hbase.version` has another name, so HBase refuses to start
//! ([`layout::ownership`]). Each step of a take-over or of a release may be repeated: after a crash
//! at any point, another call completes it.
//!
//! Does not print, and does not depend on sockets or on a local disk.

pub mod catalog;
pub mod file_lists;
pub mod finding;
pub mod inspection;
pub mod master_data;
pub mod offline;
pub mod owner;
pub mod procedure;
pub mod progress;
pub mod read_only;
pub mod record;
mod recovered;
mod references;
pub mod release;
mod replay;
pub mod report;
pub mod scratch;
pub mod stored;
pub mod takeover;

pub use inspection::{Inspection, inspect};
pub use progress::{NoProgress, Progress};
pub use release::{Release, Released, Version, release};
pub use replay::{Replayed, replay_logs};
pub use takeover::{adopt, close_logs, undo};

/// Why a directory could not be inspected, adopted or released.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] fs::Error),
    /// A file of the layout is damaged or unsupported.
    #[error(transparent)]
    Layout(#[from] layout::Error),
    /// A log cannot be read.
    #[error(transparent)]
    Wal(#[from] wal::Error),
    /// A region cannot be opened or written.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The directory is not in a state in which this is possible. Nothing was changed.
    #[error("{0}")]
    Refused(String),
}

/// The result of an operation on a directory.
pub type Result<T> = std::result::Result<T, Error>;

fn refused<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Refused(reason.into()))
}
