//! The stores of a snapshot, as a store file tracker for readers.

use std::sync::Arc;

use base::BoxFuture;
use fs::FilePath;

use super::{Manifest, SnapshotFile};
use crate::store::{ListedFile, bulk_load_seq_id};
use crate::tracker::{StoreDir, StoreFileTracker};
use crate::{Error, Result};

/// The stores have the files of a snapshot, which are in the table or in the archive. The regions
/// need no directories, because the table may have been split or deleted since.
pub struct SnapshotTracker(pub Arc<Manifest>);

impl SnapshotTracker {
    fn files(&self, store: StoreDir<'_>) -> &[SnapshotFile] {
        let region = self.0.regions.iter().find(|region| region.info == *store.region);
        let families = region.map_or(&[][..], |region| &region.families);
        families.iter().find(|(family, _)| family == store.family).map_or(&[], |(_, files)| files)
    }

    async fn list(&self, store: StoreDir<'_>) -> Result<Vec<ListedFile>> {
        let dir = store.root.family_dir(store.region, store.family);
        let mut listed = Vec::new();
        for file in self.files(store) {
            let path = dir.join(&file.name);
            let (target, status) = store.root.resolve(store.fs, store.region, store.family, &path).await?;
            listed.push(ListedFile {
                path,
                target,
                len: status.len,
                modified_ms: status.modified_ms,
                bulk_load_seq_id: bulk_load_seq_id(&file.name),
                reference: file.reference.clone(),
            });
        }
        Ok(listed)
    }
}

impl StoreFileTracker for SnapshotTracker {
    fn output_dir(&self, store: StoreDir<'_>) -> FilePath {
        store.root.family_tmp_dir(store.region, store.family)
    }

    fn load<'a>(&'a self, store: StoreDir<'a>) -> BoxFuture<'a, Result<Vec<ListedFile>>> {
        Box::pin(self.list(store))
    }

    fn uses_region_dir(&self) -> bool {
        false
    }

    fn commit<'a>(
        &'a self,
        store: StoreDir<'a>,
        _: &'a [&'a str],
        _: &'a [&'a str],
        _: u64,
    ) -> BoxFuture<'a, Result<()>> {
        let file = store.root.family_dir(store.region, store.family);
        let error = Error::Unsupported { file, what: "a change of a snapshot".to_string() };
        Box::pin(std::future::ready(Err(error)))
    }
}
