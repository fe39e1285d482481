//! Servers that die: when a server counts as dead, and what happens then.
//!
//! A server counts as dead when its session with ZooKeeper has expired, when it has registered and
//! has no znode for a while, when a newer process has started at its address, or when its process
//! is known to have ended. From then on its reports are refused. Its recovery is a procedure
//! ([`procedure::server_crash`](crate::procedure)): it fences the logs of the server, opens its
//! regions elsewhere, and archives the logs when no region needs them.

use std::collections::BTreeSet;
use std::sync::Arc;

use cell::mutation::Mutation;
use cell::query::Scan;
use cell::region::{RegionInfo, ServerName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::Region;
use layout::RootDir;
use proto::exception::{Answer, JavaException};
use tracing::{error, info, warn};

use crate::contact;
use crate::context::Context;
use crate::master::Master;
use crate::procedure::Work;
use crate::store::SERVERS;

/// The servers that may have logs: a row of `master:store`, family `rs`, for each, as in HBase. The
/// next master compares them with the live servers, and finds those that died without a master.
pub struct KnownServers {
    region: Arc<Region>,
}

impl KnownServers {
    /// The rows in the region of `master:store`.
    pub fn new(region: Arc<Region>) -> KnownServers {
        KnownServers { region }
    }

    /// Adds a server durably.
    ///
    /// # Errors
    /// The region's error.
    pub async fn add(&self, server: &ServerName) -> Result<(), engine::Error> {
        let row = server.to_string();
        let cell = KeyValue::new(row.as_bytes(), SERVERS, b"", LATEST_TIMESTAMP, CellType::Put, b"");
        self.region.batch_atomic(vec![Mutation::put(row.into_bytes(), vec![cell])]).await
    }

    /// Removes a server whose recovery is in the journal.
    ///
    /// # Errors
    /// The region's error.
    pub async fn remove(&self, server: &ServerName) -> Result<(), engine::Error> {
        self.region.batch_atomic(vec![Mutation::delete(server.to_string().into_bytes(), vec![])]).await
    }

    /// All servers.
    ///
    /// # Errors
    /// The region's error.
    pub async fn list(&self) -> Result<BTreeSet<ServerName>, engine::Error> {
        let list = self.region.scan_all(&Scan::default()).await?;
        let rows = list.cells.iter().map(|(cell, _)| cell.view(0));
        let rows = rows.filter(|cell| cell.family() == SERVERS);
        Ok(rows.filter_map(|cell| ServerName::parse(std::str::from_utf8(cell.row()).ok()?)).collect())
    }
}

/// The servers that have directories of logs, and whether their logs are fenced.
///
/// # Errors
/// The file system's error.
pub(crate) async fn servers_with_logs(context: &Context) -> Answer<Vec<(ServerName, bool)>> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    match fs.list(&root.wals_dir()).await {
        Ok(dirs) => Ok(dirs
            .into_iter()
            .filter(|dir| dir.is_dir)
            .filter_map(|dir| RootDir::server_of_wal_dir(&dir.name))
            .collect()),
        Err(fs::Error::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(JavaException::io(error.to_string())),
    }
}

/// Why a server counts as dead if another one has its address.
const REPLACED: &str = "a newer process has started at its address";
/// This many servers that started within a minute at one address are reported.
const REPLACED_MAX: usize = 3;
const REPLACED_SPAN_MS: u64 = 60_000;

impl Master {
    /// Records a new server, before it may have logs and regions. Of several servers at the same
    /// address, only the one that started last counts as live. The sessions of the others may last
    /// longer than their processes.
    ///
    /// # Errors
    /// `YouAreDeadException` if the server counts as dead, or the error of the journal.
    pub(crate) async fn add_server(&self, server: &ServerName) -> Answer<()> {
        let servers = &self.context().servers;
        if let Some(known) = self.known_servers() {
            known.add(server).await.map_err(|error| JavaException::io(error.to_string()))?;
        }
        if !servers.report(server.clone(), proto::ServerLoad::default()) {
            return Err(dead(server));
        }
        info!(%server, "region server registered");
        match self.is_of_cluster() {
            true => contact::begin(self.context(), server),
            // It is in this process.
            false => servers.end_contact(server, true),
        }
        for predecessor in servers.predecessors(server) {
            self.expire(&predecessor, REPLACED).await;
        }
        let replaced = servers.recent_predecessors(server, REPLACED_SPAN_MS);
        if replaced >= REPLACED_MAX {
            error!(
                %server, replaced,
                "region servers at this address replace each other: either two machines have the same name (set \
                 GRAMPUS_HOST), or the process ends repeatedly (see its log)"
            );
        }
        if servers.has_successor(server) {
            self.expire(server, REPLACED).await;
            return Err(dead(server));
        }
        Ok(())
    }

    /// Counts a server as dead, and starts its recovery. Does nothing if it is dead already.
    pub async fn expire(&self, server: &ServerName, why: &str) {
        let context = self.context();
        let is_stopping = context.servers.is_shutting_down();
        // If the process is the only server, its next run replays its logs.
        let is_recovered = !is_stopping && self.known_servers().is_some();
        let remove = || context.servers.remove(server);
        let was_live = if is_recovered { context.recoveries.announce_if(server, remove) } else { remove() };
        if !was_live {
            return; // It counted as dead before, or another task recovers it.
        }
        context.connections.forget(server);
        if is_stopping {
            return info!(%server, "region server has stopped");
        }
        warn!(%server, why, "region server is dead; its regions move to other servers");
        if !is_recovered {
            return;
        }
        if let Err(error) = self.recover(server).await {
            // The journal has failed, and this process is about to exit. The next master finds the
            // server among the known ones.
            warn!(%server, %error, "cannot journal the recovery of a dead server");
        }
    }

    /// Starts the recovery of those of `servers` that count as dead and have none.
    ///
    /// # Errors
    /// The journal's error.
    pub(crate) async fn recover_dead(&self, servers: &BTreeSet<ServerName>, why: &str) -> Answer<()> {
        let context = self.context();
        for server in servers.iter().filter(|server| context.servers.is_dead(server)) {
            if !context.recoveries.is_recovering(server) {
                warn!(%server, why, "recovering a dead region server");
                self.recover(server).await?;
            }
        }
        Ok(())
    }

    /// Starts the recovery of a dead server.
    ///
    /// # Errors
    /// The journal's error.
    pub(crate) async fn recover(&self, server: &ServerName) -> Answer<()> {
        let context = self.context();
        context.assignment.meta_known().await;
        let meta_state = context.assignment.state(&RegionInfo::meta());
        let had_meta = meta_state.is_some_and(|state| state.server() == Some(server));
        context.meta.location().forget(server);
        // Before the procedure begins, which opens the marked regions elsewhere.
        context.assignment.mark_crashed(server);
        let work = Work::ServerCrash { server: server.clone(), had_meta, regions: None };
        self.submit(work, (0, 0)).await?;
        if let Some(known) = self.known_servers() {
            known.remove(server).await.map_err(|error| JavaException::io(error.to_string()))?;
        }
        self.remove_mark_of_dead(server);
        Ok(())
    }
}

/// The exception for a report of a dead server.
pub(crate) fn dead(server: &ServerName) -> JavaException {
    JavaException::new(
        proto::exception::class::YOU_ARE_DEAD,
        format!("Server REPORT rejected; currently processing {server} as dead server"),
    )
}
