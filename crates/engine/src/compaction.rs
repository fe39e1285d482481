//! Which files of a store are compacted, as HBase chooses: pure functions over facts of files.
//!
//! * [`facts`]: what a choice knows of a file, of its store and of the moment;
//! * [`settings`]: HBase's keys, of the family over those of the table over those of the site;
//! * [`mod@select`]: the choice, as every policy but [`fifo`] makes it: what is eligible, whether it is a major compaction,
//!   and how many files at most;
//! * [`exploring`], [`ratio`]: the runs of files that a minor compaction takes;
//! * [`major`]: when everything is due to be rewritten;
//! * [`date_tiered`], [`windows`]: by windows of time, several outputs;
//! * [`fifo`]: files that are over as a whole.
//!
//! Invariants: what is chosen is a run of files, without a gap but for files that want to be left alone, and but for
//! [`fifo`], whose files hold nothing that lives; no file that is being compacted already is chosen; and a choice is
//! major only if it has all files of the store.
//!
//! Not here: carrying it out (`region::compact`), whose turn it is (the server's schedule).

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

pub use facts::{Ask, FileFacts, Moment};
pub use select::{Choice, is_major_due, is_needed, select};
pub use settings::{Engine, Policy, Settings, SiteSettings};
