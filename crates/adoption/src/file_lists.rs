//! Stores with HBase's store file tracker FILE: their files are those in a list, `.filelist`.
//!
//! A server of Grampus takes all files in the directory of a store. So an adoption moves files that
//! are not in the list to the archive, where HBase's own cleaner would put them, and removes the
//! list. A release writes new lists.

use std::sync::Arc;

use base::BoxFuture;
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::store::{ListedFile, StoreFileName};
use layout::tracker::LIST_DIR;
use layout::{FileListTracker, RenameTracker, RootDir, StoreDir, StoreFileTracker};

use crate::Result;
use crate::scratch::{list, walk};

/// The key with which a table or family chooses its tracker.
pub(crate) const KEY: &str = "hbase.store.file-tracker.impl";
/// Values of the key whose stores need a list. During a migration, HBase reads one of the two.
const WITH_LIST: [&str; 2] = ["FILE", "MIGRATION"];
/// The end of the class name that may be used instead.
const CLASS: &str = "FileBasedStoreFileTracker";

/// Whether HBase expects a list in the stores of a family.
pub fn needs_list(table: &TableDescriptor, family: &FamilyDescriptor) -> bool {
    let value = family.configuration.get(KEY).map(String::as_str);
    let value = value.or_else(|| text(family.attributes.get(KEY.as_bytes())));
    let value = value.or_else(|| table.configuration.get(KEY).map(String::as_str));
    let value = value.or_else(|| text(table.attributes.get(KEY.as_bytes())));
    value.is_some_and(|value| {
        WITH_LIST.contains(&value.to_ascii_uppercase().as_str()) || value.ends_with(CLASS)
    })
}

fn text(value: Option<&bytes::Bytes>) -> Option<&str> {
    std::str::from_utf8(value?).ok()
}

/// The files of a store, whichever tracker it has, and whether it has a list.
///
/// # Errors
/// As [`StoreFileTracker::load`].
pub async fn load(store: StoreDir<'_>) -> layout::Result<(Vec<ListedFile>, bool)> {
    let list_dir = store.root.family_dir(store.region, store.family).join(LIST_DIR);
    Ok(match store.fs.stat(&list_dir).await? {
        Some(_) => (FileListTracker::default().load(store).await?, true),
        None => (RenameTracker.load(store).await?, false),
    })
}

/// Reads stores of any tracker: a store has the files of its list, or all files in its directory if
/// it has no list.
pub struct DetectedTracker;

impl StoreFileTracker for DetectedTracker {
    fn output_dir(&self, store: StoreDir<'_>) -> FilePath {
        RenameTracker.output_dir(store)
    }

    fn load<'a>(&'a self, store: StoreDir<'a>) -> BoxFuture<'a, layout::Result<Vec<ListedFile>>> {
        Box::pin(async move { Ok(load(store).await?.0) })
    }

    fn commit<'a>(
        &'a self,
        store: StoreDir<'a>,
        _: &'a [&'a str],
        _: &'a [&'a str],
        _: u64,
    ) -> BoxFuture<'a, layout::Result<()>> {
        let file = store.root.family_dir(store.region, store.family);
        let error = layout::Error::Unsupported { file, what: "a change by a reader".to_string() };
        Box::pin(std::future::ready(Err(error)))
    }
}

/// Removes all lists below `dir` of a copy in memory, and the files that are not in them.
///
/// # Errors
/// Damage in a list.
pub async fn remove_all(memory: &MemoryFs, dir: &FilePath) -> Result<()> {
    for (path, status) in walk(memory, dir).await? {
        if !status.is_dir || status.name != LIST_DIR {
            continue;
        }
        let family = path.parent();
        for name in unlisted(memory, &family).await? {
            memory.delete(&family.join(&name)).await?;
        }
        memory.delete(&path).await?;
    }
    Ok(())
}

/// The names of store files in the directory of a family that its list does not have.
///
/// # Errors
/// Damage in the list.
pub(crate) async fn unlisted(fs: &dyn FileSystem, family: &FilePath) -> Result<Vec<String>> {
    let listed = layout::tracker::listed_names(fs, family).await?;
    let entries = list(fs, family).await?.into_iter().filter(|entry| !entry.is_dir);
    let names = entries.map(|entry| entry.name).filter(|name| StoreFileName::parse(name).is_some());
    Ok(names.filter(|name| !listed.contains(name)).collect())
}

/// The directories of lists below `dir`.
///
/// # Errors
/// File system errors.
pub async fn find(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<FilePath>> {
    let all = walk(fs, dir).await?;
    Ok(all
        .into_iter()
        .filter(|(_, entry)| entry.is_dir && entry.name == LIST_DIR)
        .map(|(path, _)| path)
        .collect())
}

/// Writes the list of a store, with the names that `tracker` says: it has all store files in its
/// directory. Replaces an earlier list.
///
/// # Errors
/// File system errors.
pub async fn write(
    tracker: FileListTracker,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    region: &RegionInfo,
    family: &[u8],
    now_ms: u64,
) -> Result<()> {
    let dir = root.family_dir(region, family);
    if fs.stat(&dir).await?.is_none() {
        return Ok(());
    }
    fs.delete(&dir.join(LIST_DIR)).await?;
    let store = StoreDir { fs: &**fs, root, region, family };
    let files = RenameTracker.load(store).await?;
    let names: Vec<&str> = files.iter().map(|file| file.path.name()).collect();
    Ok(tracker.commit(store, &names, &[], now_ms).await?)
}

/// Moves the files of a store that are not in its list to the archive.
///
/// # Errors
/// File system errors, and damage in the list.
pub async fn archive_unlisted(fs: &dyn FileSystem, root: &RootDir, family: &FilePath) -> Result<usize> {
    let names = unlisted(fs, family).await?;
    let Some(relative) = family.as_str().strip_prefix(root.path().as_str()) else { return Ok(0) };
    let archive = root.archive_dir().join(relative.trim_start_matches('/'));
    for name in &names {
        root.move_path(fs, &family.join(name), &archive.join(name)).await?;
    }
    Ok(names.len())
}

/// The table of a directory below `data`.
pub fn table_of(root: &RootDir, dir: &FilePath) -> Option<TableName> {
    let relative = dir.as_str().strip_prefix(root.data_dir().as_str())?;
    let mut parts = relative.trim_start_matches('/').split('/');
    TableName::new(parts.next()?, parts.next()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_families_choose_their_tracker() {
        let table = |value: Option<&str>| {
            let mut table = TableDescriptor::new(TableName::parse("t").unwrap());
            if let Some(value) = value {
                table.attributes.insert(KEY.into(), bytes::Bytes::copy_from_slice(value.as_bytes()));
            }
            table
        };
        let family = FamilyDescriptor::new(&b"f"[..]);
        for (value, expected) in [
            (None, false),
            (Some("DEFAULT"), false),
            (Some("FILE"), true),
            (Some("MIGRATION"), true),
            (Some("org.example.FileBasedStoreFileTracker"), true),
        ] {
            assert_eq!(needs_list(&table(value), &family), expected, "{value:?}");
        }
        let mut default = family.clone();
        default.configuration.insert(KEY.into(), "DEFAULT".into());
        assert!(!needs_list(&table(Some("FILE")), &default), "a family overrides its table");
    }

    #[test]
    fn the_table_of_a_path() {
        let root = RootDir::new(FilePath::root());
        let of = |path: &str| table_of(&root, &FilePath::new(path)).map(|table| table.to_string());
        assert_eq!(of("data/default/t/ab/f/.filelist").as_deref(), Some("t"));
        assert_eq!(of("data/n/t/ab").as_deref(), Some("n:t"));
        assert_eq!(of("MasterData/data"), None);
    }
}
