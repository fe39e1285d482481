//! Truncates a table: moves its files to the archive, replaces its regions with new ones, and
//! enables it.

use std::sync::Arc;

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use proto::exception::JavaException;
use wire::meta::TableState;

use super::TablePlan;
use super::bring_up::bring_up;
use crate::context::Context;
use crate::refusal;
use crate::tables::regions_between;

/// Checks that the table is disabled.
pub(super) async fn check(context: &Context, table: &TableName) -> Result<(), JavaException> {
    context.require_user_table(table)?;
    match context.meta.table_state(table).await? {
        Some(TableState::Disabled) => descriptor(context, table).map(|_| ()),
        Some(state) => Err(refusal::table_not_disabled(table, state)),
        None => Err(refusal::table_not_found(table)),
    }
}

/// The same table with new regions. Their ids differ from those of the old regions.
pub(super) fn plan(
    context: &Context,
    table: &TableName,
    preserve_splits: bool,
) -> Result<TablePlan, JavaException> {
    let table = descriptor(context, table)?;
    let old: Vec<RegionInfo> =
        context.assignment.regions_of(&table.name).into_iter().map(|(region, _)| region).collect();
    let newest = context.assignment.regions_in_meta(&table.name);
    let newest = newest.iter().map(|region| region.region_id).max().unwrap_or(0);
    let id = context.env.clock.now_ms().max(newest + 1);
    let split_keys: Vec<Bytes> = match preserve_splits {
        true => old.iter().map(|region| region.start_key.clone()).filter(|key| !key.is_empty()).collect(),
        false => Vec::new(),
    };
    let regions = regions_between(&table.name, &split_keys, id);
    Ok(TablePlan { table: Box::new((*table).clone()), regions })
}

/// Truncates the table. The new directory is staged, the old one is archived, and then the new one
/// is renamed into place as a whole. The `.regioninfo` files in the directory show which of the two
/// it is. Until the new directory is complete, the procedure can be rolled back; after that, the
/// old table may be in the archive.
pub(super) async fn act(context: &Context, plan: &TablePlan) -> Result<(), JavaException> {
    let (tables, name) = (&context.tables, &plan.table.name);
    if !tables.has_regions(name, &plan.regions).await? {
        tables.stage_empty(&plan.table, &plan.regions, token(plan)).await?;
        context.archive_table(name).await?;
        tables.publish(name).await?;
    }
    bring_up(context, plan).await
}

/// Identifies this truncation: regions of this id are new.
pub(super) fn token(plan: &TablePlan) -> u64 {
    plan.regions.iter().map(|region| region.region_id).max().unwrap_or(0)
}

fn descriptor(context: &Context, table: &TableName) -> Result<Arc<TableDescriptor>, JavaException> {
    context.tables.descriptor(table).ok_or_else(|| refusal::table_not_found(table))
}
