//! Opening store files.

use std::sync::Arc;

use cell::CellOrder;
use cell::region::RegionInfo;
use fs::FileSystem;
use hfile::{OpenOptions, Reader};
use layout::store::ListedFile;
use layout::{Inventory, RootDir, StoreDir, StoreFileTracker};
use tracing::warn;

use crate::caching::Caching;
use crate::error::{Error, Result};
use crate::region::Region;
use crate::scanner::{BlockLoader, next_file_id};
use crate::store::StoreFile;

/// The cache for the blocks of files, and which blocks it caches.
#[derive(Clone, Copy)]
pub(crate) struct FileCache<'a> {
    pub(crate) loader: &'a BlockLoader,
    pub(crate) caching: Caching,
}

/// Opens one file of a store.
async fn open_file(
    fs: &dyn FileSystem,
    cache: Option<FileCache<'_>>,
    listed: &ListedFile,
    order: CellOrder,
) -> Result<Arc<StoreFile>> {
    let options = OpenOptions { order: Some(order), assigned_seq_id: listed.bulk_load_seq_id };
    let file_id = match cache {
        Some(FileCache { loader, caching }) => loader.file_id(&listed.target, caching),
        None => next_file_id(),
    };
    let reader = Reader::open(fs, &listed.target, file_id, options).await?;
    let seq_id = listed.bulk_load_seq_id.or(reader.info().max_seq_id).unwrap_or(0);
    let file = StoreFile::new(reader, seq_id, listed.modified_ms).with_path(listed.path.clone());
    Ok(Arc::new(match &listed.reference {
        Some(reference) => file.with_reference(reference),
        None => file,
    }))
}

/// Opens one file of a store. If it is a link or a reference and its target moved to the archive in
/// the meantime, resolves it again.
///
/// # Errors
/// As [`Reader::open`]. A file whose disk is missing counts as damaged: another attempt alone does
/// not help.
pub(crate) async fn open_listed(
    fs: &dyn FileSystem,
    root: &RootDir,
    cache: Option<FileCache<'_>>,
    info: &RegionInfo,
    family: &[u8],
    listed: &ListedFile,
) -> Result<Arc<StoreFile>> {
    let order = info.table.order();
    let opened = match open_file(fs, cache, listed, order).await {
        Err(Error::Fs(fs::Error::NotFound { .. })) if listed.path != listed.target => {
            let (target, _) = root.resolve(fs, info, family, &listed.path).await?;
            open_file(fs, cache, &ListedFile { target, ..listed.clone() }, order).await
        }
        opened => opened,
    };
    match opened {
        Err(Error::Fs(error)) if listed.len == 0 => {
            Err(Error::corrupt(&listed.path, 0, format!("its bytes are missing: {error}")))
        }
        opened => opened,
    }
}

/// Separates the files that another file of the store lists as its inputs from the others.
///
/// The list of a file that is itself replaced does not count. It may be the output of a failed
/// compaction, whose inputs stayed in use. A file that replaces it lists all files that it
/// replaces.
pub(crate) fn partition_replaced(files: Vec<Arc<StoreFile>>) -> (Vec<Arc<StoreFile>>, Vec<Arc<StoreFile>>) {
    // A bulk loaded file may name files that it replaced in another store.
    let own: Vec<&Arc<StoreFile>> = files.iter().filter(|file| !file.is_bulk_loaded()).collect();
    let lists = |file: &StoreFile, name: &str| file.reader().info().compacted_files.iter().any(|f| f == name);
    let is_replaced = |file: &StoreFile| own.iter().any(|other| lists(other, file.name()));
    let replaced: Vec<String> = own
        .iter()
        .filter(|file| !is_replaced(file))
        .flat_map(|file| file.reader().info().compacted_files.iter().cloned())
        .collect();
    files.into_iter().partition(|file| replaced.iter().any(|name| name == file.name()))
}

/// The files of a store.
pub(crate) struct OpenedFiles {
    pub(crate) files: Vec<Arc<StoreFile>>,
    /// Names of files that another one replaces, and that are still in the store's directory. The
    /// output of the next compaction must list them as replaced, too: once the file that lists them
    /// is compacted away, nothing else does.
    pub(crate) unarchived: Vec<String>,
}

/// Opens the files of a family. Archives the files that another file lists as replaced. Without
/// `cache`, no blocks are cached.
///
/// # Errors
/// As [`Reader::open`]; [`Error::Corrupt`] if a file in the region's `inventory` is missing. One
/// file that cannot be opened makes the whole store unavailable.
pub(crate) async fn open_files(
    tracker: &dyn StoreFileTracker,
    fs: &dyn FileSystem,
    root: &RootDir,
    cache: Option<FileCache<'_>>,
    info: &RegionInfo,
    inventory: Option<&Inventory>,
    family: &[u8],
) -> Result<OpenedFiles> {
    let mut files = Vec::new();
    for listed in tracker.load(StoreDir { fs, root, region: info, family }).await? {
        files.push(open_listed(fs, root, cache, info, family, &listed).await?);
    }
    let (gone, kept) = partition_replaced(files);
    let gone: Vec<&str> = gone.iter().map(|file| file.name()).collect();
    let kept_names: Vec<&str> = kept.iter().map(|file| file.name()).collect();
    if let Some(inventory) = inventory {
        root.check_whole(fs, info, family, inventory, (&kept_names, &gone)).await?;
    }
    let mut unarchived = Vec::new();
    if let Err(error) = root.archive_store_files(fs, info, family, &gone).await {
        warn!(region = %info.encoded_name(), names = ?gone, %error,
            "cannot archive compacted files; will retry");
        unarchived = gone.iter().map(|name| name.to_string()).collect();
    }
    Ok(OpenedFiles { files: kept, unarchived })
}

impl Region {
    /// Opens a file that was moved into the store `at`. A bulk load assigns a sequence id.
    pub(super) async fn open_moved_in(
        &self,
        at: usize,
        name: &str,
        bulk_load_seq_id: Option<u64>,
    ) -> Result<Arc<StoreFile>> {
        let fs = &*self.services.fs;
        let dir = self.services.root.family_dir(&self.info, &self.families[at].name);
        let modified_ms = self.services.env.clock.now_ms();
        let path = dir.join(name);
        let reference = None;
        let listed =
            ListedFile { target: path.clone(), path, len: 0, modified_ms, bulk_load_seq_id, reference };
        let cache = FileCache { loader: &self.services.loader, caching: self.caching(at) };
        open_file(fs, Some(cache), &listed, self.table.order()).await
    }
}
