//! A list of directories of one class.

use std::sync::Arc;

use fs::paced::Bus;

use crate::class::DiskClass;
use crate::missing::MissingVolume;
use crate::volume::Volume;

/// A list of directories of one class.
#[derive(Clone)]
pub struct Tier {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// The kind of its disks.
    pub class: DiskClass,
    /// The bus of the model of its disks, if there is one.
    pub bus: Option<Arc<Bus>>,
    /// Its directories, without those whose disk was missing at the start.
    pub volumes: Vec<Arc<Volume>>,
    /// The directories whose disk was missing at the start.
    pub missing: Vec<MissingVolume>,
}
