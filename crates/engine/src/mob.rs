//! MOB (medium objects): large values of a family in files of their own, which compactions do not
//! rewrite each time.
//!
//! ```text
//! store file:  row family:qualifier timestamp Put -> tags 5, 6 | length, name of a MOB file
//! MOB file:    row family:qualifier timestamp Put -> the value
//! ```
//!
//! A flush or compaction moves values above the family's threshold to a MOB file (`region::output`)
//! and writes *references* in their place. A read finds references and resolves them before its
//! results leave the engine. The rules and filters judge the references, as in HBase.
//!
//! Invariants:
//!
//! * A MOB file is durable under its name before a store file that refers to it.
//! * Every store file of a MOB family lists the MOB files to which its cells refer ([`FileRefs`]).
//!   A MOB file is archived only if no store file lists it. A MOB file without references does no
//!   harm: a crash between the two renames leaves one.
//! * A reference that cannot be resolved is an error, never an empty value, unless the client
//!   requests empty values.
//!
//! Not here: names and directories (`layout::mob`), and when files are cleaned.

use std::time::Duration;

mod deliver;
mod file_refs;
mod open_files;
mod reference;
mod resolver;

pub(crate) use deliver::Delivery;
pub use file_refs::{FileRefs, listed_in};
pub use open_files::MobFiles;
use open_files::OPEN_FILES_MAX;
pub use reference::{MobReference, is_reference};
pub(crate) use reference::{ReferenceWriter, value_len};
pub(crate) use resolver::{MobResolver, MobServices, MobValue};

/// What a user's major compaction does with the values in MOB files (`hbase.mob.compaction.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MobCompaction {
    /// All are rewritten.
    Full,
    /// Those in MOB files of at least this many bytes stay there
    /// (`hbase.mob.compactions.max.file.size`).
    Optimized(u64),
}

impl MobCompaction {
    /// The default size of MOB files that [`Optimized`](MobCompaction::Optimized) leaves alone.
    pub const FILE_BYTES_MAX: u64 = 1 << 30;
}

/// Settings of MOB files. The defaults are HBase's.
#[derive(Clone, Copy, Debug)]
pub struct MobOptions {
    /// What a user's major compaction does with values in MOB files. Families and tables may
    /// override this.
    pub compaction: MobCompaction,
    /// Maximum number of MOB files that a server has open (`hbase.mob.file.cache.size`).
    pub open_files_max: usize,
    /// The period in which a server looks for MOB files of its regions that are not needed
    /// (`hbase.master.mob.cleaner.period`).
    pub cleaner_period: Duration,
    /// Minimum age of such a file before it is archived (`hbase.mob.min.age.archive`).
    pub min_age: Duration,
}

impl Default for MobOptions {
    fn default() -> MobOptions {
        MobOptions {
            compaction: MobCompaction::Full,
            open_files_max: OPEN_FILES_MAX,
            cleaner_period: Duration::from_secs(24 * 3600),
            min_age: Duration::from_secs(3600),
        }
    }
}
