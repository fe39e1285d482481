//! A region with its log on any file system, opened as a server opens it: old logs are replayed
//! first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::env::{Env, Random};
use cell::cell::CellType;
use cell::query::{CellSelection, Scan};
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use engine::budget::MemstoreBudget;
use engine::compaction::{Settings, SiteSettings};
use engine::mob::MobFiles;
use engine::region::{NoMaintenance, RegionOptions};
use engine::scanner::BlockLoader;
use engine::{Opening, Region, RegionServices};
use fs::{FilePath, FileSystem};
use layout::RootDir;
use wal::{Log, LogOptions};

use super::model::VisibleCell;

/// An open region and its environment.
pub struct Opened {
    pub region: Arc<Region>,
    pub log: Arc<Log>,
    pub loader: Arc<BlockLoader>,
    pub mob: Arc<MobFiles>,
    /// Set when the log has failed permanently.
    pub dead: Arc<AtomicBool>,
}

/// A table with a family of one version and a family of three.
pub fn table() -> TableDescriptor {
    TableDescriptor::new(TableName::parse("t").unwrap()).with_family(FamilyDescriptor::new("f")).with_family(
        FamilyDescriptor::new("g").with("VERSIONS", "3").with("DATA_BLOCK_ENCODING", "FAST_DIFF"),
    )
}

pub fn region_info() -> RegionInfo {
    RegionInfo::new(TableName::parse("t").unwrap(), "".into(), "".into(), 1_700_000_000_000)
}

/// HBase's defaults, but compactions need only two files, and flushes are attempted twice.
pub fn options() -> RegionOptions {
    let settings = Settings { files_min: 2, ..Settings::default() };
    let compaction = SiteSettings { settings, ..SiteSettings::default() };
    RegionOptions { flush_retries: 2, compaction, ..RegionOptions::default() }
}

/// Opens the region after replaying all existing logs.
pub async fn open(env: &Env, fs: Arc<dyn FileSystem>, options: RegionOptions) -> Result<Opened, String> {
    open_table(env, fs, options, &table()).await
}

/// As [`open`], for another table descriptor.
pub async fn open_table(
    env: &Env,
    fs: Arc<dyn FileSystem>,
    options: RegionOptions,
    table: &TableDescriptor,
) -> Result<Opened, String> {
    let root = RootDir::new(FilePath::root());
    root.write_region_info(&*fs, &region_info()).await.map_err(|error| format!("opening: {error}"))?;
    let Regions { mut regions, log, services, dead } =
        open_regions(env, fs, options, table, &[region_info()]).await?;
    Ok(Opened { region: regions.remove(0), log, loader: services.loader, mob: services.mob, dead })
}

/// Open regions of one table and their environment.
pub struct Regions {
    pub regions: Vec<Arc<Region>>,
    pub log: Arc<Log>,
    pub services: RegionServices,
    pub dead: Arc<AtomicBool>,
}

/// Opens regions with existing directories, which share one log, after replaying all existing logs.
pub async fn open_regions(
    env: &Env,
    fs: Arc<dyn FileSystem>,
    options: RegionOptions,
    table: &TableDescriptor,
    infos: &[RegionInfo],
) -> Result<Regions, String> {
    let root = RootDir::new(FilePath::root());
    let text = |error: &dyn std::fmt::Display| format!("opening: {error}");
    let mut runs: Vec<u64> = match fs.list(&root.wals_dir()).await {
        Ok(dirs) => dirs.iter().filter_map(|dir| dir.name.rsplit_once(',')?.1.parse().ok()).collect(),
        Err(_) => Vec::new(),
    };
    runs.sort();
    let dir_of = |run: u64| root.wals_dir().join(&format!("host,16020,{run}"));
    let mut old = Vec::new();
    for run in &runs {
        old.extend(wal::recovery::logs_in(&*fs, &dir_of(*run)).await.map_err(|error| text(&error))?);
    }
    let index = Arc::new(wal::recovery::scan(&*fs, &old).await.map_err(|error| text(&error))?);
    let run = runs.last().unwrap_or(&0) + 1;
    let mut log_options = LogOptions::new(dir_of(run), &format!("host%2C16020%2C{run}"), root.old_wals_dir());
    log_options.reserve_bytes = 4096;
    log_options.storage_policy = options.storage.log.clone();
    let dead = Arc::new(AtomicBool::new(false));
    let on_fatal = {
        let dead = dead.clone();
        Arc::new(move |_: &wal::Error| dead.store(true, Ordering::Release))
    };
    let log =
        Log::start(env.clone(), fs.clone(), log_options, on_fatal).await.map_err(|error| text(&error))?;
    log.adopt(index.old_logs());
    let services = services(env, fs.clone(), log.clone(), options);
    let mut regions = Vec::new();
    for info in infos {
        let entries = wal::recovery::read_region(fs.clone(), index.clone(), &info.encoded_name());
        let opening =
            Opening { info: info.clone(), table: Arc::new(table.clone()), entries: Box::new(entries) };
        regions.push(Region::open(services.clone(), opening).await.map_err(|error| text(&error))?);
    }
    Ok(Regions { regions, log, services, dead })
}

/// The services of a region without a server.
pub fn services(env: &Env, fs: Arc<dyn FileSystem>, log: Arc<Log>, options: RegionOptions) -> RegionServices {
    RegionServices {
        env: env.clone(),
        fs,
        root: RootDir::new(FilePath::root()),
        tracker: Arc::new(layout::RenameTracker),
        log,
        loader: Arc::new(BlockLoader::new(1 << 20)),
        budget: Arc::new(MemstoreBudget::unlimited()),
        nonces: Arc::default(),
        maintenance: Arc::new(NoMaintenance),
        mob: Arc::default(),
        options: Arc::new(options),
        instruments: Arc::new(engine::instruments::Instruments::begin(env.clock.monotonic())),
        server: None,
    }
}

/// All versions of all cells of the region, in order.
pub async fn scan(region: &Region) -> Result<Vec<VisibleCell>, String> {
    let selection = CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
    let scan = Scan { selection, ..Scan::default() };
    let list = region.scan_all(&scan).await.map_err(|error| format!("scanning: {error}"))?;
    Ok(list.cells.iter().map(|(cell, _)| visible_cell(&cell.view(0))).collect())
}

/// The directory of a family of [`region_info`].
pub fn store_dir(family: &str) -> String {
    format!("data/default/t/{}/{family}", region_info().encoded_name())
}

/// The names in a directory; none if it does not exist.
pub async fn names(fs: &dyn FileSystem, dir: &str) -> Vec<String> {
    match fs.list(&FilePath::new(dir)).await {
        Ok(entries) => entries.into_iter().map(|entry| entry.name).collect(),
        Err(_) => Vec::new(),
    }
}

/// The names of the unfinished files of a family of [`region_info`].
pub async fn unfinished_files(fs: &dyn FileSystem, family: &str) -> Vec<String> {
    let dir = RootDir::new(FilePath::root()).family_tmp_dir(&region_info(), family.as_bytes());
    let mut files = Vec::new();
    for opening in names(fs, dir.as_str()).await {
        files.extend(names(fs, dir.join(&opening).as_str()).await);
    }
    files
}

pub fn visible_cell(cell: &cell::Cell<'_>) -> VisibleCell {
    assert_eq!(cell.kind(), CellType::Put, "markers are never shown");
    (
        cell.row().to_vec(),
        cell.family().to_vec(),
        cell.qualifier().to_vec(),
        cell.timestamp(),
        cell.value.to_vec(),
    )
}

/// A number below `n`.
pub fn below(random: &dyn Random, n: u64) -> u64 {
    random.next_u64() % n
}

/// Runs `test` on a runtime whose clock advances only when all tasks wait.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test)
}

/// The first difference of two scans, in readable form.
pub fn difference(found: &[VisibleCell], expected: &[VisibleCell]) -> String {
    let text = |shown: Option<&VisibleCell>| match shown {
        Some((row, family, qualifier, timestamp, value)) => format!(
            "{}/{}:{}@{timestamp}={}",
            row.escape_ascii(),
            family.escape_ascii(),
            qualifier.escape_ascii(),
            value.escape_ascii()
        ),
        None => "nothing".to_string(),
    };
    let at = (0..).find(|at| found.get(*at) != expected.get(*at)).expect("they differ");
    format!("cell {at}: found {}, expected {}", text(found.get(at)), text(expected.get(at)))
}
