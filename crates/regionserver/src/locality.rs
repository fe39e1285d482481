//! Which share of the bytes of regions is on this server's host.
//!
//! A task asks the storage where the files of a region are, after the region was opened and
//! whenever it has other files than before. One call covers a directory. If the storage does not
//! report hosts, such as a local disk, everything counts as local and the task ends.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Env, TaskClass};
use engine::Region;
use fs::{FilePath, FileSystem};
use tracing::debug;

use crate::regions::OnlineRegions;

/// The pause between two searches for regions with other files than before.
const PERIOD: Duration = Duration::from_secs(5);

/// Bytes of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locality {
    /// Bytes of which this host has a replica.
    pub local_bytes: u64,
    /// All bytes.
    pub total_bytes: u64,
}

impl Locality {
    /// The local share of the bytes, from 0 to 1. HBase's value for a region without files is 0.
    pub fn share(self) -> f32 {
        match self.total_bytes {
            0 => 0.0,
            total => (self.local_bytes as f64 / total as f64) as f32,
        }
    }

    fn add(&mut self, other: Locality) {
        self.local_bytes += other.local_bytes;
        self.total_bytes += other.total_bytes;
    }
}

/// The localities of the online regions.
pub struct Localities {
    // The name of this host.
    host: String,
    // By encoded name; `None` if the storage does not report hosts, or was not asked yet.
    known: Mutex<Option<HashMap<Arc<str>, Known>>>,
}

struct Known {
    files: BTreeSet<FilePath>,
    locality: Locality,
}

impl Localities {
    /// The localities of a server on `host`. Everything counts as local until [`watch`] knows more.
    pub(crate) fn new(host: &str) -> Localities {
        Localities { host: host.to_owned(), known: Mutex::new(None) }
    }

    /// The locality of a region; `None` if the storage does not report hosts. A region that was not
    /// examined yet has no local bytes.
    pub fn of(&self, region: &Region) -> Option<Locality> {
        let known = self.lock();
        let known = known.as_ref()?;
        Some(known.get(region.encoded_name()).map_or(Locality::default(), |known| known.locality))
    }

    /// The share of all bytes that is local, from 0 to 1; 1 if there are none.
    pub fn share(&self) -> f64 {
        let mut all = Locality::default();
        let known = self.lock();
        known.iter().flat_map(HashMap::values).for_each(|known| all.add(known.locality));
        if all.total_bytes == 0 { 1.0 } else { f64::from(all.share()) }
    }

    /// Asks whether the storage reports hosts, before regions are examined.
    async fn begin(&self, fs: &dyn FileSystem) -> fs::Result<bool> {
        let reports_hosts = fs.file_hosts(&FilePath::root()).await?.is_some();
        if reports_hosts {
            self.lock().get_or_insert_default();
        }
        Ok(reports_hosts)
    }

    /// Examines the regions that have other files than before.
    async fn refresh(&self, fs: &dyn FileSystem, regions: &[Arc<Region>]) {
        self.forget_all_but(regions);
        for region in regions {
            let files = files_of(region);
            let is_known = |known: &HashMap<Arc<str>, Known>| {
                known.get(region.encoded_name()).is_some_and(|known| known.files == files)
            };
            if self.lock().as_ref().is_some_and(is_known) {
                continue;
            }
            match self.locality_of(fs, &files).await {
                Ok(locality) => {
                    let known = Known { files, locality };
                    self.lock().get_or_insert_default().insert(region.encoded_name().clone(), known);
                }
                // A compaction may have removed a file. The next search finds other files.
                Err(error) => debug!(region = %region.name(), %error, "cannot locate the files of a region"),
            }
        }
    }

    fn forget_all_but(&self, regions: &[Arc<Region>]) {
        let names: HashSet<&str> = regions.iter().map(|region| &**region.encoded_name()).collect();
        if let Some(known) = self.lock().as_mut() {
            known.retain(|encoded, _| names.contains(&**encoded));
        }
    }

    async fn locality_of(&self, fs: &dyn FileSystem, files: &BTreeSet<FilePath>) -> fs::Result<Locality> {
        let mut locality = Locality::default();
        let dirs: BTreeSet<FilePath> = files.iter().map(FilePath::parent).collect();
        for dir in dirs {
            let hosts = fs.file_hosts(&dir).await?.unwrap_or_default();
            for file in hosts.iter().filter(|file| files.contains(&dir.join(&file.name))) {
                let local_bytes = file.bytes_by_host.get(&self.host).copied().unwrap_or(0);
                locality.add(Locality { local_bytes, total_bytes: file.len });
            }
        }
        Ok(locality)
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<Arc<str>, Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn files_of(region: &Region) -> BTreeSet<FilePath> {
    let families = region.table().families.keys();
    families.flat_map(|family| region.store_files(family).unwrap_or_default()).collect()
}

/// Starts the task. It ends when all other references to `localities` are dropped, or if the
/// storage does not report hosts.
pub(crate) fn watch(
    env: &Env,
    localities: &Arc<Localities>,
    fs: &Arc<dyn FileSystem>,
    regions: &Arc<OnlineRegions>,
) {
    let (weak, clock) = (Arc::downgrade(localities), env.clock.clone());
    let (fs, regions) = (fs.clone(), regions.clone());
    env.spawn(TaskClass::Background, async move {
        while let Some(localities) = weak.upgrade() {
            match localities.begin(&*fs).await {
                Ok(true) => break,
                Ok(false) => return,
                Err(error) => debug!(%error, "cannot ask where files are"),
            }
            drop(localities);
            clock.sleep(PERIOD).await;
        }
        while let Some(localities) = weak.upgrade() {
            localities.refresh(&*fs, &regions.all()).await;
            drop(localities);
            clock.sleep(PERIOD).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_bytes() {
        assert_eq!(Locality::default().share(), 0.0, "as in HBase");
        assert_eq!(Locality { local_bytes: 30, total_bytes: 120 }.share(), 0.25);
        assert_eq!(Localities::new("h").share(), 1.0);
    }

    #[tokio::test]
    async fn a_storage_without_hosts_is_not_examined() {
        let localities = Localities::new("h");
        assert!(!localities.begin(&fs::memory::MemoryFs::new()).await.unwrap());
        assert!(localities.lock().is_none(), "all regions count as local, also those without files");
    }
}
