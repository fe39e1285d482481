//! Every option, declared once.

use std::net::IpAddr;
use std::path::PathBuf;

use super::Error;
use super::cache_files::CacheFiles;
use super::declare::{OptionInfo, options};
use super::layers::{Layers, Setting};
use super::root_uri::RootUri;
use super::value::{self, Checksum, MemoryShare, MobCompactionKind};
use crate::classes::{CompactionPolicy, RateLimiter, SplitPolicy, StoreEngine};

/// Lower bound of the sample period. More frequent samples cost work without a visible benefit.
const HISTORY_PERIOD_MS_MIN: u64 = 100;

options! {
    "Data" {
        /// Root directory of all stored data.
        ///
        /// Created at the first start. An existing directory must be empty or contain the data of
        /// Grampus. Otherwise the server does not start. All processes of a cluster need the same
        /// value; for `hdfs://`, see `docs/hdfs.md`.
        root: RootUri = "hbase.rootdir", "./grampus-data", root_uri;
        /// Directory of the logs, if they are on another disk than the root directory. Empty: below
        /// the root directory.
        ///
        /// It must not be below the root directory. Both are local, or both are on HDFS. To change
        /// it, stop all servers, move the directories `WALs`, `oldWALs`, `MasterData/WALs` and
        /// `MasterData/oldWALs`, and start again.
        wal_dir: Option<RootUri> = "hbase.wal.dir", "", root_uri_or_none;
        /// Storage tiers, from the fastest to the slowest, separated by semicolons. Empty: all
        /// files are in the root directory.
        ///
        /// Each tier has a name, a class of disks (`ram`, `nvme`, `ssd`, `hdd`, `archive`, or one
        /// of `grampus.tier.classes`) and directories, separated by commas; `root` is the root
        /// directory. Example: `fast nvme /nvme0,/nvme1; disk hdd root,/disk1`. See
        /// `docs/tiers.md`.
        tiers: String = "grampus.tiers", "", text;
        /// Further classes of disks, separated by semicolons: a name and properties, such as
        /// `qlc type=ssd writers=2`. See `docs/tiers.md`.
        tier_classes: String = "grampus.tier.classes", "", text;
        /// Maximum number of bytes per second that move between tiers. 0: files stay where they
        /// were written.
        tier_move_rate_max: u64 = "grampus.tier.move.rate.max", "64 MiB", bytes;
        /// The pause between two searches for files to move.
        tier_move_period_ms: u64 = "grampus.tier.move.period", "60 s", millis;
        /// The storage policy of logs: `NONE`, `ALL_SSD`, `ONE_SSD`, `HOT`, `WARM`, `COLD` or
        /// `LAZY_PERSIST`. With `NONE`, the rules of the tiers decide; on HDFS, the policy of the
        /// parent directory.
        wal_storage_policy: String = "hbase.wal.storage.policy", "NONE", text;
        /// The storage policy of the files of families without a `STORAGE_POLICY`.
        store_storage_policy: String = "hbase.hstore.block.storage.policy", "NONE", text;
        /// The storage policy of the files of regions, if neither the family nor
        /// `hbase.hstore.block.storage.policy` has one.
        region_storage_policy: String = "hbase.hregion.block.storage.policy", "NONE", text;
    }
    "Addresses and ports" {
        /// Address on which the master listens for RPC.
        ///
        /// HBase listens on all addresses. Grampus listens on loopback by default, because it
        /// performs no authentication. `0.0.0.0` listens on all IPv4 addresses.
        master_address: IpAddr = "hbase.master.ipc.address", "127.0.0.1", address;
        /// RPC port of the master.
        master_port: u16 = "hbase.master.port", "16000", port;
        /// Address on which the region server listens for RPC.
        ///
        /// HBase listens on all addresses. Grampus listens on loopback by default.
        region_server_address: IpAddr = "hbase.regionserver.ipc.address", "127.0.0.1", address;
        /// RPC port of the region server.
        region_server_port: u16 = "hbase.regionserver.port", "16020", port;
        /// Address of the master's status pages. HBase's default is all addresses.
        master_info_address: IpAddr = "hbase.master.info.bindAddress", "127.0.0.1", address;
        /// Port of the master's status pages.
        master_info_port: Option<u16> = "hbase.master.info.port", "16010", port_or_off;
        /// Address of the region server's status pages. HBase's default is all addresses.
        region_server_info_address: IpAddr = "hbase.regionserver.info.bindAddress", "127.0.0.1", address;
        /// Port of the region server's status pages.
        region_server_info_port: Option<u16> = "hbase.regionserver.info.port", "16030", port_or_off;
        /// Additional host names under which the status pages are served, separated by commas.
        ///
        /// IP addresses, `localhost`, this machine's name and the configured server names are
        /// always accepted. Requests for other host names are refused (status 421), which protects
        /// against DNS rebinding. `*` accepts every host name and disables this protection.
        page_hosts: String = "grampus.info.hosts", "", text;
        /// Maximum number of connections to the master's status pages. The same limit applies
        /// separately to the region server's status pages. At the limit, a new connection replaces
        /// the one whose client has been silent longest.
        ///
        /// `auto`: 1/32 of the limit of open files, at least 8 and at most 512.
        /// Larger: more file descriptors may be in use.
        page_connections_max: Option<u32> = "grampus.info.connections.max", "auto", count_or_auto;
        /// Address of the ZooKeeper-protocol endpoint, where clients look up the master and
        /// `hbase:meta`.
        zookeeper_address: IpAddr = "hbase.zookeeper.property.clientPortAddress", "127.0.0.1", address;
        /// Port of the ZooKeeper-protocol endpoint. In a cluster, the port of the ZooKeeper servers
        /// that are listed without one.
        zookeeper_port: u16 = "hbase.zookeeper.property.clientPort", "2181", port;
        /// Maximum number of connections to the ZooKeeper-protocol endpoint. Further connections
        /// are closed immediately.
        ///
        /// `auto`: 1/16 of the limit of open files, at least 16 and at most 4096. Larger: more file
        /// descriptors may be in use.
        zookeeper_connections_max: Option<u32> = "grampus.zookeeper.connections.max", "auto", count_or_auto;
        /// The ZooKeeper servers of a cluster: `host` or `host:port`, separated by commas. The
        /// default port is `hbase.zookeeper.property.clientPort`. An IPv6 address is in brackets.
        /// The path of a znode, below which the cluster's znodes are, may follow the last server.
        /// Only `grampus master` and `grampus regionserver` connect to them.
        zookeeper_quorum: String = "hbase.zookeeper.quorum", "127.0.0.1", text;
        /// Time in milliseconds after which ZooKeeper declares a silent process of the cluster
        /// dead.
        ///
        /// ZooKeeper limits it to 2 to 20 of its ticks. HBase's default is 90000. Larger: a paused
        /// or unreachable server is replaced later. Smaller: short network problems end servers.
        zookeeper_session_ms: u64 = "zookeeper.session.timeout", "10 s", millis;
        /// Whether master and region servers are separate processes, as in HBase.
        ///
        /// The command decides (`grampus start`, or `grampus master` and `grampus regionserver`).
        /// If this is true, `grampus start` refuses to start.
        is_distributed: bool = "hbase.cluster.distributed", "false", flag;
        /// Root znode of the cluster. Clients must use the same value.
        zookeeper_parent: String = "zookeeper.znode.parent", "/hbase", znode;
        /// Host name of the master that is advertised to clients.
        ///
        /// Clients must be able to reach the master's listening address under this name. Empty: the
        /// listening address itself, or this machine's name if the master listens on all addresses.
        master_host: Option<String> = "hbase.master.hostname", "", host_or_auto;
        /// Host name of the region server that is advertised to clients. It is part of the server's
        /// name in `hbase:meta`.
        ///
        /// Clients must be able to reach the region server's listening address under this name.
        /// Empty: as for the master.
        region_server_host: Option<String> = "hbase.regionserver.hostname", "", host_or_auto;
        /// Number that is added to every port except 0, so that several servers can run on one
        /// machine. The port of a cluster's ZooKeeper servers does not change.
        port_offset: u16 = "grampus.port.offset", "0", port;
    }
    "Safety" {
        /// Unsafe keys that the server ignores, separated by commas.
        ///
        /// An unsafe key is an HBase key that Grampus does not support, although it protects data
        /// or determines where data is stored. The table at the end of this page lists all unsafe
        /// keys. If an unsafe key is set, the server starts only if the table lists its value as
        /// accepted, or if this option contains the key.
        unsafe_ignored: String = "grampus.unsafe.ignore.keys", "", text;
    }
    "Memory" {
        /// Memory limit of the process: memstores, block cache, requests, responses, and everything
        /// else.
        ///
        /// A percentage refers to the memory limit of the control group, or to the machine's memory
        /// if the control group has no limit. The next options set the fractions for memstores and
        /// block cache. The rest, at least a fifth, is divided into equal thirds for requests,
        /// responses, and everything else. The block cache also uses memory that memstores
        /// currently do not use. If the process exceeds its limit, the block cache shrinks by the
        /// excess.
        memory: MemoryShare = "grampus.memory", "40%", share;
        /// Fraction of the memory for all memstores together.
        ///
        /// If memstores use more, writes are rejected (RegionTooBusyException) until flushes have
        /// freed memory. Larger: longer bursts of writes, fewer and larger files, and less memory
        /// for the block cache.
        memstore_fraction: f64 = "hbase.regionserver.global.memstore.size"
            | "hbase.regionserver.global.memstore.upperLimit", "0.4", fraction;
        /// Fraction of the memstore memory at which the largest memstores are flushed.
        ///
        /// Smaller: flushes start earlier, so writes are rejected less often, but files are
        /// smaller.
        memstore_lower_fraction: f64 = "hbase.regionserver.global.memstore.size.lower.limit", "0.95", fraction;
        /// Fraction of the memory for the block cache, which also uses free memstore memory.
        ///
        /// The sum with the memstore fraction must not exceed 0.8. Larger: more cache hits, and
        /// less memory for requests and responses.
        block_cache_fraction: f64 = "hfile.block.cache.size", "0.4", fraction;
        /// Whether blocks are read with direct I/O, so that the system's page cache keeps no second
        /// copy.
        ///
        /// `auto`: `true` if `grampus.memory` is more than half of the memory limit of the control
        /// group (or of the machine's memory). The page cache then has less memory than the server.
        direct_reads: Option<bool> = "grampus.reads.direct", "auto", flag_or_auto;
    }
    "Memstores" {
        /// Size in bytes at which a region's memstore is flushed to files. A table may have its own
        /// size (`MEMSTORE_FLUSHSIZE`).
        ///
        /// Larger: fewer files and less compaction, but more memory, and a longer log replay after
        /// a crash.
        memstore_flush_bytes: u64 = "hbase.hregion.memstore.flush.size", "128 MiB", bytes;
        /// A region rejects writes (RegionTooBusyException) when its memstore is larger than this
        /// many flush sizes.
        ///
        /// Larger: longer bursts of writes to one region, but more memory.
        memstore_block_multiplier: u32 = "hbase.hregion.memstore.block.multiplier", "4", count;
        /// Maximum time between two flushes of a memstore that has edits, regardless of its size. 0
        /// disables this limit.
        ///
        /// Shorter: logs are deleted sooner, but there are more small files.
        memstore_flush_interval_ms: u64 = "hbase.regionserver.optionalcacheflushinterval", "1 h", millis;
    }
    "Block cache" {
        /// Whether a flush caches all data blocks that it writes. A family can enable this for
        /// itself (CACHE_DATA_ON_WRITE).
        ///
        /// `true`: reads of recent data hit the cache, but older blocks are evicted sooner.
        cache_data_on_write: bool = "hbase.rs.cacheblocksonwrite", "false", flag;
        /// Whether a compaction caches all blocks that it writes. Blocks that replace cached ones
        /// are always cached.
        cache_compacted_on_write: bool = "hbase.rs.cachecompactedblocksonwrite", "false", flag;
        /// Whether index blocks are cached when they are written. A family can enable this for
        /// itself (CACHE_INDEX_ON_WRITE).
        cache_index_on_write: bool = "hfile.block.index.cacheonwrite", "false", flag;
        /// Whether Bloom filter chunks are cached when they are written. A family can enable this
        /// for itself (CACHE_BLOOMS_ON_WRITE).
        cache_blooms_on_write: bool = "hfile.block.bloom.cacheonwrite", "false", flag;
        /// Whether all blocks of a file are prefetched when it is opened, while the cache has free
        /// space. A family can enable this for itself (PREFETCH_BLOCKS_ON_OPEN).
        prefetch_on_open: bool = "hbase.rs.prefetchblocksonopen", "false", flag;
        /// Whether closing a region evicts its blocks from the cache. A family can enable this for
        /// itself (EVICT_BLOCKS_ON_CLOSE).
        evict_on_close: bool = "hbase.rs.evictblocksonclose", "false", flag;
    }
    "Second-level block cache" {
        /// Directory on an SSD for a second level of the block cache: data blocks that do not fit
        /// in memory. `files:` divides the blocks among several directories.
        ///
        /// The path is a directory, and is created if it is missing; in HBase, it is a file.
        /// `hbase.bucketcache.size` is required. A block is written if it is read from its store
        /// file twice within a period, or if its file is prefetched; the oldest blocks are evicted,
        /// except those that were used. `mmap:` works like `file:`. `offheap` and `pmem:` are
        /// ignored: there is one block cache in memory.
        cache_files: CacheFiles = "hbase.bucketcache.ioengine", "", cache_files;
        /// Size of the files of the second level.
        ///
        /// As in HBase 2.5, a fraction of the memory is not accepted. The index of the blocks takes
        /// 30 to 60 bytes of memory per block, outside of the block cache.
        cache_file_bytes: Option<u64> = "hbase.bucketcache.size", "0", mebibytes_or_none;
        /// If set, the blocks of the second level survive a restart.
        ///
        /// Any path has this effect. Nothing is written there: the index is rebuilt from the files
        /// of the cache, also after a crash. Empty: the files are deleted at the start.
        cache_persistent_path: Option<PathBuf> = "hbase.bucketcache.persistent.path", "", file_or_none;
        /// Time for which all reads of the second level may fail before it is disabled for a while.
        ///
        /// A read that takes more than one second disables it immediately.
        cache_file_errors_tolerated_ms: u64 = "hbase.bucketcache.ioengine.errors.tolerated.duration", "60 s",
            millis;
        /// Maximum number of bytes per second that are written to the second level, averaged over
        /// ten seconds. Limits the wear of the SSD.
        ///
        /// Blocks above the limit are not written.
        cache_file_write_rate_max: Option<u64> = "grampus.bucketcache.write.rate.max", "0", bytes_or_no_limit;
    }
    "Store files" {
        /// Minimum number of files that a minor compaction merges.
        ///
        /// Larger: fewer bytes are rewritten, but a read checks more files.
        compaction_files_min: u32 = "hbase.hstore.compaction.min" | "hbase.hstore.compactionThreshold", "3", count;
        /// Maximum number of files that one compaction merges, except a major compaction requested
        /// by a user.
        ///
        /// Larger: fewer but longer compactions.
        compaction_files_max: u32 = "hbase.hstore.compaction.max", "10", count;
        /// Total size in bytes up to which files are merged regardless of their size ratio. `auto`:
        /// the flush size.
        ///
        /// Larger: small files are merged sooner, and more bytes are rewritten.
        compaction_bytes_min: Option<u64> = "hbase.hstore.compaction.min.size", "auto", bytes_or_auto;
        /// Maximum total size in bytes of one compaction, except a major compaction requested by a
        /// user. `auto`: no limit.
        ///
        /// Smaller: fewer bytes are rewritten, but files above the limit are not merged.
        compaction_bytes_max: Option<u64> = "hbase.hstore.compaction.max.size", "auto", bytes_or_auto;
        /// Like `hbase.hstore.compaction.max.size`, for off-peak hours. `auto`: the same as in
        /// other hours.
        compaction_off_peak_bytes_max: Option<u64> = "hbase.hstore.compaction.max.size.offpeak", "auto", bytes_or_auto;
        /// Maximum size ratio: a file is merged only if it is at most this many times as large as
        /// the other chosen files together.
        ///
        /// Larger: fewer files, but more bytes are rewritten.
        compaction_ratio: f64 = "hbase.hstore.compaction.ratio", "1.2", factor;
        /// Like `hbase.hstore.compaction.ratio`, for off-peak hours.
        compaction_off_peak_ratio: f64 = "hbase.hstore.compaction.ratio.offpeak", "5.0", factor;
        /// First off-peak hour, in UTC (HBase uses the server's time zone). -1: there are no
        /// off-peak hours.
        off_peak_start: Option<u8> = "hbase.offpeak.start.hour", "-1", hour_or_off;
        /// Hour after the last off-peak hour, in UTC. -1: there are no off-peak hours.
        off_peak_end: Option<u8> = "hbase.offpeak.end.hour", "-1", hour_or_off;
        /// Maximum age of a store's oldest file before all files of the store are rewritten (major
        /// compaction). 0 disables this.
        ///
        /// Shorter: deleted and expired cells are removed sooner, but more bytes are rewritten.
        major_compaction_period_ms: u64 = "hbase.hregion.majorcompaction", "7 d", millis;
        /// Maximum deviation of a store's major compaction period, in both directions, as a
        /// fraction of the period.
        ///
        /// Larger: the major compactions of different stores are spread over more time.
        major_compaction_jitter: f64 = "hbase.hregion.majorcompaction.jitter", "0.5", fraction;
        /// Policy that chooses the files of a compaction. A table or family may have its own
        /// policy.
        compaction_policy: CompactionPolicy = "hbase.hstore.defaultengine.compactionpolicy.class",
            "org.apache.hadoop.hbase.regionserver.compactions.ExploringCompactionPolicy", compaction_policy;
        /// Store engine: `DateTieredStoreEngine` compacts within time windows. A table or family
        /// may have its own engine.
        store_engine: StoreEngine = "hbase.hstore.engine.class",
            "org.apache.hadoop.hbase.regionserver.DefaultStoreEngine", store_engine;
        /// Length of the newest time windows of date-tiered compaction.
        ///
        /// Larger: fewer files, but more bytes are rewritten.
        window_base_ms: u64 = "hbase.hstore.compaction.date.tiered.base.window.millis", "6 h", millis;
        /// Number of time windows of the same length. The next older windows are this many times as
        /// long.
        windows_per_tier: u32 = "hbase.hstore.compaction.date.tiered.windows.per.tier", "4", count;
        /// Minimum number of files in the newest time window before a minor compaction merges some
        /// of them.
        ///
        /// Larger: recent cells are rewritten less often, but a read checks more files.
        window_incoming_files_min: u32 = "hbase.hstore.compaction.date.tiered.incoming.window.min", "6", count;
        /// Age up to which older time windows are longer than newer ones. All windows beyond this
        /// age have the same length. `auto`: the value of
        /// `hbase.hstore.compaction.date.tiered.max.storefile.age.millis`.
        window_tier_age_max_ms: Option<u64> = "hbase.hstore.compaction.date.tiered.max.tier.age.millis", "auto", millis_or_auto;
        /// Minor compactions skip time windows that are older than this. `auto`: no limit.
        ///
        /// Smaller: fewer bytes are rewritten, but old windows keep more files.
        window_file_age_max_ms: Option<u64> = "hbase.hstore.compaction.date.tiered.max.storefile.age.millis", "auto", millis_or_auto;
        /// Whether a minor compaction of a time window writes a single file. `false`: its output is
        /// split at the start of the window.
        window_single_output: bool = "hbase.hstore.compaction.date.tiered.single.output.for.minor.compaction", "true", flag;
        /// Whether files are deleted without being read when all their cells have expired.
        drop_expired_files: bool = "hbase.store.delete.expired.storefile", "true", flag;
        /// Minimum age of a delete marker before a major compaction removes it.
        ///
        /// Larger: deletes stay visible to raw scans for longer, but take space.
        purge_deletes_after_ms: u64 = "hbase.hstore.time.to.purge.deletes", "0", millis;
        /// Which values in MOB files a user's major compaction rewrites.
        mob_compaction: MobCompactionKind = "hbase.mob.compaction.type", "full", mob_compaction;
        /// With the type `optimized`: size in bytes from which a MOB file is not rewritten, and
        /// after which a new one is begun.
        mob_compaction_file_bytes_max: u64 = "hbase.mob.compactions.max.file.size", "1 GiB", bytes;
        /// Maximum number of open MOB files. The least recently used ones are closed.
        mob_open_files_max: u32 = "hbase.mob.file.cache.size", "1000", count;
        /// Whether a bulk load requests a compaction of each store that then has enough files.
        compact_after_bulk_load: bool = "hbase.compaction.after.bulkload.enable", "true", flag;
        /// Whether a bulk load reads each file completely and checks its checksums and the order of
        /// its cells.
        ///
        /// `false`: only the ends of the file are checked. A damaged file is then found by a read.
        verify_bulk_loads: bool = "hbase.hstore.bulkload.verify", "false", flag;
        /// Interval between two checks of a store for due compactions, in units of ten seconds. A
        /// flush also checks its store.
        ///
        /// Larger: major compactions and deletions of expired files start later.
        compaction_check_multiplier: u32 = "hbase.server.compactchecker.interval.multiplier", "1000", count;
        /// Whether stores are compacted. Can be switched while the server runs.
        compaction_enabled: bool = "hbase.regionserver.compaction.enabled", "true", flag;
        /// A compaction of more than this many bytes is a long compaction. Long compactions have
        /// their own slots, so that short compactions need not wait for them.
        ///
        /// `auto`: 2 × `hbase.hregion.memstore.flush.size` × `hbase.hstore.compaction.max`.
        long_compaction_bytes: Option<u64> = "hbase.regionserver.thread.compaction.throttle", "auto", bytes_or_auto;
        /// Maximum number of concurrent long compactions.
        ///
        /// Larger: compactions catch up sooner, but use more CPU and disk bandwidth.
        long_compactions: u32 = "hbase.regionserver.thread.compaction.large", "1", count;
        /// Maximum number of concurrent short compactions.
        ///
        /// Larger: compactions catch up sooner, but use more CPU and disk bandwidth.
        short_compactions: u32 = "hbase.regionserver.thread.compaction.small", "1", count;
        /// Maximum write rate of all compactions together, in bytes per second, while no store has
        /// more files than `hbase.hstore.compaction.min`. With more files the maximum rises, up to
        /// `hbase.hstore.compaction.throughput.higher.bound`. 0 disables the limit.
        ///
        /// Larger: compactions catch up sooner, but slow down reads and writes.
        compaction_rate_max_few_files: u64 = "hbase.hstore.compaction.throughput.lower.bound", "50 MiB", bytes;
        /// Maximum write rate of all compactions together, in bytes per second, when a store has
        /// `hbase.hstore.blockingStoreFiles` files. With even more files there is no limit.
        compaction_rate_max_many_files: u64 = "hbase.hstore.compaction.throughput.higher.bound", "100 MiB", bytes;
        /// Number of files in a store above which flushes wait for a compaction.
        ///
        /// Larger: flushes wait less often, but a read checks more files.
        blocking_store_files: u32 = "hbase.hstore.blockingStoreFiles", "16", count;
        /// Maximum time for which a flush waits because its store has too many files.
        ///
        /// Larger: fewer files, but memstores keep their memory longer, and writes may be rejected.
        blocking_wait_ms: u64 = "hbase.hstore.blockingWaitTime", "90 s", millis;
        /// A region is split when one of its stores is larger than this many bytes, unless splits
        /// are disabled. The split policy may split it earlier. A table may have its own size
        /// (`MAX_FILESIZE`).
        ///
        /// Larger: fewer regions, but longer compactions.
        split_bytes_max: u64 = "hbase.hregion.max.filesize", "10 GiB", bytes;
        /// Range of the random variation of `hbase.hregion.max.filesize` between regions, as a
        /// fraction of that size. 0.25 varies it by up to 12.5 % in both directions.
        ///
        /// Larger: the splits of equally filled regions are spread over more time.
        split_bytes_jitter: f64 = "hbase.hregion.max.filesize.jitter", "0.25", fraction;
        /// Whether the total size of a region's stores is compared with the split size. `false`:
        /// the size of each store is compared.
        split_sums_stores: bool = "hbase.hregion.split.overallfiles", "false", flag;
        /// Split policy of tables without the attribute `SPLIT_POLICY`: one of HBase's classes.
        split_policy: SplitPolicy = "hbase.regionserver.region.split.policy",
            "org.apache.hadoop.hbase.regionserver.SteppingSplitPolicy", split_policy;
        /// Store size in bytes at which the first region of a table is split. `auto`: two memstore
        /// flush sizes.
        ///
        /// Larger: a new table is spread over several regions later.
        split_bytes_initial: Option<u64> = "hbase.increasing.policy.initial.size", "auto", bytes_or_auto;
        /// Checksum algorithm for new files. Existing files may use any algorithm.
        checksum: Checksum = "hbase.hstore.checksum.algorithm", "CRC32C", checksum;
        /// Number of bytes that one checksum in a new file covers.
        ///
        /// Smaller: more checksums, which take more space.
        bytes_per_checksum: u32 = "hbase.hstore.bytes.per.checksum", "16 KiB", chunk_bytes;
    }
    "Write-ahead log" {
        /// Log block size in bytes. A new log file is started at this size times
        /// `hbase.regionserver.logroll.multiplier`.
        ///
        /// Larger: fewer and larger log files.
        wal_block_bytes: u64 = "hbase.regionserver.hlog.blocksize", "256 MiB", bytes;
        /// Fraction of `hbase.regionserver.hlog.blocksize` at which a new log file is started.
        wal_roll_multiplier: f64 = "hbase.regionserver.logroll.multiplier", "0.5", factor;
        /// Age at which a new log file is started, regardless of size.
        ///
        /// Shorter: old logs are deleted sooner, but there are more log files.
        wal_roll_interval_ms: u64 = "hbase.regionserver.logroll.period", "1 h", millis;
        /// Number of log files above which regions are flushed. The regions with unflushed edits in
        /// the oldest log file are flushed, so that this file can be deleted.
        ///
        /// `auto`: the number of log files that hold twice the memory of all memstores, at least
        /// 32. Larger: fewer forced flushes, but a longer log replay after a crash.
        wal_files_max: Option<u32> = "hbase.regionserver.maxlogs", "auto", count_or_auto;
        /// Whether a write to a log on HDFS is acknowledged only when DataNodes have written it to
        /// their disks (hsync).
        ///
        /// `false`: when it is in the memory of all DataNodes of its block (hflush), as in HBase.
        /// It survives the death of any process, but not a power loss of all these machines. Writes
        /// with the durability `FSYNC_WAL` are always on disk. So are all writes on a local disk.
        wal_hsync: bool = "hbase.wal.hsync", "false", flag;
        /// Whether regions are opened if they may have lost edits in a damaged log.
        ///
        /// `true`: the regions are opened without these edits, and the log is moved to the
        /// directory `corrupt`. `false`: the regions stay closed, and all other regions are served.
        ///
        /// With `true`, a log that cannot be read also counts as damaged, even if the DataNodes
        /// that have it are only down. Remove the option when the regions are open.
        ///
        /// The master's own region, `master:store`, never opens without these edits. If its log is
        /// damaged, replace the region: with `grampus repair master`, or on HDFS with the command
        /// that the error of the master names.
        wal_skip_errors: bool = "hbase.hlog.split.skip.errors", "false", flag;
    }
    "Disk" {
        /// Size in bytes of the disk reserve: files that are allocated in advance. On a full disk,
        /// the server deletes these files one by one, so that logs and deletes have space.
        ///
        /// Writes that add data need free space of this size, plus the space for flushing all
        /// memstores. The reserve does not count as free space. If less space is free, these writes
        /// are refused (RegionTooBusyException), while reads, deletes and drops continue. `auto`:
        /// 2 % of the disk, at least 1 MiB and at most 64 MiB. 0: no reserve; only the space for
        /// flushing the memstores must be free.
        disk_reserve_bytes: Option<u64> = "grampus.disk.reserve", "auto", bytes_or_auto;
    }
    "Splits and housekeeping" {
        /// Number of online regions at which a server stops splitting regions automatically.
        regions_max: u32 = "hbase.regionserver.regionSplitLimit", "1000", count;
        /// Interval between two runs of the balancer of a cluster. It also runs soon after a server
        /// starts.
        balancer_period_ms: u64 = "hbase.balancer.period", "300000", millis;
        /// Interval between searches for split or merged regions whose files are no longer needed.
        ///
        /// Shorter: their files are archived sooner.
        janitor_period_ms: u64 = "hbase.catalogjanitor.interval", "300000", millis;
        /// Interval between searches for archived files and old logs that can be deleted.
        ///
        /// Shorter: disk space is freed sooner.
        cleaner_period_ms: u64 = "hbase.master.cleaner.interval", "600000", millis;
        /// Interval between searches for snapshots whose time to live has expired.
        snapshot_cleaner_period_ms: u64 = "hbase.master.cleaner.snapshot.interval", "1800000", millis;
        /// Minimum time for which an archived store file is retained. A restart resets the time.
        ///
        /// Larger: more disk space is used.
        archived_file_ttl_ms: u64 = "hbase.master.hfilecleaner.ttl", "300000", millis;
        /// Interval between searches for MOB files to which no cell refers. They are archived.
        mob_cleaner_period_ms: u64 = "hbase.master.mob.cleaner.period", "86400", chore_seconds;
        /// Minimum age of such a MOB file.
        mob_min_age_ms: u64 = "hbase.mob.min.age.archive", "3600000", millis;
        /// Minimum time for which a log is retained after it is no longer needed. A restart resets
        /// the time.
        ///
        /// Larger: more disk space is used.
        old_log_ttl_ms: u64 = "hbase.master.logcleaner.ttl", "600000", millis;
    }
    "Status pages" {
        /// Interval between samples for the charts on the status pages and for `/history`, at least
        /// 100 ms.
        ///
        /// 360 samples are retained, one hour at the default. Shorter: charts have a higher
        /// resolution, but reach back less far.
        history_period_ms: u64 = "grampus.history.period", "10 s", millis;
    }
    "REST gateway" {
        /// Port of HBase's REST API in this process; see `docs/rest.md`.
        ///
        /// HBase's default, 8080, applies only to `grampus rest`. A server serves the API only if
        /// this option is set.
        rest_port: Option<u16> = "hbase.rest.port", "-1", port_or_off;
        /// Address on which the REST API is served.
        ///
        /// HBase listens on all addresses. Grampus listens on loopback by default, because it
        /// performs no authentication.
        rest_address: IpAddr = "hbase.rest.host", "127.0.0.1", address;
        /// Whether the REST API refuses all changes (status 403).
        rest_read_only: bool = "hbase.rest.readonly", "false", flag;
        /// Maximum number of REST requests that are executed concurrently. Further requests wait
        /// for up to 30 s.
        ///
        /// Larger: more requests compete for memory. HBase has a thread for each of them; Grampus
        /// has not.
        rest_requests_max: u32 = "hbase.rest.threads.max", "100", count;
        /// Maximum number of REST requests that wait for execution. Further requests are refused
        /// (status 503). -1: as many as there are connections.
        rest_waiting_max: Option<u64> = "hbase.rest.task.queue.size", "-1", bytes_or_off;
        /// Time after which an idle connection to the REST API is closed. It is also the time limit
        /// for the header of a request. 0 disables the limit.
        rest_idle_ms: u64 = "hbase.rest.thread.idle.timeout", "60000", millis;
        /// Maximum number of connections to the REST API. At the limit, a new connection replaces
        /// the one whose client has been silent longest.
        ///
        /// `auto`: 1/16 of the limit of open files, at least 16 and at most 4096.
        rest_connections_max: Option<u32> = "grampus.rest.connections.max", "auto", count_or_auto;
        /// Maximum size in bytes of the body of a REST request, also after decompression. A larger
        /// one is refused (status 413).
        ///
        /// The limit is at most three quarters of the memory for REST requests, which is a quarter
        /// of the memory for requests.
        rest_request_bytes_max: u64 = "grampus.rest.request.bytes.max", "64 MiB", bytes;
        /// Maximum size in bytes of the rows in one REST response, except for stateless scans,
        /// which are streamed. A larger response is refused (status 413).
        rest_response_bytes_max: u64 = "grampus.rest.response.bytes.max", "64 MiB", bytes;
        /// Number of rows that a REST scan reads in one call, and the maximum number of rows in one
        /// protobuf frame of a stateless scan.
        ///
        /// Larger: fewer calls, but more memory for each scan.
        rest_fetch_rows: u32 = "hbase.rest.scan.fetchsize", "10", count;
        /// Maximum number of open scanners of the REST API. Opening another one fails (status 503).
        rest_scanners_max: u32 = "hbase.rest.scannercache.size", "10000", count;
        /// Maximum number of open scanners of one client address. If a client opens more, its least
        /// recently used scanner is closed.
        rest_scanners_per_client_max: u32 = "grampus.rest.scanners.per.client.max", "1000", count;
        /// Time after which an unused scanner of the REST API is closed.
        rest_scanner_ms: u64 = "hbase.rest.scannercache.expire.time", "3600000", millis;
        /// Whether the REST API answers the method OPTIONS.
        rest_allows_options: bool = "hbase.rest.http.allow.options.method", "true", flag;
        /// Whether browsers must send an additional header with changes, which pages of other sites
        /// cannot set (CSRF protection).
        rest_csrf: bool = "hbase.rest.csrf.enabled", "false", flag;
        /// The header that `hbase.rest.csrf.enabled` requires.
        rest_csrf_header: String = "hbase.rest-csrf.custom-header", "X-XSRF-HEADER", text;
        /// Methods that need no such header, separated by commas.
        rest_csrf_ignored_methods: String = "hbase.rest-csrf.methods-to-ignore", "GET,OPTIONS,HEAD,TRACE", text;
        /// Regular expressions for the `User-Agent` of browsers, separated by commas. Other clients
        /// need no such header.
        rest_csrf_browsers: String = "hbase.rest-csrf.browser-useragents-regex", "^Mozilla.*,^Opera.*", text;
    }
    "Thrift gateway" {
        /// Port of HBase's service Thrift 1 (`Hbase`) in this process; see `docs/thrift.md`.
        ///
        /// HBase's default, 9090, applies only to `grampus thrift` and `grampus thrift2`. A server
        /// serves Thrift only if this option is set.
        thrift_port: Option<u16> = "hbase.regionserver.thrift.port", "-1", port_or_off;
        /// Port of HBase's service Thrift 2 (`THBaseService`) in this process.
        ///
        /// HBase has one key for both services. The services have methods with the same names and
        /// different arguments, so they need different ports. `grampus thrift2` also uses
        /// `hbase.regionserver.thrift.port`.
        thrift2_port: Option<u16> = "grampus.thrift2.port", "-1", port_or_off;
        /// Address on which Thrift is served.
        ///
        /// HBase listens on all addresses. Grampus listens on loopback by default, because it
        /// performs no authentication.
        thrift_address: IpAddr = "hbase.regionserver.thrift.ipaddress", "127.0.0.1", address;
        /// Whether Thrift refuses all changes. In HBase, the key affects only Thrift 2.
        thrift_read_only: bool = "hbase.thrift.readonly", "false", flag;
        /// Maximum number of Thrift calls that are executed concurrently. Further calls wait for
        /// up to 30 s.
        ///
        /// HBase has a thread for each connection; Grampus has not.
        thrift_calls_max: u32 = "hbase.thrift.maxWorkerThreads", "1000", count;
        /// Maximum number of Thrift calls that wait for execution. Further calls are refused.
        thrift_waiting_max: u32 = "hbase.thrift.maxQueuedRequests", "1000", count;
        /// Time after which an idle Thrift connection is closed. 0 disables the limit.
        thrift_idle_ms: u64 = "hbase.thrift.server.socket.read.timeout", "60000", millis;
        /// Maximum size of a frame in MiB. A connection that sends a larger one is closed.
        thrift_frame_mib_max: u32 = "hbase.regionserver.thrift.framed.max_frame_size_in_mb", "2", count;
        /// Maximum number of connections to one Thrift service. At the limit, a new connection
        /// replaces the one whose client has been silent longest.
        ///
        /// `auto`: 1/16 of the limit of open files, at least 16 and at most 4096.
        thrift_connections_max: Option<u32> = "grampus.thrift.connections.max", "auto", count_or_auto;
        /// Maximum size in bytes of a Thrift message without a frame, or of an HTTP body.
        ///
        /// The limit is at most three quarters of the memory for a Thrift service, which is a
        /// quarter of the memory for requests.
        thrift_request_bytes_max: u64 = "grampus.thrift.request.bytes.max", "64 MiB", bytes;
        /// Maximum size in bytes of the cells in one Thrift response. A larger response is an
        /// `IOError`.
        ///
        /// The limit is at most three eighths of the memory for a Thrift service, because the cells
        /// exist twice: as they were read, and encoded.
        thrift_response_bytes_max: u64 = "grampus.thrift.response.bytes.max", "64 MiB", bytes;
        /// Maximum number of open scanners of one Thrift service. Opening another one fails.
        ///
        /// Each scanner also holds 256 KiB of the memory for the service.
        thrift_scanners_max: u32 = "grampus.thrift.scanners.max", "10000", count;
        /// Maximum number of open scanners of one client address. If a client opens more, its least
        /// recently used scanner is closed.
        thrift_scanners_per_client_max: u32 = "grampus.thrift.scanners.per.client.max", "1000", count;
    }
    "Requests" {
        /// Idle time after which a scanner is closed. Clients should use the same value.
        ///
        /// Larger: slow clients keep their scanners, but abandoned scanners hold memory longer.
        scanner_lease_ms: u64 = "hbase.client.scanner.timeout.period" | "hbase.regionserver.lease.period",
            "60000", millis;
        /// Maximum number of open scanners. Opening another one fails with an IOException, which
        /// clients retry.
        scanners_max: u32 = "grampus.scanners.max", "100000", count;
        /// Maximum number of filter elements in one scan or get: filters, and the keys, ranges,
        /// prefixes and timestamps in them.
        ///
        /// Requests with more elements are refused (DoNotRetryIOException). So are filters of more
        /// than 16 MiB or with more than 1000 regular expressions, regardless of this option. Each
        /// cell of a scan is tested against all elements, so a larger limit allows slower scans.
        /// The limit is lower if `grampus.memory` is small. With the default fractions for
        /// memstores and block cache, it is at most one element per 40 KiB of `grampus.memory`.
        filter_elements_max: u32 = "grampus.filter.elements.max", "100000", count;
        /// Maximum bytes of cells in one response to a scan or a batch, regardless of the client's
        /// limit. The limit is lower when memory is short.
        ///
        /// Smaller: less memory per response, but more round trips.
        scan_result_bytes_max: u64 = "hbase.server.scanner.max.result.size", "100 MiB", bytes;
        /// Maximum size in bytes of a row's cells in one family. A read of a larger row fails
        /// (RowTooBigException). Only a scan that allows partial results can return such a row, in
        /// several results. This limit then applies to each result.
        ///
        /// The limit is at most half of the memory for responses.
        row_bytes_max: u64 = "hbase.table.max.rowsize", "1 GiB", bytes;
        /// Maximum number of client connections to master and region server together. Further
        /// connections are closed immediately.
        ///
        /// `auto`: three quarters of the limit of open files, less the connections allowed for
        /// status pages and the ZooKeeper-protocol endpoint; at most 100000. The remaining quarter
        /// is reserved for files.
        connections_max: Option<u32> = "grampus.connections.max", "auto", count_or_auto;
        /// Maximum size of a request in bytes. A larger request is refused without being read
        /// (RequestTooBigException).
        ///
        /// The limit is at most three quarters of the memory for requests.
        request_bytes_max: u64 = "hbase.ipc.max.request.size", "256 MiB", bytes;
        /// Maximum total size in bytes of all requests in progress, where each request counts 1 KiB
        /// more than its size. Further requests are rejected, and clients retry them later
        /// (CallQueueTooBigException).
        ///
        /// The limit is at most the memory for requests.
        call_queue_bytes_max: u64 = "hbase.ipc.server.max.callqueue.size", "1 GiB", bytes;
        /// The sum of this number and `hbase.regionserver.handler.count` is the maximum number of
        /// calls in progress. Further calls are rejected, and clients retry them later
        /// (CallQueueTooBigException). Calls for system tables and administration are counted
        /// separately, with the same maximum.
        ///
        /// In HBase, this option limits the calls that wait for a handler thread. Grampus has no
        /// handler threads. `auto`: the number of calls is not limited, only the bytes of their
        /// requests (`hbase.ipc.server.max.callqueue.size`).
        call_queue_length_max: Option<u32> = "hbase.ipc.server.max.callqueue.length"
            | "ipc.server.max.callqueue.length", "auto", count_or_auto;
        /// Number that is added to `hbase.ipc.server.max.callqueue.length`: the sum limits the
        /// calls in progress. Ignored if that option is `auto`.
        handlers: u32 = "hbase.regionserver.handler.count", "30", count;
        /// Response time above which a call is logged with its latency breakdown and retained for
        /// `get_slowlog_responses` and the status pages.
        ///
        /// The time runs from the arrival of the request until the response is ready, or until it
        /// has been sent if it has 64 KiB or more. Smaller: more calls are logged.
        slow_call_ms: Option<u64> = "hbase.ipc.warn.response.time", "10 s", millis_or_off;
        /// Like `hbase.ipc.warn.response.time`, for scans. `auto`: the same as for other calls.
        slow_scan_ms: Option<u64> = "hbase.ipc.warn.response.time.scan", "auto", millis_off_or_auto;
        /// Response size in bytes above which a call is logged and retained in the same way as a
        /// slow call.
        large_response_bytes: Option<u64> = "hbase.ipc.warn.response.size", "100 MiB", bytes_or_off;
        /// Like `hbase.ipc.warn.response.size`, for scans. `auto`: the same as for other calls.
        large_scan_bytes: Option<u64> = "hbase.ipc.warn.response.size.scan", "auto", bytes_off_or_auto;
        /// Whether the most recent slow and large calls are retained. They are logged in any case.
        slow_log_enabled: bool = "hbase.regionserver.slowlog.buffer.enabled", "true", flag;
        /// Maximum number of slow and large calls that are retained.
        ///
        /// Larger: more memory, and a longer history.
        slow_log_calls_max: u32 = "hbase.regionserver.slowlog.ringbuffer.size", "256", count;
        /// Whether the latencies of each user's operations are measured (in the bean `sub=Users`).
        /// The resource use of users and their requests per host are always counted.
        user_metrics_enabled: bool = "hbase.regionserver.user.metrics.enabled", "false", flag;
        /// Maximum number of changes of a batch that are applied together. A larger batch becomes
        /// several log entries.
        ///
        /// Smaller: rows are locked for a shorter time, but there are more log entries.
        minibatch_changes: u32 = "hbase.regionserver.minibatch.size", "20000", count;
        /// Number of actions in a batch above which a warning is logged.
        batch_rows_warning: u32 = "hbase.rpc.rows.warning.threshold", "5000", count;
        /// Whether batches with more actions than `hbase.rpc.rows.warning.threshold` are rejected.
        reject_large_batches: bool = "hbase.rpc.rows.size.threshold.reject", "false", flag;
        /// How long the server remembers the nonce of an increment or append. A retry within this
        /// time is answered without being applied again.
        ///
        /// Larger: late retries are detected, but more memory is used.
        nonce_grace_ms: u64 = "hbase.server.hashNonce.gracePeriod", "30 min", millis;
        /// Maximum size of a stored cell in bytes. Writes of larger cells are rejected.
        cell_bytes_max: Option<u64> = "hbase.server.keyvalue.maxsize", "10 MiB", bytes_or_no_limit;
        /// Whether quotas for users, tables and namespaces, stored in `hbase:quota`, are enforced.
        quotas_enabled: bool = "hbase.quota.enabled", "false", flag;
        /// Maximum interval between two reads of all quotas. Changed quotas are read within a
        /// second.
        quota_refresh_ms: u64 = "hbase.quota.refresh.period", "5 min", millis;
        /// How consumed quotas are refilled: gradually (`AverageIntervalRateLimiter`), or
        /// completely at the end of each time unit (`FixedIntervalRateLimiter`).
        quota_limiter: RateLimiter = "hbase.quota.rate.limiter",
            "org.apache.hadoop.hbase.quotas.AverageIntervalRateLimiter", rate_limiter;
        /// Bytes of one read capacity unit. Larger: a quota of capacity units permits more bytes.
        read_unit_bytes: u64 = "hbase.quota.read.capacity.unit", "1 KiB", bytes;
        /// Bytes of one write capacity unit. Larger: a quota of capacity units permits more bytes.
        write_unit_bytes: u64 = "hbase.quota.write.capacity.unit", "1 KiB", bytes;
    }
    "Logs" {
        /// File of the process's log. Empty: standard error.
        ///
        /// In a service of systemd, lines on standard error are in the journal, with their level
        /// and time.
        log_file: Option<PathBuf> = "grampus.log.file", "", file_or_none;
        /// Size in bytes at which the log file is renamed to `NAME.1`, that one to `NAME.2`, and so
        /// on.
        log_file_bytes_max: u64 = "grampus.log.file.bytes.max", "256 MiB", bytes;
        /// Number of renamed log files that are kept.
        log_files_max: u32 = "grampus.log.files.max", "20", count;
    }
    "Metrics sinks" {
        /// Whether the metrics of single regions are sent. With many regions, most metrics are
        /// region metrics.
        sink_regions: bool = "grampus.sink.regions", "true", flag;
        /// File to which metrics are appended in the format of Hadoop's FileSink. In each period,
        /// one line is appended for each record (the metrics of one bean).
        ///
        /// The file is recreated if it was moved or removed.
        file_sink: Option<PathBuf> = "hbase.sink.file.filename", "", file_or_none;
        /// Interval between two lines of the same record.
        file_sink_period_ms: u64 = "hbase.sink.file.period", "10", seconds;
        /// Records with matching names are written, even if the exclude pattern also matches.
        /// Without an exclude pattern, no other records are written.
        ///
        /// The name of a record is the `sub` part of its bean, for example `Server` or `Regions`.
        file_sink_records_included: String = "hbase.sink.file.record.filter.include", "", pattern;
        /// Records with matching names are not written, unless the include pattern also matches.
        /// The values of excluded records are not collected.
        file_sink_records_excluded: String = "hbase.sink.file.record.filter.exclude", "", pattern;
        /// Metrics with matching names are written, even if the exclude pattern also matches.
        /// Without an exclude pattern, no other metrics are written.
        ///
        /// A metric has the name of its attribute in the bean.
        file_sink_metrics_included: String = "hbase.sink.file.metric.filter.include", "", pattern;
        /// Metrics with matching names are not written, unless the include pattern also matches.
        file_sink_metrics_excluded: String = "hbase.sink.file.metric.filter.exclude", "", pattern;
        /// Host that receives metrics as StatsD datagrams, with the names of Hadoop's StatsDSink.
        statsd_sink_host: Option<String> = "hbase.sink.statsd.server.host", "", host_or_none;
        /// Port of the StatsD host.
        statsd_sink_port: u16 = "hbase.sink.statsd.server.port", "8125", peer_port;
        /// Service part of the metric names. Empty: the role (`Master`, `RegionServer`). The
        /// records `JvmMetrics` and `UgiMetrics` always use the role.
        statsd_sink_service: String = "hbase.sink.statsd.service.name", "", text;
        /// Whether metric names omit the host name.
        statsd_sink_skips_hostname: bool = "hbase.sink.statsd.skip.hostname", "false", flag;
        /// Interval between two values of a metric.
        statsd_sink_period_ms: u64 = "hbase.sink.statsd.period", "10", seconds;
        /// Records with matching names are sent, even if the exclude pattern also matches. Without
        /// an exclude pattern, no other records are sent.
        ///
        /// The name of a record is the `sub` part of its bean, for example `Server` or `Regions`.
        statsd_sink_records_included: String = "hbase.sink.statsd.record.filter.include", "", pattern;
        /// Records with matching names are not sent, unless the include pattern also matches. The
        /// values of excluded records are not collected.
        statsd_sink_records_excluded: String = "hbase.sink.statsd.record.filter.exclude", "", pattern;
        /// Metrics with matching names are sent, even if the exclude pattern also matches. Without
        /// an exclude pattern, no other metrics are sent.
        ///
        /// A metric has the name of its attribute in the bean.
        statsd_sink_metrics_included: String = "hbase.sink.statsd.metric.filter.include", "", pattern;
        /// Metrics with matching names are not sent, unless the include pattern also matches.
        statsd_sink_metrics_excluded: String = "hbase.sink.statsd.metric.filter.exclude", "", pattern;
        /// Host that receives metrics as lines of Graphite's protocol, with the paths of Hadoop's
        /// GraphiteSink.
        ///
        /// While the host is unreachable, the newest 4 MiB of lines are buffered.
        graphite_sink_host: Option<String> = "hbase.sink.graphite.server_host", "", host_or_none;
        /// Port of the Graphite host.
        graphite_sink_port: u16 = "hbase.sink.graphite.server_port", "2003", peer_port;
        /// Prefix of all metric paths.
        graphite_sink_prefix: String = "hbase.sink.graphite.metrics_prefix", "", text;
        /// Interval between two values of a metric.
        graphite_sink_period_ms: u64 = "hbase.sink.graphite.period", "10", seconds;
        /// Records with matching names are sent, even if the exclude pattern also matches. Without
        /// an exclude pattern, no other records are sent.
        ///
        /// The name of a record is the `sub` part of its bean, for example `Server` or `Regions`.
        graphite_sink_records_included: String = "hbase.sink.graphite.record.filter.include", "", pattern;
        /// Records with matching names are not sent, unless the include pattern also matches. The
        /// values of excluded records are not collected.
        graphite_sink_records_excluded: String = "hbase.sink.graphite.record.filter.exclude", "", pattern;
        /// Metrics with matching names are sent, even if the exclude pattern also matches. Without
        /// an exclude pattern, no other metrics are sent.
        ///
        /// A metric has the name of its attribute in the bean.
        graphite_sink_metrics_included: String = "hbase.sink.graphite.metric.filter.include", "", pattern;
        /// Metrics with matching names are not sent, unless the include pattern also matches.
        graphite_sink_metrics_excluded: String = "hbase.sink.graphite.metric.filter.exclude", "", pattern;
    }
    "OpenTelemetry" {
        /// URL of the collector that receives metrics, and traces if enabled, by OTLP over HTTP.
        ///
        /// The keys that begin with `otel.` are those of OpenTelemetry's Java agent, which HBase
        /// uses.
        otlp_endpoint: String = "otel.exporter.otlp.endpoint", "", text;
        /// Service name of metrics and traces. Empty: `hbase-master` and `hbase-regionserver`.
        otlp_service: String = "otel.service.name", "", text;
        /// Interval between two values of a metric.
        otlp_period_ms: u64 = "otel.metric.export.interval", "60 s", millis;
        /// Records with matching names are sent, even if the exclude pattern also matches. Without
        /// an exclude pattern, no other records are sent.
        ///
        /// The name of a record is the `sub` part of its bean, for example `Server` or `Regions`.
        otlp_sink_records_included: String = "hbase.sink.otlp.record.filter.include", "", pattern;
        /// Records with matching names are not sent, unless the include pattern also matches. The
        /// values of excluded records are not collected.
        otlp_sink_records_excluded: String = "hbase.sink.otlp.record.filter.exclude", "", pattern;
        /// Metrics with matching names are sent, even if the exclude pattern also matches. Without
        /// an exclude pattern, no other metrics are sent.
        ///
        /// A metric has the name of its attribute in the bean.
        otlp_sink_metrics_included: String = "hbase.sink.otlp.metric.filter.include", "", pattern;
        /// Metrics with matching names are not sent, unless the include pattern also matches.
        otlp_sink_metrics_excluded: String = "hbase.sink.otlp.metric.filter.exclude", "", pattern;
        /// Fraction of calls that are traced. 0 disables tracing; calls then have no tracing
        /// overhead.
        trace_ratio: f64 = "otel.traces.sampler.arg", "0", fraction;
    }
}

/// The memory of the process in bytes, and its parts. The remainder is for everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryParts {
    /// Total memory.
    pub total: u64,
    /// For memstores.
    pub memstores: u64,
    /// For the block cache.
    pub cache: u64,
    /// For requests that are being read or processed.
    pub requests: u64,
    /// For responses that are being built or sent.
    pub responses: u64,
    /// For open scanners between calls; a part of the remainder.
    pub scanners: u64,
}

impl std::fmt::Display for MemoryParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        let parts = self.memstores + self.cache + self.requests + self.responses;
        write!(
            f,
            "{} MiB: memstores {} MiB, block cache {} MiB, requests {} MiB, responses {} MiB, other {} MiB",
            mib(self.total),
            mib(self.memstores),
            mib(self.cache),
            mib(self.requests),
            mib(self.responses),
            mib(self.total.saturating_sub(parts))
        )
    }
}

impl Config {
    /// Size in bytes at which a new log file is started.
    pub fn wal_roll_bytes(&self) -> u64 {
        (self.wal_block_bytes as f64 * self.wal_roll_multiplier) as u64
    }

    /// Number of log files above which regions are flushed (`wal_files_max` or its default), if all
    /// memstores together may hold `memstores_bytes`.
    pub fn wal_files_max_for(&self, memstores_bytes: u64) -> u32 {
        // Source: HBase's AbstractFSWAL: max(32, 2 * memstore limit / roll size).
        let by_memory = memstores_bytes.saturating_mul(2) / self.wal_roll_bytes().max(1);
        self.wal_files_max.unwrap_or_else(|| u32::try_from(by_memory).unwrap_or(u32::MAX).max(32))
    }

    /// The configured memory and its parts, for a process with the memory `limit` (see
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
            responses: third,
            scanners: third / 4,
        }
    }

    /// Whether blocks are read with direct I/O, for a process with the memory `limit`.
    pub fn reads_directly(&self, limit: u64) -> bool {
        self.direct_reads.unwrap_or(self.memory.of(limit) > limit / 2)
    }

    /// Maximum size of a request in bytes, if all requests together may have `requests_bytes`.
    pub fn request_bytes_max_of(&self, requests_bytes: u64) -> u32 {
        // A large request must leave a quarter of the bytes to other requests, and it counts
        // slightly more than its size.
        let fits = self.request_bytes_max.min((requests_bytes / 4 * 3).saturating_sub(64 << 10));
        u32::try_from(fits).unwrap_or(u32::MAX)
    }

    /// Bytes of the reserve on a disk of `disk_bytes`.
    pub fn disk_reserve_bytes_of(&self, disk_bytes: u64) -> u64 {
        self.disk_reserve_bytes.unwrap_or_else(|| (disk_bytes / 50).clamp(1 << 20, 64 << 20))
    }

    /// Maximum number of calls in progress, if limited.
    pub fn calls_max(&self) -> Option<u32> {
        self.call_queue_length_max.map(|length| length.saturating_add(self.handlers))
    }

    /// Interval between two history samples.
    pub fn history_period(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.history_period_ms.max(HISTORY_PERIOD_MS_MIN))
    }

    /// Maximum number of client connections, for a process that may have `files` files open.
    pub fn connections_max_of(&self, files: u64) -> u32 {
        const AUTO_MAX: u64 = 100_000;
        let rest = if self.rest_port.is_some() { self.rest_connections_max_of(files) } else { 0 };
        let services = [self.thrift_port, self.thrift2_port].iter().flatten().count() as u32;
        let thrift = services * self.thrift_connections_max_of(files);
        let others = 2 * self.page_connections_max_of(files)
            + self.zookeeper_connections_max_of(files)
            + rest
            + thrift;
        let auto = (files - files / 4).saturating_sub(u64::from(others)).clamp(16, AUTO_MAX) as u32;
        self.connections_max.unwrap_or(auto)
    }

    /// Maximum number of connections to the status pages of one role, for a process that may have
    /// `files` files open.
    pub fn page_connections_max_of(&self, files: u64) -> u32 {
        self.page_connections_max.unwrap_or((files / 32).clamp(8, 512) as u32)
    }

    /// Maximum number of connections to the ZooKeeper-protocol endpoint, for a process that may
    /// have `files` files open.
    pub fn zookeeper_connections_max_of(&self, files: u64) -> u32 {
        self.zookeeper_connections_max.unwrap_or((files / 16).clamp(16, 4096) as u32)
    }

    /// Maximum number of connections to the REST API, for a process that may have `files` files
    /// open.
    pub fn rest_connections_max_of(&self, files: u64) -> u32 {
        self.rest_connections_max.unwrap_or((files / 16).clamp(16, 4096) as u32)
    }

    /// Maximum number of connections to one Thrift service, for a process that may have `files`
    /// files open.
    pub fn thrift_connections_max_of(&self, files: u64) -> u32 {
        self.thrift_connections_max.unwrap_or((files / 16).clamp(16, 4096) as u32)
    }

    /// The configured host names of the status pages.
    pub fn page_hosts(&self) -> Vec<String> {
        list_of(&self.page_hosts)
    }
}

/// The entries of a comma-separated list.
pub(super) fn list_of(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}
