//! The regions of a server with their figures, and what several have together.

use std::collections::BTreeMap;
use std::sync::Arc;

use cell::schema::TableName;
use engine::Region;
use engine::region::{RegionFigures, StoreFigures};
use regionserver::RegionServer;

/// A region and its figures of one moment.
pub(super) struct Served {
    pub(super) region: Arc<Region>,
    pub(super) figures: RegionFigures,
}

impl Served {
    /// All regions of `server`, by table and start key.
    pub(super) fn all(server: &RegionServer) -> Vec<Served> {
        let regions = server.regions().all().into_iter();
        regions.map(|region| Served { figures: region.figures(), region }).collect()
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

    fn sum(&self, of: fn(&StoreFigures) -> u64) -> u64 {
        self.figures.stores.iter().map(of).sum()
    }
}

/// What regions have together.
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
    fn add(&mut self, served: &Served) {
        self.regions += 1;
        self.reads += served.figures.read_requests;
        self.writes += served.figures.write_requests;
        self.memstore_bytes += served.figures.memstore_bytes;
        self.files += served.files();
        self.file_bytes += served.file_bytes();
    }

    /// Those of all regions.
    pub(super) fn of(served: &[Served]) -> Sums {
        let mut sums = Sums::default();
        served.iter().for_each(|one| sums.add(one));
        sums
    }

    /// Those of each table.
    pub(super) fn by_table(served: &[Served]) -> BTreeMap<TableName, Sums> {
        let mut tables: BTreeMap<TableName, Sums> = BTreeMap::new();
        for one in served {
            match tables.get_mut(one.table()) {
                Some(sums) => sums.add(one),
                None => tables.entry(one.table().clone()).or_default().add(one),
            }
        }
        tables
    }
}
