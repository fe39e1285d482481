//! Layer 2: the write-ahead log, in HBase's format.
//!
//! * [`Log`]: group commit, rolling, and which files are still needed;
//! * [`reader`]: one log from front to back, HBase's own (dictionary-compressed too) and ours;
//! * [`marker`]: edits that tell a region's life;
//! * [`record`]: which logs there were, to notice those that are missing;
//! * [`recovery`]: all logs of a server in one checked pass, then each region's entries by themselves;
//! * `header`, `key`, `entry`, `mark`: the bytes, drawn in `docs/formats/wal.md`.
//!
//! What the crate promises:
//!
//! * an edit is told to be committed only when its bytes survive a power cut, in the order of the calls of
//!   [`Log::append`];
//! * a reader gives entries that were written, in order, or refuses with file and offset: what is beyond the last
//!   offset known durable may be cut, what is below may not;
//! * foreign bytes cost bounded memory and an error, never a panic.
//!
//! Knows nothing about: memstores, stores, what a cell means, who asks for a flush.

mod books;
mod committer;
mod compressed;
mod dictionary;
mod edit;
mod entry;
mod error;
mod field;
mod gathering;
mod header;
mod housekeeper;
mod instruments;
mod key;
mod log;
mod mark;
mod name;
mod segment;
mod window;

pub mod marker;
pub mod reader;
pub mod record;
pub mod recovery;

pub use edit::{Committed, Edit, Scope};
pub use entry::{CELLS_LEN_MAX, Entry};
pub use error::{Error, Result};
pub use instruments::{Instruments, LogInstruments, NoReplicas, TableFigures};
pub use key::Key;
pub use log::{Fate, Figures, Log, LogOptions, OldLog};
pub use name::LogName;
pub use reader::{Ending, LogReader, Tail};
