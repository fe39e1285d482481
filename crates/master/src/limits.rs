//! Length limits: names and keys that become file names or rows of `hbase:meta` must fit.
//!
//! They are checked before a procedure is journaled, so that no later step fails because of a name.

use cell::region::RegionInfo;
use cell::schema::TableName;
use layout::table::LinkedFile;
use proto::exception::{Answer, JavaException};

/// Maximum length in bytes of one component of a path on local file systems.
pub const FILE_NAME_BYTES_MAX: usize = 255;
/// Maximum length in bytes of a row. Source: HBase `HConstants.MAX_ROW_LENGTH`.
pub const ROW_BYTES_MAX: usize = 32_767;
/// Length of the suffix that a reference appends to a file name: a dot and the encoded name of a
/// region.
const REFERENCE_SUFFIX_BYTES: usize = 33;

/// Checks a table's name; both of its parts are directory names.
///
/// # Errors
/// `DoNotRetryIOException` that states the limit.
pub fn check_table_name(table: &TableName) -> Answer<()> {
    check_namespace_name(table.namespace())?;
    check_file_name("table name", table.qualifier())
}

/// Checks a namespace's name.
///
/// # Errors
/// `DoNotRetryIOException` that states the limit.
pub fn check_namespace_name(namespace: &str) -> Answer<()> {
    check_file_name("namespace name", namespace)
}

/// Checks a snapshot's name.
///
/// # Errors
/// `DoNotRetryIOException` that states the limit.
pub fn check_snapshot_name(snapshot: &str) -> Answer<()> {
    check_file_name("snapshot name", snapshot)
}

fn check_file_name(what: &str, name: &str) -> Answer<()> {
    if name.len() <= FILE_NAME_BYTES_MAX {
        return Ok(());
    }
    Err(JavaException::do_not_retry(format!(
        "The {what} has {} bytes; the limit is {FILE_NAME_BYTES_MAX} bytes, the longest file name: {}",
        name.len(),
        prefix(name.as_bytes())
    )))
}

/// Checks that the full names of regions fit into rows of `hbase:meta`. A name contains the table,
/// the start key and about 50 more bytes.
///
/// # Errors
/// `DoNotRetryIOException` that states the limit and the start key.
pub fn check_regions(regions: &[RegionInfo]) -> Answer<()> {
    let too_long = regions.iter().find(|region| region.name().len() > ROW_BYTES_MAX);
    let Some(region) = too_long else { return Ok(()) };
    let around = region.name().len() - region.start_key.len();
    Err(JavaException::do_not_retry(format!(
        "The split key has {} bytes; the limit for table {} is {} bytes, as the region's name is a row of hbase:meta \
         of at most {ROW_BYTES_MAX} bytes: {}",
        region.start_key.len(),
        region.table,
        ROW_BYTES_MAX - around,
        prefix(&region.start_key)
    )))
}

/// Checks the names of the links of a table that is created from a snapshot. A link's name contains
/// that of the source table, and a later split appends the name of a region.
///
/// # Errors
/// `DoNotRetryIOException` that states the limit and the link.
pub fn check_links(links: &[LinkedFile]) -> Answer<()> {
    for linked in links {
        let link = linked.link.name();
        if link.len() + REFERENCE_SUFFIX_BYTES > FILE_NAME_BYTES_MAX {
            return Err(JavaException::do_not_retry(format!(
                "The link {link} has {} bytes; the limit is {} bytes: the name of the source table is too long for \
                 its snapshots to be cloned or restored",
                link.len(),
                FILE_NAME_BYTES_MAX - REFERENCE_SUFFIX_BYTES
            )));
        }
        let back_reference = linked.link.back_reference_name(&linked.region);
        if back_reference.len() > FILE_NAME_BYTES_MAX {
            return Err(JavaException::do_not_retry(format!(
                "The name of table {} is too long for a table made from a snapshot: its back reference \
                 {back_reference} has {} bytes; the limit is {FILE_NAME_BYTES_MAX} bytes",
                linked.region.table,
                back_reference.len()
            )));
        }
    }
    Ok(())
}

/// A name for messages, truncated if it is long.
fn prefix(name: &[u8]) -> String {
    const SHOWN: usize = 40;
    match name.get(..SHOWN) {
        Some(start) => format!("{}...", crate::refusal::printable(start)),
        None => crate::refusal::printable(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn table(len: usize) -> TableName {
        TableName::parse(&"t".repeat(len)).unwrap()
    }

    #[test]
    fn a_name_of_255_bytes_fits_and_one_of_256_does_not() {
        assert!(check_table_name(&table(255)).is_ok());
        let refused = check_table_name(&table(256)).unwrap_err();
        assert!(refused.do_not_retry && refused.message.contains("the limit is 255 bytes"), "{refused}");
        assert!(refused.message.len() < 200, "{refused}");
        let cyrillic = TableName::parse(&"ж".repeat(128)).unwrap();
        assert!(check_table_name(&cyrillic).is_err(), "bytes count, not characters");
        let namespace = TableName::new(&"n".repeat(256), "t").unwrap();
        assert!(check_table_name(&namespace).is_err());
        assert!(check_snapshot_name(&"s".repeat(256)).is_err());
    }

    #[test]
    fn a_split_key_fits_if_the_regions_name_is_a_row() {
        let region = |len: usize| {
            RegionInfo::new(table(3), Bytes::from(vec![b'k'; len]), "".into(), 1_700_000_000_000)
        };
        // Three bytes of the table, two commas, 13 digits, two dots and 32 hexadecimal digits.
        let most = ROW_BYTES_MAX - 3 - 2 - 13 - 2 - 32;
        assert_eq!(region(most).name().len(), ROW_BYTES_MAX);
        assert!(check_regions(&[region(most)]).is_ok());
        let refused = check_regions(&[region(0), region(most + 1)]).unwrap_err();
        assert!(refused.message.contains(&format!("is {most} bytes")), "{refused}");
    }
}
