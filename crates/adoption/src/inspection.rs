//! What a root directory contains, and whether it can be adopted. Changes no byte.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use fs::{FilePath, FileSystem};
use layout::ownership::Owner;
use layout::store::ListedFile;
use layout::{RootDir, StoreDir};
use wire::meta::TableState;

use crate::catalog::{self, Catalog};
use crate::finding::{Finding, Findings, Severity, disable_hint, of_descriptor, of_system_table};
use crate::master_data::{self, MasterContent};
use crate::owner::Sign;
use crate::procedure::{Fate, Judged, judge_all};
use crate::read_only::ReadOnly;
use crate::scratch::list;
use crate::{Progress, Result, file_lists, recovered, references};

/// HBase's layout version (`HConstants.FILE_SYSTEM_VERSION`).
const LAYOUT_VERSION: &str = "8";
/// Bytes per second of the replay that is assumed if there is nothing to measure.
const REPLAY_BYTES_PER_S: u64 = 50 << 20;
/// Replay inserts the cells that a scan only reads, so it takes about this much longer.
const REPLAY_FACTOR: u32 = 4;
/// The assumed time for opening a region.
const OPEN_REGION: Duration = Duration::from_millis(5);

/// What is to be inspected.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Tables that are to be adopted disabled.
    pub disabled: BTreeSet<TableName>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// Its name.
    pub name: TableName,
    /// Its state in `hbase:meta`; `None` if it has none, which means enabled.
    pub state: Option<TableState>,
    /// Its regions, without split parents.
    pub regions: u64,
    /// Its store files.
    pub files: u64,
    /// Those that are references to a part of another region's file.
    pub references: u64,
    /// Those that are links to another table's file.
    pub links: u64,
    /// Cells in its own files, including those that reads do not return.
    pub cells: u64,
    /// Bytes of its own files.
    pub bytes: u64,
    /// Stores with a file list.
    pub listed_stores: u64,
    /// Whether it is adopted disabled.
    pub is_disabled: bool,
}

/// A log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogReport {
    /// Its path.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The contents of a root directory.
#[derive(Debug)]
pub struct Inspection {
    /// Which program owns it.
    pub owner: Owner,
    /// The version in `hbase.version`.
    pub layout_version: Option<String>,
    /// The cluster id.
    pub cluster_id: Option<String>,
    /// The tables, by name.
    pub tables: Vec<TableReport>,
    /// Logs with edits that may not be in store files.
    pub logs: Vec<LogReport>,
    /// Entries in these logs.
    pub log_entries: u64,
    /// Regions that have entries in these logs.
    pub log_regions: u64,
    /// Files of split logs in the directories of regions.
    pub recovered_edits: u64,
    /// Procedures that have not ended.
    pub procedures: Vec<Judged>,
    /// Procedures that have ended.
    pub ended_procedures: u64,
    /// Switches that are off.
    pub switches_off: Vec<String>,
    /// Snapshots, by name.
    pub snapshots: Vec<String>,
    /// Codecs, encodings and kinds of store files, with the number of files.
    pub features: BTreeMap<String, u64>,
    /// What the operator should know.
    pub findings: Vec<Finding>,
    /// Signs of a living HBase.
    pub signs: Vec<Sign>,
    /// The estimated time from the take-over until all regions serve.
    pub estimate: Duration,
    /// Directories below `WALs`.
    pub log_dirs: Vec<String>,
    /// Directories of file lists of tables.
    pub file_lists: Vec<String>,
}

impl Inspection {
    /// Whether nothing prevents an adoption.
    pub fn is_adoptable(&self) -> bool {
        self.signs.is_empty() && !self.has_blockers()
    }

    /// Whether a feature prevents an adoption.
    pub fn has_blockers(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Blocker)
    }

    /// The directories of regions that the take-over removes.
    pub fn removed_regions(&self) -> Vec<RegionInfo> {
        let regions = self.procedures.iter().filter_map(|procedure| match &procedure.fate {
            Fate::RolledBack(regions) => Some(regions.clone()),
            _ => None,
        });
        regions.flatten().collect()
    }
}

/// Inspects the root directory of `fs`. `progress` counts regions and logs.
///
/// # Errors
/// Errors of reading. Damage of single files is a finding.
pub async fn inspect(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    request: &Request,
    progress: &dyn Progress,
) -> Result<Inspection> {
    let fs: Arc<dyn FileSystem> = Arc::new(ReadOnly(fs.clone()));
    let mut inspector = Inspector { env, fs, root, request, progress, findings: Findings::default() };
    inspector.run().await
}

struct Inspector<'a> {
    env: &'a Env,
    fs: Arc<dyn FileSystem>,
    root: &'a RootDir,
    request: &'a Request,
    progress: &'a dyn Progress,
    findings: Findings,
}

impl Inspector<'_> {
    async fn run(&mut self) -> Result<Inspection> {
        let (fs, root) = (self.fs.clone(), self.root);
        let mut found = Inspection {
            owner: root.owner(&*fs).await?,
            layout_version: None,
            cluster_id: root.stored_cluster_id(&*fs).await?,
            tables: Vec::new(),
            logs: Vec::new(),
            log_entries: 0,
            log_regions: 0,
            recovered_edits: 0,
            procedures: Vec::new(),
            ended_procedures: 0,
            switches_off: Vec::new(),
            snapshots: Vec::new(),
            features: BTreeMap::new(),
            findings: Vec::new(),
            signs: Vec::new(),
            estimate: Duration::ZERO,
            log_dirs: Vec::new(),
            file_lists: Vec::new(),
        };
        match root.layout_version(&*fs).await {
            Ok(version) => found.layout_version = version,
            Err(error) => self.blocker(error.to_string()),
        }
        if self.check_owner(&found) {
            self.read_all(&mut found).await?;
        }
        self.findings.0.sort();
        found.findings = std::mem::take(&mut self.findings.0);
        Ok(found)
    }

    fn blocker(&mut self, what: impl Into<String>) {
        self.findings.add(Severity::Blocker, what);
    }

    /// Whether the directory is one of HBase, so that its contents are worth reading.
    fn check_owner(&mut self, found: &Inspection) -> bool {
        let reason = match (found.owner, found.layout_version.as_deref()) {
            (Owner::HBase, Some(LAYOUT_VERSION)) => return true,
            (Owner::HBase, version) => {
                format!("layout version {} is not supported; version 8 is that of HBase 2", version.unwrap_or("unknown"))
            }
            (Owner::Nothing, _) => "this is not a root directory of HBase: hbase.version is missing".into(),
            (Owner::Grampus, _) => "the directory is one of Grampus already".into(),
            (Owner::Adopting, _) => {
                "an adoption was interrupted: complete it with `grampus adopt`, or undo it with `grampus adopt --undo`"
                    .into()
            }
            (Owner::Releasing | Owner::Released, _) => {
                "a release was interrupted: complete it with `grampus release`".into()
            }
        };
        self.blocker(reason);
        false
    }

    async fn read_all(&mut self, found: &mut Inspection) -> Result<()> {
        let (fs, root) = (self.fs.clone(), self.root);
        self.check_layout().await?;
        self.progress.begin("read hbase:meta and procedures", 2);
        let catalog = match catalog::inspect(self.env, &*fs, root).await {
            Ok(catalog) => catalog,
            Err(error) => {
                self.blocker(format!("hbase:meta cannot be read: {error}"));
                return Ok(());
            }
        };
        self.progress.advance(1);
        self.check_catalog(&catalog);
        match master_data::inspect(self.env, &*fs, root.master_data().path()).await {
            Ok(content) => self.add_master_content(&content, &catalog, found),
            Err(error) => {
                self.blocker(format!("the master's own region (MasterData) cannot be read: {error}"))
            }
        }
        self.progress.advance(1);
        self.add_tables(&catalog, found).await?;
        self.add_logs(found).await?;
        for snapshot in root.list_snapshots(&*fs).await? {
            if snapshot.version() < 2 {
                let what = format!("snapshot {} has layout version 1, which is not read", snapshot.name);
                self.findings.add(Severity::Warning, what);
            }
            found.snapshots.push(snapshot.name);
        }
        let replay = found.estimate;
        let regions: u64 = found.tables.iter().map(|table| table.regions).sum();
        found.estimate = replay + OPEN_REGION * u32::try_from(regions).unwrap_or(u32::MAX);
        let lists = file_lists::find(&*fs, &root.data_dir()).await?;
        found.file_lists = lists.iter().map(ToString::to_string).collect();
        Ok(())
    }

    /// Checks directories that only some versions of HBase have.
    async fn check_layout(&mut self) -> Result<()> {
        let (fs, root) = (self.fs.clone(), self.root);
        let exists = async |path: FilePath| Ok::<_, crate::Error>(fs.stat(&path).await?.is_some());
        if !exists(root.wals_dir()).await? {
            self.blocker(
                "there is no directory WALs: the logs are elsewhere (hbase.wal.dir), which adoption does not support; \
                 move them into the root directory while HBase is stopped",
            );
        }
        if exists(root.path().join("MasterProcWALs")).await? {
            self.blocker(
                "MasterProcWALs has procedures of HBase 2.2 or earlier; start and stop HBase 2.5 once",
            );
        }
        if !exists(root.master_data().path().clone()).await? {
            let what = "there is no MasterData: procedures in progress and switches are unknown";
            self.findings.add(Severity::Warning, what);
        }
        if exists(root.path().join("peers")).await? {
            let what = "replication peers are stored in the directory `peers`; they are not taken over";
            self.findings.add(Severity::Warning, what);
        }
        let corrupt = list(&*fs, &root.corrupt_dir()).await?.len();
        if corrupt > 0 {
            let what = format!("{corrupt} logs that HBase could not read are in `corrupt`; they stay there");
            self.findings.add(Severity::Warning, what);
        }
        Ok(())
    }

    fn check_catalog(&mut self, catalog: &Catalog) {
        if catalog.has_namespaces {
            self.blocker(
                "hbase:meta has the family `ns` of HBase 3; only directories of HBase 2 can be adopted",
            );
        }
        for row in &catalog.unreadable {
            self.findings.add(Severity::Warning, format!("row {row} of hbase:meta cannot be decoded"));
        }
    }

    fn add_master_content(&mut self, content: &MasterContent, catalog: &Catalog, found: &mut Inspection) {
        let judged = judge_all(&content.procedures, catalog);
        let (ended, unfinished): (Vec<_>, Vec<_>) =
            judged.into_iter().partition(|procedure| procedure.fate == Fate::Ended);
        for procedure in &unfinished {
            if let Fate::Refused(reason) = &procedure.fate {
                let Judged { id, class, state, .. } = procedure;
                self.blocker(format!("procedure {id} ({class}, {state}) is not finished: {reason}"));
            }
        }
        for row in &content.unreadable {
            self.blocker(format!("procedure {row}"));
        }
        found.ended_procedures = ended.len() as u64;
        found.procedures = unfinished;
        let off = content.switches.iter().filter(|(_, on)| !on);
        found.switches_off = off.map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
    }

    async fn add_tables(&mut self, catalog: &Catalog, found: &mut Inspection) -> Result<()> {
        let (fs, root) = (self.fs.clone(), self.root);
        let tables = root.list_tables(&*fs).await?;
        for table in self.request.disabled.iter().filter(|table| !tables.contains(table)) {
            self.findings.of_table(Severity::Blocker, table, "--disable names a table that does not exist");
        }
        let regions = catalog.regions.len() as u64 + 1;
        self.progress.begin("read store files", regions);
        for name in tables {
            let descriptor = match root.read_table_descriptor(&*fs, &name).await {
                Ok(descriptor) => descriptor,
                Err(error) => {
                    self.findings.of_table(Severity::Blocker, &name, format!("its descriptor: {error}"));
                    continue;
                }
            };
            let is_disabled = self.request.disabled.contains(&name);
            of_descriptor(&descriptor, is_disabled, &mut self.findings);
            of_system_table(&name, &mut self.findings);
            let report = self.table(&descriptor, catalog, found).await?;
            found.tables.push(report);
        }
        for table in catalog.tables.keys() {
            if !found.tables.iter().any(|known| known.name == *table) {
                let what = "it is in hbase:meta, but has no descriptor";
                self.findings.of_table(Severity::Warning, table, what);
            }
        }
        Ok(())
    }

    async fn table(
        &mut self,
        table: &TableDescriptor,
        catalog: &Catalog,
        found: &mut Inspection,
    ) -> Result<TableReport> {
        let name = &table.name;
        let mut report = TableReport {
            name: name.clone(),
            state: catalog.tables.get(name).copied(),
            regions: 0,
            files: 0,
            references: 0,
            links: 0,
            cells: 0,
            bytes: 0,
            listed_stores: 0,
            is_disabled: self.request.disabled.contains(name),
        };
        let is_continued = found.procedures.iter().any(|procedure| procedure.continued_table() == Some(name));
        self.check_state(&report, is_continued);
        let dirs = self.root.list_region_dirs(&*self.fs, name).await?;
        let live = catalog.served_regions(name);
        let removed = found.removed_regions();
        for encoded in &dirs {
            let is_known = catalog.has_dir(name, encoded)
                || removed.iter().any(|region| region.encoded_name() == *encoded);
            if !is_known {
                let what =
                    format!("region {encoded} has a directory, but no row in hbase:meta; it is not served");
                self.findings.of_table(Severity::Warning, name, what);
            }
        }
        for region in &live {
            report.regions += 1;
            if !dirs.contains(&region.encoded_name()) && !is_continued {
                let what = format!("region {} has no directory", region.encoded_name());
                self.findings.of_table(Severity::Blocker, name, what);
            }
            self.region(table, region, &mut report, found).await?;
            self.progress.advance(1);
        }
        Ok(report)
    }

    fn check_state(&mut self, report: &TableReport, is_continued: bool) {
        if report.is_disabled && report.name.namespace() == "hbase" {
            self.findings.of_table(Severity::Blocker, &report.name, "a system table cannot be disabled");
        }
        if report.state.is_none() && !report.name.is_meta() && !is_continued {
            let what = "it has no state in hbase:meta, so HBase would enable it; Grampus does not serve it";
            self.findings.of_table(Severity::Blocker, &report.name, what);
        }
    }

    async fn region(
        &mut self,
        table: &TableDescriptor,
        region: &RegionInfo,
        report: &mut TableReport,
        found: &mut Inspection,
    ) -> Result<()> {
        for family in table.families.values() {
            let store = StoreDir { fs: &*self.fs, root: self.root, region, family: &family.name };
            let (files, has_list) = match file_lists::load(store).await {
                Ok(loaded) => loaded,
                Err(error) => {
                    self.findings.of_table(Severity::Blocker, &table.name, error.to_string());
                    continue;
                }
            };
            report.listed_stores += u64::from(has_list);
            for file in files {
                report.files += 1;
                let is_link = file.target != file.path && file.reference.is_none();
                report.references += u64::from(file.reference.is_some());
                report.links += u64::from(is_link);
                self.reference(region, &file, report).await;
                if file.target == file.path {
                    report.bytes += file.len;
                    self.store_file(table, &file.path, report, found).await;
                }
            }
        }
        found.recovered_edits += recovered::count_edits(&*self.fs, self.root, region).await?;
        if let Some(hfiles) = recovered::hfiles(&*self.fs, self.root, region).await? {
            let what =
                format!("{hfiles} has edits of a split log (hbase.wal.split.to.hfile), which are not read");
            self.findings.of_table(Severity::Blocker, &table.name, what);
        }
        Ok(())
    }

    async fn reference(&mut self, region: &RegionInfo, file: &ListedFile, report: &TableReport) {
        let what = match references::is_at_a_boundary(&*self.fs, self.root, region, file).await {
            Ok(true) => return,
            Ok(false) => "the reference does not begin or end at a boundary of regions".to_owned(),
            Err(error) => format!("the reference cannot be checked: {error}"),
        };
        let severity = if report.is_disabled { Severity::Warning } else { Severity::Blocker };
        let hint = disable_hint(&region.table);
        self.findings.of_table(severity, &region.table, format!("{}: {what}{hint}", file.path));
    }

    async fn store_file(
        &mut self,
        table: &TableDescriptor,
        path: &FilePath,
        report: &mut TableReport,
        found: &mut Inspection,
    ) {
        let reader = match hfile::Reader::open(&*self.fs, path, 0, hfile::OpenOptions::default()).await {
            Ok(reader) => reader,
            Err(error) => {
                let is_disabled = report.is_disabled;
                let severity = if is_disabled { Severity::Warning } else { Severity::Blocker };
                let hint = disable_hint(&table.name);
                self.findings.of_table(severity, &table.name, format!("{error}{hint}"));
                return;
            }
        };
        let (trailer, info) = (reader.trailer(), reader.info());
        report.cells += trailer.entry_count;
        let mut count = |feature: String| *found.features.entry(feature).or_insert(0) += 1;
        count(format!("compression {}", upper(trailer.compression)));
        count(format!("encoding {}", upper(info.encoding)));
        count(format!("Bloom filter {}", upper(info.bloom)));
        if info.includes_tags {
            count("cell tags".into());
        }
    }

    async fn add_logs(&mut self, found: &mut Inspection) -> Result<()> {
        let (fs, root) = (self.fs.clone(), self.root);
        let dirs = catalog::log_dirs(&*fs, root).await?;
        found.log_dirs = dirs.iter().map(|dir| dir.name().to_string()).collect();
        let mut paths = Vec::new();
        for dir in &dirs {
            paths.extend(wal::recovery::logs_in(&*fs, dir).await?);
        }
        self.progress.begin("read logs", paths.len() as u64);
        let started = self.env.clock.monotonic();
        for path in &paths {
            let bytes = match fs.open(path).await {
                Err(fs::Error::NotFound { .. }) => 0,
                reader => reader?.len(),
            };
            found.logs.push(LogReport { path: path.to_string(), bytes });
            self.progress.advance(1);
        }
        let bytes: u64 = found.logs.iter().map(|log| log.bytes).sum();
        let index = match wal::recovery::scan_past_damage(&*fs, &paths).await {
            Ok(index) => index,
            Err(error) => {
                self.blocker(format!("logs cannot be read: {error}"));
                return Ok(());
            }
        };
        for damage in index.damaged_parts() {
            self.blocker(format!("{damage}; edits after this part may be lost"));
        }
        found.log_regions = index.regions().count() as u64;
        found.log_entries = index.regions().map(|(_, region)| region.entries).sum();
        let took = (self.env.clock.monotonic() - started) * REPLAY_FACTOR;
        found.estimate = took.max(Duration::from_secs(bytes / REPLAY_BYTES_PER_S));
        Ok(())
    }
}

/// The name of a codec or encoding as HBase spells it.
fn upper(name: impl std::fmt::Debug) -> String {
    match format!("{name:?}").as_str() {
        "FastDiff" => "FAST_DIFF".into(),
        "RowIndexV1" => "ROW_INDEX_V1".into(),
        "RowPrefix" => "ROWPREFIX_FIXED_LENGTH".into(),
        other => other.to_uppercase(),
    }
}
