//! Repairs of regions. Overlapping regions are merged at start; an operator requests other repairs
//! with `grampus repair`.
//!
//! `grampus repair` calls `ExecProcedure` with the signature [`SIGNATURE`]. The instance is the
//! name of the repair, and the configuration contains its arguments. The `return_data` of the
//! response is text. HBase has no such procedure.

use cell::region::RegionInfo;
use cell::schema::TableName;
use layout::region::RegionDir;
use proto::ProcedureDescription;
use proto::exception::{Answer, JavaException};
use tracing::{error, info};
use wire::meta::TableState;

use crate::assignment::RegionState;
use crate::context::Context;
use crate::inspection;
use crate::integrity::{Fault, format_range};
use crate::master::Master;
use crate::procedure::Work;
use crate::procedure::executor::Progress;
use crate::service::EXPECTED_TIMEOUT_MS;
use crate::tables::file_exception;

/// The `ExecProcedure` signature of repairs.
pub const SIGNATURE: &str = "grampus-repair";

/// Merges overlapping regions of enabled tables. Earlier versions created such regions when they
/// merged the first and the last region of a table.
pub(crate) async fn merge_overlaps_at_start(master: &Master) {
    for line in merge_overlaps(master).await {
        info!("{line}");
    }
}

/// Merges overlapping regions of enabled tables. Returns one line per group.
async fn merge_overlaps(master: &Master) -> Vec<String> {
    let mut lines = Vec::new();
    for fault in master.context().integrity.faults() {
        let Fault::Overlap(table, regions) = &fault else { continue };
        let is_enabled = master.context().tables.state(table) == Some(TableState::Enabled);
        if !is_enabled {
            lines.push(format!("{fault}: not merged, because the table is not enabled"));
            continue;
        }
        info!("{fault}: merging them");
        lines.push(match merge_regions(master, regions).await {
            Ok(()) => format!("{fault}: merged into one region"),
            Err(error) => {
                error!(%error, "overlapping regions cannot be merged: {fault}");
                format!("{fault}: cannot be merged: {error}")
            }
        });
    }
    if !lines.is_empty() {
        inspection::inspect_regions(master).await;
    }
    lines
}

async fn merge_regions(master: &Master, regions: &[RegionInfo]) -> Answer<()> {
    debug_assert!(regions.len() > 1, "a region overlaps another one");
    master.context().assignment.wait_while_opening(regions).await;
    submit_and_wait(master, Work::MergeRegions { parents: regions.to_vec(), forcible: true, repair: true })
        .await
}

async fn submit_and_wait(master: &Master, work: Work) -> Answer<()> {
    let id = master.submit(work, (0, 0)).await?;
    match master.procedures().wait(id).await.map(|status| status.progress) {
        Some(Progress::Finished(Some(exception))) => Err(exception),
        _ => Ok(()),
    }
}

/// Runs a repair that was requested through `ExecProcedure`.
///
/// # Errors
/// `DoNotRetryIOException` for a repair that does not exist or is not needed.
pub(crate) async fn execute(
    master: &Master,
    request: &ProcedureDescription,
) -> Answer<proto::ExecProcedureResponse> {
    let region = || argument(request, "region");
    let text = match request.instance() {
        "status" => {
            inspection::inspect_regions(master).await;
            status(master)
        }
        "overlaps" => {
            inspection::inspect_regions(master).await;
            lines_or(merge_overlaps(master).await, "no regions of enabled tables overlap")
        }
        "holes" => lines_or(fill_holes(master).await?, "no table has a hole"),
        "region" => accept_loss(master, region()?).await?,
        "adopt" => adopt_region(master, region()?).await?,
        other => return Err(JavaException::do_not_retry(format!("there is no repair named {other:?}"))),
    };
    let return_data = Some(text.into_bytes().into());
    Ok(proto::ExecProcedureResponse { expected_timeout: Some(EXPECTED_TIMEOUT_MS), return_data })
}

fn argument<'a>(request: &'a ProcedureDescription, name: &str) -> Answer<&'a str> {
    let found = request.configuration.iter().find(|pair| pair.name == name);
    let value = found.map(|pair| &*pair.value);
    value.ok_or_else(|| JavaException::do_not_retry(format!("the repair lacks its argument {name:?}")))
}

fn lines_or(lines: Vec<String>, none: &str) -> String {
    if lines.is_empty() { none.to_string() } else { lines.join("\n") }
}

/// All faults of regions with their remedies, one per line.
fn status(master: &Master) -> String {
    let context = master.context();
    let mut lines: Vec<String> = context
        .assignment
        .failures()
        .iter()
        .map(|(region, failure)| {
            let (table, encoded) = (&region.table, region.encoded_name());
            let (range, reason) = (format_range(&region.range()), &failure.reason);
            format!("table {table}: region {encoded} {range} cannot be opened: {reason}")
        })
        .collect();
    lines.extend(context.integrity.faults().iter().map(|fault| format!("{fault}: {}", fault.remedy())));
    lines
        .extend(context.integrity.refused().iter().map(|edit| format!("refused edit of hbase:meta: {edit}")));
    lines_or(lines, "no faults")
}

/// Creates an empty region in each hole. Returns one line per hole.
async fn fill_holes(master: &Master) -> Answer<Vec<String>> {
    inspection::inspect_regions(master).await;
    let mut lines = Vec::new();
    for fault in master.context().integrity.faults() {
        let Fault::Hole(table, range) = &fault else { continue };
        let newest = master.context().assignment.regions_in_meta(table);
        let newest = newest.iter().map(|region| region.region_id).max().unwrap_or(0);
        let id = master.context().env.clock.now_ms().max(newest + 1);
        let region = RegionInfo::new(table.clone(), range.start.clone(), range.end.clone(), id);
        submit_and_wait(master, Work::CreateRegion(region.clone())).await?;
        lines.push(format!("{fault}: created the empty region {}", region.encoded_name()));
    }
    inspection::inspect_regions(master).await;
    Ok(lines)
}

/// Opens a region without its lost data. If the directory of the region is missing, it gets an
/// empty one. Damaged or missing store files are left out.
async fn accept_loss(master: &Master, encoded: &str) -> Answer<String> {
    let context = master.context();
    let found = context.assignment.find(encoded);
    let (region, state) = found.ok_or_else(|| crate::refusal::unknown_region(encoded.as_bytes()))?;
    if let RegionState::Open(_) | RegionState::Split = state {
        return Err(JavaException::do_not_retry(format!("region {encoded} is {state}: it needs no repair")));
    }
    let (root, fs) = (context.tables.root(), context.tables.fs());
    let what = match root.region_dir_state(fs, &region).await.map_err(file_exception)? {
        RegionDir::Archiving => {
            let message = format!("region {encoded} is being deleted; repeat the deletion of its table");
            return Err(JavaException::do_not_retry(message));
        }
        RegionDir::Missing => "has an empty directory; the rows of its files are lost".to_string(),
        RegionDir::Described | RegionDir::Undescribed => {
            let files = lost_files(context, &region).await?;
            format!("is opened without these files, whose rows are lost: {files}")
        }
    };
    let created = submit_and_wait(master, Work::CreateRegion(region.clone())).await;
    // A periodic retry may already have opened the region.
    if !matches!(context.assignment.state(&region), Some(RegionState::Open(_))) {
        created?;
    }
    inspection::inspect_regions(master).await;
    let range = format_range(&region.range());
    info!(table = %region.table, region = encoded, what, "a loss was accepted by an operator");
    Ok(format!("table {}: region {encoded} {range} {what}", region.table))
}

/// Moves the damaged files of a region to `corrupt/`. Returns the names of the lost files.
async fn lost_files(context: &Context, region: &RegionInfo) -> Answer<String> {
    let table = context.tables.descriptor(&region.table);
    let table = table.ok_or_else(|| crate::refusal::table_not_found(&region.table))?;
    let (root, fs) = (context.tables.root(), context.tables.fs());
    let lost = engine::salvage::accept_loss(fs, root, region, &table).await;
    let lost = lost.map_err(|error| JavaException::io(error.to_string()))?;
    let names: Vec<String> = lost.iter().map(ToString::to_string).collect();
    Ok(if names.is_empty() { "none".into() } else { names.join(", ") })
}

/// Adds a region whose directory is not in `hbase:meta`.
async fn adopt_region(master: &Master, encoded: &str) -> Answer<String> {
    inspection::inspect_regions(master).await;
    let faults = master.context().integrity.faults();
    let table = faults.iter().find_map(|fault| match fault {
        Fault::UnknownDirectory(table, dir, _) if dir == encoded => Some(table.clone()),
        _ => None,
    });
    let unknown = || JavaException::do_not_retry(format!("no directory {encoded} is unknown to hbase:meta"));
    let region = read_info(master, &table.ok_or_else(unknown)?, encoded).await?;
    submit_and_wait(master, Work::CreateRegion(region.clone())).await?;
    inspection::inspect_regions(master).await;
    let range = format_range(&region.range());
    Ok(format!("table {}: region {encoded} {range} was added to hbase:meta", region.table))
}

async fn read_info(master: &Master, table: &TableName, encoded: &str) -> Answer<RegionInfo> {
    let tables = &master.context().tables;
    let info = tables.root().read_region_info(tables.fs(), table, encoded).await.map_err(file_exception)?;
    let lacks = || JavaException::do_not_retry(format!("the directory of {encoded} lacks its .regioninfo"));
    info.ok_or_else(lacks)
}
