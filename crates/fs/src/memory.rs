//! An in-memory file system that tracks syncs and can simulate power loss.
//!
//! It guarantees exactly the contract of [`FileSystem`]. [`MemoryFs::crash`] returns an image in
//! which each unsynced change is complete, partial or missing, at random. Code that passes on such
//! images relies on nothing that a disk does not promise. Invariants:
//!
//! * bytes synced to [`SyncLevel::Disk`] and synced names are in every image;
//! * an image is a consistent snapshot of all files; it shares nothing with the original, whose
//!   writers may continue;
//! * every future is ready on the first poll, so that a run does not depend on scheduling.

mod file;
mod tree;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::BoxFuture;
use base::env::Clock;
use bytes::Bytes;

use self::file::FileData;
use self::tree::{DirId, Node, ROOT, SharedFile, Slot, Tree};
use crate::{
    AccessPattern, Error, Fence, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Purpose, Result,
    SyncLevel,
};

/// An in-memory file system; clones share it. See the module's documentation.
#[derive(Clone)]
pub struct MemoryFs {
    shared: Arc<Shared>,
}

struct Shared {
    // Lock order: tree, then a file. Every change of a file also holds the tree lock, so that an
    // image is a consistent snapshot.
    tree: Mutex<Tree>,
    time: Time,
}

#[derive(Clone)]
enum Time {
    /// Counts changes, so that times are ordered and runs are reproducible.
    Steps(Arc<AtomicU64>),
    Clock(Arc<dyn Clock>),
}

impl Time {
    fn now_ms(&self) -> u64 {
        match self {
            Time::Steps(steps) => steps.fetch_add(1, Ordering::Relaxed),
            Time::Clock(clock) => clock.now_ms(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock must not hide an earlier panic of the test.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryFs {
    /// An empty file system whose modification times are a counter.
    pub fn new() -> MemoryFs {
        MemoryFs::of(Tree::new(), Time::Steps(Arc::default()))
    }

    /// An empty file system whose modification times come from `clock`.
    pub fn with_clock(clock: Arc<dyn Clock>) -> MemoryFs {
        MemoryFs::of(Tree::new(), Time::Clock(clock))
    }

    fn of(tree: Tree, time: Time) -> MemoryFs {
        MemoryFs { shared: Arc::new(Shared { tree: Mutex::new(tree), time }) }
    }

    /// The state of the disk after power loss now, as a new file system in which everything is
    /// synced.
    ///
    /// Each write since its file's last sync is complete, torn at 512 bytes, or lost. Each name
    /// created, changed or removed since its directory's last sync is retained or lost; a rename is
    /// one step. `random` decides.
    pub fn crash(&self, random: &mut dyn FnMut() -> u64) -> MemoryFs {
        MemoryFs::of(lock(&self.shared.tree).crash(random), self.shared.time.clone())
    }

    /// Stores a file durably, with its directories, bytes and name. Replaces an existing file.
    ///
    /// # Panics
    /// If the path is a directory, or one of its parent directories is a file.
    pub fn put(&self, path: &FilePath, bytes: impl Into<Vec<u8>>) {
        self.make_dirs_now(&path.parent()).expect("no parent directory is a file");
        let mut tree = lock(&self.shared.tree);
        let slot = slot_of(&tree, path).expect("its directory was just created");
        assert!(!matches!(tree.get(&slot), Some(Node::Dir(_))), "{path} is a directory");
        let now_ms = self.shared.time.now_ms();
        let file = Arc::new(Mutex::new(FileData::synced(bytes.into(), now_ms)));
        tree.put(slot.clone(), Node::File(file), now_ms);
        tree.sync_slot(&slot);
    }

    /// The bytes of a file as a reader sees them now, or `None` if the file does not exist.
    pub fn contents(&self, path: &FilePath) -> Option<Vec<u8>> {
        match find(&lock(&self.shared.tree), path)? {
            Node::File(file) => Some(lock(&file).bytes().to_vec()),
            Node::Dir(_) | Node::Link { .. } => None,
        }
    }

    fn create_now(&self, path: &FilePath, access: AccessPattern) -> Result<Box<dyn FileWriter>> {
        let mut tree = lock(&self.shared.tree);
        if find(&tree, path).is_some() {
            return Err(Error::AlreadyExists { path: path.clone() });
        }
        let slot = slot_of(&tree, path)?;
        let now_ms = self.shared.time.now_ms();
        let file: SharedFile = Arc::new(Mutex::new(FileData::empty(now_ms)));
        tree.put(slot, Node::File(file.clone()), now_ms);
        let fs = self.clone();
        Ok(Box::new(MemoryWriter {
            fs,
            file,
            path: path.clone(),
            len: 0,
            end_mark_len: 0,
            reserved_to: 0,
            access,
        }))
    }

    fn link_now(&self, path: &FilePath, target: &str) -> Result<()> {
        let mut tree = lock(&self.shared.tree);
        if find(&tree, path).is_some() {
            return Err(Error::AlreadyExists { path: path.clone() });
        }
        let slot = slot_of(&tree, path)?;
        let modified_ms = self.shared.time.now_ms();
        tree.put(slot, Node::Link { target: target.into(), modified_ms }, modified_ms);
        Ok(())
    }

    fn open_now(&self, path: &FilePath) -> Result<Arc<dyn FileReader>> {
        match find(&lock(&self.shared.tree), path) {
            Some(Node::File(file)) => {
                let len = lock(&file).bytes().len() as u64;
                Ok(Arc::new(MemoryReader { file, path: path.clone(), len }))
            }
            Some(Node::Dir(_)) => Err(Error::io(path, "open", "is a directory")),
            // The targets of links are not in this file system.
            Some(Node::Link { .. }) | None => Err(Error::NotFound { path: path.clone() }),
        }
    }

    fn rename_now(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        let mut tree = lock(&self.shared.tree);
        let moved = find(&tree, from).ok_or_else(|| Error::NotFound { path: from.clone() })?;
        if from == to {
            return Ok(());
        }
        if is_below(to, from) {
            return Err(Error::io(from, "rename", "cannot move a directory into itself"));
        }
        let to_slot = slot_of(&tree, to)?;
        let replaced = tree.get(&to_slot);
        if replaced.is_some_and(|replaced| is_dir(&moved) || is_dir(replaced)) {
            return Err(Error::AlreadyExists { path: to.clone() });
        }
        let from_slot = slot_of(&tree, from)?;
        tree.rename(from_slot, to_slot, self.shared.time.now_ms());
        Ok(())
    }

    fn delete_now(&self, path: &FilePath) -> Result<()> {
        if *path == FilePath::root() {
            return Err(Error::io(path, "delete", "cannot delete the root directory"));
        }
        let mut tree = lock(&self.shared.tree);
        if find(&tree, path).is_some() {
            let slot = slot_of(&tree, path)?;
            tree.remove(slot, self.shared.time.now_ms());
        }
        Ok(())
    }

    fn delete_empty_dir_now(&self, path: &FilePath) -> Result<()> {
        let mut tree = lock(&self.shared.tree);
        match find(&tree, path) {
            None => Ok(()),
            Some(Node::Dir(dir)) if tree.entries(dir).is_empty() => {
                let slot = slot_of(&tree, path)?;
                tree.remove(slot, self.shared.time.now_ms());
                Ok(())
            }
            Some(_) => Err(Error::io(path, "delete", "not an empty directory")),
        }
    }

    fn list_now(&self, path: &FilePath) -> Result<Vec<FileStatus>> {
        let tree = lock(&self.shared.tree);
        let dir = find_dir(&tree, path)?;
        Ok(tree.entries(dir).iter().map(|(name, node)| status(&tree, name, node)).collect())
    }

    fn make_dirs_now(&self, path: &FilePath) -> Result<()> {
        let mut tree = lock(&self.shared.tree);
        let mut dir = ROOT;
        let mut at = FilePath::root();
        for name in components(path) {
            at = at.join(name);
            let slot = Slot { dir, name: name.to_owned() };
            dir = match tree.get(&slot) {
                Some(Node::Dir(child)) => {
                    let child = *child;
                    tree.sync_slot(&slot);
                    child
                }
                Some(_) => return Err(Error::AlreadyExists { path: at }),
                None => tree.make_dir(slot, self.shared.time.now_ms()),
            };
        }
        Ok(())
    }

    fn sync_dir_now(&self, path: &FilePath) -> Result<()> {
        let mut tree = lock(&self.shared.tree);
        let dir = find_dir(&tree, path)?;
        tree.sync_dir(dir);
        Ok(())
    }

    fn change_file(&self, file: &SharedFile, change: impl FnOnce(&mut FileData)) {
        let _tree = lock(&self.shared.tree);
        let mut file = lock(file);
        file.modified_ms = self.shared.time.now_ms();
        change(&mut file);
    }
}

impl Default for MemoryFs {
    fn default() -> MemoryFs {
        MemoryFs::new()
    }
}

fn is_dir(node: &Node) -> bool {
    matches!(node, Node::Dir(_))
}

fn components(path: &FilePath) -> impl Iterator<Item = &str> {
    path.as_str().split('/').filter(|part| !part.is_empty())
}

fn is_below(path: &FilePath, dir: &FilePath) -> bool {
    path.as_str().strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

fn find(tree: &Tree, path: &FilePath) -> Option<Node> {
    let mut node = Node::Dir(ROOT);
    for name in components(path) {
        let Node::Dir(dir) = node else { return None };
        node = tree.get(&Slot { dir, name: name.to_owned() })?.clone();
    }
    Some(node)
}

fn find_dir(tree: &Tree, path: &FilePath) -> Result<DirId> {
    match find(tree, path) {
        Some(Node::Dir(dir)) => Ok(dir),
        _ => Err(Error::NotFound { path: path.clone() }),
    }
}

// The slot of a path whose directory exists.
fn slot_of(tree: &Tree, path: &FilePath) -> Result<Slot> {
    match find(tree, &path.parent()) {
        Some(Node::Dir(dir)) if !path.name().is_empty() => Ok(Slot { dir, name: path.name().to_owned() }),
        _ => Err(Error::NotFound { path: path.clone() }),
    }
}

fn status(tree: &Tree, name: &str, node: &Node) -> FileStatus {
    let (len, modified_ms, link) = match node {
        Node::Dir(dir) => (0, tree.dir_modified_ms(*dir), None),
        Node::File(file) => {
            let file = lock(file);
            (file.bytes().len() as u64, file.modified_ms, None)
        }
        Node::Link { target, modified_ms } => (0, *modified_ms, Some(target.clone())),
    };
    FileStatus { name: name.to_owned(), is_dir: is_dir(node), len, modified_ms, link }
}

// A future that does its work on the first poll. As on a real disk, a future that is never polled
// has no effect.
fn ready<'a, T: Send + 'a>(work: impl FnOnce() -> T + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(async move { work() })
}

impl FileSystem for MemoryFs {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        let access = purpose.access();
        ready(move || self.create_now(path, access))
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        ready(move || self.open_now(path))
    }

    fn link<'a>(&'a self, path: &'a FilePath, target: &'a str) -> BoxFuture<'a, Result<()>> {
        ready(move || self.link_now(path, target))
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        ready(move || self.rename_now(from, to))
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        ready(move || self.delete_now(path))
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        ready(move || self.delete_empty_dir_now(dir))
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        ready(move || {
            let tree = lock(&self.shared.tree);
            Ok(find(&tree, path).map(|node| status(&tree, path.name(), &node)))
        })
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        ready(move || self.list_now(dir))
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        ready(move || self.make_dirs_now(dir))
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        ready(move || self.sync_dir_now(dir))
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        ready(move || {
            let tree = lock(&self.shared.tree);
            match find(&tree, path) {
                Some(Node::File(file)) => lock(&file).sync(),
                Some(Node::Dir(_)) => {}
                Some(Node::Link { .. }) | None => return Err(Error::NotFound { path: path.clone() }),
            }
            Ok(Fence::Complete)
        })
    }
}

struct MemoryReader {
    file: SharedFile,
    path: FilePath,
    len: u64,
}

impl FileReader for MemoryReader {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        ready(move || {
            let end = offset.saturating_add(len as u64);
            let past_end = || Error::PastEnd { path: self.path.clone(), end };
            if end > self.len {
                return Err(past_end());
            }
            let file = lock(&self.file);
            // The file may have been truncated since it was opened.
            let bytes = file.bytes().get(offset as usize..end as usize).ok_or_else(past_end)?;
            Ok(Bytes::copy_from_slice(bytes))
        })
    }
}

struct MemoryWriter {
    fs: MemoryFs,
    file: SharedFile,
    path: FilePath,
    len: u64,
    // Bytes of the end mark at `len`.
    end_mark_len: usize,
    reserved_to: u64,
    access: AccessPattern,
}

impl MemoryWriter {
    fn write(&mut self, bytes: Bytes, content_len: usize) {
        let offset = self.len;
        self.len += content_len as u64;
        // As on a disk, the bytes that overwrite an end mark are a separate write.
        let head = self.end_mark_len.min(bytes.len());
        for (offset, bytes) in [(offset + head as u64, bytes.slice(head..)), (offset, bytes.slice(..head))] {
            if !bytes.is_empty() {
                self.reserved_to = self.reserved_to.max(offset + bytes.len() as u64);
                self.fs.change_file(&self.file, |file| file.write(offset, bytes));
            }
        }
        self.end_mark_len = bytes.len() - content_len;
    }
}

impl FileWriter for MemoryWriter {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        ready(move || {
            let content_len = bytes.len();
            self.write(bytes, content_len);
            Ok(())
        })
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        ready(move || {
            let marked = self.access == AccessPattern::Log;
            self.write(if marked { bytes } else { bytes.slice(..content_len) }, content_len);
            Ok(())
        })
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        ready(move || {
            if durability == SyncLevel::Disk {
                let _tree = lock(&self.fs.shared.tree);
                lock(&self.file).sync();
            }
            Ok(())
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        ready(move || {
            let (from, to) = (self.reserved_to.max(self.len), self.len + bytes);
            if self.access == AccessPattern::Log && to > from {
                let zeros = Bytes::from(vec![0; (to - from) as usize]);
                self.fs.change_file(&self.file, |file| file.write(from, zeros));
                self.reserved_to = to;
            }
            Ok(())
        })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        ready(move || {
            if self.reserved_to > self.len {
                self.fs.change_file(&self.file, |file| file.truncate(self.len));
            }
            Ok(())
        })
    }
}
