//! Checks a root directory of Grampus or HBase, without a server: is everything there, and is it
//! readable?
//!
//! * [`check`]: descriptors, regions, store files, MOB files, snapshots and logs; reads only;
//! * `coverage`: whether the regions of a table cover each row once;
//! * `store_file`: reads a store file with all its cells;
//! * [`report`]: the result as text and as JSON.
//!
//! Does not repair, does not print, and does not depend on sockets or on a local disk.

mod coverage;
pub mod report;
mod store_file;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use adoption::catalog::{self, Catalog};
use adoption::read_only::ReadOnly;
use adoption::{Progress, Result, file_lists, scratch};
use base::env::Env;
use bytes::Bytes;
use cell::CellOrder;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use fs::{FilePath, FileSystem};
use layout::store::{ListedFile, StoreFileName};
use layout::{RootDir, StoreDir};

pub use store_file::Depth;
use store_file::{Bounds, MobFile, ReadFile};

/// The directory of a region whose file names are sequence ids.
const SEQUENCE_IDS: &str = "recovered.edits";

/// What is to be checked.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// How much of each store file is read.
    pub depth: Depth,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where: a table, a snapshot, the logs, or the directory.
    pub place: Place,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// A part of a root directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Files of the directory itself, and `hbase:meta`.
    Directory,
    /// A table.
    Table(TableName),
    /// A snapshot.
    Snapshot(String),
    /// The write-ahead logs.
    Logs,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Directory => f.write_str("directory"),
            Place::Table(table) => write!(f, "table {table}"),
            Place::Snapshot(name) => write!(f, "snapshot {name}"),
            Place::Logs => f.write_str("logs"),
        }
    }
}

/// What a table has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableTotals {
    /// The table.
    pub name: TableName,
    /// Its regions, without split parents.
    pub regions: u64,
    /// Its store files, including links and references.
    pub files: u64,
    /// Bytes of its own files, without the targets of links and references.
    pub bytes: u64,
    /// Cells of its own files.
    pub cells: u64,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The tables, by name.
    pub tables: Vec<TableTotals>,
    /// Number of snapshots.
    pub snapshots: u64,
    /// Number of logs.
    pub logs: u64,
    /// What is wrong, in order.
    pub problems: Vec<Problem>,
}

/// Checks the root directory of `fs`, which no server uses. `progress` counts regions.
///
/// # Errors
/// Errors of the file system that concern more than one file. Damage is a problem of the result.
pub async fn check(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    request: Request,
    progress: &dyn Progress,
) -> Result<Checked> {
    let fs: Arc<dyn FileSystem> = Arc::new(ReadOnly(fs.clone()));
    let (checked, read, targets) = (Checked::default(), BTreeSet::new(), Vec::new());
    let mob_files = BTreeMap::new();
    let mut checker = Checker { env, fs, root, request, progress, checked, read, targets, mob_files };
    checker.run().await?;
    checker.checked.problems.sort();
    Ok(checker.checked)
}

struct Checker<'a> {
    env: &'a Env,
    fs: Arc<dyn FileSystem>,
    root: &'a RootDir,
    request: Request,
    progress: &'a dyn Progress,
    checked: Checked,
    /// The store files that were read.
    read: BTreeSet<FilePath>,
    /// The files to which links and references refer.
    targets: Vec<Target>,
    /// The MOB files to which cells of a store refer, with one of the store files.
    mob_files: BTreeMap<(Store, MobFile), FilePath>,
}

/// A table and the name of a family.
type Store = (TableName, Bytes);

/// The file to which a link or a reference of a store refers.
struct Target {
    store: Store,
    path: FilePath,
    bounds: Option<Bounds>,
}

fn order_of(table: &TableName) -> CellOrder {
    if table.is_meta() { CellOrder::Meta } else { CellOrder::Plain }
}

impl Checker<'_> {
    async fn run(&mut self) -> Result<()> {
        let (fs, root) = (self.fs.clone(), self.root);
        let is_root = match root.layout_version(&*fs).await {
            Ok(version) => version.is_some(),
            Err(error) => {
                self.add(Place::Directory, error);
                true
            }
        };
        if !is_root {
            self.add(Place::Directory, "hbase.version is missing: this is no root directory");
            return Ok(());
        }
        self.progress.begin("read hbase:meta", 1);
        match catalog::inspect(self.env, &*fs, root).await {
            Ok(catalog) => self.tables(&catalog).await?,
            Err(error) => self.add(Place::Directory, format!("hbase:meta cannot be read: {error}")),
        }
        self.master_store().await?;
        self.snapshots().await?;
        self.logs().await
    }

    fn add(&mut self, place: Place, what: impl fmt::Display) {
        self.checked.problems.push(Problem { place, what: what.to_string() });
    }

    async fn tables(&mut self, catalog: &Catalog) -> Result<()> {
        let (fs, root) = (self.fs.clone(), self.root);
        for row in &catalog.unreadable {
            self.add(Place::Directory, format!("row {row} of hbase:meta cannot be decoded"));
        }
        let tables = root.list_tables(&*fs).await?;
        self.progress.begin("read store files", catalog.regions.len() as u64 + 1);
        for name in &tables {
            match root.read_table_descriptor(&*fs, name).await {
                Ok(table) => {
                    let totals = self.table(&table, catalog).await?;
                    self.checked.tables.push(totals);
                }
                Err(error) => self.add(Place::Table(name.clone()), error),
            }
        }
        self.targets().await;
        self.mob_files().await;
        for name in catalog.tables.keys().filter(|name| !tables.contains(name)) {
            self.add(Place::Table(name.clone()), "it is in hbase:meta, but has no directory");
        }
        Ok(())
    }

    async fn table(&mut self, table: &TableDescriptor, catalog: &Catalog) -> Result<TableTotals> {
        let (name, fs) = (&table.name, self.fs.clone());
        let place = || Place::Table(name.clone());
        let mut regions = catalog.served_regions(name);
        for problem in coverage::problems(&mut regions) {
            self.add(place(), problem);
        }
        let dirs = self.root.list_region_dirs(&*fs, name).await?;
        for encoded in dirs.iter().filter(|encoded| !catalog.has_dir(name, encoded)) {
            self.add(place(), format!("region {encoded} has a directory, but no row in hbase:meta"));
        }
        let mut totals =
            TableTotals { name: name.clone(), regions: regions.len() as u64, files: 0, bytes: 0, cells: 0 };
        for region in &regions {
            match dirs.contains(&region.encoded_name()) {
                true => self.region(table, region, &mut totals).await,
                false => self.add(place(), format!("region {} has no directory", region.encoded_name())),
            }
            self.progress.advance(1);
        }
        Ok(totals)
    }

    async fn region(&mut self, table: &TableDescriptor, region: &RegionInfo, totals: &mut TableTotals) {
        let (fs, place) = (self.fs.clone(), Place::Table(table.name.clone()));
        let encoded = region.encoded_name();
        match self.root.read_region_info(&*fs, &table.name, &encoded).await {
            Ok(Some(stored)) if stored.encoded_name() == encoded => {}
            Ok(Some(_)) => {
                self.add(place.clone(), format!("region {encoded}: .regioninfo is of another region"));
            }
            // HBase writes none for hbase:meta in some versions.
            Ok(None) if table.name.is_meta() => {}
            Ok(None) => self.add(place.clone(), format!("region {encoded} has no .regioninfo")),
            Err(error) => self.add(place.clone(), error),
        }
        for family in table.families.values() {
            let store = StoreDir { fs: &*fs, root: self.root, region, family: &family.name };
            let files = match file_lists::load(store).await {
                Ok((files, _)) => files,
                Err(error) => {
                    self.add(place.clone(), error);
                    continue;
                }
            };
            for file in files {
                totals.files += 1;
                let store = (table.name.clone(), family.name.clone());
                match file.target == file.path {
                    true => self.store_file(&file.path, store, region, totals).await,
                    false => {
                        let bounds = self.bounds_of_target(region, &file).await;
                        self.targets.push(Target { store, path: file.target, bounds });
                    }
                }
            }
        }
    }

    /// The rows of the file to which a link or a reference of `region` refers: a link has the
    /// bounds of the other region, a reference is to a file of a parent.
    async fn bounds_of_target(&self, region: &RegionInfo, file: &ListedFile) -> Option<Bounds> {
        if file.reference.is_none() {
            return Some(Bounds::of(region));
        }
        let parent = file.target.parent().parent();
        let info = self.root.read_region_info(&*self.fs, &region.table, parent.name()).await;
        info.ok().flatten().map(|parent| Bounds::of(&parent))
    }

    async fn store_file(
        &mut self,
        path: &FilePath,
        store: Store,
        region: &RegionInfo,
        totals: &mut TableTotals,
    ) {
        let (order, bounds) = (order_of(&store.0), Some(Bounds::of(region)));
        match store_file::read(&*self.fs, path, order, bounds, self.request.depth).await {
            Ok(read) => {
                totals.bytes += read.bytes;
                totals.cells += read.cells;
                self.add_read(&store, path, read);
            }
            Err(error) => self.add(Place::Table(store.0), error),
        }
        self.read.insert(path.clone());
    }

    fn add_read(&mut self, store: &Store, path: &FilePath, read: ReadFile) {
        read.problems.into_iter().for_each(|what| self.add(Place::Table(store.0.clone()), what));
        for file in read.mob_files.into_files() {
            self.mob_files.entry((store.clone(), file)).or_insert_with(|| path.clone());
        }
    }

    /// Checks that the MOB files to which cells refer exist, and reads them.
    async fn mob_files(&mut self) {
        let fs = self.fs.clone();
        for (((table, family), file), path) in std::mem::take(&mut self.mob_files) {
            let MobFile { owner, name } = &file;
            let place = Place::Table(table.clone());
            match self.root.find_mob_file(&*fs, &table, owner, &family, name).await {
                Ok(None) => {
                    let what = format!("{path} refers to MOB file {name} of table {owner}, which is missing");
                    self.add(place, what);
                }
                Ok(Some(found)) if self.read.insert(found.clone()) => {
                    let read = store_file::read(&*fs, &found, CellOrder::Plain, None, self.request.depth);
                    match read.await {
                        Ok(read) => {
                            read.problems.into_iter().for_each(|what| self.add(place.clone(), what));
                        }
                        Err(error) => self.add(place, error),
                    }
                }
                Ok(Some(_)) => {}
                Err(error) => self.add(place, error),
            }
        }
    }

    /// Reads the files to which links and references refer and that no region has: they are in the
    /// archive, or in the directory of a split parent.
    async fn targets(&mut self) {
        for Target { store, path, bounds } in std::mem::take(&mut self.targets) {
            if !self.read.insert(path.clone()) {
                continue;
            }
            match store_file::read(&*self.fs, &path, order_of(&store.0), bounds, self.request.depth).await {
                Ok(read) => self.add_read(&store, &path, read),
                Err(error) => self.add(Place::Table(store.0), error),
            }
        }
    }

    /// The files of the master's own region.
    async fn master_store(&mut self) -> Result<()> {
        let fs = self.fs.clone();
        for (path, status) in scratch::walk(&*fs, &self.root.master_data().data_dir()).await? {
            let is_own = matches!(StoreFileName::parse(&status.name), Some(StoreFileName::Own { .. }));
            // Markers such as `.regioninfo` are no store files, nor are the names of sequence ids.
            if status.is_dir || !is_own || path.parent().name() == SEQUENCE_IDS {
                continue;
            }
            match store_file::read(&*fs, &path, CellOrder::Plain, None, self.request.depth).await {
                Ok(read) => read.problems.into_iter().for_each(|what| self.add(Place::Directory, what)),
                Err(error) => self.add(Place::Directory, error),
            }
        }
        Ok(())
    }

    async fn snapshots(&mut self) -> Result<()> {
        let (fs, root) = (self.fs.clone(), self.root);
        let names = root.snapshot_names(&*fs).await?;
        self.progress.begin("read snapshots", names.len() as u64);
        for name in names {
            let place = Place::Snapshot(name.clone());
            match root.find_snapshot(&*fs, &name).await {
                Ok(Some(_)) => self.checked.snapshots += 1,
                // What the removal of a snapshot leaves for a moment.
                Ok(None) => continue,
                Err(error) => self.add(place.clone(), error),
            }
            match root.read_snapshot(&*fs, &name).await {
                Ok(manifest) => {
                    for region in manifest.regions {
                        for (family, files) in &region.families {
                            for file in files {
                                let name = FilePath::new(&file.name);
                                if let Err(error) = root.resolve(&*fs, &region.info, family, &name).await {
                                    self.add(place.clone(), error);
                                }
                            }
                        }
                    }
                }
                Err(error) => self.add(place, error),
            }
            self.progress.advance(1);
        }
        Ok(())
    }

    async fn logs(&mut self) -> Result<()> {
        let fs = self.fs.clone();
        let mut logs = Vec::new();
        for dir in catalog::log_dirs(&*fs, self.root).await? {
            logs.extend(wal::recovery::logs_in(&*fs, &dir).await?);
        }
        self.checked.logs = logs.len() as u64;
        self.progress.begin("read logs", 1);
        match wal::recovery::scan_past_damage(&*fs, &logs).await {
            Ok(index) => index.damaged_parts().iter().for_each(|damage| self.add(Place::Logs, damage)),
            Err(error) => self.add(Place::Logs, error),
        }
        Ok(())
    }
}
