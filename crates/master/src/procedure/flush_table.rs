//! Flushes all regions of a table.

use bytes::Bytes;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{TableDescriptor, TableName};
use proto::exception::JavaException;
use wire::meta::TableState;

use super::for_regions;
use crate::assignment::RegionState;
use crate::context::Context;
use crate::refusal;

/// Checks that the table is enabled. Unknown families are ignored, as in HBase 2.5.
pub(super) async fn check(context: &Context, table: &TableName) -> Result<(), JavaException> {
    match context.meta.table_state(table).await? {
        Some(TableState::Enabled) => Ok(()),
        Some(_) => Err(refusal::table_not_enabled(table)),
        None => Err(refusal::table_not_found(table)),
    }
}

/// Flushes the open regions on their servers. Waits for those that are opening. A repeated flush is
/// harmless.
pub(super) async fn act(
    context: &Context,
    table: &TableName,
    families: &[Bytes],
) -> Result<(), JavaException> {
    let descriptor = context.tables.descriptor(table).ok_or_else(|| refusal::table_not_found(table))?;
    // The regions may still be opening, if an earlier master began this flush.
    let regions: Vec<_> =
        context.assignment.regions_of(table).into_iter().map(|(region, _)| region).collect();
    context.assignment.wait_while_opening(&regions).await;
    let open = context.assignment.regions_of(table).into_iter().filter_map(|(region, state)| match state {
        RegionState::Open(server) => {
            Some((Some(server.clone()), flush(context, &descriptor, region, server, families)))
        }
        _ => None,
    });
    for_regions(context, open.collect()).await.map(|_| ())
}

async fn flush(
    context: &Context,
    table: &TableDescriptor,
    region: RegionInfo,
    server: ServerName,
    families: &[Bytes],
) -> Result<(), JavaException> {
    let admin = context.connections.admin(&server);
    let request = |family| proto::FlushRegionRequest {
        region: wire::convert::region_specifier(&region),
        family,
        write_flush_wal_marker: Some(true),
        ..proto::FlushRegionRequest::default()
    };
    if families.is_empty() {
        admin.flush_region(request(None)).await?;
    }
    for family in families.iter().filter(|family| table.families.contains_key(*family)) {
        admin.flush_region(request(Some(family.clone()))).await?;
    }
    Ok(())
}
