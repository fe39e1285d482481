//! Merges several regions into one.
//!
//! As for a split, the parents are closed, the directory of the new region is built from references
//! to their files, and one write to `hbase:meta` commits the merge. The write removes the rows of
//! the parents. The row of the new region names the parents until the catalog janitor has archived
//! their files.
//!
//! Source: HBase `MergeTableRegionsProcedure`.

use cell::KeyRange;
use cell::region::RegionInfo;
use proto::MasterSwitchType;
use proto::exception::{Answer, JavaException, class};
use wire::meta::TableState;

use super::split_region::{close, final_file_error, final_io_error, is_off, roll_back, server_of};
use crate::context::Context;
use crate::refusal;

/// The checks when a client requests a merge. `regions` are in the order of the request.
///
/// # Errors
/// Why the regions cannot be merged, with HBase's message.
pub(crate) async fn check_requested(
    context: &Context,
    regions: &[RegionInfo],
    forcible: bool,
) -> Result<(), JavaException> {
    check_named(context, regions, forcible)?;
    let table = &regions[0].table;
    match context.meta.table_state(table).await? {
        Some(TableState::Enabled) => {}
        _ => return Err(refusal::table_not_enabled(table)),
    }
    check_edit(context, regions, &merged_of(regions)).await
}

/// Checks that the merged region overlaps no region outside the merge. This applies to forced
/// merges, too.
async fn check_edit(context: &Context, parents: &[RegionInfo], merged: &RegionInfo) -> Answer<()> {
    let checked = context.meta.check_edit(&merged.table, parents, std::slice::from_ref(merged)).await;
    checked.map_err(|refused| match refused.do_not_retry {
        true => JavaException::new(class::MERGE_REGION, refused.message),
        false => refused,
    })
}

/// The checks that do not read `hbase:meta`.
fn check_named(context: &Context, regions: &[RegionInfo], forcible: bool) -> Answer<()> {
    let refused = |message: String| Err(JavaException::new(class::MERGE_REGION, message));
    let unique: std::collections::HashSet<_> = regions.iter().map(RegionInfo::encoded_name).collect();
    if unique.len() != regions.len() {
        return refused(format!(
            "Duplicate regions specified; cannot merge a region to itself. Passed in {} but only {} unique.",
            regions.len(),
            unique.len()
        ));
    }
    if regions.len() < 2 {
        return refused("Need two Regions at least to do a Merge".into());
    }
    for (at, region) in regions.iter().enumerate() {
        if let Some(previous) = at.checked_sub(1).map(|before| &regions[before]) {
            check_pair(previous, region, forcible)?;
        }
        if let Err(not_open) = server_of(context, region) {
            return refused(not_open.to_string());
        }
    }
    Ok(())
}

fn check_pair(previous: &RegionInfo, region: &RegionInfo, forcible: bool) -> Answer<()> {
    let refused = |message: String| Err(JavaException::new(class::MERGE_REGION, message));
    if previous.table != region.table {
        return refused(format!(
            "Can't merge regions from different tables: {}, {}",
            refusal::format_region(previous),
            refusal::format_region(region)
        ));
    }
    if !forcible && previous.range().merge(&region.range()).is_none() {
        return refused(format!(
            "Unable to merge non-adjacent or non-overlapping regions '{}', '{}' when force=false",
            previous.encoded_name(),
            region.encoded_name()
        ));
    }
    Ok(())
}

/// The region into which `parents` are merged; there must be at least one.
pub fn merged_of(parents: &[RegionInfo]) -> RegionInfo {
    let table = parents[0].table.clone();
    let ranges = parents.iter().map(RegionInfo::range);
    let KeyRange { start, end } = ranges.reduce(|all, range| all.span(&range)).expect("there are parents");
    let id = parents.iter().map(|region| region.region_id).max().unwrap_or(0) + 1;
    let merged = RegionInfo::new(table, start, end, id);
    debug_assert!(
        parents.iter().all(|parent| merged.range().span(&parent.range()) == merged.range()),
        "a merged region covers its parents"
    );
    merged
}

/// Checks that the regions are still open and do not refer to files of other regions, and that
/// merges are enabled.
pub(super) async fn check(
    context: &Context,
    parents: &[RegionInfo],
    forcible: bool,
) -> Result<(), JavaException> {
    let parents_text = || refusal::format_regions(parents);
    if !context.switches.is_on(MasterSwitchType::Merge) {
        return Err(final_io_error(format!(
            "Merge of {} failed because merge switch is off",
            parents_text()
        )));
    }
    let table = context.tables.descriptor(&parents[0].table);
    if table.is_some_and(|table| is_off(table.attribute("MERGE_ENABLED"))) {
        let message = format!("Merge of {} failed as region merge is disabled for the table", parents_text());
        return Err(final_io_error(message));
    }
    // After a restart, the regions may still be opening.
    context.assignment.wait_for_open(parents).await?;
    check_requested(context, parents, forcible).await?;
    for parent in parents {
        check_parent(context, parents, parent).await?;
    }
    Ok(())
}

/// The checks for a repair of overlapping regions, which must be open.
pub(super) async fn check_repair(context: &Context, parents: &[RegionInfo]) -> Result<(), JavaException> {
    context.assignment.wait_for_open(parents).await?;
    check_requested(context, parents, true).await
}

async fn check_parent(context: &Context, parents: &[RegionInfo], parent: &RegionInfo) -> Answer<()> {
    let skipped = |why: &str| {
        let (all, one) =
            (refusal::format_names(parents), refusal::format_names(std::slice::from_ref(parent)));
        let message = format!("Skip merging {all}, because a parent, {one}, {why}");
        Err(JavaException::new(class::MERGE_REGION, message))
    };
    let row = context.meta.region_row(parent).await?;
    if row.is_some_and(|row| !row.merged_from.is_empty()) {
        return skipped(
            "has a merge qualifier (if a 'merge column' in parent, it was recently merged but still has \
             outstanding references to its parents that must be cleared before it can participate in merge -- \
             major compact it to hurry clearing of its references)",
        );
    }
    let request = proto::GetRegionInfoRequest {
        region: wire::convert::region_specifier(parent),
        ..proto::GetRegionInfoRequest::default()
    };
    let server = server_of(context, parent)?;
    match context.connections.admin(&server).get_region_info(request).await?.mergeable() {
        true => Ok(()),
        false => skipped("is not mergeable"),
    }
}

/// Merges the regions. The row of the merged region in `hbase:meta` shows whether an earlier
/// attempt has committed the merge.
pub(super) async fn act(context: &Context, parents: &[RegionInfo]) -> Result<(), JavaException> {
    let merged = merged_of(parents);
    let is_merged = context.meta.region_row(&merged).await?.is_some();
    if !is_merged && let Err(error) = commit(context, parents, &merged).await {
        return Err(roll_back(context, parents, &[&merged], error).await);
    }
    context.assignment.apply_merge(parents, &merged);
    context.assignment.open_or_retry_later(&[merged]).await
}

async fn commit(context: &Context, parents: &[RegionInfo], merged: &RegionInfo) -> Answer<()> {
    create_merged_files(context, parents, merged).await?;
    let ancestors = ancestors_of(context, parents).await?;
    context.meta.put_merged(parents, &ancestors, merged).await
}

/// The parents and the regions to whose files the parents still refer. (A repair may merge regions
/// that were merged before.)
async fn ancestors_of(context: &Context, parents: &[RegionInfo]) -> Answer<Vec<RegionInfo>> {
    let mut ancestors = parents.to_vec();
    for parent in parents {
        let row = context.meta.region_row(parent).await?;
        ancestors.extend(row.into_iter().flat_map(|row| row.merged_from));
    }
    Ok(ancestors)
}

async fn create_merged_files(context: &Context, parents: &[RegionInfo], merged: &RegionInfo) -> Answer<()> {
    let tables = &context.tables;
    let table = tables.descriptor(&merged.table).ok_or_else(|| refusal::table_not_found(&merged.table))?;
    check_edit(context, parents, merged).await?;
    close(context, parents).await?;
    let (fs, root) = (tables.fs(), tables.root());
    engine::split::remove_daughters(fs, root, &[merged]).await.map_err(final_file_error)?;
    engine::split::create_merged(fs, root, &table, parents, merged).await.map_err(final_file_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::schema::TableName;

    fn region(start: &'static str, end: &'static str, id: u64) -> RegionInfo {
        RegionInfo::new(TableName::parse("t").unwrap(), start.into(), end.into(), id)
    }

    #[test]
    fn a_merged_region_spans_its_parents_and_is_younger() {
        let merged = merged_of(&[region("b", "c", 7), region("f", "g", 9), region("c", "f", 8)]);
        assert_eq!(merged, region("b", "g", 10));
        assert_eq!(merged_of(&[region("", "c", 7), region("c", "", 7)]), region("", "", 8));
    }

    #[test]
    fn neighbours_and_overlapping_regions_need_no_force() {
        let may = |left, right| check_pair(&left, &right, false).is_ok();
        assert!(may(region("", "c", 1), region("c", "f", 1)));
        assert!(may(region("c", "f", 1), region("", "c", 1)));
        assert!(may(region("a", "e", 1), region("c", "f", 1)));
        assert!(may(region("a", "", 1), region("c", "f", 1)));
        assert!(!may(region("a", "b", 1), region("c", "f", 1)));
        assert!(!may(region("c", "", 1), region("a", "b", 1)));
        // The last region has an empty end key, and the first one an empty start key.
        assert!(!may(region("", "d", 1), region("m", "", 1)) && !may(region("m", "", 1), region("", "d", 1)));
        assert!(check_pair(&region("a", "b", 1), &region("c", "f", 1), true).is_ok());
    }
}
