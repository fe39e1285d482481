//! Power loss: at whatever step it happens, a change is either complete or absent.
//!
//! A change runs on a file system whose Nth call and all later calls fail. The test checks many of
//! the images that the disk may then hold. N increases until the change completes.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::BoxFuture;
use base::env::Random;
use base::testing::SeededRandom;
use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use fs::memory::MemoryFs;
use fs::{
    AccessPattern, Error, Fence, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Purpose, Result,
    SyncLevel,
};
use layout::{FileListTracker, Inventory, RenameTracker, RootDir, StoreDir, StoreFileTracker};

/// Disk images that are checked for each step.
const IMAGES: u64 = 40;

/// A file system that loses power after a number of calls.
struct PowerCut {
    inner: MemoryFs,
    left: Arc<AtomicUsize>,
}

fn spend(left: &AtomicUsize, path: &FilePath) -> Result<()> {
    let spent = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    let dead = Error::Io { path: path.clone(), operation: "anything", message: "no power".into() };
    spent.map(|_| ()).map_err(|_| dead)
}

macro_rules! spending {
    ($self:ident, $path:expr, $call:expr) => {
        Box::pin(async move {
            spend(&$self.left, $path)?;
            $call.await
        })
    };
}

impl FileSystem for PowerCut {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            spend(&self.left, path)?;
            let inner = self.inner.create_for(path, purpose).await?;
            Ok(Box::new(Writer { inner, left: self.left.clone() }) as Box<dyn FileWriter>)
        })
    }
    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.inner.open(path)
    }
    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        spending!(self, from, self.inner.rename(from, to))
    }
    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        spending!(self, path, self.inner.delete(path))
    }
    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        self.inner.stat(path)
    }
    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        self.inner.list(dir)
    }
    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        spending!(self, dir, self.inner.make_dirs(dir))
    }
    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        spending!(self, dir, self.inner.sync_dir(dir))
    }
    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        self.inner.fence(path)
    }
}

struct Writer {
    inner: Box<dyn FileWriter>,
    left: Arc<AtomicUsize>,
}

impl FileWriter for Writer {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            spend(&self.left, self.inner.path())?;
            self.inner.append(bytes).await
        })
    }
    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            spend(&self.left, self.inner.path())?;
            self.inner.sync(durability).await
        })
    }
    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        self.inner.reserve(bytes)
    }
    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.inner.close()
    }
}

fn root() -> RootDir {
    RootDir::new(FilePath::root())
}

fn name() -> TableName {
    TableName::parse("ns1:t1").unwrap()
}

fn table(families: &[&'static str]) -> TableDescriptor {
    let table = TableDescriptor::new(name());
    families.iter().fold(table, |table, family| table.with_family(FamilyDescriptor::new(*family)))
}

fn regions() -> Vec<RegionInfo> {
    let region =
        |start: &'static str, end: &'static str| RegionInfo::new(name(), start.into(), end.into(), 7);
    vec![region("", "m"), region("m", "")]
}

/// Cuts the power at every call of `change`, each time on a fresh file system that `prepare`
/// filled. `check` checks each image and gets whether the change had returned before. Returns the
/// number of calls that the change makes.
async fn cut_everywhere(
    prepare: impl AsyncFn(&MemoryFs),
    change: impl AsyncFn(&dyn FileSystem) -> layout::Result<()>,
    mut check: impl AsyncFnMut(&MemoryFs, bool),
) -> usize {
    for calls in 0.. {
        let inner = MemoryFs::new();
        prepare(&inner).await;
        let fs = PowerCut { inner: inner.clone(), left: Arc::new(AtomicUsize::new(calls)) };
        let done = change(&fs).await.is_ok();
        for seed in 0..IMAGES {
            let random = SeededRandom::new(seed);
            check(&inner.crash(&mut || random.next_u64()), done).await;
        }
        if done {
            return calls;
        }
    }
    unreachable!("a change makes a finite number of calls")
}

#[tokio::test]
async fn a_descriptor_is_the_old_or_the_new_one() {
    let (old, new) = (table(&["a"]), table(&["a", "b"]));
    let (mut seen_old, mut seen_new) = (0, 0);
    let calls = cut_everywhere(
        async |fs| root().create_table(fs, &old, &regions()).await.unwrap(),
        async |fs| root().write_table_descriptor(fs, &new).await,
        async |image, done| {
            let read = root().read_table_descriptor(image, &name()).await.unwrap();
            assert!(read == new || (!done && read == old), "done: {done}, read: {read:?}");
            *(if read == new { &mut seen_new } else { &mut seen_old }) += 1;
            // The next change works on whatever was left.
            root().write_table_descriptor(image, &old).await.unwrap();
            assert_eq!(root().read_table_descriptor(image, &name()).await.unwrap(), old);
        },
    )
    .await;
    assert!(calls > 5 && seen_old > 0 && seen_new > IMAGES, "{calls} calls, {seen_old} old, {seen_new} new");
}

#[tokio::test]
async fn a_table_is_created_atomically() {
    let (mut there, mut absent) = (0, 0);
    cut_everywhere(
        async |_| (),
        async |fs| root().create_table(fs, &table(&["a", "b"]), &regions()).await,
        async |image, done| {
            let tables = root().list_tables(image).await.unwrap();
            if tables.is_empty() {
                assert!(!done);
                absent += 1;
                root().create_table(image, &table(&["a", "b"]), &regions()).await.unwrap();
            } else {
                there += 1;
            }
            assert_eq!(root().read_table_descriptor(image, &name()).await.unwrap(), table(&["a", "b"]));
            assert_eq!(root().list_regions(image, &name()).await.unwrap().len(), 2);
            for region in regions() {
                for family in [b"a", b"b"] {
                    assert!(image.stat(&root().family_dir(&region, family)).await.unwrap().is_some());
                }
            }
        },
    )
    .await;
    assert!(there > IMAGES && absent > IMAGES, "{there} there, {absent} absent");
}

#[tokio::test]
async fn no_store_file_is_lost_while_it_is_archived() {
    let files = ["aa", "bb", "cc"];
    let region = &regions()[0];
    let archived = root().archive_family_dir(region, b"a");
    cut_everywhere(
        async |fs| {
            root().create_table(fs, &table(&["a"]), &regions()).await.unwrap();
            for file in files {
                fs.put(&root().family_dir(region, b"a").join(file), file);
            }
        },
        async |fs| root().archive_table(fs, &name()).await,
        async |image, done| {
            for file in files {
                let here = image.contents(&root().family_dir(region, b"a").join(file));
                let there = image.contents(&archived.join(file));
                assert!(!done || (here.is_none() && there.is_some()));
                assert_eq!(here.or(there).as_deref(), Some(file.as_bytes()), "{file}");
            }
            root().archive_table(image, &name()).await.unwrap();
            for file in files {
                assert_eq!(image.contents(&archived.join(file)).as_deref(), Some(file.as_bytes()));
            }
            assert!(image.stat(&root().table_dir(&name())).await.unwrap().is_none());
        },
    )
    .await;
}

#[tokio::test]
async fn a_new_root_directory_can_always_be_opened_again() {
    cut_everywhere(
        async |_| (),
        async |fs| root().open_or_create(fs, &SeededRandom::new(3)).await.map(|_| ()),
        async |image, done| {
            let identity = root().open_or_create(image, &SeededRandom::new(4)).await.unwrap();
            assert!(!done || !identity.is_new);
            let again = root().open_or_create(image, &SeededRandom::new(5)).await.unwrap();
            assert_eq!((again.cluster_id, again.is_new), (identity.cluster_id, false));
        },
    )
    .await;
}

#[tokio::test]
async fn sequence_ids_never_go_back() {
    let region = &regions()[0];
    cut_everywhere(
        async |fs| {
            assert!(root().write_max_seq_id(fs, region, 5, Some(&Inventory::default())).await.unwrap())
        },
        async |fs| root().write_max_seq_id(fs, region, 9, Some(&Inventory::default())).await.map(drop),
        async |image, done| {
            let id = root().read_max_seq_id(image, region).await.unwrap();
            assert!(id == 9 || (!done && id == 5), "{id}");
        },
    )
    .await;
}

#[tokio::test]
async fn no_file_of_an_inventory_is_missing_while_files_are_archived() {
    let region = &regions()[0];
    let dir = root().family_dir(region, b"cf1");
    cut_everywhere(
        async |fs| {
            let mut inventory = Inventory::default();
            for file in ["aa", "bb"] {
                fs.put(&dir.join(file), file);
                inventory.add(b"cf1", file);
            }
            root().write_max_seq_id(fs, region, 5, Some(&inventory)).await.unwrap();
        },
        async |fs| root().archive_store_files(fs, region, b"cf1", &["aa"]).await,
        async |image, done| {
            let inventory = root().read_inventory(image, region).await.unwrap().unwrap();
            for file in inventory.of_family(b"cf1") {
                assert!(image.stat(&dir.join(file)).await.unwrap().is_some(), "{file}");
            }
            assert!(!done || inventory.of_family(b"cf1").eq(["bb"]));
        },
    )
    .await;
}

/// Names of the files that `tracker` loads, sorted.
async fn tracked(tracker: &dyn StoreFileTracker, fs: &dyn FileSystem) -> Vec<String> {
    let (root, regions) = (root(), regions());
    let store = StoreDir { fs, root: &root, region: &regions[0], family: b"a" };
    let files = tracker.load(store).await.unwrap();
    let mut names: Vec<String> = files.iter().map(|file| file.path.name().to_string()).collect();
    names.sort();
    names
}

/// Writes new files into the output directory of `tracker`, and commits them.
async fn commit(
    tracker: &dyn StoreFileTracker,
    fs: &dyn FileSystem,
    added: &[&str],
    removed: &[&str],
) -> layout::Result<()> {
    let (root, regions) = (root(), regions());
    let store = StoreDir { fs, root: &root, region: &regions[0], family: b"a" };
    let dir = tracker.output_dir(store);
    fs.make_dirs(&root.family_dir(&regions[0], b"a")).await?;
    fs.make_dirs(&dir).await?;
    for name in added {
        let mut writer = fs.create(&dir.join(name), AccessPattern::Data).await?;
        writer.append(Bytes::from_static(b"cells")).await?;
        writer.sync(SyncLevel::Disk).await?;
        writer.close().await?;
    }
    tracker.commit(store, added, removed, 1_000).await
}

#[tokio::test]
async fn a_store_has_a_committed_file_after_power_loss() {
    for tracker in [&RenameTracker as &dyn StoreFileTracker, &FileListTracker::Plain] {
        let (mut before, mut after) = (0, 0);
        cut_everywhere(
            async |fs| commit(tracker, fs, &["aa"], &[]).await.unwrap(),
            async |fs| commit(tracker, fs, &["bb"], &[]).await,
            async |image, done| match &tracked(tracker, image).await[..] {
                [one] if one == "aa" && !done => before += 1,
                [one, two] if one == "aa" && two == "bb" => after += 1,
                other => panic!("done: {done}, files: {other:?}"),
            },
        )
        .await;
        assert!(before > 0 && after > IMAGES, "{before} before, {after} after");
    }
}

#[tokio::test]
async fn a_file_list_is_replaced_atomically() {
    let (mut before, mut after) = (0, 0);
    cut_everywhere(
        async |fs| {
            commit(&FileListTracker::Plain, fs, &["aa"], &[]).await.unwrap();
            commit(&FileListTracker::Plain, fs, &["bb"], &[]).await.unwrap();
        },
        async |fs| commit(&FileListTracker::Plain, fs, &["cc"], &["aa", "bb"]).await,
        async |image, done| {
            let names = tracked(&FileListTracker::Plain, image).await;
            assert!(names == ["cc"] || (!done && names == ["aa", "bb"]), "done: {done}, files: {names:?}");
            *(if names == ["cc"] { &mut after } else { &mut before }) += 1;
            commit(&FileListTracker::Plain, image, &["dd"], &[]).await.unwrap();
            assert_eq!(
                tracked(&FileListTracker::Plain, image).await,
                [&names[..], &["dd".to_string()]].concat()
            );
        },
    )
    .await;
    assert!(before > 0 && after > IMAGES, "{before} before, {after} after");
}
