//! A file system in which some directories are on another one, such as the logs on a faster disk.

use std::sync::Arc;

use base::BoxFuture;

use crate::{
    DiskSpace, Error, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Occupied,
    PolicyCounts, Purpose, Result,
};

/// A file system with another one mounted at some directories.
///
/// A path at or below a mounted directory is the same path of the mounted file system. Lists of the
/// parent directories do not contain the mounted directories.
pub struct Mounted {
    root: Arc<dyn FileSystem>,
    mounted: Arc<dyn FileSystem>,
    dirs: Vec<FilePath>,
}

impl Mounted {
    /// Mounts the directories `dirs` of `mounted` into `root`.
    pub fn new(root: Arc<dyn FileSystem>, mounted: Arc<dyn FileSystem>, dirs: Vec<FilePath>) -> Mounted {
        Mounted { root, mounted, dirs }
    }

    /// The file system that a path is on.
    fn of(&self, path: &FilePath) -> &Arc<dyn FileSystem> {
        match self.dirs.iter().any(|dir| path.is_at_or_below(dir)) {
            true => &self.mounted,
            false => &self.root,
        }
    }
}

impl FileSystem for Mounted {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        self.of(path).create_for(path, purpose)
    }

    fn link<'a>(&'a self, path: &'a FilePath, target: &'a str) -> BoxFuture<'a, Result<()>> {
        self.of(path).link(path, target)
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.of(path).open(path)
    }

    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.of(path).open_uncached(path)
    }

    /// Like [`FileSystem::rename`]. A rename from one file system to the other fails, because it
    /// cannot be atomic.
    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        if !Arc::ptr_eq(self.of(from), self.of(to)) {
            let message = format!("{to} is on another file system");
            return Box::pin(std::future::ready(Err(Error::io(from, "rename", message))));
        }
        self.of(from).rename(from, to)
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.of(path).delete(path)
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.of(dir).delete_empty_dir(dir)
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        self.of(path).stat(path)
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        self.of(dir).list(dir)
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.of(dir).make_dirs(dir)
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.of(dir).sync_dir(dir)
    }

    /// The space of the fuller disk: writes must stop before either of them is full.
    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        Box::pin(async move {
            let spaces = [self.root.space().await?, self.mounted.space().await?];
            Ok(spaces.into_iter().flatten().min_by_key(|space| space.free_bytes))
        })
    }

    fn file_hosts<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Vec<FileHosts>>>> {
        self.of(dir).file_hosts(dir)
    }

    fn set_storage_policy<'a>(&'a self, dir: &'a FilePath, policy: &'a str) -> BoxFuture<'a, ()> {
        self.of(dir).set_storage_policy(dir, policy)
    }

    fn satisfy_storage_policy(&self, path: &FilePath) {
        self.of(path).satisfy_storage_policy(path);
    }

    /// The sum of both file systems.
    fn policy_counts(&self) -> Option<PolicyCounts> {
        let counts = [self.root.policy_counts(), self.mounted.policy_counts()];
        counts.into_iter().flatten().reduce(|one, other| PolicyCounts {
            set: one.set + other.set,
            moves: one.moves + other.moves,
            errors: one.errors + other.errors,
        })
    }

    fn check_root(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.root.check_root().await?;
            self.mounted.check_root().await
        })
    }

    fn allocate<'a>(&'a self, path: &'a FilePath, bytes: u64) -> BoxFuture<'a, Result<()>> {
        self.of(path).allocate(path, bytes)
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        self.of(path).fence(path)
    }

    fn occupy<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Occupied>>> {
        self.of(dir).occupy(dir)
    }

    fn is_occupied<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<bool>>> {
        self.of(dir).is_occupied(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryFs;

    #[tokio::test]
    async fn mounted_directories_are_on_the_other_file_system() {
        let (root, other) = (Arc::new(MemoryFs::new()), Arc::new(MemoryFs::new()));
        let fs =
            Mounted::new(root.clone(), other.clone(), vec![FilePath::new("WALs"), FilePath::new("a/WALs")]);
        for (dir, is_mounted) in
            [("WALs", true), ("WALs/s1", true), ("a/WALs", true), ("WALs2", false), ("a", false)]
        {
            let dir = FilePath::new(dir);
            fs.make_dirs(&dir).await.unwrap();
            assert!(fs.stat(&dir).await.unwrap().is_some(), "{dir}");
            assert_eq!(other.stat(&dir).await.unwrap().is_some(), is_mounted || dir.as_str() == "a", "{dir}");
        }
        let refused = fs.rename(&FilePath::new("WALs/s1"), &FilePath::new("s1")).await;
        assert!(matches!(refused, Err(Error::Io { operation: "rename", .. })), "{refused:?}");
        fs.rename(&FilePath::new("WALs/s1"), &FilePath::new("WALs/s2")).await.unwrap();
        assert!(other.stat(&FilePath::new("WALs/s2")).await.unwrap().is_some());
    }
}
