//! One bean for all regions: attributes of each, named by it.

use std::fmt::Write;
use std::sync::Arc;

use base::env::{Clock, Env};
use base::metrics::{Scope, Source};
use cell::schema::TableName;
use engine::Region;
use engine::region::{RegionFigures, StoreFigures};

use crate::beans::look;
use crate::beans::sums::Ages;

base::figures! {
    /// What a region says of itself; names are the ends of HBase's, behind `Namespace_NS_table_T_region_R_metric_`.
    pub(super) struct OneRegion in "RegionServer,sub=Regions" {
        /// Stores: one for each family.
        stores: Gauge<u64> = "storeCount",
        /// Their files.
        files: Gauge<u64> = "storeFileCount",
        /// Bytes of these.
        file_bytes: Gauge<u64> = "storeFileSize" in Bytes,
        /// Serialized bytes of the cells in memstores.
        memstore_bytes: Gauge<u64> = "memStoreSize" in Bytes,
        /// Age of the oldest file.
        oldest_file: Gauge<u64> = "maxStoreFileAge" in Milliseconds,
        /// Age of the newest file.
        newest_file: Gauge<u64> = "minStoreFileAge" in Milliseconds,
        /// Age that files have on average.
        average_file: Gauge<u64> = "avgStoreFileAge" in Milliseconds,
        /// Files that refer to one of another region.
        reference_files: Gauge<u64> = "numReferenceFiles",
        /// Age of the oldest file that a major compaction made; 0 if there is none.
        last_major_age: Gauge<u64> = "lastMajorCompactionAge" in Milliseconds,
        /// Compactions.
        compactions: Counted = "compactionsCompletedCount",
        /// Those that failed.
        compactions_failed: Counted = "compactionsFailedCount",
        /// Bytes of files that compactions read.
        compacted_bytes: Counted = "numBytesCompactedCount" in Bytes,
        /// Files that they read.
        compacted_files: Counted = "numFilesCompactedCount",
        /// Rows read by gets and scans.
        reads: Counted = "readRequestCount",
        /// Rows that filters kept from clients.
        filtered_reads: Counted = "filteredReadRequestCount",
        /// Mutations.
        writes: Counted = "writeRequestCount",
        /// Gets.
        gets: Counted = "getCount",
        /// Calls of scans.
        scans: Counted = "scanCount",
        /// Changes made together that had puts among them.
        puts: Counted = "putCount",
        /// The same with deletes.
        deletes: Counted = "deleteCount",
        /// Increments.
        increments: Counted = "incrementCount",
        /// Appends.
        appends: Counted = "appendCount",
        /// Which replica it is: the first one, there being no others.
        replica: Gauge<u64> = "replicaid",
    }
}

base::figures! {
    /// What is said of a store; names are the ends of HBase's, behind `Namespace_NS_table_T_region_R_store_F_metric_` in
    /// `RegionServer,sub=Regions`, and of all stores of a family behind `Namespace_NS_table_T_columnfamily_F_metric_`.
    pub(super) struct OneStore in "RegionServer,sub=Tables" {
        /// Rows read all of whose cells came from memory. A row that is answered in parts counts in each.
        memstore_reads: Gauge<u64> = "memstoreOnlyRowReadsCount",
        /// Rows read that had cells in files.
        mixed_reads: Gauge<u64> = "mixedRowReadsCount",
    }
}

impl OneStore {
    /// Those of these stores together.
    pub(super) fn of<'a>(stores: impl IntoIterator<Item = &'a StoreFigures>) -> OneStore {
        let mut sum = OneStore::default();
        for store in stores {
            sum.memstore_reads.0 += store.memstore_reads;
            sum.mixed_reads.0 += store.mixed_reads;
        }
        sum
    }
}

base::absent! {
    /// What is not kept of each region here.
    pub(super) struct NotOfRegions in "RegionServer,sub=Regions" {
        /// Readers that hold files: they are counted by nobody, and let go of by themselves.
        Gauge = "storeRefCount",
        /// The most readers that hold a file which was compacted away.
        Gauge = "maxCompactedStoreFileRefCount",
        /// Compactions of the region that wait: the queue is the server's.
        Gauge = "compactionsQueuedCount",
        /// Flushes of the region that wait: the queue is the server's.
        Gauge = "flushesQueuedCount",
        /// The most compactions of the region that ever waited.
        Gauge = "maxCompactionQueueSize",
        /// The most flushes of the region that ever waited.
        Gauge = "maxFlushQueueSize",
    }
}

/// The attributes of all regions of a server.
pub(super) struct Regions {
    regions: Arc<look::Regions>,
    clock: Arc<dyn Clock>,
}

impl Regions {
    pub(super) fn new(regions: &Arc<look::Regions>, env: &Env) -> Regions {
        Regions { regions: regions.clone(), clock: env.clock.clone() }
    }
}

impl Source for Regions {
    fn show(&self, scope_of: &mut Scope<'_>) {
        let now_ms = self.clock.now_ms();
        let mut prefix = String::new();
        for (region, figures) in self.regions.look(scope_of.now()).regions() {
            put_prefix(&mut prefix, &region);
            let mut scope = scope_of.named(&prefix);
            one_region(figures, now_ms).show(&mut scope);
            NotOfRegions.show(&mut scope);
            for store in &figures.stores {
                put_store_prefix(&mut prefix, &region, store);
                OneStore::of([store]).show(&mut scope_of.named(&prefix));
            }
        }
    }
}

fn put_store_prefix(prefix: &mut String, region: &Region, store: &StoreFigures) {
    put_region(prefix, region);
    write!(prefix, "_store_{}_metric_", String::from_utf8_lossy(&store.family)).expect("text grows");
}

fn put_prefix(prefix: &mut String, region: &Region) {
    put_region(prefix, region);
    prefix.push_str("_metric_");
}

fn put_region(prefix: &mut String, region: &Region) {
    prefix.clear();
    put_table(prefix, &region.info().table);
    write!(prefix, "_region_{}", region.encoded_name()).expect("text grows");
}

/// HBase's name of a table in names of attributes.
pub(super) fn put_table(prefix: &mut String, table: &TableName) {
    write!(prefix, "Namespace_{}_table_{}", table.namespace(), table.qualifier()).expect("text grows");
}

fn one_region(figures: &RegionFigures, now_ms: u64) -> OneRegion {
    let stores = &figures.stores;
    let ages = Ages::of(stores.iter(), now_ms);
    let majors = stores.iter().map(|store| store.oldest_major_ms).filter(|made_ms| *made_ms > 0);
    OneRegion {
        stores: stores.len().into(),
        files: stores.iter().map(|store| store.files).sum::<usize>().into(),
        file_bytes: stores.iter().map(|store| store.file_bytes).sum::<u64>().into(),
        memstore_bytes: figures.memstore_data_bytes.into(),
        oldest_file: ages.oldest_ms.into(),
        newest_file: ages.newest_ms.into(),
        average_file: ages.average_ms.into(),
        reference_files: stores.iter().map(|store| store.reference_files).sum::<usize>().into(),
        last_major_age: majors.min().map_or(0, |made_ms| now_ms.saturating_sub(made_ms)).into(),
        compactions: figures.compactions.into(),
        compactions_failed: figures.compactions_failed.into(),
        compacted_bytes: figures.compacted_bytes.into(),
        compacted_files: figures.compacted_files.into(),
        reads: figures.read_requests.into(),
        filtered_reads: figures.filtered_reads.into(),
        writes: figures.write_requests.into(),
        gets: figures.gets.into(),
        scans: figures.scans.into(),
        puts: figures.puts.into(),
        deletes: figures.deletes.into(),
        increments: figures.increments.into(),
        appends: figures.appends.into(),
        replica: 0_u64.into(),
    }
}
