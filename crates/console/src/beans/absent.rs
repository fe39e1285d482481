//! HBase attributes without a counterpart in Grampus. They are shown as 0, because tools expect
//! them.

use std::sync::Arc;

use base::metrics::Bean;

base::absent! {
    /// Calls start as soon as they are read: there are no queues and handlers, and no logins.
    pub(super) struct NoHandlers in "RegionServer,sub=IPC" {
        /// Calls in the general queue.
        Gauge = "numCallsInGeneralQueue",
        /// Calls in the priority queue.
        Gauge = "numCallsInPriorityQueue",
        /// Calls in the queue for `hbase:meta`.
        Gauge = "numCallsInMetaPriorityQueue",
        /// Calls in the replication queue.
        Gauge = "numCallsInReplicationQueue",
        /// Calls in the write queue.
        Gauge = "numCallsInWriteQueue",
        /// Calls in the read queue.
        Gauge = "numCallsInReadQueue",
        /// Calls in the scan queue.
        Gauge = "numCallsInScanQueue",
        /// Active handlers.
        Gauge = "numActiveHandler",
        /// Active handlers of the general queue.
        Gauge = "numActiveGeneralHandler",
        /// Active handlers of the priority queue.
        Gauge = "numActivePriorityHandler",
        /// Active handlers of the replication queue.
        Gauge = "numActiveReplicationHandler",
        /// Active handlers of the write queue.
        Gauge = "numActiveWriteHandler",
        /// Active handlers of the read queue.
        Gauge = "numActiveReadHandler",
        /// Active handlers of the scan queue.
        Gauge = "numActiveScanHandler",
        /// Calls dropped because the queue was too long.
        Counter = "numGeneralCallsDropped",
        /// Calls served from the tail of a queue (LIFO mode).
        Counter = "numLifoModeSwitches",
        /// Direct memory used by Netty.
        Gauge = "nettyDirectMemoryUsage" in Bytes,
        /// Successful authentications.
        Counter = "authenticationSuccesses",
        /// Failed authentications.
        Counter = "authenticationFailures",
        /// Connections that fell back to simple authentication.
        Counter = "authenticationFallbacks",
        /// Authorized connections.
        Counter = "authorizationSuccesses",
        /// Connections whose authorization failed.
        Counter = "authorizationFailures",
    }
}

base::absent! {
    /// Trailers are not blocks of the cache, and all memory is allocated in one way.
    pub(super) struct NoTrailersAndPools in "RegionServer,sub=Server" {
        /// Hits of file trailers. Open files keep them in memory.
        Counter = "blockCacheTrailerHitCount",
        /// Misses of file trailers. Open files keep them in memory.
        Counter = "blockCacheTrailerMissCount",
        /// Off-heap memory of memstores.
        Gauge = "memStoreOffHeapSize" in Bytes,
        /// Response buffer bytes allocated on the heap.
        Gauge = "ByteBuffAllocatorHeapAllocationBytes" in Bytes,
        /// Response buffer bytes taken from the pool.
        Gauge = "ByteBuffAllocatorPoolAllocationBytes" in Bytes,
        /// Share of response buffer bytes allocated on the heap.
        Gauge = "ByteBuffAllocatorHeapAllocationRatio" in Share,
        /// Buffers in the pool.
        Gauge = "ByteBuffAllocatorTotalBufferCount",
        /// Buffers of the pool that are in use.
        Gauge = "ByteBuffAllocatorUsedBufferCount",
    }
}

base::absent! {
    /// Files are local; there are no remote replicas of them.
    pub(super) struct NoRemoteFiles in "RegionServer,sub=Server" {
        /// Percentage of local store file bytes of secondary region replicas.
        Gauge = "percentFilesLocalSecondaryRegions" in Percent,
        /// Bytes read from local files without a DataNode.
        Counter = "shortCircuitBytesRead" in Bytes,
        /// Bytes read with HDFS's zero-copy reads.
        Counter = "zeroCopyBytesRead" in Bytes,
        /// Hedged reads: reads sent to a second replica because the first was slow.
        Counter = "hedgedReads",
        /// Hedged reads in which the second replica was faster.
        Counter = "hedgedReadWins",
        /// Hedged reads executed on the calling thread because no other was free.
        Counter = "hedgedReadOpsInCurThread",
    }
}

base::absent! {
    /// Writes are rejected at the limits rather than blocked, and there are no garbage collection
    /// pauses.
    pub(super) struct NoBlockedWrites in "RegionServer,sub=Server" {
        /// Time for which writes were blocked.
        Counter = "updatesBlockedTime" in Milliseconds,
        /// Pauses with a garbage collection.
        Times = "PauseTimeWithGc",
        /// Queued splits. The master performs splits.
        Gauge = "splitQueueLength",
        /// Time of splits. The master performs splits.
        Times = "SplitTime",
        /// Time to apply edits replayed from another server.
        Times = "Replay",
    }
}

base::absent! {
    /// Memory moves between memstores and block cache continuously, without a tuner.
    pub(super) struct NoTuner in "RegionServer,sub=Memory" {
        /// Off-heap memory of memstores.
        Gauge = "memStoreOffHeapSize" in Bytes,
        /// Flushes that blocked writes since the last tuning step.
        Gauge = "blockedFlushGauge",
        /// Flushes that blocked no writes since the last tuning step.
        Gauge = "unblockedFlushGauge",
        /// Tuning steps that changed nothing.
        Counter = "tunerDoNothingCounter",
        /// Tuning steps at which heap occupancy was above the low-water mark.
        Counter = "aboveHeapOccupancyLowWaterMarkCounter",
        /// Flushes per tuning step that blocked writes.
        Histogram = "BlockedFlushes",
        /// Flushes per tuning step that blocked no writes.
        Histogram = "UnblockedFlushes",
        /// Growth of the block cache per tuning step.
        Histogram = "IncreaseBlockCacheSize",
        /// Shrinkage of the block cache per tuning step.
        Histogram = "DecreaseBlockCacheSize",
        /// Growth of the memstores' memory per tuning step.
        Histogram = "IncreaseMemStoreSize",
        /// Shrinkage of the memstores' memory per tuning step.
        Histogram = "DecreaseMemStoreSize",
    }
}

base::absent! {
    /// There is no replication to other clusters.
    pub(super) struct NoReplication in "RegionServer,sub=Replication" {
        /// Edits sent.
        Counter = "source.shippedOps",
        /// Batches sent.
        Counter = "source.shippedBatches",
        /// Bytes sent.
        Counter = "source.shippedBytes" in Bytes,
        /// Bytes sent, in units of 1024.
        Counter = "source.shippedKBs",
        /// Store files sent.
        Counter = "source.shippedHFiles",
        /// Edits read from logs.
        Counter = "source.logEditsRead",
        /// Edits skipped by replication filters.
        Counter = "source.logEditsFiltered",
        /// Bytes read from logs.
        Counter = "source.logReadInBytes" in Bytes,
        /// Batches that the other cluster rejected.
        Counter = "source.failedBatches",
        /// Logs read to the end.
        Counter = "source.completedLogs",
        /// Logs without an end marker.
        Counter = "source.uncleanlyClosedLogs",
        /// Closed logs of unknown length.
        Counter = "source.closedLogsWithUnknownFileLength",
        /// Unread bytes of logs without an end marker.
        Counter = "source.ignoredUncleanlyClosedLogContentsInBytes" in Bytes,
        /// Logs whose reading was restarted.
        Counter = "source.restartedLogReading",
        /// Bytes of logs read again after a restart.
        Counter = "source.repeatedLogFileBytes" in Bytes,
        /// Recovered queues of dead servers that were sent.
        Counter = "source.completedRecoverQueues",
        /// Recovered queues of dead servers that failed.
        Counter = "source.failedRecoverQueues",
        /// Logs in the queue.
        Gauge = "source.sizeOfLogQueue",
        /// Store files in the queue.
        Gauge = "source.sizeOfHFileRefsQueue",
        /// Sources being initialized.
        Gauge = "source.numInitializing",
        /// Memory of edits to be sent.
        Gauge = "source.walReaderEditsBufferUsage" in Bytes,
        /// Age of the last edit sent.
        Times = "Source.ageOfLastShippedOp",
    }
}

base::absent! {
    /// Regions are not normalized.
    pub(super) struct NoNormalizer in "Master,sub=Server" {
        /// Splits planned by the normalizer.
        Gauge = "splitPlanCount",
        /// Merges planned by the normalizer.
        Gauge = "mergePlanCount",
    }
}

base::absent! {
    /// Inconsistencies are not counted. `grampus repair` finds them.
    pub(super) struct NoInconsistencies in "Master,sub=AssignmentManager" {
        /// Regions open on dead servers.
        Gauge = "deadServerOpenRegions",
        /// Regions open on unknown servers.
        Gauge = "unknownServerOpenRegions",
        /// Regions that are served but not in `hbase:meta`.
        Gauge = "orphanRegionsOnRS",
        /// Region directories that are not in `hbase:meta`.
        Gauge = "orphanRegionsOnFS",
        /// Regions open on another server than `hbase:meta` states.
        Gauge = "inconsistentRegions",
        /// Key ranges without a region.
        Gauge = "holes",
        /// Key ranges with several regions.
        Gauge = "overlaps",
        /// Regions of unknown servers.
        Gauge = "unknownServerRegions",
        /// Rows of `hbase:meta` without a region description.
        Gauge = "emptyRegionInfoRegions",
    }
}

base::absent! {
    /// Balancer runs are not measured.
    pub(super) struct NoBalancing in "Master,sub=Balancer" {
        /// Time of a balancer run.
        Histogram = "BalancerCluster",
        /// Other calls of the balancer, such as for the assignment of regions.
        Counter = "miscInvocationCount",
    }
}

base::absent! {
    /// Logs are not split before regions open: each region reads its own edits from them.
    pub(super) struct NoLogSplits in "Master,sub=FileSystem" {
        /// Time to split a log.
        Times = "HlogSplitTime",
        /// Size of a split log.
        Sizes = "HlogSplitSize",
        /// Time to split a log of `hbase:meta`.
        Times = "MetaHlogSplitTime",
        /// Size of a split log of `hbase:meta`.
        Sizes = "MetaHlogSplitSize",
    }
}

base::absent! {
    /// Procedures are stored in a region of the master.
    pub(super) struct NoProcedureLogs in "Master,sub=Procedure" {
        /// Log files of the procedure store.
        Gauge = "numMasterWALs",
    }
}

base::absent! {
    /// Space quotas are not supported.
    pub(super) struct NoSpaceQuotas in "Master,sub=Quotas" {
        /// Space quotas.
        Gauge = "numSpaceQuotas",
        /// Tables that exceed their quota.
        Gauge = "numTablesInQuotaViolation",
        /// Namespaces that exceed their quota.
        Gauge = "numNamespaceInQuotaViolation",
        /// Reported region sizes.
        Gauge = "numRegionSizeReports",
        /// Time of a quota check.
        Times = "QuotaObserverChoreTime",
        /// Time of a quota check of snapshots.
        Times = "SnapshotQuotaObserverChoreTime",
        /// Time to compute the sizes of snapshots.
        Times = "SnapshotObserverSizeComputationTime",
        /// Time to list snapshots.
        Times = "SnapshotObserverSnapshotFetchTime",
        /// Tables and their usage.
        Tag = "tableSpaceQuotaOverview",
        /// Namespaces and their usage.
        Tag = "namespaceSpaceQuotaOverview",
    }
}

/// Adds the absent attributes of a region server; `bean` returns a bean by its name.
pub(super) fn add_to_region_server(bean: &impl Fn(&str) -> Arc<Bean>) {
    let of_server = bean("RegionServer,sub=Server");
    of_server.add(Arc::new(NoTrailersAndPools));
    of_server.add(Arc::new(NoRemoteFiles));
    of_server.add(Arc::new(NoBlockedWrites));
    bean("RegionServer,sub=Memory").add(Arc::new(NoTuner));
    bean("RegionServer,sub=Replication").add(Arc::new(NoReplication));
    // These beans exist in HBase too, without attributes.
    bean("RegionServer,sub=Quotas");
    bean(
        "RegionServer,sub=Coprocessor.Region.CP_org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint",
    );
}

/// Adds the absent attributes of a master.
pub(super) fn add_to_master(bean: &impl Fn(&str) -> Arc<Bean>) {
    bean("Master,sub=AssignmentManager").add(Arc::new(NoInconsistencies));
    bean("Master,sub=Balancer").add(Arc::new(NoBalancing));
    bean("Master,sub=FileSystem").add(Arc::new(NoLogSplits));
    bean("Master,sub=Procedure").add(Arc::new(NoProcedureLogs));
    bean("Master,sub=Quotas").add(Arc::new(NoSpaceQuotas));
}
