//! The location of `hbase:meta`: for this process, in a znode for clients, and in `master:store`
//! for the next master.

use std::sync::Arc;

use base::env::Env;
use cell::query::{CellSelection, Get};
use cell::region::{RegionInfo, ServerName};
use engine::Region;
use proto::exception::{Answer, JavaException};
use tokio::sync::watch;
use wire::meta::{MetaRegionState, MetaRow, region_row, row};
use zk::Coordinator;
use zk::coordinator::{Mode, publish};
use zk::names::Names;

/// The server on which `hbase:meta` is online, once there is one.
pub struct MetaLocation {
    env: Env,
    coordinator: Arc<dyn Coordinator>,
    names: Names,
    writer: String,
    // The region of `master:store`; `None` if no other master follows, so that nothing is stored.
    store: Option<Arc<Region>>,
    server: watch::Sender<Option<ServerName>>,
}

impl MetaLocation {
    /// Creates a location without a server. `writer` is the name that signs the znode. Changes are
    /// also written to `store`.
    pub fn new(
        env: Env,
        coordinator: Arc<dyn Coordinator>,
        names: Names,
        writer: String,
        store: Option<Arc<Region>>,
    ) -> MetaLocation {
        MetaLocation { env, coordinator, names, writer, store, server: watch::Sender::new(None) }
    }

    /// The location that the previous master stored: the server, whether the region is open there,
    /// and the open sequence id. `None` if `hbase:meta` has never been assigned, or was closed.
    ///
    /// # Errors
    /// The error of `master:store`.
    pub(crate) async fn load(&self) -> Answer<Option<(ServerName, bool, u64)>> {
        let Some(store) = &self.store else { return Ok(None) };
        let get = Get {
            row: region_row(&RegionInfo::meta()),
            selection: CellSelection::default().into(),
            existence_only: false,
        };
        let list = store.get(&get).await.map_err(|error| JavaException::io(error.to_string()))?;
        let Some(row) = MetaRow::parse(list.cells.iter().map(|(cell, _)| cell.view(0))) else {
            return Ok(None);
        };
        let seq_num = row.open_seq_num.and_then(|seq_num| u64::try_from(seq_num).ok()).unwrap_or(0);
        Ok(match row.state {
            Some(MetaRegionState::Opening) => row.target.clone().map(|target| (target, false, seq_num)),
            _ => row.server_name().map(|server| (server, true, seq_num)),
        })
    }

    /// Records durably that `server` is ordered to open `hbase:meta`.
    ///
    /// # Errors
    /// The error of `master:store`.
    pub(crate) async fn record_opening(&self, server: &ServerName) -> Answer<()> {
        self.store(row::put_opening(&RegionInfo::meta(), server)).await
    }

    /// Records that `hbase:meta` is online on `server`, and publishes this to clients.
    ///
    /// # Errors
    /// The error of `master:store` or of the coordination service. Clients see the old location
    /// then.
    pub async fn publish(&self, server: &ServerName, open_seq_num: i64) -> Answer<()> {
        self.store(row::put_open(&RegionInfo::meta(), server, open_seq_num)).await?;
        let data = zk::payload::meta_region_server(&self.writer, &*self.env.random, server);
        let path = self.names.meta_region_server(0);
        publish(&*self.coordinator, &path, data, Mode::Persistent)
            .await
            .map_err(|error| JavaException::io(error.to_string()))?;
        self.server.send_replace(Some(server.clone()));
        Ok(())
    }

    async fn store(&self, mutation: cell::mutation::Mutation) -> Answer<()> {
        match &self.store {
            Some(store) => {
                store.batch_atomic(vec![mutation]).await.map_err(|error| JavaException::io(error.to_string()))
            }
            None => Ok(()),
        }
    }

    /// Forgets the location if it is on a server that has died.
    pub(crate) fn forget(&self, server: &ServerName) {
        self.server.send_if_modified(|current| current.take_if(|current| current == server).is_some());
    }

    /// The server on which `hbase:meta` is online. Waits until there is one.
    pub async fn wait(&self) -> ServerName {
        let mut server = self.server.subscribe();
        let found = server.wait_for(Option::is_some).await.expect("the sender lives as long as self");
        found.clone().expect("waited for")
    }

    /// The server on which `hbase:meta` is online, if there is one.
    pub fn get(&self) -> Option<ServerName> {
        self.server.borrow().clone()
    }
}
