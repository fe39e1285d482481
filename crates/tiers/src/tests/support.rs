//! A home and volumes in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use fs::faulty::{Faulty, Plan};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem, Purpose, Role, SyncLevel};

use crate::{DiskClass, Gauge, KnownVolumes, Placement, Tier, TierRule, TieredFs, Volume, VolumeLoad};

pub(super) fn path(text: &str) -> FilePath {
    FilePath::new(text)
}

/// The disks of one database: the home, then a volume for each of `fast`, `slow-1`, `slow-2`.
#[derive(Clone)]
pub(super) struct Disks {
    pub(super) home: MemoryFs,
    pub(super) volumes: Vec<(&'static str, MemoryFs)>,
}

/// The same with planned faults, joined to one file system.
pub(super) struct Database {
    pub(super) fs: TieredFs,
    pub(super) home: Faulty,
    pub(super) volumes: Vec<Faulty>,
    pub(super) speeds: Vec<Arc<Speed>>,
}

/// A gauge that a test sets.
#[derive(Default)]
pub(super) struct Speed {
    pub(super) completion_ms: AtomicU64,
}

impl Gauge for Speed {
    fn expected_completion(&self, _bytes: u64) -> Duration {
        Duration::from_millis(self.completion_ms.load(Ordering::Relaxed))
    }

    fn is_stuck(&self) -> bool {
        self.completion_ms.load(Ordering::Relaxed) == u64::MAX
    }

    fn load(&self) -> VolumeLoad {
        VolumeLoad { waiting_requests: 7, ..VolumeLoad::default() }
    }
}

impl Disks {
    pub(super) fn new() -> Disks {
        let volumes = ["fast", "slow-1", "slow-2"].map(|name| (name, MemoryFs::new())).into();
        Disks { home: MemoryFs::new(), volumes }
    }

    /// What is on the disks after a loss of power now.
    pub(super) fn crash(&self, random: &mut dyn FnMut() -> u64) -> Disks {
        let volumes = self.volumes.iter().map(|(name, fs)| (*name, fs.crash(random))).collect();
        Disks { home: self.home.crash(random), volumes }
    }

    /// Two tiers: `ssd` with one volume for logs and flushes, and `hdd` with two volumes for major
    /// compactions.
    pub(super) async fn open(&self, env: &Env) -> Database {
        let home = Faulty::new(Arc::new(self.home.clone()), Plan::new(env.clock.clone()));
        let known = KnownVolumes::read(&self.home).await.unwrap();
        let (mut volumes, mut speeds, mut opened) = (Vec::new(), Vec::new(), Vec::new());
        for (name, fs) in &self.volumes {
            let faulty = Faulty::new(Arc::new(fs.clone()), Plan::new(env.clock.clone()));
            faulty.set_capacity(Some(1 << 20));
            let speed = Arc::new(Speed::default());
            let (fs, gauge) = (Arc::new(faulty.clone()), Some(speed.clone() as Arc<dyn Gauge>));
            let (directory, number) = (format!("/mnt/{name}"), env.random.next_u64());
            opened.push(Volume::open(&directory, fs, gauge, &known, "db", number).await.unwrap());
            volumes.push(faulty);
            speeds.push(speed);
        }
        let tier = |class: &str, volumes: &[Arc<Volume>]| Tier {
            name: class.into(),
            class: DiskClass::built_in(class).unwrap(),
            volumes: volumes.to_vec(),
            bus: None,
            missing: Vec::new(),
        };
        let tiers = vec![tier("ssd", &opened[..1]), tier("hdd", &opened[1..])];
        let placement = Placement::new(vec![TierRule::default_of(0, 2), TierRule::default_of(1, 2)]);
        let fs = TieredFs::open(env, Arc::new(home.clone()), tiers, placement).await.unwrap();
        Database { fs, home, volumes, speeds }
    }

    /// The bytes of all volumes that are files of the database.
    pub(super) async fn files_on_volumes(&self) -> usize {
        let mut count = 0;
        for (_, fs) in &self.volumes {
            for entry in fs.list(&FilePath::root()).await.unwrap().into_iter().filter(|entry| entry.is_dir) {
                count += fs.list(&path(&entry.name)).await.unwrap().len();
            }
        }
        count
    }
}

/// Writes a durable file.
pub(super) async fn write(fs: &TieredFs, at: &str, role: Role, bytes: &[u8]) -> fs::Result<()> {
    let mut writer = fs.create_for(&path(at), &Purpose::of(role)).await?;
    writer.append(Bytes::copy_from_slice(bytes)).await?;
    writer.sync(SyncLevel::Disk).await?;
    writer.close().await?;
    fs.sync_dir(&path(at).parent()).await
}

/// The bytes of a file, or `None` if there is none.
pub(super) async fn read(fs: &TieredFs, at: &FilePath) -> Option<Bytes> {
    let status = fs.stat(at).await.unwrap()?;
    let reader = fs.open(at).await.unwrap();
    assert_eq!(reader.len(), status.len, "{at}");
    Some(reader.read_at(0, usize::try_from(status.len).unwrap()).await.unwrap())
}

pub(super) async fn tier(fs: &TieredFs, at: &str) -> Option<String> {
    fs.tier_of(&path(at)).await.unwrap().map(|tier| tier.name.to_string())
}
