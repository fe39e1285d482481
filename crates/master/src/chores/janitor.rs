//! The catalog janitor: finds unneeded parents of splits and merges, and submits procedures that
//! archive them. It also inspects all regions ([`inspection`]).
//!
//! If a daughter was itself split, it is not archived before its own parent: rows are removed in
//! the order of their creation.
//!
//! Source: HBase `CatalogJanitor`.

use std::collections::HashSet;

use cell::region::RegionInfo;
use proto::exception::Answer;
use tracing::{info, warn};
use wire::meta::MetaRow;

use super::ChoreSwitch;
use crate::inspection;
use crate::master::Master;
use crate::procedure::{Work, may_need_parents};

/// The state of the janitor.
#[derive(Debug, Default)]
pub struct Janitor {
    /// Whether it may run, and whether it is running.
    pub switch: ChoreSwitch,
}

/// The result of a scan while another one is running.
const RUNNING_ALREADY: i32 = -1;

/// Scans `hbase:meta` once. Returns the number of split parents and merged regions whose cleanup
/// was submitted.
///
/// # Errors
/// The error of `hbase:meta`, the file system or the journal. A region that cannot be checked does
/// not prevent the cleanup of others.
pub(crate) async fn scan(master: &Master) -> Answer<i32> {
    let Some(_running) = master.janitor().switch.begin() else { return Ok(RUNNING_ALREADY) };
    inspection::inspect_regions(master).await;
    let mut rows = master.context().meta.read_all().await?.regions;
    // Oldest regions first.
    rows.sort_by_key(|row| row.region.region_id);
    let (mut count, mut first_error) = (0, None);
    let mut daughters_of_kept = HashSet::new();
    for row in &rows {
        match submit_cleanups(master, row, &mut daughters_of_kept).await {
            Ok(submitted) => count += submitted,
            Err(error) => {
                first_error.get_or_insert(error);
                daughters_of_kept.extend(row.daughters.iter().map(RegionInfo::encoded_name));
            }
        }
    }
    if count > 0 {
        info!(count, "archiving parents of splits and merges");
    }
    first_error.map_or(Ok(count), Err)
}

/// Submits the cleanups for which a row of `hbase:meta` is ready. Returns their number. If the
/// region is a split parent that is still needed, adds its daughters to `daughters_of_kept`.
async fn submit_cleanups(
    master: &Master,
    row: &MetaRow,
    daughters_of_kept: &mut HashSet<String>,
) -> Answer<i32> {
    let mut count = 0;
    if !row.merged_from.is_empty() && !may_need_parents(master.context(), &row.region).await? {
        count += i32::from(submit_cleanup(master, Work::GcMergeParents(row.region.clone())).await?);
    }
    if row.is_split_parent() {
        let is_unneeded =
            !daughters_of_kept.contains(&row.region.encoded_name()) && is_unneeded(master, row).await?;
        if is_unneeded {
            count += i32::from(submit_cleanup(master, Work::GcSplitParent(row.region.clone())).await?);
        } else {
            daughters_of_kept.extend(row.daughters.iter().map(RegionInfo::encoded_name));
        }
    }
    Ok(count)
}

/// A periodic scan. Errors are only logged.
pub(super) async fn run(master: &Master) {
    if let Err(error) = scan(master).await {
        warn!(%error, "catalog janitor failed; retrying in the next period");
    }
}

/// Whether the daughters of a split no longer need their parent.
async fn is_unneeded(master: &Master, parent: &MetaRow) -> Answer<bool> {
    // Keep a parent without two readable daughters.
    if parent.daughters.len() != 2 {
        return Ok(false);
    }
    for daughter in &parent.daughters {
        if may_need_parents(master.context(), daughter).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Submits a procedure unless it is already running. Returns whether it was submitted.
async fn submit_cleanup(master: &Master, work: Work) -> Answer<bool> {
    if master.procedures().is_running(|running| *running == work) {
        return Ok(false);
    }
    master.submit(work, (0, 0)).await.map(|_| true)
}
