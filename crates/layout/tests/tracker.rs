//! The file list of HBase's `FILE` store file tracker, byte by byte.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use base::checksum::crc32;
use cell::region::RegionInfo;
use cell::schema::TableName;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::{Error, FileListTracker, RootDir, StoreDir, StoreFileTracker};

struct Store {
    fs: MemoryFs,
    root: RootDir,
    region: RegionInfo,
}

impl Store {
    fn new() -> Store {
        let table = TableName::parse("t").unwrap();
        let region = RegionInfo::new(table, "".into(), "".into(), 1);
        Store { fs: MemoryFs::new(), root: RootDir::new(FilePath::root()), region }
    }

    fn dir(&self) -> StoreDir<'_> {
        StoreDir { fs: &self.fs, root: &self.root, region: &self.region, family: b"f" }
    }

    fn path(&self, name: &str) -> FilePath {
        self.root.family_dir(&self.region, b"f").join(name)
    }

    async fn names(&self) -> layout::Result<Vec<String>> {
        let files = FileListTracker::Plain.load(self.dir()).await?;
        Ok(files.iter().map(|file| file.path.name().to_string()).collect())
    }
}

/// The list as HBase writes it: length, message, checksum.
fn list(timestamp: u8, files: &[(&str, u8)]) -> Vec<u8> {
    let mut message = vec![0x08, timestamp];
    for (name, size) in files {
        let entry = [&[0x0a, name.len() as u8][..], name.as_bytes(), &[0x10, *size]].concat();
        message.extend([&[0x12, entry.len() as u8][..], &entry].concat());
    }
    message.extend([0x18, 1]);
    [&(message.len() as u32).to_be_bytes()[..], &message, &crc32(&message).to_be_bytes()].concat()
}

#[tokio::test]
async fn a_list_has_the_bytes_of_hbase() {
    let store = Store::new();
    store.fs.put(&store.path("ab"), "cells");
    FileListTracker::Plain.commit(store.dir(), &["ab"], &[], 5).await.unwrap();
    assert_eq!(store.fs.contents(&store.path(".filelist/f1")).unwrap(), list(5, &[("ab", 5)]));
    store.fs.put(&store.path("cd"), "more");
    // The clock went back: the timestamp must still grow.
    FileListTracker::Plain.commit(store.dir(), &["cd"], &["ab"], 3).await.unwrap();
    assert_eq!(store.fs.contents(&store.path(".filelist/f2")).unwrap(), list(6, &[("cd", 4)]));
    assert_eq!(store.fs.contents(&store.path(".filelist/f1")), None);
    assert_eq!(store.names().await.unwrap(), ["cd"]);
}

#[tokio::test]
async fn the_newer_list_decides_and_unlisted_files_do_not_count() {
    let store = Store::new();
    assert_eq!(store.names().await.unwrap(), Vec::<String>::new());
    for name in ["aa", "bb", "cc"] {
        store.fs.put(&store.path(name), "cells");
    }
    store.fs.put(&store.path(".filelist/f1"), list(7, &[("aa", 5)]));
    store.fs.put(&store.path(".filelist/f2"), list(8, &[("bb", 5), ("aa", 5)]));
    assert_eq!(store.names().await.unwrap(), ["bb", "aa"]);
    // At equal timestamps, f1.
    store.fs.put(&store.path(".filelist/f1"), list(8, &[("aa", 5)]));
    assert_eq!(store.names().await.unwrap(), ["aa"]);
    // A truncated list was never complete.
    let mut cut = list(9, &[("cc", 5)]);
    cut.pop();
    store.fs.put(&store.path(".filelist/f1"), cut);
    assert_eq!(store.names().await.unwrap(), ["bb", "aa"]);
}

#[tokio::test]
async fn lists_of_hbase_2_6_have_generations() {
    let store = Store::new();
    for name in ["aa", "bb", "cc"] {
        store.fs.put(&store.path(name), "cells");
    }
    FileListTracker::Generations.commit(store.dir(), &["aa"], &[], 5).await.unwrap();
    assert_eq!(store.fs.contents(&store.path(".filelist/f1.5")).unwrap(), list(5, &[("aa", 5)]));
    // Either value reads and continues it.
    FileListTracker::Plain.commit(store.dir(), &["bb"], &[], 6).await.unwrap();
    assert_eq!(store.fs.contents(&store.path(".filelist/f1.5")), None);
    assert_eq!(store.fs.contents(&store.path(".filelist/f2.5")).unwrap(), list(6, &[("aa", 5), ("bb", 5)]));
    // The greatest generation with a complete list decides, whatever the timestamps are.
    store.fs.put(&store.path(".filelist/f1"), list(99, &[("aa", 5)]));
    store.fs.put(&store.path(".filelist/f1.30"), list(4, &[("cc", 5)]));
    store.fs.put(&store.path(".filelist/f1.40"), list(1, &[("cc", 5)])[..7].to_vec());
    store.fs.put(&store.path(".filelist/.f1.40.crc"), "checksum");
    assert_eq!(store.names().await.unwrap(), ["cc"]);
    FileListTracker::Plain.commit(store.dir(), &["aa"], &["cc"], 7).await.unwrap();
    assert_eq!(store.names().await.unwrap(), ["aa"]);
    let names: Vec<String> =
        store.fs.list(&store.path(".filelist")).await.unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, [".f1.40.crc", "f2.30"]);
}

#[tokio::test]
async fn a_list_with_an_unknown_name_is_refused() {
    let store = Store::new();
    store.fs.put(&store.path("aa"), "cells");
    store.fs.put(&store.path(".filelist/f1"), list(7, &[("aa", 5)]));
    store.fs.put(&store.path(".filelist/g1"), list(8, &[]));
    assert!(matches!(store.names().await, Err(Error::Unsupported { .. })));
}

#[tokio::test]
async fn damage_is_reported() {
    let store = Store::new();
    store.fs.put(&store.path("aa"), "cells");
    let mut damaged = list(7, &[("aa", 5)]);
    damaged[6] ^= 1;
    store.fs.put(&store.path(".filelist/f1"), damaged);
    assert!(matches!(store.names().await, Err(Error::Corrupt { .. })), "a checksum that does not match");
    store.fs.put(&store.path(".filelist/f1"), list(7, &[("aa", 5), ("bb", 5)]));
    assert!(matches!(store.names().await, Err(Error::Corrupt { .. })), "a listed file is missing");
    store.fs.put(&store.path(".filelist/f1"), list(7, &[("../x", 5), ("/", 5), ("", 5)]));
    assert!(matches!(store.names().await, Err(Error::Corrupt { .. })), "names that lead elsewhere");
    store.fs.put(&store.path(".filelist/f1"), list(7, &[("aa", 5)]));
    let added = FileListTracker::Plain.commit(store.dir(), &["cc"], &[], 9).await;
    assert!(matches!(added, Err(Error::Corrupt { .. })), "an added file is missing");
    store.fs.delete(&store.path("aa")).await.unwrap();
    assert!(store.names().await.is_err());
}
