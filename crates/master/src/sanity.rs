//! Whether a new table makes sense, by HBase's rules (`TableDescriptorChecker`). As there, a table that says
//! `hbase.table.sanity.checks` = `false` is taken as it is, but for what could not be served at all.

use bytes::Bytes;
use cell::coprocessor;
use cell::schema::{BloomType, FamilyDescriptor, TableDescriptor};
use wire::exception::{Answer, JavaException};

/// The smallest file size at which regions may be split (`hbase.hregion.max.filesize.limit`).
const FILE_BYTES_MIN: i64 = 2 << 20;
/// The smallest flush size (`hbase.hregion.memstore.flush.size.limit`).
const FLUSH_BYTES_MIN: i64 = 1 << 20;
/// Bytes of a block, least and most.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 1024..=16 << 20;
/// The split policies that HBase ships; others are Java classes of users, which cannot be loaded.
const SPLIT_POLICIES: &[&str] = &[
    "org.apache.hadoop.hbase.regionserver.BusyRegionSplitPolicy",
    "org.apache.hadoop.hbase.regionserver.ConstantSizeRegionSplitPolicy",
    "org.apache.hadoop.hbase.regionserver.DelimitedKeyPrefixRegionSplitPolicy",
    "org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy",
    "org.apache.hadoop.hbase.regionserver.IncreasingToUpperBoundRegionSplitPolicy",
    "org.apache.hadoop.hbase.regionserver.KeyPrefixRegionSplitPolicy",
    "org.apache.hadoop.hbase.regionserver.SteppingSplitPolicy",
];
/// The keys of the classes that compact, and of the files at which flushes wait.
const ENGINE_KEY: &str = "hbase.hstore.engine.class";
const POLICY_KEY: &str = "hbase.hstore.defaultengine.compactionpolicy.class";
const BLOCKING_FILES_KEY: &str = "hbase.hstore.blockingStoreFiles";
/// What that is if nobody says.
const BLOCKING_FILES: i64 = 16;
/// The store engines that are here.
const STORE_ENGINES: &[&str] = &[
    "org.apache.hadoop.hbase.regionserver.DefaultStoreEngine",
    "org.apache.hadoop.hbase.regionserver.DateTieredStoreEngine",
];
/// The compaction policies that are here.
const COMPACTION_POLICIES: &[&str] = &[
    "org.apache.hadoop.hbase.regionserver.compactions.ExploringCompactionPolicy",
    "org.apache.hadoop.hbase.regionserver.compactions.RatioBasedCompactionPolicy",
    FIFO_POLICY,
];
/// The policy that never rewrites.
const FIFO_POLICY: &str = "org.apache.hadoop.hbase.regionserver.compactions.FIFOCompactionPolicy";
/// With it flushes must not wait sooner.
const FIFO_BLOCKING_FILES_MIN: i64 = 1000;
/// HBase's names of what Bloom filters answer for, in any case of letters.
const BLOOM_TYPES: &[&str] = &["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"];
/// Where a family says how long the prefix of its Bloom filter is.
const PREFIX_LENGTH: &str = "RowPrefixBloomFilter.prefix_length";

/// Checks a table's families and attributes.
///
/// # Errors
/// `DoNotRetryIOException` that names the first thing that is wrong.
pub fn check_table(table: &TableDescriptor) -> Answer<()> {
    if table.families.is_empty() {
        return Err(refuse("Table should have at least one column family."));
    }
    table.families.values().try_for_each(check_servable)?;
    table.families.values().try_for_each(|family| check_classes(table, family))?;
    let checks = setting(table, "hbase.table.sanity.checks");
    if checks.is_some_and(|text| text.eq_ignore_ascii_case("false")) {
        return Ok(());
    }
    check_attributes(table)?;
    table.families.values().try_for_each(check_family)?;
    table.families.values().try_for_each(|family| check_compaction_policy(table, family))
}

/// What a family says, or else its table, in attributes or configuration.
fn said<'a>(table: &'a TableDescriptor, family: &'a FamilyDescriptor, key: &str) -> Option<&'a str> {
    let of_family = || family.configuration.get(key).map(String::as_str).or_else(|| family.attribute(key));
    of_family().or_else(|| setting(table, key))
}

/// Classes of users cannot be loaded, and of HBase's not all are here. (In HBase the regions of such a table do not open.)
fn check_classes(table: &TableDescriptor, family: &FamilyDescriptor) -> Answer<()> {
    if let Some(class) = said(table, family, ENGINE_KEY).filter(|class| !STORE_ENGINES.contains(class)) {
        return Err(refuse(format!("Unable to load configured store engine '{class}'")));
    }
    if let Some(class) = said(table, family, POLICY_KEY).filter(|class| !COMPACTION_POLICIES.contains(class))
    {
        return Err(refuse(format!("Unable to load configured compaction policy '{class}'")));
    }
    Ok(())
}

/// Files that are only ever dropped need an end, and there may be many.
fn check_compaction_policy(table: &TableDescriptor, family: &FamilyDescriptor) -> Answer<()> {
    if said(table, family, POLICY_KEY) != Some(FIFO_POLICY) {
        return Ok(());
    }
    if family.ttl_ms().is_none() {
        return Err(refuse("Default TTL is not supported for FIFO compaction"));
    }
    if family.min_versions() > 0 {
        return Err(refuse("MIN_VERSION > 0 is not supported for FIFO compaction"));
    }
    let files = number(said(table, family, BLOCKING_FILES_KEY)).unwrap_or(BLOCKING_FILES);
    if files < FIFO_BLOCKING_FILES_MIN {
        return Err(refuse(format!(
            "Blocking file count '{BLOCKING_FILES_KEY}' {files} is below recommended minimum of \
             {FIFO_BLOCKING_FILES_MIN} for column family {}",
            family.name.escape_ascii()
        )));
    }
    Ok(())
}

fn check_attributes(table: &TableDescriptor) -> Answer<()> {
    if number(table.attribute("MAX_FILESIZE")).is_some_and(|bytes| (0..FILE_BYTES_MIN).contains(&bytes)) {
        return Err(refuse(
            "MAX_FILESIZE for table descriptor or \"hbase.hregion.max.filesize\" is too small, which might cause over \
             splitting into unmanageable number of regions.",
        ));
    }
    if number(table.attribute("MEMSTORE_FLUSHSIZE"))
        .is_some_and(|bytes| (0..FLUSH_BYTES_MIN).contains(&bytes))
    {
        return Err(refuse(
            "MEMSTORE_FLUSHSIZE for table descriptor or \"hbase.hregion.memstore.flush.size\" is too small, which \
             might cause very frequent flushing.",
        ));
    }
    if let Some(policy) = table.attribute("SPLIT_POLICY").filter(|policy| !SPLIT_POLICIES.contains(policy)) {
        return Err(refuse(format!("Unable to load configured region split policy '{policy}'")));
    }
    if number(table.attribute("REGION_REPLICATION")).is_some_and(|replicas| replicas < 1) {
        return Err(refuse("Table region replication should be at least one."));
    }
    let is_foreign = |value: &[u8]| {
        coprocessor::built_in_class(value).is_none_or(|class| !coprocessor::BUILT_IN.contains(&class))
    };
    match coprocessor::attributes(table).find(|(_, value)| is_foreign(value)) {
        None => Ok(()),
        Some((name, value)) => {
            let (name, value) = (name.escape_ascii(), value.escape_ascii());
            Err(refuse(format!("Java coprocessors cannot be loaded: {name} = {value}")))
        }
    }
}

/// What no region could be opened with.
fn check_servable(family: &FamilyDescriptor) -> Answer<()> {
    let name = family.name.escape_ascii().to_string();
    let is_bad = |byte: &u8| matches!(byte, b':' | b'/') || byte.is_ascii_control();
    let is_directory = layout::store::check_family(&fs::FilePath::root(), &family.name).is_ok();
    if !is_directory || family.name.iter().any(is_bad) {
        return Err(refuse(format!("Illegal character in family name {name}")));
    }
    match family.foreign_compression() {
        None => Ok(()),
        // HBase's words for a codec whose classes cannot be loaded.
        Some(codec) => Err(refuse(format!(
            "Compression algorithm '{}' previously failed test. Set hbase.table.sanity.checks to false at conf or \
             table descriptor if you want to bypass sanity checks",
            codec.to_ascii_lowercase()
        ))),
    }
}

fn check_family(family: &FamilyDescriptor) -> Answer<()> {
    let name = family.name.escape_ascii().to_string();
    if number(family.attribute("TTL")).is_some_and(|seconds| seconds <= 0) {
        return Err(refuse(format!("TTL for column family {name} must be positive.")));
    }
    if !BLOCK_BYTES.contains(&family.block_bytes()) {
        return Err(refuse(format!("Block size for column family {name} must be between 1K and 16MB.")));
    }
    let min_versions = number(family.attribute("MIN_VERSIONS")).unwrap_or(0);
    if min_versions < 0 {
        return Err(refuse(format!("Min versions for column family {name} must be positive.")));
    }
    if min_versions > 0 && min_versions > i64::from(family.max_versions()) {
        return Err(refuse(format!(
            "Min versions for column family {name} must be less than the Max versions."
        )));
    }
    if number(family.attribute("REPLICATION_SCOPE")).is_some_and(|scope| !(0..=1).contains(&scope)) {
        return Err(refuse(format!("Replication scope for column family {name} must be 0 or 1.")));
    }
    if number(family.attribute("DFS_REPLICATION")).is_some_and(|copies| copies < 0) {
        return Err(refuse(format!("HFile replication for column family {name} must not be negative.")));
    }
    if let Some(bloom) = family.attribute("BLOOMFILTER").filter(|bloom| !is_bloom_type(bloom)) {
        let class = "org.apache.hadoop.hbase.regionserver.BloomType";
        return Err(refuse(format!("java.lang.IllegalArgumentException: No enum constant {class}.{bloom}")));
    }
    let prefix = family.configuration.get(PREFIX_LENGTH).map(String::as_str);
    if family.bloom_type() == BloomType::RowPrefix && number(prefix).is_none_or(|length| length <= 0) {
        return Err(refuse(format!("bloom filter ROWPREFIX_FIXED_LENGTH of {name} needs {PREFIX_LENGTH}")));
    }
    Ok(())
}

fn is_bloom_type(name: &str) -> bool {
    BLOOM_TYPES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A setting that stands among the attributes or in the configuration.
fn setting<'a>(table: &'a TableDescriptor, name: &str) -> Option<&'a str> {
    table.configuration.get(name).map(String::as_str).or_else(|| table.attribute(name))
}

fn number(text: Option<&str>) -> Option<i64> {
    text?.trim().parse().ok()
}

/// Checks that split keys are sorted, unique and not empty.
///
/// # Errors
/// `DoNotRetryIOException` that names the key.
pub fn check_split_keys(keys: &[Bytes]) -> Answer<()> {
    if keys.iter().any(Bytes::is_empty) {
        return Err(refuse("Empty split key must not be passed in the split keys."));
    }
    match keys.windows(2).find(|pair| pair[0] >= pair[1]) {
        None => Ok(()),
        Some(pair) => Err(refuse(format!(
            "All split keys must be unique and sorted, found {} before {}",
            pair[0].escape_ascii(),
            pair[1].escape_ascii()
        ))),
    }
}

fn refuse(message: impl Into<String>) -> JavaException {
    let advice = "Set hbase.table.sanity.checks to false at conf or table descriptor if you want to bypass sanity checks";
    JavaException::do_not_retry(format!("{} {advice}", message.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::schema::TableName;

    fn check(family: FamilyDescriptor, attributes: &[(&'static str, &str)]) -> bool {
        let mut table = TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family);
        let attributes = attributes.iter().map(|(name, value)| ((*name).into(), value.to_string().into()));
        table.attributes.extend(attributes);
        check_table(&table).is_ok()
    }

    fn family() -> FamilyDescriptor {
        FamilyDescriptor::new("f")
    }

    #[test]
    fn checks_can_be_turned_off_but_for_what_cannot_be_served() {
        assert!(!check(family(), &[("MAX_FILESIZE", "1024")]));
        assert!(check(family(), &[("MAX_FILESIZE", "1024"), ("hbase.table.sanity.checks", "false")]));
        for name in ["COMPRESSION", "COMPRESSION_COMPACT", "COMPRESSION_COMPACT_MINOR"] {
            for codec in ["LZO", "BZIP2", "LZMA", "BROTLI", "NOSUCH"] {
                let lzo = family().with(name, codec);
                assert!(!check(lzo, &[("hbase.table.sanity.checks", "false")]), "{codec}");
            }
            for codec in ["NONE", "GZ", "SNAPPY", "lz4", "ZSTD"] {
                assert!(check(family().with(name, codec), &[]), "{codec}");
            }
        }
    }

    #[test]
    fn families_are_checked_as_hbase_checks_them() {
        assert!(check(family().with("VERSIONS", "0"), &[]));
        for (name, value) in [
            ("TTL", "0"),
            ("BLOCKSIZE", "16"),
            ("MIN_VERSIONS", "5"),
            ("MIN_VERSIONS", "-1"),
            ("REPLICATION_SCOPE", "-1"),
            ("DFS_REPLICATION", "-1"),
            ("BLOOMFILTER", "ROWPREFIX_FIXED_LENGTH"),
            ("BLOOMFILTER", "NOSUCH"),
        ] {
            assert!(!check(family().with(name, value), &[]), "{name}={value}");
        }
    }

    #[test]
    fn files_that_only_go_need_an_end() {
        let with = |settings: &[(&str, &str)]| {
            let mut family = family();
            for (key, value) in settings {
                family.configuration.insert((*key).into(), (*value).into());
            }
            family
        };
        let fifo = (POLICY_KEY, FIFO_POLICY);
        assert!(!check(with(&[fifo, (BLOCKING_FILES_KEY, "1000")]), &[]));
        assert!(!check(with(&[fifo]).with("TTL", "5"), &[]));
        assert!(check(with(&[fifo, (BLOCKING_FILES_KEY, "1000")]).with("TTL", "5"), &[]));
        assert!(check(with(&[fifo]).with("TTL", "5"), &[(BLOCKING_FILES_KEY, "1000")]));
        assert!(!check(with(&[(POLICY_KEY, "no.such.Policy")]), &[("hbase.table.sanity.checks", "false")]));
        assert!(!check(with(&[(ENGINE_KEY, "org.apache.hadoop.hbase.regionserver.StripeStoreEngine")]), &[]));
        assert!(check(with(&[(ENGINE_KEY, STORE_ENGINES[1])]), &[]));
    }

    #[test]
    fn java_classes_are_refused() {
        assert!(!check(family(), &[("coprocessor$1", "|no.such.Observer|1|")]));
        for class in coprocessor::BUILT_IN {
            assert!(check(family(), &[("coprocessor$1", &format!("|{class}|1073741823|"))]), "{class}");
        }
        let endpoint = format!("|{}|1073741823|", coprocessor::MULTI_ROW_MUTATION);
        assert!(!check(family(), &[("coprocessor$1", &endpoint), ("coprocessor$2", "|no.such.Observer|1|")]));
        assert!(!check(family(), &[("SPLIT_POLICY", "no.such.Policy")]));
        assert!(check(family(), &[("SPLIT_POLICY", SPLIT_POLICIES[0])]));
    }
}
