//! The rules that choose the tiers for a new file.

use std::sync::Arc;

use fs::{Purpose, Role};

use crate::class::StorageType;
use crate::tier::Tier;

/// The default of [`TierRule::fill_max`].
const FILL_MAX: f64 = 0.9;

/// Which files a tier takes.
#[derive(Clone, Debug, PartialEq)]
pub struct TierRule {
    /// The roles that it takes without a storage policy.
    pub roles: Vec<Role>,
    /// Longer files go to the next tier; `None` for no limit.
    pub file_bytes_max: Option<u64>,
    /// Files whose newest timestamp is older go to the next tier, in milliseconds; `None` for no
    /// limit.
    pub age_ms_max: Option<u64>,
    /// The share of its space, from 0 to 1, above which it gives files to the next tier.
    pub fill_max: f64,
}

/// The rules of all tiers, from the fastest tier to the slowest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    rules: Vec<TierRule>,
    /// The policy of logs, if any.
    log_policy: Option<Arc<str>>,
    /// The policy of other files without one of their own, if any.
    data_policy: Option<Arc<str>>,
}

impl TierRule {
    /// The rule of tier `at` of `count` if no option says otherwise: the first one takes what is
    /// written now, the last one what a major compaction writes.
    pub fn default_of(at: usize, count: usize) -> TierRule {
        let written = [Role::Log, Role::Flush, Role::MinorCompaction];
        let kept = [Role::MajorCompaction, Role::Mob, Role::Archive];
        let first = written.into_iter().filter(|_| at == 0);
        let last = kept.into_iter().filter(|_| at + 1 == count);
        TierRule {
            roles: first.chain(last).collect(),
            file_bytes_max: None,
            age_ms_max: None,
            fill_max: FILL_MAX,
        }
    }

    fn takes(&self, purpose: &Purpose, now_ms: u64) -> bool {
        let age_ms = purpose.newest_ms.map_or(0, |newest| now_ms.saturating_sub(newest));
        let is_recent = self.age_ms_max.is_none_or(|max| age_ms <= max);
        self.roles.contains(&purpose.role) && self.takes_length(purpose) && is_recent
    }

    fn takes_length(&self, purpose: &Purpose) -> bool {
        self.file_bytes_max.is_none_or(|max| purpose.expected_bytes <= max)
    }
}

impl Placement {
    /// The rules of tiers, in their order.
    pub fn new(rules: Vec<TierRule>) -> Placement {
        Placement { rules, log_policy: None, data_policy: None }
    }

    /// The same with the storage policies of HBase's options: of logs, and of files whose family
    /// has none.
    #[must_use]
    pub fn with_policies(self, log: &str, data: &str) -> Placement {
        Placement { log_policy: Some(log.into()), data_policy: Some(data.into()), ..self }
    }

    /// The positions of all tiers, in the order in which they are tried for a file: the one of the
    /// policy or rule, then slower ones, then faster ones.
    pub(crate) fn order(&self, tiers: &[Tier], purpose: &Purpose, now_ms: u64) -> Vec<usize> {
        debug_assert_eq!(self.rules.len(), tiers.len(), "each tier has a rule");
        let by_policy = self.types_of(purpose).map(|types| {
            let wanted = types
                .iter()
                .find_map(|wanted| tiers.iter().position(|tier| tier.class.storage_type == *wanted));
            // Without a tier of these types, the next slower one; without one, the slowest.
            let slower = || tiers.iter().position(|tier| tier.class.storage_type > types[0]);
            wanted.or_else(slower).unwrap_or(tiers.len().saturating_sub(1))
        });
        let by_rule = || self.rules.iter().position(|rule| rule.takes(purpose, now_ms));
        let first = by_policy.or_else(by_rule).unwrap_or_else(|| self.overflow(purpose));
        (first..tiers.len()).chain((0..first.min(tiers.len())).rev()).collect()
    }

    /// The share of the space of the tier `at` above which it gives files to the next one.
    pub(crate) fn fill_max(&self, at: usize) -> f64 {
        self.rules[at].fill_max
    }

    /// Whether a storage policy chooses the tier of a file.
    pub(crate) fn is_by_policy(&self, purpose: &Purpose) -> bool {
        self.types_of(purpose).is_some()
    }

    /// The fastest tier that takes data files of this length.
    pub(crate) fn fastest_for(&self, purpose: &Purpose) -> usize {
        let takes = |rule: &TierRule| {
            let for_data = [Role::Flush, Role::MinorCompaction, Role::MajorCompaction];
            for_data.iter().any(|role| rule.roles.contains(role)) && rule.takes_length(purpose)
        };
        self.rules.iter().position(takes).unwrap_or(self.rules.len().saturating_sub(1))
    }

    /// The storage types of the policy of a file; `None` without a policy.
    fn types_of(&self, purpose: &Purpose) -> Option<&'static [StorageType]> {
        let default = if purpose.role == Role::Log { &self.log_policy } else { &self.data_policy };
        purpose.policy.as_deref().or(default.as_deref()).and_then(storage_types)
    }

    /// The tier of a file that every tier with its role finds too long or too old: the one after
    /// the last of these.
    fn overflow(&self, purpose: &Purpose) -> usize {
        let last = self.rules.iter().rposition(|rule| rule.roles.contains(&purpose.role));
        last.map_or(0, |last| last + 1).min(self.rules.len().saturating_sub(1))
    }
}

/// The storage types of a policy of HDFS, in the order of preference. With one copy of each file,
/// `ONE_SSD` is like `ALL_SSD`, and `WARM` keeps the copy on a disk. `None` for policies that leave
/// the choice to the rules.
fn storage_types(policy: &str) -> Option<&'static [StorageType]> {
    use StorageType::{Archive, Disk, RamDisk, Ssd};
    Some(match policy.to_ascii_uppercase().as_str() {
        "LAZY_PERSIST" => &[RamDisk, Disk],
        "ALL_SSD" | "ONE_SSD" | "ALL_NVDIMM" => &[Ssd, Disk],
        "HOT" | "WARM" => &[Disk, Archive],
        "COLD" | "PROVIDED" => &[Archive],
        _ => return None,
    })
}
