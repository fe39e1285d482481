//! The bean with the attributes of every region, prefixed with the region's name.

use std::fmt::Write;
use std::sync::Arc;

use base::env::{Clock, Env};
use base::metrics::{Scope, Source};
use cell::schema::TableName;
use engine::Region;
use engine::region::{RegionMetrics, StoreMetrics};

use crate::beans::sample;
use crate::beans::sums::Ages;

base::current_values! {
    /// Metrics of a region. HBase's names have the prefix `Namespace_NS_table_T_region_R_metric_`.
    pub(super) struct RegionAttributes in "RegionServer,sub=Regions" {
        /// Stores; there is one for each family.
        stores: Gauge<u64> = "storeCount",
        /// Store files.
        files: Gauge<u64> = "storeFileCount",
        /// Bytes of store files.
        file_bytes: Gauge<u64> = "storeFileSize" in Bytes,
        /// Serialized bytes of the cells in memstores.
        memstore_bytes: Gauge<u64> = "memStoreSize" in Bytes,
        /// Age of the oldest store file.
        oldest_file: Gauge<u64> = "maxStoreFileAge" in Milliseconds,
        /// Age of the newest store file.
        newest_file: Gauge<u64> = "minStoreFileAge" in Milliseconds,
        /// Average age of store files.
        average_file: Gauge<u64> = "avgStoreFileAge" in Milliseconds,
        /// References to store files of other regions.
        reference_files: Gauge<u64> = "numReferenceFiles",
        /// Age of the oldest file written by a major compaction; 0 if there is none.
        last_major_age: Gauge<u64> = "lastMajorCompactionAge" in Milliseconds,
        /// Compactions.
        compactions: Counted = "compactionsCompletedCount",
        /// Failed compactions.
        compactions_failed: Counted = "compactionsFailedCount",
        /// Bytes of files read by compactions.
        compacted_bytes: Counted = "numBytesCompactedCount" in Bytes,
        /// Files read by compactions.
        compacted_files: Counted = "numFilesCompactedCount",
        /// Rows read by gets and scans.
        reads: Counted = "readRequestCount",
        /// Rows that filters removed from results.
        filtered_reads: Counted = "filteredReadRequestCount",
        /// Mutations.
        writes: Counted = "writeRequestCount",
        /// Gets.
        gets: Counted = "getCount",
        /// Scan calls.
        scans: Counted = "scanCount",
        /// Batches that contain puts.
        puts: Counted = "putCount",
        /// Batches that contain deletes.
        deletes: Counted = "deleteCount",
        /// Increments.
        increments: Counted = "incrementCount",
        /// Appends.
        appends: Counted = "appendCount",
        /// Replica number: always 0, the primary replica.
        replica: Gauge<u64> = "replicaid",
    }
}

base::current_values! {
    /// Metrics of a store. HBase's names have the prefix
    /// `Namespace_NS_table_T_region_R_store_F_metric_` in `RegionServer,sub=Regions`. The sums over
    /// all stores of a family have the prefix `Namespace_NS_table_T_columnfamily_F_metric_`.
    pub(super) struct StoreAttributes in "RegionServer,sub=Tables" {
        /// Rows read entirely from memstores. A row returned in parts counts once for each part.
        memstore_reads: Gauge<u64> = "memstoreOnlyRowReadsCount",
        /// Rows read with cells from store files.
        mixed_reads: Gauge<u64> = "mixedRowReadsCount",
    }
}

impl StoreAttributes {
    /// Sums over these stores.
    pub(super) fn from_stores<'a>(stores: impl IntoIterator<Item = &'a StoreMetrics>) -> StoreAttributes {
        let mut sum = StoreAttributes::default();
        for store in stores {
            sum.memstore_reads.0 += store.memstore_reads;
            sum.mixed_reads.0 += store.mixed_reads;
        }
        sum
    }
}

base::absent! {
    /// Metrics that are not measured per region.
    pub(super) struct AbsentRegionMetrics in "RegionServer,sub=Regions" {
        /// Readers that hold store files. They are not counted.
        Gauge = "storeRefCount",
        /// Maximum number of readers that hold a compacted file.
        Gauge = "maxCompactedStoreFileRefCount",
        /// Queued compactions of the region. The queue belongs to the server.
        Gauge = "compactionsQueuedCount",
        /// Queued flushes of the region. The queue belongs to the server.
        Gauge = "flushesQueuedCount",
        /// Maximum number of queued compactions of the region so far.
        Gauge = "maxCompactionQueueSize",
        /// Maximum number of queued flushes of the region so far.
        Gauge = "maxFlushQueueSize",
    }
}

/// The attributes of all regions of a server.
pub(super) struct Regions {
    regions: Arc<sample::RegionSampler>,
    clock: Arc<dyn Clock>,
}

impl Regions {
    pub(super) fn new(regions: &Arc<sample::RegionSampler>, env: &Env) -> Regions {
        Regions { regions: regions.clone(), clock: env.clock.clone() }
    }
}

impl Source for Regions {
    fn show(&self, scope_of: &mut Scope<'_>) {
        let now_ms = self.clock.now_ms();
        let mut prefix = String::new();
        for (region, metrics) in self.regions.sample(scope_of.now()).regions() {
            put_prefix(&mut prefix, &region);
            let mut scope = scope_of.named(&prefix);
            region_attributes(metrics, now_ms).show(&mut scope);
            AbsentRegionMetrics.show(&mut scope);
            for store in &metrics.stores {
                put_store_prefix(&mut prefix, &region, store);
                StoreAttributes::from_stores([store]).show(&mut scope_of.named(&prefix));
            }
        }
    }
}

fn put_store_prefix(prefix: &mut String, region: &Region, store: &StoreMetrics) {
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

/// Appends HBase's name of a table in attribute names.
pub(super) fn put_table(prefix: &mut String, table: &TableName) {
    write!(prefix, "Namespace_{}_table_{}", table.namespace(), table.qualifier()).expect("text grows");
}

fn region_attributes(metrics: &RegionMetrics, now_ms: u64) -> RegionAttributes {
    let stores = &metrics.stores;
    let ages = Ages::new(stores.iter(), now_ms);
    let majors = stores.iter().map(|store| store.oldest_major_ms).filter(|made_ms| *made_ms > 0);
    RegionAttributes {
        stores: stores.len().into(),
        files: stores.iter().map(|store| store.files).sum::<usize>().into(),
        file_bytes: stores.iter().map(|store| store.file_bytes).sum::<u64>().into(),
        memstore_bytes: metrics.memstore_data_bytes.into(),
        oldest_file: ages.oldest_ms.into(),
        newest_file: ages.newest_ms.into(),
        average_file: ages.average_ms.into(),
        reference_files: stores.iter().map(|store| store.reference_files).sum::<usize>().into(),
        last_major_age: majors.min().map_or(0, |made_ms| now_ms.saturating_sub(made_ms)).into(),
        compactions: metrics.compactions.into(),
        compactions_failed: metrics.compactions_failed.into(),
        compacted_bytes: metrics.compacted_bytes.into(),
        compacted_files: metrics.compacted_files.into(),
        reads: metrics.read_requests.into(),
        filtered_reads: metrics.filtered_reads.into(),
        writes: metrics.write_requests.into(),
        gets: metrics.gets.into(),
        scans: metrics.scans.into(),
        puts: metrics.puts.into(),
        deletes: metrics.deletes.into(),
        increments: metrics.increments.into(),
        appends: metrics.appends.into(),
        replica: 0_u64.into(),
    }
}
