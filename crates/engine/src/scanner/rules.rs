//! The retention rules of a family, read from its attributes when the region opens.

use bytes::Bytes;
use cell::query::MobReads;
use cell::schema::{FamilyDescriptor, KeepDeletedCells};

/// The retention rules of a family.
#[derive(Clone, Debug)]
pub struct FamilyRules {
    /// Name of the family.
    pub family: Bytes,
    /// Maximum number of versions of a column.
    pub max_versions: u32,
    /// Versions that are retained although their time to live has expired.
    pub min_versions: u32,
    /// Time to live in milliseconds; `None` for no limit.
    pub ttl_ms: Option<i64>,
    /// Whether deleted cells are retained.
    pub keep_deleted: KeepDeletedCells,
    /// Whether markers and versions count in write order (`NEW_VERSION_BEHAVIOR`).
    pub new_version_behavior: bool,
    /// How long a major compaction retains delete markers (`hbase.hstore.time.to.purge.deletes`).
    pub purge_deletes_after_ms: i64,
    /// Whether large values are in MOB files (`IS_MOB`).
    pub is_mob: bool,
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
            is_mob: family.is_mob(),
        }
    }

    /// Whether a read treats references to MOB files in a special way: it resolves them, or returns
    /// nothing else.
    #[inline]
    pub(crate) fn reads_mob(&self, reads: MobReads) -> bool {
        self.is_mob && (!reads.raw || reads.references_only)
    }

    /// The oldest timestamp that a read may have to return at `now_ms`. Includes expired versions
    /// if the family retains some of them.
    pub(crate) fn oldest_wanted(&self, now_ms: i64) -> i64 {
        if self.min_versions == 0 { self.oldest_unexpired(now_ms) } else { i64::MIN }
    }

    /// The oldest timestamp that has not expired at `now_ms`.
    pub(crate) fn oldest_unexpired(&self, now_ms: i64) -> i64 {
        self.ttl_ms.map_or(i64::MIN, |ttl_ms| now_ms.saturating_sub(ttl_ms))
    }
}
