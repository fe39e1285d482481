//! Moves a file to another tier while it is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::checksum::crc32c;
use fs::{Error, FilePath, FileReader, FileSystem, FileWriter, IoClass, Purpose, Role, SyncLevel};

use crate::choice::choose;
use crate::filesystem::{Place, TieredFs, place};
use crate::sweep::MOVING_DIR;
use crate::target::Target;
use crate::volume::Volume;

/// Bytes that are copied at once.
const COPY_BYTES: usize = 1 << 20;

/// Why a file was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The tier has no usable volume with space.
    #[error("the tier {0} has no usable volume")]
    NoVolume(Arc<str>),
    /// The file was renamed, replaced or deleted during the move.
    #[error("{0} was changed during the move")]
    Changed(FilePath),
    /// The copy has other bytes than the file.
    #[error("the copy of {path} on {directory} has other bytes than the file")]
    Damaged {
        /// The file that was to be moved.
        path: FilePath,
        /// The directory of the volume.
        directory: Arc<str>,
    },
    /// A call failed.
    #[error(transparent)]
    Fs(#[from] Error),
}

/// Moves files between tiers.
pub struct Mover {
    fs: TieredFs,
    bytes_per_s_max: u64,
}

impl Mover {
    /// Moves at most `bytes_per_s_max` bytes per second.
    pub fn new(fs: TieredFs, bytes_per_s_max: u64) -> Mover {
        Mover { fs, bytes_per_s_max: bytes_per_s_max.max(1) }
    }

    /// Moves a file that is complete to the tier at a position of [`TieredFs::tiers`]. Returns its
    /// bytes, or `None` if it is there already.
    ///
    /// The copy is verified before the name refers to it. Open readers continue to read the old
    /// bytes. After an error or the end of the process, the file is where it was.
    ///
    /// # Errors
    /// [`MoveError`].
    pub async fn move_to(&self, path: &FilePath, tier: usize) -> Result<Option<u64>, MoveError> {
        let shared = &self.fs.shared;
        let before = self.version_of(path).await?.ok_or_else(|| Error::NotFound { path: path.clone() })?;
        let tier = &shared.tiers[tier];
        if tier.volumes.iter().any(|volume| before.is_on(volume)) {
            return Ok(None);
        }
        let source = IoClass::Move.reader(self.fs.open_uncached(path).await?);
        let volume = choose(&tier.volumes, source.len());
        let volume = volume.ok_or_else(|| MoveError::NoVolume(tier.name.clone()))?;
        let (copy, writer) = self.begin(path, volume).await?;
        let verified = match self.copy(&*source, writer).await {
            Ok(checksums) => self.verify(path, &copy, &checksums, volume).await,
            Err(error) => Err(error),
        };
        let replaced = match verified {
            Ok(()) => self.replace(path, &before, &copy, volume).await,
            Err(error) => Err(error),
        };
        if let Err(error) = replaced {
            self.discard(&copy).await;
            return Err(error);
        }
        shared.record_move(&before.place, volume, source.len());
        shared.home.sync_dir(&path.parent()).await?;
        if let Place::Volume(old) = &before.place {
            shared.remove(old).await;
        }
        Ok(Some(source.len()))
    }

    /// Creates the copy.
    async fn begin(
        &self,
        path: &FilePath,
        volume: &Arc<Volume>,
    ) -> Result<(Copy, Box<dyn FileWriter>), MoveError> {
        let shared = &self.fs.shared;
        let purpose = Purpose::of(Role::Moved);
        let name = FilePath::new(MOVING_DIR).join(&format!("{:016x}", shared.env.random.next_u64()));
        if volume.is_home() {
            let writer = shared.home.create_for(&name, &purpose).await?;
            return Ok((Copy { name, target: None, is_named: AtomicBool::new(false) }, writer));
        }
        let (writer, target) = shared.create_target(volume, path, &purpose).await?;
        Ok((Copy { name, target: Some(target), is_named: AtomicBool::new(false) }, writer))
    }

    /// Copies all bytes and makes them durable. Returns the checksum of each piece.
    async fn copy(
        &self,
        source: &dyn FileReader,
        mut writer: Box<dyn FileWriter>,
    ) -> Result<Vec<u32>, MoveError> {
        let clock = &self.fs.shared.env.clock;
        let begin = clock.monotonic();
        let mut checksums = Vec::new();
        for (offset, len) in pieces(source.len()) {
            let bytes = source.read_at(offset, len).await?;
            checksums.push(crc32c(&bytes));
            writer.append(bytes).await?;
            let due =
                begin + Duration::from_secs_f64((offset + len as u64) as f64 / self.bytes_per_s_max as f64);
            let early = due.saturating_sub(clock.monotonic());
            if !early.is_zero() {
                clock.sleep(early).await;
            }
        }
        writer.sync(SyncLevel::Disk).await?;
        writer.close().await?;
        Ok(checksums)
    }

    /// Compares the copy with the checksums of what was read.
    async fn verify(
        &self,
        path: &FilePath,
        copy: &Copy,
        checksums: &[u32],
        volume: &Arc<Volume>,
    ) -> Result<(), MoveError> {
        let (fs, at) = match &copy.target {
            Some(target) => (volume.fs(), target.path()),
            None => (&self.fs.shared.home, copy.name.clone()),
        };
        let written = IoClass::Move.reader(fs.open_uncached(&at).await?);
        for ((offset, len), expected) in pieces(written.len()).zip(checksums) {
            if crc32c(&written.read_at(offset, len).await?) != *expected {
                return Err(MoveError::Damaged { path: path.clone(), directory: volume.directory().clone() });
            }
        }
        Ok(())
    }

    /// Lets the name refer to the copy, unless the file was changed meanwhile.
    async fn replace(
        &self,
        path: &FilePath,
        before: &Version,
        copy: &Copy,
        volume: &Arc<Volume>,
    ) -> Result<(), MoveError> {
        let home = &self.fs.shared.home;
        let _names = self.fs.shared.names.write().await;
        if self.version_of(path).await?.as_ref() != Some(before) {
            return Err(MoveError::Changed(path.clone()));
        }
        copy.is_named.store(true, Ordering::Relaxed);
        if let Some(target) = &copy.target {
            home.link(&copy.name, &target.link(volume.directory())).await?;
        }
        Ok(home.rename(&copy.name, path).await?)
    }

    /// Removes a copy, unless a name may refer to it: a rename that returned an error may have had
    /// its effect. What remains is removed by the next start.
    async fn discard(&self, copy: &Copy) {
        let shared = &self.fs.shared;
        match (&copy.target, copy.is_named.load(Ordering::Relaxed)) {
            (_, true) => {}
            (Some(target), false) => shared.remove(target).await,
            (None, false) => {
                let _ = shared.home.delete(&copy.name).await;
            }
        }
    }

    /// What the name refers to now, according to the home alone: a call on a volume may hang, and
    /// [`replace`](Mover::replace) holds the lock of all names.
    async fn version_of(&self, path: &FilePath) -> Result<Option<Version>, MoveError> {
        let found = self.fs.shared.home.stat(path).await?.filter(|status| !status.is_dir);
        Ok(found.map(|status| Version {
            place: place(&status),
            len: status.len,
            modified_ms: status.modified_ms,
        }))
    }
}

/// A copy that no name refers to yet.
struct Copy {
    /// The name that replaces that of the file: of the bytes, or of a link to them.
    name: FilePath,
    target: Option<Target>,
    /// Whether the step that lets the name refer to the copy has begun.
    is_named: AtomicBool,
}

/// What a name refers to. A file is complete before it is moved, so it has the same length and time
/// until it is replaced. For a link, the place suffices, because the name of its target is unique.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    place: Place,
    len: u64,
    modified_ms: u64,
}

impl Version {
    fn is_on(&self, volume: &Volume) -> bool {
        match &self.place {
            Place::Home => volume.is_home(),
            Place::Volume(target) => target.volume == volume.id(),
        }
    }
}

/// Offsets and lengths of the pieces that are copied at once.
fn pieces(len: u64) -> impl Iterator<Item = (u64, usize)> {
    let piece = COPY_BYTES as u64;
    (0..len.div_ceil(piece)).map(move |at| (at * piece, (len - at * piece).min(piece) as usize))
}
