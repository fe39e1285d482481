//! Flushing all regions of a table.

use bytes::Bytes;
use cell::schema::TableName;
use wire::exception::{JavaException, class};
use wire::meta::TableState;

use crate::assignment::RegionState;
use crate::context::Context;
use crate::refusal;

/// The table must be enabled and have the families.
pub(super) async fn check(
    context: &Context,
    table: &TableName,
    families: &[Bytes],
) -> Result<(), JavaException> {
    match context.meta.table_state(table).await? {
        Some(TableState::Enabled) => {}
        Some(state) => return Err(refusal::table_not_enabled(table, state)),
        None => return Err(refusal::table_not_found(table)),
    }
    let descriptor = context.tables.descriptor(table).ok_or_else(|| refusal::table_not_found(table))?;
    match families.iter().find(|family| !descriptor.families.contains_key(*family)) {
        None => Ok(()),
        Some(missing) => Err(JavaException::new(
            class::NO_SUCH_COLUMN_FAMILY,
            format!("Column family {} does not exist in table {table}", missing.escape_ascii()),
        )),
    }
}

/// Flushes its regions where they are served. Flushing what was flushed already does nothing.
pub(super) async fn act(
    context: &Context,
    table: &TableName,
    families: &[Bytes],
) -> Result<(), JavaException> {
    for (region, state) in context.assignment.regions_of(table) {
        let RegionState::Open(server) = state else { continue };
        let admin = context.connections.admin(&server);
        let request = |family| proto::FlushRegionRequest {
            region: wire::convert::region_specifier(&region),
            family,
            ..proto::FlushRegionRequest::default()
        };
        if families.is_empty() {
            admin.flush_region(request(None)).await?;
        }
        for family in families {
            admin.flush_region(request(Some(family.clone()))).await?;
        }
    }
    Ok(())
}
