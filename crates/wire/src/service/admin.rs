//! `AdminService`: what a region server does for the master and for tools.

use crate::service::service;

/// The class of the remote procedure by which a master tells a server that throttling was switched.
pub const SWITCH_RPC_THROTTLE: &str = "org.apache.hadoop.hbase.regionserver.SwitchRpcThrottleRemoteCallable";

service! {
    /// What a region server does for the master and for tools.
    "AdminService" AdminService dispatch_admin ADMIN_METHODS
    works {
        /// A region, and on demand its compaction state and best split row.
        "GetRegionInfo" get_region_info(GetRegionInfoRequest) -> GetRegionInfoResponse;
        /// The store files of a region.
        "GetStoreFile" get_store_file(GetStoreFileRequest) -> GetStoreFileResponse;
        /// The regions that are served here.
        "GetOnlineRegion" get_online_region(GetOnlineRegionRequest) -> GetOnlineRegionResponse;
        /// Opens regions; answers when they are asked for, the outcome is reported to the master.
        "OpenRegion" open_region(OpenRegionRequest) -> OpenRegionResponse;
        /// Prepares for opening a region.
        "WarmupRegion" warmup_region(WarmupRegionRequest) -> WarmupRegionResponse;
        /// Closes a region; answers when it is asked for, the outcome is reported to the master.
        "CloseRegion" close_region(CloseRegionRequest) -> CloseRegionResponse;
        /// Flushes a region and returns when it is done.
        "FlushRegion" flush_region(FlushRegionRequest) -> FlushRegionResponse;
        /// Asks for a compaction of a region.
        "CompactRegion" compact_region(CompactRegionRequest) -> CompactRegionResponse;
        /// Switches compactions of the server on or off.
        "CompactionSwitch" compaction_switch(CompactionSwitchRequest) -> CompactionSwitchResponse;
        /// Forgets compactions that wait for their turn.
        "ClearCompactionQueues" clear_compaction_queues(ClearCompactionQueuesRequest) -> ClearCompactionQueuesResponse;
        /// Begins a new log file.
        "RollWALWriter" roll_wal_writer(RollWalWriterRequest) -> RollWalWriterResponse;
        /// The server's name and the port of its pages.
        "GetServerInfo" get_server_info(GetServerInfoRequest) -> GetServerInfoResponse;
        /// Stops the server.
        "StopServer" stop_server(StopServerRequest) -> StopServerResponse;
        /// Reads the configuration again.
        "UpdateConfiguration" update_configuration(UpdateConfigurationRequest) -> UpdateConfigurationResponse;
        /// Figures of the regions served here.
        "GetRegionLoad" get_region_load(GetRegionLoadRequest) -> GetRegionLoadResponse;
        /// Opens and closes regions; answers at once, the outcomes are reported to the master.
        "ExecuteProcedures" execute_procedures(ExecuteProceduresRequest) -> ExecuteProceduresResponse;
        /// The last calls that took long.
        "GetSlowLogResponses" get_slow_log_responses(SlowLogResponseRequest) -> SlowLogResponses;
        /// The last calls with large answers.
        "GetLargeLogResponses" get_large_log_responses(SlowLogResponseRequest) -> SlowLogResponses;
        /// Either of them, and whatever else is kept of calls, by the Java class of the question.
        "GetLogEntries" get_log_entries(LogRequest) -> LogEntry;
        /// Forgets the calls that are kept.
        "ClearSlowLogsResponses" clear_slow_logs_responses(ClearSlowLogResponseRequest) -> ClearSlowLogResponses;
    }
    refused {
        "ReplicateWALEntry" (ReplicateWalEntryRequest) -> ReplicateWalEntryResponse;
        "Replay" (ReplicateWalEntryRequest) -> ReplicateWalEntryResponse;
        "UpdateFavoredNodes" (UpdateFavoredNodesRequest) -> UpdateFavoredNodesResponse;
        "ClearRegionBlockCache" (ClearRegionBlockCacheRequest) -> ClearRegionBlockCacheResponse;
        "GetSpaceQuotaSnapshots" (GetSpaceQuotaSnapshotsRequest) -> GetSpaceQuotaSnapshotsResponse;
        "GetCachedFilesList" (GetCachedFilesListRequest) -> GetCachedFilesListResponse;
    }
}
