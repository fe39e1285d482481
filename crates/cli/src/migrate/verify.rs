//! `grampus migrate verify`: compares all cells of both clusters.

use std::collections::BTreeSet;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::query::{CellSelection, Scan, TimeRange};
use cell::schema::TableName;
use client::ScanOptions;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::VerifyArguments;
use super::clusters::Clusters;
use crate::diff::comparison::{self, Comparison, TableCells};
use crate::diff::progress::Progress;
use crate::diff::range;
use crate::shell::text::binary;

/// Number of ranges that are compared at the same time.
const RANGES_AT_ONCE: usize = 8;
/// Maximum number of cells in one result of a scan, so that a large row does not fill the memory.
const BATCH_CELLS: u32 = 1000;
/// Maximum number of differing cells of a table whose rows are compared again.
const DIFFERENCES_MAX: usize = 10_000;
/// Number of differing rows that are printed for each table.
const ROWS_SHOWN: usize = 10;

/// Compares all tables. Returns whether they are equal.
///
/// # Errors
/// A cluster's error.
pub(super) async fn verify(env: &Env, arguments: &VerifyArguments) -> Result<bool, String> {
    let (record, clusters) = super::resume(env, &arguments.migration)?;
    let mut is_equal = true;
    for table in record.tables.keys() {
        is_equal &= verify_table(env, &clusters, table, arguments).await?;
    }
    match is_equal {
        true => println!("all tables are equal. Next: grampus migrate switch, if it was not done"),
        false => println!(
            "there are differences. Rows that clients write now may differ until HBase has sent them"
        ),
    }
    Ok(is_equal)
}

async fn verify_table(
    env: &Env,
    clusters: &Clusters,
    table: &TableName,
    arguments: &VerifyArguments,
) -> Result<bool, String> {
    let found = compare_all(clusters, table, arguments).await?;
    if found.is_equal() {
        println!("{table}: equal, {} rows, {} cells", found.rows, found.cells[0]);
        return Ok(true);
    }
    let mut rows: BTreeSet<Bytes> = found
        .differences
        .iter()
        .map(|difference| Bytes::copy_from_slice(difference.cell.view(0).row()))
        .collect();
    if (rows.len() as u64) < found.differing_rows {
        println!("{table}: {} of {} rows differ", found.differing_rows, found.rows);
        return Ok(false);
    }
    for _ in 0..arguments.rechecks {
        env.clock.sleep(Duration::from_secs(u64::from(arguments.pause))).await;
        rows = still_differing(clusters, table, rows, arguments).await?;
        if rows.is_empty() {
            let late = found.differing_rows;
            println!(
                "{table}: equal, {} rows, {} cells; {late} rows were equal later",
                found.rows, found.cells[0]
            );
            return Ok(true);
        }
    }
    let shown: Vec<String> = rows.iter().take(ROWS_SHOWN).map(|row| binary(row)).collect();
    let more = if rows.len() > ROWS_SHOWN { ", ..." } else { "" };
    println!("{table}: {} of {} rows differ: {}{more}", rows.len(), found.rows, shown.join(", "));
    println!(
        "  show them with: grampus diff {table} --zookeeper {} --other {}",
        clusters.from, clusters.to
    );
    Ok(false)
}

async fn compare_all(
    clusters: &Clusters,
    table: &TableName,
    arguments: &VerifyArguments,
) -> Result<Comparison, String> {
    let [source, target] = [&clusters.source, &clusters.target].map(|client| client.admin());
    let of_source = source.regions(table).await.map_err(|error| clusters.at_source(&error))?;
    let of_target = target.regions(table).await.map_err(|error| clusters.at_target(&error))?;
    let starts = of_source.into_iter().chain(of_target).map(|region| region.start_key).collect();
    let ranges = range::ranges(starts, &Bytes::new(), &Bytes::new());
    let progress = Progress::new(ranges.len() as u64);
    let compared = stream::iter(ranges)
        .map(|range| compare_range(clusters, table, range, arguments, &progress))
        .buffered(RANGES_AT_ONCE)
        .try_fold(Comparison::new(DIFFERENCES_MAX), async |all, one| Ok(all.followed_by(one)))
        .await;
    progress.clear();
    compared
}

async fn compare_range(
    clusters: &Clusters,
    table: &TableName,
    range: range::RowRange,
    arguments: &VerifyArguments,
    progress: &Progress,
) -> Result<Comparison, String> {
    let scan = Scan { start_row: range.start, stop_row: range.stop, ..scan(arguments) };
    let compared = compare(clusters, table, scan, |rows| progress.add_rows(rows)).await;
    progress.end_range();
    compared
}

/// Those of the rows that still differ.
async fn still_differing(
    clusters: &Clusters,
    table: &TableName,
    rows: BTreeSet<Bytes>,
    arguments: &VerifyArguments,
) -> Result<BTreeSet<Bytes>, String> {
    let is_equal = |row: Bytes| async move {
        let (start_row, stop_row) = (row.clone(), row.clone());
        let scan = Scan { start_row, stop_row, include_stop_row: true, ..scan(arguments) };
        let compared = compare(clusters, table, scan, |_| {}).await?;
        Ok::<_, String>((row, compared.is_equal()))
    };
    let compared: Vec<(Bytes, bool)> =
        stream::iter(rows).map(is_equal).buffered(RANGES_AT_ONCE).try_collect().await?;
    Ok(compared.into_iter().filter(|(_, is_equal)| !is_equal).map(|(row, _)| row).collect())
}

async fn compare(
    clusters: &Clusters,
    table: &TableName,
    scan: Scan,
    on_rows: impl Fn(u64),
) -> Result<Comparison, String> {
    let [source, target] = [&clusters.source, &clusters.target].map(|client| {
        TableCells::new(client.table(table.clone()).scan_with(scan.clone(), ScanOptions::default()))
    });
    let compared = comparison::compare(source, target, DIFFERENCES_MAX, on_rows).await;
    compared.map_err(|(side, error)| match side {
        0 => clusters.at_source(&error),
        _ => clusters.at_target(&error),
    })
}

/// The scan of both sides. Blocks that it reads are not cached.
fn scan(arguments: &VerifyArguments) -> Scan {
    Scan {
        batch: BATCH_CELLS,
        raw: arguments.raw,
        selection: CellSelection {
            time_range: TimeRange { from: 0, to: arguments.end_time },
            max_versions: i32::MAX.cast_unsigned(),
            cache_blocks: false,
            ..CellSelection::default()
        },
        ..Scan::default()
    }
}
