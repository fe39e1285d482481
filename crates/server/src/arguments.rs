//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Serves Apache HBase's clients from Apache HBase's files.
///
/// Without a command: start. Master and region server run in this process; data in ./grampus-data; loopback only.
#[derive(Debug, Parser)]
#[command(name = "grampus", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to start, if no command is given.
    #[command(flatten)]
    pub start: StartArguments,
}

/// What to do.
// There is one of it in a process.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server (the default)
    Start(StartArguments),
    /// HBase's shell: the first commands of it
    Shell(cli::ShellArguments),
    /// SQL over the cluster's tables, and a port for PostgreSQL's clients: runs grampus-sql, which is built apart
    Sql(cli::SqlArguments),
    /// Put load on a server and measure it; HBase itself, if you like
    Bench(cli::BenchArguments),
    /// Fill a table with records of many attributes and add them up, in several ways
    Records(cli::RecordsArguments),
    /// Watch what a cluster's tables, regions, servers and users do: HBase's hbtop
    Top(cli::TopArguments),
    /// Ask all regions, servers or ZooKeepers of a cluster, and say which do not answer: HBase's canary
    Canary(cli::CanaryArguments),
    /// Ask the server of this configuration whether it serves; status 0 if it does
    Health(StartArguments),
    /// Find and repair faults of regions, of hbase:meta and of the master's own region
    #[command(subcommand)]
    Repair(Repair),
    /// Print the version
    Version,
}

/// What to repair.
// There is one of it in a process.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
pub enum Repair {
    /// List regions that cannot be opened, holes, overlaps, and directories that hbase:meta disagrees with
    Status(cli::RepairTarget),
    /// Merge regions of enabled tables that overlap
    Overlaps(cli::RepairTarget),
    /// Create empty regions for rows that no region covers
    Holes(cli::RepairTarget),
    /// Accept the loss of a region whose directory is missing: create it empty
    Region(cli::RegionRepair),
    /// Add a region to hbase:meta that has a directory and is unknown there
    Adopt(cli::RegionRepair),
    /// Rebuild hbase:meta from the directories of regions; the server must be stopped
    Meta(StartArguments),
    /// Replace a damaged region of the master (master:store) by an empty one; the server must be stopped
    Master(StartArguments),
}

/// How to start.
#[derive(Debug, Default, Args)]
pub struct StartArguments {
    /// Directory of all data [default: ./grampus-data]
    #[arg(long, value_name = "DIR", env = "GRAMPUS_DATA")]
    pub data: Option<PathBuf>,
    /// Directory with an hbase-site.xml; HBase's keys mean what HBase means by them
    #[arg(long, value_name = "DIR", env = "HBASE_CONF_DIR")]
    pub config: Option<PathBuf>,
    /// Set an option (docs/config.md lists them); may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Add N to every port, so that several servers run side by side
    #[arg(long, value_name = "N")]
    pub port_offset: Option<u16>,
    /// Address to listen on, for all ports [default: 127.0.0.1]. Nobody is asked for a password
    #[arg(long, value_name = "ADDRESS", env = "GRAMPUS_BIND")]
    pub bind: Option<IpAddr>,
    /// Host name or address that clients are told to connect to
    #[arg(long, value_name = "HOST", env = "GRAMPUS_HOST")]
    pub host: Option<String>,
}
