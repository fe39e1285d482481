//! `AdminService`: the calls that the master and administration tools make to this server.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use cell::codec::Codec;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use engine::Region;
use engine::region::CompactionKind;
use fs::FilePath;
use proto::exception::{Answer, JavaException};
use proto::open_region_response::RegionOpeningState;
use proto::slow_log_response_request::LogType;
use wire::service::{AdminService, SWITCH_RPC_THROTTLE};

use crate::errors::java_exception;
use crate::load;
use crate::opening::{CloseOrder, OpenOrder};
use crate::replication_sink;
use crate::schedule::compactions::Pool;
use crate::server::RegionServer;

/// Implements the service for a region server.
pub struct Admin(pub Arc<RegionServer>);

impl Admin {
    /// Counts a call that HBase includes in its request count.
    fn count(&self) {
        self.0.admin_requests().calls.increment();
    }

    fn find(&self, region: &proto::RegionSpecifier) -> Answer<Arc<Region>> {
        self.0.regions().find(&region.value)
    }

    async fn region_info(
        &self,
        request: proto::GetRegionInfoRequest,
    ) -> Answer<proto::GetRegionInfoResponse> {
        let region = self.find(&request.region)?;
        let state = self.0.schedule().compactions().state(&region);
        let best_split_row = match request.best_split_row() {
            true => best_split_row(&region).await.map_err(|error| java_exception(&error))?,
            false => None,
        };
        Ok(proto::GetRegionInfoResponse {
            region_info: region.info().into(),
            compaction_state: request.compaction_state().then_some(state as i32),
            splittable: Some(region.is_splittable()),
            mergeable: Some(region.is_mergeable()),
            best_split_row,
        })
    }

    async fn store_files(&self, request: proto::GetStoreFileRequest) -> Answer<proto::GetStoreFileResponse> {
        let region = self.find(&request.region)?;
        let files = region.store_files_of(&request.family).map_err(|error| java_exception(&error))?;
        Ok(file_list(&files))
    }

    /// Refuses a call that was addressed to an earlier server at this address, as HBase does.
    fn check_start_code(&self, start_code: Option<u64>) -> Answer<()> {
        let own = self.0.name();
        match start_code {
            Some(other) if other != own.start_code => Err(JavaException::do_not_retry(format!(
                "This RPC was intended for a different server with startcode: {other}, this server is: {own}"
            ))),
            _ => Ok(()),
        }
    }

    fn open(&self, request: &proto::OpenRegionRequest) -> Answer<proto::OpenRegionResponse> {
        self.check_start_code(request.server_start_code)?;
        let mut opening_state = Vec::new();
        for open in &request.open_info {
            let dead_servers = open.grampus_dead_servers.iter().map(ServerName::try_from);
            let dead_servers = dead_servers.collect::<Result<Vec<_>, _>>();
            let dead_servers =
                dead_servers.map_err(|error| JavaException::do_not_retry(error.to_string()))?;
            let order = OpenOrder { id: open.open_proc_id(), dead_servers };
            self.0.begin_open(region_info(&open.region)?, order);
            opening_state.push(RegionOpeningState::Opened as i32);
        }
        Ok(proto::OpenRegionResponse { opening_state })
    }

    fn close(&self, request: &proto::CloseRegionRequest) -> Answer<proto::CloseRegionResponse> {
        self.check_start_code(request.server_start_code)?;
        let encoded = cell::region::encoded_name_of(&request.region.value)
            .ok_or_else(|| JavaException::do_not_retry("not a region's name"))?;
        let info = request.grampus_region_info.as_ref().map(region_info).transpose()?;
        let destination = request.destination_server.as_ref().map(ServerName::try_from).transpose();
        let destination = destination.map_err(|error| JavaException::do_not_retry(error.to_string()))?;
        let order = CloseOrder { id: request.close_proc_id(), info, destination };
        self.0.begin_close(encoded, order);
        Ok(proto::CloseRegionResponse { closed: true })
    }

    async fn flush(&self, request: proto::FlushRegionRequest) -> Answer<proto::FlushRegionResponse> {
        let region = self.find(&request.region)?;
        if request.if_older_than_ts.is_some_and(|ts| region.metrics().last_flush_ms > ts) {
            return Ok(flush_response(&region, false));
        }
        let flushed = match &request.family {
            Some(family) => {
                region.flush_families(std::slice::from_ref(family)).await.map(|flushed| (flushed, None))
            }
            None => region.flush_and_list_files().await.map(|(flushed, files)| (flushed, Some(files))),
        };
        let (flushed, files) = flushed.map_err(|error| java_exception(&error))?;
        // The master flushes tables with flush markers, and such a flush requests no compaction, as
        // in HBase.
        if !request.write_flush_wal_marker() {
            region.request_compactions();
        }
        let files = files.filter(|_| request.grampus_list_files());
        Ok(proto::FlushRegionResponse {
            grampus_store_files: files.as_deref().map(file_list),
            ..flush_response(&region, flushed != engine::region::Flushed::Nothing)
        })
    }

    async fn compact(&self, request: proto::CompactRegionRequest) -> Answer<proto::CompactRegionResponse> {
        let region = self.find(&request.region)?;
        let kind = if request.major() { CompactionKind::Major } else { CompactionKind::Minor };
        let requested =
            self.0.schedule().compactions().request_by_user(&region, request.family.as_deref(), kind).await;
        requested.map_err(|error| java_exception(&error))?;
        Ok(proto::CompactRegionResponse {})
    }

    fn clear_queues(
        &self,
        request: &proto::ClearCompactionQueuesRequest,
    ) -> Answer<proto::ClearCompactionQueuesResponse> {
        for name in &request.queue_name {
            let pool =
                Pool::of_name(name).ok_or_else(|| JavaException::io(format!("Unknown queue name {name}")))?;
            self.0.schedule().compactions().clear(pool);
        }
        Ok(proto::ClearCompactionQueuesResponse {})
    }

    async fn roll(&self) -> Answer<proto::RollWalWriterResponse> {
        self.0.roll_logs().await.map_err(|error| JavaException::io(error.to_string()))?;
        Ok(proto::RollWalWriterResponse::default())
    }

    async fn region_loads(
        &self,
        request: proto::GetRegionLoadRequest,
    ) -> Answer<proto::GetRegionLoadResponse> {
        let table = request.table_name.as_ref().map(TableName::try_from).transpose();
        let table = table.map_err(|error| JavaException::do_not_retry(error.to_string()))?;
        let regions = self.0.regions().all();
        let wanted = regions.iter().filter(|region| load::is_in_table(region.info(), table.as_ref()));
        let load = |region| load::region_load(region, self.0.schedule(), self.0.localities());
        Ok(proto::GetRegionLoadResponse { region_loads: wanted.map(|region| load(region)).collect() })
    }

    async fn execute(
        &self,
        request: proto::ExecuteProceduresRequest,
    ) -> Answer<proto::ExecuteProceduresResponse> {
        let orders = request.open_region.iter().map(|open| open.initiating_master_active_time);
        let orders =
            orders.chain(request.close_region.iter().map(|close| close.initiating_master_active_time));
        let _master = match orders.flatten().min() {
            Some(active_since_ms) => Some(self.0.orders().check_master(active_since_ms).await?),
            None => None,
        };
        for procedure in &request.proc {
            if procedure.proc_class != SWITCH_RPC_THROTTLE {
                return Err(JavaException::unsupported("remote procedures"));
            }
            self.0.read_quotas().await.map_err(|error| java_exception(&error))?;
        }
        for open in &request.open_region {
            self.open(open)?;
        }
        for close in &request.close_region {
            self.close(close)?;
        }
        Ok(proto::ExecuteProceduresResponse {})
    }
}

/// The split point of a region. Flushes the region if its files alone do not yield one.
async fn best_split_row(region: &Region) -> Result<Option<Bytes>, engine::Error> {
    match region.split_point().await? {
        None => {
            region.flush().await?;
            region.split_point().await
        }
        row => Ok(row),
    }
}

fn flush_response(region: &Region, flushed: bool) -> proto::FlushRegionResponse {
    proto::FlushRegionResponse {
        last_flush_time: region.metrics().last_flush_ms,
        flushed: Some(flushed),
        wrote_flush_wal_marker: Some(flushed),
        grampus_store_files: None,
    }
}

fn file_list(files: &[FilePath]) -> proto::GetStoreFileResponse {
    proto::GetStoreFileResponse { store_file: files.iter().map(ToString::to_string).collect() }
}

fn region_info(message: &proto::RegionInfo) -> Answer<RegionInfo> {
    RegionInfo::try_from(message).map_err(|error| JavaException::do_not_retry(error.to_string()))
}

/// A future that is ready immediately.
fn ready<T: Send + 'static>(answer: Answer<T>) -> BoxFuture<'static, Answer<T>> {
    Box::pin(std::future::ready(answer))
}

impl AdminService for Admin {
    fn get_region_info(
        &self,
        request: proto::GetRegionInfoRequest,
    ) -> BoxFuture<'_, Answer<proto::GetRegionInfoResponse>> {
        self.count();
        Box::pin(self.region_info(request))
    }

    fn get_store_file(
        &self,
        request: proto::GetStoreFileRequest,
    ) -> BoxFuture<'_, Answer<proto::GetStoreFileResponse>> {
        self.count();
        Box::pin(self.store_files(request))
    }

    fn get_online_region(
        &self,
        _: proto::GetOnlineRegionRequest,
    ) -> BoxFuture<'_, Answer<proto::GetOnlineRegionResponse>> {
        self.count();
        let region_info = self.0.regions().all().iter().map(|region| region.info().into()).collect();
        ready(Ok(proto::GetOnlineRegionResponse { region_info }))
    }

    fn open_region(
        &self,
        request: proto::OpenRegionRequest,
    ) -> BoxFuture<'_, Answer<proto::OpenRegionResponse>> {
        self.count();
        ready(self.open(&request))
    }

    fn warmup_region(
        &self,
        _: proto::WarmupRegionRequest,
    ) -> BoxFuture<'_, Answer<proto::WarmupRegionResponse>> {
        // Only a hint; opening a region is fast without it.
        ready(Ok(proto::WarmupRegionResponse {}))
    }

    fn close_region(
        &self,
        request: proto::CloseRegionRequest,
    ) -> BoxFuture<'_, Answer<proto::CloseRegionResponse>> {
        self.count();
        ready(self.close(&request))
    }

    fn flush_region(
        &self,
        request: proto::FlushRegionRequest,
    ) -> BoxFuture<'_, Answer<proto::FlushRegionResponse>> {
        self.count();
        Box::pin(self.flush(request))
    }

    fn compact_region(
        &self,
        request: proto::CompactRegionRequest,
    ) -> BoxFuture<'_, Answer<proto::CompactRegionResponse>> {
        self.count();
        Box::pin(self.compact(request))
    }

    fn compaction_switch(
        &self,
        request: proto::CompactionSwitchRequest,
    ) -> BoxFuture<'_, Answer<proto::CompactionSwitchResponse>> {
        let prev_state = self.0.schedule().compactions().switch(request.enabled);
        ready(Ok(proto::CompactionSwitchResponse { prev_state }))
    }

    fn clear_compaction_queues(
        &self,
        request: proto::ClearCompactionQueuesRequest,
    ) -> BoxFuture<'_, Answer<proto::ClearCompactionQueuesResponse>> {
        ready(self.clear_queues(&request))
    }

    fn roll_wal_writer(
        &self,
        _: proto::RollWalWriterRequest,
    ) -> BoxFuture<'_, Answer<proto::RollWalWriterResponse>> {
        self.count();
        Box::pin(self.roll())
    }

    fn get_server_info(
        &self,
        _: proto::GetServerInfoRequest,
    ) -> BoxFuture<'_, Answer<proto::GetServerInfoResponse>> {
        self.count();
        let server_info = proto::ServerInfo {
            server_name: self.0.name().into(),
            webui_port: Some(u32::from(self.0.info_port())),
        };
        ready(Ok(proto::GetServerInfoResponse { server_info }))
    }

    fn stop_server(
        &self,
        request: proto::StopServerRequest,
    ) -> BoxFuture<'_, Answer<proto::StopServerResponse>> {
        self.0.request_stop(&request.reason);
        ready(Ok(proto::StopServerResponse {}))
    }

    fn update_configuration(
        &self,
        _: proto::UpdateConfigurationRequest,
    ) -> BoxFuture<'_, Answer<proto::UpdateConfigurationResponse>> {
        // Every option still requires a restart.
        ready(Ok(proto::UpdateConfigurationResponse {}))
    }

    fn get_slow_log_responses(
        &self,
        request: proto::SlowLogResponseRequest,
    ) -> BoxFuture<'_, Answer<proto::SlowLogResponses>> {
        ready(Ok(self.0.slow_log().responses(&request)))
    }

    fn get_large_log_responses(
        &self,
        request: proto::SlowLogResponseRequest,
    ) -> BoxFuture<'_, Answer<proto::SlowLogResponses>> {
        let request = proto::SlowLogResponseRequest { log_type: Some(LogType::LargeLog as i32), ..request };
        ready(Ok(self.0.slow_log().responses(&request)))
    }

    fn clear_slow_logs_responses(
        &self,
        _: proto::ClearSlowLogResponseRequest,
    ) -> BoxFuture<'_, Answer<proto::ClearSlowLogResponses>> {
        ready(Ok(proto::ClearSlowLogResponses { is_cleaned: self.0.slow_log().clear() }))
    }

    fn get_log_entries(&self, request: proto::LogRequest) -> BoxFuture<'_, Answer<proto::LogEntry>> {
        ready(self.0.slow_log().entries(&request))
    }

    fn replicate_wal_entry(
        &self,
        request: proto::ReplicateWalEntryRequest,
    ) -> BoxFuture<'_, Answer<proto::ReplicateWalEntryResponse>> {
        Box::pin(async move {
            replication_sink::replicate(&self.0, &request, Bytes::new(), Codec::KeyValueWithTags).await
        })
    }

    fn get_region_load(
        &self,
        request: proto::GetRegionLoadRequest,
    ) -> BoxFuture<'_, Answer<proto::GetRegionLoadResponse>> {
        Box::pin(self.region_loads(request))
    }

    fn execute_procedures(
        &self,
        request: proto::ExecuteProceduresRequest,
    ) -> BoxFuture<'_, Answer<proto::ExecuteProceduresResponse>> {
        Box::pin(self.execute(request))
    }
}
