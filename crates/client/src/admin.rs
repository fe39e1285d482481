//! Administration of tables and the cluster, by calls to the master and to region servers.
//!
//! The master answers a table change with the id of a procedure. The client then polls until the
//! procedure has ended.

mod namespaces;
mod procedures;
mod regions;
mod replication;
mod schema;
mod servers;
mod snapshots;

use std::sync::Arc;

use bytes::Bytes;
use cell::EndKey;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{TableDescriptor, TableName};
use prost::Message;
use proto::exception::JavaException;
use proto::get_procedure_result_response::State;
use proto::get_region_info_response::CompactionState;
use wire::convert;
use wire::meta::TableState;

use crate::Client;
use crate::connections::{HIGH_PRIORITY, OutgoingCall};
use crate::error::{Error, Reaction, Result};
use crate::locations::{Location, Position};
use crate::retry::{Retry, backoff};

/// Administration of a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Admin {
    client: Client,
}

/// State of a cluster, as reported by its master.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterStatus {
    /// Version reported by the servers.
    pub version: String,
    /// The cluster's id.
    pub cluster_id: String,
    /// The active master.
    pub master: Option<ServerName>,
    /// Standby masters.
    pub backup_masters: Vec<ServerName>,
    /// Live region servers.
    pub servers: Vec<ServerStatus>,
    /// Dead region servers.
    pub dead_servers: Vec<ServerName>,
    /// Whether the automatic balancer is enabled.
    pub balancer_on: Option<bool>,
    /// Number of regions in transition.
    pub regions_in_transition: usize,
}

/// State of a region server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    /// The server.
    pub server: ServerName,
    /// Requests per second since the last report.
    pub requests_per_second: u64,
    /// Requests since the server started.
    pub requests: u64,
    /// Heap in use, MiB.
    pub used_heap_mb: u32,
    /// Maximum heap, MiB.
    pub max_heap_mb: u32,
    /// Its regions, as in the protobuf message.
    pub regions: Vec<proto::RegionLoad>,
    /// Its queues of replication, as in the protobuf message.
    pub replication_sources: Vec<proto::ReplicationLoadSource>,
}

impl Admin {
    pub(crate) fn new(client: Client) -> Admin {
        Admin { client }
    }

    /// Creates a table, with one region for each range between `split_keys` (sorted, without
    /// duplicates). The table is ready when this returns.
    ///
    /// # Errors
    /// [`Error`]; server exceptions such as `TableExistsException` are [`Error::Remote`].
    pub async fn create_table(&self, table: &TableDescriptor, split_keys: &[Bytes]) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::CreateTableRequest {
            table_schema: table.into(),
            split_keys: split_keys.to_vec(),
            nonce_group,
            nonce,
        };
        let answer: proto::CreateTableResponse = self.call_master("CreateTable", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Deletes a disabled table.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_table(&self, table: &TableName) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::DeleteTableRequest { table_name: table.into(), nonce_group, nonce };
        let answer: proto::DeleteTableResponse = self.call_master("DeleteTable", &request).await?;
        self.wait_for(answer.proc_id).await?;
        self.client.shared.locations.forget_table(table);
        Ok(())
    }

    /// Enables a disabled table: opens its regions.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enable_table(&self, table: &TableName) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::EnableTableRequest { table_name: table.into(), nonce_group, nonce };
        let answer: proto::EnableTableResponse = self.call_master("EnableTable", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Disables a table: closes its regions.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn disable_table(&self, table: &TableName) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::DisableTableRequest { table_name: table.into(), nonce_group, nonce };
        let answer: proto::DisableTableResponse = self.call_master("DisableTable", &request).await?;
        self.wait_for(answer.proc_id).await?;
        self.client.shared.locations.forget_table(table);
        Ok(())
    }

    /// Deletes all rows of a disabled table, and enables it. The table keeps its split keys or
    /// becomes one region.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn truncate_table(&self, table: &TableName, preserve_splits: bool) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::TruncateTableRequest {
            table_name: table.into(),
            preserve_splits: Some(preserve_splits),
            nonce_group,
            nonce,
        };
        let answer: proto::TruncateTableResponse = self.call_master("truncateTable", &request).await?;
        self.wait_for(answer.proc_id).await?;
        self.client.shared.locations.forget_table(table);
        Ok(())
    }

    /// A table's descriptor.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and others.
    pub async fn describe(&self, table: &TableName) -> Result<TableDescriptor> {
        let request =
            proto::GetTableDescriptorsRequest { table_names: vec![table.into()], ..Default::default() };
        let found = self.descriptors(&request).await?;
        found.into_iter().next().ok_or_else(|| Error::TableNotFound(table.clone()))
    }

    /// The descriptors of all tables, or of those whose full name matches `regex`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_descriptors(
        &self,
        regex: Option<&str>,
        with_system: bool,
    ) -> Result<Vec<TableDescriptor>> {
        let request = proto::GetTableDescriptorsRequest {
            regex: regex.map(str::to_string),
            include_sys_tables: Some(with_system),
            ..Default::default()
        };
        self.descriptors(&request).await
    }

    async fn descriptors(&self, request: &proto::GetTableDescriptorsRequest) -> Result<Vec<TableDescriptor>> {
        let answer: proto::GetTableDescriptorsResponse =
            self.call_master("GetTableDescriptors", request).await?;
        let convert = |schema: &proto::TableSchema| TableDescriptor::try_from(schema).map_err(malformed);
        answer.table_schema.iter().map(convert).collect()
    }

    /// The names of all tables, or of those whose full name matches `regex`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_tables(&self, regex: Option<&str>, with_system: bool) -> Result<Vec<TableName>> {
        let request = proto::GetTableNamesRequest {
            regex: regex.map(str::to_string),
            include_sys_tables: Some(with_system),
            namespace: None,
        };
        let answer: proto::GetTableNamesResponse = self.call_master("GetTableNames", &request).await?;
        answer.table_names.iter().map(|name| TableName::try_from(name).map_err(malformed)).collect()
    }

    /// Whether the table exists.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn table_exists(&self, table: &TableName) -> Result<bool> {
        Ok(table.is_meta() || self.table_state(table).await?.is_some())
    }

    /// Whether a table is enabled.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and others.
    pub async fn is_enabled(&self, table: &TableName) -> Result<bool> {
        match self.table_state(table).await? {
            Some(state) => Ok(state == TableState::Enabled),
            None => Err(Error::TableNotFound(table.clone())),
        }
    }

    /// A table's state, from `hbase:meta`; `None` if there is no such table.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn table_state(&self, table: &TableName) -> Result<Option<TableState>> {
        if table.is_meta() {
            return Ok(Some(TableState::Enabled));
        }
        let mut retry = Retry::new(self.client.env(), self.client.options());
        loop {
            match self.client.table_state(table).await {
                Ok(state) => return Ok(state),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    /// Flushes the memstores of a table's regions. The flush is complete when this returns.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn flush(&self, table: &TableName) -> Result<()> {
        self.flush_stores(table, None).await
    }

    /// Flushes the memstores of one family of a table, or of all families. The flush is complete
    /// when this returns.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn flush_stores(&self, table: &TableName, family: Option<&Bytes>) -> Result<()> {
        self.at_regions(table, "FlushRegion", |region| proto::FlushRegionRequest {
            region: convert::region_specifier(region),
            family: family.cloned(),
            ..Default::default()
        })
        .await
    }

    /// Requests compaction of a table's regions, of all files if `major`. Does not wait for the
    /// compaction.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn compact(&self, table: &TableName, major: bool) -> Result<()> {
        self.compact_stores(table, None, major).await
    }

    /// Like [`compact`](Self::compact), for one family of a table, or for all families.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn compact_stores(&self, table: &TableName, family: Option<&Bytes>, major: bool) -> Result<()> {
        self.at_regions(table, "CompactRegion", |region| proto::CompactRegionRequest {
            region: convert::region_specifier(region),
            major: Some(major),
            family: family.cloned(),
        })
        .await
    }

    /// Requests compaction of one region, of all files if `major`. Does not wait for it. If the
    /// region was split, its daughters are compacted.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn compact_region(&self, region: &RegionInfo, major: bool) -> Result<()> {
        let mut retry = Retry::new(self.client.env(), self.client.options());
        let position = Position::At(region.start_key.clone());
        let location = self.client.locate_opened(&region.table, &position, &mut retry).await?;
        let end_key = region.end_key.clone();
        self.at_region_and_daughters(location, end_key, "CompactRegion", &|region| {
            proto::CompactRegionRequest {
                region: convert::region_specifier(region),
                major: Some(major),
                family: None,
            }
        })
        .await
    }

    /// Calls the server of each region of a table. Regions that move during the call are located
    /// again.
    async fn at_regions<M: Message>(
        &self,
        table: &TableName,
        method: &'static str,
        request: impl Fn(&RegionInfo) -> M,
    ) -> Result<()> {
        let regions = self.client.table(table.clone()).regions().await?;
        if regions.is_empty() || self.table_state(table).await? != Some(TableState::Enabled) {
            return Err(Error::TableNotEnabled(table.clone()));
        }
        for location in regions {
            let end_key = location.region.end_key.clone();
            self.at_region_and_daughters(location, end_key, method, &request).await?;
        }
        Ok(())
    }

    /// Calls the server of a region that ended at `end_key`. If the region was split in the
    /// meantime, calls the servers of its daughters.
    async fn at_region_and_daughters<M: Message>(
        &self,
        mut location: Arc<Location>,
        end_key: Bytes,
        method: &'static str,
        request: &impl Fn(&RegionInfo) -> M,
    ) -> Result<()> {
        let table = location.region.table.clone();
        loop {
            // The responses to these calls contain no data.
            let (region, _): (RegionInfo, proto::EmptyMsg) =
                self.at_region(location, method, request).await?;
            if EndKey(&region.end_key) >= EndKey(&end_key) {
                return Ok(());
            }
            let mut retry = Retry::new(self.client.env(), self.client.options());
            let position = Position::At(region.end_key);
            location = self.client.locate_opened(&table, &position, &mut retry).await?;
        }
    }

    /// Calls the server of the region that contains the first row of `location`'s region. Returns
    /// that region and the response.
    async fn at_region<M: Message, R: Message + Default>(
        &self,
        mut location: Arc<Location>,
        method: &'static str,
        request: impl Fn(&RegionInfo) -> M,
    ) -> Result<(RegionInfo, R)> {
        let mut retry = Retry::new(self.client.env(), self.client.options());
        loop {
            let message = request(&location.region);
            let call = OutgoingCall {
                priority: HIGH_PRIORITY,
                ..OutgoingCall::new("AdminService", method, &message)
            };
            let error = match self.client.call_region(&location, call).await {
                Ok((answer, _)) => return Ok((location.region.clone(), answer)),
                Err(error) => error,
            };
            retry.pause(error).await?;
            let RegionInfo { table, start_key, .. } = location.region.clone();
            location = self.client.locate_opened(&table, &Position::At(start_key), &mut retry).await?;
        }
    }

    /// Whether a compaction of a table's regions is running or queued.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn is_compacting(&self, table: &TableName) -> Result<bool> {
        for location in self.client.table(table.clone()).regions().await? {
            let request = |region: &RegionInfo| proto::GetRegionInfoRequest {
                region: convert::region_specifier(region),
                compaction_state: Some(true),
                best_split_row: None,
            };
            let (_, answer): (_, proto::GetRegionInfoResponse) =
                self.at_region(location, "GetRegionInfo", request).await?;
            if answer.compaction_state() != CompactionState::None {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The regions that are opening, closing or cannot be opened, as reported by the master.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn regions_in_transition(&self) -> Result<Vec<proto::RegionState>> {
        let options = vec![proto::Option::RegionsInTransition as i32];
        let request = proto::GetClusterStatusRequest { options };
        let answer: proto::GetClusterStatusResponse = self.call_master("GetClusterStatus", &request).await?;
        Ok(answer
            .cluster_status
            .regions_in_transition
            .into_iter()
            .map(|region| region.region_state)
            .collect())
    }

    /// State of the cluster.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cluster_status(&self) -> Result<ClusterStatus> {
        let request = proto::GetClusterStatusRequest::default();
        let answer: proto::GetClusterStatusResponse = self.call_master("GetClusterStatus", &request).await?;
        ClusterStatus::from_message(answer.cluster_status)
    }

    /// Calls the active master, with retries.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn call_master<M: Message, R: Message + Default>(
        &self,
        method: &'static str,
        request: &M,
    ) -> Result<R> {
        let mut retry = Retry::new(self.client.env(), self.client.options());
        loop {
            match self.try_master(method, request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    async fn try_master<M: Message, R: Message + Default>(
        &self,
        method: &'static str,
        request: &M,
    ) -> Result<R> {
        // Located for each call: such calls are rare, and the active master may have changed.
        let master = self.client.shared.registry.master(self.client.env(), self.client.connections()).await?;
        let call = OutgoingCall::new("MasterService", method, request);
        let (answer, _) = self.client.connections().call(&master.host, master.port, call).await?;
        Ok(answer)
    }

    /// Polls a procedure until it has ended. A master that returns no id has completed the change
    /// already.
    async fn wait_for(&self, proc_id: Option<u64>) -> Result<()> {
        let Some(proc_id) = proc_id else { return Ok(()) };
        let (env, options) = (self.client.env(), self.client.options());
        let deadline = env.clock.monotonic() + options.procedure_timeout;
        let request = proto::GetProcedureResultRequest { proc_id };
        for region in 0.. {
            let answer: proto::GetProcedureResultResponse =
                self.call_master("getProcedureResult", &request).await?;
            // An unknown procedure has ended, and an earlier attempt of this call has fetched its
            // result.
            if answer.state() != State::Running {
                return match answer.exception {
                    Some(exception) => Err(JavaException::from_foreign(&exception).into()),
                    None => Ok(()),
                };
            }
            if env.clock.monotonic() >= deadline {
                break;
            }
            // Start with a tenth of HBase's pause: operations on small tables take only
            // milliseconds.
            let pause = options.pause / 10 * backoff(region);
            env.clock.sleep(pause.min(options.procedure_poll_max)).await;
        }
        Err(Error::ProcedureTimedOut(proc_id))
    }

    /// A nonce for an operation, by which the master recognizes a repeated call.
    fn nonce(&self) -> (Option<u64>, Option<u64>) {
        let random = &self.client.env().random;
        (Some(random.next_u64() | 1), Some(random.next_u64() | 1))
    }
}

fn malformed(error: impl ToString) -> Error {
    Error::Malformed(error.to_string())
}

impl ClusterStatus {
    fn from_message(status: proto::ClusterStatus) -> Result<ClusterStatus> {
        let name = |server: &proto::ServerName| ServerName::try_from(server).map_err(malformed);
        let names = |servers: &[proto::ServerName]| servers.iter().map(name).collect::<Result<Vec<_>>>();
        let server_status = |live: proto::LiveServerInfo| {
            let load = live.server_load;
            Ok(ServerStatus {
                server: name(&live.server)?,
                requests_per_second: load.number_of_requests(),
                requests: load.total_number_of_requests(),
                used_heap_mb: load.used_heap_mb(),
                max_heap_mb: load.max_heap_mb(),
                regions: load.region_loads,
                replication_sources: load.repl_load_source,
            })
        };
        Ok(ClusterStatus {
            version: status.hbase_version.map(|version| version.version).unwrap_or_default(),
            cluster_id: status.cluster_id.map(|id| id.cluster_id).unwrap_or_default(),
            master: status.master.as_ref().map(name).transpose()?,
            backup_masters: names(&status.backup_masters)?,
            servers: status.live_servers.into_iter().map(server_status).collect::<Result<_>>()?,
            dead_servers: names(&status.dead_servers)?,
            balancer_on: status.balancer_on,
            regions_in_transition: status.regions_in_transition.len(),
        })
    }
}

impl Error {
    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        self.reaction() != Reaction::Fail
    }
}
