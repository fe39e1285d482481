//! Hands a root directory back to HBase.
//!
//! The steps, each durable before the next begins; each may be repeated:
//!
//! 1. Check that no server and no unfinished procedure needs the directory.
//! 2. Rename the marker, so that no server of Grampus starts, and rename `hbase.version`, so that
//!    HBase does not start yet.
//! 3. Replay the logs: open each region that has edits in them, or an interrupted bulk load, and
//!    close it, which flushes.
//! 4. Write `hbase:meta` as the version expects it, with all of its rows in store files.
//! 5. Write file lists where a table asks for them, and remove the inventories of regions.
//! 6. Write the master's own region: no procedures, and one dead server that has all regions. The
//!    master of HBase recovers that server at its start, which assigns the regions.
//! 7. Remove the files of Grampus.
//! 8. Give `hbase.version` its name back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use base::env::Env;
use cell::mutation::Mutation;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::Region;
use engine::recovery::OnDamage;
use fs::FileSystem;
use layout::ownership::{ADOPTION_DIR, Owner, RELEASING};
use layout::{FileListTracker, RootDir};
use wire::meta::row::{put_open, put_opening, put_state, put_table_state};
use wire::meta::{INFO, MetaRegionState, MetaRow, SERVER, SERVER_NAME, START_CODE, TableState, region_row};

use crate::catalog::{self, Catalog, NAMESPACES, log_dirs};
use crate::procedure::is_repeated_at_start;
use crate::record::AdoptionRecord;
use crate::replay::Replay;
use crate::scratch::list;
use crate::{Progress, Result, file_lists, master_data, refused};

/// Rows of `hbase:meta` per write.
const ROWS_PER_WRITE: usize = 500;
/// The server that HBase finds as the last one of all regions. Only its start code matters.
const LAST_SERVER: (&str, u16) = ("localhost", 16020);
/// Stages that are shown as progress.
const STAGES: u64 = 6;
/// Entries of the root directory that only Grampus uses.
const OWN_ENTRIES: [&str; 4] = ["grampus.logs", "grampus.reserve", "grampus.processes", "grampus.lock"];
/// Entries that show that files are on other volumes.
const TIER_ENTRIES: [&str; 2] = ["grampus.volumes", "grampus.moving"];

/// A version of HBase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 2.5.
    V2_5,
    /// 2.6.
    V2_6,
    /// 3.0.
    V3_0,
}

impl Version {
    /// Parses `2.5`, `2.6` or `3.0`.
    pub fn parse(text: &str) -> Option<Version> {
        match text {
            "2.5" => Some(Version::V2_5),
            "2.6" => Some(Version::V2_6),
            "3.0" => Some(Version::V3_0),
            _ => None,
        }
    }

    /// Whether the master stores switches in its own region.
    fn has_switches(self) -> bool {
        self >= Version::V2_6
    }

    /// The form of lists of store files.
    fn lists(self) -> FileListTracker {
        match self {
            Version::V2_5 => FileListTracker::Plain,
            Version::V2_6 | Version::V3_0 => FileListTracker::Generations,
        }
    }

    /// Whether namespaces are rows of `hbase:meta`.
    fn has_namespaces_in_meta(self) -> bool {
        self >= Version::V3_0
    }
}

/// What is to be released.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// The version of HBase that will start on the directory.
    pub version: Version,
}

/// The result of a release.
#[derive(Debug, Default)]
pub struct Released {
    /// Regions with edits that were flushed.
    pub flushed: u64,
    /// Regions of all tables.
    pub regions: u64,
    /// What the operator should know.
    pub warnings: Vec<String>,
}

impl fmt::Display for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        write!(
            f,
            "the directory is one of HBase again: regions {}, flushed from logs {}",
            self.regions, self.flushed
        )
    }
}

/// Releases a directory that no server uses, or continues a release that was interrupted.
///
/// # Errors
/// [`Error::Refused`] if the directory cannot be released now. Errors of the file system and of
/// regions; then the call may be repeated.
pub async fn release(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    request: Release,
    progress: &dyn Progress,
) -> Result<Released> {
    match root.owner(&**fs).await? {
        Owner::Grampus | Owner::Releasing => {}
        Owner::Released => {
            root.open_to_hbase(&**fs).await?;
            return Ok(Released::default());
        }
        Owner::HBase => return refused("the directory is one of HBase already"),
        Owner::Adopting => {
            return refused("an adoption was interrupted; undo it with `grampus adopt --undo`");
        }
        Owner::Nothing => return refused("this is not a root directory of Grampus"),
    }
    let releasing =
        Releasing { env, fs, root, request, progress, released: Released::default(), namespaces: Vec::new() };
    releasing.run().await
}

struct Releasing<'a> {
    env: &'a Env,
    fs: &'a Arc<dyn FileSystem>,
    root: &'a RootDir,
    request: Release,
    progress: &'a dyn Progress,
    released: Released,
    // The rows of `hbase:namespace`, if they are copied.
    namespaces: Vec<Vec<KeyValue>>,
}

impl Releasing<'_> {
    async fn run(mut self) -> Result<Released> {
        let (fs, root) = (&**self.fs, self.root);
        let record = AdoptionRecord::read(fs, root).await?.unwrap_or_default();
        self.check_volumes().await?;
        self.check_procedures().await?;
        root.begin_release(fs).await?;
        root.fence_from_hbase(fs).await?;
        let server = self.last_server();
        let catalog = self.flush_regions(&server).await?;
        self.progress.begin("hand back", STAGES);
        self.write_lists(&catalog, &record).await?;
        self.progress.advance(1);
        self.remove_inventories(&catalog).await?;
        self.progress.advance(1);
        self.hand_back_master_data(&server).await?;
        self.progress.advance(1);
        self.replace_logs(&server).await?;
        self.progress.advance(1);
        for name in OWN_ENTRIES.into_iter().chain([ADOPTION_DIR]) {
            root.remove_entry(fs, name).await?;
        }
        root.remove_entry(fs, RELEASING).await?;
        self.progress.advance(1);
        root.open_to_hbase(fs).await?;
        self.progress.advance(1);
        Ok(self.released)
    }

    /// The name of the dead server. Each attempt has another start code, which follows the clock.
    fn last_server(&self) -> ServerName {
        let (host, port) = LAST_SERVER;
        ServerName { host: host.into(), port, start_code: self.env.clock.now_ms() }
    }

    async fn check_volumes(&self) -> Result<()> {
        for name in TIER_ENTRIES {
            if self.fs.stat(&self.root.path().join(name)).await?.is_some() {
                return refused(format!(
                    "{name} exists: some files are on other volumes (grampus.tiers), where HBase would not find them; \
                     move them home before the release"
                ));
            }
        }
        Ok(())
    }

    /// Refuses a directory with a procedure that only the master of Grampus can finish.
    async fn check_procedures(&self) -> Result<()> {
        let content = master_data::inspect(self.env, &**self.fs, self.root.master_data().path()).await?;
        let is_unfinished = |procedure: &&proto::Procedure| {
            procedure.state() == proto::ProcedureState::Runnable
                && !is_repeated_at_start(&procedure.class_name)
        };
        let unfinished: Vec<String> = content
            .procedures
            .iter()
            .filter(is_unfinished)
            .map(|procedure| {
                let class = procedure.class_name.rsplit('.').next().unwrap_or_default();
                format!("{} ({class})", procedure.proc_id)
            })
            .collect();
        match unfinished.is_empty() {
            true => Ok(()),
            false => refused(format!(
                "procedures are not finished: {}; start Grampus, wait until `list_procedures` shows none, stop it, and \
                 repeat the release",
                unfinished.join(", ")
            )),
        }
    }

    /// Replays the logs into store files, and writes `hbase:meta`.
    async fn flush_regions(&mut self, last: &ServerName) -> Result<Catalog> {
        let (fs, root) = (self.fs, self.root);
        let replay = Replay::begin(self.env, fs, root, OnDamage::Refuse, None).await?;
        self.released.warnings.extend(replay.server.warnings().iter().cloned());
        let table = self.meta_descriptor().await?;
        let meta = replay.server.open(table, RegionInfo::meta()).await?;
        let catalog = catalog::read(&meta).await?;
        let namespaces = namespace_table();
        let read = self.request.version.has_namespaces_in_meta().then_some(&namespaces);
        let done = replay.flush_regions(&catalog, read, self.progress).await?;
        self.released.regions = catalog.regions.len() as u64;
        self.released.flushed = done.flushed;
        self.namespaces = done.rows;
        let written = self.write_meta(&meta, &catalog, last).await;
        let closed = meta.close_once().await;
        written?;
        closed?;
        replay.end().await?;
        Ok(catalog)
    }

    /// Whether the rows of this region are copied to `hbase:meta`.
    fn reads_namespaces_of(&self, region: &RegionInfo) -> bool {
        self.request.version.has_namespaces_in_meta() && region.table == namespace_table()
    }

    async fn descriptor(
        &self,
        read: &mut BTreeMap<TableName, Option<TableDescriptor>>,
        table: &TableName,
    ) -> Result<Option<TableDescriptor>> {
        if !read.contains_key(table) {
            let found = self.root.find_table_descriptor(&**self.fs, table).await?;
            read.insert(table.clone(), found);
        }
        Ok(read.get(table).cloned().flatten())
    }

    /// The descriptor of `hbase:meta`, which is also written to its file if HBase expects another
    /// one.
    async fn meta_descriptor(&self) -> Result<TableDescriptor> {
        let stored = self.root.find_table_descriptor(&**self.fs, &TableName::meta()).await?;
        let mut wanted = stored.clone().unwrap_or_else(wire::meta::descriptor);
        match self.request.version.has_namespaces_in_meta() {
            true => {
                wanted.families.entry(NAMESPACES.into()).or_insert_with(namespace_family);
            }
            false => {
                wanted.families.remove(NAMESPACES);
            }
        }
        if stored.as_ref() != Some(&wanted) {
            self.root.write_table_descriptor(&**self.fs, &wanted).await?;
        }
        Ok(wanted)
    }

    async fn write_meta(&mut self, meta: &Region, catalog: &Catalog, last: &ServerName) -> Result<()> {
        let mut rows: Vec<Mutation> = Vec::new();
        for row in &catalog.regions {
            let state = match self.reads_namespaces_of(&row.region) {
                true => Some(TableState::Disabled),
                false => catalog.tables.get(&row.region.table).copied(),
            };
            rows.extend(row_for_hbase(row, state, last));
        }
        if self.request.version.has_namespaces_in_meta() {
            rows.extend(self.namespace_rows());
            rows.push(put_table_state(&namespace_table(), TableState::Disabled));
        }
        for rows in rows.chunks(ROWS_PER_WRITE) {
            for row in rows {
                meta.batch_atomic(vec![row.clone()]).await?;
            }
        }
        meta.flush().await?;
        Ok(())
    }

    /// The rows of namespaces for HBase 3: copies of those of `hbase:namespace`.
    fn namespace_rows(&self) -> Vec<Mutation> {
        let row = |cells: &Vec<KeyValue>| {
            let view = cells.first()?.view(0);
            let (row, value) = (view.row(), view.value);
            let cell = KeyValue::new(row, NAMESPACES, b"d", LATEST_TIMESTAMP, CellType::Put, value);
            Some(Mutation::put(row.to_vec(), vec![cell]))
        };
        self.namespaces.iter().filter_map(row).collect()
    }

    /// Writes the lists of store files for tables that have a tracker with lists, or had one.
    async fn write_lists(&self, catalog: &Catalog, record: &AdoptionRecord) -> Result<()> {
        let (fs, root) = (self.fs, self.root);
        let had_lists: BTreeSet<TableName> = record
            .file_lists
            .iter()
            .filter_map(|path| file_lists::table_of(root, &root.path().join(path)))
            .collect();
        let mut descriptors = BTreeMap::new();
        for region in catalog.regions.iter().map(|row| &row.region).chain([&RegionInfo::meta()]) {
            let Some(table) = self.descriptor(&mut descriptors, &region.table).await? else { continue };
            for family in table.families.values() {
                let is_listed = file_lists::needs_list(&table, family) || had_lists.contains(&table.name);
                if is_listed {
                    let (tracker, now_ms) = (self.request.version.lists(), self.env.clock.now_ms());
                    file_lists::write(tracker, fs, root, region, &family.name, now_ms).await?;
                }
            }
        }
        Ok(())
    }

    /// Removes the contents of sequence id files: HBase reads only their names, and would not keep
    /// the contents up to date.
    async fn remove_inventories(&self, catalog: &Catalog) -> Result<()> {
        let regions = catalog.regions.iter().map(|row| row.region.clone());
        for region in regions.chain([RegionInfo::meta()]) {
            if self.root.read_inventory(&**self.fs, &region).await?.is_some() {
                self.root.write_inventory(&**self.fs, &region, None).await?;
            }
        }
        Ok(())
    }

    async fn hand_back_master_data(&mut self, last: &ServerName) -> Result<()> {
        let has_switches = self.request.version.has_switches();
        let content = master_data::hand_back(self.env, self.fs, self.root, last, has_switches).await?;
        let off: Vec<String> = content
            .switches
            .iter()
            .filter(|(_, on)| !on)
            .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
            .collect();
        if !has_switches && !off.is_empty() {
            self.released.warnings.push(format!(
                "HBase 2.5 stores switches in ZooKeeper; switch off again: {}",
                off.join(", ")
            ));
        }
        let region = master_region();
        let root = self.root.master_data();
        if root.read_inventory(&**self.fs, &region).await?.is_some() {
            root.write_inventory(&**self.fs, &region, None).await?;
        }
        Ok(())
    }

    /// Archives all logs, because all edits are in store files, and leaves an empty directory of
    /// the dead server.
    async fn replace_logs(&self, last: &ServerName) -> Result<()> {
        let (fs, root) = (&**self.fs, self.root);
        for dir in log_dirs(fs, root).await? {
            for log in list(fs, &dir).await? {
                root.move_path(fs, &dir.join(&log.name), &root.old_wals_dir().join(&log.name)).await?;
            }
            fs.delete(&dir).await?;
        }
        Ok(fs.make_dirs(&root.wal_dir(last)).await?)
    }
}

/// The changes of a region's row. Closed regions get no location, because HBase's consistency check
/// reports servers that its master does not know.
fn row_for_hbase(row: &MetaRow, table: Option<TableState>, last: &ServerName) -> Vec<Mutation> {
    let region = &row.region;
    let closed = |state| vec![delete_location(region), put_state(region, state)];
    match table {
        _ if row.is_split_parent() => closed(MetaRegionState::Split),
        Some(TableState::Disabled | TableState::Disabling) => closed(MetaRegionState::Closed),
        _ => vec![put_opening(region, last), put_open(region, last, row.open_seq_num.unwrap_or(1))],
    }
}

/// Removes the servers from a region's row.
fn delete_location(region: &RegionInfo) -> Mutation {
    let row = region_row(region);
    let delete = |column| KeyValue::new(&row, INFO, column, LATEST_TIMESTAMP, CellType::DeleteColumn, b"");
    let cells = [SERVER, START_CODE, SERVER_NAME].map(delete).into();
    Mutation::delete(row.clone(), cells)
}

/// The family of namespaces in `hbase:meta` of HBase 3.
fn namespace_family() -> FamilyDescriptor {
    FamilyDescriptor::new(NAMESPACES)
        .with("VERSIONS", "10")
        .with("IN_MEMORY", "true")
        .with("BLOCKSIZE", "8192")
        .with("BLOOMFILTER", "ROWCOL")
        .with("DATA_BLOCK_ENCODING", "ROW_INDEX_V1")
}

fn namespace_table() -> TableName {
    TableName::new("hbase", "namespace").expect("a legal name")
}

/// The master's own region, whose id is constant.
fn master_region() -> RegionInfo {
    RegionInfo::new(TableName::new("master", "store").expect("a legal name"), "".into(), "".into(), 1)
}
