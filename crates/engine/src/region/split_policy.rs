//! Split policies: the size at which a region should be split, and how the split row is shortened.
//!
//! Policies have the class names of HBase's and differ in the size limit. The region's files
//! determine the split row (`region::split`). A policy or a restriction may shorten it to a prefix,
//! so that rows with one prefix stay together. A table's attributes take precedence over the
//! server's settings and have the same keys.
//!
//! Source: HBase `RegionSplitPolicy`, `RegionSplitRestriction`, and their subclasses.

use base::classes::SplitPolicy as SplitPolicyClass;
use base::env::Random;
use bytes::Bytes;
use cell::schema::TableDescriptor;
use tracing::warn;

const POLICY_KEY: &str = "hbase.regionserver.region.split.policy";
const FILE_BYTES_KEY: &str = "hbase.hregion.max.filesize";
const JITTER_KEY: &str = "hbase.hregion.max.filesize.jitter";
const OVERALL_FILES_KEY: &str = "hbase.hregion.split.overallfiles";
const INITIAL_SIZE_KEY: &str = "hbase.increasing.policy.initial.size";
const RESTRICTION_KEY: &str = "hbase.regionserver.region.split_restriction.type";
const RESTRICTION_LEN_KEY: &str = "hbase.regionserver.region.split_restriction.prefix_length";
const RESTRICTION_DELIMITER_KEY: &str = "hbase.regionserver.region.split_restriction.delimiter";
const PREFIX_LEN_KEYS: [&str; 2] =
    ["KeyPrefixRegionSplitPolicy.prefix_length", "prefix_split_key_policy.prefix_length"];
const DELIMITER_KEY: &str = "DelimitedKeyPrefixRegionSplitPolicy.delimiter";

/// The server's settings for splits.
#[derive(Clone, Debug)]
pub struct SplitOptions {
    /// The policy for tables that name none (`hbase.regionserver.region.split.policy`).
    pub policy: SplitPolicyClass,
    /// Bytes of a store above which its region is split, however many regions the table has
    /// (`hbase.hregion.max.filesize`).
    pub file_bytes_max: u64,
    /// The fraction of `file_bytes_max` by which regions differ, so that not all are split at the
    /// same time (`hbase.hregion.max.filesize.jitter`).
    pub file_bytes_jitter: f64,
    /// Whether the size limit applies to all stores of a region together
    /// (`hbase.hregion.split.overallfiles`).
    pub sums_stores: bool,
    /// Bytes above which the first region of a table is split; the default is twice the flush size
    /// (`hbase.increasing.policy.initial.size`).
    pub initial_bytes: Option<u64>,
}

impl Default for SplitOptions {
    fn default() -> SplitOptions {
        SplitOptions {
            policy: SplitPolicyClass::Stepping,
            file_bytes_max: 10 << 30,
            file_bytes_jitter: 0.25,
            sums_stores: false,
            initial_bytes: None,
        }
    }
}

/// How the size limit depends on the number of regions that a table has on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// There is no limit.
    Never,
    /// The limit is the same for any number.
    Constant,
    /// The limit is smaller for one region.
    Stepping,
    /// The limit grows with the cube of the number.
    Increasing,
}

/// How a split row is shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
enum KeyPrefix {
    ToLength(usize),
    BeforeDelimiter(Vec<u8>),
}

impl KeyPrefix {
    fn apply(&self, row: Bytes) -> Bytes {
        match self {
            KeyPrefix::ToLength(len) => row.slice(..row.len().min(*len)),
            KeyPrefix::BeforeDelimiter(delimiter) => {
                let at = row.windows(delimiter.len()).position(|part| part == &delimiter[..]);
                at.map_or(row.clone(), |at| row.slice(..at))
            }
        }
    }
}

/// The policy of one open region.
#[derive(Clone, Debug)]
pub(super) struct SplitPolicy {
    growth: Growth,
    bytes_max: u64,
    initial_bytes: u64,
    pub(super) sums_stores: bool,
    // In the order in which they are applied.
    key_prefixes: Vec<KeyPrefix>,
}

impl SplitPolicy {
    /// The policy of a region of `table` that is flushed at `flush_bytes`.
    pub(super) fn of(
        table: &TableDescriptor,
        options: &SplitOptions,
        flush_bytes: u64,
        random: &dyn Random,
    ) -> SplitPolicy {
        let class = table.attribute("SPLIT_POLICY").or_else(|| table.setting(POLICY_KEY));
        let policy = class.map_or(Some(options.policy), SplitPolicyClass::of_class_or_name);
        if policy.is_none() {
            warn!(table = %table.name, class, "unknown split policy; regions are not split by size");
        }
        let growth = match policy {
            None | Some(SplitPolicyClass::Disabled) => Growth::Never,
            Some(SplitPolicyClass::ConstantSize) => Growth::Constant,
            Some(SplitPolicyClass::Stepping) => Growth::Stepping,
            Some(
                SplitPolicyClass::IncreasingToUpperBound
                | SplitPolicyClass::KeyPrefix
                | SplitPolicyClass::DelimitedKeyPrefix
                | SplitPolicyClass::Busy,
            ) => Growth::Increasing,
        };
        let policy_prefix = match policy {
            Some(SplitPolicyClass::KeyPrefix) => {
                to_length(PREFIX_LEN_KEYS.iter().find_map(|key| table.setting(key)))
            }
            Some(SplitPolicyClass::DelimitedKeyPrefix) => before(table.setting(DELIMITER_KEY)),
            _ => None,
        };
        let restriction = match table.setting(RESTRICTION_KEY) {
            Some("KeyPrefix") => to_length(table.setting(RESTRICTION_LEN_KEY)),
            Some("DelimitedKeyPrefix") => before(table.setting(RESTRICTION_DELIMITER_KEY)),
            _ => None,
        };
        let initial_bytes = table.positive_setting(&[INITIAL_SIZE_KEY]).or(options.initial_bytes);
        SplitPolicy {
            growth,
            bytes_max: bytes_max(table, options, random),
            initial_bytes: initial_bytes.unwrap_or_else(|| flush_bytes.saturating_mul(2)),
            sums_stores: table
                .setting(OVERALL_FILES_KEY)
                .map_or(options.sums_stores, |text| text.eq_ignore_ascii_case("true")),
            key_prefixes: policy_prefix.into_iter().chain(restriction).collect(),
        }
    }

    /// Bytes above which a region should be split, if the server has `regions` of its table; `None`
    /// if there is no limit.
    pub(super) fn bytes_max(&self, regions: usize) -> Option<u64> {
        match self.growth {
            Growth::Never => None,
            Growth::Constant => Some(self.bytes_max),
            Growth::Stepping if regions == 1 => Some(self.initial_bytes),
            Growth::Stepping => Some(self.bytes_max),
            Growth::Increasing if regions == 0 || regions > 100 => Some(self.bytes_max),
            Growth::Increasing => {
                Some(self.initial_bytes.saturating_mul((regions as u64).pow(3)).min(self.bytes_max))
            }
        }
    }

    /// Shortens the split row found in the files.
    pub(super) fn shorten(&self, row: Bytes) -> Bytes {
        self.key_prefixes.iter().fold(row, |row, prefix| prefix.apply(row))
    }
}

/// The final size limit of a region. Each region has a slightly different one.
fn bytes_max(table: &TableDescriptor, options: &SplitOptions, random: &dyn Random) -> u64 {
    let bytes = table.positive_setting(&["MAX_FILESIZE", FILE_BYTES_KEY]).unwrap_or(options.file_bytes_max);
    let jitter = table.setting(JITTER_KEY).and_then(|text| text.parse().ok());
    let jitter: f64 = jitter.unwrap_or(options.file_bytes_jitter);
    // An `f64` has 53 bits of precision.
    let fraction = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let differs = bytes as f64 * (fraction - 0.5) * jitter;
    (bytes as f64 + differs).clamp(1.0, i64::MAX as f64) as u64
}

fn to_length(text: Option<&str>) -> Option<KeyPrefix> {
    text?.trim().parse().ok().filter(|len| *len > 0).map(KeyPrefix::ToLength)
}

fn before(text: Option<&str>) -> Option<KeyPrefix> {
    let delimiter = text.filter(|text| !text.is_empty())?;
    Some(KeyPrefix::BeforeDelimiter(delimiter.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::SeededRandom;
    use cell::schema::TableName;

    fn policy(attributes: &[(&str, &str)]) -> SplitPolicy {
        let mut table = TableDescriptor::new(TableName::parse("t").unwrap());
        for (name, value) in attributes {
            table.attributes.insert(name.to_string().into(), value.to_string().into());
        }
        let options =
            SplitOptions { file_bytes_max: 1000, file_bytes_jitter: 0.0, ..SplitOptions::default() };
        SplitPolicy::of(&table, &options, 50, &SeededRandom::new(1))
    }

    #[test]
    fn sizes_follow_the_number_of_regions() {
        let sizes = |class: &str| {
            let policy = policy(&[("SPLIT_POLICY", class)]);
            [0, 1, 2, 3, 101].map(|regions| policy.bytes_max(regions))
        };
        let all = |sizes: [u64; 5]| sizes.map(Some);
        assert_eq!(sizes("SteppingSplitPolicy"), all([1000, 100, 1000, 1000, 1000]));
        assert_eq!(sizes("ConstantSizeRegionSplitPolicy"), all([1000; 5]));
        for class in ["IncreasingToUpperBound", "KeyPrefix", "DelimitedKeyPrefix", "Busy"] {
            assert_eq!(sizes(&format!("{class}RegionSplitPolicy")), all([1000, 100, 800, 1000, 1000]));
        }
        assert_eq!(sizes("DisabledRegionSplitPolicy"), [None; 5]);
        assert_eq!(sizes("NoSuchPolicy"), [None; 5]);
        assert_eq!(policy(&[]).bytes_max(1), Some(100), "the default policy");
        assert_eq!(policy(&[("SPLIT_POLICY", "ConstantSizeRegionSplitPolicy")]).bytes_max(1), Some(1000));
    }

    #[test]
    fn tables_override_settings() {
        let large =
            policy(&[("MAX_FILESIZE", "5000"), (INITIAL_SIZE_KEY, "70"), (OVERALL_FILES_KEY, "true")]);
        assert_eq!((large.bytes_max(1), large.bytes_max(2), large.sums_stores), (Some(70), Some(5000), true));
        assert_eq!(policy(&[("MAX_FILESIZE", "-1")]).bytes_max(2), Some(1000));
        assert_eq!(policy(&[(FILE_BYTES_KEY, "2000")]).bytes_max(2), Some(2000));
        assert_eq!(policy(&[(FILE_BYTES_KEY, "2000"), ("MAX_FILESIZE", "5000")]).bytes_max(2), Some(5000));
        let random = SeededRandom::new(3);
        let table = TableDescriptor::new(TableName::parse("t").unwrap());
        let options = SplitOptions { file_bytes_max: 1000, ..SplitOptions::default() };
        let sizes: Vec<u64> = (0..100).map(|_| bytes_max(&table, &options, &random)).collect();
        assert!(sizes.iter().all(|size| (875..=1125).contains(size)), "{sizes:?}");
        assert!(sizes.iter().any(|size| *size < 950) && sizes.iter().any(|size| *size > 1050), "{sizes:?}");
    }

    #[test]
    fn rows_are_shortened() {
        let shorten = |attributes: &[(&str, &str)], row: &'static str| policy(attributes).shorten(row.into());
        let key_prefix = ("SPLIT_POLICY", "KeyPrefixRegionSplitPolicy");
        assert_eq!(shorten(&[key_prefix, (PREFIX_LEN_KEYS[0], "3")], "abcdef"), "abc");
        assert_eq!(shorten(&[key_prefix, (PREFIX_LEN_KEYS[1], "3")], "ab"), "ab");
        assert_eq!(shorten(&[key_prefix, (PREFIX_LEN_KEYS[0], "0")], "abcdef"), "abcdef");
        assert_eq!(shorten(&[key_prefix], "abcdef"), "abcdef");
        let delimited = ("SPLIT_POLICY", "DelimitedKeyPrefixRegionSplitPolicy");
        assert_eq!(shorten(&[delimited, (DELIMITER_KEY, "::")], "a:b::c::d"), "a:b");
        assert_eq!(shorten(&[delimited, (DELIMITER_KEY, "_")], "a:b"), "a:b");
        let restricted = [(RESTRICTION_KEY, "KeyPrefix"), (RESTRICTION_LEN_KEY, "2")];
        assert_eq!(shorten(&restricted, "abcdef"), "ab");
        let restricted = [(RESTRICTION_KEY, "DelimitedKeyPrefix"), (RESTRICTION_DELIMITER_KEY, "d")];
        assert_eq!(shorten(&restricted, "abcdef"), "abc");
        assert_eq!(shorten(&[(RESTRICTION_KEY, "Other")], "abcdef"), "abcdef");
    }
}
