//! Changes a table's families and attributes.
//!
//! The new descriptor is written first. Then the regions of an enabled table are reopened in
//! sequence, so that at most one region is briefly offline. Clients retry while a region is
//! offline. The files of removed families are archived last, when no region has them open. Before
//! each change of files, the master checks that it was not replaced: the next master may have
//! completed the procedure, and changed the table again.

use bytes::Bytes;
use cell::schema::{TableDescriptor, TableName};
use proto::exception::JavaException;
use wire::meta::TableState;

use super::{Change, ChangedTable};
use crate::context::Context;
use crate::{refusal, sanity};

/// Checks that the table exists, and that the changed descriptor is valid.
pub(super) async fn check(
    context: &Context,
    table: &TableName,
    change: &Change,
    reopen: bool,
) -> Result<(), JavaException> {
    if context.meta.table_state(table).await?.is_none() {
        return Err(refusal::table_not_found(table));
    }
    let (old, new) = (current(context, table)?, target(context, table, change)?.table);
    if table.is_meta() {
        return Err(JavaException::unsupported("hbase:meta cannot be altered"));
    }
    if !reopen && !old.families.keys().eq(new.families.keys()) {
        return Err(JavaException::do_not_retry(
            "Cannot add or remove column families when the regions are not to be reopened",
        ));
    }
    sanity::check_changed(&old, &new)
}

/// Applies the change to the current descriptor.
pub(super) fn target(
    context: &Context,
    table: &TableName,
    change: &Change,
) -> Result<ChangedTable, JavaException> {
    let old = current(context, table)?;
    let new = change.apply(&old)?;
    let removed: Vec<Bytes> =
        old.families.keys().filter(|name| !new.families.contains_key(*name)).cloned().collect();
    Ok(ChangedTable { table: Box::new(new), removed })
}

/// Changes the table.
pub(super) async fn act(context: &Context, target: &ChangedTable, reopen: bool) -> Result<(), JavaException> {
    let table = &target.table.name;
    context.meta.check_active().await?;
    context.tables.write_descriptor(&target.table).await?;
    let regions: Vec<_> =
        context.assignment.regions_of(table).into_iter().map(|(region, _)| region).collect();
    if reopen && context.tables.state(table) == Some(TableState::Enabled) {
        let reopening = context.tables.begin_reopening(table, regions.len());
        for region in &regions {
            context.assignment.reopen(region).await?;
            reopening.record_reopened();
        }
    }
    if target.removed.is_empty() {
        return Ok(());
    }
    for region in &regions {
        context.meta.check_active().await?;
        context.tables.archive_families(region, &target.removed).await?;
    }
    context.meta.check_active().await?;
    context.tables.archive_mob_families(table, &target.removed).await
}

fn current(context: &Context, table: &TableName) -> Result<std::sync::Arc<TableDescriptor>, JavaException> {
    context.tables.descriptor(table).ok_or_else(|| refusal::table_not_found(table))
}
