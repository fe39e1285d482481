//! `MasterService`: tables, regions, procedures, the cluster.

use crate::service::service;

service! {
    /// Tables, regions, procedures, the cluster.
    "MasterService" MasterService dispatch_master MASTER_METHODS
    works {
        /// How many regions of a table still have an older descriptor.
        "GetSchemaAlterStatus" get_schema_alter_status(GetSchemaAlterStatusRequest) -> GetSchemaAlterStatusResponse;
        /// Descriptors of tables by name or pattern.
        "GetTableDescriptors" get_table_descriptors(GetTableDescriptorsRequest) -> GetTableDescriptorsResponse;
        /// Descriptors of all enabled or all disabled tables.
        "ListTableDescriptorsByState" list_table_descriptors_by_state(ListTableDescriptorsByStateRequest) -> ListTableDescriptorsByStateResponse;
        /// Names of tables by pattern.
        "GetTableNames" get_table_names(GetTableNamesRequest) -> GetTableNamesResponse;
        /// Names of all enabled or all disabled tables.
        "ListTableNamesByState" list_table_names_by_state(ListTableNamesByStateRequest) -> ListTableNamesByStateResponse;
        /// Figures of servers and regions.
        "GetClusterStatus" get_cluster_status(GetClusterStatusRequest) -> GetClusterStatusResponse;
        /// The oldest major compaction of a table whose file is still there.
        "getLastMajorCompactionTimestamp" last_major_compaction(MajorCompactionTimestampRequest) -> MajorCompactionTimestampResponse;
        /// The oldest major compaction of a region whose file is still there.
        "getLastMajorCompactionTimestampForRegion" last_major_compaction_of_region(MajorCompactionTimestampForRegionRequest) -> MajorCompactionTimestampResponse;
        /// Whether the master serves; 2.x clients ask before each other call.
        "IsMasterRunning" is_master_running(IsMasterRunningRequest) -> IsMasterRunningResponse;
        /// Begins to add a family to a table.
        "AddColumn" add_column(AddColumnRequest) -> AddColumnResponse;
        /// Begins to remove a family and its data from a table.
        "DeleteColumn" delete_column(DeleteColumnRequest) -> DeleteColumnResponse;
        /// Begins to change a family of a table.
        "ModifyColumn" modify_column(ModifyColumnRequest) -> ModifyColumnResponse;
        /// Begins to change a table's families and attributes.
        "ModifyTable" modify_table(ModifyTableRequest) -> ModifyTableResponse;
        /// Begins to remove all rows of a disabled table, which is enabled then.
        "truncateTable" truncate_table(TruncateTableRequest) -> TruncateTableResponse;
        /// Begins to remove a disabled table.
        "DeleteTable" delete_table(DeleteTableRequest) -> DeleteTableResponse;
        /// Begins to open the regions of a disabled table.
        "EnableTable" enable_table(EnableTableRequest) -> EnableTableResponse;
        /// Begins to close the regions of an enabled table.
        "DisableTable" disable_table(DisableTableRequest) -> DisableTableResponse;
        /// Begins to make a table.
        "CreateTable" create_table(CreateTableRequest) -> CreateTableResponse;
        /// Stops the whole cluster.
        "Shutdown" shutdown(ShutdownRequest) -> ShutdownResponse;
        /// Stops the master.
        "StopMaster" stop_master(StopMasterRequest) -> StopMasterResponse;
        /// Whether the master keeps users out.
        "IsMasterInMaintenanceMode" is_master_in_maintenance_mode(IsInMaintenanceModeRequest) -> IsInMaintenanceModeResponse;
        /// Whether regions are moved to even out the load.
        "IsBalancerEnabled" is_balancer_enabled(IsBalancerEnabledRequest) -> IsBalancerEnabledResponse;
        /// Whether regions may be split or merged.
        "IsSplitOrMergeEnabled" is_split_or_merge_enabled(IsSplitOrMergeEnabledRequest) -> IsSplitOrMergeEnabledResponse;
        /// Whether regions are split and merged to even out their sizes.
        "IsNormalizerEnabled" is_normalizer_enabled(IsNormalizerEnabledRequest) -> IsNormalizerEnabledResponse;
        /// Whether hbase:meta is tidied up.
        "IsCatalogJanitorEnabled" is_catalog_janitor_enabled(IsCatalogJanitorEnabledRequest) -> IsCatalogJanitorEnabledResponse;
        /// Whether old files are removed.
        "IsCleanerChoreEnabled" is_cleaner_chore_enabled(IsCleanerChoreEnabledRequest) -> IsCleanerChoreEnabledResponse;
        /// Whether snapshots are removed when their time to live is over.
        "IsSnapshotCleanupEnabled" is_snapshot_cleanup_enabled(IsSnapshotCleanupEnabledRequest) -> IsSnapshotCleanupEnabledResponse;
        /// Begins a procedure of the old kind, such as the flush of a table.
        "ExecProcedure" exec_procedure(ExecProcedureRequest) -> ExecProcedureResponse;
        /// Whether a procedure of the old kind is done.
        "IsProcedureDone" is_procedure_done(IsProcedureDoneRequest) -> IsProcedureDoneResponse;
        /// Begins to note which files a table has.
        "Snapshot" snapshot(SnapshotRequest) -> SnapshotResponse;
        /// All snapshots.
        "GetCompletedSnapshots" get_completed_snapshots(GetCompletedSnapshotsRequest) -> GetCompletedSnapshotsResponse;
        /// Removes a snapshot.
        "DeleteSnapshot" delete_snapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse;
        /// Whether a snapshot has been taken.
        "IsSnapshotDone" is_snapshot_done(IsSnapshotDoneRequest) -> IsSnapshotDoneResponse;
        /// Begins to make a table out of a snapshot, or to put one back to it.
        "RestoreSnapshot" restore_snapshot(RestoreSnapshotRequest) -> RestoreSnapshotResponse;
        /// Begins to make a namespace.
        "CreateNamespace" create_namespace(CreateNamespaceRequest) -> CreateNamespaceResponse;
        /// Begins to change a namespace's settings.
        "ModifyNamespace" modify_namespace(ModifyNamespaceRequest) -> ModifyNamespaceResponse;
        /// Begins to remove a namespace without tables.
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
        /// What became of a procedure.
        "getProcedureResult" get_procedure_result(GetProcedureResultRequest) -> GetProcedureResultResponse;
        /// How users can log in.
        "getSecurityCapabilities" get_security_capabilities(SecurityCapabilitiesRequest) -> SecurityCapabilitiesResponse;
        /// All procedures.
        "GetProcedures" get_procedures(GetProceduresRequest) -> GetProceduresResponse;
        /// All locks that procedures hold.
        "GetLocks" get_locks(GetLocksRequest) -> GetLocksResponse;
        /// Servers that get no regions.
        "ListDecommissionedRegionServers" list_decommissioned_region_servers(ListDecommissionedRegionServersRequest) -> ListDecommissionedRegionServersResponse;
        /// The names of all namespaces.
        "ListNamespaces" list_namespaces(ListNamespacesRequest) -> ListNamespacesResponse;
        /// Sets, changes or removes a quota.
        "SetQuota" set_quota(SetQuotaRequest) -> SetQuotaResponse;
        /// Throttles calls by quotas, or no longer.
        "SwitchRpcThrottle" switch_rpc_throttle(SwitchRpcThrottleRequest) -> SwitchRpcThrottleResponse;
        /// Whether calls are throttled by quotas.
        "IsRpcThrottleEnabled" is_rpc_throttle_enabled(IsRpcThrottleEnabledRequest) -> IsRpcThrottleEnabledResponse;
        /// Lets quotas be exceeded while servers have time to spare, or no longer.
        "SwitchExceedThrottleQuota" switch_exceed_throttle_quota(SwitchExceedThrottleQuotaRequest) -> SwitchExceedThrottleQuotaResponse;
        /// Permissions of users: refused as without HBase's AccessController.
        "Grant" grant(GrantRequest) -> GrantResponse;
        /// Permissions of users: refused as without HBase's AccessController.
        "Revoke" revoke(RevokeRequest) -> RevokeResponse;
        /// Permissions of users: refused as without HBase's AccessController.
        "GetUserPermissions" get_user_permissions(GetUserPermissionsRequest) -> GetUserPermissionsResponse;
        /// Permissions of users: refused as without HBase's AccessController.
        "HasUserPermissions" has_user_permissions(HasUserPermissionsRequest) -> HasUserPermissionsResponse;
        /// Begins to flush the regions of a table.
        "FlushTable" flush_table(FlushTableRequest) -> FlushTableResponse;
        /// Begins to split a region in two.
        "SplitRegion" split_region(SplitTableRegionRequest) -> SplitTableRegionResponse;
        /// Begins to merge regions into one.
        "MergeTableRegions" merge_table_regions(MergeTableRegionsRequest) -> MergeTableRegionsResponse;
        /// Moves a region to another server, or opens it anew.
        "MoveRegion" move_region(MoveRegionRequest) -> MoveRegionResponse;
        /// Opens a region.
        "AssignRegion" assign_region(AssignRegionRequest) -> AssignRegionResponse;
        /// Closes a region.
        "UnassignRegion" unassign_region(UnassignRegionRequest) -> UnassignRegionResponse;
        /// Allows or forbids splits or merges.
        "SetSplitOrMergeEnabled" set_split_or_merge_enabled(SetSplitOrMergeEnabledRequest) -> SetSplitOrMergeEnabledResponse;
        /// Tidies up behind splits and merges now.
        "RunCatalogScan" run_catalog_scan(RunCatalogScanRequest) -> RunCatalogScanResponse;
        /// Allows or forbids tidying up behind splits and merges.
        "EnableCatalogJanitor" enable_catalog_janitor(EnableCatalogJanitorRequest) -> EnableCatalogJanitorResponse;
        /// Removes files that nobody needs any more now.
        "RunCleanerChore" run_cleaner_chore(RunCleanerChoreRequest) -> RunCleanerChoreResponse;
        /// Allows or forbids removing files that nobody needs any more.
        "SetCleanerChoreRunning" set_cleaner_chore_running(SetCleanerChoreRunningRequest) -> SetCleanerChoreRunningResponse;
        /// Ends a procedure without success, if that is possible.
        "AbortProcedure" abort_procedure(AbortProcedureRequest) -> AbortProcedureResponse;
        /// Allows or forbids removing expired snapshots.
        "SwitchSnapshotCleanup" switch_snapshot_cleanup(SetSnapshotCleanupRequest) -> SetSnapshotCleanupResponse;
    }
    refused {
        "OfflineRegion" (OfflineRegionRequest) -> OfflineRegionResponse;
        "TruncateRegion" (TruncateRegionRequest) -> TruncateRegionResponse;
        "Balance" (BalanceRequest) -> BalanceResponse;
        "SetBalancerRunning" (SetBalancerRunningRequest) -> SetBalancerRunningResponse;
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
        "DecommissionRegionServers" (DecommissionRegionServersRequest) -> DecommissionRegionServersResponse;
        "RecommissionRegionServer" (RecommissionRegionServerRequest) -> RecommissionRegionServerResponse;
        "GetSpaceQuotaRegionSizes" (GetSpaceQuotaRegionSizesRequest) -> GetSpaceQuotaRegionSizesResponse;
        "GetQuotaStates" (GetQuotaStatesRequest) -> GetQuotaStatesResponse;
        "ClearDeadServers" (ClearDeadServersRequest) -> ClearDeadServersResponse;
        "GetLogEntries" (LogRequest) -> LogEntry;
        "ModifyTableStoreFileTracker" (ModifyTableStoreFileTrackerRequest) -> ModifyTableStoreFileTrackerResponse;
        "ModifyColumnStoreFileTracker" (ModifyColumnStoreFileTrackerRequest) -> ModifyColumnStoreFileTrackerResponse;
        "FlushMasterStore" (FlushMasterStoreRequest) -> FlushMasterStoreResponse;
    }
}
