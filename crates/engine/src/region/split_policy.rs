//! When a region should be split and where, as far as its table and the server's settings say.
//!
//! HBase's policies by their class names; they differ in the size that is too large. Where a region is split its files say
//! (`region::split`); a policy or a restriction may cut that row to a prefix, so that rows of one prefix stay together. A
//! table's attributes go before the server's settings, under the same keys.
//!
//! Source: HBase `RegionSplitPolicy` and its heirs, `RegionSplitRestriction` and its heirs.

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

/// What the server's settings say of splits.
#[derive(Clone, Debug)]
pub struct SplitOptions {
    /// The policy of tables that name none (`hbase.regionserver.region.split.policy`).
    pub policy: String,
    /// Bytes of a store at which its region is split in the end (`hbase.hregion.max.filesize`).
    pub file_bytes_max: u64,
    /// The part of these by which regions differ, so that not all are split at once (`hbase.hregion.max.filesize.jitter`).
    pub file_bytes_jitter: f64,
    /// Whether the stores of a region count together (`hbase.hregion.split.overallfiles`).
    pub sums_stores: bool,
    /// Bytes at which the first region of a table is split, instead of two memstores' (`hbase.increasing.policy.initial.size`).
    pub initial_bytes: Option<u64>,
}

impl Default for SplitOptions {
    fn default() -> SplitOptions {
        SplitOptions {
            policy: "SteppingSplitPolicy".into(),
            file_bytes_max: 10 << 30,
            file_bytes_jitter: 0.25,
            sums_stores: false,
            initial_bytes: None,
        }
    }
}

/// How the size that is too large follows from the number of regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// No size is.
    Never,
    /// It does not.
    Constant,
    /// Small for the only region of a table.
    Stepping,
    /// With the cube of their number.
    Increasing,
}

/// How a split row is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cut {
    ToLength(usize),
    BeforeDelimiter(Vec<u8>),
}

impl Cut {
    fn apply(&self, row: Bytes) -> Bytes {
        match self {
            Cut::ToLength(len) => row.slice(..row.len().min(*len)),
            Cut::BeforeDelimiter(delimiter) => {
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
    cuts: Vec<Cut>,
}

impl SplitPolicy {
    /// The policy of a region of `table`, which is flushed at `flush_bytes`.
    pub(super) fn of(
        table: &TableDescriptor,
        options: &SplitOptions,
        flush_bytes: u64,
        random: &dyn Random,
    ) -> SplitPolicy {
        let class = table.attribute("SPLIT_POLICY").or_else(|| table.setting(POLICY_KEY));
        let class = class.unwrap_or(&options.policy);
        let name = class.rsplit('.').next().unwrap_or(class);
        let growth = match name {
            "DisabledRegionSplitPolicy" => Growth::Never,
            "ConstantSizeRegionSplitPolicy" => Growth::Constant,
            "IncreasingToUpperBoundRegionSplitPolicy"
            | "KeyPrefixRegionSplitPolicy"
            | "DelimitedKeyPrefixRegionSplitPolicy"
            | "BusyRegionSplitPolicy" => Growth::Increasing,
            "SteppingSplitPolicy" => Growth::Stepping,
            _ => {
                warn!(table = %table.name, class, "no known split policy; regions are not split by size");
                Growth::Never
            }
        };
        let policy_cut = match name {
            "KeyPrefixRegionSplitPolicy" => {
                to_length(PREFIX_LEN_KEYS.iter().find_map(|key| table.setting(key)))
            }
            "DelimitedKeyPrefixRegionSplitPolicy" => before(table.setting(DELIMITER_KEY)),
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
            cuts: policy_cut.into_iter().chain(restriction).collect(),
        }
    }

    /// Bytes above which a region is too large, if the server has `regions` of its table; none if no size is.
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

    /// The row to split at, where the files say `row`.
    pub(super) fn cut(&self, row: Bytes) -> Bytes {
        self.cuts.iter().fold(row, |row, cut| cut.apply(row))
    }
}

/// The size at which a region is split in the end; each has its own, a little more or less.
fn bytes_max(table: &TableDescriptor, options: &SplitOptions, random: &dyn Random) -> u64 {
    let bytes = table.positive_setting(&["MAX_FILESIZE", FILE_BYTES_KEY]).unwrap_or(options.file_bytes_max);
    let jitter = table.setting(JITTER_KEY).and_then(|text| text.parse().ok());
    let jitter: f64 = jitter.unwrap_or(options.file_bytes_jitter);
    // 53 bits are what a fraction holds.
    let chance = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let differs = bytes as f64 * (chance - 0.5) * jitter;
    (bytes as f64 + differs).clamp(1.0, i64::MAX as f64) as u64
}

fn to_length(text: Option<&str>) -> Option<Cut> {
    text?.trim().parse().ok().filter(|len| *len > 0).map(Cut::ToLength)
}

fn before(text: Option<&str>) -> Option<Cut> {
    let delimiter = text.filter(|text| !text.is_empty())?;
    Some(Cut::BeforeDelimiter(delimiter.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::SeededRandom;
    use cell::schema::TableName;

    const PACKAGE: &str = "org.apache.hadoop.hbase.regionserver.";

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
            let full = format!("{PACKAGE}{class}");
            let policy = policy(&[("SPLIT_POLICY", &full)]);
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
        assert_eq!(policy(&[]).bytes_max(1), Some(100), "the default");
        assert_eq!(policy(&[("SPLIT_POLICY", "ConstantSizeRegionSplitPolicy")]).bytes_max(1), Some(1000));
    }

    #[test]
    fn every_policy_that_a_table_may_name_is_known() {
        for class in cell::attribute::SPLIT_POLICIES {
            let is_never = policy(&[("SPLIT_POLICY", class)]).bytes_max(1).is_none();
            assert_eq!(is_never, class.ends_with("DisabledRegionSplitPolicy"), "{class}");
        }
    }

    #[test]
    fn tables_go_before_settings() {
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
    fn rows_are_cut() {
        let cut = |attributes: &[(&str, &str)], row: &'static str| policy(attributes).cut(row.into());
        let key_prefix = ("SPLIT_POLICY", "KeyPrefixRegionSplitPolicy");
        assert_eq!(cut(&[key_prefix, (PREFIX_LEN_KEYS[0], "3")], "abcdef"), "abc");
        assert_eq!(cut(&[key_prefix, (PREFIX_LEN_KEYS[1], "3")], "ab"), "ab");
        assert_eq!(cut(&[key_prefix, (PREFIX_LEN_KEYS[0], "0")], "abcdef"), "abcdef");
        assert_eq!(cut(&[key_prefix], "abcdef"), "abcdef");
        let delimited = ("SPLIT_POLICY", "DelimitedKeyPrefixRegionSplitPolicy");
        assert_eq!(cut(&[delimited, (DELIMITER_KEY, "::")], "a:b::c::d"), "a:b");
        assert_eq!(cut(&[delimited, (DELIMITER_KEY, "_")], "a:b"), "a:b");
        let restricted = [(RESTRICTION_KEY, "KeyPrefix"), (RESTRICTION_LEN_KEY, "2")];
        assert_eq!(cut(&restricted, "abcdef"), "ab");
        let restricted = [(RESTRICTION_KEY, "DelimitedKeyPrefix"), (RESTRICTION_DELIMITER_KEY, "d")];
        assert_eq!(cut(&restricted, "abcdef"), "abc");
        assert_eq!(cut(&[(RESTRICTION_KEY, "Other")], "abcdef"), "abcdef");
    }
}
