//! Validates new and altered tables. The rules are those of [`cell::attribute`], those of HBase for
//! combinations of attributes (`TableDescriptorChecker`), and the limits of this server.
//!
//! As in HBase, `hbase.table.sanity.checks` = `false` disables the checks of recommended ranges.
//! Unsupported features, invalid values and attributes without effect are still refused.

use base::classes::{CompactionPolicy, SplitPolicy, StoreEngine};
use bytes::Bytes;
use cell::attribute::{self, Fault, Problem};
use cell::coprocessor;
use cell::schema::{BloomType, FamilyDescriptor, TableDescriptor};
use proto::exception::{Answer, JavaException};
use tracing::warn;

/// The smallest file size at which regions may be split (`hbase.hregion.max.filesize.limit`).
const FILE_BYTES_MIN: i64 = 2 << 20;
/// The smallest flush size (`hbase.hregion.memstore.flush.size.limit`).
const FLUSH_BYTES_MIN: i64 = 1 << 20;
/// Allowed block sizes in bytes.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 1024..=16 << 20;
/// The keys of the compaction classes, and of the file count at which flushes wait.
const ENGINE_KEY: &str = "hbase.hstore.engine.class";
const POLICY_KEY: &str = "hbase.hstore.defaultengine.compactionpolicy.class";
const BLOCKING_FILES_KEY: &str = "hbase.hstore.blockingStoreFiles";
/// Default of that file count.
const BLOCKING_FILES: i64 = 16;
/// Minimum of that file count with FIFO compaction.
const FIFO_BLOCKING_FILES_MIN: i64 = 1000;
/// The key of a family's prefix length for Bloom filters.
const PREFIX_LENGTH: &str = "RowPrefixBloomFilter.prefix_length";

/// Validates the families and attributes of a new table.
///
/// # Errors
/// `DoNotRetryIOException` that names the first fault.
pub fn check_table(table: &TableDescriptor) -> Answer<()> {
    check_families(table)?;
    attribute::problems(table).first().map_or(Ok(()), |problem| Err(refuse_attribute(problem)))?;
    check_servable_table(table)?;
    check_recommended(table)
}

/// Validates a change of a table from `old` to `new`. An attribute that has the same value in `old`
/// is not checked, because the table is already in use with it.
///
/// # Errors
/// `DoNotRetryIOException` that names the first fault.
pub fn check_changed(old: &TableDescriptor, new: &TableDescriptor) -> Answer<()> {
    check_families(new)?;
    let before = attribute::problems(old);
    let problems = attribute::problems(new);
    let first = problems.iter().find(|problem| !before.contains(problem));
    first.map_or(Ok(()), |problem| Err(refuse_attribute(problem)))?;
    check_servable_table(new)?;
    check_recommended(new)
}

/// Validates the table of a snapshot, which replaces `current` if that exists. Unsupported features
/// are refused. A key or value without effect is accepted and logged, because it had no effect when
/// the snapshot was taken, either.
///
/// # Errors
/// `DoNotRetryIOException` that names the first fault.
pub fn check_snapshot_table(current: Option<&TableDescriptor>, table: &TableDescriptor) -> Answer<()> {
    check_families(table)?;
    check_servable_table(table)?;
    check_recommended(table)?;
    let before = current.map(attribute::problems).unwrap_or_default();
    let problems = attribute::problems(table);
    let is_refused =
        |problem: &&Problem| matches!(problem.fault, Fault::Unsupported { .. }) && !before.contains(problem);
    if let Some(problem) = problems.iter().find(is_refused) {
        return Err(refuse_attribute(problem));
    }
    log_problems(table);
    Ok(())
}

/// Logs the problems of an existing table that would be refused in a new one. Such a table was
/// created by HBase or an earlier version.
pub fn log_problems(table: &TableDescriptor) {
    for problem in attribute::problems(table) {
        warn!(table = %table.name, %problem, "an attribute has no effect");
    }
}

fn refuse_attribute(problem: &Problem) -> JavaException {
    JavaException::do_not_retry(problem.to_string())
}

/// Checks that there are families, and that their names are valid.
fn check_families(table: &TableDescriptor) -> Answer<()> {
    if table.families.is_empty() {
        return Err(refuse("Table should have at least one column family."));
    }
    for name in table.families.keys() {
        let is_bad = |byte: &u8| matches!(byte, b':' | b'/') || byte.is_ascii_control();
        let is_directory = layout::store::check_family(&fs::FilePath::root(), name).is_ok();
        if !is_directory || name.iter().any(is_bad) {
            return Err(refuse(format!("Illegal character in family name {}", name.escape_ascii())));
        }
    }
    Ok(())
}

/// Checks for settings with which no region could be opened.
fn check_servable_table(table: &TableDescriptor) -> Answer<()> {
    table.families.values().try_for_each(check_compression)?;
    table.families.values().try_for_each(|family| check_classes(table, family))?;
    check_coprocessors(table)
}

/// Checks HBase's recommendations, unless the table disables them.
fn check_recommended(table: &TableDescriptor) -> Answer<()> {
    let checks = table.setting("hbase.table.sanity.checks");
    if checks.is_some_and(|text| text.eq_ignore_ascii_case("false")) {
        return Ok(());
    }
    check_attributes(table)?;
    table.families.values().try_for_each(|family| check_family(table, family))?;
    table.families.values().try_for_each(|family| check_compaction_policy(table, family))
}

/// The value of a setting of a family, or else of its table.
fn setting_of<'a>(table: &'a TableDescriptor, family: &'a FamilyDescriptor, key: &str) -> Option<&'a str> {
    family.setting(key).or_else(|| table.setting(key))
}

/// User classes cannot be loaded, and only some of HBase's classes are supported. (In HBase, the
/// regions of such a table fail to open.)
fn check_classes(table: &TableDescriptor, family: &FamilyDescriptor) -> Answer<()> {
    if let Some(class) =
        setting_of(table, family, ENGINE_KEY).filter(|class| StoreEngine::of_class(class).is_none())
    {
        return Err(refuse(format!("{ENGINE_KEY}: Unable to load configured store engine '{class}'")));
    }
    if let Some(class) =
        setting_of(table, family, POLICY_KEY).filter(|class| CompactionPolicy::of_class(class).is_none())
    {
        return Err(refuse(format!("{POLICY_KEY}: Unable to load configured compaction policy '{class}'")));
    }
    Ok(())
}

/// Only built-in endpoints are supported as coprocessors.
fn check_coprocessors(table: &TableDescriptor) -> Answer<()> {
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

/// FIFO compaction only drops expired files, so it requires a TTL and must allow many files.
fn check_compaction_policy(table: &TableDescriptor, family: &FamilyDescriptor) -> Answer<()> {
    if setting_of(table, family, POLICY_KEY) != Some(CompactionPolicy::Fifo.class()) {
        return Ok(());
    }
    if family.ttl_ms().is_none() {
        return Err(refuse("Default TTL is not supported for FIFO compaction"));
    }
    if family.min_versions() > 0 {
        return Err(refuse("MIN_VERSION > 0 is not supported for FIFO compaction"));
    }
    let files = number(setting_of(table, family, BLOCKING_FILES_KEY)).unwrap_or(BLOCKING_FILES);
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
    if number(table.attribute("MAX_FILESIZE").or_else(|| table.setting("hbase.hregion.max.filesize")))
        .is_some_and(|bytes| (0..FILE_BYTES_MIN).contains(&bytes))
    {
        return Err(refuse(
            "MAX_FILESIZE for table descriptor or \"hbase.hregion.max.filesize\" is too small, which might cause over \
             splitting into unmanageable number of regions.",
        ));
    }
    if number(
        table.attribute("MEMSTORE_FLUSHSIZE").or_else(|| table.setting("hbase.hregion.memstore.flush.size")),
    )
    .is_some_and(|bytes| (0..FLUSH_BYTES_MIN).contains(&bytes))
    {
        return Err(refuse(
            "MEMSTORE_FLUSHSIZE for table descriptor or \"hbase.hregion.memstore.flush.size\" is too small, which \
             might cause very frequent flushing.",
        ));
    }
    let policy = table.attribute("SPLIT_POLICY");
    if let Some(policy) = policy.filter(|policy| SplitPolicy::of_class(policy).is_none()) {
        return Err(refuse(format!("Unable to load configured region split policy '{policy}'")));
    }
    Ok(())
}

fn check_compression(family: &FamilyDescriptor) -> Answer<()> {
    match family.unsupported_compression() {
        None => Ok(()),
        // HBase's message for a codec whose classes cannot be loaded.
        Some(codec) => Err(refuse(format!(
            "Compression algorithm '{}' previously failed test.",
            codec.to_ascii_lowercase()
        ))),
    }
}

fn check_family(table: &TableDescriptor, family: &FamilyDescriptor) -> Answer<()> {
    let name = family.name.escape_ascii().to_string();
    if !BLOCK_BYTES.contains(&family.block_bytes()) {
        return Err(refuse(format!(
            "BLOCKSIZE => '{}': Block size for column family {name} must be between 1K and 16MB.",
            family.block_bytes()
        )));
    }
    let min_versions = number(family.attribute("MIN_VERSIONS")).unwrap_or(0);
    if min_versions > 0 && min_versions > i64::from(family.max_versions()) {
        return Err(refuse(format!(
            "MIN_VERSIONS => '{min_versions}': Min versions for column family {name} must be less than the Max versions \
             (VERSIONS => '{}').",
            family.max_versions()
        )));
    }
    let prefix = setting_of(table, family, PREFIX_LENGTH);
    if family.bloom_type() == BloomType::RowPrefix && number(prefix).is_none_or(|length| length <= 0) {
        return Err(refuse(format!(
            "BLOOMFILTER => 'ROWPREFIX_FIXED_LENGTH' of family {name} needs {PREFIX_LENGTH}"
        )));
    }
    Ok(())
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
    fn disabled_checks_still_refuse_unservable_tables() {
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
        for (name, value) in [
            ("VERSIONS", "0"),
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
    fn unsafe_values_are_refused_with_checks_turned_off_too() {
        let off = ("hbase.table.sanity.checks", "false");
        for (name, value) in [("VERSIONS", "0"), ("TTL", "abc"), ("ENCRYPTION", "AES"), ("IS_MOB", "maybe")] {
            assert!(!check(family().with(name, value), &[off]), "{name}={value}");
        }
        for (name, value) in
            [("DURABILITY", "NOPE"), ("REGION_REPLICATION", "2"), ("hbase.hregion.majorcompaction", "x")]
        {
            assert!(!check(family(), &[off, (name, value)]), "{name}={value}");
        }
        assert!(check(family().with("BLOCKSIZE", "16"), &[off]), "harmless");
    }

    #[test]
    fn a_table_with_an_invalid_value_can_be_altered_and_restored() {
        let table = |versions: &str, note: &'static str| {
            let family = family().with("VERSIONS", versions);
            let mut table = TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family);
            table.attributes.insert("note".into(), note.into());
            table
        };
        assert!(check_changed(&table("0", "a"), &table("0", "b")).is_ok());
        assert!(check_changed(&table("0", "a"), &table("5", "a")).is_ok());
        assert!(check_changed(&table("5", "a"), &table("0", "a")).is_err());
        assert!(check_snapshot_table(None, &table("0", "a")).is_ok());
        let encrypted = TableDescriptor::new(TableName::parse("t").unwrap())
            .with_family(family().with("ENCRYPTION", "AES"));
        assert!(check_snapshot_table(None, &encrypted).is_err());
        assert!(
            check_snapshot_table(Some(&encrypted), &encrypted).is_ok(),
            "the table already has this value"
        );
    }

    #[test]
    fn fifo_compaction_requires_a_ttl() {
        let with = |settings: &[(&str, &str)]| {
            let mut family = family();
            for (key, value) in settings {
                family.configuration.insert((*key).into(), (*value).into());
            }
            family
        };
        let fifo = (POLICY_KEY, CompactionPolicy::Fifo.class());
        assert!(!check(with(&[fifo, (BLOCKING_FILES_KEY, "1000")]), &[]));
        assert!(!check(with(&[fifo]).with("TTL", "5"), &[]));
        assert!(check(with(&[fifo, (BLOCKING_FILES_KEY, "1000")]).with("TTL", "5"), &[]));
        assert!(check(with(&[fifo]).with("TTL", "5"), &[(BLOCKING_FILES_KEY, "1000")]));
        assert!(!check(with(&[(POLICY_KEY, "no.such.Policy")]), &[("hbase.table.sanity.checks", "false")]));
        assert!(!check(with(&[(ENGINE_KEY, "org.apache.hadoop.hbase.regionserver.StripeStoreEngine")]), &[]));
        assert!(check(with(&[(ENGINE_KEY, StoreEngine::DateTiered.class())]), &[]));
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
        assert!(check(family(), &[("SPLIT_POLICY", SplitPolicy::Busy.class())]));
    }
}
