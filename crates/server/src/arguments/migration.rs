//! Options of `grampus adopt`, `grampus release` and `grampus fsck`.

use std::path::PathBuf;

use clap::Args;

/// Options of `adopt`.
///
/// Exit status: 0 the directory can be adopted, or was adopted; 1 failure; 2 usage error; 3
/// something in the directory prevents it; 4 a living HBase may use the directory.
#[derive(Debug, Args)]
pub struct AdoptArguments {
    /// Root directory of HBase (hbase.rootdir): a local directory, or hdfs://HOST:PORT/PATH
    #[arg(value_name = "DIR")]
    pub dir: String,
    /// Only inspect the directory; no byte of it is changed
    #[arg(long, conflicts_with = "undo")]
    pub check: bool,
    /// Undo an adoption; possible until a server of Grampus has started on the directory
    #[arg(long)]
    pub undo: bool,
    /// Print the inspection as JSON
    #[arg(long)]
    pub json: bool,
    /// Adopt this table disabled, with its files unchanged; may be repeated
    #[arg(long, value_name = "TABLE")]
    pub disable: Vec<String>,
    /// ZooKeeper servers of HBase (HOST:PORT,...), to check whether its servers live
    #[arg(long, value_name = "QUORUM")]
    pub zookeeper: Option<String>,
    /// Parent of HBase's znodes
    #[arg(long, value_name = "PATH", default_value = "/hbase")]
    pub znode: String,
    /// Time for which the logs are watched for writes of a living HBase
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    pub watch: u64,
    /// Ignore signs of a living HBase. If it lives, both write to the same files, which loses data
    #[arg(long)]
    pub ignore_owner: bool,
    /// Where the options come from.
    #[command(flatten)]
    pub place: PlaceArguments,
}

/// Options of `release`.
///
/// Exit status: 0 released; 1 failure; 2 usage error; 3 the directory cannot be released now.
#[derive(Debug, Args)]
pub struct ReleaseArguments {
    /// Root directory: a local directory, or hdfs://HOST:PORT/PATH
    #[arg(value_name = "DIR")]
    pub dir: String,
    /// Version of HBase that will start on the directory: 2.5, 2.6 or 3.0
    #[arg(long, value_name = "VERSION")]
    pub to: String,
    /// Where the options come from.
    #[command(flatten)]
    pub place: PlaceArguments,
}

/// Options of `fsck`.
///
/// Exit status: 0 nothing is wrong; 1 failure; 2 usage error; 3 the directory cannot be checked or
/// is in use; 4 something is wrong.
#[derive(Debug, Args)]
pub struct FsckArguments {
    /// Root directory of Grampus or HBase: a local directory, or hdfs://HOST:PORT/PATH
    #[arg(value_name = "DIR")]
    pub dir: String,
    /// Read only the trailers, the file info and the index roots of store files, not their cells
    #[arg(long)]
    pub quick: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where the options come from.
    #[command(flatten)]
    pub place: PlaceArguments,
}

/// Options that configure access to a directory.
#[derive(Debug, Default, Args)]
pub struct PlaceArguments {
    /// Directory that contains hbase-site.xml and core-site.xml, for directories on HDFS
    #[arg(long, value_name = "DIR", env = "HBASE_CONF_DIR")]
    pub config: Option<PathBuf>,
    /// Set a configuration option; may be repeated (docs/config.md lists all options)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}
