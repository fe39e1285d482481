//! The [`FileSystem`] on HDFS.

use std::sync::Arc;

use base::BoxFuture;
use base::env::Env;
use fs::{
    DiskSpace, Error, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter,
    PolicyCounts, Purpose, Result,
};
use tokio::sync::Semaphore;

use crate::coding::Coding;
use crate::corrupt::CorruptReplicas;
use crate::failure::Failure;
use crate::file::{Shared, inode_path};
use crate::generated::{
    self, BoolResponse, DeleteRequest, Empty, FileInfoResponse, FsPermission, FsStatsResponse,
    ListingRequest, ListingResponse, MkdirsRequest, PathRequest, RenameRequest, ServerDefaultsResponse,
};
use crate::hosts::{LocalAddresses, hosts_of};
use crate::idle::IdleConnections;
use crate::located::{locate, located_status, located_unsorted};
use crate::namenode::NameNode;
use crate::options::{HdfsOptions, IfMissing, OptionsError, Settings};
use crate::policy::{Policies, satisfy_later, set_policy};
use crate::read_slots::ReadSlots;
use crate::reader::HdfsReader;
use crate::striped::{Library, StripedReader};
use crate::suspects::Suspects;
use crate::writer::HdfsWriter;

pub(crate) const DIRECTORY: u32 = 1;
/// The mode of a new directory before the umask.
const DIRECTORY_MODE: u32 = 0o777;
/// The flag of a path in an encryption zone.
const IN_ENCRYPTION_ZONE: u32 = 2;

/// A directory in HDFS as a [`FileSystem`]; see the documentation of the crate.
pub struct HdfsFileSystem {
    shared: Arc<Shared>,
    library: Arc<Library>,
    root_id: u64,
}

/// Why [`HdfsFileSystem::connect`] failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The options are invalid or not supported.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The root directory does not exist.
    #[error("there is no directory {0}")]
    Missing(String),
    /// A call to the NameNode failed.
    #[error(transparent)]
    Fs(#[from] Error),
}

impl HdfsFileSystem {
    /// Connects to HDFS. Waits for an active NameNode for as long as the options permit.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(
        env: &Env,
        options: &HdfsOptions,
    ) -> std::result::Result<HdfsFileSystem, ConnectError> {
        let settings = Settings::parse(options)?;
        let library = Arc::new(Library::new(env, options, &settings));
        let shared = Arc::new(Shared {
            env: env.clone(),
            namenode: NameNode::new(env, &options.user, &settings, &options.limits),
            hedges: Semaphore::new(settings.hedges_max.min(Semaphore::MAX_PERMITS)),
            settings,
            limits: options.limits,
            suspects: Suspects::default(),
            idle: IdleConnections::default(),
            read_slots: ReadSlots::default(),
            corrupt: CorruptReplicas::default(),
            local: LocalAddresses::default(),
            policies: Policies::default(),
            client_name: format!("grampus_{}_{:016x}", env.clock.now_ms(), env.random.next_u64()),
        });
        read_defaults(&shared).await?;
        let mut fs = HdfsFileSystem { shared, library, root_id: 0 };
        let root = FilePath::root();
        if options.if_missing == IfMissing::Create {
            fs.make_dirs(&root).await?;
        }
        let found = fs.file_info(&root).await?.ok_or_else(|| ConnectError::Missing(options.url.clone()))?;
        if found.flags() & IN_ENCRYPTION_ZONE != 0 {
            return Err(fs.shared.encrypted(&root, "connect").into());
        }
        fs.root_id = found.file_id.unwrap_or_default();
        Ok(fs)
    }

    async fn file_info(&self, path: &FilePath) -> Result<Option<generated::FileStatus>> {
        let request = PathRequest { src: self.shared.full(path) };
        let found = self.shared.namenode.call("getFileInfo", &request).await;
        match found {
            Ok(FileInfoResponse { fs }) => Ok(fs),
            // A parent is a file.
            Err(failure) if failure.means_not_found() => Ok(None),
            Err(failure) => Err(failure.at(path, "stat")),
        }
    }

    async fn try_rename(
        &self,
        from: &FilePath,
        to: &FilePath,
        overwrite: bool,
    ) -> std::result::Result<(), Failure> {
        let (src, dst) = (self.shared.full(from), self.shared.full(to));
        let request = RenameRequest { src, dst, overwrite_dest: overwrite };
        let Empty {} = self.shared.namenode.call("rename2", &request).await?;
        Ok(())
    }

    async fn rename_now(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        let failure = match self.try_rename(from, to, false).await {
            Ok(()) => return Ok(()),
            Err(failure @ Failure::Unreachable { .. }) => return Err(failure.at(from, "rename")),
            Err(failure) => failure,
        };
        if failure.means_not_found() {
            // Either the source or the directory of the target is missing.
            let path = if self.file_info(from).await?.is_some() { to } else { from };
            return Err(Error::NotFound { path: path.clone() });
        }
        if from == to && failure.is("FileAlreadyExistsException") {
            return Ok(());
        }
        let is_dir = |status: &generated::FileStatus| status.file_type == DIRECTORY;
        let source = self.file_info(from).await?;
        if failure.is("FileAlreadyExistsException") && !source.as_ref().is_some_and(is_dir) {
            // HDFS never replaces a directory with a file.
            let replaced = self.try_rename(from, to, true).await;
            return replaced.map_err(|failure| failure.at(from, "rename"));
        }
        let target = self.file_info(to).await?;
        if target.is_some() && source.iter().chain(&target).any(is_dir) {
            return Err(Error::AlreadyExists { path: to.clone() });
        }
        Err(failure.at(from, "rename"))
    }

    async fn listing(&self, dir: &FilePath, need_location: bool) -> Result<Vec<generated::FileStatus>> {
        listing(&self.shared, dir, need_location).await
    }

    async fn list_now(&self, dir: &FilePath) -> Result<Vec<FileStatus>> {
        let entries = self.listing(dir, false).await?;
        let mut entries: Vec<FileStatus> =
            entries.iter().map(|entry| status(name_of(entry), entry)).collect();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    async fn open_now(&self, path: &FilePath) -> Result<Arc<dyn FileReader>> {
        let found = located_status(&self.shared, path).await?;
        let found = found.ok_or_else(|| Error::NotFound { path: path.clone() })?;
        if found.file_type == DIRECTORY {
            return Err(Error::io(path, "open", "is a directory"));
        }
        if found.file_encryption_info.is_some() {
            return Err(self.shared.encrypted(path, "open"));
        }
        let inode = inode_path(found.file_id.unwrap_or_default());
        if let Some(policy) = &found.ec_policy {
            let unknown = || Error::io(path, "open", "its erasure coding policy is unknown or invalid");
            let coding = Coding::of(policy).ok_or_else(unknown)?;
            let (shared, library) = (self.shared.clone(), self.library.clone());
            let reader = StripedReader::open(shared, library, path.clone(), inode, coding);
            return Ok(Arc::new(reader.await?));
        }
        let located = match &found.locations {
            Some(found) => located_unsorted(&self.shared, path, found).await?,
            None => locate(&self.shared, path, &inode).await?,
        };
        Ok(Arc::new(HdfsReader::new(self.shared.clone(), path.clone(), inode, located)))
    }

    /// Removes a path. A directory with entries is removed only if `recursive`.
    async fn remove(&self, path: &FilePath, recursive: bool) -> Result<()> {
        if *path == FilePath::root() {
            return Err(Error::io(path, "delete", "cannot delete the root directory"));
        }
        let request = DeleteRequest { src: self.shared.full(path), recursive };
        let deleted: std::result::Result<BoolResponse, Failure> =
            self.shared.namenode.call("delete", &request).await;
        match deleted {
            Ok(_) => Ok(()),
            Err(failure) if failure.means_not_found() => Ok(()),
            Err(failure) => Err(failure.at(path, "delete")),
        }
    }
}

/// The entries of a directory, with the locations of their blocks if `need_location`.
pub(crate) async fn listing(
    shared: &Shared,
    dir: &FilePath,
    need_location: bool,
) -> Result<Vec<generated::FileStatus>> {
    let src = shared.full(dir);
    let missing = || Error::NotFound { path: dir.clone() };
    let mut entries = Vec::new();
    let mut start_after = bytes::Bytes::new();
    loop {
        let request = ListingRequest { src: src.clone(), start_after, need_location };
        let listed = shared.namenode.call("getListing", &request).await;
        let listed: ListingResponse = listed.map_err(|failure| failure.at(dir, "list"))?;
        let page = listed.dir_list.ok_or_else(missing)?;
        // The listing of a file is the file, without a name.
        if page.partial_listing.iter().any(|entry| entry.path.is_empty()) {
            return Err(missing());
        }
        start_after = page.partial_listing.last().map(|entry| entry.path.clone()).unwrap_or_default();
        entries.extend(page.partial_listing);
        if page.remaining_entries == 0 || start_after.is_empty() {
            return Ok(entries);
        }
    }
}

/// # Errors
/// If clients would have to encrypt what they send to DataNodes.
async fn read_defaults(shared: &Shared) -> std::result::Result<(), ConnectError> {
    let defaults = shared.namenode.call("getServerDefaults", &Empty {}).await;
    let defaults: ServerDefaultsResponse =
        defaults.map_err(|failure| failure.at(&FilePath::root(), "connect"))?;
    shared.policies.set_default(defaults.server_defaults.policy_id());
    match defaults.server_defaults.encrypt_data_transfer() {
        false => Ok(()),
        true => {
            let (key, value) = ("dfs.encrypt.data.transfer".to_owned(), "true".to_owned());
            Err(OptionsError::Unsupported { key, value }.into())
        }
    }
}

fn name_of(entry: &generated::FileStatus) -> String {
    String::from_utf8_lossy(&entry.path).into_owned()
}

fn status(name: String, status: &generated::FileStatus) -> FileStatus {
    let is_dir = status.file_type == DIRECTORY;
    let len = if is_dir { 0 } else { status.length };
    FileStatus { name, is_dir, len, modified_ms: status.modification_time, link: None }
}

impl FileSystem for HdfsFileSystem {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        let access = purpose.access();
        Box::pin(async move {
            let writer = HdfsWriter::create(&self.shared, path, access).await?;
            Ok(Box::new(writer) as Box<dyn FileWriter>)
        })
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(self.open_now(path))
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.rename_now(from, to))
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.remove(path, true))
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.remove(dir, false))
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        Box::pin(async move {
            let found = self.file_info(path).await?;
            Ok(found.map(|found| status(path.name().to_owned(), &found)))
        })
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        Box::pin(self.list_now(dir))
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let request = MkdirsRequest {
                src: self.shared.full(dir),
                masked: FsPermission { perm: DIRECTORY_MODE & !self.shared.settings.umask },
                create_parent: true,
                unmasked: Some(FsPermission { perm: DIRECTORY_MODE }),
            };
            let made: std::result::Result<BoolResponse, Failure> =
                self.shared.namenode.call("mkdirs", &request).await;
            match made {
                Ok(_) => Ok(()),
                Err(failure) if failure.means_parent_is_file() => {
                    Err(Error::AlreadyExists { path: dir.clone() })
                }
                Err(failure) => Err(failure.at(dir, "make directory")),
            }
        })
    }

    fn sync_dir<'a>(&'a self, _dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        // The NameNode has logged a change before it responds.
        Box::pin(std::future::ready(Ok(())))
    }

    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        Box::pin(async move {
            let stats = self.shared.namenode.call("getFsStats", &Empty {}).await;
            let stats: FsStatsResponse = stats.map_err(|failure| failure.at(&FilePath::root(), "stat"))?;
            // Each byte of a file needs the space of all its replicas.
            let replicas = u64::from(self.shared.settings.replication);
            let space = |bytes: u64| bytes / replicas;
            let (total_bytes, free_bytes) = (space(stats.capacity), space(stats.remaining));
            Ok((total_bytes > 0).then_some(DiskSpace { total_bytes, free_bytes }))
        })
    }

    fn file_hosts<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Vec<FileHosts>>>> {
        Box::pin(async move {
            let entries = self.listing(dir, true).await?;
            let files = entries.iter().filter(|entry| entry.file_type != DIRECTORY);
            Ok(Some(files.map(|entry| hosts_of(name_of(entry), entry)).collect()))
        })
    }

    fn set_storage_policy<'a>(&'a self, dir: &'a FilePath, policy: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(set_policy(&self.shared, dir, policy))
    }

    fn satisfy_storage_policy(&self, path: &FilePath) {
        satisfy_later(&self.shared, path);
    }

    fn policy_counts(&self) -> Option<PolicyCounts> {
        Some(self.shared.policies.counts())
    }

    fn check_root(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let root = FilePath::root();
            match self.file_info(&root).await? {
                None => Err(Error::NotFound { path: root }),
                Some(found) if found.file_id.unwrap_or_default() == self.root_id => Ok(()),
                Some(_) => Err(Error::RootReplaced { root: self.shared.full(&root) }),
            }
        })
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        Box::pin(async move { self.shared.recover_lease(path).await.map(|()| Fence::Complete) })
    }
}
