//! Settings of regions, with HBase's keys.

use std::time::Duration;

use cell::schema::TableDescriptor;

use crate::caching::Caching;
use crate::compaction::SiteSettings;
use crate::mob::MobOptions;
use crate::region::split_policy::SplitOptions;
use crate::region::storage_policy::StoragePolicies;

/// Settings of regions. The defaults are HBase's.
#[derive(Clone, Debug)]
pub struct RegionOptions {
    /// Bytes of memstores at which a region is flushed (`hbase.hregion.memstore.flush.size`). A
    /// table's `MEMSTORE_FLUSHSIZE` takes precedence.
    pub flush_bytes: u64,
    /// Multiple of `flush_bytes` at which writes are refused
    /// (`hbase.hregion.memstore.block.multiplier`).
    pub block_multiplier: u64,
    /// Maximum bytes of a serialized cell; 0 for no limit (`hbase.server.keyvalue.maxsize`).
    pub cell_bytes_max: u64,
    /// Maximum bytes of one family in one result, which limits rows read as a whole
    /// (`hbase.table.max.rowsize`).
    pub row_bytes_max: u64,
    /// Maximum number of elements in a filter (`grampus.filter.elements.max`).
    pub filter_elements_max: usize,
    /// Bytes in the log's queue at which writes are refused.
    pub log_queue_bytes_max: u64,
    /// Which files are compacted, and when. Families and tables may override this.
    pub compaction: SiteSettings,
    /// Maximum time that a flush waits for compactions (`hbase.hstore.blockingWaitTime`).
    pub blocking_wait: Duration,
    /// Number of attempts to flush before the error is returned; 0 means 1
    /// (`hbase.hstore.flush.retries.number`).
    pub flush_retries: u32,
    /// The wait after the first failed attempt. It doubles after each further one, up to a hundred
    /// times the first.
    pub flush_retry_wait: Duration,
    /// How long compactions keep delete markers that could be dropped
    /// (`hbase.hstore.time.to.purge.deletes`).
    pub purge_deletes_after: Duration,
    /// Whether a bulk load requests compactions of stores that have many files
    /// (`hbase.compaction.after.bulkload.enable`).
    pub compact_after_bulk_load: bool,
    /// Whether a bulk load reads whole files and checks the order of their cells
    /// (`hbase.hstore.bulkload.verify`).
    pub verify_bulk_loads: bool,
    /// When regions are split.
    pub split: SplitOptions,
    /// Which blocks of all families are cached, in addition to the settings of each family.
    pub caching: Caching,
    /// MOB files.
    pub mob: MobOptions,
    /// The storage policies of directories on HDFS.
    pub storage: StoragePolicies,
}

impl Default for RegionOptions {
    fn default() -> RegionOptions {
        RegionOptions {
            flush_bytes: 128 << 20,
            block_multiplier: 4,
            cell_bytes_max: 10 << 20,
            row_bytes_max: 1 << 30,
            filter_elements_max: 100_000,
            log_queue_bytes_max: 256 << 20,
            compaction: SiteSettings::default(),
            blocking_wait: Duration::from_secs(90),
            flush_retries: 10,
            flush_retry_wait: Duration::from_millis(100),
            purge_deletes_after: Duration::ZERO,
            compact_after_bulk_load: true,
            verify_bulk_loads: false,
            split: SplitOptions::default(),
            caching: Caching::default(),
            mob: MobOptions::default(),
            storage: StoragePolicies::default(),
        }
    }
}

impl RegionOptions {
    /// The number of bytes at which a region of `table` is flushed.
    pub fn flush_bytes_of(&self, table: &TableDescriptor) -> u64 {
        table.memstore_flush_bytes().unwrap_or(self.flush_bytes)
    }

    /// The number of bytes at which writes to a region of `table` are refused.
    pub fn blocking_bytes_of(&self, table: &TableDescriptor) -> u64 {
        self.flush_bytes_of(table).saturating_mul(self.block_multiplier)
    }
}
