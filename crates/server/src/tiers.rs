//! The storage tiers of the options.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::config::Config;
use base::env::{Clock, Env};
use base::pool::Pool;
use cell::schema::{BlockEncoding, Compression};
use engine::region::StoragePolicies;
use fs::FileSystem;
use fs::local::LocalFs;
use fs::paced::{Bus, PacedDevice, PacedFs};
use fs::scheduled::{DeviceClass, DeviceQueue, ScheduledFs};
use regionserver::FileMoves;
use tiers::{
    DiskClass, Gauge, KnownVolumes, MissingVolume, Placement, StorageType, Tier, TierDirectory, TierOptions,
    TieredFs, Volume, VolumeError, VolumeLoad, parse_classes, parse_tiers,
};
use tracing::{error, warn};

use crate::data::DISK_THREADS;

const KEY: &str = "grampus.tiers";
const CLASSES_KEY: &str = "grampus.tier.classes";

/// The tiers of the options; none if all files are in the root directory.
///
/// # Errors
/// One line that names the option.
pub(crate) fn configured(config: &Config) -> Result<Vec<TierOptions>, String> {
    let refused = |key: &str, reason: String| config.refused(key, reason).to_string();
    let classes = parse_classes(&config.tier_classes).map_err(|reason| refused(CLASSES_KEY, reason))?;
    let tiers = parse_tiers(&config.tiers, &classes).map_err(|reason| refused(KEY, reason))?;
    for tier in &tiers {
        check_names(tier).map_err(|reason| refused(KEY, reason))?;
    }
    Ok(tiers)
}

/// Checks the names that only the writer of files knows.
fn check_names(tier: &TierOptions) -> Result<(), String> {
    const WRITTEN: [Compression; 5] =
        [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    if let Some(name) = &tier.class.compression
        && Compression::of_name(name).is_none_or(|found| !WRITTEN.contains(&found))
    {
        return Err(format!(
            "codec={name} of the tier {}: expected NONE, GZ, SNAPPY, LZ4 or ZSTD",
            tier.name
        ));
    }
    if let Some(name) = &tier.class.encoding
        && BlockEncoding::of_name(name).is_none()
    {
        return Err(format!(
            "encoding={name} of the tier {}: expected NONE, PREFIX, DIFF, FAST_DIFF or ROW_INDEX_V1",
            tier.name
        ));
    }
    Ok(())
}

/// Joins the tiers to one file system with the names of `home`, whose directory is `root`.
///
/// # Errors
/// One line that names the option and the directory.
pub(crate) async fn open(
    env: &Env,
    config: &Config,
    options: Vec<TierOptions>,
    (home, root): (Arc<dyn FileSystem>, &Path),
    database: &str,
) -> Result<TieredFs, String> {
    let placement = Placement::new(options.iter().map(|tier| tier.rule.clone()).collect())
        .with_policies(&config.wal_storage_policy, store_policy(config));
    let of_root = |error: fs::Error| format!("{}: {error}", root.display());
    let known = KnownVolumes::read(&*home).await.map_err(of_root)?;
    let mut home = home;
    let mut tiers = Vec::new();
    for TierOptions { name, class, directories, .. } in options {
        let disks = Disks::of_tier(env, &name, class.clone());
        let (mut volumes, mut missing) = (Vec::new(), Vec::new());
        for directory in directories {
            match directory {
                TierDirectory::Root => {
                    let (scheduled, gauge) = disks.prepare(home);
                    home = scheduled;
                    volumes.push(Volume::home(&root.display().to_string(), home.clone(), Some(gauge)));
                }
                TierDirectory::Path(path) => match open_volume(&disks, &path, &known, database).await {
                    Ok(volume) => volumes.push(volume),
                    // Its files are unavailable; all others are served.
                    Err(error @ (VolumeError::Missing | VolumeError::Fs(_))) if known.contains(&path) => {
                        error!(directory = path, %error, "a volume is left out: its files are not available");
                        missing.push(MissingVolume { directory: path.into(), reason: error.to_string() });
                    }
                    Err(error) => return Err(config.refused(KEY, format!("{path}: {error}")).to_string()),
                },
            }
        }
        tiers.push(Tier { name, class, bus: disks.bus, volumes, missing });
    }
    TieredFs::open(env, home, tiers, placement).await.map_err(of_root)
}

/// The policy of families without one.
fn store_policy(config: &Config) -> &str {
    let policies = [&config.store_storage_policy, &config.region_storage_policy];
    let named = policies.into_iter().find(|policy| StoragePolicies::named(policy).is_some());
    named.map_or("NONE", String::as_str)
}

/// How files move between the tiers.
pub(crate) fn moves(config: &Config, tiers: Option<&TieredFs>) -> Option<FileMoves> {
    Some(FileMoves {
        tiers: tiers?.clone(),
        period: Duration::from_millis(config.tier_move_period_ms),
        bytes_per_s_max: config.tier_move_rate_max,
    })
}

async fn open_volume(
    disks: &Disks,
    path: &str,
    known: &KnownVolumes,
    database: &str,
) -> Result<Arc<Volume>, VolumeError> {
    // Each disk has threads of its own: one that hangs must not occupy those of the others.
    let local = LocalFs::create(Path::new(path), Arc::new(Pool::new("disk", DISK_THREADS)))?;
    let local: Arc<dyn FileSystem> = match disks.class.direct_io {
        true => Arc::new(local.with_direct_io()),
        false => Arc::new(local),
    };
    let (scheduled, gauge) = disks.prepare(local);
    Volume::open(path, scheduled, Some(gauge), known, database, disks.env.random.next_u64()).await
}

/// What the disks of a tier have in common.
struct Disks {
    env: Env,
    class: DiskClass,
    bus: Option<Arc<Bus>>,
}

impl Disks {
    fn of_tier(env: &Env, name: &str, class: DiskClass) -> Disks {
        if let Some(model) = &class.model {
            warn!(tier = name, ?model, "a model slows down the disks of a tier: use it only for trials");
        }
        let bus = class.bus_bytes_per_s.map(Bus::new);
        Disks { env: env.clone(), class, bus }
    }

    /// The file system of a disk with an order of requests, and its measurements.
    fn prepare(&self, disk: Arc<dyn FileSystem>) -> (Arc<dyn FileSystem>, Arc<dyn Gauge>) {
        let queue = DeviceQueue::new(limits(&self.class), self.env.clock.clone());
        let gauge = QueueGauge { queue: queue.clone(), clock: self.env.clock.clone() };
        // The queue is that of the model, not of the disk below.
        (Arc::new(ScheduledFs::new(self.modelled(disk), queue)), Arc::new(gauge))
    }

    /// The same disk, slowed down to the model if there is one.
    fn modelled(&self, disk: Arc<dyn FileSystem>) -> Arc<dyn FileSystem> {
        let Some(model) = self.class.model.clone() else { return disk };
        let device = match &self.bus {
            Some(bus) => PacedDevice::on_bus(model, bus.clone()),
            None => PacedDevice::new(model),
        };
        Arc::new(PacedFs::new(disk, &self.env, device))
    }
}

/// The limits of the requests to a disk of this class.
fn limits(class: &DiskClass) -> DeviceClass {
    let of_type = match class.storage_type {
        StorageType::RamDisk => DeviceClass::ram(),
        StorageType::Ssd if &*class.name == "nvme" => DeviceClass::nvme(),
        StorageType::Ssd => DeviceClass::ssd(),
        StorageType::Disk | StorageType::Archive => DeviceClass::hdd(),
    };
    DeviceClass { max_writers: class.writers_max, ..of_type }
}

/// What the queue of a device says about it.
struct QueueGauge {
    queue: Arc<DeviceQueue>,
    clock: Arc<dyn Clock>,
}

impl Gauge for QueueGauge {
    fn expected_completion(&self, bytes: u64) -> Duration {
        self.queue.expected_completion(bytes)
    }

    fn is_stuck(&self) -> bool {
        self.queue.is_stuck(self.clock.monotonic())
    }

    fn load(&self) -> VolumeLoad {
        let load = self.queue.load(self.clock.monotonic());
        VolumeLoad {
            waiting_requests: load.waiting_requests,
            waiting_bytes: load.waiting_bytes,
            served_requests: load.served_requests,
            served_bytes: load.served_bytes,
            bytes_per_s: load.bytes_per_s,
            latency: load.latency,
            errors: load.errors,
            traffic: load.traffic,
        }
    }
}
