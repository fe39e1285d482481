//! `RegionServerStatusService`: reports of a region server to the master.

use crate::service::service;

service! {
    /// Reports of a region server to the master.
    "RegionServerStatusService" RegionServerStatusService dispatch_region_server_status REGION_SERVER_STATUS_METHODS
    works {
        /// Reports that a server has started. The response contains settings that the server
        /// adopts.
        "RegionServerStartup" region_server_startup(RegionServerStartupRequest) -> RegionServerStartupResponse;
        /// The periodic report of a live server. Fails with `YouAreDeadException` if the server
        /// counts as dead.
        "RegionServerReport" region_server_report(RegionServerReportRequest) -> RegionServerReportResponse;
        /// Reports the fatal error of a server before it stops.
        "ReportRSFatalError" report_rs_fatal_error(ReportRsFatalErrorRequest) -> ReportRsFatalErrorResponse;
        /// Reports that regions were opened, failed to open, or were closed. When it returns,
        /// `hbase:meta` is up to date.
        "ReportRegionStateTransition" report_region_state_transition(ReportRegionStateTransitionRequest) -> ReportRegionStateTransitionResponse;
        /// Up to which sequence id the edits of a region are in files, by the last report of its
        /// server.
        "GetLastFlushedSequenceId" get_last_flushed_sequence_id(GetLastFlushedSequenceIdRequest) -> GetLastFlushedSequenceIdResponse;
        /// Reports that remote procedures have ended.
        "ReportProcedureDone" report_procedure_done(ReportProcedureDoneRequest) -> ReportProcedureDoneResponse;
        /// Some of the live region servers.
        "GetLiveRegionServers" get_live_region_servers(GetLiveRegionServersRequest) -> GetLiveRegionServersResponse;
    }
    refused {
        "ReportRegionSpaceUse" (RegionSpaceUseReportRequest) -> RegionSpaceUseReportResponse;
        "ReportFileArchival" (FileArchiveNotificationRequest) -> FileArchiveNotificationResponse;
    }
}
