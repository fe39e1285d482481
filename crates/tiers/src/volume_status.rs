//! The state of a volume at one moment.

use std::sync::Arc;

use fs::DiskSpace;

use crate::load::VolumeLoad;
use crate::volume::Health;

/// The state of a volume at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeStatus {
    /// Its absolute path.
    pub directory: Arc<str>,
    /// Whether it gets new files.
    pub health: Health,
    /// Its space, if it was measured.
    pub space: Option<DiskSpace>,
    /// The measurements of its device.
    pub load: VolumeLoad,
    /// Bytes of files that were moved to it since the start.
    pub moved_in_bytes: u64,
    /// Bytes of files that were moved to other volumes since the start.
    pub moved_out_bytes: u64,
}

impl VolumeStatus {
    /// A volume whose disk was missing at the start.
    pub(crate) fn missing(directory: &Arc<str>, reason: &str) -> VolumeStatus {
        VolumeStatus {
            directory: directory.clone(),
            health: Health::Failed(reason.to_owned()),
            space: None,
            load: VolumeLoad::default(),
            moved_in_bytes: 0,
            moved_out_bytes: 0,
        }
    }

    /// Bytes in use; 0 if unknown.
    pub fn used_bytes(&self) -> u64 {
        self.space.map_or(0, |space| space.total_bytes.saturating_sub(space.free_bytes))
    }

    /// The share of the disk that is used, from 0 to 1; `None` if unknown.
    pub fn used_share(&self) -> Option<f64> {
        let space = self.space.filter(|space| space.total_bytes > 0)?;
        Some(self.used_bytes() as f64 / space.total_bytes as f64)
    }
}
