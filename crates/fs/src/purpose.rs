//! What a new file is for.

use std::sync::Arc;

use crate::{AccessPattern, IoClass};

/// What a new file is for. Storage of several kinds chooses a disk by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// The part of the database that writes the file.
    pub role: Role,
    /// The storage policy of the table or family, such as `ALL_SSD`.
    pub policy: Option<Arc<str>>,
    /// The expected length in bytes; 0 if unknown.
    pub expected_bytes: u64,
    /// The newest timestamp in the file, in milliseconds since the Unix epoch, if it is known.
    pub newest_ms: Option<u64>,
}

/// How the storage that takes a new file wants it to be written, where the schema does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    /// The name of a compression.
    pub compression: Option<Arc<str>>,
    /// The name of an encoding of blocks.
    pub encoding: Option<Arc<str>>,
}

/// The part of the database that writes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A log of edits.
    Log,
    /// A flushed memstore.
    Flush,
    /// A compaction of some files of a store.
    MinorCompaction,
    /// A compaction of all files of a store.
    MajorCompaction,
    /// Values that are too large for the other files of a store.
    Mob,
    /// A file that is no longer part of a store, but still needed, for example by a snapshot.
    Archive,
    /// The copy of a file that moves to another disk.
    Moved,
    /// A small file that describes others.
    Metadata,
}

impl Purpose {
    /// A file of this role, of which nothing else is known.
    pub fn of(role: Role) -> Purpose {
        Purpose { role, policy: None, expected_bytes: 0, newest_ms: None }
    }

    /// The class of the writes.
    pub fn class(&self) -> IoClass {
        match self.role {
            Role::Log => IoClass::Log,
            Role::Flush | Role::Mob | Role::Metadata => IoClass::Flush,
            Role::MinorCompaction | Role::MajorCompaction => IoClass::Compaction,
            Role::Archive | Role::Moved => IoClass::Move,
        }
    }

    /// How such a file is accessed.
    pub fn access(&self) -> AccessPattern {
        match self.role {
            Role::Log => AccessPattern::Log,
            _ => AccessPattern::Data,
        }
    }
}

impl From<AccessPattern> for Purpose {
    fn from(access: AccessPattern) -> Purpose {
        Purpose::of(match access {
            AccessPattern::Log => Role::Log,
            AccessPattern::Data => Role::Metadata,
        })
    }
}
