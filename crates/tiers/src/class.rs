//! The properties of a kind of disk.

use std::sync::Arc;

use fs::paced::Device;

/// The storage types of HDFS, which its storage policies name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageType {
    /// Memory. Its files do not survive the end of the machine.
    RamDisk,
    /// Flash memory.
    Ssd,
    /// A disk for data that is in use.
    Disk,
    /// A disk for data that is rarely read.
    Archive,
}

/// The properties of a kind of disk: what a tier of this class does unless an option says
/// otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskClass {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// The storage type that policies refer to.
    pub storage_type: StorageType,
    /// Writes that one volume serves at the same time, other than those of logs; the next ones
    /// wait.
    pub writers_max: usize,
    /// The compression of files that a compaction writes; `None` leaves that of the family.
    pub compression: Option<Arc<str>>,
    /// The data block encoding of files that a compaction writes; `None` leaves that of the family.
    pub encoding: Option<Arc<str>>,
    /// Whether reads bypass the page cache.
    pub direct_io: bool,
    /// The device that each disk is slowed down to, for trials; `None` for the disk as it is.
    pub model: Option<Device>,
    /// Bytes per second that all disks of a tier transfer together, if they have a model; `None`
    /// for no limit.
    pub bus_bytes_per_s: Option<u64>,
}

/// A class that is neither built in nor configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a class of disks; known are ram, nvme, ssd, hdd and archive")]
pub struct UnknownClass(pub String);

impl DiskClass {
    /// The built-in class of this name.
    ///
    /// # Errors
    /// [`UnknownClass`].
    pub fn built_in(name: &str) -> Result<DiskClass, UnknownClass> {
        let (storage_type, writers_max, direct_io) = match name {
            "ram" => (StorageType::RamDisk, 16, false),
            "nvme" => (StorageType::Ssd, 16, true),
            "ssd" => (StorageType::Ssd, 8, true),
            // A spindle that alternates between many files spends its time on seeks.
            "hdd" => (StorageType::Disk, 2, true),
            "archive" => (StorageType::Archive, 1, true),
            _ => return Err(UnknownClass(name.to_owned())),
        };
        let name = name.into();
        Ok(DiskClass {
            name,
            storage_type,
            writers_max,
            compression: None,
            encoding: None,
            direct_io,
            model: None,
            bus_bytes_per_s: None,
        })
    }
}
