//! The data directory: its lock, its file system, and the disk that it is on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::tiers::TieredFs;
use base::config::{Config, RootUri};
use base::env::Env;
use base::pool::Pool;
use fs::local::LocalFs;
use fs::mounted::Mounted;
use fs::reserve::{Reserve, WithReserve};
use fs::space::Space;
use fs::{FilePath, FileSystem};
use layout::{Identity, RootDir};
use regionserver::Disk;

use crate::hdfs::{self, IfMissing};
use crate::lock::{DirectoryLock, LockError};
use crate::tiers;

/// Number of threads for blocking disk calls.
pub(crate) const DISK_THREADS: usize = 8;

/// How long a process of a cluster waits for another one that is creating the directory.
const CREATION_WAIT: Duration = Duration::from_secs(5);
/// How long a process that has generated the id of a cluster waits before it uses the id.
const ID_WAIT: Duration = Duration::from_secs(2);
/// The pause between two attempts to open such a directory.
const CREATION_PAUSE: Duration = Duration::from_millis(500);

/// The locked data directory.
pub(crate) struct DataDirectory {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) disk: Disk,
    pub(crate) instruments: Arc<fs::measured::Instruments>,
    pub(crate) root: RootDir,
    pub(crate) cluster_id: String,
    /// Whether the directory had lost its cluster id, so that this is a new one.
    pub(crate) has_lost_id: bool,
    // None on HDFS, where the leases of files protect them.
    _lock: Option<DirectoryLock>,
}

/// The processes that may use a data directory at the same time.
#[derive(Clone, Copy)]
pub(crate) enum Users<'a> {
    /// Only this one.
    One,
    /// The processes of a cluster. Each has a disk reserve of its own, of this name.
    Cluster(&'a str),
}

impl DataDirectory {
    /// Opens an existing data directory.
    ///
    /// # Errors
    /// One line that states why the directory cannot be opened.
    pub(crate) async fn open_existing(env: &Env, config: &Config) -> Result<DataDirectory, String> {
        let dir = local_root(config)?;
        match is_directory(dir) {
            true => DataDirectory::open(env, config, Users::One).await,
            false => {
                Err(format!("there is no data directory {}; choose another with --data DIR", dir.display()))
            }
        }
    }

    /// Opens a data directory, and creates it if it is missing.
    ///
    /// # Errors
    /// One line that states why the directory cannot be opened.
    pub(crate) async fn open(env: &Env, config: &Config, users: Users<'_>) -> Result<DataDirectory, String> {
        match (&config.root, users) {
            (RootUri::Local(dir), _) => DataDirectory::open_local(env, config, dir, users).await,
            (RootUri::Other { .. }, Users::Cluster(_)) => DataDirectory::open_remote(env, config).await,
            (RootUri::Other { scheme, .. }, Users::One) => {
                let reason = match scheme.as_str() {
                    "hdfs" => {
                        "a single process needs a local directory; to use HDFS, start `grampus master` and \
                               `grampus regionserver`"
                            .to_string()
                    }
                    _ => format!("{scheme}:// is not supported; use a local directory"),
                };
                Err(config.refused("hbase.rootdir", reason).to_string())
            }
        }
    }

    /// Opens a directory on another file system, which all processes of a cluster use.
    async fn open_remote(env: &Env, config: &Config) -> Result<DataDirectory, String> {
        let shown = &config.root;
        let root = RootDir::new(FilePath::root());
        let data = hdfs::open(env, config, ("hbase.rootdir", &config.root), IfMissing::Create).await?;
        let logs = match &config.wal_dir {
            Some(place) if place != &config.root => {
                Some(hdfs::open(env, config, ("hbase.wal.dir", place), IfMissing::Create).await?)
            }
            _ => None,
        };
        let remote: Arc<dyn FileSystem> = match &logs {
            Some(logs) => Arc::new(Mounted::new(data, logs.clone(), root.separable_wal_dirs())),
            None => data,
        };
        let instruments = fs::measured::Instruments::begin(env.clock.clone());
        let fs: Arc<dyn FileSystem> = Arc::new(fs::measured::Measured::new(remote, instruments.clone()));
        let identity = identity_of_shared(env, &*fs, &root, logs.as_deref()).await;
        let identity = identity.map_err(|error| format!("{shown}: {error}"))?;
        if let Some(logs) = &logs {
            let claimed = layout::identity::claim_wal_dir(&**logs, &*env.random, &identity.cluster_id).await;
            claimed.map_err(|error| config.refused("hbase.wal.dir", error.to_string()).to_string())?;
        }
        let (disk, has_lost_id) = (Disk::remote(), has_lost_id(&identity));
        let cluster_id = identity.cluster_id;
        Ok(DataDirectory { fs, disk, instruments, root, cluster_id, has_lost_id, _lock: None })
    }

    /// Opens a directory of this machine.
    async fn open_local(
        env: &Env,
        config: &Config,
        dir: &Path,
        users: Users<'_>,
    ) -> Result<DataDirectory, String> {
        let shown = dir.display();
        make_directory(dir).map_err(|error| format!("cannot make the data directory {shown}: {error}"))?;
        let root = RootDir::new(FilePath::root());
        let lock_path = dir.join(root.lock_file().as_str());
        let lock = lock_directory(env, &lock_path, users).await.map_err(|refused| match refused {
            LockError::InUse => format!(
                "the data directory {shown} is in use by another grampus; stop it, or choose another directory \
                 with --data DIR"
            ),
            LockError::Io(error) => format!("cannot lock the data directory {shown}: {error}"),
        })?;
        let pool = Arc::new(Pool::new("disk", DISK_THREADS));
        let data = local_fs(dir, &pool, config)?;
        let logs = match separate_wal_dir(config, dir)? {
            Some(dir) => Some(local_fs(dir, &pool, config)?),
            None => None,
        };
        let local: Arc<dyn FileSystem> = match &logs {
            Some(logs) => Arc::new(Mounted::new(data, logs.clone(), root.separable_wal_dirs())),
            None => data,
        };
        let tiers = open_tiers(env, config, (&local, dir, logs.as_deref()), &root, users).await?;
        let local: Arc<dyn FileSystem> = match &tiers {
            Some(tiers) => Arc::new(tiers.clone()),
            None => local,
        };
        let local: Arc<dyn FileSystem> = match users {
            Users::One => local,
            Users::Cluster(_) => Arc::new(fs::shared::Shared::new(local)),
        };
        let instruments = fs::measured::Instruments::begin(env.clock.clone());
        let reserve_dir = match users {
            Users::One => root.reserve_dir(),
            Users::Cluster(name) => root.reserve_dir().join(name),
        };
        let disk = prepare_disk(&local, &root, &reserve_dir, config)
            .await
            .map_err(|error| format!("{shown}: {error}"))?;
        let disk = Disk { tiers, ..disk };
        let reserved: Arc<dyn FileSystem> = match &disk.reserve {
            Some(reserve) => Arc::new(WithReserve::new(local, reserve.clone())),
            None => local,
        };
        let fs: Arc<dyn FileSystem> = Arc::new(fs::measured::Measured::new(reserved, instruments.clone()));
        let identity = match root.open_or_create_with(&*fs, &*env.random, logs.as_deref()).await {
            Ok(identity) => identity,
            Err(error) => {
                if matches!(error, layout::Error::NotOurs { .. } | layout::Error::Unfinished { .. }) {
                    lock.remove();
                }
                // Only Grampus creates the directory of the log records.
                let has_log_records = is_directory(&dir.join(root.log_record().parent().as_str()));
                let may_restore_marker = match &error {
                    layout::Error::NotOurs { .. } => has_log_records,
                    layout::Error::Corrupt { file, .. } => file.name() == layout::identity::MARKER,
                    _ => false,
                };
                let remedy = match may_restore_marker {
                    true => format!(
                        ". If this is a data directory of Grampus and only grampus.root was lost or damaged, \
                         restore that file: {}",
                        layout::identity::restoring_command(&dir.display().to_string())
                    ),
                    false => adoption_hint(&error, dir),
                };
                return Err(format!("the data directory {shown}: {error}{remedy}"));
            }
        };
        if let Some(logs) = &logs {
            let claimed = layout::identity::claim_wal_dir(&**logs, &*env.random, &identity.cluster_id).await;
            claimed.map_err(|error| config.refused("hbase.wal.dir", error.to_string()).to_string())?;
        }
        // The files of the disk reserve are allocated later, while the server is already serving.
        fs.make_dirs(&reserve_dir).await.map_err(|error| format!("{shown}: {error}"))?;
        if let Users::Cluster(_) = users {
            lock.share().map_err(|error| format!("cannot share the data directory {shown}: {error}"))?;
        }
        let (has_lost_id, cluster_id) = (has_lost_id(&identity), identity.cluster_id);
        Ok(DataDirectory { fs, disk, instruments, root, cluster_id, has_lost_id, _lock: Some(lock) })
    }
}

fn has_lost_id(identity: &Identity) -> bool {
    identity.is_id_new && !identity.is_new
}

/// What to do with a directory that HBase has written.
fn adoption_hint(error: &layout::Error, dir: &Path) -> String {
    let is_hbase = is_file(&dir.join("hbase.version"));
    match error {
        layout::Error::NotOurs { .. } if is_hbase => {
            format!(
                ". It is a root directory of HBase: check it with `grampus adopt {} --check`",
                dir.display()
            )
        }
        _ => String::new(),
    }
}

/// The file system of the root directory, without a lock and without any change.
///
/// # Errors
/// One line that states why the directory cannot be read.
pub(crate) async fn open_files(env: &Env, config: &Config) -> Result<Arc<dyn FileSystem>, String> {
    match &config.root {
        RootUri::Local(dir) => match is_directory(dir) {
            true => local_fs(dir, &Arc::new(Pool::new("disk", DISK_THREADS)), config),
            false => Err(format!("there is no directory {}", dir.display())),
        },
        RootUri::Other { .. } => {
            hdfs::open(env, config, ("hbase.rootdir", &config.root), IfMissing::Fail).await
        }
    }
}

/// Locks a directory of this machine for this process alone.
///
/// # Errors
/// One line that states why it cannot be locked.
pub(crate) fn lock_alone(dir: &Path, root: &RootDir) -> Result<DirectoryLock, String> {
    let lock = DirectoryLock::acquire(&dir.join(root.lock_file().as_str()), false);
    lock.map_err(|refused| cannot_lock(dir, &refused))
}

/// Locks a directory of this machine for this process alone, without changing it. Returns `None` if
/// it has no lock file, which every server creates.
///
/// # Errors
/// One line that states why it cannot be locked.
pub(crate) fn lock_unchanged(dir: &Path, root: &RootDir) -> Result<Option<DirectoryLock>, String> {
    let lock = DirectoryLock::acquire_existing(&dir.join(root.lock_file().as_str()));
    lock.map_err(|refused| cannot_lock(dir, &refused))
}

fn cannot_lock(dir: &Path, refused: &LockError) -> String {
    let shown = dir.display();
    match refused {
        LockError::InUse => format!("the directory {shown} is in use by another grampus; stop it first"),
        LockError::Io(error) => format!("cannot lock the directory {shown}: {error}"),
    }
}

/// The storage tiers of the options over the root directory `home`, whose logs may be in a separate
/// directory; `None` if there are none.
async fn open_tiers(
    env: &Env,
    config: &Config,
    (home, dir, logs): (&Arc<dyn FileSystem>, &Path, Option<&dyn FileSystem>),
    root: &RootDir,
    users: Users<'_>,
) -> Result<Option<TieredFs>, String> {
    let options = tiers::configured(config)?;
    if options.is_empty() {
        return Ok(None);
    }
    if let Users::Cluster(_) = users {
        let reason = "tiers need one process that uses the root directory alone; the processes of a cluster use \
                      the storage policies of HDFS";
        return Err(config.refused("grampus.tiers", reason.to_string()).to_string());
    }
    let identity = root.open_or_create_with(&**home, &*env.random, logs).await;
    let identity = identity.map_err(|error| format!("the data directory {}: {error}", dir.display()))?;
    tiers::open(env, config, options, (home.clone(), dir), &identity.cluster_id).await.map(Some)
}

/// The identity of a directory that nothing locks: another process may be creating it at the same
/// time.
async fn identity_of_shared(
    env: &Env,
    fs: &dyn FileSystem,
    root: &RootDir,
    logs: Option<&dyn FileSystem>,
) -> layout::Result<Identity> {
    let deadline = env.clock.monotonic() + CREATION_WAIT;
    loop {
        match root.open_or_create_with(fs, &*env.random, logs).await {
            Ok(identity) if identity.is_id_new => {
                // Another process that generates an id has replaced this one by then.
                env.clock.sleep(ID_WAIT).await;
                let settled = root.open_or_create_with(fs, &*env.random, logs).await?;
                return Ok(Identity { cluster_id: settled.cluster_id, ..identity });
            }
            Err(_) if env.clock.monotonic() < deadline => env.clock.sleep(CREATION_PAUSE).await,
            opened => return opened,
        }
    }
}

/// Locks the data directory. The first process of a cluster locks it for itself until it has
/// created the files that identify the directory; the others wait for that.
async fn lock_directory(env: &Env, path: &Path, users: Users<'_>) -> Result<DirectoryLock, LockError> {
    let first = DirectoryLock::acquire(path, false);
    if !matches!((&first, users), (Err(LockError::InUse), Users::Cluster(_))) {
        return first;
    }
    let deadline = env.clock.monotonic() + CREATION_WAIT;
    loop {
        let shared = DirectoryLock::acquire(path, true);
        if !matches!(shared, Err(LockError::InUse)) || env.clock.monotonic() >= deadline {
            return shared;
        }
        env.clock.sleep(Duration::from_millis(50)).await;
    }
}

/// The local directory of `hbase.rootdir`.
///
/// # Errors
/// One line that names the option, if its file system is not supported.
fn local_root(config: &Config) -> Result<&Path, String> {
    local_dir(config, "hbase.rootdir", &config.root)
}

fn local_dir<'a>(config: &Config, key: &str, place: &'a RootUri) -> Result<&'a Path, String> {
    match place {
        RootUri::Local(dir) => Ok(dir),
        RootUri::Other { scheme, .. } => {
            let reason = format!("{scheme}:// is not possible here; use a local directory");
            Err(config.refused(key, reason).to_string())
        }
    }
}

/// The directory of the logs, created if it is missing; `None` if they are below the data directory
/// `data`.
///
/// # Errors
/// One line that names the option.
fn separate_wal_dir<'a>(config: &'a Config, data: &Path) -> Result<Option<&'a Path>, String> {
    const KEY: &str = "hbase.wal.dir";
    let Some(place) = &config.wal_dir else { return Ok(None) };
    let dir = local_dir(config, KEY, place)?;
    let refused = |reason: String| config.refused(KEY, reason).to_string();
    make_directory(dir).map_err(|error| refused(format!("cannot make the directory: {error}")))?;
    let resolved =
        |dir: &Path| canonical(dir).map_err(|error| refused(format!("{}: {error}", dir.display())));
    let (data, logs) = (resolved(data)?, resolved(dir)?);
    match logs == data {
        true => Ok(None),
        // HBase refuses this, too: a copy of the data directory would contain the logs twice.
        false if logs.starts_with(&data) => Err(refused("it must not be below hbase.rootdir".into())),
        false => Ok(Some(dir)),
    }
}

fn local_fs(dir: &Path, pool: &Arc<Pool>, config: &Config) -> Result<Arc<dyn FileSystem>, String> {
    let local = LocalFs::new(dir, pool.clone()).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(match config.reads_directly(base::memory::limit_bytes()) {
        true => Arc::new(local.with_direct_io()),
        false => Arc::new(local),
    })
}

/// Measures the free space of the disk of `fs`, and opens the disk reserve with the files that it
/// already has. Missing files are allocated later.
async fn prepare_disk(
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    reserve_dir: &FilePath,
    config: &Config,
) -> fs::Result<Disk> {
    let Some(found) = fs.space().await? else {
        return Ok(Disk { lock: Some(root.lock_file()), ..Disk::default() });
    };
    let bytes = config.disk_reserve_bytes_of(found.total_bytes);
    let space = Arc::new(Space::new(bytes));
    space.record_poll(found, 0);
    let reserve = Reserve::open(fs.clone(), reserve_dir.clone(), bytes, space.clone()).await?;
    Ok(Disk { space, reserve: Some(reserve), lock: Some(root.lock_file()), ..Disk::default() })
}

#[allow(clippy::disallowed_methods, reason = "FileSystem only has paths relative to the data directory")]
fn is_directory(dir: &Path) -> bool {
    dir.is_dir()
}

#[allow(clippy::disallowed_methods, reason = "FileSystem only has paths relative to the data directory")]
fn is_file(path: &Path) -> bool {
    path.is_file()
}

#[allow(clippy::disallowed_methods, reason = "FileSystem only has paths relative to the data directory")]
fn canonical(dir: &Path) -> std::io::Result<PathBuf> {
    std::fs::canonicalize(dir)
}

#[allow(clippy::disallowed_methods, reason = "FileSystem only has paths relative to the data directory")]
fn make_directory(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)
}
