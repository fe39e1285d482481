//! Letting go of the parents of splits and merges, when those that came after them have files of their own.
//!
//! The files go to the archive first, the rows of `hbase:meta` last: as long as a row is there, this is done again.
//!
//! Source: HBase `CatalogJanitor`, `GCRegionProcedure`, `GCMultipleMergedRegionsProcedure`.

use cell::region::RegionInfo;
use wire::exception::{Answer, JavaException};
use wire::meta::MetaRow;

use super::split_region::final_io;
use crate::context::Context;

/// The region must be split, and its daughters need none of its files.
pub(super) async fn check_split(context: &Context, parent: &RegionInfo) -> Answer<()> {
    let row = context.meta.region_row(parent).await?.filter(MetaRow::is_split_parent);
    let row = row.ok_or_else(|| final_io(format!("{} is no parent", parent.encoded_name())))?;
    if row.daughters.len() != 2 {
        return Err(final_io(format!("{} does not name its daughters", parent.encoded_name())));
    }
    check_unreferenced(context, &row.daughters).await
}

/// The region must be a merged one, and need none of its parents' files.
pub(super) async fn check_merge(context: &Context, merged: &RegionInfo) -> Answer<()> {
    let row = context.meta.region_row(merged).await?.filter(|row| !row.merged_from.is_empty());
    let row = row.ok_or_else(|| final_io(format!("{} has no parents", merged.encoded_name())))?;
    check_unreferenced(context, &[row.region]).await
}

async fn check_unreferenced(context: &Context, children: &[RegionInfo]) -> Answer<()> {
    for child in children {
        if has_references(context, child).await? {
            return Err(final_io(format!("{} has references", child.encoded_name())));
        }
    }
    Ok(())
}

/// Whether a region still has references to files of others; not if it is gone.
///
/// # Errors
/// What the file system said.
pub(crate) async fn has_references(context: &Context, region: &RegionInfo) -> Answer<bool> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    engine::split::has_references(fs, root, region).await.map_err(passing)
}

/// Archives a parent of a split and removes its row.
pub(super) async fn split(context: &Context, parent: &RegionInfo) -> Answer<()> {
    archive(context, parent).await?;
    let (table, parent) = (&parent.table, std::slice::from_ref(parent));
    context.meta.remove_regions(table, parent).await?;
    context.assignment.forget_regions(parent);
    Ok(())
}

/// Archives the parents of a merge and removes their names from its row.
pub(super) async fn merge(context: &Context, merged: &RegionInfo) -> Answer<()> {
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
    let (fs, root) = (context.tables.fs(), context.tables.root());
    engine::split::archive_region(fs, root, region).await.map_err(passing)
}

/// A failure of the file system may pass: it is tried again.
fn passing(error: engine::Error) -> JavaException {
    JavaException::io(error.to_string())
}
