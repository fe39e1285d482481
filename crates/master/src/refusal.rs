//! The exceptions with which the master refuses requests, with HBase's messages.

pub use base::text::to_string_binary as printable;
use cell::region::RegionInfo;
use cell::schema::TableName;
use proto::exception::{JavaException, class};
use wire::meta::TableState;

use crate::assignment::RegionState;

/// The table already exists.
pub fn table_exists(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_EXISTS, table.to_string())
}

/// The table does not exist.
pub fn table_not_found(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_NOT_FOUND, table.to_string())
}

/// The operation requires an enabled table.
pub fn table_not_enabled(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_NOT_ENABLED, table.to_string())
}

/// The table cannot be deleted, because it is not disabled.
pub fn not_disabled(table: &TableName, state: TableState) -> JavaException {
    JavaException::new(class::TABLE_NOT_DISABLED, format!("Not DISABLED; {}", table_and_state(table, state)))
}

/// The operation requires a disabled table.
pub fn table_not_disabled(table: &TableName, state: TableState) -> JavaException {
    JavaException::new(class::TABLE_NOT_DISABLED, table_and_state(table, state))
}

/// The namespace does not exist.
pub fn namespace_not_found(namespace: &str) -> JavaException {
    JavaException::new(class::NAMESPACE_NOT_FOUND, namespace)
}

/// The snapshot does not exist.
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

/// The schema in a request is not a valid table.
pub fn bad_schema(error: proto::convert::Invalid) -> JavaException {
    JavaException::do_not_retry(error.to_string())
}

/// The region does not exist; `name` is the name in the request.
pub fn unknown_region(name: &[u8]) -> JavaException {
    JavaException::new(class::UNKNOWN_REGION, printable(name))
}

/// The region is not open.
pub fn region_not_open(region: &RegionInfo, state: &RegionState) -> JavaException {
    let message = format!("{} is not OPEN; state={state}", region.encoded_name());
    JavaException::new(class::DO_NOT_RETRY_REGION, message)
}

/// Formats a region as in HBase's messages.
pub fn format_region(region: &RegionInfo) -> String {
    format!(
        "{{ENCODED => {}, NAME => '{}', STARTKEY => '{}', ENDKEY => '{}'}}",
        region.encoded_name(),
        printable(&region.name()),
        printable(&region.start_key),
        printable(&region.end_key)
    )
}

/// Formats a list of regions as in HBase's messages.
pub fn format_regions(regions: &[RegionInfo]) -> String {
    format!("[{}]", regions.iter().map(format_region).collect::<Vec<_>>().join(", "))
}

/// Formats a list of encoded names as in HBase's messages.
pub fn format_names(regions: &[RegionInfo]) -> String {
    format!("[{}]", regions.iter().map(RegionInfo::encoded_name).collect::<Vec<_>>().join(", "))
}
