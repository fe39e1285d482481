//! The beans of a region server.

use std::sync::Arc;
use std::time::Duration;

use base::config::MemoryParts;
use base::env::{Clock, Env};
use base::metrics::{Registry, Scope, Source};
use hfile::BlockKind;
use regionserver::RegionServer;
use regionserver::schedule::compactions::Pool;
use rpc::server::Shared;

use crate::beans::sums::Sums;
use crate::beans::{Identity, absent, connections, process, regions, sample, tables, users, volumes};

/// HBase's context of a region server's beans, a tag of each.
const CONTEXT: &str = "regionserver";

base::current_values! {
    /// Metrics of the server itself.
    pub(super) struct ServerMetrics in "RegionServer,sub=Server" {
        /// ZooKeeper address for clients.
        zookeeper_quorum: Tag = "zookeeperQuorum",
        /// Server name: host, port, start code.
        server_name: Tag = "serverName",
        /// Cluster id.
        cluster_id: Tag = "clusterId",
        /// Start time of the server.
        start_time: Gauge<u64> = "regionServerStartTime" in EpochMilliseconds,
        /// Memory used by memstores.
        memstore_heap_bytes: Gauge<u64> = "memStoreHeapSize" in Bytes,
        /// Memory used by index roots.
        root_index_bytes: Gauge<u64> = "storeFileIndexSize" in Bytes,
        /// Log files that exist.
        logs: Gauge<u64> = "hlogFileCount",
        /// Bytes of these log files.
        log_bytes: Gauge<u64> = "hlogFileSize" in Bytes,
        /// Rows read plus mutations.
        row_requests: Counted = "totalRowActionRequestCount",
        /// Calls by clients and administrators. A call with many rows counts once.
        calls: Counted = "totalRequestCount",
        /// Rows that clients read, averaged over the last minute.
        read_rate: Gauge<f64> = "readRequestRatePerSecond" in PerSecond,
        /// Mutations by clients, averaged over the last minute.
        write_rate: Gauge<f64> = "writeRequestRatePerSecond" in PerSecond,
        /// Percentage of store file bytes on this host.
        local_percent: Gauge<f64> = "percentFilesLocal" in Percent,
        /// Open scanners of clients.
        scanners: Gauge<u64> = "activeScanners",
        /// Queued and running flushes.
        flushes: Gauge<u64> = "flushQueueLength",
        /// Queued compactions.
        compactions: Gauge<u64> = "compactionQueueLength",
        /// Queued long compactions.
        long_compactions: Gauge<u64> = "largeCompactionQueueLength",
        /// Queued short compactions.
        short_compactions: Gauge<u64> = "smallCompactionQueueLength",
    }
}

base::current_values! {
    /// Block cache metrics, under the names of an untiered cache and under those of the first tier.
    pub(super) struct CacheMetrics in "RegionServer,sub=Server" {
        /// Memory used by cached blocks.
        bytes: Gauge<u64> = "blockCacheSize" in Bytes,
        /// Free memory of the block cache.
        free_bytes: Gauge<u64> = "blockCacheFreeSize" in Bytes,
        /// Cached blocks.
        blocks: Gauge<u64> = "blockCacheCount",
        /// Block cache hits.
        hits: Counted = "blockCacheHitCount",
        /// Hits by requests that may add blocks to the cache: all.
        hits_caching: Counted = "blockCacheHitCachingCount",
        /// Hits by primary replicas: all.
        hits_primary: Counted = "blockCacheHitCountPrimary",
        /// Block cache misses.
        misses: Counted = "blockCacheMissCount",
        /// Misses by requests that may add blocks to the cache: all.
        misses_caching: Counted = "blockCacheMissCachingCount",
        /// Misses by primary replicas: all.
        misses_primary: Counted = "blockCacheMissCountPrimary",
        /// Evicted blocks.
        evictions: Counted = "blockCacheEvictionCount",
        /// Evicted blocks of primary replicas: all.
        evictions_primary: Counted = "blockCacheEvictionCountPrimary",
        /// Failed block loads.
        failed: Counted = "blockCacheFailedInsertionCount",
        /// Percentage of hits among all lookups.
        hit_percent: Gauge<f64> = "blockCacheCountHitPercent" in Percent,
        /// Percentage of hits among lookups by requests that may add blocks to the cache.
        express_hit_percent: Gauge<f64> = "blockCacheExpressHitPercent" in Percent,
        /// Memory used by blocks of the first tier.
        l1_bytes: Gauge<u64> = "l1CacheSize" in Bytes,
        /// Free memory of the first tier.
        l1_free_bytes: Gauge<u64> = "l1CacheFreeSize" in Bytes,
        /// Blocks of the first tier.
        l1_blocks: Gauge<u64> = "l1CacheCount",
        /// Hits in the first tier.
        l1_hits: Counted = "l1CacheHitCount",
        /// Misses in the first tier.
        l1_misses: Counted = "l1CacheMissCount",
        /// Blocks evicted from the first tier.
        l1_evictions: Counted = "l1CacheEvictionCount",
        /// Share of hits among all lookups.
        l1_hit_ratio: Gauge<f64> = "l1CacheHitRatio" in Share,
        /// Share of misses among all lookups.
        l1_miss_ratio: Gauge<f64> = "l1CacheMissRatio" in Share,
    }
}

base::current_values! {
    /// Metrics of the second level of the block cache: blocks in files. 0 if there is none.
    pub(super) struct SecondLevelMetrics in "RegionServer,sub=Server" {
        /// Bytes of the files of the second cache tier.
        bytes: Gauge<u64> = "l2CacheSize" in Bytes,
        /// Free bytes of the second cache tier.
        free_bytes: Gauge<u64> = "l2CacheFreeSize" in Bytes,
        /// Blocks in the second cache tier.
        blocks: Gauge<u64> = "l2CacheCount",
        /// Blocks evicted from the second cache tier.
        evictions: Counted = "l2CacheEvictionCount",
        /// Hits in the second cache tier.
        hits: Counted = "l2CacheHitCount",
        /// Misses in the second cache tier.
        misses: Counted = "l2CacheMissCount",
        /// Share of hits in the second cache tier.
        hit_ratio: Gauge<f64> = "l2CacheHitRatio" in Share,
        /// Share of misses in the second cache tier.
        miss_ratio: Gauge<f64> = "l2CacheMissRatio" in Share,
    }
}

base::current_values! {
    /// The cache of open MOB files.
    pub(super) struct MobFileMetrics in "RegionServer,sub=Server" {
        /// Percentage of hits in the cache of open MOB files.
        hit_percent: Gauge<f64> = "mobFileCacheHitPercent" in Percent,
        /// Open MOB files.
        files: Gauge<u64> = "mobFileCacheCount",
    }
}

base::current_values! {
    /// Writes and faults of the second level of the block cache. 0 if there is none.
    pub(super) struct SecondLevelWrites in "RegionServer,sub=Grampus" {
        /// Blocks written to the second cache tier, without copies.
        writes: Counted = "l2CacheWriteCount",
        /// Used blocks that were copied to a newer file of the second cache tier before their file
        /// was deleted.
        copies: Counted = "l2CacheCopyCount",
        /// Bytes written to the second cache tier: the wear of the SSD.
        written_bytes: Counted = "l2CacheWrittenBytes" in Bytes,
        /// Blocks not written to the second cache tier because they were read for the first time.
        first_reads: Counted = "l2CacheFirstReadCount",
        /// Blocks not written to the second cache tier because the SSD was too slow, a limit was
        /// reached, or a write failed.
        dropped: Counted = "l2CacheDroppedCount",
        /// Records of the second cache tier that were damaged or not the expected block. They are
        /// misses.
        mismatches: Counted = "l2CacheMismatchCount",
        /// Reads of the second cache tier that failed.
        errors: Counted = "l2CacheReadErrorCount",
        /// Reads and writes of the second cache tier that took too long.
        timeouts: Counted = "l2CacheTimeoutCount",
        /// Memory of the second cache tier: its index, and blocks that wait to be written.
        memory: Gauge<u64> = "l2CacheMemorySize" in Bytes,
        /// 1 while the second cache tier is not used because the SSD does not respond.
        is_disabled: Gauge<u64> = "l2CacheDisabled",
    }
}

base::current_values! {
    /// Block cache metrics for each kind of block. A miss is a block loaded for a read.
    pub(super) struct BlockKindMetrics in "RegionServer,sub=Server" {
        /// Cached data blocks.
        data_blocks: Gauge<u64> = "blockCacheDataBlockCount",
        /// Hits of data blocks.
        data_hits: Counted = "blockCacheDataHitCount",
        /// Misses of data blocks.
        data_misses: Counted = "blockCacheDataMissCount",
        /// Hits of leaf index blocks.
        leaf_hits: Counted = "blockCacheLeafIndexHitCount",
        /// Misses of leaf index blocks.
        leaf_misses: Counted = "blockCacheLeafIndexMissCount",
        /// Hits of intermediate index blocks.
        intermediate_hits: Counted = "blockCacheIntermediateIndexHitCount",
        /// Misses of intermediate index blocks.
        intermediate_misses: Counted = "blockCacheIntermediateIndexMissCount",
        /// Hits of root index blocks. Open files keep these in memory.
        root_hits: Counted = "blockCacheRootIndexHitCount",
        /// Misses of root index blocks. Open files keep these in memory.
        root_misses: Counted = "blockCacheRootIndexMissCount",
        /// Hits of Bloom filter chunks.
        bloom_hits: Counted = "blockCacheBloomChunkHitCount",
        /// Misses of Bloom filter chunks.
        bloom_misses: Counted = "blockCacheBloomChunkMissCount",
        /// Hits of Bloom filter metadata. Open files keep it in memory.
        bloom_meta_hits: Counted = "blockCacheGeneralBloomMetaHitCount",
        /// Misses of Bloom filter metadata. Open files keep it in memory.
        bloom_meta_misses: Counted = "blockCacheGeneralBloomMetaMissCount",
        /// Hits of the metadata of Bloom filters for deleted families.
        delete_bloom_hits: Counted = "blockCacheDeleteFamilyBloomHitCount",
        /// Misses of the metadata of Bloom filters for deleted families.
        delete_bloom_misses: Counted = "blockCacheDeleteFamilyBloomMissCount",
        /// Hits of meta blocks.
        meta_hits: Counted = "blockCacheMetaHitCount",
        /// Misses of meta blocks.
        meta_misses: Counted = "blockCacheMetaMissCount",
        /// Hits of file info blocks. Open files keep these in memory.
        file_info_hits: Counted = "blockCacheFileInfoHitCount",
        /// Misses of file info blocks. Open files keep these in memory.
        file_info_misses: Counted = "blockCacheFileInfoMissCount",
    }
}

base::current_values! {
    /// Corruption found by reads.
    pub(super) struct FileFaults in "RegionServer,sub=IO" {
        /// Reads of blocks that were corrupt, also when read a second time. Each read of the same
        /// block counts.
        damaged_reads: Counted = "fsChecksumFailureCount",
    }
}

base::current_values! {
    /// Corrupt store files.
    pub(super) struct CorruptFiles in "RegionServer,sub=Grampus" {
        /// Store files in which reads found a corrupt block, also when read a second time. The
        /// status page lists them.
        files: Gauge<u64> = "corruptStoreFileCount",
    }
}

base::current_values! {
    /// Memory by consumer.
    pub(super) struct MemoryMetrics in "RegionServer,sub=Memory" {
        /// Memory used by memstores.
        memstores: Gauge<u64> = "memStoreSize" in Bytes,
        /// Memory used by memstores; all of it counts as on-heap.
        memstores_on_heap: Gauge<u64> = "memStoreOnHeapSize" in Bytes,
        /// Memory used by cached blocks.
        cache: Gauge<u64> = "blockCacheSize" in Bytes,
    }
}

base::current_values! {
    /// Use and limits of the parts of `grampus.memory`.
    pub(super) struct MemoryLimits in "RegionServer,sub=Grampus" {
        /// Bytes of requests being received or processed.
        requests: Gauge<u64> = "requestSize" in Bytes,
        /// Bytes of responses being built or not sent yet.
        answers: Gauge<u64> = "responseSize" in Bytes,
        /// Memory limit of the process (`grampus.memory`).
        limit: Gauge<u64> = "limit" in Bytes,
        /// Memory limit of memstores.
        memstores_limit: Gauge<u64> = "memStoreLimit" in Bytes,
        /// Minimum memory of the block cache, which it has while memstores are at their limit.
        cache_limit: Gauge<u64> = "blockCacheLimit" in Bytes,
        /// Memory limit of requests.
        requests_limit: Gauge<u64> = "requestLimit" in Bytes,
        /// Memory limit of responses.
        answers_limit: Gauge<u64> = "responseLimit" in Bytes,
    }
}

base::current_values! {
    /// The disk that holds the data directory, and what is still to be written to it.
    pub(super) struct DiskMetrics in "RegionServer,sub=Grampus" {
        /// Size of the disk.
        total: Gauge<u64> = "diskSize" in Bytes,
        /// Free bytes of the disk.
        free: Gauge<u64> = "diskFree" in Bytes,
        /// Free bytes that writes of new data require.
        needed: Gauge<u64> = "diskFreeNeeded" in Bytes,
        /// Bytes allocated in advance for logs and deletes.
        reserve: Gauge<u64> = "diskReserve" in Bytes,
        /// Batches of mutations rejected because the disk was full or lost.
        refusals: Counted = "diskRefusedWriteCount",
        /// 1 while accepted writes wait for free disk space.
        waits: Gauge<u64> = "logWaitsForDisk",
        /// 1 while the data directory is lost.
        lost: Gauge<u64> = "diskLost",
        /// Milliseconds that flushing all memstores takes at the speed of recent flushes.
        memstores_backlog: Gauge<u64> = "memStoreBacklogMillis" in Milliseconds,
        /// Milliseconds that compactions take, at the speed of recent ones, until no store has more
        /// files than the minimum for a compaction.
        compactions_backlog: Gauge<u64> = "compactionBacklogMillis" in Milliseconds,
        /// Writes that waited because memstores filled faster than they were flushed.
        paused_writes: Counted = "pausedWriteCount",
        /// Files whose move to the storage of their policy was requested of HDFS.
        policy_moves: Counted = "storagePolicyMoveCount",
        /// Storage policies that HDFS did not set, and moves that it rejected with an error.
        policy_errors: Counted = "storagePolicyErrorCount",
    }
}

/// The beans of `server`.
pub fn beans(
    env: &Env,
    server: &Arc<RegionServer>,
    calls: &Arc<rpc::Server>,
    identity: &Identity,
) -> Registry {
    let registry = Registry::new(env.clock.clone(), &server.name().host);
    let bean = |record: &str| registry.hbase_bean(CONTEXT, record);
    let of_server = bean("RegionServer,sub=Server");
    let regions = sample::RegionSampler::new(server);
    of_server.add(Arc::new(ServerBean {
        regions: regions.clone(),
        identity: identity.clone(),
        clock: env.clock.clone(),
    }));
    let of = server.clone();
    of_server.read(move || cache_metrics(&of.cache_stats()));
    let of = server.clone();
    of_server.read(move || second_level_metrics(&of.second_level_cache_stats().unwrap_or_default()));
    let of = server.clone();
    of_server.read(move || block_kind_metrics(&of));
    of_server.add(server.mob_files().instruments().clone());
    let of = server.clone();
    of_server.read(move || mob_file_metrics(&of));
    of_server.add(server.instruments().server().clone());
    of_server.add(server.requests().clone());
    of_server.add(identity.files.reads.clone());
    let of_files = bean("RegionServer,sub=IO");
    of_files.add(identity.files.files.clone());
    let of = server.clone();
    of_files.read(move || FileFaults { damaged_reads: of.damaged_reads().into() });
    of_server.add(server.pauses().clone());
    bean("RegionServer,sub=Regions").add(Arc::new(regions::Regions::new(&regions, env)));
    bean("RegionServer,sub=Tables").add(Arc::new(tables::Tables::new(&regions, env)));
    bean("RegionServer,sub=TableLatencies").add(Arc::new(tables::Latencies::new(server)));
    let of = server.clone();
    bean("RegionServer,sub=Memory").read(move || memory_metrics(&of));
    bean("RegionServer,sub=Users").add(Arc::new(users::Users(server.clone())));
    let own = bean("RegionServer,sub=Grampus");
    own.add(Arc::new(users::Usages(server.clone())));
    let (memory, shared) = (identity.memory, identity.shared.clone());
    own.add(server.admin_requests().clone());
    bean("RegionServer,sub=Replication").add(server.replication_sink().instruments().clone());
    own.add(server.clock_jumps().clone());
    let of = server.clone();
    own.read(move || CorruptFiles { files: (of.damaged_files().len() as u64).into() });
    own.read(move || memory_limits(&memory, &shared));
    let of = server.clone();
    own.read(move || second_level_writes(of.second_level_cache_stats()));
    let of = server.clone();
    own.read(move || disk_metrics(&of));
    volumes::show(&registry, CONTEXT, server);
    connections::show(&bean("RegionServer,sub=IPC"), &own, calls);
    bean("RegionServer,sub=WAL").add(server.shared_log_instruments().clone());
    absent::add_to_region_server(&bean);
    process::show(&registry, identity, "RegionServer");
    registry
}

/// Metrics of a server, and sums over its regions.
struct ServerBean {
    regions: Arc<sample::RegionSampler>,
    identity: Identity,
    clock: Arc<dyn Clock>,
}

impl Source for ServerBean {
    fn show(&self, scope: &mut Scope<'_>) {
        let server = self.regions.server();
        server.instruments().update_meters();
        let sample = self.regions.sample(scope.now());
        server_metrics(server, &sample, &self.identity, scope.now()).show(scope);
        Sums::new(sample.metrics(), self.clock.now_ms()).show(scope);
    }
}

fn server_metrics(
    server: &RegionServer,
    sample: &sample::RegionSample,
    identity: &Identity,
    now: Duration,
) -> ServerMetrics {
    let stores = sample.metrics().flat_map(|region| &region.stores);
    let (instruments, log) = (server.instruments().server(), server.user_log_statistics());
    let [long, short] =
        [Pool::Long, Pool::Short].map(|pool| server.schedule().compactions().waiting_in(pool));
    ServerMetrics {
        server_name: server.name().to_string().into(),
        cluster_id: identity.cluster_id.as_str().into(),
        zookeeper_quorum: identity.zookeeper_quorum.as_str().into(),
        start_time: server.name().start_code.into(),
        memstore_heap_bytes: sample.metrics().map(|region| region.memstore_bytes).sum::<u64>().into(),
        root_index_bytes: stores.map(|store| store.root_index_bytes).sum::<u64>().into(),
        logs: log.logs.into(),
        log_bytes: log.file_bytes.into(),
        row_requests: sample
            .metrics()
            .map(|region| region.read_requests + region.write_requests)
            .sum::<u64>()
            .into(),
        calls: (server.requests().calls() + server.admin_requests().calls.get()).into(),
        read_rate: instruments.read_rows.rates(now).one_minute.into(),
        write_rate: instruments.written_rows.rates(now).one_minute.into(),
        local_percent: (100.0 * server.localities().share()).into(),
        scanners: server.scanners().open_count().into(),
        flushes: server.schedule().flushes().into(),
        compactions: (long + short).into(),
        long_compactions: long.into(),
        short_compactions: short.into(),
    }
}

/// Milliseconds; 0 if unknown.
fn millis(time: Option<Duration>) -> u64 {
    time.map_or(0, |time| time.as_millis() as u64)
}

fn disk_metrics(server: &RegionServer) -> DiskMetrics {
    let space = &server.disk().space;
    let policies = server.policy_counts().unwrap_or_default();
    DiskMetrics {
        total: space.total_bytes().into(),
        free: space.free_bytes().into(),
        needed: space.needed_bytes().into(),
        reserve: space.reserve_bytes().into(),
        refusals: space.refusals().into(),
        waits: u64::from(server.waits_for_space()).into(),
        lost: u64::from(space.lost().is_some()).into(),
        memstores_backlog: millis(server.memstore_backlog()).into(),
        compactions_backlog: millis(server.compaction_backlog()).into(),
        paused_writes: server.paused_writes().into(),
        policy_moves: policies.moves.into(),
        policy_errors: policies.errors.into(),
    }
}

fn cache_metrics(cache: &cache::Stats) -> CacheMetrics {
    let free_bytes = cache.capacity_bytes.saturating_sub(cache.weight_bytes);
    let hit_ratio = share(cache.hits, cache.hits + cache.misses);
    CacheMetrics {
        bytes: cache.weight_bytes.into(),
        free_bytes: free_bytes.into(),
        blocks: cache.entries.into(),
        hits: cache.hits.into(),
        hits_caching: cache.hits.into(),
        hits_primary: cache.hits.into(),
        misses: cache.misses.into(),
        misses_caching: cache.misses.into(),
        misses_primary: cache.misses.into(),
        evictions: cache.evictions.into(),
        evictions_primary: cache.evictions.into(),
        failed: cache.failed_loads.into(),
        hit_percent: (hit_ratio * 100.0).into(),
        express_hit_percent: (hit_ratio * 100.0).into(),
        l1_bytes: cache.weight_bytes.into(),
        l1_free_bytes: free_bytes.into(),
        l1_blocks: cache.entries.into(),
        l1_hits: cache.hits.into(),
        l1_misses: cache.misses.into(),
        l1_evictions: cache.evictions.into(),
        l1_hit_ratio: hit_ratio.into(),
        l1_miss_ratio: share(cache.misses, cache.hits + cache.misses).into(),
    }
}

fn second_level_metrics(cache: &ssdcache::Stats) -> SecondLevelMetrics {
    let lookups = cache.hits + cache.misses;
    SecondLevelMetrics {
        bytes: cache.used_bytes.into(),
        free_bytes: cache.capacity_bytes.saturating_sub(cache.used_bytes).into(),
        blocks: cache.blocks.into(),
        evictions: cache.evictions.into(),
        hits: cache.hits.into(),
        misses: cache.misses.into(),
        hit_ratio: share(cache.hits, lookups).into(),
        miss_ratio: share(cache.misses, lookups).into(),
    }
}

fn mob_file_metrics(server: &RegionServer) -> MobFileMetrics {
    let (files, counts) = (server.mob_files(), server.mob_files().instruments());
    let (accesses, misses) = (counts.file_accesses.get(), counts.file_misses.get());
    MobFileMetrics {
        hit_percent: (share(accesses.saturating_sub(misses), accesses) * 100.0).into(),
        files: files.len().into(),
    }
}

fn second_level_writes(cache: Option<ssdcache::Stats>) -> SecondLevelWrites {
    let is_disabled = cache.is_some_and(|cache| !cache.is_enabled);
    let cache = cache.unwrap_or_default();
    SecondLevelWrites {
        writes: cache.writes.into(),
        copies: cache.copies.into(),
        written_bytes: cache.written_bytes.into(),
        first_reads: cache.first_reads.into(),
        dropped: cache.dropped_blocks().into(),
        mismatches: cache.mismatches.into(),
        errors: cache.read_errors.into(),
        timeouts: cache.timeouts.into(),
        memory: cache.memory_bytes.into(),
        is_disabled: u64::from(is_disabled).into(),
    }
}

fn block_kind_metrics(server: &RegionServer) -> BlockKindMetrics {
    let of = |kind| server.block_kind_stats(kind);
    BlockKindMetrics {
        data_blocks: of(BlockKind::Data).entries.into(),
        data_hits: of(BlockKind::Data).hits.into(),
        data_misses: of(BlockKind::Data).loads.into(),
        leaf_hits: of(BlockKind::LeafIndex).hits.into(),
        leaf_misses: of(BlockKind::LeafIndex).loads.into(),
        intermediate_hits: of(BlockKind::IntermediateIndex).hits.into(),
        intermediate_misses: of(BlockKind::IntermediateIndex).loads.into(),
        root_hits: of(BlockKind::RootIndex).hits.into(),
        root_misses: of(BlockKind::RootIndex).loads.into(),
        bloom_hits: of(BlockKind::BloomChunk).hits.into(),
        bloom_misses: of(BlockKind::BloomChunk).loads.into(),
        bloom_meta_hits: of(BlockKind::BloomMeta).hits.into(),
        bloom_meta_misses: of(BlockKind::BloomMeta).loads.into(),
        delete_bloom_hits: of(BlockKind::DeleteFamilyBloomMeta).hits.into(),
        delete_bloom_misses: of(BlockKind::DeleteFamilyBloomMeta).loads.into(),
        meta_hits: of(BlockKind::Meta).hits.into(),
        meta_misses: of(BlockKind::Meta).loads.into(),
        file_info_hits: of(BlockKind::FileInfo).hits.into(),
        file_info_misses: of(BlockKind::FileInfo).loads.into(),
    }
}

fn memory_metrics(server: &RegionServer) -> MemoryMetrics {
    MemoryMetrics {
        memstores: server.memstore_bytes().into(),
        memstores_on_heap: server.memstore_bytes().into(),
        cache: server.cache_stats().weight_bytes.into(),
    }
}

fn memory_limits(limits: &MemoryParts, shared: &Shared) -> MemoryLimits {
    MemoryLimits {
        requests: shared.request_budget().used().into(),
        answers: shared.response_budget().used().into(),
        limit: limits.total.into(),
        memstores_limit: limits.memstores.into(),
        cache_limit: limits.cache.into(),
        requests_limit: limits.requests.into(),
        answers_limit: limits.responses.into(),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
