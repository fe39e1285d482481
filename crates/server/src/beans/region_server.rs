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
use crate::beans::{Identity, absent, connections, look, process, regions, tables, users};
use crate::settings::Limits;

/// HBase's context of a region server's beans, a tag of each.
const CONTEXT: &str = "regionserver";

base::figures! {
    /// What a region server says of itself.
    pub(super) struct ServerFigures in "RegionServer,sub=Server" {
        /// Where clients find the cluster.
        zookeeper_quorum: Tag = "zookeeperQuorum",
        /// Its name: host, port, start code.
        server_name: Tag = "serverName",
        /// The cluster's id.
        cluster_id: Tag = "clusterId",
        /// When it was started.
        start_time: Gauge<u64> = "regionServerStartTime" in EpochMilliseconds,
        /// Memory that memstores take.
        memstore_heap_bytes: Gauge<u64> = "memStoreHeapSize" in Bytes,
        /// Memory that the roots of indexes take.
        root_index_bytes: Gauge<u64> = "storeFileIndexSize" in Bytes,
        /// Logs that are kept.
        logs: Gauge<u64> = "hlogFileCount",
        /// Their bytes.
        log_bytes: Gauge<u64> = "hlogFileSize" in Bytes,
        /// Rows read and mutations.
        row_requests: Counted = "totalRowActionRequestCount",
        /// Calls of clients and administrators; one of many rows is one.
        calls: Counted = "totalRequestCount",
        /// Rows that clients read in a second, over the last minute.
        read_rate: Gauge<f64> = "readRequestRatePerSecond" in PerSecond,
        /// Mutations that they made in a second, over the last minute.
        write_rate: Gauge<f64> = "writeRequestRatePerSecond" in PerSecond,
        /// Of a hundred bytes of files those on this machine: all.
        local_percent: Gauge<f64> = "percentFilesLocal" in Percent,
        /// Scanners that clients have open.
        scanners: Gauge<u64> = "activeScanners",
        /// Flushes that wait or run.
        flushes: Gauge<u64> = "flushQueueLength",
        /// Compactions that wait.
        compactions: Gauge<u64> = "compactionQueueLength",
        /// Of these those that will take long.
        long_compactions: Gauge<u64> = "largeCompactionQueueLength",
        /// All others of these.
        short_compactions: Gauge<u64> = "smallCompactionQueueLength",
    }
}

base::figures! {
    /// What the block cache says of itself, under the names of a cache without tiers and of the first tier.
    pub(super) struct CacheFigures in "RegionServer,sub=Server" {
        /// Memory that cached blocks take.
        bytes: Gauge<u64> = "blockCacheSize" in Bytes,
        /// Memory that is left to them.
        free_bytes: Gauge<u64> = "blockCacheFreeSize" in Bytes,
        /// Cached blocks.
        blocks: Gauge<u64> = "blockCacheCount",
        /// Blocks that were asked for and there.
        hits: Counted = "blockCacheHitCount",
        /// Of these those for requests that let blocks in.
        hits_caching: Counted = "blockCacheHitCachingCount",
        /// Of these those of primary replicas: all.
        hits_primary: Counted = "blockCacheHitCountPrimary",
        /// Blocks that were asked for and not there.
        misses: Counted = "blockCacheMissCount",
        /// Of these those for requests that let blocks in.
        misses_caching: Counted = "blockCacheMissCachingCount",
        /// Of these those of primary replicas: all.
        misses_primary: Counted = "blockCacheMissCountPrimary",
        /// Blocks that went to make room.
        evictions: Counted = "blockCacheEvictionCount",
        /// Of these those of primary replicas: all.
        evictions_primary: Counted = "blockCacheEvictionCountPrimary",
        /// Loads of blocks that failed.
        failed: Counted = "blockCacheFailedInsertionCount",
        /// Of a hundred blocks asked for those that were there.
        hit_percent: Gauge<f64> = "blockCacheCountHitPercent" in Percent,
        /// The same of requests that let blocks in.
        express_hit_percent: Gauge<f64> = "blockCacheExpressHitPercent" in Percent,
        /// Memory that blocks of the first tier take; there is no other.
        l1_bytes: Gauge<u64> = "l1CacheSize" in Bytes,
        /// Memory that is left to them.
        l1_free_bytes: Gauge<u64> = "l1CacheFreeSize" in Bytes,
        /// Blocks of the first tier.
        l1_blocks: Gauge<u64> = "l1CacheCount",
        /// Blocks that were asked for and there.
        l1_hits: Counted = "l1CacheHitCount",
        /// Blocks that were asked for and not there.
        l1_misses: Counted = "l1CacheMissCount",
        /// Blocks that went to make room.
        l1_evictions: Counted = "l1CacheEvictionCount",
        /// Of all that was asked for what was there.
        l1_hit_ratio: Gauge<f64> = "l1CacheHitRatio" in Share,
        /// Of all that was asked for what was not there.
        l1_miss_ratio: Gauge<f64> = "l1CacheMissRatio" in Share,
    }
}

base::figures! {
    /// What the block cache counts of each kind of blocks. A miss is a block that was loaded because it was asked for.
    pub(super) struct KindFigures in "RegionServer,sub=Server" {
        /// Cached blocks of cells.
        data_blocks: Gauge<u64> = "blockCacheDataBlockCount",
        /// Hits of blocks of cells.
        data_hits: Counted = "blockCacheDataHitCount",
        /// Misses of blocks of cells.
        data_misses: Counted = "blockCacheDataMissCount",
        /// Hits of lowest levels of indexes.
        leaf_hits: Counted = "blockCacheLeafIndexHitCount",
        /// Misses of lowest levels of indexes.
        leaf_misses: Counted = "blockCacheLeafIndexMissCount",
        /// Hits of middle levels of indexes.
        intermediate_hits: Counted = "blockCacheIntermediateIndexHitCount",
        /// Misses of middle levels of indexes.
        intermediate_misses: Counted = "blockCacheIntermediateIndexMissCount",
        /// Hits of roots of indexes, which open files keep.
        root_hits: Counted = "blockCacheRootIndexHitCount",
        /// Misses of roots of indexes, which open files keep.
        root_misses: Counted = "blockCacheRootIndexMissCount",
        /// Hits of chunks of Bloom filters.
        bloom_hits: Counted = "blockCacheBloomChunkHitCount",
        /// Misses of chunks of Bloom filters.
        bloom_misses: Counted = "blockCacheBloomChunkMissCount",
        /// Hits of places of these chunks, which open files keep.
        bloom_meta_hits: Counted = "blockCacheGeneralBloomMetaHitCount",
        /// Misses of places of these chunks, which open files keep.
        bloom_meta_misses: Counted = "blockCacheGeneralBloomMetaMissCount",
        /// Hits of those of filters for deleted families.
        delete_bloom_hits: Counted = "blockCacheDeleteFamilyBloomHitCount",
        /// Misses of those of filters for deleted families.
        delete_bloom_misses: Counted = "blockCacheDeleteFamilyBloomMissCount",
        /// Hits of blocks by name.
        meta_hits: Counted = "blockCacheMetaHitCount",
        /// Misses of blocks by name.
        meta_misses: Counted = "blockCacheMetaMissCount",
        /// Hits of what files say of themselves, which open files keep.
        file_info_hits: Counted = "blockCacheFileInfoHitCount",
        /// Misses of what files say of themselves, which open files keep.
        file_info_misses: Counted = "blockCacheFileInfoMissCount",
    }
}

base::figures! {
    /// What was wrong with files.
    pub(super) struct FileFaults in "RegionServer,sub=IO" {
        /// Blocks that were damaged when they were read, and when they were read again; each as often as it was asked for.
        damaged_blocks: Counted = "fsChecksumFailureCount",
    }
}

base::figures! {
    /// Files that are corrupt.
    pub(super) struct CorruptFiles in "RegionServer,sub=Grampus" {
        /// Store files in which reads met a block that is corrupt, also when it was read again; the status page lists them.
        files: Gauge<u64> = "corruptStoreFileCount",
    }
}

base::figures! {
    /// Who has the memory.
    pub(super) struct MemoryFigures in "RegionServer,sub=Memory" {
        /// Memory that memstores take.
        memstores: Gauge<u64> = "memStoreSize" in Bytes,
        /// The same: there is no other memory.
        memstores_on_heap: Gauge<u64> = "memStoreOnHeapSize" in Bytes,
        /// Memory that cached blocks take.
        cache: Gauge<u64> = "blockCacheSize" in Bytes,
    }
}

base::figures! {
    /// The parts of `grampus.memory`.
    pub(super) struct MemoryLimits in "RegionServer,sub=Grampus" {
        /// Bytes of requests that are read or at work.
        requests: Gauge<u64> = "requestSize" in Bytes,
        /// Bytes of answers that clients have not taken.
        answers: Gauge<u64> = "responseSize" in Bytes,
        /// What the process may take (`grampus.memory`).
        limit: Gauge<u64> = "limit" in Bytes,
        /// What memstores may.
        memstores_limit: Gauge<u64> = "memStoreLimit" in Bytes,
        /// What cached blocks have at least where memstores have their limit.
        cache_limit: Gauge<u64> = "blockCacheLimit" in Bytes,
        /// What requests may take.
        requests_limit: Gauge<u64> = "requestLimit" in Bytes,
        /// What answers may.
        answers_limit: Gauge<u64> = "responseLimit" in Bytes,
    }
}

base::figures! {
    /// The disk below the data directory.
    pub(super) struct DiskFigures in "RegionServer,sub=Grampus" {
        /// Bytes of the disk.
        total: Gauge<u64> = "diskSize" in Bytes,
        /// Bytes that are free of it.
        free: Gauge<u64> = "diskFree" in Bytes,
        /// Bytes that must be free for writes that add data.
        needed: Gauge<u64> = "diskFreeNeeded" in Bytes,
        /// Bytes that are allocated ahead for logs and deletes.
        reserve: Gauge<u64> = "diskReserve" in Bytes,
        /// Batches of mutations that were refused because the disk is full or lost.
        refusals: Counted = "diskRefusedWriteCount",
        /// 1 while accepted writes wait for room on the disk.
        waits: Gauge<u64> = "logWaitsForDisk",
        /// 1 while the data directory is lost.
        lost: Gauge<u64> = "diskLost",
    }
}

/// The beans of `server`.
pub(crate) fn beans(
    env: &Env,
    server: &Arc<RegionServer>,
    calls: &Arc<rpc::Server>,
    limits: &Limits,
    identity: &Identity,
) -> Registry {
    let registry = Registry::new(env.clock.clone(), &server.name().host);
    let bean = |record: &str| registry.hbase_bean(CONTEXT, record);
    let of_server = bean("RegionServer,sub=Server");
    let regions = look::Regions::of(server);
    of_server.add(Arc::new(OfServer {
        regions: regions.clone(),
        identity: identity.clone(),
        clock: env.clock.clone(),
    }));
    let of = server.clone();
    of_server.read(move || cache_figures(&of.cache_stats()));
    let of = server.clone();
    of_server.read(move || kind_figures(&of));
    of_server.add(server.instruments().server().clone());
    of_server.add(server.requests().clone());
    of_server.add(identity.files.reads.clone());
    let of_files = bean("RegionServer,sub=IO");
    of_files.add(identity.files.files.clone());
    let of = server.clone();
    of_files.read(move || FileFaults { damaged_blocks: of.damaged_blocks().into() });
    of_server.add(server.pauses().clone());
    bean("RegionServer,sub=Regions").add(Arc::new(regions::Regions::new(&regions, env)));
    bean("RegionServer,sub=Tables").add(Arc::new(tables::Tables::new(&regions, env)));
    bean("RegionServer,sub=TableLatencies").add(Arc::new(tables::Latencies::new(server)));
    let of = server.clone();
    bean("RegionServer,sub=Memory").read(move || memory_figures(&of));
    bean("RegionServer,sub=Users").add(Arc::new(users::Users(server.clone())));
    let own = bean("RegionServer,sub=Grampus");
    own.add(Arc::new(users::Uses(server.clone())));
    let (memory, shared) = (limits.memory, limits.shared.clone());
    own.add(server.admin_requests().clone());
    own.add(server.clock_jumps().clone());
    let of = server.clone();
    own.read(move || CorruptFiles { files: (of.damaged_files().len() as u64).into() });
    own.read(move || memory_limits(&memory, &shared));
    let of = server.clone();
    own.read(move || disk_figures(&of));
    connections::show(&bean("RegionServer,sub=IPC"), &own, calls);
    bean("RegionServer,sub=WAL").add(server.log_instruments().clone());
    absent::of_region_server(&bean);
    process::show(&registry, identity, "RegionServer");
    registry
}

/// What a server says of itself, and of its regions together.
struct OfServer {
    regions: Arc<look::Regions>,
    identity: Identity,
    clock: Arc<dyn Clock>,
}

impl Source for OfServer {
    fn show(&self, scope: &mut Scope<'_>) {
        let server = self.regions.server();
        server.instruments().tell_meters();
        let look = self.regions.look(scope.now());
        server_figures(server, &look, &self.identity, scope.now()).show(scope);
        Sums::of(look.figures(), self.clock.now_ms()).show(scope);
    }
}

fn server_figures(
    server: &RegionServer,
    look: &look::Look,
    identity: &Identity,
    now: Duration,
) -> ServerFigures {
    let stores = look.figures().flat_map(|region| &region.stores);
    let (instruments, log) = (server.instruments().server(), server.log_figures());
    let [long, short] =
        [Pool::Long, Pool::Short].map(|pool| server.schedule().compactions().waiting_in(pool));
    ServerFigures {
        server_name: server.name().to_string().into(),
        cluster_id: identity.cluster_id.as_str().into(),
        zookeeper_quorum: identity.zookeeper_quorum.as_str().into(),
        start_time: server.name().start_code.into(),
        memstore_heap_bytes: look.figures().map(|region| region.memstore_bytes).sum::<u64>().into(),
        root_index_bytes: stores.map(|store| store.root_index_bytes).sum::<u64>().into(),
        logs: log.logs.into(),
        log_bytes: log.file_bytes.into(),
        row_requests: look
            .figures()
            .map(|region| region.read_requests + region.write_requests)
            .sum::<u64>()
            .into(),
        calls: (server.requests().calls() + server.admin_requests().calls.get()).into(),
        read_rate: instruments.read_rows.rates(now).one_minute.into(),
        write_rate: instruments.written_rows.rates(now).one_minute.into(),
        local_percent: 100.0.into(),
        scanners: server.scanners().open_count().into(),
        flushes: server.schedule().flushes().into(),
        compactions: (long + short).into(),
        long_compactions: long.into(),
        short_compactions: short.into(),
    }
}

fn disk_figures(server: &RegionServer) -> DiskFigures {
    let space = &server.disk().space;
    DiskFigures {
        total: space.total_bytes().into(),
        free: space.free_bytes().into(),
        needed: space.needed_bytes().into(),
        reserve: space.reserve_bytes().into(),
        refusals: space.refusals().into(),
        waits: u64::from(server.waits_for_room()).into(),
        lost: u64::from(space.lost().is_some()).into(),
    }
}

fn cache_figures(cache: &cache::Stats) -> CacheFigures {
    let free_bytes = cache.capacity_bytes.saturating_sub(cache.weight_bytes);
    let hit_ratio = share(cache.hits, cache.hits + cache.misses);
    CacheFigures {
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

fn kind_figures(server: &RegionServer) -> KindFigures {
    let of = |kind| server.cached_kind(kind);
    KindFigures {
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

fn memory_figures(server: &RegionServer) -> MemoryFigures {
    MemoryFigures {
        memstores: server.memstore_bytes().into(),
        memstores_on_heap: server.memstore_bytes().into(),
        cache: server.cache_stats().weight_bytes.into(),
    }
}

fn memory_limits(limits: &MemoryParts, shared: &Shared) -> MemoryLimits {
    MemoryLimits {
        requests: shared.requests().used().into(),
        answers: shared.answers().used().into(),
        limit: limits.total.into(),
        memstores_limit: limits.memstores.into(),
        cache_limit: limits.cache.into(),
        requests_limit: limits.requests.into(),
        answers_limit: limits.answers.into(),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
