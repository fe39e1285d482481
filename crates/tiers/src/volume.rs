//! One directory of a tier.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fs::{AccessPattern, DiskSpace, Error, FilePath, FileSystem, SyncLevel};

use tracing::error;

use crate::target::VOLUME_PREFIX;

/// The file that identifies a volume.
const IDENTITY: &str = "grampus.volume";

/// Measurements of a volume's device, by which the volume for a new file is chosen.
pub trait Gauge: Send + Sync + 'static {
    /// How long a write of `bytes` bytes that begins now is likely to take.
    fn expected_completion(&self, bytes: u64) -> Duration;
    /// Whether the device has not responded for so long that it gets no new files.
    fn is_stuck(&self) -> bool;
}

/// Whether a volume gets new files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Good,
    /// It has no space left. It is asked again after the next poll that finds some.
    Full,
    /// It does not respond.
    Stuck,
    /// It is missing or returned an error.
    Failed(String),
}

/// Why a directory cannot be a volume.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// It belongs to another database.
    #[error(
        "it has files of the database {found}; remove it from the options, or empty it if that database no \
         longer exists"
    )]
    OtherDatabase {
        /// The id of that database.
        found: String,
    },
    /// The file that identifies the volume is damaged.
    #[error("{IDENTITY} is damaged; it should have two lines, the id of the volume and that of the database")]
    Damaged,
    /// A call failed.
    #[error(transparent)]
    Fs(#[from] Error),
}

/// One directory of a tier.
pub struct Volume {
    id: String,
    directory: Arc<str>,
    fs: Arc<dyn FileSystem>,
    gauge: Option<Arc<dyn Gauge>>,
    is_home: bool,
    state: Mutex<State>,
}

struct State {
    /// Why the directory is missing.
    missing: Option<String>,
    /// The first error of a read or write. A device that returns errors gets no new files until the
    /// process starts again.
    failure: Option<String>,
    space: Option<DiskSpace>,
    /// Bytes appended since `space` was measured.
    written_bytes: u64,
    is_full: bool,
}

impl Volume {
    /// The directory of all names as a volume: its files need no link.
    pub fn home(directory: &str, home: Arc<dyn FileSystem>) -> Arc<Volume> {
        Volume::new("home".to_owned(), directory, home, None, true)
    }

    /// Opens a volume, and makes an empty directory one of the database `database`. `number` is
    /// random: it becomes the id of a new volume.
    ///
    /// # Errors
    /// [`VolumeError`].
    pub async fn open(
        directory: &str,
        fs: Arc<dyn FileSystem>,
        gauge: Option<Arc<dyn Gauge>>,
        database: &str,
        number: u64,
    ) -> Result<Arc<Volume>, VolumeError> {
        let id = match read_identity(&*fs).await? {
            Some((_, found)) if found != database => return Err(VolumeError::OtherDatabase { found }),
            Some((id, _)) => id,
            None => {
                let id = format!("{VOLUME_PREFIX}{number:016x}");
                write_identity(&*fs, &id, database).await?;
                id
            }
        };
        fs.make_dirs(&FilePath::new(&id)).await?;
        Ok(Volume::new(id, directory, fs, gauge, false))
    }

    fn new(
        id: String,
        directory: &str,
        fs: Arc<dyn FileSystem>,
        gauge: Option<Arc<dyn Gauge>>,
        is_home: bool,
    ) -> Arc<Volume> {
        let state =
            Mutex::new(State { missing: None, failure: None, space: None, written_bytes: 0, is_full: false });
        Arc::new(Volume { id, directory: directory.into(), fs, gauge, is_home, state })
    }

    /// The id, which links contain.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its absolute path.
    pub fn directory(&self) -> &Arc<str> {
        &self.directory
    }

    /// Whether this is the directory of all names.
    pub fn is_home(&self) -> bool {
        self.is_home
    }

    pub(crate) fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }

    /// Whether the volume gets new files.
    pub fn health(&self) -> Health {
        if self.gauge.as_ref().is_some_and(|gauge| gauge.is_stuck()) {
            return Health::Stuck;
        }
        let state = self.lock();
        match state.failure.as_ref().or(state.missing.as_ref()) {
            Some(reason) => Health::Failed(reason.clone()),
            None if state.is_full => Health::Full,
            None => Health::Good,
        }
    }

    /// How long a write of `bytes` bytes that begins now is likely to take.
    pub fn expected_completion(&self, bytes: u64) -> Duration {
        self.gauge.as_ref().map_or(Duration::ZERO, |gauge| gauge.expected_completion(bytes))
    }

    /// Whether the disk has space for `bytes` more bytes, as far as is known.
    pub fn has_room_for(&self, bytes: u64) -> bool {
        let state = self.lock();
        let free = |space: DiskSpace| space.free_bytes.saturating_sub(state.written_bytes);
        state.space.is_none_or(|space| free(space) > bytes)
    }

    /// The share of the disk that is used, from 0 to 1; 0 if unknown.
    pub fn fill(&self) -> f64 {
        let state = self.lock();
        let Some(space) = state.space.filter(|space| space.total_bytes > 0) else { return 0.0 };
        let free = space.free_bytes.saturating_sub(state.written_bytes);
        1.0 - free as f64 / space.total_bytes as f64
    }

    /// Measures the free space and checks that the directory is still there.
    pub async fn poll(&self) -> Option<DiskSpace> {
        let found = match self.fs.check_root().await {
            Ok(()) => self.fs.space().await,
            Err(error) => Err(error),
        };
        let mut state = self.lock();
        match found {
            Ok(space) => {
                let failure = state.failure.take();
                *state = State { missing: None, failure, space, written_bytes: 0, is_full: false };
                space
            }
            Err(error) => {
                state.missing = Some(error.to_string());
                None
            }
        }
    }

    /// Remembers what an error of a call says about the volume.
    pub(crate) fn record_error(&self, error: &Error) {
        let mut state = self.lock();
        match error {
            Error::NoSpace { .. } => state.is_full = true,
            Error::Io { .. } => {
                if state.failure.is_none() {
                    error!(directory = %self.directory, %error, "a volume failed: it gets no new files");
                }
                state.failure.get_or_insert_with(|| error.to_string());
            }
            // Errors of the caller, and limits of the process.
            _ => {}
        }
    }

    /// Counts bytes of a new file, so that the next file goes elsewhere before the next poll.
    pub(crate) fn record_written(&self, bytes: u64) {
        self.lock().written_bytes += bytes;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ids of the volume and of its database, or `None` if the directory is not a volume.
async fn read_identity(fs: &dyn FileSystem) -> Result<Option<(String, String)>, VolumeError> {
    let path = FilePath::new(IDENTITY);
    if fs.stat(&path).await?.is_none() {
        return Ok(None);
    }
    let reader = fs.open(&path).await?;
    // Two short lines; a longer file is not one of ours.
    let len = usize::try_from(reader.len()).ok().filter(|len| *len < 1024).ok_or(VolumeError::Damaged)?;
    let bytes = reader.read_at(0, len).await?;
    let text = std::str::from_utf8(&bytes).map_err(|_| VolumeError::Damaged)?;
    match text.lines().collect::<Vec<_>>()[..] {
        [id, database] if id.starts_with(VOLUME_PREFIX) && !database.is_empty() => {
            Ok(Some((id.to_owned(), database.to_owned())))
        }
        _ => Err(VolumeError::Damaged),
    }
}

async fn write_identity(fs: &dyn FileSystem, id: &str, database: &str) -> fs::Result<()> {
    let (unfinished, path) = (FilePath::new("grampus.volume.new"), FilePath::new(IDENTITY));
    fs.delete(&unfinished).await?;
    let mut writer = fs.create(&unfinished, AccessPattern::Data).await?;
    writer.append(format!("{id}\n{database}\n").into()).await?;
    writer.sync(SyncLevel::Disk).await?;
    writer.close().await?;
    fs.rename(&unfinished, &path).await?;
    fs.sync_dir(&FilePath::root()).await
}
