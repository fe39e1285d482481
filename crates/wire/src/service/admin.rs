//! `AdminService`: operations of a region server for the master and for tools.

use crate::service::service;

/// The class of the remote procedure by which a master notifies a server that throttling was
/// switched.
pub const SWITCH_RPC_THROTTLE: &str = "org.apache.hadoop.hbase.regionserver.SwitchRpcThrottleRemoteCallable";

service! {
    /// Operations of a region server for the master and for tools.
    "AdminService" AdminService dispatch_admin ADMIN_METHODS
    works {
        /// Describes a region, on request with its compaction state and best split row.
        "GetRegionInfo" get_region_info(GetRegionInfoRequest) -> GetRegionInfoResponse;
        /// Lists the store files of a region.
        "GetStoreFile" get_store_file(GetStoreFileRequest) -> GetStoreFileResponse;
        /// Lists the regions that this server serves.
        "GetOnlineRegion" get_online_region(GetOnlineRegionRequest) -> GetOnlineRegionResponse;
        /// Starts opening regions. Responds immediately; the outcome is reported to the master.
        "OpenRegion" open_region(OpenRegionRequest) -> OpenRegionResponse;
        /// Prepares the opening of a region.
        "WarmupRegion" warmup_region(WarmupRegionRequest) -> WarmupRegionResponse;
        /// Starts closing a region. Responds immediately; the outcome is reported to the master.
        "CloseRegion" close_region(CloseRegionRequest) -> CloseRegionResponse;
        /// Flushes a region and returns when the flush is complete.
        "FlushRegion" flush_region(FlushRegionRequest) -> FlushRegionResponse;
        /// Requests a compaction of a region.
        "CompactRegion" compact_region(CompactRegionRequest) -> CompactRegionResponse;
        /// Switches the server's compactions on or off.
        "CompactionSwitch" compaction_switch(CompactionSwitchRequest) -> CompactionSwitchResponse;
        /// Removes queued compactions.
        "ClearCompactionQueues" clear_compaction_queues(ClearCompactionQueuesRequest) -> ClearCompactionQueuesResponse;
        /// Starts a new write-ahead log file.
        "RollWALWriter" roll_wal_writer(RollWalWriterRequest) -> RollWalWriterResponse;
        /// The server's name and the port of its status pages.
        "GetServerInfo" get_server_info(GetServerInfoRequest) -> GetServerInfoResponse;
        /// Stops the server.
        "StopServer" stop_server(StopServerRequest) -> StopServerResponse;
        /// Reloads the configuration.
        "UpdateConfiguration" update_configuration(UpdateConfigurationRequest) -> UpdateConfigurationResponse;
        /// Statistics of the regions that this server serves.
        "GetRegionLoad" get_region_load(GetRegionLoadRequest) -> GetRegionLoadResponse;
        /// Starts opening and closing regions. Responds immediately; the outcomes are reported to
        /// the master.
        "ExecuteProcedures" execute_procedures(ExecuteProceduresRequest) -> ExecuteProceduresResponse;
        /// The most recent slow calls.
        "GetSlowLogResponses" get_slow_log_responses(SlowLogResponseRequest) -> SlowLogResponses;
        /// The most recent calls with large responses.
        "GetLargeLogResponses" get_large_log_responses(SlowLogResponseRequest) -> SlowLogResponses;
        /// Slow calls, large responses or other recorded calls, selected by the Java class of the
        /// request.
        "GetLogEntries" get_log_entries(LogRequest) -> LogEntry;
        /// Applies entries of another cluster's log whose cells are not in the message. A call with
        /// cells is served elsewhere.
        "ReplicateWALEntry" replicate_wal_entry(ReplicateWalEntryRequest) -> ReplicateWalEntryResponse;
        /// Removes the recorded calls.
        "ClearSlowLogsResponses" clear_slow_logs_responses(ClearSlowLogResponseRequest) -> ClearSlowLogResponses;
    }
    refused {
        "Replay" (ReplicateWalEntryRequest) -> ReplicateWalEntryResponse;
        "UpdateFavoredNodes" (UpdateFavoredNodesRequest) -> UpdateFavoredNodesResponse;
        "ClearRegionBlockCache" (ClearRegionBlockCacheRequest) -> ClearRegionBlockCacheResponse;
        "GetSpaceQuotaSnapshots" (GetSpaceQuotaSnapshotsRequest) -> GetSpaceQuotaSnapshotsResponse;
        "GetCachedFilesList" (GetCachedFilesListRequest) -> GetCachedFilesListResponse;
    }
}
