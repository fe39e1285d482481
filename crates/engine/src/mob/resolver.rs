//! Finds the value to which a reference points.
//!
//! Source: HBase `HMobStore.resolve`, `MobFile.readCell`.

use std::sync::Arc;

use base::env::Env;
use base::spent::{self, Phase};
use bytes::Bytes;
use cell::query::MobReads;
use cell::schema::TableName;
use cell::{Cell, CellOrder};
use fs::{FilePath, FileSystem};
use hfile::{OpenOptions, Reader, Stop};
use layout::RootDir;

use crate::caching::Caching;
use crate::error::{Error, Result};
use crate::mob::open_files::MobFiles;
use crate::mob::reference::{MobReference, is_reference};
use crate::region::RegionServices;
use crate::scanner::{BlockLoader, CachePolicy, Order, ScannerBlocks, Source};
use crate::store::StoreFile;

/// What a resolver reads with.
pub(crate) struct MobServices {
    pub(crate) env: Env,
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) root: RootDir,
    pub(crate) loader: Arc<BlockLoader>,
    pub(crate) mob: Arc<MobFiles>,
}

impl From<&RegionServices> for MobServices {
    fn from(services: &RegionServices) -> MobServices {
        MobServices {
            env: services.env.clone(),
            fs: services.fs.clone(),
            root: services.root.clone(),
            loader: services.loader.clone(),
            mob: services.mob.clone(),
        }
    }
}

/// Resolves references in the cells of one table.
pub(crate) struct MobResolver {
    services: MobServices,
    table: TableName,
    order: CellOrder,
}

/// The value of a cell, and the tags that were stored with it.
#[derive(Clone, Debug)]
pub(crate) struct MobValue {
    pub(crate) value: Bytes,
    pub(crate) tags: Bytes,
}

impl MobValue {
    /// The cell that a client sees in place of `reference`.
    pub(crate) fn in_place_of<'a>(&'a self, reference: &Cell<'a>) -> Cell<'a> {
        Cell { value: &self.value, tags: &self.tags, ..*reference }
    }
}

impl MobResolver {
    pub(crate) fn new(services: MobServices, table: TableName) -> MobResolver {
        let order = table.order();
        MobResolver { services, table, order }
    }

    /// The value of a cell that is a reference. `None` if it is missing, and the read wants an
    /// empty value then.
    ///
    /// # Errors
    /// [`Error::MobMissing`] for a malformed reference, a missing file, or a file without the cell;
    /// errors of reading the file.
    pub(crate) async fn resolve(&self, reference: &Cell<'_>, reads: MobReads) -> Result<Option<MobValue>> {
        debug_assert!(is_reference(reference.tags), "only references are resolved");
        match self.read(reference, reads).await {
            Err(Error::MobMissing { .. }) if reads.empty_if_missing => Ok(None),
            read => read.map(Some),
        }
    }

    async fn read(&self, cell: &Cell<'_>, reads: MobReads) -> Result<MobValue> {
        let Some(reference) = MobReference::parse(cell) else {
            return Err(self.missing(cell, "the reference is malformed".into()));
        };
        let mut is_new = false;
        loop {
            let file = match self.services.mob.get(reference.file).filter(|_| !is_new) {
                Some(file) => file,
                None => {
                    is_new = true;
                    self.open(cell, &reference).await?
                }
            };
            match self.read_cell(&file, cell, reads).await {
                // The file may have moved to the archive since it was opened.
                Err(Error::Fs(fs::Error::NotFound { .. })) if !is_new => {
                    self.services.mob.remove(reference.file);
                    is_new = true;
                }
                Err(error) => {
                    self.services.mob.remove(reference.file);
                    return Err(error);
                }
                Ok(Some(value)) if value.value.len() == reference.len as usize => {
                    let counts = self.services.mob.instruments();
                    counts.scanned_cells.increment();
                    counts.scanned_bytes.add(value.value.len() as u64);
                    return Ok(value);
                }
                Ok(Some(value)) => {
                    let what = format!(
                        "MOB value has {} bytes, but its reference states {}",
                        value.value.len(),
                        reference.len
                    );
                    return Err(Error::corrupt(file.path(), 0, what));
                }
                Ok(None) => {
                    return Err(self.missing(cell, format!("{} does not contain the cell", file.path())));
                }
            }
        }
    }

    /// The length in bytes of the MOB file of a reference.
    ///
    /// # Errors
    /// As [`MobResolver::resolve`].
    pub(crate) async fn file_len(&self, cell: &Cell<'_>) -> Result<u64> {
        let Some(reference) = MobReference::parse(cell) else {
            return Err(self.missing(cell, "the reference is malformed".into()));
        };
        match self.services.mob.get(reference.file) {
            Some(file) => Ok(file.len()),
            None => Ok(self.open(cell, &reference).await?.len()),
        }
    }

    async fn open(&self, cell: &Cell<'_>, reference: &MobReference<'_>) -> Result<Arc<StoreFile>> {
        let (fs, root) = (&*self.services.fs, &self.services.root);
        // A file may move to the archive between the search and the open.
        for _ in 0..2 {
            let (owner, name) = (&reference.owner, reference.file);
            let Some(path) = root.find_mob_file(fs, &self.table, owner, cell.family(), name).await? else {
                return Err(self.missing(cell, format!("no MOB file {name} of table {owner} exists")));
            };
            match self.open_at(&path).await {
                Err(Error::Fs(fs::Error::NotFound { .. })) => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    self.services.mob.add(name, &file);
                    return Ok(file);
                }
            }
        }
        Err(self.missing(cell, format!("MOB file {} moves while it is read", reference.file)))
    }

    /// Opens a MOB file.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub(crate) async fn open_at(&self, path: &FilePath) -> Result<Arc<StoreFile>> {
        let file_id = self.services.loader.file_id(path, Caching::default());
        let options = OpenOptions { order: Some(self.order), assigned_seq_id: None };
        let reader = Reader::open(&*self.services.fs, path, file_id, options).await?;
        Ok(Arc::new(StoreFile::new(reader, 0, 0)))
    }

    /// The value of the cell in a MOB file; `None` if the file does not have the cell.
    async fn read_cell(
        &self,
        file: &StoreFile,
        cell: &Cell<'_>,
        reads: MobReads,
    ) -> Result<Option<MobValue>> {
        if cell.seq_id > 0
            && let Some(found) = self.read_at(file, cell, cell.seq_id, reads).await?
        {
            return Ok(Some(found));
        }
        // A compaction or a bulk load may have changed the sequence id of the reference.
        self.read_at(file, cell, u64::MAX, reads).await
    }

    /// The newest cell with the key of `cell` and a sequence id up to `read_point`.
    async fn read_at(
        &self,
        file: &StoreFile,
        cell: &Cell<'_>,
        read_point: u64,
        reads: MobReads,
    ) -> Result<Option<MobValue>> {
        let policy = if reads.cache_blocks { CachePolicy::All } else { CachePolicy::IndexesOnly };
        let mut blocks = ScannerBlocks::new(self.services.loader.clone());
        let mut source = Source::file(file, read_point, None);
        source.order(Order::Seek);
        loop {
            match source.settle(self.order, cell.key, &blocks) {
                Ok(()) => break,
                Err(Stop::Miss(miss)) => {
                    let load = self.services.loader.load_missed(&miss, None, policy);
                    let loaded = spent::timed_wait(Phase::Disk, &*self.services.env.clock, load).await?;
                    for block in loaded {
                        BlockLoader::count_read(&block);
                        blocks.supply(block);
                    }
                }
                Err(Stop::Failed(error)) => {
                    self.services.loader.record_damage(&error);
                    return Err(error.into());
                }
            }
        }
        let found = source.cell().filter(|found| found.key == cell.key && !is_reference(found.tags));
        Ok(found.map(|found| MobValue {
            value: source.large_value().unwrap_or_else(|| Bytes::copy_from_slice(found.value)),
            tags: Bytes::copy_from_slice(found.tags),
        }))
    }

    fn missing(&self, cell: &Cell<'_>, why: String) -> Error {
        let (row, family, qualifier) =
            (cell.row().escape_ascii(), cell.family().escape_ascii(), cell.qualifier().escape_ascii());
        let timestamp = cell.timestamp();
        let what = format!(
            "cannot read the MOB value of {row}/{family}:{qualifier}/{timestamp} of table {}: {why}",
            self.table
        );
        Error::MobMissing { what }
    }
}
