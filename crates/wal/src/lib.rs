//! The write-ahead log, in HBase's format.
//!
//! * [`Log`]: group commit, rolling, and which log files are still needed;
//! * [`reader`]: reads one log from start to end, HBase's (including dictionary-compressed) or
//!   ours;
//! * [`marker`]: edits that record events in a region's life, such as its opening;
//! * [`record`]: a record of the retained logs, to detect missing ones;
//! * [`recovery`]: checks all logs of a server in one pass, then reads each region's entries
//!   separately;
//! * `header`, `key`, `entry`, `mark`: the file format, described in `docs/formats/wal.md`.
//!
//! The crate guarantees:
//!
//! * an edit is reported as committed only when it is durable. Edits are reported in the order of
//!   the [`Log::append`] calls;
//! * a reader returns the entries that were written, in order, or an error with file and offset. It
//!   may omit only entries after the last offset that is known to be durable;
//! * untrusted input costs bounded memory and an error, never a panic.
//!
//! Knows nothing about: memstores, stores, the meaning of cells, what triggers a flush.

mod committer;
mod compressed;
mod dictionary;
mod edit;
mod entry;
mod error;
mod fence;
mod field;
mod group_delay;
mod header;
mod holders;
mod housekeeper;
mod instruments;
mod key;
mod log;
mod mark;
mod name;
mod next_file;
mod options;
mod retention;
mod segment;
mod shared;
mod window;

pub mod marker;
pub mod reader;
pub mod record;
pub mod recovery;

pub use edit::{CLUSTER_IDS_MAX, Committed, Edit, Scope};
pub use entry::{CELLS_LEN_MAX, Entry};
pub use error::{Error, Result};
pub use fence::{fence_logs, fence_logs_of};
pub use holders::LogHolders;
pub use instruments::{Instruments, LogInstruments, NoSlowSyncRolls, TableMetrics};
pub use key::Key;
pub use log::{Log, LogStatistics};
pub use name::{LogKind, LogName};
pub use options::LogOptions;
pub use reader::{Ending, LogReader, Tail};
pub use retention::{OldLog, OldLogAction};
