//! Whether a region should be split, and at which row.
//!
//! The split row is the middle row of the largest file of the largest store. Finding it reads one
//! index block. A region with references is not split, because the referenced files belong to
//! another region.
//!
//! Source: HBase `HRegion.checkSplit`, `RegionSplitPolicy.getSplitPoint`,
//! `StoreUtils.getFileSplitPoint`.

use std::sync::Arc;

use bytes::Bytes;
use cell::key;
use hfile::{Pinned, Stop};

use crate::error::Result;
use crate::region::{Region, RegionState};
use crate::store::{StoreFile, StoreView};

/// A table whose regions are never split, in addition to `hbase:meta`.
const NAMESPACE_TABLE: (&str, &str) = ("hbase", "namespace");

impl Region {
    /// Whether a store has references to files of other regions. Such a region cannot be split or
    /// merged.
    pub fn has_references(&self) -> bool {
        self.view.load().stores.iter().any(StoreView::has_references)
    }

    /// Whether the region can be split now, whatever its size.
    pub fn is_splittable(&self) -> bool {
        self.is_of_splittable_table() && self.state() == RegionState::Serving && !self.has_references()
    }

    /// Whether the region can be merged with other regions now.
    pub fn is_mergeable(&self) -> bool {
        self.state() == RegionState::Serving && !self.has_references()
    }

    /// Whether the region is so large that it should be split. `regions` is the number of regions
    /// of its table on this server.
    pub fn should_split(&self, regions: usize) -> bool {
        let Some(bytes_max) = self.split_policy.bytes_max(regions) else { return false };
        let view = self.view.load();
        let sizes = view.stores.iter().map(file_bytes);
        let is_large = match self.split_policy.sums_stores {
            true => sizes.sum::<u64>() > bytes_max,
            false => sizes.max().unwrap_or(0) > bytes_max,
        };
        is_large && self.is_splittable()
    }

    /// The row to split at. `None` if the region cannot be split now, has no files, or has too few
    /// rows: the middle row of a file is then its first or last row.
    ///
    /// # Errors
    /// Errors of reading a file's index.
    pub async fn split_point(&self) -> Result<Option<Bytes>> {
        if !self.is_of_splittable_table() || self.state() != RegionState::Serving {
            return Ok(None);
        }
        let view = self.view.load_full();
        let mut largest: Option<(u64, Bytes)> = None;
        for store in view.stores.iter().filter(|store| !store.has_references()) {
            let bytes = file_bytes(store);
            if bytes > largest.as_ref().map_or(0, |(bytes, _)| *bytes)
                && let Some(row) = self.split_point_of(store).await?
            {
                largest = Some((bytes, row));
            }
        }
        let row = largest.map(|(_, row)| self.split_policy.shorten(row));
        // A shortened row may be before the start of the region.
        Ok(row.filter(|row| self.info.contains(row)))
    }

    /// The middle row of the largest file of a store, unless it is the file's first or last row.
    async fn split_point_of(&self, store: &StoreView) -> Result<Option<Bytes>> {
        let largest =
            store.files.iter().reduce(|left, right| if right.len() > left.len() { right } else { left });
        let Some(file) = largest else { return Ok(None) };
        let Some(middle) = self.middle_key(file).await? else { return Ok(None) };
        let (row, reader) = (key::row(&middle), file.reader());
        let is_end = reader.first_row() == Some(row) || reader.last_row() == Some(row);
        Ok((!is_end).then(|| Bytes::copy_from_slice(row)))
    }

    async fn middle_key(&self, file: &Arc<StoreFile>) -> Result<Option<Vec<u8>>> {
        let mut blocks = Pinned::new(None);
        loop {
            match file.reader().middle_key(&blocks) {
                Ok(middle) => return Ok(middle),
                Err(Stop::Failed(error)) => return Err(error.into()),
                Err(Stop::Miss(miss)) => {
                    for block in &miss.blocks {
                        blocks.supply(self.services.loader.load(block).await?);
                    }
                }
            }
        }
    }

    fn is_of_splittable_table(&self) -> bool {
        let table = &self.info.table;
        !table.is_meta() && (table.namespace(), table.qualifier()) != NAMESPACE_TABLE
    }
}

fn file_bytes(store: &StoreView) -> u64 {
    store.files.iter().map(|file| file.len()).sum()
}
