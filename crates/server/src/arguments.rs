//! The command line of the binary `grampus`.

mod migration;
mod printers;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use migration::{AdoptArguments, FsckArguments, PlaceArguments, ReleaseArguments};
pub use printers::{HFileArguments, SnapshotArguments, WalArguments};

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
    ///
    /// All processes of a cluster need the same hbase.zookeeper.quorum, the ZooKeeper servers, and
    /// hbase.rootdir, the data directory (--data). docs/cluster.md describes the setup.
    Master(ServerArguments),
    /// Start a region server of a cluster
    ///
    /// All processes of a cluster need the same hbase.zookeeper.quorum, the ZooKeeper servers, and
    /// hbase.rootdir, the data directory (--data). docs/cluster.md describes the setup.
    #[command(name = "regionserver")]
    RegionServer(ServerArguments),
    /// Start an interactive shell with the commands of HBase's shell
    Shell(cli::ShellArguments),
    /// Run SQL queries or serve PostgreSQL clients (requires grampus-sql, a separate build)
    Sql(cli::SqlArguments),
    /// Write a table's rows to Parquet, Arrow, CSV or JSON files (requires grampus-sql)
    Export(cli::SqlArguments),
    /// Write the rows of Parquet, Arrow, CSV or JSON files to a table (requires grampus-sql)
    Import(cli::SqlArguments),
    /// Benchmark a Grampus or HBase server
    Bench(cli::BenchArguments),
    /// Monitor tables, regions, servers and users (like `hbase hbtop`)
    Top(cli::TopArguments),
    /// Show the storage tiers of a running server: space, health, queue and speed of each volume
    Tiers(cli::TiersArguments),
    /// Load HFiles from a directory into a table (like `hbase completebulkload`)
    #[command(name = "load-hfiles")]
    LoadHfiles(cli::LoadHfilesArguments),
    /// Compare all cells of two tables, also of different clusters (exit status 0 if they are
    /// equal, 1 if not, 2 on failure)
    Diff(cli::DiffArguments),
    /// Move tables from a running HBase to a running Grampus while clients write
    #[command(subcommand)]
    Migrate(cli::MigrateStep),
    /// Probe every region, region server or ZooKeeper server and report failures (like `hbase
    /// canary`)
    Canary(cli::CanaryArguments),
    /// Serve HBase's REST API for a cluster of Grampus or HBase (like `hbase rest`)
    Rest(crate::rest::RestArguments),
    /// Serve HBase's Thrift 1 for a cluster of Grampus or HBase (like `hbase thrift`)
    Thrift(crate::thrift::ThriftArguments),
    /// Serve HBase's Thrift 2 for a cluster of Grampus or HBase (like `hbase thrift2`)
    Thrift2(crate::thrift::ThriftArguments),
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
    /// List the snapshots in a root directory, or print one (like `hbase snapshot info`)
    Snapshot(SnapshotArguments),
    /// Take over a root directory of HBase: check it, adopt it, or undo the adoption
    Adopt(AdoptArguments),
    /// Hand a root directory back to HBase; the server must be stopped
    Release(ReleaseArguments),
    /// Check a root directory of Grampus or HBase while no server runs: tables, regions, all cells
    /// of store files, MOB files, snapshots, logs
    Fsck(FsckArguments),
    /// Wait for the end of another process of this machine, and report it to ZooKeeper
    #[command(name = "exit-reporter", hide = true)]
    ExitReporter(ExitReporterArguments),
    /// Write man pages and completions for bash, zsh and fish
    #[command(name = "generate", hide = true)]
    Generate(GenerateArguments),
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

/// Where man pages and completions are written.
#[derive(Debug, Args)]
pub struct GenerateArguments {
    /// Directory, created if it is missing
    pub dir: PathBuf,
}

/// Options that select and configure a server.
#[derive(Debug, Default, Args)]
pub struct ServerArguments {
    /// Data directory, or in a cluster hdfs://NAMESERVICE/PATH [default: ./grampus-data]
    #[arg(long, value_name = "DIR", env = "GRAMPUS_DATA")]
    pub data: Option<PathBuf>,
    /// Directory that contains hbase-site.xml; its keys have the same meaning as in HBase
    #[arg(long, value_name = "DIR", env = "HBASE_CONF_DIR")]
    pub config: Option<PathBuf>,
    /// Set a configuration option; may be repeated (docs/config.md lists all options)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Add N to every port, so that several servers can run on one machine
    ///
    /// With hbase.cluster.distributed=true, the port of the ZooKeeper servers does not change.
    #[arg(long, value_name = "N")]
    pub port_offset: Option<u16>,
    /// Address to listen on, for all ports [default: 127.0.0.1]
    ///
    /// The server performs no authentication. Bind to other addresses only on a trusted network.
    #[arg(long, value_name = "ADDRESS", env = "GRAMPUS_BIND")]
    pub bind: Option<IpAddr>,
    /// Host name or address under which clients connect to this server
    ///
    /// In a cluster, the other processes connect under it too, and it is part of the server's name.
    /// Default: localhost if the server listens on loopback, this machine's name if it listens on
    /// all addresses, and otherwise the address that it listens on.
    #[arg(long, value_name = "HOST", env = "GRAMPUS_HOST")]
    pub host: Option<String>,
}
