//! Archives the parents of splits and merges, when their children no longer refer to their files.
//!
//! The files are moved to the archive first. The rows in `hbase:meta` are removed last, because the
//! catalog janitor repeats the cleanup while they exist. Before each region, the master checks that
//! it was not replaced: the next master may have archived the parent, and restored a snapshot that
//! has it.
//!
//! Source: HBase `CatalogJanitor`, `GCRegionProcedure`, `GCMultipleMergedRegionsProcedure`.

use cell::region::RegionInfo;
use proto::exception::{Answer, JavaException};
use wire::meta::MetaRow;

use super::split_region::final_io_error;
use crate::assignment::RegionState;
use crate::context::Context;

/// Checks that the region was split, and that its daughters do not refer to its files.
pub(super) async fn check_split_parent(context: &Context, parent: &RegionInfo) -> Answer<()> {
    let row = context.meta.region_row(parent).await?.filter(MetaRow::is_split_parent);
    let row =
        row.ok_or_else(|| final_io_error(format!("region {} is not a split parent", parent.encoded_name())))?;
    if row.daughters.len() != 2 {
        return Err(final_io_error(format!(
            "the row of split region {} does not name two daughters",
            parent.encoded_name()
        )));
    }
    check_unreferenced(context, &row.daughters).await
}

/// Checks that the region was merged from others, and that it no longer refers to the files of its
/// parents.
pub(super) async fn check_merged_region(context: &Context, merged: &RegionInfo) -> Answer<()> {
    let row = context.meta.region_row(merged).await?.filter(|row| !row.merged_from.is_empty());
    let row =
        row.ok_or_else(|| final_io_error(format!("region {} has no merge parents", merged.encoded_name())))?;
    check_unreferenced(context, &[row.region]).await
}

async fn check_unreferenced(context: &Context, children: &[RegionInfo]) -> Answer<()> {
    for child in children {
        if may_need_parents(context, child).await? {
            let message =
                format!("region {} still has references, or its directory is missing", child.encoded_name());
            return Err(final_io_error(message));
        }
    }
    Ok(())
}

/// Whether a region may still need the files of its parents: it has references to them, or its
/// directory is missing, so that its references are unknown. False if the region no longer exists.
///
/// # Errors
/// The error of the file system or of `hbase:meta`.
pub(crate) async fn may_need_parents(context: &Context, region: &RegionInfo) -> Answer<bool> {
    if is_directory_missing(context, region).await? {
        return Ok(true);
    }
    let (fs, root) = (context.tables.fs(), context.tables.root());
    engine::split::has_references(fs, root, region).await.map_err(transient_error)
}

/// Whether `hbase:meta` has a region, but its directory was lost or moved away. An operator may
/// restore it. A server that has the region open may create the directory again, but without its
/// `.regioninfo`.
async fn is_directory_missing(context: &Context, region: &RegionInfo) -> Answer<bool> {
    if context.tables.has_regions(&region.table, std::slice::from_ref(region)).await? {
        return Ok(false);
    }
    // A split region is archived before its row is removed.
    let row = context.meta.region_row(region).await?;
    Ok(row.is_some_and(|row| !row.is_split_parent()))
}

/// Archives a parent of a split and removes its row.
pub(super) async fn archive_split_parent(context: &Context, parent: &RegionInfo) -> Answer<()> {
    archive(context, parent).await?;
    let (table, parent) = (&parent.table, std::slice::from_ref(parent));
    context.meta.remove_regions(table, parent).await?;
    context.assignment.forget_regions(parent);
    Ok(())
}

/// Archives the parents of a merge and removes their names from the row of the merged region.
pub(super) async fn archive_merge_parents(context: &Context, merged: &RegionInfo) -> Answer<()> {
    let Some(row) = context.meta.region_row(merged).await? else { return Ok(()) };
    for parent in &row.merged_from {
        archive(context, parent).await?;
    }
    match row.merged_from.len() {
        0 => Ok(()),
        parents => context.meta.forget_merge_parents(merged, parents).await,
    }
}

async fn archive(context: &Context, region: &RegionInfo) -> Answer<()> {
    debug_assert!(
        !matches!(context.assignment.state(region), Some(RegionState::Open(_))),
        "the files of an open region are not archived"
    );
    context.meta.check_active().await?;
    let (fs, root) = (context.tables.fs(), context.tables.root());
    engine::split::archive_region(fs, root, region).await.map_err(transient_error)
}

/// A failure of the file system may be temporary, so the procedure is retried.
fn transient_error(error: engine::Error) -> JavaException {
    JavaException::io(error.to_string())
}
