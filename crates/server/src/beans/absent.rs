//! What HBase has and nobody here counts, for there is no such thing: shown as 0, so that who looks for it finds it.

use std::sync::Arc;

use base::metrics::Bean;

base::absent! {
    /// Calls are at work as soon as they are read; there are no queues and handlers, nor logins.
    pub(super) struct Handlers in "RegionServer,sub=IPC" {
        /// Calls in the queue.
        Gauge = "numCallsInGeneralQueue",
        /// Calls in the queue of those that go first.
        Gauge = "numCallsInPriorityQueue",
        /// Calls in the queue of those for `hbase:meta`.
        Gauge = "numCallsInMetaPriorityQueue",
        /// Calls in the queue of replication.
        Gauge = "numCallsInReplicationQueue",
        /// Calls in the queue of writes.
        Gauge = "numCallsInWriteQueue",
        /// Calls in the queue of reads.
        Gauge = "numCallsInReadQueue",
        /// Calls in the queue of scans.
        Gauge = "numCallsInScanQueue",
        /// Handlers at work.
        Gauge = "numActiveHandler",
        /// Handlers of the general queue at work.
        Gauge = "numActiveGeneralHandler",
        /// Handlers of calls that go first at work.
        Gauge = "numActivePriorityHandler",
        /// Handlers of replication at work.
        Gauge = "numActiveReplicationHandler",
        /// Handlers of writes at work.
        Gauge = "numActiveWriteHandler",
        /// Handlers of reads at work.
        Gauge = "numActiveReadHandler",
        /// Handlers of scans at work.
        Gauge = "numActiveScanHandler",
        /// Calls dropped by a queue that was too long.
        Counter = "numGeneralCallsDropped",
        /// Times that a queue turned round.
        Counter = "numLifoModeSwitches",
        /// Memory of Netty.
        Gauge = "nettyDirectMemoryUsage" in Bytes,
        /// Logins at Kerberos.
        Counter = "authenticationSuccesses",
        /// Those that failed.
        Counter = "authenticationFailures",
        /// Connections that went on without one.
        Counter = "authenticationFallbacks",
        /// Connections that were allowed by a policy.
        Counter = "authorizationSuccesses",
        /// Connections that were not.
        Counter = "authorizationFailures",
    }
}

base::absent! {
    /// The block cache has one tier, of memory.
    pub(super) struct OtherTiers in "RegionServer,sub=Server" {
        /// Bytes of the second tier.
        Gauge = "l2CacheSize" in Bytes,
        /// What is left of it.
        Gauge = "l2CacheFreeSize" in Bytes,
        /// Its blocks.
        Gauge = "l2CacheCount",
        /// Blocks that left it.
        Counter = "l2CacheEvictionCount",
        /// Blocks found in it.
        Counter = "l2CacheHitCount",
        /// Blocks not found in it.
        Counter = "l2CacheMissCount",
        /// The share found.
        Gauge = "l2CacheHitRatio" in Share,
        /// The share not found.
        Gauge = "l2CacheMissRatio" in Share,
        /// Trailers of files found in the cache: open files keep them.
        Counter = "blockCacheTrailerHitCount",
        /// Trailers not found in it.
        Counter = "blockCacheTrailerMissCount",
        /// Memory of memstores outside of the heap.
        Gauge = "memStoreOffHeapSize" in Bytes,
        /// Bytes of answers that came from the heap.
        Gauge = "ByteBuffAllocatorHeapAllocationBytes" in Bytes,
        /// Bytes of answers that came from a pool.
        Gauge = "ByteBuffAllocatorPoolAllocationBytes" in Bytes,
        /// The share from the heap.
        Gauge = "ByteBuffAllocatorHeapAllocationRatio" in Share,
        /// Buffers of the pool.
        Gauge = "ByteBuffAllocatorTotalBufferCount",
        /// Those in use.
        Gauge = "ByteBuffAllocatorUsedBufferCount",
    }
}

base::absent! {
    /// Files are on this machine, read by nobody in its place.
    pub(super) struct Distribution in "RegionServer,sub=Server" {
        /// The same share of files for replicas of regions.
        Gauge = "percentFilesLocalSecondaryRegions" in Percent,
        /// Bytes read past a DataNode of this machine.
        Counter = "shortCircuitBytesRead" in Bytes,
        /// Bytes read without a copy of HDFS.
        Counter = "zeroCopyBytesRead" in Bytes,
        /// Reads that were begun twice.
        Counter = "hedgedReads",
        /// Those where the second was the first.
        Counter = "hedgedReadWins",
        /// Those for which no thread was left.
        Counter = "hedgedReadOpsInCurThread",
    }
}

base::absent! {
    /// Values are stored with their cells, however large.
    pub(super) struct Mobs in "RegionServer,sub=Server" {
        /// Cells moved to such files.
        Counter = "cellsCountCompactedToMob",
        /// Cells moved back.
        Counter = "cellsCountCompactedFromMob",
        /// Bytes moved to such files.
        Counter = "cellsSizeCompactedToMob" in Bytes,
        /// Bytes moved back.
        Counter = "cellsSizeCompactedFromMob" in Bytes,
        /// Flushes of them.
        Counter = "mobFlushCount",
        /// Cells flushed.
        Counter = "mobFlushedCellsCount",
        /// Their bytes.
        Counter = "mobFlushedCellsSize" in Bytes,
        /// Cells read.
        Counter = "mobScanCellsCount",
        /// Their bytes.
        Counter = "mobScanCellsSize" in Bytes,
        /// Looks for open files.
        Counter = "mobFileCacheAccessCount",
        /// Those in vain.
        Counter = "mobFileCacheMissCount",
        /// Of a hundred those not in vain.
        Gauge = "mobFileCacheHitPercent" in Percent,
        /// Files closed to make room.
        Counter = "mobFileCacheEvictedCount",
        /// Open files.
        Gauge = "mobFileCacheCount",
    }
}

base::absent! {
    /// Writes are refused where there is no room, and never held up; nothing stops the process.
    pub(super) struct Unblocked in "RegionServer,sub=Server" {
        /// Time that writes were held up.
        Counter = "updatesBlockedTime" in Milliseconds,
        /// Pauses with a collection of garbage.
        Times = "PauseTimeWithGc",
        /// Splits that wait here: the master has them.
        Gauge = "splitQueueLength",
        /// How long a split took: it is the master's work.
        Times = "SplitTime",
        /// How long edits took that another server sent.
        Times = "Replay",
        /// How long files took that were moved into a region: there is no call for that yet.
        Times = "Bulkload",
        /// How many of these.
        Meter = "Bulkload",
    }
}

base::absent! {
    /// Memory is moved between memstores and cache as they use it, not in steps.
    pub(super) struct Tuner in "RegionServer,sub=Memory" {
        /// Memory of memstores outside of the heap.
        Gauge = "memStoreOffHeapSize" in Bytes,
        /// Flushes for which writes were held up since the last step.
        Gauge = "blockedFlushGauge",
        /// Flushes for which none were.
        Gauge = "unblockedFlushGauge",
        /// Steps in which nothing was moved.
        Counter = "tunerDoNothingCounter",
        /// Steps at which the heap was fuller than is good.
        Counter = "aboveHeapOccupancyLowWaterMarkCounter",
        /// Flushes of a step for which writes were held up.
        Histogram = "BlockedFlushes",
        /// Flushes of a step for which none were.
        Histogram = "UnblockedFlushes",
        /// What the cache was given in a step.
        Histogram = "IncreaseBlockCacheSize",
        /// What the cache lost in a step.
        Histogram = "DecreaseBlockCacheSize",
        /// What memstores were given in a step.
        Histogram = "IncreaseMemStoreSize",
        /// What memstores lost in a step.
        Histogram = "DecreaseMemStoreSize",
    }
}

base::absent! {
    /// Nothing is sent to other clusters, nor taken from them.
    pub(super) struct Replication in "RegionServer,sub=Replication" {
        /// Edits sent.
        Counter = "source.shippedOps",
        /// Batches of them.
        Counter = "source.shippedBatches",
        /// Their bytes.
        Counter = "source.shippedBytes" in Bytes,
        /// The same in units of 1,024 bytes.
        Counter = "source.shippedKBs",
        /// Files sent.
        Counter = "source.shippedHFiles",
        /// Edits read from logs.
        Counter = "source.logEditsRead",
        /// Those not to be sent.
        Counter = "source.logEditsFiltered",
        /// Bytes read from logs.
        Counter = "source.logReadInBytes" in Bytes,
        /// Batches that the other cluster did not take.
        Counter = "source.failedBatches",
        /// Logs read to their end.
        Counter = "source.completedLogs",
        /// Logs without an end.
        Counter = "source.uncleanlyClosedLogs",
        /// Logs of unknown length.
        Counter = "source.closedLogsWithUnknownFileLength",
        /// Bytes of logs not read.
        Counter = "source.ignoredUncleanlyClosedLogContentsInBytes" in Bytes,
        /// Logs read anew.
        Counter = "source.restartedLogReading",
        /// Bytes read anew.
        Counter = "source.repeatedLogFileBytes" in Bytes,
        /// Queues of other servers sent.
        Counter = "source.completedRecoverQueues",
        /// Those not sent.
        Counter = "source.failedRecoverQueues",
        /// Logs to be read.
        Gauge = "source.sizeOfLogQueue",
        /// Files to be sent.
        Gauge = "source.sizeOfHFileRefsQueue",
        /// Sources that begin.
        Gauge = "source.numInitializing",
        /// Memory of edits to be sent.
        Gauge = "source.walReaderEditsBufferUsage" in Bytes,
        /// Age of the last edit sent.
        Times = "Source.ageOfLastShippedOp",
        /// Edits taken.
        Counter = "sink.appliedOps",
        /// Batches of them.
        Counter = "sink.appliedBatches",
        /// Files taken.
        Counter = "sink.appliedHFiles",
        /// Batches that failed.
        Counter = "sink.failedBatches",
        /// Age of the last edit taken.
        Times = "Sink.ageOfLastAppliedOp",
    }
}

base::absent! {
    /// There is one server, which is never given up nor drained; regions are not made alike in size.
    pub(super) struct Plans in "Master,sub=Server" {
        /// Servers given up.
        Tag = "deadRegionServers",
        /// Servers that get no regions.
        Tag = "drainingRegionServers",
        /// How many were given up.
        Gauge = "numDeadRegionServers",
        /// How many get no regions.
        Gauge = "numDrainingRegionServers",
        /// Splits planned to make regions alike.
        Gauge = "splitPlanCount",
        /// Merges planned for that.
        Gauge = "mergePlanCount",
        /// Recoveries of servers begun.
        Counter = "ServerCrashSubmittedCount",
        /// Those that failed.
        Counter = "ServerCrashFailedCount",
        /// How long one took.
        Times = "ServerCrashTime",
    }
}

base::absent! {
    /// One process opens regions and knows of them.
    pub(super) struct Inconsistencies in "Master,sub=AssignmentManager" {
        /// Regions open at servers that were given up.
        Gauge = "deadServerOpenRegions",
        /// Regions open at servers nobody knows.
        Gauge = "unknownServerOpenRegions",
        /// Regions served that are not in `hbase:meta`.
        Gauge = "orphanRegionsOnRS",
        /// Directories of regions that are not in it.
        Gauge = "orphanRegionsOnFS",
        /// Regions open elsewhere than it says.
        Gauge = "inconsistentRegions",
        /// Ranges of keys without a region.
        Gauge = "holes",
        /// Ranges with several.
        Gauge = "overlaps",
        /// Regions of servers nobody knows.
        Gauge = "unknownServerRegions",
        /// Rows of it without a region.
        Gauge = "emptyRegionInfoRegions",
    }
}

base::absent! {
    /// There is one server, so that nothing is balanced.
    pub(super) struct Balancing in "Master,sub=Balancer" {
        /// How long a look at all regions took.
        Histogram = "BalancerCluster",
        /// Looks.
        Counter = "miscInvocationCount",
    }
}

base::absent! {
    /// Logs are not split before regions are opened: regions read what is theirs.
    pub(super) struct LogSplits in "Master,sub=FileSystem" {
        /// How long a log took.
        Times = "HlogSplitTime",
        /// Its bytes.
        Sizes = "HlogSplitSize",
        /// How long a log of `hbase:meta` took.
        Times = "MetaHlogSplitTime",
        /// Its bytes.
        Sizes = "MetaHlogSplitSize",
    }
}

base::absent! {
    /// Procedures are in a region of the master.
    pub(super) struct OldProcedures in "Master,sub=Procedure" {
        /// Logs of procedures.
        Gauge = "numMasterWALs",
    }
}

base::absent! {
    /// There are no quotas of space.
    pub(super) struct SpaceQuotas in "Master,sub=Quotas" {
        /// Quotas of space.
        Gauge = "numSpaceQuotas",
        /// Tables beyond theirs.
        Gauge = "numTablesInQuotaViolation",
        /// Namespaces beyond theirs.
        Gauge = "numNamespaceInQuotaViolation",
        /// Sizes of regions that were told.
        Gauge = "numRegionSizeReports",
        /// How long a look took.
        Times = "QuotaObserverChoreTime",
        /// How long a look at snapshots took.
        Times = "SnapshotQuotaObserverChoreTime",
        /// How long their sizes took.
        Times = "SnapshotObserverSizeComputationTime",
        /// How long a list of them took.
        Times = "SnapshotObserverSnapshotFetchTime",
        /// Tables and what they use.
        Tag = "tableSpaceQuotaOverview",
        /// Namespaces and what they use.
        Tag = "namespaceSpaceQuotaOverview",
    }
}

/// The beans of a region server that have such attributes; `bean` has a bean by its name.
pub(super) fn of_region_server(bean: &impl Fn(&str) -> Arc<Bean>) {
    let of_server = bean("RegionServer,sub=Server");
    of_server.add(Arc::new(OtherTiers));
    of_server.add(Arc::new(Distribution));
    of_server.add(Arc::new(Mobs));
    of_server.add(Arc::new(Unblocked));
    bean("RegionServer,sub=Memory").add(Arc::new(Tuner));
    bean("RegionServer,sub=Replication").add(Arc::new(Replication));
    // Empty in HBase too, as long as there are none.
    bean("RegionServer,sub=Quotas");
    bean(
        "RegionServer,sub=Coprocessor.Region.CP_org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint",
    );
}

/// The same of a master.
pub(super) fn of_master(bean: &impl Fn(&str) -> Arc<Bean>) {
    bean("Master,sub=AssignmentManager").add(Arc::new(Inconsistencies));
    bean("Master,sub=Balancer").add(Arc::new(Balancing));
    bean("Master,sub=FileSystem").add(Arc::new(LogSplits));
    bean("Master,sub=Procedure").add(Arc::new(OldProcedures));
    bean("Master,sub=Quotas").add(Arc::new(SpaceQuotas));
}
