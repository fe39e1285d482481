//! Store file trackers: which files in a family's directory belong to its store, and how that set
//! changes.
//!
//! * [`RenameTracker`] (HBase's `DEFAULT`): every valid store file in the directory. A file is
//!   written elsewhere and renamed into the directory.
//! * [`FileListTracker`] (HBase's `FILE`): the files that a list names. A file is written in place,
//!   and the list is replaced. It suits file systems without an atomic rename.
//!
//! Source: HBase `DefaultStoreFileTracker`, `FileBasedStoreFileTracker`, `StoreFileListFile`.

use std::cmp::Reverse;
use std::fmt;

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
/// The first parts of the names of the two files of which the newer one is the list.
const LIST_NAMES: [&str; 2] = ["f1", "f2"];
/// In names of lists, separates the first part from the generation.
const GENERATION_SEPARATOR: char = '.';
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

    /// Whether the files of a store are in the directory of its region, so that a region without a
    /// directory has no stores.
    fn uses_region_dir(&self) -> bool {
        true
    }

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

/// The store has the files that its list names. It reads lists with names of any version. A store
/// that has a list keeps their form; this value is the form for others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum FileListTracker {
    /// The names of HBase 2.5: `f1` and `f2`. HBase 2.6 does not see such lists.
    #[default]
    Plain,
    /// The names since HBase 2.6: `f1.GENERATION` and `f2.GENERATION`. Each opening of a region
    /// begins a generation, a number that is greater than those before, so that a server that was
    /// replaced cannot overwrite the list of its successor. HBase 2.5 does not see such lists.
    Generations,
}

/// The name of a file with a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ListName {
    /// `None` for a plain name.
    generation: Option<u64>,
    /// Which of the two files.
    slot: usize,
}

impl ListName {
    fn parse(name: &str) -> Option<ListName> {
        let (first, generation) = match name.split_once(GENERATION_SEPARATOR) {
            Some((first, generation)) if generation.bytes().all(|byte| byte.is_ascii_digit()) => {
                (first, Some(generation.parse().ok()?))
            }
            Some(_) => return None,
            None => (name, None),
        };
        Some(ListName { generation, slot: LIST_NAMES.iter().position(|known| *known == first)? })
    }

    /// The file that replaces this one.
    fn next(self) -> ListName {
        ListName { slot: 1 - self.slot, ..self }
    }
}

impl fmt::Display for ListName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(LIST_NAMES[self.slot])?;
        self.generation.map_or(Ok(()), |generation| write!(out, "{GENERATION_SEPARATOR}{generation}"))
    }
}

/// The newest list of a store, and the name of its file.
struct NewestList {
    list: proto::StoreFileList,
    name: ListName,
}

impl FileListTracker {
    /// The newest list. `None` before the first commit.
    async fn newest(store: StoreDir<'_>) -> Result<Option<NewestList>> {
        newest_in(store.fs, &store.path().join(LIST_DIR)).await
    }

    /// The name of the first list of a store.
    fn first_name(self, now_ms: u64) -> ListName {
        ListName { generation: (self == FileListTracker::Generations).then_some(now_ms), slot: 0 }
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
            let (mut entries, name, timestamp_min) = match newest {
                Some(NewestList { list, name }) => {
                    (list.store_file, name.next(), list.timestamp.saturating_add(1))
                }
                None => (Vec::new(), self.first_name(now_ms), 0),
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
            let path = list_dir.join(&name.to_string());
            store.fs.make_dirs(&list_dir).await?;
            store.fs.delete(&path).await?;
            file::write(store.fs, &path, encode_list(&list)).await?;
            store.fs.sync_dir(&list_dir).await?;
            for (old, path) in lists_in(store.fs, &list_dir).await? {
                if old != name {
                    store.fs.delete(&path).await?;
                }
            }
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

/// The files with lists in a directory, the greatest generation first.
async fn lists_in(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<(ListName, FilePath)>> {
    let mut lists = Vec::new();
    // Hidden files are checksums of Hadoop's local file system.
    for entry in file::list(fs, dir).await?.into_iter().filter(|entry| !entry.name.starts_with('.')) {
        let path = dir.join(&entry.name);
        // A list in an unknown form must not count as a missing one.
        let unknown = || "the name of this list of store files".to_string();
        let name = ListName::parse(&entry.name)
            .ok_or_else(|| crate::Error::Unsupported { file: path.clone(), what: unknown() })?;
        lists.push((name, path));
    }
    lists.sort_by_key(|(name, _)| (Reverse(name.generation), name.slot));
    Ok(lists)
}

/// The newest complete list in a directory of lists. Generations that have none do not count.
async fn newest_in(fs: &dyn FileSystem, dir: &FilePath) -> Result<Option<NewestList>> {
    let lists = lists_in(fs, dir).await?;
    for generation in lists.chunk_by(|(one, _), (next, _)| one.generation == next.generation) {
        let mut newest: Option<NewestList> = None;
        for (name, path) in generation {
            let Some(list) = decode_list(path, &file::read(fs, path).await?)? else { continue };
            if newest.as_ref().is_none_or(|newest| newest.list.timestamp < list.timestamp) {
                newest = Some(NewestList { list, name: *name });
            }
        }
        if newest.is_some() {
            return Ok(newest);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lists() {
        for (text, generation, slot) in [
            ("f1", None, 0),
            ("f2", None, 1),
            ("f1.17", Some(17), 0),
            ("f2.1700000000000", Some(1_700_000_000_000), 1),
        ] {
            let name = ListName { generation, slot };
            assert_eq!(ListName::parse(text), Some(name), "{text}");
            assert_eq!(name.to_string(), text);
        }
        for other in ["f3", "f1.", "f1.x", "f1.1.2", "f1.-1", ".f1.crc", "f1.99999999999999999999", ""] {
            assert_eq!(ListName::parse(other), None, "{other}");
        }
    }
}
