//! Tables and the cluster: what is asked of the master, and of region servers in its place.
//!
//! The master answers a change of tables with the number of a procedure, which is then asked for until it has ended.

mod namespaces;
mod procedures;
mod regions;
mod schema;
mod snapshots;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cell::EndKey;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{TableDescriptor, TableName};
use prost::Message;
use proto::get_procedure_result_response::State;
use proto::get_region_info_response::CompactionState;
use wire::convert;
use wire::exception::JavaException;
use wire::meta::TableState;

use crate::Client;
use crate::connections::{HIGH_PRIORITY, Outgoing};
use crate::error::{Error, Reaction, Result};
use crate::locations::{Location, Position};
use crate::retry::{Retry, backoff};

/// The longest pause between two questions for a procedure.
const POLL_PAUSE_MAX: Duration = Duration::from_secs(2);

/// Administration of a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Admin {
    client: Client,
}

/// A cluster's state, as its master sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterStatus {
    /// The version that the servers say they are.
    pub version: String,
    /// The cluster's id.
    pub cluster_id: String,
    /// The active master.
    pub master: Option<ServerName>,
    /// Masters that wait.
    pub backup_masters: Vec<ServerName>,
    /// Region servers that live.
    pub servers: Vec<ServerStatus>,
    /// Region servers that died.
    pub dead_servers: Vec<ServerName>,
    /// Whether the balancer runs by itself.
    pub balancer_on: Option<bool>,
    /// Regions on their way.
    pub regions_in_transition: usize,
}

/// A region server's state.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    /// The server.
    pub server: ServerName,
    /// Requests in each second since the last report.
    pub requests_per_second: u64,
    /// Requests since it started.
    pub requests: u64,
    /// Heap in use, MiB.
    pub used_heap_mb: u32,
    /// Heap at most, MiB.
    pub max_heap_mb: u32,
    /// Its regions, as the message has them.
    pub regions: Vec<proto::RegionLoad>,
}

impl Admin {
    pub(crate) fn new(client: Client) -> Admin {
        Admin { client }
    }

    /// Makes a table, with a region for each range between `split_keys` (sorted, without doubles). Ready when it
    /// returns.
    ///
    /// # Errors
    /// [`Error`]; `TableExistsException` and others of the server's as [`Error::Remote`].
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

    /// Removes a disabled table.
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

    /// Opens the regions of a disabled table.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enable_table(&self, table: &TableName) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::EnableTableRequest { table_name: table.into(), nonce_group, nonce };
        let answer: proto::EnableTableResponse = self.call_master("EnableTable", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Closes the regions of a table.
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

    /// Removes all rows of a disabled table, which is enabled then; it keeps its split keys or becomes one region.
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

    /// The descriptors of all tables, or of those whose whole name `regex` matches.
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

    /// The names of all tables, or of those whose whole name `regex` matches.
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

    /// Whether there is such a table.
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

    /// Writes the memstores of a table's regions to files; done when it returns.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn flush(&self, table: &TableName) -> Result<()> {
        self.flush_stores(table, None).await
    }

    /// Writes the memstores of one family of a table, or without one of all, to files; done when it returns.
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

    /// Asks for the files of a table's regions to be merged, all of them if `major`; goes on after it returns.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn compact(&self, table: &TableName, major: bool) -> Result<()> {
        self.compact_stores(table, None, major).await
    }

    /// The same for one family of a table, or without one for all.
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

    /// Calls the server of each region of a table; regions that move meanwhile are looked for again.
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
            self.at_rows_of(location, method, &request).await?;
        }
        Ok(())
    }

    /// Calls the server of a region; if the region was split meanwhile, those of its daughters.
    async fn at_rows_of<M: Message>(
        &self,
        mut location: Arc<Location>,
        method: &'static str,
        request: &impl Fn(&RegionInfo) -> M,
    ) -> Result<()> {
        let (table, end_key) = (location.region.table.clone(), location.region.end_key.clone());
        loop {
            // The answers to these calls say no more than that it was done.
            let (asked, _): (RegionInfo, proto::EmptyMsg) = self.at_region(location, method, request).await?;
            if EndKey(&asked.end_key) >= EndKey(&end_key) {
                return Ok(());
            }
            let mut retry = Retry::new(self.client.env(), self.client.options());
            location = self.locate_opened(&table, asked.end_key, &mut retry).await?;
        }
    }

    /// Where the region of a row is; waits for one that is just being split or moved.
    async fn locate_opened(
        &self,
        table: &TableName,
        row: Bytes,
        retry: &mut Retry<'_>,
    ) -> Result<Arc<Location>> {
        let position = Position::At(row);
        loop {
            match self.client.locate(table, &position).await {
                Ok(location) => return Ok(location),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    /// Calls the server of the region that holds the first row of the one that is at `location`: which that is, and its answer.
    async fn at_region<M: Message, R: Message + Default>(
        &self,
        mut location: Arc<Location>,
        method: &'static str,
        request: impl Fn(&RegionInfo) -> M,
    ) -> Result<(RegionInfo, R)> {
        let mut retry = Retry::new(self.client.env(), self.client.options());
        loop {
            let message = request(&location.region);
            let call =
                Outgoing { priority: HIGH_PRIORITY, ..Outgoing::new("AdminService", method, &message) };
            let error = match self.client.call_region(&location, call).await {
                Ok((answer, _)) => return Ok((location.region.clone(), answer)),
                Err(error) => error,
            };
            retry.pause(error).await?;
            let RegionInfo { table, start_key, .. } = location.region.clone();
            location = self.locate_opened(&table, start_key, &mut retry).await?;
        }
    }

    /// Whether files of a table's regions are being merged, or wait for it.
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

    /// The regions that are opening or closing or cannot be opened, as the master has them.
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

    /// The cluster's state.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cluster_status(&self) -> Result<ClusterStatus> {
        let request = proto::GetClusterStatusRequest::default();
        let answer: proto::GetClusterStatusResponse = self.call_master("GetClusterStatus", &request).await?;
        ClusterStatus::from_message(answer.cluster_status)
    }

    /// Calls the active master until it answers.
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
        // Asked for each time: calls of this kind are rare, and the master may be another one.
        let master = self.client.shared.registry.master(self.client.env(), self.client.connections()).await?;
        let call = Outgoing::new("MasterService", method, request);
        let (answer, _) = self.client.connections().call(&master.host, master.port, call).await?;
        Ok(answer)
    }

    /// Asks for a procedure until it has ended. Masters that answer without a number have done it already.
    async fn wait_for(&self, proc_id: Option<u64>) -> Result<()> {
        let Some(proc_id) = proc_id else { return Ok(()) };
        let (env, options) = (self.client.env(), self.client.options());
        let deadline = env.clock.monotonic() + options.procedure_timeout;
        let request = proto::GetProcedureResultRequest { proc_id };
        for asked in 0.. {
            let answer: proto::GetProcedureResultResponse =
                self.call_master("getProcedureResult", &request).await?;
            // One that is not known has ended, and its result was asked for before: our own call tried again.
            if answer.state() != State::Running {
                return match answer.exception {
                    Some(exception) => Err(JavaException::from_foreign(&exception).into()),
                    None => Ok(()),
                };
            }
            if env.clock.monotonic() >= deadline {
                break;
            }
            // A tenth of HBase's pause to begin with: small tables are there within milliseconds.
            let pause = options.pause / 10 * backoff(asked);
            env.clock.sleep(pause.min(POLL_PAUSE_MAX)).await;
        }
        Err(Error::ProcedureTimedOut(proc_id))
    }

    /// A name for an operation, by which the master knows a call that is made again.
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
    /// Whether trying the same again may help.
    pub fn is_passing(&self) -> bool {
        self.reaction() != Reaction::Fail
    }
}
