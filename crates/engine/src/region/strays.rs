//! Strays: files that may be in a store's directory although no view has them, because they could
//! not be archived, deleted or moved back.
//!
//! Compactions list the strays of their store as replaced. Otherwise a stray could reappear after a
//! crash, when the delete markers for some of its cells have been dropped. A stray may refer to any
//! MOB file, so the cleaner archives none while the store has one.

use std::sync::{MutexGuard, PoisonError};

use tracing::warn;

use crate::error::Result;
use crate::region::Region;

/// A file that may be in a store's directory although no view has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stray {
    /// The index of the store.
    pub(super) store: usize,
    /// The name of the file.
    pub(super) name: String,
    /// How it leaves the store. `None` for a file of a bulk load that could not be rolled back: the
    /// next load or open of the region does that.
    pub(super) removal: Option<Removal>,
}

/// How a file that no view has leaves its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// For a file that a compaction replaced, because a snapshot may need it.
    Archive,
    /// For the output of a failed flush or compaction, whose cells are also elsewhere.
    Delete,
}

impl Region {
    /// The strays of all stores.
    pub(super) fn strays(&self) -> MutexGuard<'_, Vec<Stray>> {
        // Safe after a panic: the list of files is always consistent.
        self.strays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of the strays of the store `at`.
    pub(super) fn stray_names(&self, at: usize) -> Vec<String> {
        self.strays().iter().filter(|stray| stray.store == at).map(|stray| stray.name.clone()).collect()
    }

    /// Whether [`remove_strays`](Region::remove_strays) has something to do.
    pub(super) fn has_removable_strays(&self) -> bool {
        self.strays().iter().any(|stray| stray.removal.is_some())
    }

    /// Retries the removal of strays in the order in which they were recorded, and forgets those
    /// that are gone. Ends at the first one that cannot be removed: it may list files as replaced,
    /// and later strays may have the cells of these files.
    pub(super) async fn remove_strays(&self) {
        let strays = self.strays().clone();
        for stray in strays {
            let Some(removal) = stray.removal else { continue };
            match self.remove_from_dir(stray.store, &stray.name, removal).await {
                Ok(()) => self.strays().retain(|other| *other != stray),
                Err(error) => {
                    let file = self.store_dir(stray.store).join(&stray.name);
                    warn!(%file, %error, "cannot remove unneeded file; will retry");
                    return;
                }
            }
        }
    }

    /// Removes a file that no view has from the directory of its store. On return, the removal is
    /// durable.
    ///
    /// # Errors
    /// File system errors, and if the region is open elsewhere. The file may then be in a view
    /// there, as the only one with its cells.
    pub(super) async fn remove_from_dir(&self, store: usize, name: &str, removal: Removal) -> Result<()> {
        self.check_owned().await?;
        let (fs, root, family) = (&*self.services.fs, &self.services.root, &self.families[store].name);
        let dir = self.store_dir(store);
        let file = dir.join(name);
        match removal {
            Removal::Delete => fs.delete(&file).await?,
            Removal::Archive => match root.archive_store_files(fs, &self.info, family, &[name]).await {
                // An earlier attempt archived it, and the cleaner has deleted it since.
                Err(layout::Error::Fs(fs::Error::NotFound { path })) if path == file => {}
                archived => archived?,
            },
        }
        Ok(fs.sync_dir(&dir).await?)
    }
}
