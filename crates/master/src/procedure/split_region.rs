//! Splits a region into two.
//!
//! The parent is closed, so that all of its data is in files. The daughters' directories are built
//! from references to these files. Then one write to `hbase:meta` commits the split. Before this
//! write, the daughters are invisible and the parent can be reopened. After it, the daughters are
//! opened. The parent's files stay until the catalog janitor finds that the daughters no longer
//! refer to them.
//!
//! Source: HBase `SplitTableRegionProcedure`.

use bytes::Bytes;
use cell::region::{RegionInfo, ServerName};
use proto::MasterSwitchType;
use proto::exception::{Answer, JavaException, class};
use tracing::warn;
use wire::meta::{MetaRow, TableState};

use crate::assignment::RegionState;
use crate::context::Context;
use crate::refusal;

/// The row at which to split `parent`: the requested row, or else the row in the middle of its
/// files.
///
/// # Errors
/// Why the region cannot be split at this row, with HBase's message.
pub(crate) async fn split_row_of(
    context: &Context,
    parent: &RegionInfo,
    requested: Option<Bytes>,
) -> Answer<Bytes> {
    let is_enabled =
        parent.table.is_meta() || context.meta.table_state(&parent.table).await? == Some(TableState::Enabled);
    if !is_enabled {
        return Err(refusal::table_not_enabled(&parent.table));
    }
    let server = server_of(context, parent)?;
    let requested = requested.filter(|row| !row.is_empty());
    let request = proto::GetRegionInfoRequest {
        region: wire::convert::region_specifier(parent),
        best_split_row: Some(requested.is_none()),
        ..proto::GetRegionInfoRequest::default()
    };
    let found = context.connections.admin(&server).get_region_info(request).await?;
    if !found.splittable() {
        return Err(JavaException::do_not_retry(format!("{} NOT splittable", parent.encoded_name())));
    }
    let row = requested.or(found.best_split_row).ok_or_else(|| {
        JavaException::do_not_retry(
            "Region not splittable because bestSplitPoint = null, maybe table is too small for auto split. \
             For force split, try specifying split row",
        )
    })?;
    check_row(parent, &row)?;
    Ok(row)
}

fn check_row(parent: &RegionInfo, row: &Bytes) -> Answer<()> {
    let printable_row = refusal::printable(row);
    if parent.start_key == *row {
        return Err(JavaException::do_not_retry(format!("Split row is equal to startkey: {printable_row}")));
    }
    if !parent.contains(row) {
        let region = refusal::format_region(parent);
        let message =
            format!("Split row is not inside region key range splitKey:{printable_row} region: {region}");
        return Err(JavaException::do_not_retry(message));
    }
    Ok(())
}

/// The server on which a region is open.
pub(super) fn server_of(context: &Context, region: &RegionInfo) -> Answer<ServerName> {
    match context.assignment.state(region) {
        Some(RegionState::Open(server)) => Ok(server),
        Some(state) => Err(refusal::region_not_open(region, &state)),
        None => Err(JavaException::new(
            class::UNKNOWN_REGION,
            format!("No RegionState found for {}", region.encoded_name()),
        )),
    }
}

/// The daughters of a split of `parent` at a row. Their id is `now_ms`, or the id after the
/// parent's if that is later.
pub fn daughters_of(parent: &RegionInfo, split_row: &Bytes, now_ms: u64) -> [RegionInfo; 2] {
    assert!(
        parent.contains(split_row) && parent.start_key != *split_row,
        "both daughters of a split have rows"
    );
    let id = now_ms.max(parent.region_id + 1);
    let daughter =
        |start: &Bytes, end: &Bytes| RegionInfo::new(parent.table.clone(), start.clone(), end.clone(), id);
    [daughter(&parent.start_key, split_row), daughter(split_row, &parent.end_key)]
}

/// Checks that the region is still open and can be split, and that splits are enabled.
pub(super) async fn check(
    context: &Context,
    parent: &RegionInfo,
    daughters: &[RegionInfo; 2],
) -> Result<(), JavaException> {
    let name = || refusal::printable(&parent.name());
    if !context.switches.is_on(MasterSwitchType::Split) {
        return Err(final_io_error(format!("Split region {} failed due to split switch off", name())));
    }
    let table = context.tables.descriptor(&parent.table);
    if table.is_some_and(|table| is_off(table.attribute("SPLIT_ENABLED"))) {
        let message = format!("Split region {} failed as region split is disabled for the table", name());
        return Err(final_io_error(message));
    }
    // After a restart, the region may still be opening.
    context.assignment.wait_for_open(std::slice::from_ref(parent)).await?;
    split_row_of(context, parent, Some(daughters[1].start_key.clone())).await.map(|_| ())
}

/// Whether an attribute is set to a value that Java parses as false.
pub(super) fn is_off(attribute: Option<&str>) -> bool {
    attribute.is_some_and(|text| !text.eq_ignore_ascii_case("true"))
}

/// An `IOException` that is final: it ends the procedure.
pub(super) fn final_io_error(message: String) -> JavaException {
    JavaException { do_not_retry: true, ..JavaException::io(message) }
}

/// Splits the region. The row of the parent in `hbase:meta` shows whether an earlier attempt has
/// committed the split: it names the daughters.
pub(super) async fn act(
    context: &Context,
    parent: &RegionInfo,
    daughters: &[RegionInfo; 2],
) -> Result<(), JavaException> {
    let parent_row = context.meta.region_row(parent).await?.filter(MetaRow::is_split_parent);
    match parent_row {
        Some(row) if row.daughters.iter().all(|daughter| daughters.contains(daughter)) => {}
        Some(_) => return Err(discard(context, parent, daughters).await),
        None => {
            if let Err(error) = commit(context, parent, daughters).await {
                let parents = std::slice::from_ref(parent);
                return Err(roll_back(context, parents, &daughters.each_ref(), error).await);
            }
        }
    }
    context.assignment.apply_split(parent, daughters);
    context.assignment.open_or_retry_later(daughters).await
}

/// Removes the directories of daughters that have no rows in `hbase:meta`, because their parent was
/// split into others. Returns the error that ends the procedure.
async fn discard(context: &Context, parent: &RegionInfo, daughters: &[RegionInfo; 2]) -> JavaException {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    let error = final_io_error(format!("region {} was split into other daughters", parent.encoded_name()));
    match engine::split::remove_daughters(fs, root, &daughters.each_ref()).await {
        Ok(()) => error,
        Err(failed) => {
            JavaException::io(format!("{error}; and the new directories cannot be removed: {failed}"))
        }
    }
}

async fn commit(context: &Context, parent: &RegionInfo, daughters: &[RegionInfo; 2]) -> Answer<()> {
    create_daughter_files(context, parent, daughters).await?;
    context.meta.put_split(parent, daughters).await
}

async fn create_daughter_files(
    context: &Context,
    parent: &RegionInfo,
    daughters: &[RegionInfo; 2],
) -> Answer<()> {
    let tables = &context.tables;
    let table = tables.descriptor(&parent.table).ok_or_else(|| refusal::table_not_found(&parent.table))?;
    context.meta.check_edit(&parent.table, std::slice::from_ref(parent), daughters).await?;
    close(context, std::slice::from_ref(parent)).await?;
    let (fs, root, daughters) = (tables.fs(), tables.root(), daughters.each_ref());
    // An earlier attempt may have left daughters that refer to files that the parent no longer has,
    // because the parent was open since.
    engine::split::remove_daughters(fs, root, &daughters).await.map_err(final_file_error)?;
    engine::split::create_daughters(fs, root, &table, parent, daughters).await.map_err(final_file_error)
}

/// Flushes regions while they are online, and then closes them. The close then has little to flush,
/// so the regions are offline only briefly. Their files then have all their edits.
pub(super) async fn close(context: &Context, regions: &[RegionInfo]) -> Answer<()> {
    for region in regions {
        let Ok(server) = server_of(context, region) else { continue };
        let request = proto::FlushRegionRequest {
            region: wire::convert::region_specifier(region),
            ..proto::FlushRegionRequest::default()
        };
        if let Err(error) = context.connections.admin(&server).flush_region(request).await {
            warn!(region = %region.encoded_name(), %error, "cannot flush region before closing it");
        }
    }
    context.assignment.close_completely(regions).await
}

/// Converts an error of file operations to a final one, which ends the procedure after a rollback.
pub(super) fn final_file_error(error: engine::Error) -> JavaException {
    final_io_error(error.to_string())
}

/// Handles an error of a split or merge. After a final error, removes the directories of the
/// children, reopens the parents, and returns the error, which ends the procedure. If the error is
/// not final or the rollback fails, the returned error makes the procedure retry.
///
/// If the change is committed, the children have rows that are nowhere else. Another master may
/// have committed it while this one was suspended, or the write failed after it had its effect.
pub(super) async fn roll_back(
    context: &Context,
    parents: &[RegionInfo],
    children: &[&RegionInfo],
    error: JavaException,
) -> JavaException {
    if !error.do_not_retry {
        return error;
    }
    match is_replaced(context, parents).await {
        Ok(false) => {}
        Ok(true) => return JavaException::io(format!("{error}; but the change is committed")),
        Err(failed) => {
            return JavaException::io(format!("{error}; and hbase:meta cannot be asked: {failed}"));
        }
    }
    let tables = &context.tables;
    let removed = engine::split::remove_daughters(tables.fs(), tables.root(), children).await;
    if let Err(failed) = removed {
        return JavaException::io(format!("{error}; and the new directories cannot be removed: {failed}"));
    }
    warn!(%error, parents = refusal::format_names(parents), "cannot split or merge; reopening the original regions");
    match context.assignment.open_or_retry_later(parents).await {
        Ok(()) => error,
        Err(failed) => JavaException::io(format!("{error}; and the regions cannot be opened: {failed}")),
    }
}

/// Whether any of `parents` is split or has no row in `hbase:meta`: then other regions have its
/// rows.
async fn is_replaced(context: &Context, parents: &[RegionInfo]) -> Answer<bool> {
    // The next master may be about to commit the change with the same files.
    context.meta.check_active().await?;
    for parent in parents {
        let row = context.meta.region_row(parent).await?;
        if row.is_none_or(|row| row.is_split_parent()) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::schema::TableName;

    fn parent() -> RegionInfo {
        RegionInfo::new(TableName::parse("t").unwrap(), "b".into(), "m".into(), 7)
    }

    #[test]
    fn daughters_share_the_range_and_are_younger() {
        for (now_ms, id) in [(100, 100), (3, 8)] {
            let [low, high] = daughters_of(&parent(), &"f".into(), now_ms);
            assert_eq!((&low.start_key[..], &low.end_key[..]), (&b"b"[..], &b"f"[..]));
            assert_eq!((&high.start_key[..], &high.end_key[..]), (&b"f"[..], &b"m"[..]));
            assert_eq!((low.region_id, high.region_id), (id, id));
        }
    }

    #[test]
    fn rows_outside_and_at_the_start_are_refused() {
        let refused = |row: &'static str| check_row(&parent(), &row.into()).err().map(|error| error.message);
        assert_eq!(refused("f"), None);
        assert_eq!(refused("b").unwrap(), "Split row is equal to startkey: b");
        for row in ["a", "m", "z"] {
            let message = refused(row).unwrap();
            assert!(message.starts_with(&format!("Split row is not inside region key range splitKey:{row}")));
        }
    }
}
