//! Storage tiers: one [`fs::FileSystem`] whose files are on several disks of different classes.
//!
//! * [`DiskClass`]: the properties of a kind of disk, such as `ssd` or `hdd`;
//! * [`Tier`], [`Volume`]: a list of directories of one class, and one of them;
//! * `options`: the text of the options; `model`: that of a device that disks are slowed down to;
//! * [`Placement`]: the rules that choose the tiers for a new file;
//! * `choice`: the volume of a tier that is likely to be ready first;
//! * [`TieredFs`]: the file system;
//! * [`PlannedMove`]: a file that should be on another tier, because of the rules, of how often it
//!   is read (`heat`), or of the space;
//! * [`Mover`]: moves a file to another tier while it is read;
//! * [`TierStatus`], [`VolumeStatus`], [`BusStatus`]: their state, for the operator;
//! * [`KnownVolumes`]: the volumes that the database has had;
//! * `sweep`: removes copies that no name refers to.
//!
//! # Names and bytes
//!
//! All names are in one directory, the *home*: the root directory of the database. A file is either
//! there itself, or the home has a [link](fs::FileSystem::link) to it, and its bytes are on a
//! volume. Therefore a rename is one atomic step, also of a directory, and no step leaves a file in
//! two places: the home has one name. A program without Grampus follows the links, because they are
//! symbolic links.
//!
//! A new file is first created on its volume, and this name is made durable, before the link is
//! made. A link whose target is missing is therefore a lost file, and never a file that was just
//! being created. A deletion removes the link first, and the target only when the removal of the
//! link is durable. After a crash, targets without a link remain; the next start removes them.
//!
//! Only one process may use a home with volumes.
//!
//! Knows nothing about: the contents of the files.

mod bus_status;
mod choice;
mod class;
mod filesystem;
#[cfg(fuzzing)]
pub mod fuzzing;
mod heat;
mod known;
mod load;
mod missing;
mod model;
mod moved;
mod mover;
mod options;
mod placement;
mod plan;
mod reader;
mod sweep;
mod target;
mod tier;
mod tier_status;
mod volume;
mod volume_status;
mod writer;

pub use bus_status::BusStatus;
pub use class::{DiskClass, StorageType, UnknownClass};
pub use filesystem::TieredFs;
pub use known::KnownVolumes;
pub use load::VolumeLoad;
pub use missing::MissingVolume;
pub use mover::{MoveError, Mover};
pub use options::{TierDirectory, TierOptions, parse_classes, parse_tiers};
pub use placement::{Placement, TierRule};
pub use plan::{PlannedMove, StoredFile};
pub use tier::Tier;
pub use tier_status::TierStatus;
pub use volume::{Gauge, Health, Volume, VolumeError};
pub use volume_status::VolumeStatus;

#[cfg(test)]
mod tests;
