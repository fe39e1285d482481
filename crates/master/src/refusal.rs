//! The exceptions that the master answers with, in HBase's words.

use cell::region::RegionInfo;
use cell::schema::TableName;
use wire::exception::{JavaException, class};
use wire::meta::TableState;

use crate::assignment::RegionState;

/// There is such a table already.
pub fn table_exists(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_EXISTS, table.to_string())
}

/// There is no such table.
pub fn table_not_found(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_NOT_FOUND, table.to_string())
}

/// The table would have to be enabled to be disabled.
pub fn table_not_enabled(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_NOT_ENABLED, table.to_string())
}

/// The table would have to be disabled to be deleted.
pub fn not_disabled(table: &TableName, state: TableState) -> JavaException {
    JavaException::new(class::TABLE_NOT_DISABLED, format!("Not DISABLED; {}", table_and_state(table, state)))
}

/// The table would have to be disabled to be enabled.
pub fn table_not_disabled(table: &TableName, state: TableState) -> JavaException {
    JavaException::new(class::TABLE_NOT_DISABLED, table_and_state(table, state))
}

/// There is no such namespace.
pub fn namespace_not_found(namespace: &str) -> JavaException {
    JavaException::new(class::NAMESPACE_NOT_FOUND, namespace)
}

/// There is no such snapshot.
pub fn no_such_snapshot(name: &str) -> JavaException {
    JavaException::new(
        class::SNAPSHOT_DOES_NOT_EXIST,
        format!("Snapshot '{name}' doesn't exist on the filesystem"),
    )
}

/// The snapshot's time to live has expired.
pub fn snapshot_expired(name: &str) -> JavaException {
    let message = format!("TTL for snapshot '{name}' has already expired.");
    JavaException::new(class::SNAPSHOT_TTL_EXPIRED, message)
}

fn table_and_state(table: &TableName, state: TableState) -> String {
    format!("tableName={table}, state={}", format!("{state:?}").to_uppercase())
}

/// The schema of a request is no table.
pub fn bad_schema(error: proto::convert::Invalid) -> JavaException {
    JavaException::do_not_retry(error.to_string())
}

/// There is no such region; `name` is what was asked for.
pub fn unknown_region(name: &[u8]) -> JavaException {
    JavaException::new(class::UNKNOWN_REGION, shown(name))
}

/// The region would have to be served.
pub fn region_not_open(region: &RegionInfo, state: &RegionState) -> JavaException {
    let message = format!("{} is not OPEN; state={state}", region.encoded_name());
    JavaException::new(class::DO_NOT_RETRY_REGION, message)
}

/// Bytes as HBase's `Bytes.toStringBinary` shows them.
pub fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'[' | b']'..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02X}")),
        }
    }
    text
}

/// A region as HBase's messages show it.
pub fn shown_region(region: &RegionInfo) -> String {
    format!(
        "{{ENCODED => {}, NAME => '{}', STARTKEY => '{}', ENDKEY => '{}'}}",
        region.encoded_name(),
        shown(&region.name()),
        shown(&region.start_key),
        shown(&region.end_key)
    )
}

/// Regions as HBase's messages show several.
pub fn shown_regions(regions: &[RegionInfo]) -> String {
    format!("[{}]", regions.iter().map(shown_region).collect::<Vec<_>>().join(", "))
}

/// Encoded names as HBase's messages show several.
pub fn shown_names(regions: &[RegionInfo]) -> String {
    format!("[{}]", regions.iter().map(RegionInfo::encoded_name).collect::<Vec<_>>().join(", "))
}
