//! Storage policies of directories, and requests to move replicas to where the policies say.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base::env::TaskClass;
use fs::{Error, FilePath, PolicyCounts, Result};
use tracing::{debug, info, warn};

use crate::failure::Failure;
use crate::file::Shared;
use crate::filesystem::{DIRECTORY, listing};
use crate::generated::{Empty, FileStatus, LocatedBlocks, PathRequest, SetStoragePolicyRequest};
use crate::located::located_status;

/// Paths that wait for a check. A file takes about 200 bytes, and two calls of about a millisecond.
const WAITING_MAX: usize = 100_000;

/// Ids of storage policies (HDFS: `HdfsConstants.StoragePolicy`).
mod id {
    pub(super) const UNSPECIFIED: u32 = 0;
    pub(super) const PROVIDED: u32 = 1;
    pub(super) const COLD: u32 = 2;
    pub(super) const WARM: u32 = 5;
    pub(super) const HOT: u32 = 7;
    pub(super) const ONE_SSD: u32 = 10;
    pub(super) const ALL_SSD: u32 = 12;
    pub(super) const ALL_NVDIMM: u32 = 14;
    pub(super) const LAZY_PERSIST: u32 = 15;
}

/// Types of storage (HDFS: `StorageTypeProto`).
mod storage {
    pub(super) const DISK: u32 = 1;
    pub(super) const SSD: u32 = 2;
    pub(super) const ARCHIVE: u32 = 3;
    pub(super) const NVDIMM: u32 = 6;
}

/// What a client knows of storage policies.
#[derive(Default)]
pub(crate) struct Policies {
    queue: Mutex<Queue>,
    /// The policy of files without one.
    default: AtomicU32,
    set: AtomicU64,
    moves: AtomicU64,
    errors: AtomicU64,
    warned: AtomicBool,
    reported_refusal: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<FilePath>,
    /// Whether a task takes the paths.
    runs: bool,
}

impl Policies {
    /// Sets the policy of files without one.
    pub(crate) fn set_default(&self, policy: u32) {
        let policy = if policy == id::UNSPECIFIED { id::HOT } else { policy };
        self.default.store(policy, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> PolicyCounts {
        PolicyCounts {
            set: self.set.load(Ordering::Relaxed),
            moves: self.moves.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }

    /// Counts an error. As in HBase, only the first one is a warning.
    fn record_error(&self, path: &FilePath, error: &str) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        if self.warned.swap(true, Ordering::Relaxed) {
            debug!(%path, error, "a storage policy of HDFS has no effect");
        } else {
            warn!(
                %path, error,
                "a storage policy of HDFS has no effect; further such errors are counted, and logged at level debug"
            );
        }
    }

    fn record_refusal(&self, refused: &Failure) {
        if !self.reported_refusal.swap(true, Ordering::Relaxed) {
            info!(
                reason = refused.message(),
                "HDFS runs no storage policy satisfier: replicas whose storage policy has changed move only when \
                 `hdfs mover` runs"
            );
        }
    }

    /// Adds a path. Returns whether a task must be started.
    fn add(&self, path: &FilePath) -> bool {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.waiting.len() >= WAITING_MAX {
            drop(queue);
            self.record_error(path, "too many files wait for a check");
            return false;
        }
        queue.waiting.push_back(path.clone());
        !std::mem::replace(&mut queue.runs, true)
    }

    /// The next path; `None` ends the task.
    fn take(&self) -> Option<FilePath> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let next = queue.waiting.pop_front();
        queue.runs = next.is_some();
        next
    }
}

/// Sets the policy of a directory.
pub(crate) async fn set_policy(shared: &Shared, dir: &FilePath, policy: &str) {
    // HDFS compares names exactly; HBase passes them in upper case.
    let request = SetStoragePolicyRequest { src: shared.full(dir), policy_name: policy.to_ascii_uppercase() };
    match shared.namenode.call("setStoragePolicy", &request).await {
        Ok(Empty {}) => drop(shared.policies.set.fetch_add(1, Ordering::Relaxed)),
        Err(failure) => shared.policies.record_error(dir, &failure.at(dir, "set storage policy").to_string()),
    }
}

/// Checks the path, and requests moves, in the background.
pub(crate) fn satisfy_later(shared: &Arc<Shared>, path: &FilePath) {
    if !shared.policies.add(path) {
        return;
    }
    let weak = Arc::downgrade(shared);
    shared.env.spawn(TaskClass::Background, async move {
        while let Some(shared) = weak.upgrade() {
            let Some(path) = shared.policies.take() else { return };
            match satisfy(&shared, &path).await {
                // Files may be archived or deleted before they are checked.
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => shared.policies.record_error(&path, &error.to_string()),
            }
        }
    });
}

/// Requests moves of a file, or of the files in a directory, whose replicas are elsewhere than the
/// policy says.
async fn satisfy(shared: &Shared, path: &FilePath) -> Result<()> {
    let Some(found) = located_status(shared, path).await? else { return Ok(()) };
    if found.file_type != DIRECTORY {
        return satisfy_file(shared, path, &found).await;
    }
    for entry in listing(shared, path, true).await? {
        if entry.file_type != DIRECTORY {
            let file = path.join(&String::from_utf8_lossy(&entry.path));
            match satisfy_file(shared, &file, &entry).await {
                Err(Error::NotFound { .. }) => {}
                checked => checked?,
            }
        }
    }
    Ok(())
}

async fn satisfy_file(shared: &Shared, path: &FilePath, status: &FileStatus) -> Result<()> {
    let policy = match status.storage_policy() {
        id::UNSPECIFIED => shared.policies.default.load(Ordering::Relaxed),
        policy => policy,
    };
    let is_satisfied = |located: &LocatedBlocks| {
        located.blocks.iter().all(|block| is_satisfied(policy, &block.storage_types))
    };
    // The parts of an erasure-coded file have other rules.
    if status.ec_policy.is_some() || status.locations.as_ref().is_none_or(is_satisfied) {
        return Ok(());
    }
    let request = PathRequest { src: shared.full(path) };
    match shared.namenode.call("satisfyStoragePolicy", &request).await {
        Ok(Empty {}) => {}
        Err(failure) if failure.is("UnsupportedOperationException") => {
            shared.policies.record_refusal(&failure);
            return Ok(());
        }
        Err(failure) if is_pending(&failure) => {}
        Err(failure) => return Err(failure.at(path, "satisfy storage policy")),
    }
    shared.policies.moves.fetch_add(1, Ordering::Relaxed);
    debug!(%path, policy, "requested that replicas move to the storage of their policy");
    Ok(())
}

/// Whether the move of the path was requested before and has not ended.
fn is_pending(failure: &Failure) -> bool {
    failure.message().contains("already called for satisfying storage policy")
}

/// Whether the replicas of a block, on storage of these types, are where the policy says. Fallbacks
/// of a policy do not count: replicas return from them when there is space.
fn is_satisfied(policy: u32, types: &[u32]) -> bool {
    let all = |wanted: u32| types.iter().all(|found| *found == wanted);
    let one_and = |one: u32, rest: u32| {
        let of_one = types.iter().filter(|found| **found == one).count();
        let of_rest = types.iter().filter(|found| **found == rest).count();
        types.is_empty() || (of_one == 1 && of_one + of_rest == types.len())
    };
    match policy {
        id::HOT => all(storage::DISK),
        id::COLD => all(storage::ARCHIVE),
        id::WARM => one_and(storage::DISK, storage::ARCHIVE),
        id::ONE_SSD => one_and(storage::SSD, storage::DISK),
        id::ALL_SSD => all(storage::SSD),
        id::ALL_NVDIMM => all(storage::NVDIMM),
        // HDFS moves these replicas itself.
        id::LAZY_PERSIST | id::PROVIDED => true,
        // A later version of HDFS may have more policies, and knows their types.
        _ => types.is_empty(),
    }
}

/// Whether replicas of files with this policy may be in memory at first.
pub(crate) fn is_lazy(policy: u32) -> bool {
    policy == id::LAZY_PERSIST
}

#[cfg(test)]
mod tests {
    use super::storage::*;
    use super::*;

    const RAM_DISK: u32 = 4;

    #[test]
    fn each_policy_has_types_of_storage() {
        let cases: [(u32, &[u32], bool); 14] = [
            (id::HOT, &[DISK, DISK, DISK], true),
            (id::HOT, &[DISK, SSD, DISK], false),
            (id::COLD, &[ARCHIVE, ARCHIVE], true),
            (id::COLD, &[DISK, ARCHIVE], false),
            (id::WARM, &[ARCHIVE, DISK, ARCHIVE], true),
            (id::WARM, &[DISK, DISK, ARCHIVE], false),
            (id::ONE_SSD, &[DISK, DISK, SSD], true),
            (id::ONE_SSD, &[SSD, SSD, DISK], false),
            (id::ONE_SSD, &[DISK, DISK], false),
            (id::ALL_SSD, &[SSD], true),
            (id::ALL_SSD, &[SSD, DISK], false),
            (id::ALL_NVDIMM, &[NVDIMM, SSD], false),
            (id::LAZY_PERSIST, &[RAM_DISK, DISK], true),
            (99, &[DISK], false),
        ];
        for (policy, types, expected) in cases {
            assert_eq!(is_satisfied(policy, types), expected, "policy {policy}, {types:?}");
        }
        for policy in [id::HOT, id::WARM, id::ONE_SSD, 99] {
            assert!(is_satisfied(policy, &[]), "an old NameNode reports no types");
        }
    }
}
