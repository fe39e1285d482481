//! Tables and families as text, in the form of HBase's `TableDescriptor.toString` and of `describe`
//! in its shell.

use base::text::to_string_binary as binary;
use bytes::Bytes;
use cell::schema::{FAMILY_DEFAULTS, FamilyDescriptor, TableDescriptor};

/// Attributes of families in HBase, in addition to [`FAMILY_DEFAULTS`].
pub const FAMILY_OTHER_ATTRIBUTES: &[&str] = &[
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
pub const TABLE_ATTRIBUTES: &[&str] = &[
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

/// The time to live that means forever.
const FOREVER: &str = "2147483647";
const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// The text that HBase's `describe` prints after a table's name; empty if it has no attributes.
pub fn table_attributes(table: &TableDescriptor) -> String {
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

/// The text that HBase's `describe` prints for a family.
pub fn family_attributes(family: &FamilyDescriptor) -> String {
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
    use super::*;

    #[test]
    fn sizes_and_times_to_live_have_units() {
        assert_eq!(format_ttl(1), "1 SECOND");
        assert_eq!(format_ttl(59), "59 SECONDS");
        assert_eq!(format_ttl(93_784), "93784 SECONDS (1 DAY 2 HOURS 3 MINUTES 4 SECONDS)");
        assert_eq!(format_bytes(1023), "1023 B");
        assert_eq!(format_bytes((1 << 40) + (2 << 20) + 5), "1099513724933 B (1TB 2MB 5B)");
        assert_eq!(format_ttl(2_147_483_647), "FOREVER");
    }
}
