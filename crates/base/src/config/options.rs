//! Every option, declared once.

use std::net::IpAddr;
use std::path::PathBuf;

use super::Error;
use super::declare::{OptionInfo, options};
use super::layers::{Layers, Setting};
use super::value::{self, Checksum, RateLimiter, Share};

/// Samples closer together would be work for nobody's eye.
const HISTORY_PERIOD_MS_MIN: u64 = 100;

options! {
    "Data" {
        /// The root directory, which holds everything that is stored.
        ///
        /// Made at the first start. A directory that another program made is not opened by accident.
        root_dir: PathBuf = "hbase.rootdir", "./grampus-data", root_dir;
    }
    "Addresses and ports" {
        /// Address on which the master takes requests.
        ///
        /// HBase listens on every address; Grampus only on this machine's own, until told otherwise, since it asks
        /// nobody for a password. `0.0.0.0` listens on every address.
        master_address: IpAddr = "hbase.master.ipc.address", "127.0.0.1", address;
        /// Port of the master.
        master_port: u16 = "hbase.master.port", "16000", port;
        /// Address on which the region server takes requests.
        ///
        /// HBase listens on every address; Grampus only on this machine's own, until told otherwise.
        region_server_address: IpAddr = "hbase.regionserver.ipc.address", "127.0.0.1", address;
        /// Port of the region server.
        region_server_port: u16 = "hbase.regionserver.port", "16020", port;
        /// Address of the master's pages. HBase's default is every address.
        master_info_address: IpAddr = "hbase.master.info.bindAddress", "127.0.0.1", address;
        /// Port of the master's pages.
        master_info_port: Option<u16> = "hbase.master.info.port", "16010", port_or_off;
        /// Address of the region server's pages. HBase's default is every address.
        region_server_info_address: IpAddr = "hbase.regionserver.info.bindAddress", "127.0.0.1", address;
        /// Port of the region server's pages.
        region_server_info_port: Option<u16> = "hbase.regionserver.info.port", "16030", port_or_off;
        /// Host names for which browsers may ask for pages, separated by commas, beside IP addresses, `localhost`, this
        /// machine's name and the servers' names. `*`: any, also names that other sites made lead here.
        ///
        /// A page asked for by another name is refused (421).
        page_hosts: String = "grampus.info.hosts", "", text;
        /// Connections to the pages of each role; more are closed immediately.
        ///
        /// `auto`: one thirty-second of the limit of open files, at least 8, at most 512.
        page_connections_max: Option<u32> = "grampus.info.connections.max", "auto", count_or_auto;
        /// Address of the endpoint that speaks ZooKeeper's protocol, where clients ask for the way.
        zookeeper_address: IpAddr = "hbase.zookeeper.property.clientPortAddress", "127.0.0.1", address;
        /// Port of the endpoint that speaks ZooKeeper's protocol.
        zookeeper_port: u16 = "hbase.zookeeper.property.clientPort", "2181", port;
        /// Connections to the endpoint that speaks ZooKeeper's protocol; more are closed immediately.
        ///
        /// `auto`: one sixteenth of the limit of open files, at least 16, at most 4096.
        zookeeper_connections_max: Option<u32> = "grampus.zookeeper.connections.max", "auto", count_or_auto;
        /// The znode below which clients look for the cluster. Clients must be set to the same.
        zookeeper_parent: String = "zookeeper.znode.parent", "/hbase", znode;
        /// The host that clients are told for the master.
        ///
        /// Must lead clients to the address that is listened on. Empty: the address itself, or this machine's name if
        /// every address is listened on.
        master_host: Option<String> = "hbase.master.hostname", "", host_or_auto;
        /// The host that clients are told for the region server. It is part of the server's name in `hbase:meta`.
        ///
        /// Must lead clients to the address that is listened on. Empty: as for the master.
        region_server_host: Option<String> = "hbase.regionserver.hostname", "", host_or_auto;
        /// Added to every port but 0, so that several servers run side by side.
        port_offset: u16 = "grampus.port.offset", "0", port;
    }
    "Safety" {
        /// Keys of HBase that promise safety, or say where data is, and that the server may ignore nevertheless, separated by
        /// commas.
        ///
        /// Such a key stops the start, unless its value asks for nothing; they are listed at the end of this page.
        unsafe_ignored: String = "grampus.unsafe.ignore.keys", "", text;
    }
    "Memory" {
        /// What the process may use for everything: memstores, cached blocks, requests, answers and what they need beside.
        ///
        /// The limit that a part refers to is that of the control group, or the machine's memory if there is none. What
        /// memstores and cache leave, at least a fifth, is given in thirds to requests, to answers and to the rest. Memory
        /// that memstores do not use, the cache has until they do. Where the process takes more than all of it none the
        /// less, the cache is made smaller by as much.
        memory: Share = "grampus.memory", "40%", share;
        /// The part of the memory for all memstores. When they hold more, the largest are flushed, and writers wait.
        memstore_fraction: f64 = "hbase.regionserver.global.memstore.size"
            | "hbase.regionserver.global.memstore.upperLimit", "0.4", fraction;
        /// The part of the memstores' memory from which they are flushed ahead of need.
        memstore_lower_fraction: f64 = "hbase.regionserver.global.memstore.size.lower.limit", "0.95", fraction;
        /// The part of the memory for cached blocks, beside what memstores leave of theirs. With the memstores' part no
        /// more than 0.8.
        block_cache_fraction: f64 = "hfile.block.cache.size", "0.4", fraction;
        /// Whether blocks are read past the system's page cache, which then keeps no second copy of them.
        ///
        /// `auto`: if the memory is more than half of its limit, so that the system has less to cache with than the server.
        direct_reads: Option<bool> = "grampus.reads.direct", "auto", flag_or_auto;
    }
    "Memstores" {
        /// Bytes a region's memstore holds before it is flushed to files. A table may have its own.
        ///
        /// Larger: fewer files and less compaction, more memory and a longer log to replay after a crash.
        memstore_flush_bytes: u64 = "hbase.hregion.memstore.flush.size", "128 MiB", bytes;
        /// How many flush sizes a region's memstore may hold before its writers are told to come back later
        /// (RegionTooBusyException).
        memstore_block_multiplier: u32 = "hbase.hregion.memstore.block.multiplier", "4", count;
        /// Age of the oldest edit at which a memstore is flushed however small it is. 0: never by age.
        ///
        /// Shorter: logs go sooner, and there are more small files.
        memstore_flush_interval_ms: u64 = "hbase.regionserver.optionalcacheflushinterval", "1 h", millis;
    }
    "Block cache" {
        /// Whether all data blocks that a flush writes are cached at once. A family may want it for itself
        /// (CACHE_DATA_ON_WRITE).
        cache_data_on_write: bool = "hbase.rs.cacheblocksonwrite", "false", flag;
        /// Whether all blocks that a compaction writes are cached at once. Those that take the place of cached ones always
        /// are.
        cache_compacted_on_write: bool = "hbase.rs.cachecompactedblocksonwrite", "false", flag;
        /// Whether index blocks are cached as they are written. A family may want it for itself (CACHE_INDEX_ON_WRITE).
        cache_index_on_write: bool = "hfile.block.index.cacheonwrite", "false", flag;
        /// Whether chunks of Bloom filters are cached as they are written. A family may want it for itself
        /// (CACHE_BLOOMS_ON_WRITE).
        cache_blooms_on_write: bool = "hfile.block.bloom.cacheonwrite", "false", flag;
        /// Whether all blocks of a file are read ahead when it is opened, as long as there is room. A family may want it
        /// for itself (PREFETCH_BLOCKS_ON_OPEN).
        prefetch_on_open: bool = "hbase.rs.prefetchblocksonopen", "false", flag;
        /// Whether the blocks of a region leave the cache when it is closed. A family may want it for itself
        /// (EVICT_BLOCKS_ON_CLOSE).
        evict_on_close: bool = "hbase.rs.evictblocksonclose", "false", flag;
    }
    "Store files" {
        /// Files of a store from which some are merged into one.
        ///
        /// More: fewer bytes are rewritten, and a read looks into more files.
        compaction_files_min: u32 = "hbase.hstore.compaction.min" | "hbase.hstore.compactionThreshold", "3", count;
        /// The most files that one compaction merges.
        compaction_files_max: u32 = "hbase.hstore.compaction.max", "10", count;
        /// Bytes of a run of files below which it does not matter how they differ in size. `auto`: the flush size.
        compaction_bytes_min: Option<u64> = "hbase.hstore.compaction.min.size", "auto", bytes_or_auto;
        /// The most bytes that one compaction merges, unless a person wants everything rewritten. `auto`: no limit.
        compaction_bytes_max: Option<u64> = "hbase.hstore.compaction.max.size", "auto", bytes_or_auto;
        /// The same in hours of little load. `auto`: as in others.
        compaction_off_peak_bytes_max: Option<u64> = "hbase.hstore.compaction.max.size.offpeak", "auto", bytes_or_auto;
        /// How many times as large as the others of its run together a file may be to be merged with them.
        ///
        /// Larger: fewer files, and more bytes are rewritten.
        compaction_ratio: f64 = "hbase.hstore.compaction.ratio", "1.2", factor;
        /// The same in hours of little load.
        compaction_off_peak_ratio: f64 = "hbase.hstore.compaction.ratio.offpeak", "5.0", factor;
        /// The first hour of little load, in UTC (HBase counts in the server's zone).
        off_peak_start: Option<u8> = "hbase.offpeak.start.hour", "-1", hour_or_off;
        /// The hour behind the last one of little load, in UTC.
        off_peak_end: Option<u8> = "hbase.offpeak.end.hour", "-1", hour_or_off;
        /// How old the oldest file of a store may get before all of its files are rewritten. 0: they never are by age.
        major_compaction_period_ms: u64 = "hbase.hregion.majorcompaction", "7 d", millis;
        /// The part of that age by which stores differ, so that they are not all rewritten at once.
        major_compaction_jitter: f64 = "hbase.hregion.majorcompaction.jitter", "0.5", fraction;
        /// Which rule chooses the files of a compaction. A table or family may have its own.
        compaction_policy: String = "hbase.hstore.defaultengine.compactionpolicy.class",
            "org.apache.hadoop.hbase.regionserver.compactions.ExploringCompactionPolicy", compaction_policy;
        /// Whether stores are compacted within windows of time. A table or family may say otherwise.
        store_engine: String = "hbase.hstore.engine.class",
            "org.apache.hadoop.hbase.regionserver.DefaultStoreEngine", store_engine;
        /// The length of the newest windows of time.
        window_base_ms: u64 = "hbase.hstore.compaction.date.tiered.base.window.millis", "6 h", millis;
        /// Windows of one length; the next older ones are so many times as long.
        windows_per_tier: u32 = "hbase.hstore.compaction.date.tiered.windows.per.tier", "4", count;
        /// Files of the newest window from which some are merged.
        window_incoming_files_min: u32 = "hbase.hstore.compaction.date.tiered.incoming.window.min", "6", count;
        /// The age from which windows grow no more. `auto`: that of the next key.
        window_tier_age_max_ms: Option<u64> = "hbase.hstore.compaction.date.tiered.max.tier.age.millis", "auto", millis_or_auto;
        /// The age of windows that minor compactions leave alone. `auto`: none.
        window_file_age_max_ms: Option<u64> = "hbase.hstore.compaction.date.tiered.max.storefile.age.millis", "auto", millis_or_auto;
        /// Whether a minor compaction of a window writes one file instead of cutting it at the window's start.
        window_single_output: bool = "hbase.hstore.compaction.date.tiered.single.output.for.minor.compaction", "true", flag;
        /// Whether files are dropped unread when all their cells are over.
        drop_expired_files: bool = "hbase.store.delete.expired.storefile", "true", flag;
        /// How long delete markers stay when all files are rewritten.
        purge_deletes_after_ms: u64 = "hbase.hstore.time.to.purge.deletes", "0", millis;
        /// Stores are looked at once in so many times ten seconds, whether somebody wrote to them or not.
        compaction_check_multiplier: u32 = "hbase.server.compactchecker.interval.multiplier", "1000", count;
        /// Whether files are compacted at all. Can be switched while the server runs.
        compaction_enabled: bool = "hbase.regionserver.compaction.enabled", "true", flag;
        /// Bytes of a compaction from which it runs beside the others. `auto`: twice the flush size for each file that one may merge.
        long_compaction_bytes: Option<u64> = "hbase.regionserver.thread.compaction.throttle", "auto", bytes_or_auto;
        /// Such long compactions that run at once.
        long_compactions: u32 = "hbase.regionserver.thread.compaction.large", "1", count;
        /// Other compactions that run at once.
        short_compactions: u32 = "hbase.regionserver.thread.compaction.small", "1", count;
        /// Bytes that compactions write in a second as long as no store has many files.
        compaction_speed_min: u64 = "hbase.hstore.compaction.throughput.lower.bound", "50 MiB", bytes;
        /// Bytes that compactions write in a second when a store has nearly as many files as flushes wait for. Beyond, no limit.
        compaction_speed_max: u64 = "hbase.hstore.compaction.throughput.higher.bound", "100 MiB", bytes;
        /// Files of a store beyond which flushes wait for a compaction.
        blocking_store_files: u32 = "hbase.hstore.blockingStoreFiles", "16", count;
        /// How long they wait at most.
        blocking_wait_ms: u64 = "hbase.hstore.blockingWaitTime", "90 s", millis;
        /// Bytes of a store above which its region is split in the end. A table may have its own (`MAX_FILESIZE`).
        ///
        /// Larger: fewer regions, and longer compactions.
        split_bytes_max: u64 = "hbase.hregion.max.filesize", "10 GiB", bytes;
        /// The part of that by which each region's size differs by chance, so that not all are split at once.
        split_bytes_jitter: f64 = "hbase.hregion.max.filesize.jitter", "0.25", fraction;
        /// Whether the stores of a region count together for that.
        split_sums_stores: bool = "hbase.hregion.split.overallfiles", "false", flag;
        /// When the regions of tables that do not say (`SPLIT_POLICY`) are split: one of HBase's classes.
        split_policy: String = "hbase.regionserver.region.split.policy",
            "org.apache.hadoop.hbase.regionserver.SteppingSplitPolicy", split_policy;
        /// Bytes at which the first region of a table is split. `auto`: two memstores' flush sizes.
        split_bytes_initial: Option<u64> = "hbase.increasing.policy.initial.size", "auto", bytes_or_auto;
        /// The checksum in new files. Existing files are read whatever theirs is.
        checksum: Checksum = "hbase.hstore.checksum.algorithm", "CRC32C", checksum;
        /// Bytes that one checksum in a new file covers.
        bytes_per_checksum: u32 = "hbase.hstore.bytes.per.checksum", "16 KiB", chunk_bytes;
    }
    "Write-ahead log" {
        /// With the multiplier below, the size at which a new log file is begun.
        wal_block_bytes: u64 = "hbase.regionserver.hlog.blocksize", "256 MiB", bytes;
        /// The part of the block size at which a new log file is begun.
        wal_roll_multiplier: f64 = "hbase.regionserver.logroll.multiplier", "0.5", factor;
        /// Age at which a new log file is begun however small the old one is.
        wal_roll_interval_ms: u64 = "hbase.regionserver.logroll.period", "1 h", millis;
        /// Log files from which the regions that hold the oldest one are flushed.
        ///
        /// `auto`: what twice the memory of all memstores takes, at least 32. More: fewer forced flushes and a longer
        /// replay after a crash.
        wal_files_max: Option<u32> = "hbase.regionserver.maxlogs", "auto", count_or_auto;
        /// Whether regions are opened without the edits that a damaged log has lost; the log is then kept below
        /// `corrupt`. If not, they stay closed, and all others serve.
        wal_skip_errors: bool = "hbase.hlog.split.skip.errors", "false", flag;
    }
    "Disk" {
        /// Bytes of the disk that are allocated ahead for logs and deletes, and as many more that must be free for
        /// writes that add data.
        ///
        /// With less free than that and what memstores will take once they are flushed, such writes are refused
        /// (RegionTooBusyException); reads, deletes and drops continue. `auto`: 2 % of the disk, at least 1 MiB and at
        /// most 64 MiB. 0: no reserve, and writes are refused only where the disk has no room for memstores.
        disk_reserve_bytes: Option<u64> = "grampus.disk.reserve", "auto", bytes_or_auto;
    }
    "Splits and upkeep" {
        /// Regions on a server from which none is split by itself any more.
        regions_max: u32 = "hbase.regionserver.regionSplitLimit", "1000", count;
        /// The pause between two looks for regions that were split or merged, and whose files nobody needs any more.
        janitor_period_ms: u64 = "hbase.catalogjanitor.interval", "300000", millis;
        /// The pause between two looks for files that can be removed.
        cleaner_period_ms: u64 = "hbase.master.cleaner.interval", "600000", millis;
        /// Time between two searches for snapshots whose time to live has expired.
        snapshot_cleaner_period_ms: u64 = "hbase.master.cleaner.snapshot.interval", "1800000", millis;
        /// How long an archived store file is kept at least. Counted anew from each start.
        archived_file_ttl_ms: u64 = "hbase.master.hfilecleaner.ttl", "300000", millis;
        /// How long a log is kept at least that nobody needs any more. Counted anew from each start.
        old_log_ttl_ms: u64 = "hbase.master.logcleaner.ttl", "600000", millis;
    }
    "Pages" {
        /// Time between two samples of what the status pages and `/history` show of the past: 360 are kept, an hour at the
        /// default. No less than 100 ms. Shorter: the plots fill sooner and reach back less far.
        history_period_ms: u64 = "grampus.history.period", "10 s", millis;
    }
    "Requests" {
        /// Time without a call after which a scanner is closed. Clients should be set to the same.
        scanner_lease_ms: u64 = "hbase.client.scanner.timeout.period" | "hbase.regionserver.lease.period",
            "60000", millis;
        /// Scanners that may be open at a time; an opening beyond it is answered with an IOException, and tried again.
        scanners_max: u32 = "grampus.scanners.max", "100000", count;
        /// Filters, and keys, ranges, prefixes and timestamps within them, that one scan or get may have. More are refused
        /// (DoNotRetryIOException). Filters of more than 16 MiB, or with more than 1000 regular expressions, always are.
        ///
        /// Each cell of a scan is compared with all of them. Where memory is small (`grampus.memory`), the limit is lower: three
        /// quarters of the memory for open scanners, at 512 bytes each.
        filter_elements_max: u32 = "grampus.filter.elements.max", "100000", count;
        /// Bytes of cells in one answer to a scan or a batch, whatever the client asks for. Where memory is short, less.
        scan_result_bytes_max: u64 = "hbase.server.scanner.max.result.size", "100 MiB", bytes;
        /// The largest row that is read in one piece, for each family (RowTooBigException); scans that allow it get larger
        /// ones in parts. No more than half of the memory for answers.
        row_bytes_max: u64 = "hbase.table.max.rowsize", "1 GiB", bytes;
        /// Connections to master and region server together; more are closed at once.
        ///
        /// `auto`: what the limit of open files leaves when a quarter of it is kept for files, and what the pages and the endpoint
        /// that speaks ZooKeeper's protocol may have; at most 100000.
        connections_max: Option<u32> = "grampus.connections.max", "auto", count_or_auto;
        /// The largest request; a larger one is refused unread (RequestTooBigException). No more than three
        /// quarters of the memory for requests.
        request_bytes_max: u64 = "hbase.ipc.max.request.size", "256 MiB", bytes;
        /// Bytes of all requests at work; beyond, clients are told to come back later (CallQueueTooBigException). No more
        /// than the memory for requests.
        call_queue_bytes_max: u64 = "hbase.ipc.server.max.callqueue.size", "1 GiB", bytes;
        /// Calls that may wait for a handler; beyond, clients are told to come back later (CallQueueTooBigException).
        ///
        /// Calls have no threads to wait for here: those at work may be this many and the handlers' number together.
        /// `auto`: as many as the bytes of their requests allow, of which each is counted as 1 KiB more than it is.
        call_queue_length_max: Option<u32> = "hbase.ipc.server.max.callqueue.length"
            | "ipc.server.max.callqueue.length", "auto", count_or_auto;
        /// Calls at work besides those of the key above; means nothing while that is `auto`.
        handlers: u32 = "hbase.regionserver.handler.count", "30", count;
        /// Calls that take longer are told in the log, with where their time went, and kept for `get_slowlog_responses` and the
        /// pages: from their arrival to the last byte of a long answer.
        slow_call_ms: Option<u64> = "hbase.ipc.warn.response.time", "10 s", millis_or_off;
        /// The same for scans; `auto`: as for all others.
        slow_scan_ms: Option<u64> = "hbase.ipc.warn.response.time.scan", "auto", millis_off_or_auto;
        /// Calls with more bytes of answer are told of in the same way.
        large_answer_bytes: Option<u64> = "hbase.ipc.warn.response.size", "100 MiB", bytes_or_off;
        /// The same for scans; `auto`: as for all others.
        large_scan_bytes: Option<u64> = "hbase.ipc.warn.response.size.scan", "auto", bytes_off_or_auto;
        /// Whether the last of these calls are kept.
        slow_log_enabled: bool = "hbase.regionserver.slowlog.buffer.enabled", "true", flag;
        /// How many of them.
        slow_log_calls_max: u32 = "hbase.regionserver.slowlog.ringbuffer.size", "256", count;
        /// Whether the times of each user's operations are counted (`sub=Users`). What users use, and their requests by host, is
        /// counted anyhow.
        user_metrics_enabled: bool = "hbase.regionserver.user.metrics.enabled", "false", flag;
        /// Changes of one batch that are made together at most. Larger batches become several edits of the log.
        minibatch_changes: u32 = "hbase.regionserver.minibatch.size", "20000", count;
        /// Actions of one batch from which a warning is logged.
        batch_rows_warning: u32 = "hbase.rpc.rows.warning.threshold", "5000", count;
        /// Whether batches of more actions than that are refused instead.
        reject_large_batches: bool = "hbase.rpc.rows.size.threshold.reject", "false", flag;
        /// How long an increment or append is known by the nonce that its client gave it: sent again in this time, it
        /// is answered and not carried out again.
        nonce_grace_ms: u64 = "hbase.server.hashNonce.gracePeriod", "30 min", millis;
        /// The largest cell that is stored.
        cell_bytes_max: Option<u64> = "hbase.server.keyvalue.maxsize", "10 MiB", bytes_or_no_limit;
        /// Whether users, tables and namespaces can have quotas, which are kept in `hbase:quota`.
        quotas_enabled: bool = "hbase.quota.enabled", "false", flag;
        /// How often quotas are read at least; those that were changed are read within a second.
        quota_refresh_ms: u64 = "hbase.quota.refresh.period", "5 min", millis;
        /// How what a quota allows fills up again: bit by bit, or all at once when its time is over.
        quota_limiter: RateLimiter = "hbase.quota.rate.limiter",
            "org.apache.hadoop.hbase.quotas.AverageIntervalRateLimiter", rate_limiter;
        /// Bytes of a unit, for quotas of capacity units that are read.
        read_unit_bytes: u64 = "hbase.quota.read.capacity.unit", "1 KiB", bytes;
        /// Bytes of a unit, for quotas of capacity units that are written.
        write_unit_bytes: u64 = "hbase.quota.write.capacity.unit", "1 KiB", bytes;
    }
    "Metrics that are sent" {
        /// Whether the metrics of single regions are sent, which are most of all where regions are many.
        sink_regions: bool = "grampus.sink.regions", "true", flag;
        /// The file that metrics are put behind one another in as lines, one a record and period, as Hadoop's FileSink
        /// writes them.
        ///
        /// A file that was moved away or removed is made anew.
        file_sink: Option<PathBuf> = "hbase.sink.file.filename", "", file_or_none;
        /// The time between two lines of a record.
        file_sink_period_ms: u64 = "hbase.sink.file.period", "10", seconds;
        /// Only these of its records, named as beans' parts are: `Server`, `Regions`. Beside an exclusion these are the
        /// exceptions from it.
        file_sink_records_included: String = "hbase.sink.file.record.filter.include", "", pattern;
        /// None of these records. Of what is left out the values are not even asked for.
        file_sink_records_excluded: String = "hbase.sink.file.record.filter.exclude", "", pattern;
        /// Only these of its metrics, named as attributes of beans are; or the exceptions from an exclusion.
        file_sink_metrics_included: String = "hbase.sink.file.metric.filter.include", "", pattern;
        /// None of these metrics.
        file_sink_metrics_excluded: String = "hbase.sink.file.metric.filter.exclude", "", pattern;
        /// The host that gets metrics as StatsD's datagrams, named as Hadoop's StatsDSink names them.
        statsd_sink_host: Option<String> = "hbase.sink.statsd.server.host", "", host_or_none;
        /// Its port.
        statsd_sink_port: u16 = "hbase.sink.statsd.server.port", "8125", peer_port;
        /// The service's part of names. Empty: the role (`Master`, `RegionServer`), which it is for `JvmMetrics` in any
        /// case.
        statsd_sink_service: String = "hbase.sink.statsd.service.name", "", text;
        /// Whether names begin without this host's.
        statsd_sink_skips_hostname: bool = "hbase.sink.statsd.skip.hostname", "false", flag;
        /// The time between two values of a metric.
        statsd_sink_period_ms: u64 = "hbase.sink.statsd.period", "10", seconds;
        /// Only these of its records, named as beans' parts are: `Server`, `Regions`. Beside an exclusion these are the
        /// exceptions from it.
        statsd_sink_records_included: String = "hbase.sink.statsd.record.filter.include", "", pattern;
        /// None of these records. Of what is left out the values are not even asked for.
        statsd_sink_records_excluded: String = "hbase.sink.statsd.record.filter.exclude", "", pattern;
        /// Only these of its metrics, named as attributes of beans are; or the exceptions from an exclusion.
        statsd_sink_metrics_included: String = "hbase.sink.statsd.metric.filter.include", "", pattern;
        /// None of these metrics.
        statsd_sink_metrics_excluded: String = "hbase.sink.statsd.metric.filter.exclude", "", pattern;
        /// The host that gets metrics as lines of Graphite's protocol, with paths as Hadoop's GraphiteSink makes them.
        ///
        /// While it is away the newest 4 MiB of lines are kept for it.
        graphite_sink_host: Option<String> = "hbase.sink.graphite.server_host", "", host_or_none;
        /// Its port.
        graphite_sink_port: u16 = "hbase.sink.graphite.server_port", "2003", peer_port;
        /// What paths begin with.
        graphite_sink_prefix: String = "hbase.sink.graphite.metrics_prefix", "", text;
        /// The time between two values of a metric.
        graphite_sink_period_ms: u64 = "hbase.sink.graphite.period", "10", seconds;
        /// Only these of its records, named as beans' parts are: `Server`, `Regions`. Beside an exclusion these are the
        /// exceptions from it.
        graphite_sink_records_included: String = "hbase.sink.graphite.record.filter.include", "", pattern;
        /// None of these records. Of what is left out the values are not even asked for.
        graphite_sink_records_excluded: String = "hbase.sink.graphite.record.filter.exclude", "", pattern;
        /// Only these of its metrics, named as attributes of beans are; or the exceptions from an exclusion.
        graphite_sink_metrics_included: String = "hbase.sink.graphite.metric.filter.include", "", pattern;
        /// None of these metrics.
        graphite_sink_metrics_excluded: String = "hbase.sink.graphite.metric.filter.exclude", "", pattern;
    }
    "OpenTelemetry" {
        /// The collector that gets metrics, and traces if there are any, by OTLP over HTTP. A build with the feature `otlp`
        /// has this, others refuse to start with it.
        ///
        /// This key and those below are the ones that HBase's users give to OpenTelemetry's agent for Java.
        otlp_endpoint: String = "otel.exporter.otlp.endpoint", "", text;
        /// The service that metrics and traces are said to be of. Empty: `hbase-master` and `hbase-regionserver`.
        otlp_service: String = "otel.service.name", "", text;
        /// The time between two values of a metric.
        otlp_period_ms: u64 = "otel.metric.export.interval", "60 s", millis;
        /// Only these of its records, named as beans' parts are: `Server`, `Regions`. Beside an exclusion these are the
        /// exceptions from it.
        otlp_sink_records_included: String = "hbase.sink.otlp.record.filter.include", "", pattern;
        /// None of these records. Of what is left out the values are not even asked for.
        otlp_sink_records_excluded: String = "hbase.sink.otlp.record.filter.exclude", "", pattern;
        /// Only these of its metrics, named as attributes of beans are; or the exceptions from an exclusion.
        otlp_sink_metrics_included: String = "hbase.sink.otlp.metric.filter.include", "", pattern;
        /// None of these metrics.
        otlp_sink_metrics_excluded: String = "hbase.sink.otlp.metric.filter.exclude", "", pattern;
        /// The part of calls that are traced. 0: none, and nothing is asked of any.
        trace_ratio: f64 = "otel.traces.sampler.arg", "0", fraction;
    }
}

/// The memory of the process in bytes, and its parts; what they leave is for everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryParts {
    /// All of it.
    pub total: u64,
    /// For memstores.
    pub memstores: u64,
    /// For cached blocks.
    pub cache: u64,
    /// For requests that are read or at work.
    pub requests: u64,
    /// For answers that are made or not yet taken.
    pub answers: u64,
    /// For what open scanners hold while their clients are silent; a part of what the others leave.
    pub scanners: u64,
}

impl std::fmt::Display for MemoryParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        write!(
            f,
            "{} MiB: {} memstores, {} cached blocks, {} requests, {} answers",
            mib(self.total),
            mib(self.memstores),
            mib(self.cache),
            mib(self.requests),
            mib(self.answers)
        )
    }
}

impl Config {
    /// Size at which a new log file is begun.
    pub fn wal_roll_bytes(&self) -> u64 {
        (self.wal_block_bytes as f64 * self.wal_roll_multiplier) as u64
    }

    /// Log files from which regions are flushed, where all memstores together may hold `memstores_bytes`.
    pub fn wal_files_max_for(&self, memstores_bytes: u64) -> u32 {
        // Source: HBase's AbstractFSWAL: max(32, 2 * memstore limit / roll size).
        let by_memory = memstores_bytes.saturating_mul(2) / self.wal_roll_bytes().max(1);
        self.wal_files_max.unwrap_or_else(|| u32::try_from(by_memory).unwrap_or(u32::MAX).max(32))
    }

    /// The memory that the options give and its parts, where the process may have `limit` (see
    /// [`memory::limit_bytes`](crate::memory::limit_bytes)).
    pub fn memory_parts(&self, limit: u64) -> MemoryParts {
        let total = self.memory.of(limit);
        let share = |fraction: f64| (total as f64 * fraction) as u64;
        let (memstores, cache) = (share(self.memstore_fraction), share(self.block_cache_fraction));
        let third = total.saturating_sub(memstores + cache) / 3;
        MemoryParts {
            total,
            memstores,
            cache,
            requests: third.min(self.call_queue_bytes_max),
            answers: third,
            scanners: third / 4,
        }
    }

    /// Whether blocks are read past the page cache, where the process may have `limit`.
    pub fn reads_directly(&self, limit: u64) -> bool {
        self.direct_reads.unwrap_or(self.memory.of(limit) > limit / 2)
    }

    /// Bytes of the largest request, where requests have `requests_bytes` together.
    pub fn request_bytes_max_of(&self, requests_bytes: u64) -> u32 {
        // Large requests leave a quarter to small ones, and are counted with a little more than their bytes.
        let fits = self.request_bytes_max.min((requests_bytes / 4 * 3).saturating_sub(64 << 10));
        u32::try_from(fits).unwrap_or(u32::MAX)
    }

    /// Bytes of the reserve on a disk of `disk_bytes`.
    pub fn disk_reserve_bytes_of(&self, disk_bytes: u64) -> u64 {
        self.disk_reserve_bytes.unwrap_or_else(|| (disk_bytes / 50).clamp(1 << 20, 64 << 20))
    }

    /// Calls that may be at work at a time, if that is limited.
    pub fn calls_max(&self) -> Option<u32> {
        self.call_queue_length_max.map(|length| length.saturating_add(self.handlers))
    }

    /// Time between two samples of what is kept of the past.
    pub fn history_period(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.history_period_ms.max(HISTORY_PERIOD_MS_MIN))
    }

    /// Connections at a time, where the process may have `files` open.
    pub fn connections_max_of(&self, files: u64) -> u32 {
        const AUTO_MAX: u64 = 100_000;
        let others = 2 * self.page_connections_max_of(files) + self.zookeeper_connections_max_of(files);
        let auto = (files - files / 4).saturating_sub(u64::from(others)).clamp(16, AUTO_MAX) as u32;
        self.connections_max.unwrap_or(auto)
    }

    /// Connections to the pages of a role, where the process may have `files` open.
    pub fn page_connections_max_of(&self, files: u64) -> u32 {
        self.page_connections_max.unwrap_or((files / 32).clamp(8, 512) as u32)
    }

    /// Connections to the endpoint that speaks ZooKeeper's protocol, where the process may have `files` open.
    pub fn zookeeper_connections_max_of(&self, files: u64) -> u32 {
        self.zookeeper_connections_max.unwrap_or((files / 16).clamp(16, 4096) as u32)
    }

    /// The names of this server, for which browsers may ask for pages, as configured.
    pub fn page_hosts(&self) -> Vec<String> {
        list_of(&self.page_hosts)
    }
}

/// The entries of a list with commas.
pub(super) fn list_of(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}
