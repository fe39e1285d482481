//! The regions of a server with their metrics, and sums over several.

use std::collections::BTreeMap;
use std::sync::Arc;

use cell::schema::TableName;
use engine::Region;
use engine::region::{RegionMetrics, StoreMetrics};
use regionserver::RegionServer;

/// A region and its metrics at one moment.
pub(super) struct RegionSnapshot {
    pub(super) region: Arc<Region>,
    pub(super) metrics: RegionMetrics,
}

impl RegionSnapshot {
    /// All regions of `server`, by table and start key.
    pub(super) fn all(server: &RegionServer) -> Vec<RegionSnapshot> {
        let regions = server.regions().all().into_iter();
        regions.map(|region| RegionSnapshot { metrics: region.metrics(), region }).collect()
    }

    pub(super) fn table(&self) -> &TableName {
        &self.region.info().table
    }

    pub(super) fn files(&self) -> u64 {
        self.sum(|store| store.files as u64)
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.sum(|store| store.file_bytes)
    }

    fn sum(&self, of: fn(&StoreMetrics) -> u64) -> u64 {
        self.metrics.stores.iter().map(of).sum()
    }
}

/// Sums over several regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) regions: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) memstore_bytes: u64,
    pub(super) files: u64,
    pub(super) file_bytes: u64,
}

impl Sums {
    fn add(&mut self, region: &RegionSnapshot) {
        self.regions += 1;
        self.reads += region.metrics.read_requests;
        self.writes += region.metrics.write_requests;
        self.memstore_bytes += region.metrics.memstore_bytes;
        self.files += region.files();
        self.file_bytes += region.file_bytes();
    }

    /// Sums over these regions.
    pub(super) fn new(regions: &[RegionSnapshot]) -> Sums {
        let mut sums = Sums::default();
        regions.iter().for_each(|one| sums.add(one));
        sums
    }

    /// Sums for each table.
    pub(super) fn by_table(regions: &[RegionSnapshot]) -> BTreeMap<TableName, Sums> {
        let mut tables: BTreeMap<TableName, Sums> = BTreeMap::new();
        for one in regions {
            match tables.get_mut(one.table()) {
                Some(sums) => sums.add(one),
                None => tables.entry(one.table().clone()).or_default().add(one),
            }
        }
        tables
    }
}
