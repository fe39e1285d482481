//! Which share of the bytes of regions is on this server's host.
//!
//! A task asks the storage where the files of a region are, after the region was opened and
//! whenever it has other files than before. One call covers a directory. If the storage does not
//! report hosts, such as a local disk, everything counts as local and the task ends.

use std::collections::{BTreeSet, HashMap};
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
    // By encoded name; `None` if the storage belongs to no host.
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

    /// The locality of a region, if the storage belongs to hosts. A region that was not examined
    /// yet has no local bytes.
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

    /// Examines the regions that have other files than before. Returns whether the storage belongs
    /// to hosts.
    async fn refresh(&self, fs: &dyn FileSystem, regions: &[Arc<Region>]) -> bool {
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
                Ok(Some(locality)) => {
                    let known = Known { files, locality };
                    self.lock().get_or_insert_default().insert(region.encoded_name().clone(), known);
                }
                Ok(None) => return false,
                // A compaction may have removed a file. The next search finds other files.
                Err(error) => debug!(region = %region.name(), %error, "cannot locate the files of a region"),
            }
        }
        true
    }

    fn forget_all_but(&self, regions: &[Arc<Region>]) {
        if let Some(known) = self.lock().as_mut() {
            known.retain(|encoded, _| regions.iter().any(|region| region.encoded_name() == encoded));
        }
    }

    async fn locality_of(
        &self,
        fs: &dyn FileSystem,
        files: &BTreeSet<FilePath>,
    ) -> fs::Result<Option<Locality>> {
        let mut locality = Locality::default();
        let dirs: BTreeSet<FilePath> = files.iter().map(FilePath::parent).collect();
        for dir in dirs {
            let Some(hosts) = fs.file_hosts(&dir).await? else { return Ok(None) };
            for file in hosts.iter().filter(|file| files.contains(&dir.join(&file.name))) {
                let local_bytes = file.bytes_by_host.get(&self.host).copied().unwrap_or(0);
                locality.add(Locality { local_bytes, total_bytes: file.len });
            }
        }
        Ok(Some(locality))
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
/// storage belongs to no host.
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
            if !localities.refresh(&*fs, &regions.all()).await {
                return;
            }
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
}
