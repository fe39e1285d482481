//! Repairs of regions: overlaps are merged at start; the rest an operator asks for by `grampus repair`.
//!
//! The command line calls `ExecProcedure` with the signature [`SIGNATURE`], the repair as the instance and its arguments
//! as the configuration; the answer's `return_data` is text. HBase has no such procedure.

use cell::region::RegionInfo;
use cell::schema::TableName;
use proto::ProcedureDescription;
use tracing::{error, info};
use wire::exception::{Answer, JavaException};
use wire::meta::TableState;

use crate::assignment::RegionState;
use crate::context::Context;
use crate::inspection;
use crate::integrity::{Fault, shown_range};
use crate::master::Master;
use crate::procedure::Work;
use crate::procedure::executor::Progress;
use crate::service::EXPECTED_TIMEOUT_MS;
use crate::tables::failed;

/// The signature of `ExecProcedure` that repairs are called by.
pub const SIGNATURE: &str = "grampus-repair";

/// Merges regions of enabled tables that overlap: earlier versions left such regions when the first and the last region
/// of a table were merged.
pub(crate) async fn overlaps_at_start(master: &Master) {
    for line in overlaps(master).await {
        info!("{line}");
    }
}

/// Merges the regions of enabled tables that overlap; a line for each group.
async fn overlaps(master: &Master) -> Vec<String> {
    let mut lines = Vec::new();
    for fault in master.context().integrity.faults() {
        let Fault::Overlap(table, regions) = &fault else { continue };
        let is_enabled = master.context().tables.state(table) == Some(TableState::Enabled);
        if !is_enabled {
            lines.push(format!("{fault}: not merged, because the table is not enabled"));
            continue;
        }
        info!("{fault}: merging them");
        lines.push(match merge(master, regions).await {
            Ok(()) => format!("{fault}: merged into one region"),
            Err(error) => {
                error!(%error, "overlapping regions cannot be merged: {fault}");
                format!("{fault}: cannot be merged: {error}")
            }
        });
    }
    if !lines.is_empty() {
        inspection::run(master).await;
    }
    lines
}

async fn merge(master: &Master, regions: &[RegionInfo]) -> Answer<()> {
    master.context().assignment.wait_while_opening(regions).await;
    run(master, Work::MergeRegions { parents: regions.to_vec(), forcible: true, repair: true }).await
}

async fn run(master: &Master, work: Work) -> Answer<()> {
    let id = master.submit(work, (0, 0)).await?;
    match master.procedures().wait(id).await.map(|status| status.progress) {
        Some(Progress::Finished(Some(exception))) => Err(exception),
        _ => Ok(()),
    }
}

/// Carries out a repair that is asked for by `ExecProcedure`.
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
            inspection::run(master).await;
            status(master)
        }
        "overlaps" => {
            inspection::run(master).await;
            shown(overlaps(master).await, "no regions of enabled tables overlap")
        }
        "holes" => shown(holes(master).await?, "no table has a hole"),
        "region" => accept_loss(master, region()?).await?,
        "adopt" => adopt(master, region()?).await?,
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

fn shown(lines: Vec<String>, none: &str) -> String {
    if lines.is_empty() { none.to_string() } else { lines.join("\n") }
}

/// Everything that is wrong with regions, a line each, with what can be done about it.
fn status(master: &Master) -> String {
    let context = master.context();
    let mut lines: Vec<String> = context
        .assignment
        .failures()
        .iter()
        .map(|(region, failure)| {
            let (table, encoded) = (&region.table, region.encoded_name());
            let (range, reason) = (shown_range(&region.range()), &failure.reason);
            format!("table {table}: region {encoded} {range} cannot be opened: {reason}")
        })
        .collect();
    lines.extend(context.integrity.faults().iter().map(|fault| format!("{fault}: {}", fault.remedy())));
    lines
        .extend(context.integrity.refused().iter().map(|edit| format!("refused edit of hbase:meta: {edit}")));
    shown(lines, "no faults")
}

/// Creates an empty region for each hole; a line for each.
async fn holes(master: &Master) -> Answer<Vec<String>> {
    inspection::run(master).await;
    let mut lines = Vec::new();
    for fault in master.context().integrity.faults() {
        let Fault::Hole(table, range) = &fault else { continue };
        let newest = master.context().assignment.rows_of(table);
        let newest = newest.iter().map(|region| region.region_id).max().unwrap_or(0);
        let id = master.context().env.clock.now_ms().max(newest + 1);
        let region = RegionInfo::new(table.clone(), range.start.clone(), range.end.clone(), id);
        run(master, Work::CreateRegion(region.clone())).await?;
        lines.push(format!("{fault}: created the empty region {}", region.encoded_name()));
    }
    inspection::run(master).await;
    Ok(lines)
}

/// Opens a region without what it has lost: one whose directory is missing gets an empty one, one with damaged or
/// missing store files is opened without them.
async fn accept_loss(master: &Master, encoded: &str) -> Answer<String> {
    let context = master.context();
    let found = context.assignment.find(encoded);
    let (region, state) = found.ok_or_else(|| crate::refusal::unknown_region(encoded.as_bytes()))?;
    if let RegionState::Open(_) | RegionState::Split = state {
        return Err(JavaException::do_not_retry(format!("region {encoded} is {state}: it needs no repair")));
    }
    let (root, fs) = (context.tables.root(), context.tables.fs());
    let dir = root.region_dir(&region);
    let is_missing = fs.stat(&dir).await.map_err(|error| failed(error.into()))?.is_none();
    let what = match is_missing {
        true => "has an empty directory; the rows of its files are lost".to_string(),
        false => {
            let files = lost_files(context, &region).await?;
            format!("is opened without these files, whose rows are lost: {files}")
        }
    };
    let created = run(master, Work::CreateRegion(region.clone())).await;
    // A retry may have opened it before.
    if !matches!(context.assignment.state(&region), Some(RegionState::Open(_))) {
        created?;
    }
    inspection::run(master).await;
    let range = shown_range(&region.range());
    info!(table = %region.table, region = encoded, what, "a loss was accepted by an operator");
    Ok(format!("table {}: region {encoded} {range} {what}", region.table))
}

/// Sets the damaged files of a region aside; which are lost.
async fn lost_files(context: &Context, region: &RegionInfo) -> Answer<String> {
    let table = context.tables.descriptor(&region.table);
    let table = table.ok_or_else(|| crate::refusal::table_not_found(&region.table))?;
    let (root, fs) = (context.tables.root(), context.tables.fs());
    let lost = engine::salvage::accept_loss(fs, root, region, &table).await;
    let lost = lost.map_err(|error| JavaException::io(error.to_string()))?;
    let names: Vec<String> = lost.iter().map(ToString::to_string).collect();
    Ok(if names.is_empty() { "none".into() } else { names.join(", ") })
}

/// Adds the region of a directory that `hbase:meta` does not know.
async fn adopt(master: &Master, encoded: &str) -> Answer<String> {
    inspection::run(master).await;
    let faults = master.context().integrity.faults();
    let table = faults.iter().find_map(|fault| match fault {
        Fault::UnknownDirectory(table, dir, _) if dir == encoded => Some(table.clone()),
        _ => None,
    });
    let unknown = || JavaException::do_not_retry(format!("no directory {encoded} is unknown to hbase:meta"));
    let region = read_info(master, &table.ok_or_else(unknown)?, encoded).await?;
    run(master, Work::CreateRegion(region.clone())).await?;
    inspection::run(master).await;
    let range = shown_range(&region.range());
    Ok(format!("table {}: region {encoded} {range} was added to hbase:meta", region.table))
}

async fn read_info(master: &Master, table: &TableName, encoded: &str) -> Answer<RegionInfo> {
    let tables = &master.context().tables;
    let info = tables.root().read_region_info(tables.fs(), table, encoded).await.map_err(failed)?;
    let lacks = || JavaException::do_not_retry(format!("the directory of {encoded} lacks its .regioninfo"));
    info.ok_or_else(lacks)
}
