//! `grampus migrate`: moves tables from a running HBase to a running Grampus while clients write.
//!
//! * `clusters`: the clients of both clusters;
//! * `record`: the file that makes the steps resumable;
//! * `plan`, `check`: what a table needs, and what prevents its migration;
//! * `start`: tables, replication scopes and the peer;
//! * `copy`, `cells`, `rate_limit`, `snapshot`: the initial copy;
//! * `lag`, `status`: what the source has not sent yet;
//! * `verify`: the comparison;
//! * `queues`, `writes`, `switch`: the change-over, and its reversal.
//!
//! Order of the steps. The peer is added before the copy begins, so every edit that a scan of the
//! copy misses is in the peer's queues. It is added disabled, and enabled when the copy has ended:
//! if a client overwrites a cell with the same timestamp, the last write wins, so no copied cell
//! may arrive after a replicated one. The peer is serial by default, because after a crash HBase
//! sends the edits of the dead server at the same time as newer ones.

mod cells;
mod check;
mod clusters;
mod copy;
mod lag;
mod plan;
mod queues;
mod rate_limit;
mod record;
mod snapshot;
mod start;
mod status;
mod switch;
mod verify;
mod writes;

use std::path::PathBuf;

use base::env::Env;
use clap::{Args, Subcommand};
use client::ClusterKey;

use clusters::Clusters;
use record::Record;
use snapshot::TableSnapshot;

/// A step of `grampus migrate`.
#[derive(Debug, Clone, Subcommand)]
pub enum MigrateStep {
    /// Show what each table needs, its size, and what prevents its migration; change nothing
    Check(CheckArguments),
    /// Create the tables in Grampus, and let HBase collect all further edits for Grampus
    Start(StartArguments),
    /// Copy the cells that the tables have; then let HBase send the collected edits. Can be
    /// interrupted and repeated
    Copy(CopyArguments),
    /// Show what HBase has not sent yet, and estimate when it has
    Status(StatusArguments),
    /// Compare all cells of both clusters (exit status 0 if they are equal, 1 if not, 2 on failure)
    Verify(VerifyArguments),
    /// Disable the tables of HBase, wait until Grampus has all edits, enable the tables read only,
    /// and remove the peer
    Switch(SwitchArguments),
    /// Give up: remove the peer, and restore the attributes of the tables in HBase. The tables in
    /// Grampus remain
    Abort(AbortArguments),
}

/// Options of all steps.
#[derive(Debug, Clone, Args)]
pub struct MigrationArguments {
    /// File that records the progress. Later steps read the clusters and tables from it
    #[arg(long, value_name = "FILE", default_value = "grampus-migration.json")]
    pub state: PathBuf,
}

/// The two clusters.
#[derive(Debug, Clone, Args)]
pub struct ClusterArguments {
    /// ZooKeeper servers of HBase, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT")]
    pub from: ClusterKey,
    /// ZooKeeper servers of Grampus, in the same form. HBase's servers must be able to reach them
    #[arg(long, value_name = "HOST:PORT")]
    pub to: ClusterKey,
    /// Name of the replication peer in HBase
    #[arg(long, value_name = "ID", default_value = "grampus_migration")]
    pub peer: String,
}

/// Options of `grampus migrate check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArguments {
    #[command(flatten)]
    pub(crate) clusters: ClusterArguments,
    /// The tables [default: all tables of users]
    #[arg(value_name = "TABLE")]
    pub(crate) tables: Vec<String>,
}

/// Options of `grampus migrate start`.
#[derive(Debug, Clone, Args)]
pub struct StartArguments {
    #[command(flatten)]
    pub(crate) migration: MigrationArguments,
    #[command(flatten)]
    pub(crate) clusters: ClusterArguments,
    /// The tables [default: all tables of users]
    #[arg(value_name = "TABLE")]
    pub(crate) tables: Vec<String>,
    /// Let HBase send the edits of a region out of order after a crash or a move. It then needs no
    /// positions of regions, but an older value may replace a newer one with the same timestamp
    #[arg(long)]
    pub(crate) no_serial: bool,
    /// Bytes per second that each server of HBase sends at most; 0 for no limit
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) bandwidth: u32,
}

/// Options of `grampus migrate copy`.
#[derive(Debug, Clone, Args)]
pub struct CopyArguments {
    #[command(flatten)]
    pub(crate) migration: MigrationArguments,
    /// Restore a table to a snapshot that was exported to Grampus, instead of scanning it. The
    /// snapshot must have been taken after `start`. Can be repeated
    #[arg(long, value_name = "TABLE=SNAPSHOT")]
    pub(crate) snapshot: Vec<TableSnapshot>,
    /// Number of regions that are copied at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) parallel: u16,
    /// Bytes per second that are copied at most [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
}

/// Options of `grampus migrate status`.
#[derive(Debug, Clone, Args)]
pub struct StatusArguments {
    #[command(flatten)]
    pub(crate) migration: MigrationArguments,
    /// Repeat until HBase has caught up
    #[arg(long)]
    pub(crate) watch: bool,
    /// Seconds between two samples. HBase's servers report every three seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) interval: u32,
}

/// Options of `grampus migrate verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyArguments {
    #[command(flatten)]
    pub(crate) migration: MigrationArguments,
    /// Compare only cells with smaller timestamps
    #[arg(long, value_name = "MS", default_value_t = i64::MAX)]
    pub(crate) end_time: i64,
    /// Also compare delete markers, and the cells that they hide until a major compaction
    #[arg(long)]
    pub(crate) raw: bool,
    /// How often rows that differ are compared again, because an edit may be on its way
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rechecks: u32,
    /// Seconds before each of these comparisons
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    pub(crate) pause: u32,
}

/// Options of `grampus migrate switch`.
#[derive(Debug, Clone, Args)]
pub struct SwitchArguments {
    #[command(flatten)]
    pub(crate) migration: MigrationArguments,
    /// Make the tables of HBase writable again after an interrupted switch. Refused once a switch
    /// has reported that Grampus has all edits
    #[arg(long)]
    pub(crate) abort: bool,
    /// Do not disable the tables of HBase: the writers were stopped in another way
    #[arg(long)]
    pub(crate) writers_stopped: bool,
    /// Do not begin if HBase needs longer to send the edits that it has now
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) max_lag: u32,
    /// Time, once the tables are disabled, for sending the last edits to Grampus. If it is
    /// exceeded, the tables of HBase become writable again
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u32,
}

/// Options of `grampus migrate abort`.
#[derive(Debug, Clone, Args)]
pub struct AbortArguments {
    #[command(flatten)]
    pub(crate) migration: MigrationArguments,
}

/// Performs a step. Returns whether the clusters are equal, for the step that compares them.
///
/// # Errors
/// A message of one line: what failed, and how to continue.
pub async fn migrate(env: Env, step: &MigrateStep) -> Result<bool, String> {
    match step {
        MigrateStep::Check(arguments) => check::check(&env, arguments).await?,
        MigrateStep::Start(arguments) => start::start(&env, arguments).await?,
        MigrateStep::Copy(arguments) => copy::copy(&env, arguments).await?,
        MigrateStep::Status(arguments) => status::status(&env, arguments).await?,
        MigrateStep::Verify(arguments) => return verify::verify(&env, arguments).await,
        MigrateStep::Switch(arguments) if arguments.abort => switch::abort(&env, arguments).await?,
        MigrateStep::Switch(arguments) => switch::switch(&env, arguments).await?,
        MigrateStep::Abort(arguments) => start::abort(&env, arguments).await?,
    }
    Ok(true)
}

/// The record of the migration, and the clients of its clusters.
fn resume(env: &Env, migration: &MigrationArguments) -> Result<(Record, Clusters), String> {
    let record = Record::load(&migration.state)?;
    let parsed = |key: &str| {
        key.parse::<ClusterKey>().map_err(|error| format!("{}: {error}", migration.state.display()))
    };
    let clusters = Clusters::new(env, &parsed(&record.from)?, &parsed(&record.to)?);
    Ok((record, clusters))
}
