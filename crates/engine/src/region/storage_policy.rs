//! Storage policies of the directories of a region, which HDFS applies to the files in them.
//!
//! As in HBase, the policy of a region is set when it opens, that of a family when the region opens
//! and when the directory for its unfinished files is created. `NONE` leaves the policy of a
//! directory as it is, so it does not remove one that was set before.
//!
//! HBase leaves files where they are when a policy changes, or when a file is renamed to a
//! directory with another policy. Grampus requests that they move.

use std::sync::Arc;

use cell::region::RegionInfo;
use cell::schema::FamilyDescriptor;
use fs::{FilePath, FileSystem};
use layout::RootDir;

/// The family attribute with HDFS's name of a storage policy.
pub(super) const ATTRIBUTE: &str = "STORAGE_POLICY";
/// The name that stands for no policy (HBase: `HConstants.DEFER_TO_HDFS_STORAGE_POLICY`).
const NONE: &str = "NONE";

/// The storage policies of the options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoragePolicies {
    /// The policy of a region's directory (`hbase.hregion.block.storage.policy`).
    pub region: Option<Arc<str>>,
    /// The policy of families without a `STORAGE_POLICY` (`hbase.hstore.block.storage.policy`).
    pub store: Option<Arc<str>>,
    /// The policy of the log directory (`hbase.wal.storage.policy`).
    pub log: Option<Arc<str>>,
}

impl StoragePolicies {
    /// The policy that a text names; `None` for `NONE`.
    pub fn named(text: &str) -> Option<Arc<str>> {
        let name = text.trim();
        (!name.is_empty() && !name.eq_ignore_ascii_case(NONE)).then(|| name.into())
    }

    /// The policy of a family.
    pub(super) fn of_family(&self, family: &FamilyDescriptor) -> Option<Arc<str>> {
        match family.attribute(ATTRIBUTE) {
            Some(text) => StoragePolicies::named(text),
            None => self.store.clone(),
        }
    }

    /// Requests that a file that was moved into its store moves to where the policy says. It was
    /// written with the policy of another directory, which HDFS may not have set.
    pub(super) fn satisfy_output(&self, fs: &dyn FileSystem, family: &FamilyDescriptor, path: &FilePath) {
        // Without a policy, the other directory inherits the same one.
        if self.region.is_some() || self.of_family(family).is_some() {
            fs.satisfy_storage_policy(path);
        }
    }

    /// Sets the policies of the existing directories of a region, and requests that files move to
    /// where they say: the policies may have changed since the files were written.
    pub(super) async fn apply(
        &self,
        fs: &dyn FileSystem,
        root: &RootDir,
        info: &RegionInfo,
        families: &[FamilyDescriptor],
    ) {
        if let Some(policy) = &self.region {
            fs.set_storage_policy(&root.region_dir(info), policy).await;
        }
        for family in families {
            let (dir, own) = (root.family_dir(info, &family.name), self.of_family(family));
            if let Some(policy) = &own {
                fs.set_storage_policy(&dir, policy).await;
            }
            if own.is_some() || self.region.is_some() {
                fs.satisfy_storage_policy(&dir);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_own_policy_or_that_of_the_options() {
        let policies =
            StoragePolicies { store: StoragePolicies::named(" WARM "), ..StoragePolicies::default() };
        let family = FamilyDescriptor::new("f");
        assert_eq!(policies.of_family(&family).as_deref(), Some("WARM"));
        assert_eq!(StoragePolicies::default().of_family(&family), None);
        let own = family.with(ATTRIBUTE, "ALL_SSD");
        assert_eq!(policies.of_family(&own).as_deref(), Some("ALL_SSD"));
        // As in HBase, the family's NONE excludes the policy of the options.
        assert_eq!(policies.of_family(&own.with(ATTRIBUTE, "none")), None);
        assert_eq!(StoragePolicies::named(""), None);
    }
}
