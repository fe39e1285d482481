//! The catalog janitor: finds parents of splits and merges that are needed no more, and submits what archives them. It also
//! inspects all regions ([`inspection`]).
//!
//! A daughter that was itself split is left until its own parent is gone: rows go in the order in which they came.
//!
//! Source: HBase `CatalogJanitor`.

use std::collections::HashSet;

use cell::region::RegionInfo;
use tracing::{info, warn};
use wire::exception::Answer;
use wire::meta::MetaRow;

use super::Turn;
use crate::inspection;
use crate::master::Master;
use crate::procedure::executor::Progress;
use crate::procedure::{Work, has_references};

/// The janitor's state.
#[derive(Debug, Default)]
pub struct Janitor {
    /// Whether it may run, and runs.
    pub turn: Turn,
}

/// What a look that ran while another did answers.
const RUNNING_ALREADY: i32 = -1;

/// Looks through `hbase:meta` once. Returns how many parents and merged regions are being tidied up.
///
/// # Errors
/// What `hbase:meta`, the file system or the journal said.
pub(crate) async fn scan(master: &Master) -> Answer<i32> {
    let Some(_running) = master.janitor().turn.begin() else { return Ok(RUNNING_ALREADY) };
    inspection::run(master).await;
    let mut rows = master.context().meta.read_all().await?.regions;
    // Those that were there first come first.
    rows.sort_by_key(|row| row.region.region_id);
    let mut count = 0;
    let mut kept = HashSet::new();
    for row in &rows {
        if !row.merged_from.is_empty() && !has_references(master.context(), &row.region).await? {
            count += i32::from(tidy(master, Work::TidyMerge(row.region.clone())).await?);
        }
        if row.is_split_parent() {
            let is_tidied = !kept.contains(&row.region.encoded_name()) && is_needless(master, row).await?;
            if is_tidied {
                count += i32::from(tidy(master, Work::TidySplit(row.region.clone())).await?);
            } else {
                kept.extend(row.daughters.iter().map(RegionInfo::encoded_name));
            }
        }
    }
    if count > 0 {
        info!(count, "parents of splits and merges are tidied up");
    }
    Ok(count)
}

/// The same by the clock: who would hear of an error is the log.
pub(super) async fn run(master: &Master) {
    if let Err(error) = scan(master).await {
        warn!(%error, "the catalog janitor found out nothing; it tries again at its next turn");
    }
}

async fn is_needless(master: &Master, parent: &MetaRow) -> Answer<bool> {
    // A parent whose daughters cannot be read is kept.
    if parent.daughters.len() != 2 {
        return Ok(false);
    }
    for daughter in &parent.daughters {
        if has_references(master.context(), daughter).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether it was submitted, and not before.
async fn tidy(master: &Master, work: Work) -> Answer<bool> {
    let known = master.procedures().list();
    let is_known = |status: &crate::procedure::executor::Status| {
        status.progress == Progress::Running && status.work == work
    };
    if known.iter().any(|(_, status)| is_known(status)) {
        return Ok(false);
    }
    master.submit(work, (0, 0)).await.map(|_| true)
}
