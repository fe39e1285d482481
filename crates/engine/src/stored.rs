//! Reads the store files of regions that another process may serve, without writing a byte.
//!
//! The reader sees a region as of the last flush of each family: neither memstores nor logs. The
//! server may flush, compact and archive at any time. What keeps a reader correct:
//!
//! * Store files do not change, and get their names when they are complete.
//! * A compacted file lists its inputs. A reader that finds both ignores the inputs, as a server
//!   does when it opens a region.
//! * The server adds the output of a compaction before it archives an input. A reader lists a
//!   store, opens its files, and lists it again. If both lists are equal, each file that was in the
//!   store during the second listing is open. Otherwise the reader starts over.
//! * An open file of a local disk stays readable after it was archived or deleted. On another file
//!   system, a scan may fail with [`fs::Error::NotFound`]; the caller opens the region again, and
//!   continues after the last row.
//!
//! Not here: which regions a table has, because splits and merges change that
//! (`adoption::stored`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::metrics::Counts;
use bytes::Bytes;
use cell::query::Scan;
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor};
use fs::FileSystem;
use layout::region::RegionDir;
use layout::store::ListedFile;
use layout::{RootDir, StoreDir, StoreFileTracker};

use crate::caching::Caching;
use crate::error::{Error, Result};
use crate::instruments::StoreCounts;
use crate::memstore::Memstore;
use crate::mob::{MobFiles, MobResolver, MobServices};
use crate::mvcc::Mvcc;
use crate::region::{FileCache, RegionOptions, limit_to_region, open_listed, partition_replaced};
use crate::scanner::{
    BlockLoader, CellList, FamilyRules, Limits, RegionScanner, ScannerParts, Stopped, drive,
};
use crate::store::{StoreFile, StoreView};

/// How often opening a store may fail: files move to the archive while it is opened.
const ERRORS_MAX: u32 = 10;
/// How often a store may change while it is opened.
const CHANGES_MAX: u32 = 500;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Lists the store files of a region that is not open, without those that another file replaces:
/// they stay in the store if they could not be archived. A file that cannot be read is listed, and
/// counts as replacing nothing.
///
/// # Errors
/// [`Error::Corrupt`] for an empty file, or if the disk of a file is missing; errors of the file
/// system.
pub async fn files_in_use(
    fs: &dyn FileSystem,
    root: &RootDir,
    info: &RegionInfo,
    family: &[u8],
) -> Result<Vec<ListedFile>> {
    let mut listed = root.list_store_files(fs, info, family).await?;
    if let Some(file) = listed.iter().find(|file| file.len == 0) {
        // The error of opening it names the disk.
        open_listed(fs, root, None, info, family, file).await?;
        return Err(Error::corrupt(&file.path, 0, "its length could not be read"));
    }
    if listed.len() < 2 {
        return Ok(listed);
    }
    let mut files = Vec::with_capacity(listed.len());
    for file in &listed {
        match open_listed(fs, root, None, info, family, file).await {
            Ok(file) => files.push(file),
            Err(
                Error::Corrupt { .. } | Error::Unsupported { .. } | Error::Fs(fs::Error::NotFound { .. }),
            ) => {}
            Err(error) => return Err(error),
        }
    }
    let (replaced, _) = partition_replaced(files);
    listed.retain(|file| replaced.iter().all(|replaced| replaced.name() != file.path.name()));
    Ok(listed)
}

/// What regions are read with. Clones share the caches.
#[derive(Clone)]
pub struct StoredRegions {
    /// Clock and random numbers.
    pub env: Env,
    /// The file system. Nothing is written to it.
    pub fs: Arc<dyn FileSystem>,
    /// The root directory.
    pub root: RootDir,
    /// Which files belong to a store.
    pub tracker: Arc<dyn StoreFileTracker>,
    /// Reads blocks of files through the cache.
    pub loader: Arc<BlockLoader>,
    /// The open MOB files.
    pub mob: Arc<MobFiles>,
}

/// The store files of a region at one moment.
pub struct StoredRegion {
    shared: StoredRegions,
    info: RegionInfo,
    table: Arc<TableDescriptor>,
    rules: Vec<FamilyRules>,
    stores: Vec<StoreView>,
    mvcc: Arc<Mvcc>,
    mob: Option<Arc<MobResolver>>,
    counts: Arc<[Counts<StoreCounts>]>,
}

impl StoredRegions {
    /// Opens all store files of a region.
    ///
    /// # Errors
    /// [`fs::Error::NotFound`] if the region has no directory or is being archived;
    /// [`Error::Corrupt`] and [`Error::Unsupported`] for a file that cannot be read; errors of the
    /// file system.
    pub async fn open(&self, table: Arc<TableDescriptor>, info: RegionInfo) -> Result<StoredRegion> {
        let families: Vec<FamilyDescriptor> = table.families.values().cloned().collect();
        let mut stores = Vec::with_capacity(families.len());
        for family in &families {
            let files = self.open_store(&info, family).await?;
            stores.push(StoreView::new(Arc::new(Memstore::new(table.order())), files));
        }
        let has_mob = families.iter().any(FamilyDescriptor::is_mob);
        let mob = has_mob.then(|| Arc::new(MobResolver::new(self.mob_services(), info.table.clone())));
        Ok(StoredRegion {
            shared: self.clone(),
            info,
            table,
            rules: families.iter().map(FamilyRules::of).collect(),
            stores,
            // Every cell in a file is durable and visible.
            mvcc: Mvcc::new(i64::MAX as u64),
            mob,
            counts: families.iter().map(|_| Counts::default()).collect(),
        })
    }

    fn mob_services(&self) -> MobServices {
        MobServices {
            env: self.env.clone(),
            fs: self.fs.clone(),
            root: self.root.clone(),
            loader: self.loader.clone(),
            mob: self.mob.clone(),
        }
    }

    /// Opens the files of a store, until no file was added or removed meanwhile.
    async fn open_store(&self, info: &RegionInfo, family: &FamilyDescriptor) -> Result<Vec<Arc<StoreFile>>> {
        let (mut changes, mut errors) = (0, 0);
        loop {
            match self.try_open_store(info, family).await {
                Ok(Some(files)) => return Ok(files),
                Ok(None) if changes == CHANGES_MAX => {
                    let what = "its store files change faster than they can be opened".to_string();
                    return Err(Error::TooBusy { region: info.encoded_name().into(), what });
                }
                Ok(None) => changes += 1,
                Err(error) if errors == ERRORS_MAX => return Err(error),
                Err(error @ Error::Unsupported { .. }) => return Err(error),
                // A file that moved, or damage, which the last attempt reports.
                Err(_) => errors += 1,
            }
            self.env.clock.sleep(PAUSE).await;
        }
    }

    async fn try_open_store(
        &self,
        info: &RegionInfo,
        family: &FamilyDescriptor,
    ) -> Result<Option<Vec<Arc<StoreFile>>>> {
        let (fs, root, name) = (&*self.fs, &self.root, &family.name);
        let store = StoreDir { fs, root, region: info, family: name };
        let cache = FileCache { loader: &self.loader, caching: Caching::default() };
        let listed = self.tracker.load(store).await?;
        let mut files = Vec::with_capacity(listed.len());
        for file in &listed {
            files.push(open_listed(fs, root, Some(cache), info, name, file).await?);
        }
        let again = self.tracker.load(store).await?;
        if self.tracker.uses_region_dir()
            && let RegionDir::Archiving | RegionDir::Missing = root.region_dir_state(fs, info).await?
        {
            return Err(fs::Error::NotFound { path: root.region_dir(info) }.into());
        }
        let paths = |listed: &[layout::store::ListedFile]| {
            listed.iter().map(|file| file.path.as_str().to_string()).collect::<BTreeSet<_>>()
        };
        let (_, kept) = partition_replaced(files);
        Ok((paths(&listed) == paths(&again)).then_some(kept))
    }
}

impl StoredRegion {
    /// The region.
    pub fn info(&self) -> &RegionInfo {
        &self.info
    }

    /// The names of the files of a family, sorted.
    ///
    /// # Errors
    /// [`Error::NoSuchFamily`].
    pub fn files(&self, family: &[u8]) -> Result<Vec<&str>> {
        let at = self.store_of(family)?;
        let mut names: Vec<&str> = self.stores[at].files.iter().map(|file| file.name()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The sequence id up to which all edits of a family are in its files; 0 if it has no files.
    ///
    /// # Errors
    /// [`Error::NoSuchFamily`].
    pub fn flushed_seq_id(&self, family: &[u8]) -> Result<u64> {
        Ok(self.stores[self.store_of(family)?].max_file_seq_id())
    }

    fn store_of(&self, family: &[u8]) -> Result<usize> {
        self.rules.iter().position(|rules| rules.family == family).ok_or_else(|| Error::NoSuchFamily {
            region: self.info.encoded_name().into(),
            family: Bytes::copy_from_slice(family),
        })
    }

    /// A scanner of the rows of `scan` in this region, for [`drive`].
    ///
    /// # Errors
    /// [`Error::NoSuchFamily`], [`Error::BadRequest`]. Nothing is read yet.
    pub fn scanner(&self, scan: &Scan) -> Result<RegionScanner> {
        for columns in &scan.selection.columns {
            self.store_of(&columns.family)?;
        }
        let StoredRegions { env, loader, .. } = &self.shared;
        let parts = ScannerParts {
            order: self.table.order(),
            guard: self.mvcc.register_reader(None),
            now_ms: env.clock.now_ms() as i64,
            loader: loader.clone(),
            store_bytes_max: RegionOptions::default().row_bytes_max,
            pins_views: true,
            seed: env.random.next_u64(),
            clock: env.clock.clone(),
            mob: self.mob.clone(),
            counts: self.counts.clone(),
        };
        RegionScanner::new(self.rules.iter().zip(&self.stores), &limit_to_region(scan, &self.info), parts)
    }

    /// Reads all results of a scan into a list, for tests and tools that expect few of them.
    ///
    /// # Errors
    /// As [`scanner`](Self::scanner), and errors of reading files.
    pub async fn scan_all(&self, scan: &Scan) -> Result<CellList> {
        let mut scanner = self.scanner(scan)?;
        let mut list = CellList::default();
        while drive(&mut scanner, &mut Limits::default(), &mut list).await?.stopped != Stopped::Exhausted {}
        Ok(list)
    }
}
