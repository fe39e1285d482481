//! `grampus migrate verify`: compares all cells of both clusters.

use std::time::Duration;

use base::env::Env;
use cell::query::TimeRange;
use cell::schema::TableName;
use client::Client;

use super::VerifyArguments;
use super::clusters::Clusters;
use crate::diff::comparison::Retained;
use crate::diff::table_pair::{self, Side, TablePair};
use crate::shell::text::binary;

/// Bytes of the keys of differing rows of a table. If there are more, no row is compared again.
/// Each range that is being compared retains as many.
const ROW_BYTES: usize = 4 << 20;
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
    let pair = pair(clusters, table);
    let time_range = TimeRange { from: 0, to: arguments.end_time };
    let scan = table_pair::scan_of_all(time_range, arguments.raw);
    let mut found = pair.compare(&scan, Retained { cells: 0, row_bytes: ROW_BYTES }).await?;
    if found.is_equal() {
        println!("{table}: equal, {} rows, {} cells", found.rows, found.cells[0]);
        return Ok(true);
    }
    let mut rows = std::mem::take(&mut found.row_keys);
    if (rows.len() as u64) < found.differing_rows {
        println!(
            "{table}: {} of {} rows differ; they are too many to be compared again",
            found.differing_rows, found.rows
        );
        return Ok(false);
    }
    for _ in 0..arguments.rechecks {
        env.clock.sleep(Duration::from_secs(u64::from(arguments.pause))).await;
        rows = pair.differing(rows, &scan).await?;
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
    let raw = if arguments.raw { " --raw" } else { "" };
    println!(
        "  show them with: grampus diff {table} --zookeeper {} --other {}{raw}",
        clusters.from, clusters.to
    );
    Ok(false)
}

fn pair(clusters: &Clusters, table: &TableName) -> TablePair {
    let side = |client: &Client, name: String| Side { client: client.clone(), table: table.clone(), name };
    TablePair([
        side(&clusters.source, format!("{table} in HBase at {}", clusters.from)),
        side(&clusters.target, format!("{table} in Grampus at {}", clusters.to)),
    ])
}
