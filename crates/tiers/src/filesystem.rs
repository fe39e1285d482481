//! The file system over all tiers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, TaskClass};
use fs::{
    DiskSpace, Error, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Occupied,
    Preferences, Purpose, Result, Role,
};
use tokio::sync::{RwLock, oneshot};
use tracing::warn;

use crate::choice::choose;
use crate::heat::Heat;
use crate::known::KnownVolumes;
use crate::placement::Placement;
use crate::plan::{Located, PlannedMove, StoredFile, TierSpace, plan};
use crate::reader::TieredReader;
use crate::sweep;
use crate::target::Target;
use crate::tier::Tier;
use crate::tier_status::TierStatus;
use crate::volume::{Announced, Health, Volume, bytes_for_names};
use crate::writer::TieredWriter;

/// A [`FileSystem`] over tiers; see the documentation of the crate. Clones share it.
#[derive(Clone)]
pub struct TieredFs {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) home: Arc<dyn FileSystem>,
    pub(crate) tiers: Vec<Tier>,
    volumes: HashMap<String, Arc<Volume>>,
    /// The volumes of all tiers.
    candidates: Arc<[Arc<Volume>]>,
    placement: Placement,
    /// Renames and deletions hold it for reading. The step of a move that replaces a name holds it
    /// for writing: a file that was deleted meanwhile must not get its name back. It is held across
    /// calls on names in the home, and never across calls on a volume: a disk that hangs must not
    /// stop renames and deletions on the others.
    pub(crate) names: RwLock<()>,
    heat: Heat,
}

impl TieredFs {
    /// Joins tiers, from the fastest to the slowest, to one file system with the names of `home`.
    /// Removes the remains of moves and deletions that an earlier process did not complete.
    ///
    /// # Errors
    /// Errors of calls on the home. A volume that fails is left out, with a warning.
    pub async fn open(
        env: &Env,
        home: Arc<dyn FileSystem>,
        tiers: Vec<Tier>,
        placement: Placement,
    ) -> Result<TieredFs> {
        let all = tiers.iter().flat_map(|tier| &tier.volumes).filter(|volume| !volume.is_home());
        let volumes = all.map(|volume| (volume.id().to_owned(), volume.clone())).collect();
        let candidates = tiers.iter().flat_map(|tier| tier.volumes.iter().cloned()).collect();
        let shared = Shared {
            env: env.clone(),
            home,
            tiers,
            volumes,
            candidates,
            placement,
            names: RwLock::new(()),
            heat: Heat::default(),
        };
        let fs = TieredFs { shared: Arc::new(shared) };
        fs.poll().await;
        sweep::sweep(&fs.shared).await?;
        let volumes: Vec<_> = fs.shared.volumes().collect();
        KnownVolumes::read(&*fs.shared.home).await?.add(&*fs.shared.home, &volumes).await?;
        Ok(fs)
    }

    /// The tiers, from the fastest to the slowest.
    pub fn tiers(&self) -> &[Tier] {
        &self.shared.tiers
    }

    /// The state of all tiers now, from the fastest to the slowest.
    pub fn status(&self) -> Vec<TierStatus> {
        let now = self.shared.env.clock.monotonic();
        self.shared.tiers.iter().map(|tier| TierStatus::of(tier, now)).collect()
    }

    /// Measures the free space of all volumes, and finds failed and recovered ones.
    /// [`space`](FileSystem::space) does the same.
    pub async fn poll(&self) {
        for volume in self.shared.all_volumes() {
            let before = volume.health();
            self.shared.poll(volume).await;
            let now = volume.health();
            if now != before && now != Health::Good {
                warn!(directory = %volume.directory(), ?now, "a volume gets no new files");
            }
        }
    }

    /// The space for new files: that of all usable volumes, or of the home if it has less than
    /// its names may need.
    async fn usable_space(&self) -> Result<Option<DiskSpace>> {
        self.poll().await;
        let home = self.shared.home.space().await?;
        let usable =
            self.shared.all_volumes().filter(|volume| matches!(volume.health(), Health::Good | Health::Full));
        let sum = usable.filter_map(|volume| volume.space()).fold(
            DiskSpace { total_bytes: 0, free_bytes: 0 },
            |sum, space| DiskSpace {
                total_bytes: sum.total_bytes + space.total_bytes,
                free_bytes: sum.free_bytes + space.free_bytes,
            },
        );
        let names = home.filter(|home| home.free_bytes < bytes_for_names(*home).min(sum.free_bytes));
        Ok(names.or(Some(sum).filter(|sum| sum.total_bytes > 0)).or(home))
    }

    /// The tier whose volume has the bytes of `path`; `None` if the file is missing, or is in the
    /// home and the home is not part of a tier.
    ///
    /// # Errors
    /// Errors of the home.
    pub async fn tier_of(&self, path: &FilePath) -> Result<Option<&Tier>> {
        let found = self.shared.place_of(path).await?;
        Ok(found.and_then(|place| self.shared.tier_with(&place)).map(|at| &self.tiers()[at]))
    }

    /// Which of these files should be moved, most urgent first.
    ///
    /// # Errors
    /// Errors of the home.
    pub async fn plan(&self, files: Vec<StoredFile>) -> Result<Vec<PlannedMove>> {
        let shared = &self.shared;
        shared.heat.forget_closed();
        let mut located = Vec::new();
        for file in files {
            located.extend(shared.located(file).await?);
        }
        let spaces = shared.tiers.iter().map(TierSpace::of).collect();
        Ok(plan((&shared.placement, &shared.tiers), located, spaces, shared.env.clock.now_ms()))
    }
}

/// Where the bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Home,
    Volume(Target),
}

impl Shared {
    /// Where the bytes of `path` are, or `None` if there is no such file.
    pub(crate) async fn place_of(&self, path: &FilePath) -> Result<Option<Place>> {
        let found = self.home.stat(path).await?.filter(|status| !status.is_dir);
        Ok(found.map(|status| place(&status)))
    }

    /// The position of the tier of a place.
    fn tier_with(&self, place: &Place) -> Option<usize> {
        self.tiers.iter().position(|tier| {
            tier.volumes.iter().any(|volume| match place {
                Place::Home => volume.is_home(),
                Place::Volume(target) => volume.id() == target.volume,
            })
        })
    }

    /// Where a file is; `None` if it cannot be moved, because it is gone, or its volume is not
    /// available.
    async fn located(&self, file: StoredFile) -> Result<Option<Located>> {
        let Some(place) = self.place_of(&file.path).await? else { return Ok(None) };
        let tier = self.tier_with(&place);
        if tier.is_none() && place != Place::Home {
            return Ok(None);
        }
        let bytes = file.purpose.expected_bytes.max(1);
        let reads = self.heat.bytes_read(&file.path, self.env.clock.monotonic()) / bytes as f64;
        Ok(Some(Located { file, tier, reads }))
    }

    /// Counts the bytes of a file that was moved from a place to a volume.
    pub(crate) fn record_move(&self, from: &Place, to: &Volume, bytes: u64) {
        to.moved().add_arrived(bytes);
        let old = match from {
            Place::Home => self.all_volumes().find(|volume| volume.is_home()),
            Place::Volume(target) => self.volumes.get(&target.volume),
        };
        if let Some(old) = old {
            old.moved().add_departed(bytes);
        }
    }

    /// The volume of a link.
    pub(crate) fn volume(&self, target: &Target, path: &FilePath) -> Result<&Arc<Volume>> {
        self.volumes.get(&target.volume).ok_or_else(|| {
            let message =
                format!("its volume {} is not in the options, or its disk is missing", target.volume);
            Error::io(path, "open", message)
        })
    }

    /// The volumes other than the home.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = &Arc<Volume>> {
        self.volumes.values()
    }

    /// The home, if it is part of a tier.
    fn home_volume(&self) -> Option<&Arc<Volume>> {
        self.all_volumes().find(|volume| volume.is_home())
    }

    fn all_volumes(&self) -> impl Iterator<Item = &Arc<Volume>> {
        self.tiers.iter().flat_map(|tier| &tier.volumes)
    }

    /// Polls a volume. Waits for a limited time: a disk that hangs must not delay what concerns the
    /// others. Its poll continues meanwhile, and no second one begins.
    async fn poll(&self, volume: &Arc<Volume>) {
        if !volume.begin_poll() {
            return;
        }
        let (send, ended) = oneshot::channel();
        let polled = volume.clone();
        self.env.spawn(TaskClass::Service, async move {
            polled.poll().await;
            let _ = send.send(());
        });
        if self.env.timeout(POLL_LIMIT, ended).await.is_none() {
            volume.record_hang();
        }
    }

    /// Creates a file in one of the tiers, in the order of the rules.
    async fn create(&self, path: &FilePath, purpose: &Purpose) -> Result<Box<dyn FileWriter>> {
        let mut last = Error::NoSpace { path: path.clone() };
        for at in self.placement.order(&self.tiers, purpose, self.env.clock.now_ms()) {
            // A volume that fails is not chosen again, so that the loop ends.
            while let Some(volume) = choose(&self.tiers[at].volumes, purpose.expected_bytes) {
                let created = match volume.is_home() {
                    true => self.create_at_home(volume, path, purpose).await,
                    false => self.create_on(volume, path, purpose).await,
                };
                match created {
                    Ok(writer) => return Ok(writer),
                    Err(error) => {
                        if volume.health() == Health::Good {
                            return Err(error);
                        }
                        last = error;
                    }
                }
            }
        }
        // Everything else is full: the file takes the space that the home keeps for names.
        match self.candidates.iter().find(|volume| volume.is_home() && volume.health() == Health::Good) {
            Some(home) => self.create_at_home(home, path, purpose).await,
            None => Err(last),
        }
    }

    /// Creates a file on the volume of all names, where it needs no link.
    async fn create_at_home(
        &self,
        volume: &Arc<Volume>,
        path: &FilePath,
        purpose: &Purpose,
    ) -> Result<Box<dyn FileWriter>> {
        let announced = Announced::new(volume, purpose.expected_bytes);
        let created = self.home.create_for(path, purpose).await;
        let inner = created.inspect_err(|error| volume.record_error(error))?;
        Ok(Box::new(TieredWriter::new(inner, path, announced, self.candidates.clone())))
    }

    /// Creates a file on a volume, and a link to it. The name on the volume is durable before the
    /// link exists.
    async fn create_on(
        &self,
        volume: &Arc<Volume>,
        path: &FilePath,
        purpose: &Purpose,
    ) -> Result<Box<dyn FileWriter>> {
        let (writer, target) = self.create_target(volume, path, purpose).await?;
        if let Err(error) = self.home.link(path, &target.link(volume.directory())).await {
            drop(writer);
            self.remove(&target).await;
            return Err(error);
        }
        Ok(writer)
    }

    /// Creates a file on a volume, with a durable name.
    pub(crate) async fn create_target(
        &self,
        volume: &Arc<Volume>,
        path: &FilePath,
        purpose: &Purpose,
    ) -> Result<(Box<dyn FileWriter>, Target)> {
        let target = Target::unique(volume.id(), path, self.env.random.next_u64());
        let failed = |error| volume.creation_failed(error, path);
        // Before the calls, so that the files that are created meanwhile go to other volumes.
        let announced = Announced::new(volume, purpose.expected_bytes);
        let inner = volume.fs().create_for(&target.path(), purpose).await.map_err(failed)?;
        volume.fs().sync_dir(&target.path().parent()).await.map_err(failed)?;
        Ok((Box::new(TieredWriter::new(inner, path, announced, self.candidates.clone())), target))
    }

    /// Removes the bytes of a file without a name. What remains after an error is removed by the
    /// next start.
    pub(crate) async fn remove(&self, target: &Target) {
        let Some(volume) = self.volumes.get(&target.volume) else { return };
        if let Err(error) = volume.fs().delete(&target.path()).await {
            warn!(%error, directory = %volume.directory(), "cannot remove the bytes of a deleted file");
        }
    }

    /// Makes the removal of names in `dir` durable, then removes the bytes.
    pub(crate) async fn remove_all(&self, dir: &FilePath, targets: Vec<Target>) -> Result<()> {
        if targets.is_empty() {
            return Ok(());
        }
        self.home.sync_dir(dir).await?;
        for target in targets {
            self.remove(&target).await;
        }
        Ok(())
    }

    /// The targets of all links at or below `path`.
    async fn targets_below(&self, path: &FilePath) -> Result<Vec<Target>> {
        let Some(status) = self.home.stat(path).await? else { return Ok(Vec::new()) };
        if !status.is_dir || status.link.is_some() {
            return Ok(target(&status).into_iter().collect());
        }
        let mut found = Vec::new();
        let mut dirs = vec![path.clone()];
        while let Some(dir) = dirs.pop() {
            for status in self.home.list(&dir).await? {
                match (status.is_dir, &status.link) {
                    // A deletion does not follow links to directories.
                    (true, Some(_)) => {}
                    (true, None) => dirs.push(dir.join(&status.name)),
                    (false, _) => found.extend(target(&status)),
                }
            }
        }
        Ok(found)
    }

    async fn delete(&self, path: &FilePath) -> Result<()> {
        let names = self.names.read().await;
        let targets = self.targets_below(path).await?;
        self.home.delete(path).await?;
        // Targets have unique names: no later name can refer to them.
        drop(names);
        self.remove_all(&path.parent(), targets).await
    }

    async fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        let names = self.names.read().await;
        let replaced = match from == to {
            true => None,
            false => self.home.stat(to).await?.as_ref().and_then(target),
        };
        self.home.rename(from, to).await?;
        drop(names);
        self.remove_all(&to.parent(), replaced.into_iter().collect()).await
    }

    /// The status with the length and time of the file that a link refers to.
    async fn followed(&self, status: FileStatus) -> FileStatus {
        let Some(target) = target(&status).filter(|_| status.len == 0) else { return status };
        let Some(volume) = self.volumes.get(&target.volume) else { return status };
        match volume.fs().stat(&target.path()).await {
            Ok(Some(FileStatus { len, modified_ms, .. })) => FileStatus { len, modified_ms, ..status },
            // Opening the file will return the error.
            Ok(None) | Err(_) => status,
        }
    }

    async fn open(&self, path: &FilePath, uncached: bool) -> Result<Arc<dyn FileReader>> {
        let (fs, at, volume) = match self.place_of(path).await? {
            Some(Place::Volume(target)) => {
                let volume = self.volume(&target, path)?;
                (volume.fs(), target.path(), Some(volume))
            }
            Some(Place::Home) | None => (&self.home, path.clone(), self.home_volume()),
        };
        let opened = if uncached { fs.open_uncached(&at).await } else { fs.open(&at).await };
        let Some(volume) = volume else { return opened };
        match opened {
            Ok(inner) => {
                let heat = (self.heat.of(path), self.env.clock.clone());
                Ok(Arc::new(TieredReader::new(inner, path, volume, heat)))
            }
            Err(error) if volume.is_home() => Err(error),
            Err(error) => Err(volume.failed(error, path)),
        }
    }
}

/// A disk that does not answer a poll within this time gets no new files.
const POLL_LIMIT: Duration = Duration::from_secs(5);

pub(crate) fn place(status: &FileStatus) -> Place {
    target(status).map_or(Place::Home, Place::Volume)
}

pub(crate) fn target(status: &FileStatus) -> Option<Target> {
    status.link.as_deref().filter(|_| !status.is_dir).and_then(Target::parse)
}

impl FileSystem for TieredFs {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        match purpose.role {
            Role::Metadata => self.shared.home.create_for(path, purpose),
            _ => Box::pin(self.shared.create(path, purpose)),
        }
    }

    fn preferences(&self, purpose: &Purpose) -> Preferences {
        let shared = &self.shared;
        let order = shared.placement.order(&shared.tiers, purpose, shared.env.clock.now_ms());
        let tiers = order.into_iter().map(|at| &shared.tiers[at]);
        let usable = tiers.into_iter().find(|tier| choose(&tier.volumes, purpose.expected_bytes).is_some());
        usable.map_or_else(Preferences::default, |tier| Preferences {
            compression: tier.class.compression.clone(),
            encoding: tier.class.encoding.clone(),
        })
    }

    fn link<'a>(&'a self, path: &'a FilePath, target: &'a str) -> BoxFuture<'a, Result<()>> {
        self.shared.home.link(path, target)
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(self.shared.open(path, false))
    }

    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(self.shared.open(path, true))
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.rename(from, to))
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.delete(path))
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.shared.home.delete_empty_dir(dir)
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        Box::pin(async move {
            match self.shared.home.stat(path).await? {
                Some(status) => Ok(Some(self.shared.followed(status).await)),
                None => Ok(None),
            }
        })
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        Box::pin(async move {
            let mut entries = self.shared.home.list(dir).await?;
            for entry in entries.iter_mut().filter(|entry| entry.link.is_some()) {
                *entry = self.shared.followed(entry.clone()).await;
            }
            Ok(entries)
        })
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.shared.home.make_dirs(dir)
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.shared.home.sync_dir(dir)
    }

    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        Box::pin(self.usable_space())
    }

    fn file_hosts<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Vec<FileHosts>>>> {
        self.shared.home.file_hosts(dir)
    }

    fn check_root(&self) -> BoxFuture<'_, Result<()>> {
        self.shared.home.check_root()
    }

    fn allocate<'a>(&'a self, path: &'a FilePath, bytes: u64) -> BoxFuture<'a, Result<()>> {
        self.shared.home.allocate(path, bytes)
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        Box::pin(async move {
            match self.shared.place_of(path).await? {
                Some(Place::Volume(target)) => {
                    let volume = self.shared.volume(&target, path)?;
                    let fenced = volume.fs().fence(&target.path()).await;
                    fenced.map_err(|error| volume.failed(error, path))
                }
                Some(Place::Home) | None => self.shared.home.fence(path).await,
            }
        })
    }

    fn occupy<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Occupied>>> {
        self.shared.home.occupy(dir)
    }

    fn is_occupied<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<bool>>> {
        self.shared.home.is_occupied(dir)
    }
}
