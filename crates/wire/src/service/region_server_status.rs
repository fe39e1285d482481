//! `RegionServerStatusService`: what a region server tells the master.

use crate::service::service;

service! {
    /// What a region server tells the master.
    "RegionServerStatusService" RegionServerStatusService dispatch_region_server_status REGION_SERVER_STATUS_METHODS
    works {
        /// A server has started; answers with settings that it takes over.
        "RegionServerStartup" region_server_startup(RegionServerStartupRequest) -> RegionServerStartupResponse;
        /// The regular report of a living server. Answers `YouAreDeadException` to one that counts as dead.
        "RegionServerReport" region_server_report(RegionServerReportRequest) -> RegionServerReportResponse;
        /// The last words of a server.
        "ReportRSFatalError" report_rs_fatal_error(ReportRsFatalErrorRequest) -> ReportRsFatalErrorResponse;
        /// Regions were opened, failed to open, or were closed. Once answered, hbase:meta says so.
        "ReportRegionStateTransition" report_region_state_transition(ReportRegionStateTransitionRequest) -> ReportRegionStateTransitionResponse;
    }
    refused {
        "GetLastFlushedSequenceId" (GetLastFlushedSequenceIdRequest) -> GetLastFlushedSequenceIdResponse;
        "ReportRegionSpaceUse" (RegionSpaceUseReportRequest) -> RegionSpaceUseReportResponse;
        "ReportProcedureDone" (ReportProcedureDoneRequest) -> ReportProcedureDoneResponse;
        "ReportFileArchival" (FileArchiveNotificationRequest) -> FileArchiveNotificationResponse;
        "GetLiveRegionServers" (GetLiveRegionServersRequest) -> GetLiveRegionServersResponse;
    }
}
