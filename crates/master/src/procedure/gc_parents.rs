//! Archives the parents of splits and merges, when their children no longer refer to their files.
//!
//! The files are moved to the archive first. The rows in `hbase:meta` are removed last, because the
//! catalog janitor repeats the cleanup while they exist.
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
        if has_references(context, child).await? {
            return Err(final_io_error(format!("region {} still has references", child.encoded_name())));
        }
    }
    Ok(())
}

/// Whether a region still has references to files of other regions; false if the region no longer
/// exists.
///
/// # Errors
/// The file system's error.
pub(crate) async fn has_references(context: &Context, region: &RegionInfo) -> Answer<bool> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    engine::split::has_references(fs, root, region).await.map_err(transient_error)
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
    let (fs, root) = (context.tables.fs(), context.tables.root());
    engine::split::archive_region(fs, root, region).await.map_err(transient_error)
}

/// A failure of the file system may be temporary, so the procedure is retried.
fn transient_error(error: engine::Error) -> JavaException {
    JavaException::io(error.to_string())
}
