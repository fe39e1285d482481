//! `grampus diff`: compares all cells of two tables, which may be in different clusters of Grampus
//! or HBase.
//!
//! * `table_pair`: compares two tables, several ranges at the same time; `grampus migrate verify`
//!   uses it too;
//! * `range`: the row ranges that are compared independently;
//! * `comparison`: compares the cells of one range;
//! * `progress`: the bar while they are compared;
//! * `report`: prints the differences.

pub(crate) mod comparison;
mod progress;
pub(crate) mod range;
mod report;
pub(crate) mod table_pair;

use base::env::Env;
use bytes::Bytes;
use cell::query::{FamilyColumns, Scan, TimeRange};
use cell::schema::{TableDescriptor, TableName};
use clap::Args;
use client::{Client, ClientOptions, ClusterKey};

use crate::shell::text::from_binary;
use comparison::Retained;
use table_pair::{Side, TablePair};

/// Options of `grampus diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArguments {
    /// The table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// The table to compare it with [default: the same name, in the other cluster]
    #[arg(value_name = "OTHER_TABLE")]
    pub other_table: Option<String>,
    /// ZooKeeper servers of the other cluster, in the form of --zookeeper [default: the same
    /// cluster]
    #[arg(long, value_name = "HOST:PORT")]
    pub other: Option<ClusterKey>,
    /// Compare only these families, separated by commas
    #[arg(long, value_name = "FAMILY,...", value_delimiter = ',')]
    pub families: Vec<String>,
    /// Number of versions of each column to compare [default: all that the families keep]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub versions: Option<u32>,
    /// Also compare delete markers, and the cells that they hide until a major compaction
    #[arg(long)]
    pub raw: bool,
    /// First row, in the form of the shell: \xHH stands for a byte
    #[arg(long, value_name = "ROW")]
    pub start_row: Option<String>,
    /// First row that is not compared
    #[arg(long, value_name = "ROW")]
    pub stop_row: Option<String>,
    /// Smallest timestamp
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub start_time: i64,
    /// First timestamp that is not compared, for example to leave out rows that are being written
    #[arg(long, value_name = "MS", default_value_t = i64::MAX)]
    pub end_time: i64,
    /// Number of differing cells to print; all are counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub show: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Add N to the ZooKeeper port of --zookeeper, for a server that was started with the same
    /// option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

/// Compares the tables, and prints the differences. Returns whether the tables are equal.
///
/// # Errors
/// A one-line message.
pub async fn diff(env: Env, arguments: &DiffArguments) -> Result<bool, String> {
    let sides = sides(&env, arguments)?;
    let scan = scan(arguments, families(arguments, &sides).await?);
    let pair = TablePair(sides);
    let compared = pair.compare(&scan, Retained { cells: arguments.show, row_bytes: 0 }).await?;
    let names = pair.0.map(|side| side.name);
    match arguments.json {
        true => println!("{}", report::json(&compared, &names)),
        false => print!("{}", report::text(&compared, &names)),
    }
    Ok(compared.is_equal())
}

fn sides(env: &Env, arguments: &DiffArguments) -> Result<[Side; 2], String> {
    let parsed = |name: &str| TableName::parse(name).map_err(|error| error.to_string());
    let table = parsed(&arguments.table)?;
    let other_table = arguments.other_table.as_deref().map_or(Ok(table.clone()), parsed)?;
    let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset)?;
    let other = arguments.other.clone().unwrap_or_else(|| cluster.clone());
    let is_same_cluster = other == cluster;
    if is_same_cluster && table == other_table {
        return Err(format!("{table} cannot be compared with itself: name another table, or use --other"));
    }
    let side = |cluster: &ClusterKey, table: TableName| Side {
        client: Client::new(env.clone(), cluster.registry(), ClientOptions::default()),
        name: match is_same_cluster {
            true => table.to_string(),
            false => format!("{table} at {cluster}"),
        },
        table,
    };
    Ok([side(&cluster, table), side(&other, other_table)])
}

/// The families to compare; empty for all.
///
/// # Errors
/// If a table does not exist, or one has a family that the other one has not.
async fn families(arguments: &DiffArguments, sides: &[Side; 2]) -> Result<Vec<Bytes>, String> {
    let mut descriptors: Vec<TableDescriptor> = Vec::new();
    for side in sides {
        let described = side.client.admin().describe(&side.table).await;
        descriptors.push(described.map_err(|error| side.failed(&error))?);
    }
    let mut chosen: Vec<Bytes> =
        arguments.families.iter().map(|name| from_binary(name.as_bytes()).into()).collect();
    chosen.sort();
    chosen.dedup();
    for (at, side) in sides.iter().enumerate() {
        let of_other: Vec<Bytes> = descriptors[1 - at].families.keys().cloned().collect();
        let needed = if chosen.is_empty() { &of_other } else { &chosen };
        if let Some(missing) = needed.iter().find(|name| !descriptors[at].families.contains_key(*name)) {
            let hint = if chosen.is_empty() { ": choose common ones with --families" } else { "" };
            return Err(format!("{} has no family {}{hint}", side.name, missing.escape_ascii()));
        }
    }
    Ok(chosen)
}

/// The scan of each side.
fn scan(arguments: &DiffArguments, families: Vec<Bytes>) -> Scan {
    let row = |text: &Option<String>| {
        text.as_ref().map_or(Bytes::new(), |text| from_binary(text.as_bytes()).into())
    };
    let time_range = TimeRange { from: arguments.start_time, to: arguments.end_time };
    let mut scan = Scan {
        start_row: row(&arguments.start_row),
        stop_row: row(&arguments.stop_row),
        ..table_pair::scan_of_all(time_range, arguments.raw)
    };
    scan.selection.columns =
        families.into_iter().map(|family| FamilyColumns { family, qualifiers: None }).collect();
    scan.selection.max_versions = arguments.versions.unwrap_or(scan.selection.max_versions);
    scan
}
