//! Tables and families: parsed from the arguments of `create`.
//!
//! A new family has all attributes that HBase's own client sends, so that it means the same to
//! every server.

use bytes::Bytes;
use cell::attribute;
use cell::schema::{Attributes, Configuration, FAMILY_DEFAULTS, FamilyDescriptor, TableDescriptor};
use printers::descriptor::{FAMILY_OTHER_ATTRIBUTES, TABLE_ATTRIBUTES};
pub(crate) use printers::descriptor::{family_attributes, table_attributes};

use super::arguments::Options;
use super::error::{Result, ShellError, usage};
use super::text::{binary, quoted};
use super::value::Value;

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
    }
}
