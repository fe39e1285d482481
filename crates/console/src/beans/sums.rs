//! Sums of metrics over several regions: those of a server, or of a table.

use engine::region::{RegionMetrics, StoreMetrics};

base::current_values! {
    /// Sums over regions. Those of a table are also in `sub=Tables`.
    pub(super) struct Sums in "RegionServer,sub=Server" {
        /// Regions served.
        regions: Gauge<u64> = "regionCount",
        /// Stores of these regions; a region has one for each family.
        stores: Gauge<u64> = "storeCount",
        /// Store files.
        files: Gauge<u64> = "storeFileCount",
        /// Store files of the store with the most files.
        files_max: Gauge<u64> = "maxStoreFileCount",
        /// Bytes of all store files.
        file_bytes: Gauge<u64> = "storeFileSize" in Bytes,
        /// Average bytes of a region: store files and memstore.
        region_bytes: Gauge<u64> = "averageRegionSize" in Bytes,
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
        /// Uncompressed bytes of all index blocks.
        index_bytes: Gauge<u64> = "staticIndexSize" in Bytes,
        /// Uncompressed bytes of all Bloom filters.
        bloom_bytes: Gauge<u64> = "staticBloomSize" in Bytes,
        /// Bloom filter checks by gets. If a store has only one file and the row's block is cached,
        /// gets skip the check.
        filter_lookups: Gauge<u64> = "bloomFilterRequestsCount",
        /// Bloom filter checks that excluded the file.
        filter_negatives: Gauge<u64> = "bloomFilterNegativeResultsCount",
        /// Bloom filter checks that were impossible because the file has no Bloom filter.
        filters_missing: Gauge<u64> = "bloomFilterEligibleRequestsCount",
        /// Rows read by gets and scans.
        reads: Counted = "readRequestCount",
        /// Rows that filters removed from results.
        filtered_reads: Counted = "filteredReadRequestCount",
        /// Mutations.
        writes: Counted = "writeRequestCount",
    }
}

impl Sums {
    /// Sums over `regions` at `now_ms`.
    pub(super) fn new<'a>(regions: impl Iterator<Item = &'a RegionMetrics> + Clone, now_ms: u64) -> Sums {
        let sum = |of: fn(&RegionMetrics) -> u64| regions.clone().map(of).sum::<u64>();
        let stores = || regions.clone().flat_map(|region| &region.stores);
        let of_stores = |of: fn(&StoreMetrics) -> u64| stores().map(of).sum::<u64>();
        let (file_bytes, memstore_bytes) =
            (of_stores(|store| store.file_bytes), sum(|region| region.memstore_data_bytes));
        let ages = Ages::new(stores(), now_ms);
        Sums {
            regions: regions.clone().count().into(),
            stores: stores().count().into(),
            files: of_stores(|store| store.files as u64).into(),
            files_max: stores().map(|store| store.files).max().unwrap_or(0).into(),
            file_bytes: file_bytes.into(),
            region_bytes: ((file_bytes + memstore_bytes) / regions.clone().count().max(1) as u64).into(),
            memstore_bytes: memstore_bytes.into(),
            oldest_file: ages.oldest_ms.into(),
            newest_file: ages.newest_ms.into(),
            average_file: ages.average_ms.into(),
            reference_files: of_stores(|store| store.reference_files as u64).into(),
            index_bytes: of_stores(|store| store.index_bytes).into(),
            bloom_bytes: of_stores(|store| store.bloom_bytes).into(),
            filter_lookups: of_stores(|store| store.filter_lookups).into(),
            filter_negatives: of_stores(|store| store.filter_negatives).into(),
            filters_missing: of_stores(|store| store.filters_missing).into(),
            reads: sum(|region| region.read_requests).into(),
            filtered_reads: sum(|region| region.filtered_reads).into(),
            writes: sum(|region| region.write_requests).into(),
        }
    }
}

/// Ages of the files of several stores; 0 if there are no files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ages {
    pub(super) oldest_ms: u64,
    pub(super) newest_ms: u64,
    pub(super) average_ms: u64,
}

impl Ages {
    /// The ages at `now_ms`.
    pub(super) fn new<'a>(stores: impl Iterator<Item = &'a StoreMetrics>, now_ms: u64) -> Ages {
        let (mut oldest, mut newest, mut made, mut files) = (u64::MAX, 0, 0, 0);
        for store in stores.filter(|store| store.files_with_creation_time > 0) {
            oldest = oldest.min(store.oldest_file_ms);
            newest = newest.max(store.newest_file_ms);
            made += store.creation_time_sum_ms;
            files += store.files_with_creation_time as u64;
        }
        if files == 0 {
            return Ages { oldest_ms: 0, newest_ms: 0, average_ms: 0 };
        }
        let age = |made_ms: u64| now_ms.saturating_sub(made_ms);
        Ages { oldest_ms: age(oldest), newest_ms: age(newest), average_ms: age(made / files) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_computed_over_files() {
        let store =
            |files_with_creation_time, oldest_file_ms, newest_file_ms, creation_time_sum_ms| StoreMetrics {
                files_with_creation_time,
                oldest_file_ms,
                newest_file_ms,
                creation_time_sum_ms,
                ..StoreMetrics::default()
            };
        let stores = [store(2, 100, 300, 400), StoreMetrics::default(), store(1, 200, 200, 200)];
        let ages = Ages::new(stores.iter(), 1000);
        assert_eq!(ages, Ages { oldest_ms: 900, newest_ms: 700, average_ms: 800 });
        let none = Ages { oldest_ms: 0, newest_ms: 0, average_ms: 0 };
        assert_eq!(Ages::new(stores[1..2].iter(), 1000), none);
    }
}
