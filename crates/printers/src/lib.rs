//! The contents of HFiles and logs as text, in the form of HBase's `HFilePrettyPrinter` and
//! `WALPrettyPrinter`, so that scripts for their output work unchanged.
//!
//! * [`HFilePrinter`]: cells, file info, index, block headers and statistics of store files;
//! * [`LogPrinter`]: the edits of a log, as text or JSON.
//!
//! Nothing here locks or changes a file, so both also read the files of a running server.

mod error;
mod hfile;
mod wal;

pub use error::Error;
pub use hfile::{HFileOptions, HFilePrinter};
pub use wal::{LogFilter, LogForm, LogPrinter};
