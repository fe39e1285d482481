//! Selects the files of a store to compact, as HBase does: pure functions over facts about files.
//!
//! * [`facts`]: the facts that a selection uses about a file, its store, and the moment;
//! * [`settings`]: HBase's keys; the family overrides the table, and the table the site;
//! * [`mod@select`]: the selection, as made by every policy but [`fifo`]: which files are
//!   candidates, whether the compaction is major, and how many files it takes at most;
//! * [`exploring`], [`ratio`]: the runs of files that a minor compaction takes;
//! * [`major`]: when a major compaction is due;
//! * [`date_tiered`], [`windows`]: by time windows, with several outputs;
//! * [`fifo`]: files that are completely expired.
//!
//! Invariants: the selected files are a contiguous run, not counting files that are excluded from
//! minor compactions. This does not apply to [`fifo`], whose files have no live cells. No file that
//! is already being compacted is selected. A selection is major only if it has all files of the
//! store.
//!
//! Not here: running the compaction (`region::compact`) and scheduling it (the server).

pub mod date_tiered;
pub mod exploring;
pub mod facts;
pub mod fifo;
pub mod major;
pub mod ratio;
pub mod select;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod windows;

pub use facts::{FileFacts, SelectionRequest, SelectionTime};
pub use select::{Selection, is_major_due, is_needed, select};
pub use settings::{Policy, Settings, SiteSettings};
