//! The master's services: the calls of clients, tools and region servers.
//!
//! Each call is a short function in a file of this module. This file implements the service traits
//! with these functions.

mod admin;
mod alter;
mod assign;
mod chores;
mod cluster;
mod namespaces;
mod procedures;
mod quotas;
mod region_servers;
mod selection;
mod snapshots;
mod splits;
mod switches;
mod tables;

pub use admin::MasterAdmin;
pub(crate) use procedures::EXPECTED_TIMEOUT_MS;

use base::BoxFuture;
use proto::exception::{Answer, JavaException, class};
use wire::service::{MasterService, RegionServerStatusService};

use crate::master::Master;

/// Implements methods of a trait with functions that take the master and the request. A method that
/// is marked `initialized` returns `PleaseHoldException` until the master has finished starting;
/// clients then wait and retry.
macro_rules! answer {
    ($($how:ident $method:ident($request:ident) -> $response:ident = $function:path;)*) => {
        $(fn $method(&self, request: proto::$request) -> BoxFuture<'_, Answer<proto::$response>> {
            Box::pin(async move {
                answer!(@$how self);
                $function(self, request).await
            })
        })*
    };
    (@initialized $master:ident) => { $master.require_initialized()?; };
    (@always $master:ident) => {};
}

impl MasterService for Master {
    answer! {
        initialized get_schema_alter_status(GetSchemaAlterStatusRequest) -> GetSchemaAlterStatusResponse = alter::status;
        initialized get_table_descriptors(GetTableDescriptorsRequest) -> GetTableDescriptorsResponse = tables::descriptors;
        initialized list_table_descriptors_by_state(ListTableDescriptorsByStateRequest) -> ListTableDescriptorsByStateResponse = tables::descriptors_by_state;
        initialized get_table_names(GetTableNamesRequest) -> GetTableNamesResponse = tables::names;
        initialized list_table_names_by_state(ListTableNamesByStateRequest) -> ListTableNamesByStateResponse = tables::names_by_state;
        initialized get_cluster_status(GetClusterStatusRequest) -> GetClusterStatusResponse = cluster::status;
        initialized last_major_compaction(MajorCompactionTimestampRequest) -> MajorCompactionTimestampResponse = cluster::last_major_compaction;
        initialized last_major_compaction_of_region(MajorCompactionTimestampForRegionRequest) -> MajorCompactionTimestampResponse = cluster::last_major_compaction_of_region;
        always is_master_running(IsMasterRunningRequest) -> IsMasterRunningResponse = cluster::is_running;
        initialized delete_table(DeleteTableRequest) -> DeleteTableResponse = tables::delete;
        initialized add_column(AddColumnRequest) -> AddColumnResponse = alter::add_family;
        initialized delete_column(DeleteColumnRequest) -> DeleteColumnResponse = alter::delete_family;
        initialized modify_column(ModifyColumnRequest) -> ModifyColumnResponse = alter::modify_family;
        initialized modify_table(ModifyTableRequest) -> ModifyTableResponse = alter::modify;
        initialized truncate_table(TruncateTableRequest) -> TruncateTableResponse = tables::truncate;
        initialized enable_table(EnableTableRequest) -> EnableTableResponse = tables::enable;
        initialized disable_table(DisableTableRequest) -> DisableTableResponse = tables::disable;
        initialized create_table(CreateTableRequest) -> CreateTableResponse = tables::create;
        initialized shutdown(ShutdownRequest) -> ShutdownResponse = cluster::shutdown;
        initialized stop_master(StopMasterRequest) -> StopMasterResponse = cluster::stop_master;
        always is_master_in_maintenance_mode(IsInMaintenanceModeRequest) -> IsInMaintenanceModeResponse = switches::maintenance_mode;
        always is_balancer_enabled(IsBalancerEnabledRequest) -> IsBalancerEnabledResponse = switches::balancer;
        always is_split_or_merge_enabled(IsSplitOrMergeEnabledRequest) -> IsSplitOrMergeEnabledResponse = switches::split_or_merge;
        always is_normalizer_enabled(IsNormalizerEnabledRequest) -> IsNormalizerEnabledResponse = switches::normalizer;
        always is_catalog_janitor_enabled(IsCatalogJanitorEnabledRequest) -> IsCatalogJanitorEnabledResponse = chores::janitor_enabled;
        always is_cleaner_chore_enabled(IsCleanerChoreEnabledRequest) -> IsCleanerChoreEnabledResponse = chores::cleaner_enabled;
        always is_snapshot_cleanup_enabled(IsSnapshotCleanupEnabledRequest) -> IsSnapshotCleanupEnabledResponse = switches::snapshot_cleanup;
        initialized exec_procedure(ExecProcedureRequest) -> ExecProcedureResponse = procedures::exec;
        initialized is_procedure_done(IsProcedureDoneRequest) -> IsProcedureDoneResponse = procedures::is_done;
        initialized snapshot(SnapshotRequest) -> SnapshotResponse = snapshots::take;
        initialized get_completed_snapshots(GetCompletedSnapshotsRequest) -> GetCompletedSnapshotsResponse = snapshots::completed;
        initialized delete_snapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse = snapshots::delete;
        initialized is_snapshot_done(IsSnapshotDoneRequest) -> IsSnapshotDoneResponse = snapshots::is_done;
        initialized restore_snapshot(RestoreSnapshotRequest) -> RestoreSnapshotResponse = snapshots::restore;
        initialized create_namespace(CreateNamespaceRequest) -> CreateNamespaceResponse = namespaces::create;
        initialized modify_namespace(ModifyNamespaceRequest) -> ModifyNamespaceResponse = namespaces::modify;
        initialized delete_namespace(DeleteNamespaceRequest) -> DeleteNamespaceResponse = namespaces::delete;
        initialized get_namespace_descriptor(GetNamespaceDescriptorRequest) -> GetNamespaceDescriptorResponse = namespaces::descriptor;
        initialized list_namespace_descriptors(ListNamespaceDescriptorsRequest) -> ListNamespaceDescriptorsResponse = namespaces::descriptors;
        initialized list_table_descriptors_by_namespace(ListTableDescriptorsByNamespaceRequest) -> ListTableDescriptorsByNamespaceResponse = namespaces::tables;
        initialized list_table_names_by_namespace(ListTableNamesByNamespaceRequest) -> ListTableNamesByNamespaceResponse = namespaces::table_names;
        initialized get_table_state(GetTableStateRequest) -> GetTableStateResponse = tables::state;
        initialized get_procedure_result(GetProcedureResultRequest) -> GetProcedureResultResponse = procedures::result;
        always get_security_capabilities(SecurityCapabilitiesRequest) -> SecurityCapabilitiesResponse = cluster::security_capabilities;
        initialized get_procedures(GetProceduresRequest) -> GetProceduresResponse = procedures::list;
        initialized get_locks(GetLocksRequest) -> GetLocksResponse = procedures::locks;
        always list_decommissioned_region_servers(ListDecommissionedRegionServersRequest) -> ListDecommissionedRegionServersResponse = assign::decommissioned;
        initialized list_namespaces(ListNamespacesRequest) -> ListNamespacesResponse = namespaces::names;
        initialized set_quota(SetQuotaRequest) -> SetQuotaResponse = quotas::set;
        initialized switch_rpc_throttle(SwitchRpcThrottleRequest) -> SwitchRpcThrottleResponse = quotas::switch_throttling;
        initialized is_rpc_throttle_enabled(IsRpcThrottleEnabledRequest) -> IsRpcThrottleEnabledResponse = quotas::throttles;
        initialized switch_exceed_throttle_quota(SwitchExceedThrottleQuotaRequest) -> SwitchExceedThrottleQuotaResponse = quotas::switch_exceeding;
        always grant(GrantRequest) -> GrantResponse = quotas::grant;
        always revoke(RevokeRequest) -> RevokeResponse = quotas::revoke;
        always get_user_permissions(GetUserPermissionsRequest) -> GetUserPermissionsResponse = quotas::permissions;
        always has_user_permissions(HasUserPermissionsRequest) -> HasUserPermissionsResponse = quotas::has_permissions;
        initialized split_region(SplitTableRegionRequest) -> SplitTableRegionResponse = splits::split;
        initialized merge_table_regions(MergeTableRegionsRequest) -> MergeTableRegionsResponse = splits::merge;
        initialized move_region(MoveRegionRequest) -> MoveRegionResponse = assign::move_region;
        initialized decommission_region_servers(DecommissionRegionServersRequest) -> DecommissionRegionServersResponse = assign::decommission;
        initialized recommission_region_server(RecommissionRegionServerRequest) -> RecommissionRegionServerResponse = assign::recommission;
        initialized clear_dead_servers(ClearDeadServersRequest) -> ClearDeadServersResponse = cluster::clear_dead;
        initialized assign_region(AssignRegionRequest) -> AssignRegionResponse = assign::assign;
        initialized unassign_region(UnassignRegionRequest) -> UnassignRegionResponse = assign::unassign;
        initialized set_split_or_merge_enabled(SetSplitOrMergeEnabledRequest) -> SetSplitOrMergeEnabledResponse = switches::set_split_or_merge;
        initialized run_catalog_scan(RunCatalogScanRequest) -> RunCatalogScanResponse = chores::run_janitor;
        initialized enable_catalog_janitor(EnableCatalogJanitorRequest) -> EnableCatalogJanitorResponse = chores::enable_janitor;
        initialized run_cleaner_chore(RunCleanerChoreRequest) -> RunCleanerChoreResponse = chores::run_cleaner;
        initialized set_cleaner_chore_running(SetCleanerChoreRunningRequest) -> SetCleanerChoreRunningResponse = chores::enable_cleaner;
        initialized switch_snapshot_cleanup(SetSnapshotCleanupRequest) -> SetSnapshotCleanupResponse = switches::set_snapshot_cleanup;
        initialized abort_procedure(AbortProcedureRequest) -> AbortProcedureResponse = procedures::abort;
        initialized balance(BalanceRequest) -> BalanceResponse = switches::balance;
        initialized set_balancer_running(SetBalancerRunningRequest) -> SetBalancerRunningResponse = switches::set_balancer;
        initialized flush_table(FlushTableRequest) -> FlushTableResponse = tables::flush;
    }
}

impl RegionServerStatusService for Master {
    answer! {
        always region_server_startup(RegionServerStartupRequest) -> RegionServerStartupResponse = region_servers::startup;
        always region_server_report(RegionServerReportRequest) -> RegionServerReportResponse = region_servers::report;
        always report_rs_fatal_error(ReportRsFatalErrorRequest) -> ReportRsFatalErrorResponse = region_servers::fatal_error;
        always report_region_state_transition(ReportRegionStateTransitionRequest) -> ReportRegionStateTransitionResponse = region_servers::transition;
        always get_last_flushed_sequence_id(GetLastFlushedSequenceIdRequest) -> GetLastFlushedSequenceIdResponse = region_servers::last_flushed;
        always report_procedure_done(ReportProcedureDoneRequest) -> ReportProcedureDoneResponse = region_servers::procedure_done;
        always get_live_region_servers(GetLiveRegionServersRequest) -> GetLiveRegionServersResponse = region_servers::live;
    }
}

impl Master {
    /// Refuses calls that need tables until `hbase:meta` has been read.
    fn require_initialized(&self) -> Result<(), JavaException> {
        if self.is_initialized() {
            return Ok(());
        }
        Err(JavaException::new(class::PLEASE_HOLD, "Master is initializing"))
    }
}
