//! `MasterService`: tables, regions, procedures, the cluster.

use crate::service::service;

service! {
    /// Tables, regions, procedures, the cluster.
    "MasterService" MasterService dispatch_master MASTER_METHODS
    works {
        /// The number of a table's regions that still have an older descriptor.
        "GetSchemaAlterStatus" get_schema_alter_status(GetSchemaAlterStatusRequest) -> GetSchemaAlterStatusResponse;
        /// Descriptors of tables by name or pattern.
        "GetTableDescriptors" get_table_descriptors(GetTableDescriptorsRequest) -> GetTableDescriptorsResponse;
        /// Descriptors of all enabled or all disabled tables.
        "ListTableDescriptorsByState" list_table_descriptors_by_state(ListTableDescriptorsByStateRequest) -> ListTableDescriptorsByStateResponse;
        /// Names of tables by pattern.
        "GetTableNames" get_table_names(GetTableNamesRequest) -> GetTableNamesResponse;
        /// Names of all enabled or all disabled tables.
        "ListTableNamesByState" list_table_names_by_state(ListTableNamesByStateRequest) -> ListTableNamesByStateResponse;
        /// Statistics of servers and regions.
        "GetClusterStatus" get_cluster_status(GetClusterStatusRequest) -> GetClusterStatusResponse;
        /// The time of the oldest major compaction of a table whose file still exists.
        "getLastMajorCompactionTimestamp" last_major_compaction(MajorCompactionTimestampRequest) -> MajorCompactionTimestampResponse;
        /// The time of the oldest major compaction of a region whose file still exists.
        "getLastMajorCompactionTimestampForRegion" last_major_compaction_of_region(MajorCompactionTimestampForRegionRequest) -> MajorCompactionTimestampResponse;
        /// Whether the master is running; 2.x clients check this before every other call.
        "IsMasterRunning" is_master_running(IsMasterRunningRequest) -> IsMasterRunningResponse;
        /// Starts adding a family to a table.
        "AddColumn" add_column(AddColumnRequest) -> AddColumnResponse;
        /// Starts removing a family and its data from a table.
        "DeleteColumn" delete_column(DeleteColumnRequest) -> DeleteColumnResponse;
        /// Starts changing a family of a table.
        "ModifyColumn" modify_column(ModifyColumnRequest) -> ModifyColumnResponse;
        /// Starts changing a table's families and attributes.
        "ModifyTable" modify_table(ModifyTableRequest) -> ModifyTableResponse;
        /// Starts removing all rows of a disabled table, which becomes enabled afterwards.
        "truncateTable" truncate_table(TruncateTableRequest) -> TruncateTableResponse;
        /// Starts deleting a disabled table.
        "DeleteTable" delete_table(DeleteTableRequest) -> DeleteTableResponse;
        /// Starts opening the regions of a disabled table.
        "EnableTable" enable_table(EnableTableRequest) -> EnableTableResponse;
        /// Starts closing the regions of an enabled table.
        "DisableTable" disable_table(DisableTableRequest) -> DisableTableResponse;
        /// Starts creating a table.
        "CreateTable" create_table(CreateTableRequest) -> CreateTableResponse;
        /// Stops the whole cluster.
        "Shutdown" shutdown(ShutdownRequest) -> ShutdownResponse;
        /// Stops the master.
        "StopMaster" stop_master(StopMasterRequest) -> StopMasterResponse;
        /// Whether the master is in maintenance mode and rejects users.
        "IsMasterInMaintenanceMode" is_master_in_maintenance_mode(IsInMaintenanceModeRequest) -> IsInMaintenanceModeResponse;
        /// Whether regions are moved to balance the load.
        "IsBalancerEnabled" is_balancer_enabled(IsBalancerEnabledRequest) -> IsBalancerEnabledResponse;
        /// Whether regions may be split or merged.
        "IsSplitOrMergeEnabled" is_split_or_merge_enabled(IsSplitOrMergeEnabledRequest) -> IsSplitOrMergeEnabledResponse;
        /// Whether regions are split and merged to equalize their sizes.
        "IsNormalizerEnabled" is_normalizer_enabled(IsNormalizerEnabledRequest) -> IsNormalizerEnabledResponse;
        /// Whether `hbase:meta` is cleaned up.
        "IsCatalogJanitorEnabled" is_catalog_janitor_enabled(IsCatalogJanitorEnabledRequest) -> IsCatalogJanitorEnabledResponse;
        /// Whether obsolete files are removed.
        "IsCleanerChoreEnabled" is_cleaner_chore_enabled(IsCleanerChoreEnabledRequest) -> IsCleanerChoreEnabledResponse;
        /// Whether expired snapshots are removed.
        "IsSnapshotCleanupEnabled" is_snapshot_cleanup_enabled(IsSnapshotCleanupEnabledRequest) -> IsSnapshotCleanupEnabledResponse;
        /// Starts a procedure of the legacy kind, such as the flush of a table.
        "ExecProcedure" exec_procedure(ExecProcedureRequest) -> ExecProcedureResponse;
        /// Whether a procedure of the legacy kind is complete.
        "IsProcedureDone" is_procedure_done(IsProcedureDoneRequest) -> IsProcedureDoneResponse;
        /// Starts taking a snapshot: a record of a table's files.
        "Snapshot" snapshot(SnapshotRequest) -> SnapshotResponse;
        /// All snapshots.
        "GetCompletedSnapshots" get_completed_snapshots(GetCompletedSnapshotsRequest) -> GetCompletedSnapshotsResponse;
        /// Removes a snapshot.
        "DeleteSnapshot" delete_snapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse;
        /// Whether a snapshot is complete.
        "IsSnapshotDone" is_snapshot_done(IsSnapshotDoneRequest) -> IsSnapshotDoneResponse;
        /// Starts creating a table from a snapshot, or restoring a table to a snapshot.
        "RestoreSnapshot" restore_snapshot(RestoreSnapshotRequest) -> RestoreSnapshotResponse;
        /// Starts creating a namespace.
        "CreateNamespace" create_namespace(CreateNamespaceRequest) -> CreateNamespaceResponse;
        /// Starts changing a namespace's settings.
        "ModifyNamespace" modify_namespace(ModifyNamespaceRequest) -> ModifyNamespaceResponse;
        /// Starts removing an empty namespace.
        "DeleteNamespace" delete_namespace(DeleteNamespaceRequest) -> DeleteNamespaceResponse;
        /// One namespace.
        "GetNamespaceDescriptor" get_namespace_descriptor(GetNamespaceDescriptorRequest) -> GetNamespaceDescriptorResponse;
        /// All namespaces.
        "ListNamespaceDescriptors" list_namespace_descriptors(ListNamespaceDescriptorsRequest) -> ListNamespaceDescriptorsResponse;
        /// Descriptors of the tables of a namespace.
        "ListTableDescriptorsByNamespace" list_table_descriptors_by_namespace(ListTableDescriptorsByNamespaceRequest) -> ListTableDescriptorsByNamespaceResponse;
        /// Names of the tables of a namespace.
        "ListTableNamesByNamespace" list_table_names_by_namespace(ListTableNamesByNamespaceRequest) -> ListTableNamesByNamespaceResponse;
        /// Whether a table is enabled.
        "GetTableState" get_table_state(GetTableStateRequest) -> GetTableStateResponse;
        /// The outcome of a procedure.
        "getProcedureResult" get_procedure_result(GetProcedureResultRequest) -> GetProcedureResultResponse;
        /// The authentication methods that the cluster supports.
        "getSecurityCapabilities" get_security_capabilities(SecurityCapabilitiesRequest) -> SecurityCapabilitiesResponse;
        /// All procedures.
        "GetProcedures" get_procedures(GetProceduresRequest) -> GetProceduresResponse;
        /// All locks held by procedures.
        "GetLocks" get_locks(GetLocksRequest) -> GetLocksResponse;
        /// Servers that are excluded from region assignment.
        "ListDecommissionedRegionServers" list_decommissioned_region_servers(ListDecommissionedRegionServersRequest) -> ListDecommissionedRegionServersResponse;
        /// The names of all namespaces.
        "ListNamespaces" list_namespaces(ListNamespacesRequest) -> ListNamespacesResponse;
        /// Sets, changes or removes a quota.
        "SetQuota" set_quota(SetQuotaRequest) -> SetQuotaResponse;
        /// Switches throttling of calls by quotas on or off.
        "SwitchRpcThrottle" switch_rpc_throttle(SwitchRpcThrottleRequest) -> SwitchRpcThrottleResponse;
        /// Whether calls are throttled by quotas.
        "IsRpcThrottleEnabled" is_rpc_throttle_enabled(IsRpcThrottleEnabledRequest) -> IsRpcThrottleEnabledResponse;
        /// Allows or forbids exceeding quotas while servers have spare capacity.
        "SwitchExceedThrottleQuota" switch_exceed_throttle_quota(SwitchExceedThrottleQuotaRequest) -> SwitchExceedThrottleQuotaResponse;
        /// Permissions of users: refused like HBase without its AccessController.
        "Grant" grant(GrantRequest) -> GrantResponse;
        /// Permissions of users: refused like HBase without its AccessController.
        "Revoke" revoke(RevokeRequest) -> RevokeResponse;
        /// Permissions of users: refused like HBase without its AccessController.
        "GetUserPermissions" get_user_permissions(GetUserPermissionsRequest) -> GetUserPermissionsResponse;
        /// Permissions of users: refused like HBase without its AccessController.
        "HasUserPermissions" has_user_permissions(HasUserPermissionsRequest) -> HasUserPermissionsResponse;
        /// Starts flushing the regions of a table.
        "FlushTable" flush_table(FlushTableRequest) -> FlushTableResponse;
        /// Starts splitting a region in two.
        "SplitRegion" split_region(SplitTableRegionRequest) -> SplitTableRegionResponse;
        /// Starts merging regions into one.
        "MergeTableRegions" merge_table_regions(MergeTableRegionsRequest) -> MergeTableRegionsResponse;
        /// Moves a region to another server, or reopens it.
        "MoveRegion" move_region(MoveRegionRequest) -> MoveRegionResponse;
        /// Excludes servers from the assignment of regions.
        "DecommissionRegionServers" decommission_region_servers(DecommissionRegionServersRequest) -> DecommissionRegionServersResponse;
        /// Includes a server in the assignment of regions again.
        "RecommissionRegionServer" recommission_region_server(RecommissionRegionServerRequest) -> RecommissionRegionServerResponse;
        /// Removes servers from the list of dead servers.
        "ClearDeadServers" clear_dead_servers(ClearDeadServersRequest) -> ClearDeadServersResponse;
        /// Opens a region.
        "AssignRegion" assign_region(AssignRegionRequest) -> AssignRegionResponse;
        /// Closes a region.
        "UnassignRegion" unassign_region(UnassignRegionRequest) -> UnassignRegionResponse;
        /// Allows or forbids splits or merges.
        "SetSplitOrMergeEnabled" set_split_or_merge_enabled(SetSplitOrMergeEnabledRequest) -> SetSplitOrMergeEnabledResponse;
        /// Cleans up after splits and merges now.
        "RunCatalogScan" run_catalog_scan(RunCatalogScanRequest) -> RunCatalogScanResponse;
        /// Allows or forbids cleaning up after splits and merges.
        "EnableCatalogJanitor" enable_catalog_janitor(EnableCatalogJanitorRequest) -> EnableCatalogJanitorResponse;
        /// Removes obsolete files now.
        "RunCleanerChore" run_cleaner_chore(RunCleanerChoreRequest) -> RunCleanerChoreResponse;
        /// Allows or forbids removing obsolete files.
        "SetCleanerChoreRunning" set_cleaner_chore_running(SetCleanerChoreRunningRequest) -> SetCleanerChoreRunningResponse;
        /// Aborts a procedure if possible.
        "AbortProcedure" abort_procedure(AbortProcedureRequest) -> AbortProcedureResponse;
        /// Moves regions so that each server has about the same number.
        "Balance" balance(BalanceRequest) -> BalanceResponse;
        /// Allows or forbids balancing.
        "SetBalancerRunning" set_balancer_running(SetBalancerRunningRequest) -> SetBalancerRunningResponse;
        /// Allows or forbids removing expired snapshots.
        "SwitchSnapshotCleanup" switch_snapshot_cleanup(SetSnapshotCleanupRequest) -> SetSnapshotCleanupResponse;
    }
    refused {
        "OfflineRegion" (OfflineRegionRequest) -> OfflineRegionResponse;
        "TruncateRegion" (TruncateRegionRequest) -> TruncateRegionResponse;
        "Normalize" (NormalizeRequest) -> NormalizeResponse;
        "SetNormalizerRunning" (SetNormalizerRunningRequest) -> SetNormalizerRunningResponse;
        "ExecMasterService" (CoprocessorServiceRequest) -> CoprocessorServiceResponse;
        "ExecProcedureWithRet" (ExecProcedureRequest) -> ExecProcedureResponse;
        "AddReplicationPeer" (AddReplicationPeerRequest) -> AddReplicationPeerResponse;
        "RemoveReplicationPeer" (RemoveReplicationPeerRequest) -> RemoveReplicationPeerResponse;
        "EnableReplicationPeer" (EnableReplicationPeerRequest) -> EnableReplicationPeerResponse;
        "DisableReplicationPeer" (DisableReplicationPeerRequest) -> DisableReplicationPeerResponse;
        "GetReplicationPeerConfig" (GetReplicationPeerConfigRequest) -> GetReplicationPeerConfigResponse;
        "UpdateReplicationPeerConfig" (UpdateReplicationPeerConfigRequest) -> UpdateReplicationPeerConfigResponse;
        "ListReplicationPeers" (ListReplicationPeersRequest) -> ListReplicationPeersResponse;
        "IsReplicationPeerEnabled" (GetReplicationPeerStateRequest) -> GetReplicationPeerStateResponse;
        "ReplicationPeerModificationSwitch" (ReplicationPeerModificationSwitchRequest) -> ReplicationPeerModificationSwitchResponse;
        "GetReplicationPeerModificationProcedures" (GetReplicationPeerModificationProceduresRequest) -> GetReplicationPeerModificationProceduresResponse;
        "IsReplicationPeerModificationEnabled" (IsReplicationPeerModificationEnabledRequest) -> IsReplicationPeerModificationEnabledResponse;
        "GetSpaceQuotaRegionSizes" (GetSpaceQuotaRegionSizesRequest) -> GetSpaceQuotaRegionSizesResponse;
        "GetQuotaStates" (GetQuotaStatesRequest) -> GetQuotaStatesResponse;
        "GetLogEntries" (LogRequest) -> LogEntry;
        "ModifyTableStoreFileTracker" (ModifyTableStoreFileTrackerRequest) -> ModifyTableStoreFileTrackerResponse;
        "ModifyColumnStoreFileTracker" (ModifyColumnStoreFileTrackerRequest) -> ModifyColumnStoreFileTrackerResponse;
        "FlushMasterStore" (FlushMasterStoreRequest) -> FlushMasterStoreResponse;
    }
}
