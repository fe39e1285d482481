//! The two beans with the attributes of every table, prefixed with the table's name.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use base::env::{Clock, Env};
use base::metrics::{Scope, Source};
use cell::schema::TableName;
use engine::region::{RegionMetrics, StoreMetrics};
use regionserver::RegionServer;

use crate::beans::regions::{StoreAttributes, put_table};
use crate::beans::sample;
use crate::beans::sums::Sums;

base::current_values! {
    /// Metrics of a table in addition to [`Sums`]. HBase's names have the prefix
    /// `Namespace_NS_table_T_metric_`.
    pub(super) struct TableAttributes in "RegionServer,sub=Tables" {
        /// Bytes of store files and memstores.
        bytes: Gauge<u64> = "tableSize" in Bytes,
        /// Rows read plus mutations.
        requests: Counted = "totalRequestCount",
    }
}

base::current_values! {
    /// Metrics about all tables together.
    pub(super) struct AllTables in "RegionServer,sub=Tables" {
        /// Tables that have a region on this server.
        tables: Gauge<u64> = "numTables",
    }
}

base::absent! {
    /// Metrics that are not measured per table.
    pub(super) struct AbsentTableMetrics in "RegionServer,sub=Tables" {
        /// Time of splits. The master performs them.
        Times = "splitTime",
    }
}

/// The sums and work of every table of a server.
pub(super) struct Tables {
    regions: Arc<sample::RegionSampler>,
    clock: Arc<dyn Clock>,
}

impl Tables {
    pub(super) fn new(regions: &Arc<sample::RegionSampler>, env: &Env) -> Tables {
        Tables { regions: regions.clone(), clock: env.clock.clone() }
    }
}

/// The metrics of the regions of each table.
fn by_table(sample: &sample::RegionSample) -> BTreeMap<TableName, Vec<&RegionMetrics>> {
    let mut tables: BTreeMap<TableName, Vec<&RegionMetrics>> = BTreeMap::new();
    for (region, metrics) in sample.regions() {
        match tables.get_mut(&region.info().table) {
            Some(regions) => regions.push(metrics),
            None => drop(tables.insert(region.info().table.clone(), vec![metrics])),
        }
    }
    tables
}

impl Source for Tables {
    fn show(&self, scope: &mut Scope<'_>) {
        let now_ms = self.clock.now_ms();
        let sample = self.regions.sample(scope.now());
        let tables = by_table(&sample);
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
            TableAttributes { bytes: bytes.into(), requests: requests.into() }.show(&mut scope);
            Sums::new(regions.iter().copied(), now_ms).show(&mut scope);
            AbsentTableMetrics.show(&mut scope);
        }
        for (table, regions) in &tables {
            show_families(table, regions, scope);
        }
        for (table, instruments) in self.regions.server().instruments().tables() {
            instruments.work.show(&mut scope.named(&prefix_of(&table)));
        }
        // This is the last bean that uses the sampled regions.
        self.regions.forget();
    }

    fn roll(&self) {
        self.regions.server().instruments().tables().iter().for_each(|(_, of)| of.work.roll());
    }
}

fn show_families(table: &TableName, regions: &[&RegionMetrics], scope: &mut Scope<'_>) {
    let mut families: BTreeMap<&[u8], Vec<&StoreMetrics>> = BTreeMap::new();
    for store in regions.iter().flat_map(|region| &region.stores) {
        families.entry(&store.family).or_default().push(store);
    }
    for (family, stores) in families {
        let mut prefix = String::new();
        put_table(&mut prefix, table);
        write!(prefix, "_columnfamily_{}_metric_", String::from_utf8_lossy(family)).expect("text grows");
        StoreAttributes::from_stores(stores).show(&mut scope.named(&prefix));
    }
}

/// Latencies of client requests for every table of a server.
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
            instruments.update_meters();
            instruments.latencies.show(&mut scope.named(&prefix_of(&table)));
        }
    }

    fn roll(&self) {
        self.server.instruments().roll_latencies();
    }
}

/// The prefix of a table's attribute names.
pub(super) fn prefix_of(table: &TableName) -> String {
    let mut prefix = String::new();
    put_table(&mut prefix, table);
    prefix.push_str("_metric_");
    prefix
}
