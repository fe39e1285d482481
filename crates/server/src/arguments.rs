//! The command line of the binary `grampus`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A wide-column database that is compatible with Apache HBase
///
/// Without a command, grampus starts the server. Master and region server run in one process, store
/// data in ./grampus-data, and listen on the loopback interface only.
#[derive(Debug, Parser)]
#[command(name = "grampus", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the server that is started if no subcommand is given.
    #[command(flatten)]
    pub server: ServerArguments,
}

/// A subcommand.
// A process has only one value of this type, so its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server: master and region server in this process (default)
    Start(ServerArguments),
    /// Start a master of a cluster; several may run, and one of them is active
    Master(ServerArguments),
    /// Start a region server of a cluster
    #[command(name = "regionserver")]
    RegionServer(ServerArguments),
    /// Start an interactive shell with the commands of HBase's shell
    Shell(cli::ShellArguments),
    /// Run SQL queries or serve PostgreSQL clients (requires grampus-sql, a separate build)
    Sql(cli::SqlArguments),
    /// Benchmark a Grampus or HBase server
    Bench(cli::BenchArguments),
    /// Monitor tables, regions, servers and users (like `hbase hbtop`)
    Top(cli::TopArguments),
    /// Show the storage tiers of a running server: space, health, queue and speed of each volume
    Tiers(cli::TiersArguments),
    /// Load HFiles from a directory into a table (like `hbase completebulkload`)
    #[command(name = "load-hfiles")]
    LoadHfiles(cli::LoadHfilesArguments),
    /// Probe every region, region server or ZooKeeper server and report failures (like `hbase
    /// canary`)
    Canary(cli::CanaryArguments),
    /// Check whether the server with this configuration is serving (exit status 0 if it is)
    Health(ServerArguments),
    /// Find and repair faults in regions, hbase:meta and the master's own region
    #[command(subcommand)]
    Repair(Repair),
    /// Print cells, file info, index and statistics of HFiles (like `hbase hfile`)
    #[command(name = "hfile")]
    HFile(HFileArguments),
    /// Print the edits of a log (like `hbase wal`)
    Wal(WalArguments),
    /// Wait for the end of another process of this machine, and report it to ZooKeeper
    #[command(name = "exit-reporter", hide = true)]
    ExitReporter(ExitReporterArguments),
    /// Print the version
    Version,
}

/// A subcommand of `repair`.
// A process has only one value of this type, so its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
pub enum Repair {
    /// List unopenable regions, holes, overlaps, and directories that disagree with hbase:meta
    Status(cli::RepairTarget),
    /// Merge overlapping regions of enabled tables
    Overlaps(cli::RepairTarget),
    /// Create empty regions for rows that no region covers
    Holes(cli::RepairTarget),
    /// Accept the loss of a region whose directory is missing: recreate it empty
    Region(cli::RegionRepair),
    /// Add a missing row to hbase:meta, for a region that has a directory
    Adopt(cli::RegionRepair),
    /// Rebuild hbase:meta from the region directories; the server must be stopped
    Meta(ServerArguments),
    /// Replace a damaged master region (master:store) with an empty one; the server must be stopped
    Master(ServerArguments),
}

/// Options of `grampus hfile`: those of HBase's `HFilePrettyPrinter`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct HFileArguments {
    /// Print the names of the files
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// Print the key of each cell
    #[arg(short = 'e', long = "printkey")]
    pub keys: bool,
    /// Print key, value and tags of each cell
    #[arg(short = 'p', long = "printkv")]
    pub values: bool,
    /// Print trailer, file info and Bloom filters
    #[arg(short = 'm', long = "printmeta")]
    pub metadata: bool,
    /// Print the root of the block index
    #[arg(short = 'b', long = "printblocks")]
    pub index: bool,
    /// Print the header of each block
    #[arg(short = 'h', long = "printblockheaders")]
    pub block_headers: bool,
    /// Print statistics of keys, values and rows
    #[arg(short = 's', long = "stats")]
    pub statistics: bool,
    /// Print statistics with the number of values by range
    #[arg(short = 'd', long = "details")]
    pub ranges: bool,
    /// Warn about rows that are out of order
    #[arg(short = 'k', long = "checkrow")]
    pub checks_rows: bool,
    /// Warn about cells of a family that is not in the path of the file
    #[arg(short = 'a', long = "checkfamily")]
    pub checks_family: bool,
    /// Print only the cells of this row; \xHH is a byte
    #[arg(short = 'w', long = "seekToRow", value_name = "ROW")]
    pub row: Option<String>,
    /// A file; the same as an argument without -f
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub file: Option<String>,
    /// Files to print: paths or file: URIs
    #[arg(value_name = "FILE", required_unless_present = "file")]
    pub files: Vec<String>,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

/// Options of `grampus wal`: those of HBase's `WALPrettyPrinter`.
#[derive(Debug, Args)]
pub struct WalArguments {
    /// Print JSON
    #[arg(short = 'j', long)]
    pub json: bool,
    /// Print values
    #[arg(short = 'p', long = "printvals")]
    pub values: bool,
    /// Print only the row of each cell
    #[arg(short = 'k', long = "outputOnlyRowKey")]
    pub rows_only: bool,
    /// Print only edits of these tables
    #[arg(short = 't', long, value_name = "TABLE,...", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Print only edits of the region with this encoded name
    #[arg(short = 'r', long, value_name = "REGION")]
    pub region: Option<String>,
    /// Print only edits with this sequence id
    #[arg(short = 's', long = "sequence", value_name = "ID")]
    pub sequence: Option<u64>,
    /// Print only cells of this row; \xHH is a byte
    #[arg(short = 'w', long, value_name = "ROW")]
    pub row: Option<String>,
    /// Print only cells of rows with this prefix; \xHH is a byte
    #[arg(short = 'f', long = "rowPrefix", value_name = "PREFIX")]
    pub row_prefix: Option<String>,
    /// Begin at the first edit at or after this offset
    #[arg(short = 'g', long = "goto", value_name = "OFFSET")]
    pub offset: Option<u64>,
    /// Logs to print: paths or file: URIs
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
}

/// The process that an exit reporter waits for. The process itself starts its exit reporter.
#[derive(Debug, Args)]
pub struct ExitReporterArguments {
    /// Process id of the parent
    #[arg(long, value_name = "PID")]
    pub process: i32,
    /// Its name in ZooKeeper: host,port,startcode
    #[arg(long, value_name = "NAME")]
    pub server: String,
    /// ZooKeeper servers: host:port,...
    #[arg(long, value_name = "QUORUM")]
    pub zookeeper: String,
    /// Parent of the cluster's znodes
    #[arg(long, value_name = "PATH")]
    pub znode: String,
    /// Session timeout in milliseconds; after this time, a report is useless
    #[arg(long, value_name = "MS")]
    pub session_ms: u64,
}

/// Options that select and configure a server.
#[derive(Debug, Default, Args)]
pub struct ServerArguments {
    /// Data directory [default: ./grampus-data]
    #[arg(long, value_name = "DIR", env = "GRAMPUS_DATA")]
    pub data: Option<PathBuf>,
    /// Directory that contains hbase-site.xml; its keys have the same meaning as in HBase
    #[arg(long, value_name = "DIR", env = "HBASE_CONF_DIR")]
    pub config: Option<PathBuf>,
    /// Set a configuration option; may be repeated (docs/config.md lists all options)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Add N to every port, so that several servers can run on one machine
    #[arg(long, value_name = "N")]
    pub port_offset: Option<u16>,
    /// Address to listen on, for all ports [default: 127.0.0.1]
    ///
    /// The server performs no authentication. Bind to other addresses only on a trusted network.
    #[arg(long, value_name = "ADDRESS", env = "GRAMPUS_BIND")]
    pub bind: Option<IpAddr>,
    /// Host name or address that the server advertises to clients
    #[arg(long, value_name = "HOST", env = "GRAMPUS_HOST")]
    pub host: Option<String>,
}
