//! Creates a new table from a snapshot (clone), or restores an existing table to a snapshot. The
//! files are links to the files of the snapshot; nothing is copied.

use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use layout::FileLink;
use layout::mob::is_pseudo_region;
use layout::snapshot::{Manifest, SnapshotRegion};
use layout::store::StoreFileName;
use layout::table::LinkedFile;
use proto::exception::JavaException;
use wire::meta::TableState;

use super::TablePlan;
use super::bring_up::bring_up;
use crate::chores::snapshots;
use crate::context::Context;
use crate::tables::file_exception;
use crate::{limits, refusal, sanity};

/// Checks that the snapshot and the namespace exist, and that the new table does not.
pub(super) async fn check_clone(
    context: &Context,
    table: &TableName,
    snapshot: &str,
) -> Result<(), JavaException> {
    let manifest = manifest(context, snapshot).await?;
    context.namespaces.require(table.namespace()).await?;
    if context.meta.table_state(table).await?.is_some() {
        return Err(refusal::table_exists(table));
    }
    sanity::check_snapshot_table(None, &manifest.table)?;
    check_limits(&manifest, table)
}

/// Checks the length of the names of the table's regions and links.
fn check_limits(manifest: &Manifest, table: &TableName) -> Result<(), JavaException> {
    let regions: Vec<_> = manifest.regions.iter().map(|region| renamed(&region.info, table)).collect();
    limits::check_regions(&regions)?;
    limits::check_links(&links(manifest, table)?)
}

/// Checks that the snapshot exists and is of this table, and that the table is disabled.
pub(super) async fn check_restore(
    context: &Context,
    table: &TableName,
    snapshot: &str,
) -> Result<(), JavaException> {
    context.require_user_table(table)?;
    let manifest = manifest(context, snapshot).await?;
    if &manifest.table.name != table {
        return Err(JavaException::do_not_retry(format!(
            "Snapshot '{snapshot}' is of table {}, not of {table}",
            manifest.table.name
        )));
    }
    match context.meta.table_state(table).await? {
        Some(TableState::Disabled) => {
            let current = context.tables.descriptor(table);
            sanity::check_snapshot_table(current.as_deref(), &manifest.table)?;
            check_limits(&manifest, table)
        }
        Some(_) => Err(JavaException::unsupported(format!(
            "Table '{table}' must be disabled in order to perform a restore operation."
        ))),
        None => Err(refusal::table_not_found(table)),
    }
}

/// The table of the snapshot, named `table`, with regions of the same keys and ids.
pub(super) async fn plan(
    context: &Context,
    table: &TableName,
    snapshot: &str,
) -> Result<TablePlan, JavaException> {
    check_not_expired(context, snapshot).await?;
    let manifest = manifest(context, snapshot).await?;
    let regions = manifest.regions.iter().map(|region| renamed(&region.info, table)).collect();
    Ok(TablePlan { table: Box::new(TableDescriptor { name: table.clone(), ..manifest.table }), regions })
}

/// Creates the new table. The snapshot is read until the files are in place.
pub(super) async fn clone(context: &Context, plan: &TablePlan, snapshot: &str) -> Result<(), JavaException> {
    let (tables, name) = (&context.tables, &plan.table.name);
    if !tables.has_regions(name, &plan.regions).await? || plan.regions.is_empty() {
        let links = links(&whole_manifest(context, snapshot).await?, name)?;
        // A dropped table may have had regions of the same names, with edits in logs.
        discard_old_edits(context, &plan.regions).await?;
        let cloned = tables.root().clone_table(tables.fs(), &plan.table, &plan.regions, &links);
        cloned.await.map_err(file_exception)?;
    }
    bring_up(context, plan).await
}

/// Restores the table, which stays disabled. `token` identifies this restore.
pub(super) async fn restore(
    context: &Context,
    plan: &TablePlan,
    snapshot: &str,
    token: u64,
) -> Result<(), JavaException> {
    let (tables, name) = (&context.tables, &plan.table.name);
    let is_staged = tables.root().is_replacement_staged(tables.fs(), name, token).await;
    let links = match is_staged.map_err(file_exception)? {
        // The snapshot may have been deleted meanwhile.
        true => Vec::new(),
        false => links(&whole_manifest(context, snapshot).await?, name)?,
    };
    // Another master may have completed the restore, and rows may have been written since.
    context.meta.check_active().await?;
    let replaced = tables.root().replace_table(tables.fs(), &plan.table, &plan.regions, &links, token);
    replaced.await.map_err(file_exception)?;
    // If a region has edits that are only in logs, because it could not be opened, they were made
    // before the restore.
    discard_old_edits(context, &plan.regions).await?;
    let known = context.assignment.regions_in_meta(name).into_iter();
    let replaced_regions: Vec<_> = known.filter(|region| !plan.regions.contains(region)).collect();
    context.meta.replace_regions(name, &plan.regions, &replaced_regions).await?;
    context.assignment.forget_regions(&replaced_regions);
    for region in &plan.regions {
        if context.assignment.state(region).is_none() {
            context.assignment.add_from_meta(region.clone());
        }
    }
    tables.put((*plan.table).clone(), TableState::Disabled);
    Ok(())
}

/// Discards edits of regions whose contents are replaced, which logs may still have if a region
/// could not be opened since its server died.
async fn discard_old_edits(context: &Context, regions: &[RegionInfo]) -> Result<(), JavaException> {
    context.recoveries.record_closed(regions).await?;
    context.connections.discard_old_edits(regions).await
}

/// Refuses an expired snapshot, because the cleaner may remove it at any time. The cleaner does not
/// remove a snapshot that a procedure already uses.
async fn check_not_expired(context: &Context, snapshot: &str) -> Result<(), JavaException> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    match root.find_snapshot(fs, snapshot).await.map_err(file_exception)? {
        Some(found) if snapshots::is_expired(&found, context.env.clock.now_ms()) => {
            Err(refusal::snapshot_expired(snapshot))
        }
        _ => Ok(()),
    }
}

/// The manifest of a snapshot, without regions that are never online.
async fn manifest(context: &Context, snapshot: &str) -> Result<Manifest, JavaException> {
    let mut manifest = whole_manifest(context, snapshot).await?;
    manifest.regions.retain(SnapshotRegion::is_served);
    Ok(manifest)
}

async fn whole_manifest(context: &Context, snapshot: &str) -> Result<Manifest, JavaException> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    if root.find_snapshot(fs, snapshot).await.map_err(file_exception)?.is_none() {
        return Err(refusal::no_such_snapshot(snapshot));
    }
    match root.read_snapshot(fs, snapshot).await {
        Err(error @ (layout::Error::Corrupt { .. } | layout::Error::Unsupported { .. })) => {
            Err(JavaException::do_not_retry(error.to_string()))
        }
        read => read.map_err(file_exception),
    }
}

fn renamed(region: &RegionInfo, table: &TableName) -> RegionInfo {
    RegionInfo::new(table.clone(), region.start_key.clone(), region.end_key.clone(), region.region_id)
}

/// Links from the regions of `table` to all files of the snapshot. If a region has only a part of a
/// file, the link is a reference.
fn links(manifest: &Manifest, table: &TableName) -> Result<Vec<LinkedFile>, JavaException> {
    let mut links = Vec::new();
    let has_files = |region: &&SnapshotRegion| region.is_served() || is_pseudo_region(&region.info);
    for region in manifest.regions.iter().filter(has_files) {
        for (family, files) in &region.families {
            for file in files {
                let no_file =
                    || JavaException::do_not_retry(format!("invalid store file name {:?}", file.name));
                let link = FileLink::to(&region.info, family, &file.name).ok_or_else(no_file)?;
                let reference = match (&file.reference, StoreFileName::parse(&file.name)) {
                    (Some(reference), Some(StoreFileName::Reference { region: parent, .. })) => {
                        Some((reference.clone(), parent_in(manifest, table, parent)))
                    }
                    _ => None,
                };
                let region = renamed(&region.info, table);
                links.push(LinkedFile { region, family: family.clone(), link, reference });
            }
        }
    }
    Ok(links)
}

/// The encoded name that the region `parent` of a reference has, or would have, in `table`.
fn parent_in(manifest: &Manifest, table: &TableName, parent: String) -> String {
    let known = manifest.regions.iter().find(|region| region.info.encoded_name() == parent);
    known.map_or(parent, |region| renamed(&region.info, table).encoded_name())
}
