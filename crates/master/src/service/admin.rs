//! `AdminService` on the master's port. HBase's masters serve it, too: clients send
//! `Admin.updateConfiguration` and compactions of MOB files to it.
//!
//! A master has no user regions, so calls for regions get the exception of a server that does not
//! have the region.

use std::sync::Arc;

use base::BoxFuture;
use cell::region::RegionInfo;
use cell::schema::TableName;
use proto::exception::{Answer, JavaException, class};
use proto::get_region_info_response::CompactionState;
use wire::service::AdminService;

use crate::master::Master;
use crate::refusal;

/// The start key of the pseudo region with which clients name the MOB files of a table.
const MOB_START_KEY: &[u8] = b".mob";

/// Implements `AdminService` for a master.
pub struct MasterAdmin(pub Arc<Master>);

/// Implements methods with functions that take the master and the request.
macro_rules! answer {
    ($($method:ident($request:ident) -> $response:ident = $function:expr;)*) => {
        $(fn $method(&self, request: proto::$request) -> BoxFuture<'_, Answer<proto::$response>> {
            let answer: Answer<proto::$response> = $function(&self.0, request);
            Box::pin(std::future::ready(answer))
        })*
    };
}

impl AdminService for MasterAdmin {
    answer! {
        get_region_info(GetRegionInfoRequest) -> GetRegionInfoResponse = region_info;
        get_store_file(GetStoreFileRequest) -> GetStoreFileResponse =
            |master, request: proto::GetStoreFileRequest| Err(not_here(master, &request.region));
        get_online_region(GetOnlineRegionRequest) -> GetOnlineRegionResponse =
            |_, _| Ok(proto::GetOnlineRegionResponse::default());
        open_region(OpenRegionRequest) -> OpenRegionResponse = |_, _| Err(unsupported("OpenRegion"));
        warmup_region(WarmupRegionRequest) -> WarmupRegionResponse = |_, _| Err(unsupported("WarmupRegion"));
        close_region(CloseRegionRequest) -> CloseRegionResponse =
            |master, request: proto::CloseRegionRequest| Err(not_here(master, &request.region));
        flush_region(FlushRegionRequest) -> FlushRegionResponse =
            |master, request: proto::FlushRegionRequest| Err(not_here(master, &request.region));
        compact_region(CompactRegionRequest) -> CompactRegionResponse =
            |master, request: proto::CompactRegionRequest| Err(not_here(master, &request.region));
        compaction_switch(CompactionSwitchRequest) -> CompactionSwitchResponse =
            |_, _| Err(unsupported("CompactionSwitch"));
        clear_compaction_queues(ClearCompactionQueuesRequest) -> ClearCompactionQueuesResponse =
            |_, _| Err(unsupported("ClearCompactionQueues"));
        roll_wal_writer(RollWalWriterRequest) -> RollWalWriterResponse =
            |_, _| Err(JavaException::io("a master has no write-ahead log for regions of tables"));
        replicate_wal_entry(ReplicateWalEntryRequest) -> ReplicateWalEntryResponse =
            |_, _| Err(unsupported("ReplicateWALEntry"));
        get_server_info(GetServerInfoRequest) -> GetServerInfoResponse = server_info;
        stop_server(StopServerRequest) -> StopServerResponse = stop;
        update_configuration(UpdateConfigurationRequest) -> UpdateConfigurationResponse =
            // Every option of a master requires a restart.
            |_, _| Ok(proto::UpdateConfigurationResponse {});
        get_region_load(GetRegionLoadRequest) -> GetRegionLoadResponse =
            |_, _| Ok(proto::GetRegionLoadResponse::default());
        execute_procedures(ExecuteProceduresRequest) -> ExecuteProceduresResponse =
            |_, _| Err(unsupported("ExecuteProcedures"));
        get_slow_log_responses(SlowLogResponseRequest) -> SlowLogResponses =
            |_, _| Ok(proto::SlowLogResponses::default());
        get_large_log_responses(SlowLogResponseRequest) -> SlowLogResponses =
            |_, _| Ok(proto::SlowLogResponses::default());
        get_log_entries(LogRequest) -> LogEntry = |_, _| Err(unsupported("GetLogEntries"));
        clear_slow_logs_responses(ClearSlowLogResponseRequest) -> ClearSlowLogResponses =
            |_, _| Ok(proto::ClearSlowLogResponses { is_cleaned: true });
    }
}

/// The master never has a table's region. For the pseudo region of MOB files it returns a state,
/// because none is compacted.
fn region_info(
    master: &Master,
    request: proto::GetRegionInfoRequest,
) -> Answer<proto::GetRegionInfoResponse> {
    let Some(table) = mob_table(&request.region.value) else {
        return Err(not_here(master, &request.region));
    };
    let region = RegionInfo::new(table, MOB_START_KEY.into(), "".into(), 0);
    Ok(proto::GetRegionInfoResponse {
        region_info: (&region).into(),
        compaction_state: request.compaction_state().then_some(CompactionState::None as i32),
        ..proto::GetRegionInfoResponse::default()
    })
}

/// The table whose MOB files a region name denotes.
fn mob_table(region_name: &[u8]) -> Option<TableName> {
    let text = std::str::from_utf8(region_name).ok()?;
    let (table, rest) = text.split_once(',')?;
    rest.starts_with(".mob,").then(|| TableName::parse(table).ok())?
}

fn server_info(master: &Master, _: proto::GetServerInfoRequest) -> Answer<proto::GetServerInfoResponse> {
    let webui_port = u32::try_from(master.info_port()).ok();
    let server_info = proto::ServerInfo { server_name: master.server_name().into(), webui_port };
    Ok(proto::GetServerInfoResponse { server_info })
}

fn stop(master: &Master, request: proto::StopServerRequest) -> Answer<proto::StopServerResponse> {
    master.request_stop(&request.reason);
    Ok(proto::StopServerResponse {})
}

fn not_here(master: &Master, region: &proto::RegionSpecifier) -> JavaException {
    let message = format!("{} is not online on {}", refusal::printable(&region.value), master.server_name());
    JavaException::new(class::NOT_SERVING_REGION, message)
}

fn unsupported(method: &str) -> JavaException {
    JavaException::do_not_retry(format!("{method} is not a method of a master: send it to a region server"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_of_mob_files_is_known_by_its_start_key() {
        let table = |name: &str| mob_table(name.as_bytes()).map(|table| table.to_string());
        assert_eq!(table("n:t,.mob,0.0123456789abcdef."), Some("n:t".into()));
        assert_eq!(table("t,a,0.0123456789abcdef."), None);
        assert_eq!(table("t"), None);
    }
}
