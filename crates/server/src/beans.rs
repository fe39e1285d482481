//! The beans of both roles: which figures stand under which of HBase's names.

use std::sync::Arc;

use base::env::Env;
use base::metrics::{Bean, Registry};
use engine::region::RegionFigures;
use master::Master;
use master::assignment::RegionState;
use regionserver::RegionServer;

use crate::standalone::Limits;

/// HBase's context of a region server's beans, a tag of each.
const REGION_SERVER: &str = "regionserver";
/// That of a master's.
const MASTER: &str = "master";

base::figures! {
    /// What a master says of the cluster.
    struct MasterFigures in "Master,sub=Server" {
        /// Whether it is the one that acts.
        is_active: Tag = "isActiveMaster",
        /// The cluster's id.
        cluster_id: Tag = "clusterId",
        /// Its name: host, port, start code.
        server_name: Tag = "serverName",
        /// When it was started.
        start_time: Gauge<u64> = "masterStartTime" in EpochMilliseconds,
        /// Region servers that report.
        servers: Gauge<u64> = "numRegionServers",
        /// Regions that each of them has on average.
        average_load: Gauge<f64> = "averageLoad",
    }
}

base::figures! {
    /// What a master says of regions on their way.
    struct AssignmentFigures in "Master,sub=AssignmentManager" {
        /// Regions that are being opened, closed, moved or split.
        in_transition: Gauge<u64> = "ritCount",
    }
}

/// The beans of a master.
pub(crate) fn of_master(env: &Env, master: &Arc<Master>, calls: &Arc<rpc::Server>) -> Registry {
    let registry = Registry::new(env.clock.clone(), &master.server_name().host);
    let of = master.clone();
    registry.hbase_bean(MASTER, "Master,sub=Server").read(move || master_figures(&of));
    let of = master.clone();
    registry.hbase_bean(MASTER, "Master,sub=AssignmentManager").read(move || assignment_figures(&of));
    show_calls(&registry.hbase_bean(MASTER, "Master,sub=IPC"), calls);
    registry
}

fn master_figures(master: &Master) -> MasterFigures {
    let servers = master.context().servers.live();
    let regions: usize = servers.iter().map(|(_, load)| load.region_loads.len()).sum();
    MasterFigures {
        is_active: "true".into(),
        cluster_id: master.cluster_id().into(),
        server_name: master.server_name().to_string().into(),
        start_time: master.server_name().start_code.into(),
        servers: servers.len().into(),
        average_load: (regions as f64 / servers.len().max(1) as f64).into(),
    }
}

fn assignment_figures(master: &Master) -> AssignmentFigures {
    let settled = |state: &RegionState| {
        matches!(state, RegionState::Open(_) | RegionState::Closed | RegionState::Split)
    };
    let all = master.context().assignment.all();
    AssignmentFigures { in_transition: all.iter().filter(|(_, state)| !settled(state)).count().into() }
}

base::figures! {
    /// What a region server says of itself and its regions together.
    struct ServerFigures in "RegionServer,sub=Server" {
        /// Its name: host, port, start code.
        server_name: Tag = "serverName",
        /// When it was started.
        start_time: Gauge<u64> = "regionServerStartTime" in EpochMilliseconds,
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
        /// Memory that memstores take.
        memstore_heap_bytes: Gauge<u64> = "memStoreHeapSize" in Bytes,
        /// Logs that are kept.
        logs: Gauge<u64> = "hlogFileCount",
        /// Rows read and mutations.
        requests: Counted = "totalRequestCount",
        /// Rows read by gets and scans.
        reads: Counted = "readRequestCount",
        /// Mutations.
        writes: Counted = "writeRequestCount",
        /// Memory that cached blocks take.
        cache_bytes: Gauge<u64> = "blockCacheSize" in Bytes,
        /// Memory that is left to them.
        cache_free_bytes: Gauge<u64> = "blockCacheFreeSize" in Bytes,
        /// Cached blocks.
        cache_blocks: Gauge<u64> = "blockCacheCount",
        /// Blocks that were asked for and there.
        cache_hits: Counted = "blockCacheHitCount",
        /// Blocks that were asked for and not there.
        cache_misses: Counted = "blockCacheMissCount",
        /// Blocks that went to make room.
        cache_evictions: Counted = "blockCacheEvictionCount",
        /// Of a hundred blocks asked for those that were there.
        cache_hit_percent: Gauge<f64> = "blockCacheCountHitPercent" in Percent,
        /// Scanners that clients have open.
        scanners: Gauge<u64> = "activeScanners",
        /// Flushes that wait or run.
        flushes: Gauge<u64> = "flushQueueLength",
        /// Compactions that wait.
        compactions: Gauge<u64> = "compactionQueueLength",
    }
}

base::figures! {
    /// Who has the memory: HBase's figures, and the parts of `grampus.memory`.
    struct MemoryFigures in "RegionServer,sub=Memory" {
        /// Memory that memstores take.
        memstores: Gauge<u64> = "memStoreSize" in Bytes,
        /// Memory that cached blocks take.
        cache: Gauge<u64> = "blockCacheSize" in Bytes,
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
    /// Connections of a server, and what all servers of the process hold together.
    struct ConnectionFigures in "RegionServer,sub=IPC" {
        /// Connections that are open.
        connections: Gauge<u64> = "numOpenConnections",
        /// Bytes of calls that are read or at work.
        queued_bytes: Gauge<u64> = "queueSize" in Bytes,
        /// Connections refused because there were too many.
        turned_away: Counted = "connectionsTurnedAway",
        /// Connections closed because they hardly moved while memory was short.
        stalled: Counted = "connectionsStalled",
    }
}

base::figures! {
    /// What the log did.
    struct LogFigures in "RegionServer,sub=WAL" {
        /// Edits appended.
        edits: Counted = "appendCount",
        /// Bytes of them.
        bytes: Counted = "writtenBytes" in Bytes,
        /// Syncs, each of a group of edits.
        syncs: Counted = "SyncTime_num_ops",
        /// Files begun in place of others.
        rolls: Counted = "rollRequest",
    }
}

/// The beans of a region server.
pub(crate) fn of_region_server(
    env: &Env,
    server: &Arc<RegionServer>,
    calls: &Arc<rpc::Server>,
    limits: &Limits,
) -> Registry {
    let registry = Registry::new(env.clock.clone(), &server.name().host);
    let bean = |sub| registry.hbase_bean(REGION_SERVER, sub);
    let of = server.clone();
    bean("RegionServer,sub=Server").read(move || server_figures(&of));
    let (of, limits_of, shared) = (server.clone(), limits.memory, limits.shared.clone());
    bean("RegionServer,sub=Memory").read(move || MemoryFigures {
        memstores: of.memstore_bytes().into(),
        cache: of.cache_stats().weight_bytes.into(),
        requests: shared.requests().used().into(),
        answers: shared.answers().used().into(),
        limit: limits_of.total.into(),
        memstores_limit: limits_of.memstores.into(),
        cache_limit: limits_of.cache.into(),
        requests_limit: limits_of.requests.into(),
        answers_limit: limits_of.answers.into(),
    });
    show_calls(&bean("RegionServer,sub=IPC"), calls);
    let of = server.clone();
    bean("RegionServer,sub=WAL").read(move || {
        let log = of.log_figures();
        LogFigures {
            edits: log.edits.into(),
            bytes: log.bytes.into(),
            syncs: log.groups.into(),
            rolls: log.rolls.into(),
        }
    });
    registry
}

/// Calls and connections of either role.
fn show_calls(bean: &Bean, calls: &Arc<rpc::Server>) {
    bean.add(calls.instruments().clone());
    let of = calls.clone();
    bean.read(move || ConnectionFigures {
        connections: of.connections().into(),
        queued_bytes: of.shared().requests().used().into(),
        turned_away: of.shared().turned_away().into(),
        stalled: of.shared().stalled().into(),
    });
}

fn server_figures(server: &RegionServer) -> ServerFigures {
    let regions: Vec<RegionFigures> = server.regions().all().iter().map(|region| region.figures()).collect();
    let sum = |of: fn(&RegionFigures) -> u64| regions.iter().map(of).sum::<u64>();
    let stores = || regions.iter().flat_map(|region| &region.stores);
    let file_bytes: u64 = stores().map(|store| store.file_bytes).sum();
    let memstore_bytes = sum(|region| region.memstore_data_bytes);
    let (reads, writes) = (sum(|region| region.read_requests), sum(|region| region.write_requests));
    let cache = server.cache_stats();
    ServerFigures {
        server_name: server.name().to_string().into(),
        start_time: server.name().start_code.into(),
        regions: regions.len().into(),
        stores: stores().count().into(),
        files: stores().map(|store| store.files).sum::<usize>().into(),
        files_max: stores().map(|store| store.files).max().unwrap_or(0).into(),
        file_bytes: file_bytes.into(),
        region_bytes: ((file_bytes + memstore_bytes) / regions.len().max(1) as u64).into(),
        memstore_bytes: memstore_bytes.into(),
        memstore_heap_bytes: sum(|region| region.memstore_bytes).into(),
        logs: server.log_figures().logs.into(),
        requests: (reads + writes).into(),
        reads: reads.into(),
        writes: writes.into(),
        cache_bytes: cache.weight_bytes.into(),
        cache_free_bytes: cache.capacity_bytes.saturating_sub(cache.weight_bytes).into(),
        cache_blocks: cache.entries.into(),
        cache_hits: cache.hits.into(),
        cache_misses: cache.misses.into(),
        cache_evictions: cache.evictions.into(),
        cache_hit_percent: percent(cache.hits, cache.hits + cache.misses).into(),
        scanners: server.scanners().open_count().into(),
        flushes: server.schedule().flushes().into(),
        compactions: server.schedule().compactions().waiting().into(),
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
