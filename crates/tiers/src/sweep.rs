//! Removes the bytes that no name refers to: the remains of moves, creations and deletions that
//! an earlier process did not complete.

use std::collections::HashSet;

use fs::{Error, FilePath, Result};
use tracing::{info, warn};

use crate::filesystem::{Shared, target};
use crate::target::Target;
use crate::volume::Health;

/// The directory of names that a move makes before it replaces a name.
pub(crate) const MOVING_DIR: &str = "grampus.moving";

/// Removes unfinished names, then the bytes without a name. Must not run at the same time as other
/// calls: a new file has bytes before it has a name.
///
/// # Errors
/// Errors of the home. Without a complete list of names, nothing is removed.
pub(crate) async fn sweep(shared: &Shared) -> Result<()> {
    let moving = FilePath::new(MOVING_DIR);
    shared.home.delete(&moving).await?;
    shared.home.make_dirs(&moving).await?;
    let named = named_targets(shared).await?;
    let mut removed = 0_u64;
    for volume in shared.volumes().filter(|volume| volume.health() == Health::Good) {
        let listed = volume.fs().list(&FilePath::new(volume.id())).await;
        let files = match listed {
            Ok(files) => files,
            Err(error) => {
                warn!(%error, directory = %volume.directory(), "cannot list the files of a volume");
                volume.record_error(&error);
                continue;
            }
        };
        for file in files {
            let target = Target { volume: volume.id().to_owned(), name: file.name };
            if !named.contains(&target) {
                shared.remove(&target).await;
                removed += 1;
            }
        }
    }
    if removed > 0 {
        info!(files = removed, "removed files of volumes that no name refers to");
    }
    Ok(())
}

/// The targets of all links of the home.
async fn named_targets(shared: &Shared) -> Result<HashSet<Target>> {
    let mut named = HashSet::new();
    let mut dirs = vec![FilePath::root()];
    while let Some(dir) = dirs.pop() {
        let entries = match shared.home.list(&dir).await {
            // A link to a directory whose target is gone.
            Err(Error::NotFound { .. }) => continue,
            entries => entries?,
        };
        for status in entries {
            match status.is_dir {
                true => dirs.push(dir.join(&status.name)),
                false => named.extend(target(&status)),
            }
        }
    }
    Ok(named)
}
