//! The disk on which a file of a store is: what each file is for, and how a file is used after its
//! bytes moved to another disk.

use std::sync::Arc;

use fs::{FilePath, Purpose};
use layout::store::ListedFile;

use crate::error::{Error, Result};
use crate::region::Region;
use crate::region::files::{FileCache, open_listed};
use crate::region::output::purpose_of;
use crate::store::StoreFile;

impl Region {
    /// The files of the region and what each is for, by which storage of several kinds chooses a
    /// disk. Without the files of other regions, to which links and references point.
    pub fn file_purposes(&self) -> Vec<(FilePath, Purpose)> {
        let view = self.view.load();
        let stores = view.stores.iter().zip(self.families());
        let files = stores.flat_map(|(store, family)| store.files.iter().map(move |file| (file, family)));
        let own = files.filter(|(file, _)| !file.is_reference() && file.path() == file.reader().path());
        own.map(|(file, family)| (file.path().clone(), purpose_of(file, family))).collect()
    }

    /// Opens the file at `path` again in all stores that have it, directly or by a link. To be
    /// called after its bytes moved to another disk: readers that are open keep the old bytes, and
    /// thereby their space. Views that are in use keep them until they are dropped.
    ///
    /// Does nothing for files that a compaction uses, because it will remove them.
    ///
    /// # Errors
    /// Those of opening a file. The stores then continue to use the old bytes.
    pub async fn reopen_moved(&self, path: &FilePath) -> Result<()> {
        let view = self.view.load_full();
        for (at, store) in view.stores.iter().enumerate() {
            let is_moved = |file: &&Arc<StoreFile>| !file.is_reference() && file.reader().path() == path;
            for file in store.files.iter().filter(is_moved) {
                self.reopen(at, file).await?;
            }
        }
        Ok(())
    }

    async fn reopen(&self, at: usize, file: &Arc<StoreFile>) -> Result<()> {
        let _open = self.compactions_run.read().await;
        self.check_serving()?;
        let Some(_in_use) = self.begin_reopen(at, file) else { return Ok(()) };
        let listed = ListedFile {
            path: file.path().clone(),
            target: file.reader().path().clone(),
            len: file.len(),
            modified_ms: file.modified_ms(),
            bulk_load_seq_id: file.reader().assigned_seq_id(),
            reference: None,
        };
        let cache = FileCache { loader: &self.services.loader, caching: self.caching(at) };
        let (fs, root, family) = (&*self.services.fs, &self.services.root, &self.families()[at].name);
        match open_listed(fs, root, Some(cache), &self.info, family, &listed).await {
            Ok(reopened) if reopened.len() == file.len() && reopened.seq_id() == file.seq_id() => {
                self.replace_reopened(at, file, &reopened)
            }
            Ok(_) => Err(Error::Fs(fs::Error::io(file.path(), "move", "the moved file is another one"))),
            Err(error) => Err(error),
        }
    }

    /// Marks the file as in use, unless a compaction uses it or has replaced it.
    fn begin_reopen(&self, at: usize, file: &Arc<StoreFile>) -> Option<InUse<'_>> {
        let mut in_progress = self.in_progress(at);
        let view = self.view.load();
        let is_listed = view.stores[at].files.iter().any(|listed| Arc::ptr_eq(listed, file));
        (is_listed && !in_progress.has(file)).then(|| {
            in_progress.take(file);
            InUse { region: self, at, file: file.clone() }
        })
    }

    fn replace_reopened(&self, at: usize, old: &Arc<StoreFile>, new: &Arc<StoreFile>) -> Result<()> {
        let mut publish = self.publish_lock()?;
        let view = self.view.load_full();
        let store = view.stores[at].compacted(std::slice::from_ref(old), std::slice::from_ref(new));
        self.set_view(&mut publish, view.with_store(at, store));
        Ok(())
    }
}

/// A file that no compaction selects while this exists.
struct InUse<'a> {
    region: &'a Region,
    at: usize,
    file: Arc<StoreFile>,
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.region.in_progress(self.at).release(std::slice::from_ref(&self.file));
    }
}
