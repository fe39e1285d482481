//! The contents of `hbase:meta`, read from its files and logs without a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::env::Env;
use cell::KeyValue;
use cell::query::Scan;
use cell::region::RegionInfo;
use cell::schema::TableName;
use engine::Region;
use engine::recovery::OnDamage;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use wire::meta::row::parse_table_state;
use wire::meta::{MetaRegionState, MetaRow, TableState};

use crate::offline::OfflineServer;
use crate::scratch::{copy_tree, list};
use crate::{Result, file_lists};

/// The family in which HBase 3 stores namespaces.
pub const NAMESPACES: &[u8] = b"ns";

/// The rows of `hbase:meta`.
#[derive(Debug, Default)]
pub struct Catalog {
    /// The rows of regions, including split parents.
    pub regions: Vec<MetaRow>,
    /// The states of tables.
    pub tables: BTreeMap<TableName, TableState>,
    /// Whether the descriptor has the family of namespaces, which only HBase 3 uses.
    pub has_namespaces: bool,
    /// Rows that are neither of a region nor of a table.
    pub unreadable: Vec<String>,
}

impl Catalog {
    /// The regions of a table, including split parents.
    pub fn regions_of<'a>(&'a self, table: &'a TableName) -> impl Iterator<Item = &'a MetaRow> {
        self.regions.iter().filter(move |row| row.region.table == *table)
    }

    /// The regions of a table that servers open, without split parents. `hbase:meta` has one,
    /// although it has no row.
    pub fn served_regions(&self, table: &TableName) -> Vec<RegionInfo> {
        let is_parent = |row: &&MetaRow| row.is_split_parent() || row.state == Some(MetaRegionState::Split);
        let served = self.regions_of(table).filter(|row| !is_parent(row)).map(|row| row.region.clone());
        served.chain(table.is_meta().then(RegionInfo::meta)).collect()
    }

    /// Whether a directory of a region of a table has a row: of a region, or of a split parent.
    pub fn has_dir(&self, table: &TableName, encoded: &str) -> bool {
        (table.is_meta() && RegionInfo::meta().encoded_name() == encoded)
            || self.regions_of(table).any(|row| row.region.encoded_name() == encoded)
    }

    /// Whether there is a row of this region.
    pub fn has(&self, region: &RegionInfo) -> bool {
        self.find(region).is_some()
    }

    /// The row of a region.
    pub fn find(&self, region: &RegionInfo) -> Option<&MetaRow> {
        let encoded = region.encoded_name();
        self.regions.iter().find(|row| row.region.encoded_name() == encoded)
    }
}

/// Reads `hbase:meta` of a directory that is not changed: its files and logs are copied to memory.
///
/// # Errors
/// Errors of reading, and damage in these files.
pub async fn inspect(env: &Env, fs: &dyn FileSystem, root: &RootDir) -> Result<Catalog> {
    let memory = MemoryFs::with_clock(env.clock.clone());
    let dir = root.table_dir(&TableName::meta());
    copy_tree(fs, &dir, &memory, &dir, |_| true).await?;
    let mut log_dirs = Vec::new();
    for server in list(fs, &root.wals_dir()).await?.into_iter().filter(|entry| entry.is_dir) {
        let dir = root.wals_dir().join(&server.name);
        copy_tree(fs, &dir, &memory, &dir, is_meta_log).await?;
        log_dirs.push(dir);
    }
    file_lists::remove_all(&memory, &dir).await?;
    let has_namespaces = has_namespaces(fs, root).await;
    let memory: Arc<dyn FileSystem> = Arc::new(memory);
    let server = OfflineServer::start(env, &memory, root, (&log_dirs, &[]), OnDamage::Refuse).await?;
    let region = server.open(wire::meta::descriptor(), RegionInfo::meta()).await?;
    let catalog = read(&region).await;
    region.abandon();
    server.stop().await?;
    Ok(Catalog { has_namespaces, ..catalog? })
}

async fn has_namespaces(fs: &dyn FileSystem, root: &RootDir) -> bool {
    let descriptor = root.read_table_descriptor(fs, &TableName::meta()).await;
    descriptor.is_ok_and(|table| table.families.contains_key(NAMESPACES))
}

/// Reads all rows of the open region of `hbase:meta`.
///
/// # Errors
/// Errors of the region.
pub async fn read(region: &Region) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    for cells in rows(region).await? {
        let views = || cells.iter().map(|cell| cell.view(0));
        let name = views().next().map(|cell| cell.row().to_vec()).unwrap_or_default();
        if let Some(row) = MetaRow::parse(views()) {
            catalog.regions.push(row);
        } else if let (Some(state), Some(table)) = (parse_table_state(views()), table_of(&name)) {
            catalog.tables.insert(table, state);
        } else if !views().all(|cell| cell.family() == NAMESPACES) {
            catalog.unreadable.push(name.escape_ascii().to_string());
        }
    }
    Ok(catalog)
}

/// All rows of a region.
///
/// # Errors
/// Errors of the region.
pub async fn rows(region: &Region) -> Result<Vec<Vec<KeyValue>>> {
    let list = region.scan_all(&Scan::default()).await?;
    let cells: Vec<KeyValue> = list.cells.into_iter().map(|(cell, _)| cell).collect();
    let same_row = |one: &KeyValue, other: &KeyValue| one.view(0).row() == other.view(0).row();
    Ok(cells.chunk_by(same_row).map(<[KeyValue]>::to_vec).collect())
}

fn is_meta_log(path: &FilePath) -> bool {
    wal::LogName::of(path).is_some_and(|name| !name.suffix.is_empty())
}

fn table_of(row: &[u8]) -> Option<TableName> {
    TableName::parse(std::str::from_utf8(row).ok()?).ok()
}

/// The directories with logs below `root`.
///
/// # Errors
/// File system errors.
pub async fn log_dirs(fs: &dyn FileSystem, root: &RootDir) -> Result<Vec<FilePath>> {
    let entries = list(fs, &root.wals_dir()).await?.into_iter();
    Ok(entries.filter(|entry| entry.is_dir).map(|entry| root.wals_dir().join(&entry.name)).collect())
}
