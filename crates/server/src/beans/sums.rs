//! Figures of several regions together: of a server's, of a table's.

use engine::region::{RegionFigures, StoreFigures};

base::figures! {
    /// What regions have together. A table's are also in `sub=Tables`.
    pub(super) struct Sums in "RegionServer,sub=Server" {
        /// Regions served.
        regions: Gauge<u64> = "regionCount",
        /// Stores of these: one for each family.
        stores: Gauge<u64> = "storeCount",
        /// Their files.
        files: Gauge<u64> = "storeFileCount",
        /// The files of the store that has most.
        files_max: Gauge<u64> = "maxStoreFileCount",
        /// Bytes of all files.
        file_bytes: Gauge<u64> = "storeFileSize" in Bytes,
        /// Bytes of files and memstores that a region has on average.
        region_bytes: Gauge<u64> = "averageRegionSize" in Bytes,
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
        /// Bytes of all blocks of indexes, unpacked.
        index_bytes: Gauge<u64> = "staticIndexSize" in Bytes,
        /// Bytes of all Bloom filters, unpacked.
        bloom_bytes: Gauge<u64> = "staticBloomSize" in Bytes,
        /// Looks of gets into Bloom filters. Where the row's block is in memory the only file is searched at once.
        filter_looks: Gauge<u64> = "bloomFilterRequestsCount",
        /// Those that said that there is nothing.
        filter_negatives: Gauge<u64> = "bloomFilterNegativeResultsCount",
        /// Files that have no Bloom filter to look into.
        filters_missing: Gauge<u64> = "bloomFilterEligibleRequestsCount",
        /// Rows read by gets and scans.
        reads: Counted = "readRequestCount",
        /// Rows that filters kept from clients.
        filtered_reads: Counted = "filteredReadRequestCount",
        /// Mutations.
        writes: Counted = "writeRequestCount",
    }
}

impl Sums {
    /// Those of `regions` at `now_ms`.
    pub(super) fn of<'a>(regions: impl Iterator<Item = &'a RegionFigures> + Clone, now_ms: u64) -> Sums {
        let sum = |of: fn(&RegionFigures) -> u64| regions.clone().map(of).sum::<u64>();
        let stores = || regions.clone().flat_map(|region| &region.stores);
        let of_stores = |of: fn(&StoreFigures) -> u64| stores().map(of).sum::<u64>();
        let (file_bytes, memstore_bytes) =
            (of_stores(|store| store.file_bytes), sum(|region| region.memstore_data_bytes));
        let ages = Ages::of(stores(), now_ms);
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
            filter_looks: of_stores(|store| store.filter_looks).into(),
            filter_negatives: of_stores(|store| store.filter_negatives).into(),
            filters_missing: of_stores(|store| store.filters_missing).into(),
            reads: sum(|region| region.read_requests).into(),
            filtered_reads: sum(|region| region.filtered_reads).into(),
            writes: sum(|region| region.write_requests).into(),
        }
    }
}

/// How old the files of stores are; 0 where there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ages {
    pub(super) oldest_ms: u64,
    pub(super) newest_ms: u64,
    pub(super) average_ms: u64,
}

impl Ages {
    /// Those at `now_ms`.
    pub(super) fn of<'a>(stores: impl Iterator<Item = &'a StoreFigures>, now_ms: u64) -> Ages {
        let (mut oldest, mut newest, mut made, mut files) = (u64::MAX, 0, 0, 0);
        for store in stores.filter(|store| store.dated_files > 0) {
            oldest = oldest.min(store.oldest_file_ms);
            newest = newest.max(store.newest_file_ms);
            made += store.files_made_ms;
            files += store.dated_files as u64;
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
    fn ages_are_those_of_files() {
        let store = |dated_files, oldest_file_ms, newest_file_ms, files_made_ms| StoreFigures {
            dated_files,
            oldest_file_ms,
            newest_file_ms,
            files_made_ms,
            ..StoreFigures::default()
        };
        let stores = [store(2, 100, 300, 400), StoreFigures::default(), store(1, 200, 200, 200)];
        let ages = Ages::of(stores.iter(), 1000);
        assert_eq!(ages, Ages { oldest_ms: 900, newest_ms: 700, average_ms: 800 });
        let none = Ages { oldest_ms: 0, newest_ms: 0, average_ms: 0 };
        assert_eq!(Ages::of(stores[1..2].iter(), 1000), none);
    }
}
