//! The metrics of MOB files.

base::instruments! {
    /// Large values that flushes, compactions and reads move between store files and MOB files.
    pub struct MobInstruments in "RegionServer,sub=Server" {
        /// Cells moved to MOB files by compactions.
        compacted_cells_to_mob: Counter = "cellsCountCompactedToMob",
        /// Cells moved back from MOB files by compactions.
        compacted_cells_from_mob: Counter = "cellsCountCompactedFromMob",
        /// Bytes moved to MOB files by compactions.
        compacted_bytes_to_mob: Counter = "cellsSizeCompactedToMob" in Bytes,
        /// Bytes moved back from MOB files by compactions.
        compacted_bytes_from_mob: Counter = "cellsSizeCompactedFromMob" in Bytes,
        /// Flushes that wrote MOB files.
        flushes: Counter = "mobFlushCount",
        /// Cells flushed to MOB files.
        flushed_cells: Counter = "mobFlushedCellsCount",
        /// Bytes flushed to MOB files.
        flushed_bytes: Counter = "mobFlushedCellsSize" in Bytes,
        /// Cells read from MOB files.
        scanned_cells: Counter = "mobScanCellsCount",
        /// Bytes read from MOB files.
        scanned_bytes: Counter = "mobScanCellsSize" in Bytes,
        /// Lookups in the cache of open MOB files.
        file_accesses: Counter = "mobFileCacheAccessCount",
        /// Misses in the cache of open MOB files.
        file_misses: Counter = "mobFileCacheMissCount",
        /// MOB files evicted from the cache of open files.
        file_evictions: Counter = "mobFileCacheEvictedCount",
    }
}
