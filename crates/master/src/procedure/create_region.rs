//! Creates one region of an existing table. The region fills a hole in `hbase:meta`, adds a
//! directory that `hbase:meta` lacks, or gets an empty directory because its own was lost.
//!
//! An operator requests this to repair a table; see [`repair`](crate::repair).

use cell::region::RegionInfo;
use layout::daughter::Daughter;
use proto::exception::{Answer, JavaException};
use wire::meta::TableState;

use crate::assignment::RegionState;
use crate::context::Context;
use crate::refusal;
use crate::tables::file_exception;

/// Checks that the table exists, and that the region is not open. A region that is not in
/// `hbase:meta` must cover rows that no region covers.
pub(super) async fn check(context: &Context, region: &RegionInfo) -> Answer<()> {
    if context.tables.descriptor(&region.table).is_none() {
        return Err(refusal::table_not_found(&region.table));
    }
    context.assignment.wait_while_opening(std::slice::from_ref(region)).await;
    if let Some(state @ (RegionState::Open(_) | RegionState::Split)) = context.assignment.state(region) {
        let message = format!("region {} is {state}: it needs no repair", region.encoded_name());
        return Err(JavaException::do_not_retry(message));
    }
    context.meta.check_edit(&region.table, &[], std::slice::from_ref(region)).await
}

/// Creates the region, and opens it if its table is enabled.
pub(super) async fn act(context: &Context, region: &RegionInfo) -> Answer<()> {
    let tables = &context.tables;
    let table = tables.descriptor(&region.table).ok_or_else(|| refusal::table_not_found(&region.table))?;
    let empty = Daughter { info: region.clone(), files: Vec::new(), max_seq_id: 0 };
    tables.root().create_daughter(tables.fs(), &table, &empty).await.map_err(file_exception)?;
    if context.meta.region_row(region).await?.is_none() {
        context.meta.add_region(region).await?;
    }
    if context.assignment.state(region).is_none() {
        context.assignment.add_from_meta(region.clone());
    }
    match tables.state(&region.table) {
        Some(TableState::Enabled) => {
            context.assignment.open_or_retry_later(std::slice::from_ref(region)).await
        }
        _ => Ok(()),
    }
}
