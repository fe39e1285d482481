//! One directory of a tier.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fs::{DiskSpace, Error, FilePath, FileSystem};

use tracing::error;

use crate::known::{KnownVolumes, write_file};
use crate::load::VolumeLoad;
use crate::moved::MovedBytes;
use crate::target::VOLUME_PREFIX;
use crate::volume_status::VolumeStatus;

/// The file that identifies a volume.
const IDENTITY: &str = "grampus.volume";
/// The home keeps at most this much space for names.
const NAMES_BYTES_MAX: u64 = 256 << 20;

/// Measurements of a volume's device, by which the volume for a new file is chosen, and which the
/// operator sees.
pub trait Gauge: Send + Sync + 'static {
    /// How long a write of `bytes` bytes that begins now is likely to take.
    fn expected_completion(&self, bytes: u64) -> Duration;
    /// Whether the device has not responded for so long that it gets no new files.
    fn is_stuck(&self) -> bool;
    /// What the device does now, and what it did since the start.
    fn load(&self) -> VolumeLoad {
        VolumeLoad::default()
    }
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
    /// It was a volume of this database, and is not one any more.
    #[error("it has no {IDENTITY}, although it is a volume of this database: is its disk mounted?")]
    Missing,
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
    moved: MovedBytes,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Why the directory is missing.
    missing: Option<String>,
    /// The first error of a read or write. A device that returns errors gets no new files until the
    /// process starts again.
    failure: Option<String>,
    space: Option<DiskSpace>,
    /// Bytes appended since `space` was measured.
    written_bytes: u64,
    /// Bytes that the files that are being written are expected to get yet.
    announced_bytes: u64,
    is_full: bool,
    /// Whether a poll is in progress.
    is_polled: bool,
}

impl Volume {
    /// The directory of all names as a volume: its files need no link.
    pub fn home(directory: &str, home: Arc<dyn FileSystem>, gauge: Option<Arc<dyn Gauge>>) -> Arc<Volume> {
        Volume::new("home".to_owned(), directory, home, gauge, true)
    }

    /// Opens a volume. A directory that is not in `known` becomes one of the database `database`,
    /// if it is not a volume. `number` is random: it becomes the id of a new volume.
    ///
    /// # Errors
    /// [`VolumeError`].
    pub async fn open(
        directory: &str,
        fs: Arc<dyn FileSystem>,
        gauge: Option<Arc<dyn Gauge>>,
        known: &KnownVolumes,
        database: &str,
        number: u64,
    ) -> Result<Arc<Volume>, VolumeError> {
        let id = match read_identity(&*fs).await? {
            Some((_, found)) if found != database => return Err(VolumeError::OtherDatabase { found }),
            Some((id, _)) => id,
            None if known.contains(directory) => return Err(VolumeError::Missing),
            None => {
                let id = format!("{VOLUME_PREFIX}{number:016x}");
                write_file(&*fs, IDENTITY, format!("{id}\n{database}\n")).await?;
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
        let (directory, moved, state) = (directory.into(), MovedBytes::default(), Mutex::default());
        Arc::new(Volume { id, directory, fs, gauge, is_home, moved, state })
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

    /// How long a new file of `bytes` bytes is likely to take, with the files that are being
    /// written.
    ///
    /// The queue of the device knows only their next requests. Without the rest, many files that
    /// begin at the same time would go to one volume, and the others would be idle.
    pub fn expected_completion(&self, bytes: u64) -> Duration {
        let bytes = bytes.saturating_add(self.lock().announced_bytes);
        self.gauge.as_ref().map_or(Duration::ZERO, |gauge| gauge.expected_completion(bytes))
    }

    /// Whether the disk has space for `bytes` more bytes next to the files that are being written,
    /// as far as is known. The home keeps four times the space that names need: the logs and other
    /// files that are already being written grow into it.
    pub fn has_room_for(&self, bytes: u64) -> bool {
        let announced = self.lock().announced_bytes;
        self.space().is_none_or(|space| {
            let kept = if self.is_home { 4 * bytes_for_names(space) } else { 0 };
            space.free_bytes.saturating_sub(announced) > bytes.saturating_add(kept)
        })
    }

    /// Whether the disk has more than `bytes` free bytes, also those that the home keeps for names.
    pub(crate) fn has_free(&self, bytes: u64) -> bool {
        self.space().is_none_or(|space| space.free_bytes > bytes)
    }

    /// The share of the disk that is used, from 0 to 1; 0 if unknown.
    pub fn fill(&self) -> f64 {
        let Some(space) = self.space().filter(|space| space.total_bytes > 0) else { return 0.0 };
        1.0 - space.free_bytes as f64 / space.total_bytes as f64
    }

    /// The space that the last poll found, less the bytes written since then.
    pub fn space(&self) -> Option<DiskSpace> {
        let state = self.lock();
        state.space.map(|space| DiskSpace {
            free_bytes: space.free_bytes.saturating_sub(state.written_bytes),
            ..space
        })
    }

    /// The state of the volume now.
    pub fn status(&self) -> VolumeStatus {
        let (moved_in_bytes, moved_out_bytes) = self.moved.counts();
        VolumeStatus {
            directory: self.directory.clone(),
            health: self.health(),
            space: self.space(),
            load: self.gauge.as_ref().map(|gauge| gauge.load()).unwrap_or_default(),
            moved_in_bytes,
            moved_out_bytes,
        }
    }

    /// Counts of the bytes that were moved to and from the volume.
    pub(crate) fn moved(&self) -> &MovedBytes {
        &self.moved
    }

    /// Begins a poll, unless one is in progress.
    pub(crate) fn begin_poll(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_polled, true)
    }

    /// Remembers that a poll does not end.
    pub(crate) fn record_hang(&self) {
        self.lock().missing.get_or_insert_with(|| "it does not respond".to_owned());
    }

    /// Measures the free space and checks that the directory is still there. Call
    /// [`begin_poll`](Volume::begin_poll) before.
    pub(crate) async fn poll(&self) {
        let found = match self.fs.check_root().await {
            Ok(()) => self.fs.space().await,
            Err(error) => Err(error),
        };
        let mut state = self.lock();
        state.is_polled = false;
        match found {
            Ok(space) => {
                (state.missing, state.space) = (None, space);
                (state.written_bytes, state.is_full) = (0, false);
            }
            Err(error) => state.missing = Some(error.to_string()),
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

    /// Remembers an error of a call on the volume. Returns it with the name of the file that the
    /// caller knows.
    pub(crate) fn failed(&self, error: Error, path: &FilePath) -> Error {
        self.record_error(&error);
        renamed(error, path, &self.directory)
    }

    /// Remembers an error of the creation of a file. Without the directory of its files, the volume
    /// gets no new ones until a poll. Callers must not take its error for a missing parent
    /// directory of `path`.
    pub(crate) fn creation_failed(&self, error: Error, path: &FilePath) -> Error {
        if !matches!(error, Error::NotFound { .. }) {
            return self.failed(error, path);
        }
        let message = format!("{}/{} is missing", self.directory, self.id);
        let mut state = self.lock();
        if state.missing.is_none() {
            error!(directory = %self.directory, "a volume gets no new files: its directory of files is missing");
        }
        state.missing = Some(message.clone());
        Error::io(path, "create", message)
    }

    /// Counts bytes of a new file, so that the next file goes elsewhere before the next poll.
    pub(crate) fn record_written(&self, bytes: u64) {
        self.lock().written_bytes += bytes;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes that a new file is expected to get yet, until it is dropped.
pub(crate) struct Announced {
    volume: Arc<Volume>,
    bytes: u64,
}

impl Announced {
    pub(crate) fn new(volume: &Arc<Volume>, bytes: u64) -> Announced {
        volume.lock().announced_bytes += bytes;
        Announced { volume: volume.clone(), bytes }
    }

    pub(crate) fn volume(&self) -> &Arc<Volume> {
        &self.volume
    }

    /// Counts bytes that the file got.
    pub(crate) fn record_written(&mut self, bytes: u64) {
        let written = bytes.min(self.bytes);
        self.bytes -= written;
        self.volume.lock().announced_bytes -= written;
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.volume.lock().announced_bytes -= self.bytes;
    }
}

/// The ids of the volume and of its database, or `None` if the directory is not a volume.
pub(crate) async fn read_identity(fs: &dyn FileSystem) -> Result<Option<(String, String)>, VolumeError> {
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

/// Free bytes that the home needs for links, descriptors and other small files.
pub(crate) fn bytes_for_names(home: DiskSpace) -> u64 {
    NAMES_BYTES_MAX.min(home.total_bytes / 8)
}

/// The error of a call on a volume, with the name of the file that the caller knows.
fn renamed(error: Error, path: &FilePath, directory: &str) -> Error {
    let path = path.clone();
    match error {
        Error::NotFound { .. } => Error::NotFound { path },
        Error::AlreadyExists { .. } => Error::AlreadyExists { path },
        Error::NoSpace { .. } => Error::NoSpace { path },
        Error::VolumeFull { .. } => Error::VolumeFull { path },
        Error::NoDescriptor { operation, .. } => Error::NoDescriptor { path, operation },
        Error::PastEnd { end, .. } => Error::PastEnd { path, end },
        Error::Locked { .. } => Error::Locked { path },
        Error::TakenOver { .. } => Error::TakenOver { path },
        error @ Error::RootReplaced { .. } => error,
        Error::Io { operation, message, .. } => {
            Error::Io { path, operation, message: format!("{message} (on the volume {})", directory) }
        }
    }
}
