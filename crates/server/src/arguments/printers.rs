//! Options of `grampus hfile`, `grampus wal` and `grampus snapshot`.

use clap::Args;

use super::PlaceArguments;

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

/// Options of `grampus snapshot`: those of HBase's `SnapshotInfo`, which may be written with one
/// dash.
///
/// Exit status: 0 success; 1 failure, or there is no such snapshot; 2 usage error.
#[derive(Debug, Args)]
pub struct SnapshotArguments {
    /// Root directory of Grampus or HBase, or target of an ExportSnapshot: a local directory, or
    /// hdfs://HOST:PORT/PATH
    #[arg(value_name = "DIR", required_unless_present = "remote_dir")]
    pub dir: Option<String>,
    /// The same as DIR
    #[arg(long, value_name = "DIR", conflicts_with = "dir")]
    pub remote_dir: Option<String>,
    /// List all snapshots; the default without --snapshot
    #[arg(long)]
    pub list_snapshots: bool,
    /// Print this snapshot
    #[arg(long, value_name = "NAME")]
    pub snapshot: Option<String>,
    /// Print the size and state of each file
    #[arg(long, requires = "snapshot")]
    pub files: bool,
    /// Print the number and size of the files, and how much is shared with the table
    #[arg(long, requires = "snapshot")]
    pub stats: bool,
    /// Print the attributes of the table
    #[arg(long, requires = "snapshot")]
    pub schema: bool,
    /// Print sizes in bytes
    #[arg(long, requires = "snapshot")]
    pub size_in_bytes: bool,
    /// Where the options come from.
    #[command(flatten)]
    pub place: PlaceArguments,
}
