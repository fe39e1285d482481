//! Changing a table's families and attributes.
//!
//! The new descriptor is written first. The regions of an enabled table are then opened anew, one after the other, each
//! with what the descriptor says by then: clients find one region at a time not served for a moment, and try again. The
//! files of families that went are archived last, when no region has them open.

use bytes::Bytes;
use cell::schema::{TableDescriptor, TableName};
use wire::exception::JavaException;
use wire::meta::TableState;

use super::{Change, Target};
use crate::context::Context;
use crate::{refusal, sanity};

/// The table must be there, and what it becomes must make sense.
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

/// What the table becomes.
pub(super) fn target(context: &Context, table: &TableName, change: &Change) -> Result<Target, JavaException> {
    let old = current(context, table)?;
    let new = change.apply(&old)?;
    let removed: Vec<Bytes> =
        old.families.keys().filter(|name| !new.families.contains_key(*name)).cloned().collect();
    Ok(Target { table: Box::new(new), removed })
}

/// Changes it.
pub(super) async fn act(context: &Context, target: &Target, reopen: bool) -> Result<(), JavaException> {
    let table = &target.table.name;
    context.tables.write_descriptor(&target.table).await?;
    let regions: Vec<_> =
        context.assignment.regions_of(table).into_iter().map(|(region, _)| region).collect();
    if reopen && context.tables.state(table) == Some(TableState::Enabled) {
        let reopening = context.tables.begin_reopening(table, regions.len());
        for region in &regions {
            context.assignment.reopen(region).await?;
            reopening.one_done();
        }
    }
    for region in &regions {
        context.tables.archive_families(region, &target.removed).await?;
    }
    Ok(())
}

fn current(context: &Context, table: &TableName) -> Result<std::sync::Arc<TableDescriptor>, JavaException> {
    context.tables.descriptor(table).ok_or_else(|| refusal::table_not_found(table))
}
