//! What a family's attributes say about which cells live, read once when the region opens.

use bytes::Bytes;
use cell::schema::{FamilyDescriptor, KeepDeletedCells};

/// The retention rules of a family.
#[derive(Clone, Debug)]
pub struct FamilyRules {
    /// The family.
    pub family: Bytes,
    /// Versions kept of a column.
    pub max_versions: u32,
    /// Versions kept although their time to live is over.
    pub min_versions: u32,
    /// Time to live in milliseconds, `None` for ever.
    pub ttl_ms: Option<i64>,
    /// What stays of deleted cells.
    pub keep_deleted: KeepDeletedCells,
    /// Whether markers and versions count in the order of writing (`NEW_VERSION_BEHAVIOR`).
    pub new_version_behavior: bool,
    /// How long a major compaction leaves delete markers in place (`hbase.hstore.time.to.purge.deletes`).
    pub purge_deletes_after_ms: i64,
}

impl FamilyRules {
    /// The rules of `family`.
    pub fn of(family: &FamilyDescriptor) -> FamilyRules {
        FamilyRules {
            family: family.name.clone(),
            max_versions: family.max_versions(),
            min_versions: family.min_versions(),
            ttl_ms: family.ttl_ms(),
            keep_deleted: family.keep_deleted_cells(),
            new_version_behavior: family.new_version_behavior(),
            purge_deletes_after_ms: 0,
        }
    }

    /// The oldest timestamp that a read may have to return at `now_ms`: versions that are too old too, where some are kept
    /// for good.
    pub(crate) fn oldest_wanted(&self, now_ms: i64) -> i64 {
        if self.min_versions == 0 { self.oldest_unexpired(now_ms) } else { i64::MIN }
    }

    /// The oldest timestamp whose time to live is not over at `now_ms`.
    pub(crate) fn oldest_unexpired(&self, now_ms: i64) -> i64 {
        self.ttl_ms.map_or(i64::MIN, |ttl_ms| now_ms.saturating_sub(ttl_ms))
    }
}
