//! The contents of HFiles, logs and snapshots as text, in the form of HBase's `HFilePrettyPrinter`,
//! `WALPrettyPrinter` and `SnapshotInfo`, so that scripts for their output work unchanged.
//!
//! * [`HFilePrinter`]: cells, file info, index, block headers and statistics of store files;
//! * [`LogPrinter`]: the edits of a log, as text or JSON;
//! * [`SnapshotPrinter`]: the snapshots of a root directory, and their files;
//! * [`descriptor`]: tables and families.
//!
//! Nothing here locks or changes a file, so both also read the files of a running server.

pub mod descriptor;
mod error;
mod hfile;
mod snapshot;
mod wal;

pub use error::Error;
pub use hfile::{HFileOptions, HFilePrinter};
pub use snapshot::{SnapshotOptions, SnapshotPrinter};
pub use wal::{LogFilter, LogForm, LogPrinter};
