//! Whether a new table makes sense, in HBase's words (`TableDescriptorChecker`).

use bytes::Bytes;
use cell::schema::{FamilyDescriptor, TableDescriptor};
use wire::exception::{Answer, JavaException};

/// Checks a table's families and attributes.
///
/// # Errors
/// `DoNotRetryIOException` that names the first thing that is wrong.
pub fn check_table(table: &TableDescriptor) -> Answer<()> {
    if table.families.is_empty() {
        return Err(refuse("Table should have at least one column family."));
    }
    if table
        .attribute("MAX_FILESIZE")
        .and_then(|text| text.parse::<i64>().ok())
        .is_some_and(|bytes| (0..2 << 20).contains(&bytes))
    {
        return Err(refuse(
            "MAX_FILESIZE for table descriptor or \"hbase.hregion.max.filesize\" is too small, which might cause over splitting into unmanageable number of regions.",
        ));
    }
    table.families.values().try_for_each(check_family)
}

fn check_family(family: &FamilyDescriptor) -> Answer<()> {
    let name = family.name.escape_ascii().to_string();
    if family.name.is_empty()
        || family.name[0] == b'.'
        || family.name.iter().any(|byte| *byte == b':' || byte.is_ascii_control())
    {
        return Err(refuse(format!("Illegal character in family name {name}")));
    }
    if family.attribute("TTL").and_then(|text| text.parse::<i64>().ok()).is_some_and(|seconds| seconds <= 0) {
        return Err(refuse(format!("TTL for column family {name} must be positive.")));
    }
    if !(1024..=16 << 20).contains(&family.block_bytes()) {
        return Err(refuse(format!("Block size for column family {name} must be between 1K and 16MB.")));
    }
    if family.max_versions() < 1 {
        return Err(refuse(format!("Max versions for column family {name} must be at least 1.")));
    }
    if family.min_versions() > family.max_versions() {
        return Err(refuse(format!(
            "Min versions for column family {name} must be less than the Max versions."
        )));
    }
    match family.compression() {
        Some(cell::schema::Compression::None | cell::schema::Compression::Gz) => Ok(()),
        _ => Err(refuse(format!(
            "Compression algorithm '{}' previously failed test. Set hbase.table.sanity.checks to false at conf or \
             table descriptor if you want to bypass sanity checks",
            family.attribute("COMPRESSION").unwrap_or_default().to_ascii_lowercase()
        ))),
    }
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
    JavaException::do_not_retry(message)
}
