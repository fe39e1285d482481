//! Store file trackers: which files in a family's directory belong to its store, and how that set
//! changes.
//!
//! * [`RenameTracker`] (HBase's `DEFAULT`): every valid store file in the directory. A file is
//!   written elsewhere and renamed into the directory.
//! * [`FileListTracker`] (HBase's `FILE`): the files that a list names. A file is written in place,
//!   and the list is replaced. It suits file systems without an atomic rename.
//!
//! Source: HBase `DefaultStoreFileTracker`, `FileBasedStoreFileTracker`, `StoreFileListFile`.

use base::BoxFuture;
use base::checksum::crc32;
use bytes::{BufMut, Bytes, BytesMut};
use cell::region::RegionInfo;
use fs::{FilePath, FileStatus, FileSystem};
use prost::Message;

use crate::store::ListedFile;
use crate::{Result, RootDir, corrupt, file};

/// The directory of the lists, within a family's directory.
pub const LIST_DIR: &str = ".filelist";
/// The two files of which the newer one is the list.
const LIST_NAMES: [&str; 2] = ["f1", "f2"];
/// The version of the list's format.
const LIST_VERSION: u64 = 1;

/// One store: a family of a region.
#[derive(Clone, Copy)]
pub struct StoreDir<'a> {
    /// The file system of the root directory.
    pub fs: &'a dyn FileSystem,
    /// The root directory.
    pub root: &'a RootDir,
    /// The region.
    pub region: &'a RegionInfo,
    /// The family's name.
    pub family: &'a [u8],
}

impl StoreDir<'_> {
    fn path(&self) -> FilePath {
        self.root.family_dir(self.region, self.family)
    }
}

/// Knows the files of stores. Only one process changes a store at a time.
pub trait StoreFileTracker: Send + Sync + 'static {
    /// The directory in which a new file is written, before [`commit`](Self::commit) adds it.
    fn output_dir(&self, store: StoreDir<'_>) -> FilePath;

    /// The files of a store.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a file of the store is missing, or the list is
    /// damaged.
    fn load<'a>(&'a self, store: StoreDir<'a>) -> BoxFuture<'a, Result<Vec<ListedFile>>>;

    /// Adds complete, synced files of [`output_dir`](Self::output_dir), and removes others,
    /// durably. The caller archives the removed files.
    ///
    /// # Errors
    /// What the file system reports, and [`Error::Corrupt`](crate::Error::Corrupt) if a file of
    /// `added` is missing or the list is damaged. After an error, it is unknown which of `added`
    /// are in the store: some, all or none.
    fn commit<'a>(
        &'a self,
        store: StoreDir<'a>,
        added: &'a [&'a str],
        removed: &'a [&'a str],
        now_ms: u64,
    ) -> BoxFuture<'a, Result<()>>;
}

/// The store has every store file in its directory.
#[derive(Debug, Default, Clone, Copy)]
pub struct RenameTracker;

impl StoreFileTracker for RenameTracker {
    fn output_dir(&self, store: StoreDir<'_>) -> FilePath {
        store.root.family_tmp_dir(store.region, store.family)
    }

    fn load<'a>(&'a self, store: StoreDir<'a>) -> BoxFuture<'a, Result<Vec<ListedFile>>> {
        Box::pin(store.root.list_store_files(store.fs, store.region, store.family))
    }

    fn commit<'a>(
        &'a self,
        store: StoreDir<'a>,
        added: &'a [&'a str],
        _removed: &'a [&'a str],
        _now_ms: u64,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (from, to) = (self.output_dir(store), store.path());
            for name in added {
                store.fs.rename(&from.join(name), &to.join(name)).await?;
            }
            Ok(store.fs.sync_dir(&to).await?)
        })
    }
}

/// The store has the files that its list names.
#[derive(Debug, Default, Clone, Copy)]
pub struct FileListTracker;

/// The newest list of a store, and which of the two files has it.
struct NewestList {
    list: proto::StoreFileList,
    slot: usize,
}

impl FileListTracker {
    /// The newest list. `None` before the first commit.
    async fn newest(store: StoreDir<'_>) -> Result<Option<NewestList>> {
        newest_in(store.fs, &store.path().join(LIST_DIR)).await
    }
}

impl StoreFileTracker for FileListTracker {
    fn output_dir(&self, store: StoreDir<'_>) -> FilePath {
        store.path()
    }

    fn load<'a>(&'a self, store: StoreDir<'a>) -> BoxFuture<'a, Result<Vec<ListedFile>>> {
        Box::pin(async move {
            let Some(NewestList { list, .. }) = FileListTracker::newest(store).await? else {
                return Ok(Vec::new());
            };
            let present: Vec<FileStatus> = file::list(store.fs, &store.path()).await?;
            let mut files = Vec::new();
            for entry in list.store_file {
                // A damaged name could lead elsewhere, so only names in the directory become paths.
                let status = present.iter().find(|status| status.name == entry.name && !status.is_dir);
                let missing = || format!("lacks the listed file {:?}", entry.name);
                let status = status.ok_or_else(|| corrupt(&store.path(), missing()))?;
                let path = store.path().join(&status.name);
                let listed = store
                    .root
                    .describe_store_file(store.fs, store.region, store.family, status.clone())
                    .await?;
                files
                    .push(listed.ok_or_else(|| {
                        corrupt(&path, "is in the list of the store, but not a store file")
                    })?);
            }
            Ok(files)
        })
    }

    fn commit<'a>(
        &'a self,
        store: StoreDir<'a>,
        added: &'a [&'a str],
        removed: &'a [&'a str],
        now_ms: u64,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let dir = store.path();
            let newest = FileListTracker::newest(store).await?;
            let (mut entries, slot, timestamp_min) = match newest {
                Some(NewestList { list, slot }) => {
                    (list.store_file, 1 - slot, list.timestamp.saturating_add(1))
                }
                None => (Vec::new(), 0, 0),
            };
            entries.retain(|entry| !removed.contains(&&*entry.name) && !added.contains(&&*entry.name));
            let present = file::list(store.fs, &dir).await?;
            for name in added {
                let status = present.iter().find(|status| status.name == **name);
                let status = status.ok_or_else(|| corrupt(&dir.join(name), "is to be added, but missing"))?;
                entries.push(proto::StoreFileEntry { name: (*name).to_string(), size: status.len });
            }
            let list = proto::StoreFileList {
                timestamp: now_ms.max(timestamp_min),
                store_file: entries,
                version: Some(LIST_VERSION),
            };
            // The names of the added files become durable before the list that names them.
            store.fs.sync_dir(&dir).await?;
            let list_dir = dir.join(LIST_DIR);
            let path = list_dir.join(LIST_NAMES[slot]);
            store.fs.make_dirs(&list_dir).await?;
            store.fs.delete(&path).await?;
            file::write(store.fs, &path, encode_list(&list)).await?;
            store.fs.sync_dir(&list_dir).await?;
            store.fs.delete(&list_dir.join(LIST_NAMES[1 - slot])).await?;
            store.fs.sync_dir(&list_dir).await?;
            Ok(store.fs.sync_dir(&dir).await?)
        })
    }
}

/// `u32 length | StoreFileList | u32 CRC-32 of the message`, big-endian.
fn encode_list(list: &proto::StoreFileList) -> Bytes {
    let message = list.encode_to_vec();
    let mut content = BytesMut::with_capacity(message.len() + 2 * size_of::<u32>());
    content.put_u32(u32::try_from(message.len()).expect("the length of a list fits into 32 bits"));
    content.put_slice(&message);
    content.put_u32(crc32(&message));
    content.freeze()
}

/// Decodes a list. `None` for one that is truncated: it was never complete.
fn decode_list(path: &FilePath, content: &Bytes) -> Result<Option<proto::StoreFileList>> {
    let Some((len, rest)) = content.split_first_chunk() else { return Ok(None) };
    let len = u32::from_be_bytes(*len) as usize;
    let Some((message, rest)) = rest.split_at_checked(len) else { return Ok(None) };
    let Some((checksum, _)) = rest.split_first_chunk() else { return Ok(None) };
    if crc32(message) != u32::from_be_bytes(*checksum) {
        return Err(corrupt(path, "checksum does not match"));
    }
    let list = proto::StoreFileList::decode(message);
    list.map(Some).map_err(|_| corrupt(path, "is not a list of store files"))
}

/// The names in the newest list of the family directory `dir`; none if it has no complete list.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) for a damaged list.
pub async fn listed_names(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<String>> {
    let newest = newest_in(fs, &dir.join(LIST_DIR)).await?;
    Ok(newest
        .map_or(Vec::new(), |newest| newest.list.store_file.into_iter().map(|entry| entry.name).collect()))
}

/// The newest complete list in a directory of lists.
async fn newest_in(fs: &dyn FileSystem, dir: &FilePath) -> Result<Option<NewestList>> {
    // HBase 2.6 adds a timestamp to the names. Such a list must not count as a missing one.
    let is_unknown = |name: &str| !name.starts_with('.') && !LIST_NAMES.contains(&name);
    if let Some(other) = file::list(fs, dir).await?.into_iter().find(|entry| is_unknown(&entry.name)) {
        let what = "the form of this list of store files (HBase 2.6)".to_string();
        return Err(crate::Error::Unsupported { file: dir.join(&other.name), what });
    }
    let mut newest: Option<NewestList> = None;
    for (slot, name) in LIST_NAMES.into_iter().enumerate() {
        let path = dir.join(name);
        let content = match file::read(fs, &path).await {
            Ok(content) => content,
            Err(crate::Error::Fs(fs::Error::NotFound { .. })) => continue,
            Err(error) => return Err(error),
        };
        let Some(list) = decode_list(&path, &content)? else { continue };
        if newest.as_ref().is_none_or(|newest| newest.list.timestamp < list.timestamp) {
            newest = Some(NewestList { list, slot });
        }
    }
    Ok(newest)
}
