//! Tables and families: parsed from the arguments of `create`, and formatted for `describe`.
//!
//! A new family has all attributes that HBase's own client sends, so that it means the same to
//! every server.

use bytes::Bytes;
use cell::attribute;
use cell::schema::{Attributes, Configuration, FAMILY_DEFAULTS, FamilyDescriptor, TableDescriptor};

use super::arguments::Options;
use super::error::{Result, ShellError, usage};
use super::text::{binary, quoted};
use super::value::Value;

/// Further attributes of families in HBase.
const FAMILY_OTHER_ATTRIBUTES: &[&str] = &[
    "CACHE_BLOOMS_ON_WRITE",
    "CACHE_DATA_ON_WRITE",
    "CACHE_INDEX_ON_WRITE",
    "COMPRESSION_COMPACT",
    "COMPRESSION_COMPACT_MAJOR",
    "COMPRESSION_COMPACT_MINOR",
    "COMPRESS_TAGS",
    "DFS_REPLICATION",
    "ENCRYPTION",
    "ENCRYPTION_KEY",
    "EVICT_BLOCKS_ON_CLOSE",
    "IN_MEMORY_COMPACTION",
    "IS_MOB",
    "MOB_COMPACT_PARTITION_POLICY",
    "MOB_THRESHOLD",
    "NEW_VERSION_BEHAVIOR",
    "PREFETCH_BLOCKS_ON_OPEN",
    "STORAGE_POLICY",
];

/// Attributes of tables in HBase.
const TABLE_ATTRIBUTES: &[&str] = &[
    "COMPACTION_ENABLED",
    "DURABILITY",
    "ERASURE_CODING_POLICY",
    "FLUSH_POLICY",
    "IS_META",
    "MAX_FILESIZE",
    "MEMSTORE_FLUSHSIZE",
    "MERGE_ENABLED",
    "NORMALIZATION_ENABLED",
    "NORMALIZER_TARGET_REGION_COUNT",
    "NORMALIZER_TARGET_REGION_SIZE",
    "NORMALIZER_TARGET_REGION_SIZE_MB",
    "OWNER",
    "PRIORITY",
    "READONLY",
    "REGION_MEMSTORE_REPLICATION",
    "REGION_REPLICATION",
    "SPLIT_ENABLED",
    "SPLIT_POLICY",
];

/// Compression algorithms that Grampus writes.
const COMPRESSIONS: &[&str] = &["NONE", "GZ", "SNAPPY", "LZ4", "ZSTD"];
/// Types of Bloom filters.
const BLOOM_TYPES: &[&str] = &["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"];

/// The time to live that means forever, as sent to servers.
const FOREVER: &str = "2147483647";
const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// Builds the family that `create` describes with a name and options.
pub(crate) fn family(name: Vec<u8>, options: Options) -> Result<FamilyDescriptor> {
    if name.is_empty() || name.len() > cell::cell::FAMILY_LEN_MAX {
        return usage(format!("invalid family name {}", quoted(&name)));
    }
    let mut family = FamilyDescriptor::new(name);
    for (name, default) in FAMILY_DEFAULTS {
        family = family.with(name, default);
    }
    changed_family(family, options)
}

/// Changes the attributes of a family that options name.
pub(crate) fn changed_family(mut family: FamilyDescriptor, mut options: Options) -> Result<FamilyDescriptor> {
    set_hashes(&mut family.attributes, &mut family.configuration, &mut options)?;
    for name in FAMILY_DEFAULTS.iter().map(|(name, _)| name).chain(FAMILY_OTHER_ATTRIBUTES) {
        if let Some(value) = options.take(name) {
            family = family.with(name, &attribute_text(name, &value)?);
        }
    }
    options.finish()?;
    Ok(family)
}

/// Sets the attributes of a table that `create` describes.
pub(crate) fn set_table_options(table: &mut TableDescriptor, mut options: Options) -> Result<()> {
    // HBase's client of 2.0 and later stores a table's settings among its attributes.
    let settings = pairs(&mut options, "CONFIGURATION")?;
    table.attributes.extend(settings.into_iter().map(|(name, value)| (name.into(), value.into())));
    set_hashes(&mut table.attributes, &mut table.configuration, &mut options)?;
    for name in TABLE_ATTRIBUTES {
        if let Some(value) = options.take(name) {
            let text = attribute_text(name, &value)?;
            table.attributes.insert(Bytes::from_static(name.as_bytes()), text.into());
        }
    }
    options.finish()
}

/// Sets the entries of `METADATA` and `CONFIGURATION`.
fn set_hashes(
    attributes: &mut Attributes,
    configuration: &mut Configuration,
    options: &mut Options,
) -> Result<()> {
    for (name, value) in pairs(options, "METADATA")? {
        attributes.insert(name.into(), value.into());
    }
    configuration.extend(pairs(options, "CONFIGURATION")?);
    Ok(())
}

fn pairs(options: &mut Options, option: &str) -> Result<Vec<(String, String)>> {
    let entries = match options.take(option) {
        None => return Ok(Vec::new()),
        Some(Value::Hash(entries)) => entries,
        Some(other) => return usage(format!("{option} must be {{'name' => 'value'}}, not {other}")),
    };
    let pair = |(name, value): &(Value, Value)| match (name.string(), value.string()) {
        (Some(name), Some(value)) => Ok((name, value)),
        _ => usage(format!("{option} must map text to text, not {name} => {value}")),
    };
    entries.iter().map(pair).collect()
}

fn attribute_text(name: &str, value: &Value) -> Result<String> {
    let text =
        value.string().ok_or_else(|| ShellError::Usage(format!("{name} must be text, not {value}")))?;
    match name {
        "TTL" => ttl_text(&text),
        "COMPRESSION" if !COMPRESSIONS.contains(&text.to_ascii_uppercase().as_str()) => usage(format!(
            "Compression {} is not supported. Use one of {}",
            text.to_ascii_uppercase(),
            COMPRESSIONS.join(" ")
        )),
        "BLOOMFILTER" if !BLOOM_TYPES.contains(&text.to_ascii_uppercase().as_str()) => usage(format!(
            "BloomFilter type {} is not supported. Use one of {}",
            text.to_ascii_uppercase(),
            BLOOM_TYPES.join(" ")
        )),
        // Names of values. HBase's shell accepts them in lowercase too.
        "BLOOMFILTER"
        | "COMPRESSION"
        | "DATA_BLOCK_ENCODING"
        | "DURABILITY"
        | "INDEX_BLOCK_ENCODING"
        | "KEEP_DELETED_CELLS" => Ok(text.to_ascii_uppercase()),
        "VERSIONS" | "MIN_VERSIONS" | "BLOCKSIZE" | "MAX_FILESIZE" | "MEMSTORE_FLUSHSIZE"
        | "REGION_REPLICATION" => match text.parse::<u64>() {
            Ok(0) if name == "VERSIONS" => usage("Maximum versions must be positive"),
            Ok(number) => Ok(number.to_string()),
            Err(_) => usage(format!("For input string: \"{text}\"")),
        },
        _ => Ok(text),
    }
}

/// Parses `86400`, `FOREVER` or `1 DAY 2 HOURS` to seconds.
fn ttl_text(text: &str) -> Result<String> {
    let wrong =
        || ShellError::Usage(format!("TTL must be seconds, FOREVER, or like '1 DAY 2 HOURS', not '{text}'"));
    if text.eq_ignore_ascii_case("FOREVER") {
        return Ok(FOREVER.to_string());
    }
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(seconds.to_string());
    }
    let mut seconds: u64 = 0;
    let mut words = text.split_ascii_whitespace();
    while let Some(number) = words.next() {
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let unit = match words.next().ok_or_else(wrong)?.to_ascii_uppercase().trim_end_matches('S') {
            "DAY" => DAY_S,
            "HOUR" => HOUR_S,
            "MINUTE" => MINUTE_S,
            "SECOND" => 1,
            _ => return Err(wrong()),
        };
        seconds = number.checked_mul(unit).and_then(|part| seconds.checked_add(part)).ok_or_else(wrong)?;
    }
    match seconds {
        0 => Err(wrong()),
        _ => Ok(seconds.to_string()),
    }
}

/// The text that `describe` prints after a table's name; empty if it has no attributes.
pub(crate) fn table_attributes(table: &TableDescriptor) -> String {
    let is_false_meta =
        |name: &[u8], value: &[u8]| name == b"IS_META" && !value.eq_ignore_ascii_case(b"true");
    let shown = table.attributes.iter().filter(|(name, value)| !is_false_meta(name, value));
    let is_known = |name: &Bytes| TABLE_ATTRIBUTES.iter().any(|known| known.as_bytes() == name);
    let (known, further): (Vec<_>, Vec<_>) = shown.partition(|(name, _)| is_known(name));
    let mut parts: Vec<String> =
        known.into_iter().map(|(name, value)| format_attribute(name, value)).collect();
    parts.extend(format_hash(
        "METADATA",
        further.into_iter().map(|(name, value)| (binary(name), binary(value))),
    ));
    parts.extend(format_hash("CONFIGURATION", table.configuration.clone()));
    match parts.is_empty() {
        true => String::new(),
        false => format!(", {{TABLE_ATTRIBUTES => {{{}}}}}", parts.join(", ")),
    }
}

/// The text that `describe` prints for a family.
pub(crate) fn family_attributes(family: &FamilyDescriptor) -> String {
    let attribute = |name: &str| family.attributes.get(name.as_bytes());
    let mut parts = vec![format!("NAME => '{}'", binary(&family.name))];
    for (name, default) in FAMILY_DEFAULTS {
        let value = attribute(name).map_or(default.as_bytes(), |value| value);
        parts.push(format_attribute(name.as_bytes(), value));
    }
    for name in FAMILY_OTHER_ATTRIBUTES {
        parts.extend(attribute(name).map(|value| format_attribute(name.as_bytes(), value)));
    }
    let is_known = |name: &[u8]| {
        FAMILY_DEFAULTS
            .iter()
            .map(|(known, _)| known)
            .chain(FAMILY_OTHER_ATTRIBUTES)
            .any(|known| known.as_bytes() == name)
    };
    let further = family.attributes.iter().filter(|(name, _)| !is_known(name));
    parts.extend(format_hash("METADATA", further.map(|(name, value)| (binary(name), binary(value)))));
    parts.extend(format_hash("CONFIGURATION", family.configuration.clone()));
    format!("{{{}}}", parts.join(", "))
}

/// The line of `describe` that lists attributes without effect; `None` if there are none.
pub(crate) fn without_effect(table: &TableDescriptor) -> Option<String> {
    let found = attribute::without_effect(table);
    let shown = |(family, key): &(Option<Bytes>, &str)| match family {
        Some(family) => format!("{key} (family '{}')", binary(family)),
        None => (*key).to_string(),
    };
    let keys: Vec<String> = found.iter().map(shown).collect();
    (!keys.is_empty()).then(|| format!("Stored for compatibility, without effect: {}", keys.join(", ")))
}

fn format_attribute(name: &[u8], value: &[u8]) -> String {
    let (name, value) = (binary(name), binary(value));
    let shown = match (name.as_str(), value.parse::<u64>()) {
        ("TTL", Ok(seconds)) => format_ttl(seconds),
        ("BLOCKSIZE" | "MAX_FILESIZE" | "MEMSTORE_FLUSHSIZE", Ok(bytes)) => format_bytes(bytes),
        _ => value,
    };
    format!("{name} => '{shown}'")
}

fn format_hash(name: &str, entries: impl IntoIterator<Item = (String, String)>) -> Option<String> {
    let entries: Vec<String> =
        entries.into_iter().map(|(name, value)| format!("'{name}' => '{value}'")).collect();
    (!entries.is_empty()).then(|| format!("{name} => {{{}}}", entries.join(", ")))
}

/// Formats a size as HBase does: `65536 B (64KB)`.
fn format_bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let units = [("TB", 1_u64 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];
    let parts = split_units(bytes, units.map(|(unit, size)| (unit.to_string(), size)));
    format!(
        "{bytes} B ({})",
        parts.iter().map(|(count, unit)| format!("{count}{unit}")).collect::<Vec<_>>().join(" ")
    )
}

/// Formats a time to live as HBase does: `86400 SECONDS (1 DAY)`.
fn format_ttl(seconds: u64) -> String {
    let named =
        |(count, unit): &(u64, String)| format!("{count} {unit}{}", if *count == 1 { "" } else { "S" });
    if seconds.to_string() == FOREVER {
        return "FOREVER".to_string();
    }
    if seconds < MINUTE_S {
        return named(&(seconds, "SECOND".to_string()));
    }
    let units = [("DAY", DAY_S), ("HOUR", HOUR_S), ("MINUTE", MINUTE_S), ("SECOND", 1)];
    let parts = split_units(seconds, units.map(|(unit, size)| (unit.to_string(), size)));
    format!("{seconds} SECONDS ({})", parts.iter().map(named).collect::<Vec<_>>().join(" "))
}

/// Decomposes a number into units of decreasing size, without zero parts.
fn split_units<const N: usize>(number: u64, units: [(String, u64); N]) -> Vec<(u64, String)> {
    let mut rest = number;
    let mut parts = Vec::new();
    for (unit, size) in units {
        if rest >= size {
            parts.push((rest / size, unit));
        }
        rest %= size;
    }
    parts
}

#[cfg(test)]
mod tests {
    use cell::schema::TableName;

    use super::*;
    use crate::shell::arguments::Arguments;
    use crate::shell::error::Position;
    use crate::shell::parser::parse;

    fn options(source: &str) -> Options {
        let statement = parse(&format!("create {{{source}}}"), Position::START).unwrap().remove(0);
        Arguments::new("create", statement.values).options().unwrap()
    }

    #[test]
    fn a_family_is_described_as_hbase_describes_it() {
        let plain = family(b"f".to_vec(), options("")).unwrap();
        let expected = "{NAME => 'f', INDEX_BLOCK_ENCODING => 'NONE', VERSIONS => '1', KEEP_DELETED_CELLS => 'FALSE', \
                        DATA_BLOCK_ENCODING => 'NONE', TTL => 'FOREVER', MIN_VERSIONS => '0', REPLICATION_SCOPE => '0', \
                        BLOOMFILTER => 'ROW', IN_MEMORY => 'false', COMPRESSION => 'NONE', BLOCKCACHE => 'true', \
                        BLOCKSIZE => '65536 B (64KB)'}";
        assert_eq!(family_attributes(&plain), expected);
        // A server may leave out attributes with default values.
        assert_eq!(family_attributes(&FamilyDescriptor::new("f")), expected);
        let other = family(
            b"g".to_vec(),
            options(
                "VERSIONS => 3, TTL => '1 DAY', COMPRESSION => 'gz', IS_MOB => true, METADATA => {'m' => 1}, \
                     CONFIGURATION => {'c' => 'd'}",
            ),
        );
        let shown = family_attributes(&other.unwrap());
        for part in [
            "VERSIONS => '3'",
            "TTL => '86400 SECONDS (1 DAY)'",
            "COMPRESSION => 'GZ'",
            "BLOCKSIZE => '65536 B (64KB)', IS_MOB => 'true', METADATA => {'m' => '1'}, CONFIGURATION => {'c' => 'd'}}",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn attributes_of_a_table_follow_its_name() {
        let mut table = TableDescriptor::new(TableName::parse("t").unwrap());
        assert_eq!(table_attributes(&table), "");
        table.attributes.insert("IS_META".into(), "false".into());
        assert_eq!(table_attributes(&table), "");
        table.attributes.insert("hbase.store.file-tracker.impl".into(), "DEFAULT".into());
        assert_eq!(
            table_attributes(&table),
            ", {TABLE_ATTRIBUTES => {METADATA => {'hbase.store.file-tracker.impl' => 'DEFAULT'}}}"
        );
        set_table_options(&mut table, options("READONLY => true, MAX_FILESIZE => 10737418240")).unwrap();
        assert!(
            table_attributes(&table).starts_with(
                ", {TABLE_ATTRIBUTES => {MAX_FILESIZE => '10737418240 B (10GB)', READONLY => 'true', METADATA => {"
            ),
            "{}",
            table_attributes(&table)
        );
    }

    #[test]
    fn times_to_live_are_seconds() {
        let check = |text: &str, expected: &str| assert_eq!(ttl_text(text).unwrap(), expected);
        check("86400", "86400");
        check("forever", FOREVER);
        check("1 day 2 HOURS 3 minutes 4 SECONDS", "93784");
        for wrong in ["", "-1", "DAY", "0 DAYS", "1 WEEK", "1.5 DAYS", "1 DAY 2", "99999999999999999999 DAYS"]
        {
            assert!(ttl_text(wrong).is_err(), "{wrong}");
        }
        assert_eq!(format_ttl(1), "1 SECOND");
        assert_eq!(format_ttl(59), "59 SECONDS");
        assert_eq!(format_ttl(93_784), "93784 SECONDS (1 DAY 2 HOURS 3 MINUTES 4 SECONDS)");
        assert_eq!(format_bytes(1023), "1023 B");
        assert_eq!(format_bytes((1 << 40) + (2 << 20) + 5), "1099513724933 B (1TB 2MB 5B)");
    }
}
