//! `grampus load-hfiles`: loads HFiles from a directory into a table, as HBase's `completebulkload`
//! does.
//!
//! * `discovery`: the files of the directory, `FAMILY/FILE`;
//! * `splitting`: files with rows of several regions are split;
//! * `table`: the table that is created if the user requests that.
//!
//! The servers read the files by the same paths as this tool.

mod discovery;
mod splitting;
mod table;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::env::Env;
use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use clap::Args;
use client::{Client, ClientOptions, ClusterKey, FileToLoad, Table};
use fs::{FilePath, FileSystem};
use indicatif::{ProgressBar, ProgressStyle};

use discovery::FoundFile;

/// Rounds without a loaded file after which the tool gives up (`hbase.bulkload.retries.number`).
const ROUNDS_MAX: usize = 10;

/// Options of `grampus load-hfiles`.
#[derive(Debug, Clone, Args)]
pub struct LoadHfilesArguments {
    /// Directory of this machine with the HFiles, one subdirectory for each family. The region
    /// servers must be able to read the files under the same path
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Create the table if it does not exist, with the families of the directory
    #[arg(long)]
    pub create: bool,
    /// Skip subdirectories that are not families of the table. Without this option, they are an
    /// error
    #[arg(long)]
    pub ignore_unmatched_families: bool,
    /// Copy all files. Without this option, files on the storage of the root directory may be moved
    #[arg(long)]
    pub copy: bool,
    /// Fail if a file has rows of several regions, instead of splitting it
    #[arg(long)]
    pub no_split: bool,
    /// Maximum number of files for one family of one region
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub max_files: usize,
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Add N to the ZooKeeper port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

/// What was done.
#[derive(Debug, Default)]
struct Summary {
    files: usize,
    bytes: u64,
    regions: usize,
    split_files: usize,
}

/// Loads the files. `local` has all files of this machine, by their absolute paths.
///
/// # Errors
/// A one-line message. Files that were loaded before stay loaded.
pub async fn load_hfiles(
    env: Env,
    local: Arc<dyn FileSystem>,
    arguments: &LoadHfilesArguments,
) -> Result<(), String> {
    let name = TableName::parse(&arguments.table).map_err(|error| error.to_string())?;
    let dir = absolute(&arguments.dir)?;
    let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset)?;
    let client = Client::new(env.clone(), cluster.registry(), ClientOptions::default());
    let mut found = discovery::find(&*local, &dir).await?;
    let descriptor = table::find_or_create(&client, &name, &found, arguments.create).await?;
    let unmatched = discovery::remove_unmatched(&mut found, &descriptor);
    if !unmatched.is_empty() && !arguments.ignore_unmatched_families {
        return Err(format!("Unmatched family names found: {}, table {name}", unmatched.join(", ")));
    }
    if found.is_empty() {
        println!("no files to load in /{}", dir.as_str());
        return Ok(());
    }
    let bar = progress_bar(found.iter().map(|file| file.bytes).sum());
    let table = client.table(name.clone());
    let token =
        table.prepare_bulk_load().await.map_err(|error| format!("cannot load into {name}: {error}"))?;
    let mut loading =
        Loading { env, local, arguments, descriptor, table, token, bar, summary: Summary::default() };
    let loaded = loading.run(found).await;
    loading.bar.finish_and_clear();
    if let Err(error) = loading.table.clean_up_bulk_load(&loading.token).await {
        eprintln!("grampus: cannot remove the staging directory {}: {error}", loading.token);
    }
    loaded?;
    let Summary { files, bytes, regions, split_files } = loading.summary;
    println!(
        "loaded {files} files ({bytes} bytes) into {regions} regions of {name}; {split_files} files were split"
    );
    Ok(())
}

struct Loading<'a> {
    env: Env,
    local: Arc<dyn FileSystem>,
    arguments: &'a LoadHfilesArguments,
    descriptor: TableDescriptor,
    table: Table,
    token: String,
    bar: ProgressBar,
    summary: Summary,
}

/// The files of one region, by family.
struct RegionFiles {
    row: Bytes,
    files: Vec<FoundFile>,
}

impl Loading<'_> {
    /// Loads in rounds, because regions may be split in the meantime.
    async fn run(&mut self, mut pending: Vec<FoundFile>) -> Result<(), String> {
        let mut idle_rounds = 0;
        while !pending.is_empty() {
            let regions = self.table.fresh_regions().await.map_err(|error| error.to_string())?;
            let regions: Vec<&RegionInfo> = regions.iter().map(|location| &location.region).collect();
            let groups = self.group(pending, &regions).await?;
            pending = Vec::new();
            let before = self.summary.files;
            for (_, group) in groups {
                match self.load(&group).await? {
                    true => self.count(&group),
                    false => pending.extend(group.files),
                }
            }
            idle_rounds = if self.summary.files > before { 0 } else { idle_rounds + 1 };
            // A table with many regions may be split more often than that.
            if !pending.is_empty() && idle_rounds >= ROUNDS_MAX.max(regions.len() + 1) {
                let names: Vec<String> = pending.iter().map(|file| file.path.to_string()).collect();
                return Err(format!(
                    "Retry attempted {idle_rounds} times without completing, bailing out. Files that were not \
                     loaded: {}. See the log of the region server for the reason",
                    names.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Splits files that have rows of several regions, and groups all files by their region.
    async fn group(
        &mut self,
        files: Vec<FoundFile>,
        regions: &[&RegionInfo],
    ) -> Result<BTreeMap<Bytes, RegionFiles>, String> {
        let mut groups: BTreeMap<Bytes, RegionFiles> = BTreeMap::new();
        for file in files {
            let region = region_of(regions, &file.first_row)?;
            let parts = match region.contains(&file.last_row) {
                true => vec![file],
                false if self.arguments.no_split => {
                    return Err(format!("/{}: the file has rows of several regions", file.path));
                }
                false => self.split(&file, regions).await?,
            };
            for part in parts {
                let region = region_of(regions, &part.first_row)?;
                let group = groups
                    .entry(region.start_key.clone())
                    .or_insert_with(|| RegionFiles { row: part.first_row.clone(), files: Vec::new() });
                group.files.push(part);
            }
        }
        for group in groups.values() {
            for family in self.descriptor.families.keys() {
                let count = group.files.iter().filter(|file| file.family == family).count();
                if count > self.arguments.max_files {
                    let (max, row) = (self.arguments.max_files, group.row.escape_ascii());
                    return Err(format!(
                        "Trying to load more than {max} hfiles to one family of one region: {count} files of family \
                         {} for the region of row {row}; see --max-files",
                        family.escape_ascii()
                    ));
                }
            }
        }
        Ok(groups)
    }

    async fn split(&mut self, file: &FoundFile, regions: &[&RegionInfo]) -> Result<Vec<FoundFile>, String> {
        self.bar.set_message(format!("splitting {}", file.path.name()));
        let ends: Vec<Bytes> = regions.iter().map(|region| region.end_key.clone()).collect();
        let family = self.descriptor.families.get(&file.family).expect("unmatched families were removed");
        let parts = splitting::split(&self.env, &*self.local, file, family, &ends).await;
        let parts = parts.map_err(|error| format!("cannot split /{}: {error}", file.path))?;
        self.summary.split_files += 1;
        let after: u64 = parts.iter().map(|part| part.bytes).sum();
        self.bar.set_length((self.bar.length().unwrap_or(0) + after).saturating_sub(file.bytes));
        Ok(parts)
    }

    async fn load(&self, group: &RegionFiles) -> Result<bool, String> {
        self.bar.set_message(format!("loading {} files", group.files.len()));
        let files: Vec<FileToLoad> = group
            .files
            .iter()
            .map(|file| FileToLoad {
                family: file.family.clone(),
                uri: format!("file:/{}", file.path.as_str()),
            })
            .collect();
        let loaded = self.table.bulk_load(&group.row, &self.token, &files, self.arguments.copy).await;
        loaded.map_err(|error| format!("cannot load into {}: {error}", self.table.name()))
    }

    fn count(&mut self, group: &RegionFiles) {
        let bytes: u64 = group.files.iter().map(|file| file.bytes).sum();
        self.summary.files += group.files.len();
        self.summary.bytes += bytes;
        self.summary.regions += 1;
        self.bar.inc(bytes);
    }
}

fn region_of<'a>(regions: &[&'a RegionInfo], row: &[u8]) -> Result<&'a RegionInfo, String> {
    let found = regions.iter().find(|region| region.contains(row) && !region.offline);
    found.copied().ok_or_else(|| format!("no region has row {}", row.escape_ascii()))
}

/// A bar on standard error. It stays hidden if that is not a terminal.
fn progress_bar(bytes: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{msg:32} [{bar:32.green}] {bytes} of {total_bytes}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ");
    ProgressBar::new(bytes).with_style(style)
}

/// The absolute path, without `.` and `..`.
fn absolute(dir: &Path) -> Result<FilePath, String> {
    let failed = |reason: String| format!("{}: {reason}", dir.display());
    let resolved = dir.canonicalize().map_err(|error| failed(error.to_string()))?;
    let text = resolved.to_str().ok_or_else(|| failed("the path is not text".into()))?;
    Ok(FilePath::new(text))
}
