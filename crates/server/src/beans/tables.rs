//! Two beans for all tables: attributes of each, named by it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use base::env::{Clock, Env};
use base::metrics::{Scope, Source};
use cell::schema::TableName;
use engine::region::{RegionFigures, StoreFigures};
use regionserver::RegionServer;

use crate::beans::look;
use crate::beans::regions::{OneStore, put_table};
use crate::beans::sums::Sums;

base::figures! {
    /// What a table says of itself beside [`Sums`]; names are the ends of HBase's, behind `Namespace_NS_table_T_metric_`.
    pub(super) struct OneTable in "RegionServer,sub=Tables" {
        /// Bytes of files and memstores.
        bytes: Gauge<u64> = "tableSize" in Bytes,
        /// Rows read and mutations.
        requests: Counted = "totalRequestCount",
    }
}

base::figures! {
    /// What is said of all tables together.
    pub(super) struct AllTables in "RegionServer,sub=Tables" {
        /// Tables that have a region here.
        tables: Gauge<u64> = "numTables",
    }
}

base::absent! {
    /// What is not kept of each table here.
    pub(super) struct NotOfTables in "RegionServer,sub=Tables" {
        /// How long a split took: it is the master's work.
        Times = "splitTime",
    }
}

/// What becomes of the cells of all tables of a server.
pub(super) struct Tables {
    regions: Arc<look::Regions>,
    clock: Arc<dyn Clock>,
}

impl Tables {
    pub(super) fn new(regions: &Arc<look::Regions>, env: &Env) -> Tables {
        Tables { regions: regions.clone(), clock: env.clock.clone() }
    }
}

/// The figures of the regions of each table.
fn by_table(look: &look::Look) -> BTreeMap<TableName, Vec<&RegionFigures>> {
    let mut tables: BTreeMap<TableName, Vec<&RegionFigures>> = BTreeMap::new();
    for (region, figures) in look.regions() {
        match tables.get_mut(&region.info().table) {
            Some(regions) => regions.push(figures),
            None => drop(tables.insert(region.info().table.clone(), vec![figures])),
        }
    }
    tables
}

impl Source for Tables {
    fn show(&self, scope: &mut Scope<'_>) {
        let now_ms = self.clock.now_ms();
        let look = self.regions.look(scope.now());
        let tables = by_table(&look);
        AllTables { tables: tables.len().into() }.show(scope);
        for (table, regions) in &tables {
            let prefix = prefix_of(table);
            let mut scope = scope.named(&prefix);
            let (bytes, requests) = regions.iter().fold((0, 0), |(bytes, requests), region| {
                let files: u64 = region.stores.iter().map(|store| store.file_bytes).sum();
                (
                    bytes + files + region.memstore_data_bytes,
                    requests + region.read_requests + region.write_requests,
                )
            });
            OneTable { bytes: bytes.into(), requests: requests.into() }.show(&mut scope);
            Sums::of(regions.iter().copied(), now_ms).show(&mut scope);
            NotOfTables.show(&mut scope);
        }
        for (table, regions) in &tables {
            show_families(table, regions, scope);
        }
        for (table, instruments) in self.regions.server().instruments().tables() {
            instruments.work.show(&mut scope.named(&prefix_of(&table)));
        }
        // The last of the beans made of regions.
        self.regions.forget();
    }

    fn roll(&self) {
        self.regions.server().instruments().tables().iter().for_each(|(_, of)| of.work.roll());
    }
}

fn show_families(table: &TableName, regions: &[&RegionFigures], scope: &mut Scope<'_>) {
    let mut families: BTreeMap<&[u8], Vec<&StoreFigures>> = BTreeMap::new();
    for store in regions.iter().flat_map(|region| &region.stores) {
        families.entry(&store.family).or_default().push(store);
    }
    for (family, stores) in families {
        let mut prefix = String::new();
        put_table(&mut prefix, table);
        write!(prefix, "_columnfamily_{}_metric_", String::from_utf8_lossy(family)).expect("text grows");
        OneStore::of(stores).show(&mut scope.named(&prefix));
    }
}

/// How long what clients ask of all tables of a server takes.
pub(super) struct Latencies {
    server: Arc<RegionServer>,
}

impl Latencies {
    pub(super) fn new(server: &Arc<RegionServer>) -> Latencies {
        Latencies { server: server.clone() }
    }
}

impl Source for Latencies {
    fn show(&self, scope: &mut Scope<'_>) {
        for (table, instruments) in self.server.instruments().tables() {
            instruments.tell_meters();
            instruments.latencies.show(&mut scope.named(&prefix_of(&table)));
        }
    }

    fn roll(&self) {
        self.server.instruments().roll_latencies();
    }
}

/// What the names of a table's attributes begin with.
pub(super) fn prefix_of(table: &TableName) -> String {
    let mut prefix = String::new();
    put_table(&mut prefix, table);
    prefix.push_str("_metric_");
    prefix
}
